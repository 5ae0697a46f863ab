"""What the states of all methods have in common: plain JSON-like values, small in checkpoints."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from nodes.usage import Call

QuestionType = Literal["choice", "boolean", "open"]


class Question(TypedDict, total=False):
    """The input of every method.

    `choices` maps labels to texts; `question_type` is told from them when it is absent.
    `topic_entities` are ids or names; when absent they are found in the question.
    """

    question: str
    choices: dict[str, str]
    question_type: QuestionType
    topic_entities: list[str]


class Topic(TypedDict):
    """A topic entity: the words that named it, its id and name, and how well they fit."""

    mention: str
    entity: str
    name: str
    score: float


class Failure(TypedDict):
    """Why a run ended early: the kind of error and one line that names the mend."""

    type: str
    message: str


def first_failure(known: Failure | None, new: Failure | None) -> Failure | None:
    """Reducer: of failures in parallel nodes the first stays."""
    return known or new


class MethodState(Question, total=False):
    """State that every method has.

    Attributes:
        topics: the linked topic entities.
        evidence: facts in their public JSON form, with `score` (their best path's) and `level`.
        calls: one record a model call.
        trace: one entry a node run.
        warnings: what a reader of the answer should know.
        error: set when the run cannot go on.
        result: the public JSON document, set by the last node.
    """

    topics: list[Topic]
    evidence: list[dict[str, Any]]
    calls: Annotated[list[Call], operator.add]
    trace: Annotated[list[dict[str, Any]], operator.add]
    warnings: Annotated[list[str], operator.add]
    error: Annotated[Failure | None, first_failure]
    result: dict[str, Any]


def question_type_of(state: Question) -> QuestionType:
    """Return the question's type: as given, else `choice` with choices and `open` without."""
    given = state.get("question_type")
    if given is not None:
        return given
    return "choice" if state.get("choices") else "open"


def choices_of(state: Question) -> tuple[tuple[str, str], ...]:
    """Return the choices as (label, text) pairs in their order."""
    return tuple((state.get("choices") or {}).items())
