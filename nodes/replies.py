"""The forms of the roles' replies; short fields first, texts bounded, so that small models end."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model, field_validator

from nodes.answers import Reply

ARGUMENT_LENGTH = 400
REASON_LENGTH = 240
ANSWER_LENGTH = 120
FACTS_CITED = 6


class _Statement(Reply):
    MAIN: ClassVar[str | None] = "answer"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"argument", "reason"})


class _Cited(_Statement):
    @field_validator("facts", mode="before", check_fields=False)
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Keep what is a number: models also write `fact 3` or `[3]`."""
        items = value if isinstance(value, list) else [value]
        kept = ["".join(c for c in str(item) if c.isdigit()) for item in items]
        return [int(item) for item in kept if item and len(item) < 6]


class _Sure(Reply):
    @field_validator("confidence", mode="before", check_fields=False)
    @classmethod
    def _percent(cls, value: Any) -> Any:
        """Take 0.85, 85, `85 %` alike; anything else is no statement."""
        try:
            number = float(str(value).strip().rstrip("% "))
        except ValueError:
            return None
        if 0 < number <= 1 and "." in str(value):
            number *= 100
        return round(min(max(number, 0), 100))


def _at_most(length: int) -> Any:
    """Bound a text in the schema that is sent; a longer one that comes anyway is no fault."""
    return Field(json_schema_extra={"maxLength": length})


Argument = Annotated[str, _at_most(ARGUMENT_LENGTH)]
Reason = Annotated[str, _at_most(REASON_LENGTH)]
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
        return Literal[tuple(label for label, _ in choices)]
    if question_type == "boolean":
        return Literal["true", "false"]
    return OpenAnswer


@lru_cache(maxsize=256)
def statement(question_type: str, choices: Choices, *, cites: bool) -> type[Reply]:
    """Return the form of a debater's reply: answer[, facts], argument."""
    fields: dict[str, Any] = {"answer": (answer_type(question_type, choices), ...)}
    if cites:
        fields["facts"] = (Facts, Field(default_factory=list))
    fields["argument"] = (Argument, "")
    base = _Cited if cites else _Statement
    return _with_synonyms(create_model("Statement", __base__=base, **fields), choices)


class Decision(Reply):
    """The Decision-Maker's reply."""

    MAIN: ClassVar[str | None] = "action"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"reason"})

    action: Literal["stop", "continue", "expand"]
    reason: Reason = ""


class DecisionWithoutExpansion(Reply):
    """The Decision-Maker's reply where the evidence cannot grow (fixed K, no graph)."""

    MAIN: ClassVar[str | None] = "action"
    CUT_OK: ClassVar[frozenset[str]] = frozenset({"reason"})

    action: Literal["stop", "continue"]
    reason: Reason = ""


@lru_cache(maxsize=256)
def verdict(question_type: str, choices: Choices, *, cites: bool) -> type[Reply]:
    """Return the form of a judgement: answer[, facts], confidence in percent, reason."""

    class _Verdict(_Sure, _Cited):
        pass

    fields: dict[str, Any] = {"answer": (answer_type(question_type, choices), ...)}
    if cites:
        fields["facts"] = (Facts, Field(default_factory=list))
    fields["confidence"] = (Percent, None)
    fields["reason"] = (Reason, "")
    return _with_synonyms(create_model("Verdict", __base__=_Verdict, **fields), choices)


def _with_synonyms(form: type[Reply], choices: Choices) -> type[Reply]:
    form.SYNONYMS = {text.strip().casefold(): label for label, text in choices}
    return form
