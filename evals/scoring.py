"""Anyone's answers scored: every metric with its interval, and a verdict for each question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evals.calibration import Calibration, calibrate
from evals.estimates import mean_estimate, summarise
from evals.metrics import Aliases, names_of, score_question
from evals.normalise import normal_form
from evals.predictions import PredictionFile, read_predictions
from evals.records import Estimate, Prediction, QuestionScore
from nodes.question_file import GoldQuestion, QuestionFileError, json_rows

COSTS = ("llm_calls", "input_tokens", "output_tokens", "total_tokens", "seconds")


class AliasFileError(ValueError):
    """A file of aliases cannot be used; the message names the file and the line."""


@dataclass(frozen=True)
class Verdict:
    """One question, what was answered, and what that is worth.

    `by_alias` says that only an alias made the first answer exact.
    """

    gold: GoldQuestion
    prediction: Prediction
    score: QuestionScore
    by_alias: bool

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return {
            "id": self.gold.id,
            "outcome": self.score.outcome,
            "values": self.score.values,
            "why": self.score.why,
            "by_alias": self.by_alias,
            "confidence": self.score.confidence,
            "question": self.gold.question,
            "answers": list(self.prediction.answers),
            "choice": self.prediction.choice,
            "gold": list(self.gold.answers),
        }


@dataclass(frozen=True)
class ScoreReport:
    """What a file of predictions is worth.

    Attributes:
        metrics: by name, over all questions that were scored.
        verdicts: in the order of the questions.
        alias_coverage: `gold_answers`, those `with_aliases`, questions `decided_by_alias`.
        substring: how `hits@1-substring` comes about: `hits`, those that are `exact`, and those
            `by_blank_answer`.
        calibration: of the stated confidences.
        cost: means a question, where the predictions state costs.
        missing: ids of questions without a prediction.
        unknown: ids or texts of predictions without a question.
        other_words: ids whose prediction states another question text.
    """

    metrics: dict[str, Estimate]
    verdicts: list[Verdict]
    alias_coverage: dict[str, int]
    substring: dict[str, int]
    calibration: Calibration
    cost: dict[str, Estimate]
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    other_words: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form; values are 0 to 1, costs in their units."""
        return {
            "metrics": {name: _estimate(e) for name, e in self.metrics.items()},
            "alias_coverage": self.alias_coverage,
            "substring": self.substring,
            "calibration": self.calibration.to_json(),
            "cost": {name: _estimate(e) for name, e in self.cost.items()},
            "missing": self.missing,
            "unknown": self.unknown,
            "other_words": self.other_words,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def _estimate(estimate: Estimate) -> dict[str, float | int | None]:
    if estimate.n:
        return {**estimate.to_json()}
    return {"value": None, "low": None, "high": None, "n": 0}


def score_file(
    questions: Sequence[GoldQuestion],
    predictions: str | Path,
    aliases: Aliases | None = None,
    *,
    only_predicted: bool = False,
) -> ScoreReport:
    """Score a file of predictions.

    Args:
        questions: with their gold answers.
        predictions: a file that `evals.predictions` reads.
        aliases: further names of gold answers, see `read_aliases`.
        only_predicted: leave questions without a prediction out; else they count as failed.

    Raises:
        PredictionFileError: the predictions cannot be used.
        QuestionFileError: a line is no JSON object.
        OSError: the file cannot be read.
    """
    read = read_predictions(predictions, questions)
    return score_predictions(questions, read, aliases, only_predicted=only_predicted)


def score_predictions(
    questions: Sequence[GoldQuestion],
    read: PredictionFile,
    aliases: Aliases | None = None,
    *,
    only_predicted: bool = False,
) -> ScoreReport:
    """Score predictions that are matched with their questions already; see `score_file`."""
    missing = [question.id for question in questions if question.id not in read.predictions]
    if only_predicted:
        questions = [question for question in questions if question.id in read.predictions]
    verdicts = [_verdict(question, read, aliases or {}) for question in questions]
    scores = [verdict.score for verdict in verdicts]
    return ScoreReport(
        metrics=summarise(scores),
        verdicts=verdicts,
        alias_coverage=_alias_coverage(verdicts, aliases or {}),
        substring=_substring(verdicts),
        calibration=calibrate(scores),
        cost=_costs(read.predictions.values()),
        missing=missing,
        unknown=read.unknown,
        other_words=read.other_words,
    )


def _verdict(gold: GoldQuestion, read: PredictionFile, aliases: Aliases) -> Verdict:
    prediction = read.predictions.get(gold.id)
    if prediction is None:
        prediction = Prediction(gold.id, status="failed")
        score = replace(score_question(gold, prediction), why="there is no prediction")
        return Verdict(gold, prediction, score, by_alias=False)
    score = score_question(gold, prediction, aliases)
    by_alias = False
    if score.values["exact-match"] and (aliases or gold.aliases):
        bare = score_question(replace(gold, aliases={}), prediction)
        by_alias = not bare.values["exact-match"]
    return Verdict(gold, prediction, score, by_alias)


def _alias_coverage(verdicts: Sequence[Verdict], aliases: Aliases) -> dict[str, int]:
    named = [
        bool(names_of(verdict.gold, answer, aliases))
        for verdict in verdicts
        for answer in verdict.gold.answers
    ]
    return {
        "gold_answers": len(named),
        "with_aliases": sum(named),
        "decided_by_alias": sum(verdict.by_alias for verdict in verdicts),
    }


def _substring(verdicts: Sequence[Verdict]) -> dict[str, int]:
    hits = [v.score for v in verdicts if v.score.values["hits@1-substring"]]
    return {
        "hits": len(hits),
        "exact": sum(score.values["exact-match"] == 1 for score in hits),
        "by_blank_answer": sum(score.outcome == "no_answer" for score in hits),
    }


def _costs(predictions: Iterable[Prediction]) -> dict[str, Estimate]:
    """Return the means of each cost over the predictions that state it."""
    known: dict[str, list[float]] = {name: [] for name in COSTS}
    for prediction in predictions:
        usage: Mapping[str, Any] = prediction.usage
        for name in COSTS[:3]:
            if isinstance(usage.get(name), int | float):
                known[name].append(usage[name])
        if all(isinstance(usage.get(name), int | float) for name in COSTS[1:3]):
            known["total_tokens"].append(usage["input_tokens"] + usage["output_tokens"])
        if prediction.seconds is not None:
            known["seconds"].append(prediction.seconds)
    return {name: mean_estimate(values) for name, values in known.items() if values}


def read_aliases(path: str | Path) -> dict[str, list[str]]:
    """Read other names of answers, by the answer in normal form.

    The file is one JSON object of answer to names, or JSON lines {"answer": …, "aliases": […]}, or
    lines of an answer, a tab and an alias.

    Raises:
        AliasFileError: the file is none of these, or empty.
        OSError: the file cannot be read.
    """
    aliases: dict[str, list[str]] = {}
    for answer, given, place in _alias_rows(Path(path)):
        if not isinstance(answer, str) or not normal_form(answer):
            raise AliasFileError(f"{place}: 'answer' must be a text that is not empty")
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise AliasFileError(f"{place}: the aliases of an answer must be a list of texts")
        aliases.setdefault(normal_form(answer), []).extend(n for n in names if n.strip())
    if not aliases:
        raise AliasFileError(f"{path}: there is no alias in it")
    return aliases


def _alias_rows(path: Path) -> Iterator[tuple[Any, Any, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise AliasFileError(f"{path}: is not a text file in UTF-8: {error}") from error
    if not text.lstrip().startswith("{"):
        yield from _tab_rows(text, path)
        return
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and set(whole) != {"answer", "aliases"}:
        for answer, names in whole.items():
            yield answer, names, f"{path}: '{answer}'"
        return
    try:
        for number, row in json_rows(path):
            yield row.get("answer"), row.get("aliases"), f"{path}:{number}"
    except QuestionFileError as error:
        raise AliasFileError(str(error)) from error


def _tab_rows(text: str, path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        answer, tab, alias = line.partition("\t")
        if not tab or not alias.strip():
            raise AliasFileError(f"{path}:{number}: must be an answer, a tab and an alias")
        yield answer, alias, f"{path}:{number}"
