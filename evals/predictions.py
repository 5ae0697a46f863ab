"""Readers for answers of any system, one JSON object a line, plain or gzip; told by their content.

- Plain: `id` (or `question_id`), or the question's text as `question` where there are no ids; the
  answer as `answers`, `answer`, `prediction` (a text, number or list) or `choice` (a label); if
  known `confidence` (0 to 1), `status` (answered, no_answer, failed), `usage` or its parts
  (`llm_calls`, `input_tokens`, `output_tokens`), `seconds`. An answer that is null, or an empty
  list, is an abstention. A blank text is one too, but keeps its text for hits@1-substring.
- A run's `results.jsonl` (`evals.records.ResultLine`), of one configuration.
- The released Plan-on-Graph outputs: `question` or `RawQuestion`, and `results`, a text that should
  hold JSON with `A`: {`Answer`}. As in the authors' evaluation the answer is taken from the first
  brace on, mended where it is broken; without one, the whole text is the answer. Their prompt's
  word for no answer is `Null`; it is read as an abstention, as are null and `None`.

Nothing of a file is ever evaluated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evals.records import Prediction, prediction_of
from graph_store.errors import shorten
from nodes.question_file import GoldQuestion, json_rows

_ANSWER_FIELDS = ("answers", "answer", "prediction", "choice")
_STATUSES = ("answered", "no_answer", "failed")
_USAGE = ("llm_calls", "input_tokens", "output_tokens", "sequential_llm_steps")
_POG_USAGE = {
    "llm_calls": "call_num",
    "input_tokens": "input_token",
    "output_tokens": "output_token",
}
_POG_NO_ANSWER = frozenset({"null", "none"})


class PredictionFileError(ValueError):
    """A file of predictions cannot be used; the message names the file and the line."""


@dataclass(frozen=True)
class PredictionFile:
    """Predictions matched with questions.

    Attributes:
        predictions: by the question's id.
        unknown: ids, or texts where there are no ids, that are of no question.
        other_words: ids whose line states another question text than the question has.
    """

    predictions: dict[str, Prediction] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    other_words: list[str] = field(default_factory=list)


def read_predictions(path: str | Path, questions: Sequence[GoldQuestion]) -> PredictionFile:
    """Read predictions and match them with their questions, by id, else by text.

    Raises:
        PredictionFileError: a line cannot be used, a question is answered twice, or no line is of
            any of the questions.
        QuestionFileError: a line is no JSON object.
        OSError: the file cannot be read.
    """
    read = PredictionFile()
    index = _QuestionIndex(questions)
    seen: dict[str, int] = {}
    for number, row in json_rows(path):
        place = f"{path}:{number}"
        key, known = index.find(row, place)
        if key in seen:
            raise PredictionFileError(_twice(key, place, seen[key], row))
        seen[key] = number
        prediction = _prediction(row, key, place)
        if known is None:
            read.unknown.append(key)
            continue
        read.predictions[known.id] = replace(prediction, id=known.id)
        if _words(row) not in ("", _plain(known.question)):
            read.other_words.append(known.id)
    if not read.predictions:
        raise PredictionFileError(_none_known(path, read.unknown, questions))
    return read


class _QuestionIndex:
    """Finds the question that a line answers."""

    def __init__(self, questions: Sequence[GoldQuestion]) -> None:
        self._by_id = {question.id: question for question in questions}
        self._by_words = {_plain(question.question): question for question in questions}
        counts = Counter(_plain(question.question) for question in questions)
        self._shared = {words for words, count in counts.items() if count > 1}

    def find(self, row: Mapping[str, Any], place: str) -> tuple[str, GoldQuestion | None]:
        """Return the line's key (the question's id where there is one) and its question."""
        name = row.get("id", row.get("question_id"))
        words = _words(row)
        if name in (None, "") and not words:
            raise PredictionFileError(f"{place}: has neither 'id' nor the text of a 'question'")
        if name not in (None, ""):
            return str(name), self._by_id.get(str(name))
        if words in self._shared:
            raise PredictionFileError(
                f"{place}: several questions read '{shorten(words)}'; give an 'id'"
            )
        known = self._by_words.get(words)
        return (known.id if known else words), known


def _words(row: Mapping[str, Any]) -> str:
    text = row.get("question", row.get("RawQuestion"))
    return _plain(text) if isinstance(text, str) else ""


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _twice(key: str, place: str, first: int, row: Mapping[str, Any]) -> str:
    mend = "; of a run with several configurations, keep the lines of one" if "label" in row else ""
    return f"{place}: '{shorten(key)}' is answered twice, first in line {first}{mend}"


def _none_known(path: str | Path, unknown: Sequence[str], questions: Sequence[GoldQuestion]) -> str:
    if not unknown:
        return f"{path}: there is no prediction in it"
    return (
        f"{path}: none of the {len(unknown)} predictions is of one of the {len(questions)} "
        f"questions (they are named like '{shorten(unknown[0], 40)}', questions like "
        f"'{questions[0].id}')"
    )


def _prediction(row: Mapping[str, Any], key: str, place: str) -> Prediction:
    if isinstance(row.get("result"), dict):
        return _of_result_line(row, key)
    if "results" in row and not any(name in row for name in _ANSWER_FIELDS):
        return _of_plan_on_graph(row, key, place)
    return _plain_prediction(row, key, place)


def _plain_prediction(row: Mapping[str, Any], key: str, place: str) -> Prediction:
    if not any(name in row for name in (*_ANSWER_FIELDS, "status")):
        wanted = ", ".join(f"'{name}'" for name in _ANSWER_FIELDS)
        raise PredictionFileError(f"{place}: has no answer: none of {wanted}")
    given = next((row[n] for n in _ANSWER_FIELDS[:3] if row.get(n) not in (None, [])), None)
    answers = tuple(_texts(given, place))
    choice = next(_texts(row.get("choice"), place), None) or None
    status = row.get("status", "answered")
    if status not in _STATUSES:
        raise PredictionFileError(
            f"{place}: 'status' is '{shorten(str(status))}', not one of {', '.join(_STATUSES)}"
        )
    if status != "answered":
        answers, choice = (), None
    elif not answers and choice is None:
        status = "no_answer"
    usage = row["usage"] if isinstance(row.get("usage"), dict) else row
    return Prediction(
        id=key,
        answers=answers,
        choice=choice,
        status=status,
        confidence=_confidence(row.get("confidence"), place),
        usage=_numbers(usage, dict(zip(_USAGE, _USAGE, strict=True))),
        seconds=_numbers(row, {"seconds": "seconds"}).get("seconds"),
    )


def _texts(value: Any, place: str) -> Iterator[str]:
    """Yield the texts in a text, number, truth value or (nested) list; null gives none."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, place)
    elif isinstance(value, str):
        yield value.strip()
    elif isinstance(value, bool | int | float):
        yield json.dumps(value)
    elif value is not None:
        raise PredictionFileError(f"{place}: an answer must be a text or a list of texts")


def _confidence(value: Any, place: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if 0 <= number <= 1:
        return number
    raise PredictionFileError(
        f"{place}: 'confidence' is '{shorten(str(value))}'; it must be a number from 0 to 1"
    )


def _numbers(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    """Return the costs that a line states; what is no number that can be a cost is left out."""
    found = {ours: row.get(theirs) for ours, theirs in names.items()}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
    }


def _of_result_line(row: Mapping[str, Any], key: str) -> Prediction:
    """Read a line of a run: what a question takes, whether or not a reply came from the cache."""
    prediction = prediction_of(row["result"], key)
    calls = [call for call in row.get("calls") or [] if isinstance(call, dict)]
    if not calls:
        return replace(prediction, seconds=row.get("seconds", prediction.seconds))
    usage = {
        **prediction.usage,
        "llm_calls": len(calls),
        "input_tokens": sum(call.get("input_tokens", 0) for call in calls),
        "output_tokens": sum(call.get("output_tokens", 0) for call in calls),
    }
    if any(call.get("cached") for call in calls):
        usage.pop("sequential_llm_steps", None)
        return replace(prediction, usage=usage, seconds=None)
    return replace(prediction, usage=usage, seconds=row.get("seconds", prediction.seconds))


def _of_plan_on_graph(row: Mapping[str, Any], key: str, place: str) -> Prediction:
    answers = tuple(_texts(_without_names(_pog_answer(row["results"])), place))
    answered = any(text.casefold() not in _POG_NO_ANSWER for text in answers)
    return Prediction(
        id=key,
        answers=answers if answered else (),
        status="answered" if answered else "no_answer",
        usage=_numbers(row, _POG_USAGE),
        seconds=_numbers(row, {"seconds": "time"}).get("seconds"),
    )


def _pog_answer(results: Any) -> Any:
    """Return what the text says is the answer; the whole text where it holds no answer."""
    text = results if isinstance(results, str) else json.dumps(results, ensure_ascii=False)
    value = _json_from(text)
    objects = [item for item in (value if isinstance(value, list) else [value]) if item]
    for item in reversed(objects):
        part = item.get("A", item) if isinstance(item, dict) else None
        if isinstance(part, dict) and "Answer" in part:
            return part["Answer"]
    return text


def _without_names(value: Any) -> Any:
    """Return nested objects as lists of their values."""
    if isinstance(value, dict):
        value = list(value.values())
    return [_without_names(item) for item in value] if isinstance(value, list) else value


def _json_from(text: str) -> Any:
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.loads(text[start:])
    except (ValueError, RecursionError):
        import json_repair

        try:
            return json_repair.loads(text[start:])
        except (ValueError, RecursionError):
            return None
