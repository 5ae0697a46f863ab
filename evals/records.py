"""What the parts of an evaluation hand each other: predictions, scores, result lines.

A run is a folder: `manifest.json` (what was asked for), `questions.jsonl` (the questions with their
gold answers and linked topics), `results.jsonl` (one line a question and configuration). The files
are enough to score, report and compare a run anywhere, without the graph or the data set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

Outcome = Literal["right", "wrong", "no_answer", "failed"]
"""How a question ended. `no_answer` (abstained) and `failed` are never counted as wrong."""


@dataclass(frozen=True)
class Prediction:
    """What a system answered to one question.

    Attributes:
        id: the question's id.
        answers: the answers in words, the best first; empty when it abstained or failed.
        choice: the label, for multiple choice; None otherwise.
        status: `answered`, `no_answer` or `failed`.
        confidence: stated confidence, 0 to 1; None when none was stated.
        usage: `llm_calls`, `input_tokens`, `output_tokens`, `sequential_llm_steps`, where known.
        seconds: wall time, where known.
    """

    id: str
    answers: tuple[str, ...] = ()
    choice: str | None = None
    status: Literal["answered", "no_answer", "failed"] = "answered"
    confidence: float | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(frozen=True)
class QuestionScore:
    """A prediction held against the gold answers; all values are 0 to 1.

    Attributes:
        id: the question's id.
        outcome: right, wrong, no_answer or failed.
        values: by metric: `accuracy`, `exact-match`, `hits@1-substring`, `precision`, `recall`,
            `f1`. A metric that does not apply to the question is left out.
        confidence: as stated; None when there is none or no answer.
        why: one line for a reader: what was compared with what.
    """

    id: str
    outcome: Outcome
    values: dict[str, float]
    confidence: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval: value, low, high in the metric's unit, over n questions."""

    value: float
    low: float
    high: float
    n: int

    def to_json(self) -> dict[str, float | int]:
        """Return the public JSON form."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


class Cell(TypedDict):
    """One configuration on one data set: a column and row of a paper's table.

    `label` is the configuration's name (`DoG-E`), `method` the method it is of, `settings` those
    that differ from the method's defaults.
    """

    label: str
    method: str
    dataset: str
    model: str
    settings: dict[str, Any]


class ResultLine(TypedDict):
    """One line of `results.jsonl`.

    `result` is the document that `graphmoot ask --json` prints; its `trace` holds what every role
    said. `calls` has one record a model call (see `nodes.usage.Call`), cached ones included.
    `thread` is the LangGraph thread, one for each key. `started` is in UTC, `seconds` is wall time.
    """

    label: str
    method: str
    dataset: str
    model: str
    question_id: str
    outcome: Outcome
    thread: str
    started: str
    seconds: float
    result: dict[str, Any]
    calls: list[dict[str, Any]]


def key_of(line: ResultLine) -> tuple[str, str, str, str]:
    """Return what a line is the result of: (label, dataset, model, question id)."""
    return line["label"], line["dataset"], line["model"], line["question_id"]


def prediction_of(result: dict[str, Any], question_id: str) -> Prediction:
    """Return the prediction that a result document holds."""
    status = result.get("status")
    return Prediction(
        id=question_id,
        answers=tuple(str(answer) for answer in result.get("answers") or []),
        choice=result.get("choice"),
        status=status if status in ("answered", "no_answer") else "failed",
        confidence=result.get("confidence"),
        usage=dict(result.get("usage") or {}),
        seconds=result.get("seconds"),
    )
