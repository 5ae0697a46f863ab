"""The forms of the roles' replies.

The argument comes before the answer, so that the answer follows from it (a small model that names
a label first argues for another one); texts are bounded, so that it also ends.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model, field_validator

from nodes.answers import Reply
from nodes.state import answered_in_words

REPLY_LENGTH = 240
DECISION_LENGTH = 120
ANSWER_LENGTH = 120
FACTS_CITED = 6
_CONFIDENCE = re.compile(
    r"[~≈]?\s{0,3}([0-9]{1,9}(?:[.,][0-9]{1,20})?)\s{0,3}(%|percent|/\s?100)?\.?", re.I
)


class _Statement(Reply):
    MAIN: ClassVar[str | None] = "answer"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"argument", "reason"})


class _Cited(_Statement):
    @field_validator("facts", mode="before", check_fields=False)
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Keep what is a number: models also write `fact 3`, `[3]` or `1, 3`."""
        alone = value[0] if isinstance(value, list) and len(value) == 1 else value
        items = alone if isinstance(alone, list) else re.split(r"[,;]|\band\b", str(alone))
        numbers = (re.search(r"[0-9]+", str(item)) for item in items)
        kept = [match.group() for match in numbers if match]
        return [int(number) for number in kept if len(number) < 6]


class _Sure(Reply):
    @field_validator("confidence", mode="before", check_fields=False)
    @classmethod
    def _percent(cls, value: Any) -> Any:
        """Take 0.85, 85, `85 %`, `85/100` alike; anything else is no statement."""
        text = str(value).strip() if isinstance(value, int | float | str) else ""
        match = _CONFIDENCE.fullmatch(text)
        if match is None:
            return None
        number = float(match.group(1).replace(",", "."))
        if number <= 1 and not match.group(1).isdigit() and not match.group(2):
            number *= 100
        return round(min(number, 100))


def _at_most(length: int) -> Any:
    """Bound a text in the schema that is sent; a longer one that comes anyway is no fault."""
    return Field(json_schema_extra={"maxLength": length})


Reason = Annotated[str, _at_most(DECISION_LENGTH)]
Percent = Annotated[
    int | None,
    Field(json_schema_extra={"type": "integer", "minimum": 0, "maximum": 100, "anyOf": None}),
]
Facts = Annotated[list[int], Field(json_schema_extra={"maxItems": FACTS_CITED})]
OpenAnswer = Annotated[str, _at_most(ANSWER_LENGTH)] | None

Choices = tuple[tuple[str, str], ...]
"""(label, text) pairs, in order; empty where the question has no choices."""


def answer_type(question_type: str, choices: Choices) -> Any:
    """Return the type of an answer: a choice's label, true/false, or text (null: not known)."""
    if question_type == "choice":
        labels: Any = Literal[tuple(label for label, _ in choices)]
        if not answered_in_words(choices):
            return labels
        # The words are asked for, and read back as the label.
        texts: list[Any] = [text for _, text in choices]
        return Annotated[labels, Field(json_schema_extra={"enum": texts})]
    if question_type == "boolean":
        return Literal["true", "false"]
    return OpenAnswer


@lru_cache(maxsize=256)
def statement(
    question_type: str, choices: Choices, *, cites: bool, length: int = REPLY_LENGTH
) -> type[Reply]:
    """Return the form of a debater's reply: [facts, ]argument of at most `length`, answer."""
    fields: dict[str, Any] = {}
    if cites:
        fields["facts"] = (Facts, Field(default_factory=list))
    fields["argument"] = (Annotated[str, _at_most(length)], "")
    fields["answer"] = (answer_type(question_type, choices), ...)
    base = _Cited if cites else _Statement
    return _with_synonyms(create_model("Statement", __base__=base, **fields), choices)


class Decision(Reply):
    """The Decision-Maker's reply."""

    MAIN: ClassVar[str | None] = "action"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"reason"})

    reason: Reason = ""
    action: Literal["stop", "continue", "expand"]


class DecisionWithoutExpansion(Reply):
    """The Decision-Maker's reply where the evidence cannot grow (fixed K, no graph)."""

    MAIN: ClassVar[str | None] = "action"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"reason"})

    reason: Reason = ""
    action: Literal["stop", "continue"]


@lru_cache(maxsize=256)
def verdict(
    question_type: str, choices: Choices, *, cites: bool, length: int = REPLY_LENGTH
) -> type[Reply]:
    """Return the form of a judgement: [facts, ][reason, ]answer, percent.

    The reason has at most `length` characters; with 0 none is asked for.
    """

    class _Verdict(_Sure, _Cited):
        pass

    fields: dict[str, Any] = {}
    if cites:
        fields["facts"] = (Facts, Field(default_factory=list))
    if length:
        fields["reason"] = (Annotated[str, _at_most(length)], "")
    fields["answer"] = (answer_type(question_type, choices), ...)
    fields["confidence"] = (Percent, None)
    return _with_synonyms(create_model("Verdict", __base__=_Verdict, **fields), choices)


def _with_synonyms(form: type[Reply], choices: Choices) -> type[Reply]:
    texts = [text.strip().casefold() for _, text in choices]
    form.SYNONYMS = {
        text: label
        for text, (label, _) in zip(texts, choices, strict=True)
        if text and texts.count(text) == 1  # words that two choices share name neither
    }
    return form
