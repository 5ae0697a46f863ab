"""One row of a source: cleaning its names, checking its confidence."""

from __future__ import annotations

import json
import math
import re
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from graph_store.errors import RowError, shorten

Scale = Literal["none", "minmax", "logistic"] | float
"""`none`, `minmax`, `logistic`, or the number X of `divide:X`."""

_DROPPED = frozenset("PZC")
_ASCII_SIGNS = frozenset(string.punctuation)


@dataclass(slots=True)
class RawFact:
    """A row as its reader found it, texts untouched.

    Attributes:
        line: 1-based line number in the source.
        head, relation, tail: as they stand in the row.
        confidence: text, number or None when the row has none.
    """

    line: int
    head: Any
    relation: Any
    tail: Any
    confidence: Any = None
    head_name: Any = None
    tail_name: Any = None
    provenance: Any = None
    validity: Any = None


def clean_name(value: Any, what: str) -> str:
    """Return a name without surrounding blanks and quotes.

    Raises:
        RowError: it is no text, empty, or only punctuation.
    """
    if isinstance(value, bool | dict | list) or value is None or value != value:  # noqa: PLR0124
        shown = "missing" if value is None else f"{shorten(repr(value))}, not a name"
        raise RowError(f"{what} missing", f"the {what} is {shown}")
    text = _unquoted(str(value))
    if not text:
        raise RowError(f"{what} empty", f"the {what} is empty")
    _check_readable(text, what)
    if all(c in _ASCII_SIGNS or unicodedata.category(c)[0] in _DROPPED for c in text):
        raise RowError(
            f"{what} only punctuation", f"the {what} '{shorten(text)}' is only punctuation"
        )
    return text


def optional_text(value: Any, what: str = "text") -> str | None:
    """Return a cleaned optional text, None when it is absent or blank.

    Raises:
        RowError: it holds what no text may hold.
    """
    if value is None:
        return None
    listed = isinstance(value, dict | list)
    text = _unquoted(json.dumps(value, ensure_ascii=False) if listed else str(value))
    _check_readable(text, what)
    return text or None


def _unquoted(text: str) -> str:
    """Strip blanks and one pair of quotes around the whole; `"A" and "B"` has no such pair."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('""', ""):
        return text[1:-1].replace('""', '"').strip()
    return text


def _check_readable(text: str, what: str) -> None:
    if "\x00" in text:
        raise RowError(f"{what} unreadable", f"the {what} holds a NUL character")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise RowError(f"{what} unreadable", f"the {what} holds half of a surrogate pair")


def confidence_reader(scale: Scale, default: float | None) -> Callable[[Any], float]:
    """Return the function that turns a row's confidence into a number.

    With scale `minmax` the number is the raw weight; the writer scales it when all are known.

    Args:
        scale: how weights become confidences.
        default: confidence of rows that have none; None rejects them.
    """

    def read(value: Any) -> float:
        if value is None or (isinstance(value, str) and not value.strip().strip('"')):
            if default is None:
                raise RowError(
                    "confidence missing",
                    "no confidence (column `confidence`); --default-confidence sets one",
                )
            return default if scale != "minmax" else math.nan
        return _scaled(_number(value), scale)

    return read


def _number(value: Any) -> float:
    text = str(value).strip().strip('"').strip()
    try:
        # Python also reads `1_000`; a table does not mean that.
        number = math.nan if isinstance(value, bool) or "_" in text else float(text)
        readable = not isinstance(value, bool) and "_" not in text
    except ValueError:
        number, readable = math.nan, False
    if not readable:
        hint = ""
        if re.fullmatch(r"[-+]?\d+,\d+", text):
            hint = "; decimals follow a point, not a comma"
        elif text.endswith("%"):
            hint = "; write it without % and use --confidence-scale divide:100"
        raise RowError(
            "confidence not a number", f"the confidence '{shorten(text)}' is no number{hint}"
        )
    if not math.isfinite(number):
        raise RowError("confidence not finite", f"the confidence is {text}")
    return number


def _scaled(number: float, scale: Scale) -> float:
    if scale == "minmax":
        return number
    if scale == "logistic":
        return 1.0 / (1.0 + math.exp(-max(number, -700.0)))
    scaled = number / scale if isinstance(scale, float) else number
    if scaled <= 0:
        raise RowError("confidence not above 0", f"the confidence {number:g} is not above 0")
    if scaled > 1:
        mend = (
            f"is above 1 after divide:{scale:g}"
            if isinstance(scale, float)
            else "is above 1; --confidence-scale says how weights become confidences"
        )
        raise RowError("confidence above 1", f"the confidence {number:g} {mend}")
    return scaled


def parse_scale(text: str) -> Scale:
    """Parse `none|divide:X|minmax|logistic`; raise `ValueError` with the allowed forms."""
    if text in ("none", "minmax", "logistic"):
        return text  # type: ignore[return-value]
    kind, _, number = text.partition(":")
    try:
        divisor = float(number)
        if kind == "divide" and divisor > 0 and math.isfinite(divisor):
            return divisor
    except ValueError:
        pass
    raise ValueError(f"confidence scale '{text}' is not none, divide:X (X > 0), minmax or logistic")
