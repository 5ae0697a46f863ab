"""What the states of all methods have in common: plain JSON-like values, small in checkpoints."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from langgraph.types import Overwrite
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


def fresh_run(state: MethodState, *lists: str) -> dict[str, Any]:
    """Return the update that clears what an earlier question of the same thread left.

    Args:
        state: the state that was found.
        lists: the method's own keys to which nodes only add.
    """
    added_to = ("calls", "trace", "warnings", *lists)
    update: dict[str, Any] = {key: Overwrite([]) for key in added_to if state.get(key)}
    if state.get("error"):
        update["error"] = Overwrite(None)
    if state.get("result"):
        update["result"] = {}
    return {**update, "topics": [], "evidence": []}


def end_of_run() -> dict[str, Any]:
    """Return the update that takes the input's optional parts out: they hold for one question."""
    return {"choices": None, "question_type": None, "topic_entities": None}


def check_question(state: Question) -> None:
    """Raise `ValueError` with the fault when a method's input cannot be worked on."""
    question: Any = state.get("question")
    topics: Any = state.get("topic_entities") or []
    if not isinstance(question, str) or not question.strip():
        raise ValueError("question: must be a text that is not empty")
    kind = state.get("question_type")
    if kind is not None and kind not in get_args(QuestionType):
        allowed = ", ".join(get_args(QuestionType))
        raise ValueError(f"question_type: '{kind}' is not one of {allowed}")
    choices: Any = state.get("choices") or {}
    texts = [*choices, *choices.values()] if isinstance(choices, dict) else [None]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError("choices: must map labels to texts, such as {'A': 'forest'}")
    if question_type_of(state) == "choice" and not choices:
        raise ValueError("choices: a question of type 'choice' needs them")
    if not (isinstance(topics, list | tuple) and all(isinstance(topic, str) for topic in topics)):
        raise ValueError("topic_entities: must be a list of names or ids")


def choices_of(state: Question) -> tuple[tuple[str, str], ...]:
    """Return the choices as (label, text) pairs in their order."""
    return tuple((state.get("choices") or {}).items())


_MEANS_OTHERS = re.compile(r"\b[A-Z] (?:and|or|nor) [A-Z]\b|\babove\b")


def answered_in_words(choices: Sequence[tuple[str, str]]) -> bool:
    """Return whether a choice is asked for in its words rather than by its label.

    Words are what a small model gets right; with labels beside them it mixes the two up. Labels are
    needed where two choices have the same words, or one speaks of others (`both A and C`).
    """
    texts = [text.strip().casefold() for _, text in choices]
    distinct = len(set(texts)) == len(texts)
    return distinct and not any(_MEANS_OTHERS.search(text) for _, text in choices)


def choice_shown(answer: str, choices: Sequence[tuple[str, str]]) -> str:
    """Return an answer as it stands in prompts: a choice's words, with its label where needed."""
    text = dict(choices).get(answer)
    if text is None:
        return answer
    return text if answered_in_words(choices) else f"{answer}. {text}"
