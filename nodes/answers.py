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

_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>", re.I)
_MARKS = re.compile(
    r"<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>", re.I
)
_ANSWER_WORD = re.compile(
    r"^\s*(?:the\s+)?(?:(?:final|correct)\s+)?answer\s*(?:is\s*[:=]|is\s|[:=])\s*", re.I
)
_BRACE = re.compile(r"\{(?=\s*[\"}])")
_OBJECT_START = re.compile(r"\{\s{0,20}[\"'\u201c]?\w{1,40}[\"'\u201d]?\s{0,20}:")
_OPTION_WORD = re.compile(r"^(?:option|choice|label)\s*[:=]?\s+(?=\S)", re.I)
_BETWEEN = re.compile(r"\s*(?:[|/,;]|\bor\b|\band\b)\s*", re.I)
_ONE_WORD = re.compile(r"\W*\w+\W*|\W*(?:\w|\d\d)[).:\]].*")
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null|\[[^][]*\])"""
_YES = frozenset({"yes", "true", "y", "1", "correct"})
_NO = frozenset({"no", "false", "n", "0", "incorrect"})

LONGEST_REPLY = 400_000
"""Characters of a reply that are looked at: its beginning and its end, half each."""
LONGEST_MENDED = 12_000
"""Characters of a broken object that mending is tried on."""
MOST_BROKEN, MOST_REREAD = 1000, 2_000_000
"""Braces of a reply that may turn out to begin nothing readable, and characters read for them."""
BARE_WORDS = 4
"""Words that a reply without any form may have to be taken for one of the allowed words."""


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
    text = text if len(text) <= LONGEST_REPLY else _ends_of(text)
    cleaned = _MARKS.sub("", _without_thoughts(text)).strip()
    reason = "no JSON object in it"
    for value in _candidates(text, cleaned, kind, truncated):
        try:
            return kind.model_validate(_coerce_fields(value, kind))
        except (ValidationError, UnusableAnswerError) as error:
            reason = _reason(error)
        except RecursionError:
            reason = "nested too deeply"
    cut = "cut off at the token limit; " if truncated else ""
    raise UnusableAnswerError(f"{cut}{reason}", text)


def _candidates(
    text: str, cleaned: str, kind: type[Reply], truncated: bool
) -> Iterator[dict[str, Any]]:
    """Yield what the reply may have meant, the most faithful reading first."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        yield whole
    yield from _values(cleaned)
    yield from _last_resorts(cleaned, kind, truncated)


def _ends_of(text: str) -> str:
    half = LONGEST_REPLY // 2
    return f"{text[:half]}\n{text[-half:]}"


def _without_thoughts(text: str) -> str:
    """Drop `<think>` blocks; one that never closes stays, and of a stray end all before it goes.

    (A chat template that opens the block itself leaves only its end in the reply.)
    """
    kept: list[str] = []
    start, opened = 0, -1
    for tag in _THINK_TAG.finditer(text):
        if not tag.group(1):
            if opened < 0:
                kept.append(text[start : tag.start()])
                opened = start = tag.end()
        else:
            if opened < 0:
                kept.clear()
            opened, start = -1, tag.end()
    kept.append(text[start:])
    return _THINK_TAG.sub("", "".join(kept))


def _values(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, the last one first."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    position, broken, reread = 0, 0, 0
    while (
        broken < MOST_BROKEN and reread < MOST_REREAD and (start := _BRACE.search(text, position))
    ):
        try:
            value, position = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError) as error:
            position, broken = start.end(), broken + 1
            reread += getattr(error, "pos", len(text)) - start.start()
    yield from reversed(found)


def _last_resorts(text: str, kind: type[Reply], truncated: bool) -> Iterator[dict[str, Any]]:
    if "{" in text:
        for start in _broken_objects(text):
            part = text[start : start + LONGEST_MENDED].replace("{{", "{").replace("}}", "}")
            try:
                mended = json_repair.loads(part)
            except (ValueError, RecursionError):
                continue
            if isinstance(mended, dict) and mended:
                yield _without_cut_field(mended, part, kind, truncated)
        return
    yield from _labelled_lines(text, kind)
    # A bare word is only believed where few words are allowed: a refusal is not an answer.
    bare = text.strip("`*\"'. \n")
    named = bare.casefold() in kind.SYNONYMS or (
        len(bare) < 200 and len(bare.split()) <= BARE_WORDS and _ONE_WORD.fullmatch(bare)
    )
    if named and kind.MAIN and get_origin(kind.model_fields[kind.MAIN].annotation) is Literal:
        yield {kind.MAIN: bare}


def _broken_objects(text: str) -> Iterator[int]:
    """Yield where a broken object may begin: the last brace before a name, then the first one."""
    named = [match.start() for match in _OBJECT_START.finditer(text)]
    starts = dict.fromkeys([*named[-1:], *named[:1], text.find("{")])
    for start in starts:
        part = text[start : start + LONGEST_MENDED]
        if max(part.count("{"), part.count("[")) < 200:
            yield start


def _without_cut_field(
    value: dict[str, Any], text: str, kind: type[Reply], truncated: bool
) -> dict[str, Any]:
    """Drop the field in which a reply was cut off, unless half of it is of use."""
    if not truncated and text.count("}") >= text.count("{"):
        return value
    last = list(value)[-1]
    rest = text[text.rfind(str(last)) + len(str(last)) :]
    whole = re.match(rf"[\"']?\s*:\s*{_VALUE}\s*[,}}]", rest) or re.match(
        rf"[\"']?\s*:\s*{_VALUE}(?<=[\"\]])\s*$", rest
    )
    if whole or str(last).casefold() in kind.CUT_OK:
        return value
    return {name: item for name, item in value.items() if name != last}


def _labelled_lines(text: str, kind: type[Reply]) -> Iterator[dict[str, Any]]:
    found = {}
    for name in kind.model_fields:
        words = re.escape(name).replace("_", "[ _]")
        line = re.compile(rf"^[^\w\n]{{0,9}}{words}[^\w\n:]{{0,9}}:\s{{0,9}}(\S.*)$", re.I | re.M)
        for match in line.finditer(text):
            found[name] = match.group(1).strip("*`\"' \t\r")
    if found:
        yield found


def _coerce_fields(value: dict[str, Any], kind: type[Reply]) -> dict[str, Any]:
    lowered = {str(k).strip().casefold().replace(" ", "_"): v for k, v in value.items()}
    out = {}
    for name, field in kind.model_fields.items():
        if name in lowered:
            raw = lowered[name]
            raw = _main_value(raw, kind) if name == kind.MAIN else raw
            out[name] = _coerce(raw, field.annotation)
    return out


def _main_value(raw: Any, kind: type[Reply]) -> Any:
    """Return the main field's value without `Answer:`, a choice's words as its label."""
    if isinstance(raw, list) and len(raw) == 1:
        raw = raw[0]
    text = _coerce_text(raw)
    if not isinstance(text, str):
        return raw
    for words in (text, _ANSWER_WORD.sub("", text), _OPTION_WORD.sub("", text)):
        folded = words.strip().casefold()
        label = kind.SYNONYMS.get(folded, kind.SYNONYMS.get(folded.strip(".\"'")))
        if label is not None:
            return label
    text = _ANSWER_WORD.sub("", text)
    return None if text.casefold() == "null" else text


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
    if isinstance(value, list | dict):
        return value
    text = _ANSWER_WORD.sub("", str(_coerce_text(value))).strip().casefold()
    by_text = {str(option).casefold(): option for option in allowed}
    if text in by_text:
        return by_text[text]
    text = _OPTION_WORD.sub("", text).strip(".!()[]\"'*`")
    if text in by_text:
        return by_text[text]
    if len(text) < 200 and _is_enumeration(text, by_text):
        return value  # `stop|continue` names no choice
    if set(by_text) == {"true", "false"}:
        word = re.split(r"[\s.,;:!]", text, maxsplit=1)[0]
        if text in _YES | _NO or (word in _YES | _NO and text[len(word)] in ".,;:!"):
            return by_text["true" if word in _YES else "false"]
    # `B) bank`, `(b)`, `B. bank`, `expand the evidence`, but not `a dog`
    first = re.match(r"[\W_]{0,9}(\w{1,80})\s{0,9}([^\w\s]|$)?", text)
    if first and first.group(1) in by_text:
        word = first.group(1)
        if len(word) > 2 or first.group(2) is not None:
            return by_text[word]
    return value


def _is_enumeration(text: str, options: Mapping[str, Any]) -> bool:
    parts = [part.strip("\"'() ") for part in _BETWEEN.split(text)]
    return len({part for part in parts if part in options}) > 1


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'reply'}: "
            f"{fault['msg'][:1].lower()}{fault['msg'][1:]}"  # allowed values keep their case
            for fault in error.errors(include_url=False)
        ]
        return "; ".join(faults[:3])
    return str(error)
