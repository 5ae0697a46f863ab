"""Reading a model's reply as structured output: tolerant of form, strict about content.

Fences, prose around the JSON, `<think>` blocks, end-of-turn marks, doubled braces, a wrong case, a
list for a string are accepted; a refusal, a missing field or a value outside the allowed ones is
not, and the caller asks once more. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import json_repair
from pydantic import BaseModel, ConfigDict, ValidationError

from nodes.errors import UnusableAnswerError

_THINK = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.S | re.I)
_OPEN_THINK = re.compile(r"<think(?:ing)?>", re.I)
_MARKS = re.compile(r"<\|[a-z_]+\|>|</?s>|\[/?INST\]")
_ANSWER_WORD = re.compile(r"^\s*(?:final\s+)?answer\s*(?:is)?\s*[:=]\s*", re.I)
_YES = frozenset({"yes", "true", "y", "1", "correct"})
_NO = frozenset({"no", "false", "n", "0", "incorrect"})


class Reply(BaseModel):
    """Base of all structured replies.

    Class attributes:
        MAIN: the field that a bare reply (no JSON at all) is taken for, if any.
        CUT_OK: text fields that are still usable when the reply was cut off inside them.
        SYNONYMS: other texts (case-folded) that stand for a value of MAIN, such as a choice's
            words for its label.
    """

    model_config = ConfigDict(extra="ignore")

    MAIN: ClassVar[str | None] = None
    CUT_OK: ClassVar[frozenset[str]] = frozenset()
    SYNONYMS: ClassVar[Mapping[str, str]] = {}


R = TypeVar("R", bound=Reply)


def read_reply(text: str, kind: type[R], *, truncated: bool = False) -> R:
    """Return a reply's last JSON object that fits.

    Args:
        text: the reply as it came.
        kind: what was asked for.
        truncated: whether the reply ended at its token limit.

    Raises:
        UnusableAnswerError: nothing in the text fits; the message says why.
    """
    cleaned = _MARKS.sub("", _THINK.sub("", text)).strip()
    reason = "no JSON object in it"
    for value in _values(_after_open_think(cleaned)):
        try:
            return kind.model_validate(_coerce_fields(value, kind))
        except (ValidationError, UnusableAnswerError) as error:
            reason = _reason(error)
    for value in _last_resorts(cleaned, kind, truncated):
        try:
            return kind.model_validate(_coerce_fields(value, kind))
        except (ValidationError, UnusableAnswerError) as error:
            reason = _reason(error)
    cut = "cut off at the token limit; " if truncated else ""
    raise UnusableAnswerError(f"{cut}{reason}", text)


def _after_open_think(text: str) -> str:
    return _OPEN_THINK.sub("", text)


def _values(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, the last one first."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    position = 0
    while (start := text.find("{", position)) >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        if isinstance(value, dict):
            found.append(value)
        position = end
    yield from reversed(found)


def _last_resorts(text: str, kind: type[Reply], truncated: bool) -> Iterator[dict[str, Any]]:
    start = text.find("{")
    if start >= 0:
        mended = json_repair.loads(text[start:].replace("{{", "{").replace("}}", "}"))
        if isinstance(mended, dict) and mended:
            yield _without_cut_field(mended, text, kind, truncated)
        return
    yield from _labelled_lines(text, kind)
    # A bare word is only believed where few words are allowed: a refusal is not an answer.
    bare = text.strip("`*\"'. \n")
    if kind.MAIN and get_origin(kind.model_fields[kind.MAIN].annotation) is Literal:
        yield {kind.MAIN: bare}


def _without_cut_field(
    value: dict[str, Any], text: str, kind: type[Reply], truncated: bool
) -> dict[str, Any]:
    """Drop the field in which a reply was cut off, unless half of it is of use."""
    if not truncated and text.rstrip().endswith(("}", "```")):
        return value
    last = list(value)[-1]
    if last.casefold() in kind.CUT_OK:
        return value
    return {name: item for name, item in value.items() if name != last}


def _labelled_lines(text: str, kind: type[Reply]) -> Iterator[dict[str, Any]]:
    found = {}
    for name in kind.model_fields:
        words = re.escape(name).replace("_", "[ _]")
        match = re.search(rf"^\W*{words}\W*:\s*(.+)$", text, re.I | re.M)
        if match:
            found[name] = match.group(1).strip().strip("*`\"' ")
    if found:
        yield found


def _coerce_fields(value: dict[str, Any], kind: type[Reply]) -> dict[str, Any]:
    lowered = {str(k).strip().casefold().replace(" ", "_"): v for k, v in value.items()}
    out = {}
    for name, field in kind.model_fields.items():
        if name in lowered:
            raw = lowered[name]
            if name == kind.MAIN and isinstance(raw, str):
                raw = kind.SYNONYMS.get(raw.strip().strip(".").casefold(), raw)
            coerced = _coerce(raw, field.annotation)
            out[name] = _ANSWER_WORD.sub("", coerced) if isinstance(coerced, str) else coerced
    return out


def _coerce(value: Any, annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        inner = next(a for a in arguments if a is not types.NoneType)
        return _coerce(value, inner)
    if origin is Literal:
        return _coerce_literal(value, arguments)
    if origin is list:
        items = value if isinstance(value, list) else [value]
        return [_coerce(item, arguments[0]) for item in items if item not in (None, "")]
    if annotation is str:
        return _coerce_text(value)
    if annotation is bool:
        return _coerce_bool(value)
    if annotation in (int, float) and isinstance(value, str):
        return value.strip().rstrip("%").strip("[]#. ")
    return value


def _coerce_text(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value if item not in (None, ""))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    return value.strip() if isinstance(value, str) else value


def _coerce_bool(value: Any) -> Any:
    word = str(value).strip().casefold().strip(".!")
    return True if word in _YES else False if word in _NO else value


def _coerce_literal(value: Any, allowed: tuple[Any, ...]) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    text = _ANSWER_WORD.sub("", str(_coerce_text(value))).strip().casefold()
    for option in allowed:
        if text == str(option).casefold():
            return option
    if set(map(str, allowed)) == {"true", "false"} and text.strip(".!") in _YES | _NO:
        return "true" if text.strip(".!") in _YES else "false"
    # `B) bank`, `(b)`, `B. bank`, `expand the evidence`, but not `a dog`
    first = re.match(r"[\W_]*(\w+)\s*([^\w\s]|$)?", text)
    if first:
        for option in allowed:
            if first.group(1) == str(option).casefold() and (
                len(first.group(1)) > 2 or first.group(2) is not None
            ):
                return option
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'reply'}: {fault['msg'].lower()}"
            for fault in error.errors(include_url=False)
        ]
        return "; ".join(faults[:3])
    return str(error)
