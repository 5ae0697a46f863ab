"""A prediction held against the gold answers of its question.

Metrics, all 0 to 1 (an abstention or a failure has 0 in each, and an outcome of its own):

- `accuracy`: the chosen label, or the truth value, is the gold one; for an open question that
  is `exact-match`.
- `exact-match`: the first answer is a gold answer or one of its aliases, in normal form
  (`evals.normalise`). Of a multiple-choice question the words of the choice are compared.
- `hits@1-substring`: the rule of Plan-on-Graph's authors (METHODS §2): strip, remove blanks,
  lower-case; right when either text contains the other, for any gold answer or alias. The system's
  text is its answers joined by a comma, so a list that names everything hits; and an answer that
  was given but is blank always hits, as it does with the authors.
- `precision`, `recall`, `f1` over the sets of answers: every answer stands for the gold answer that
  it names, itself or by an alias; what stands for the same one counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evals.normalise import normal_form
from evals.records import Outcome, Prediction, QuestionScore
from graph_store.errors import shorten
from nodes.question_file import NO, YES, GoldQuestion

METRICS = ("accuracy", "exact-match", "hits@1-substring", "precision", "recall", "f1")
"""In the order in which they are shown."""

Aliases = Mapping[str, Sequence[str]]
"""Other names by gold answer, as it is written or in normal form."""

_TRUTHS = {**dict.fromkeys(YES, "true"), **dict.fromkeys(NO, "false")}
_LABEL_MARKS = " \t().:[]"
_SHOWN = 3


@dataclass(frozen=True)
class _Gold:
    """One gold answer: its text, its normal form, and the normal forms of its aliases."""

    text: str
    form: str
    aliases: frozenset[str]


def score_question(
    gold: GoldQuestion, prediction: Prediction, aliases: Aliases | None = None
) -> QuestionScore:
    """Return what a prediction is worth.

    Args:
        gold: the question with what is right.
        prediction: what a system answered.
        aliases: further names of gold answers, beside those that the question has.
    """
    values = _values(gold, prediction)
    if prediction.status == "failed" or not values:
        return _unanswered(prediction)
    given = [gold.choices.get(value, value) for value in values]
    aliases = aliases or {}
    golds = _golds(gold, aliases)
    named = [_name_of(answer, golds) for answer in given]
    exact = named[0] in {g.form for g in golds}
    right = exact if gold.question_type == "open" else values[0] in gold.answers
    scores = {
        "accuracy": float(right),
        "exact-match": float(exact),
        "hits@1-substring": float(_hits_by_substring(",".join(given), _spellings(gold, aliases))),
        **_set_scores(set(named), {g.form for g in golds}),
    }
    outcome: Outcome = "right" if right else "wrong"
    why = _why(given, named[0], golds)
    return QuestionScore(prediction.id, outcome, scores, prediction.confidence, why)


def _unanswered(prediction: Prediction) -> QuestionScore:
    """Score what is no answer; one that is blank text still hits by the authors' rule."""
    scores = dict.fromkeys(METRICS, 0.0)
    if prediction.status == "failed":
        return QuestionScore(prediction.id, "failed", scores, None, "failed")
    why = "no answer"
    if prediction.status == "answered" and prediction.answers:
        scores["hits@1-substring"] = 1.0
        why = "the answer is blank, which hits@1-substring counts as right"
    return QuestionScore(prediction.id, "no_answer", scores, None, why)


def _values(gold: GoldQuestion, prediction: Prediction) -> list[str]:
    """Return the answers as their question counts them, without blank ones.

    That is a label, `true` or `false`, or the text; what is no choice or truth value stays as it
    is. A choice that is given beside answers in words goes first, and alone.
    """
    if prediction.status != "answered":
        return []
    texts = prediction.answers
    if prediction.choice and (gold.question_type != "open" or not texts):
        texts = (prediction.choice,)
    texts = tuple(text for text in texts if normal_form(text))
    if gold.question_type == "choice":
        return [_label(text, gold.choices) for text in texts]
    if gold.question_type == "boolean":
        return [_TRUTHS.get(normal_form(text), text) for text in texts]
    return list(texts)


def _label(text: str, choices: Mapping[str, str]) -> str:
    """Return the label that a text is, or whose words it is, or both (`B) bank`); else the text."""
    if text in choices:
        return text
    bare, form = text.strip(_LABEL_MARKS).casefold(), normal_form(text)
    by_label = [label for label in choices if label.casefold() == bare]
    by_words = [label for label, words in choices.items() if normal_form(words) == form]
    by_both = [label for label, words in choices.items() if normal_form(f"{label} {words}") == form]
    found = by_label or by_words or by_both
    return found[0] if len(found) == 1 else text


def _golds(gold: GoldQuestion, aliases: Aliases) -> list[_Gold]:
    """Return the gold answers, those with one normal form as one, with their aliases."""
    golds: dict[str, _Gold] = {}
    for answer in gold.answers:
        text = gold.choices.get(answer, answer)
        form = normal_form(text)
        others = {normal_form(name) for name in names_of(gold, answer, aliases)} - {"", form}
        same = golds.get(form)
        known = same.aliases if same else frozenset()
        golds[form] = _Gold(same.text if same else text, form, known | others)
    return list(golds.values())


def _spellings(gold: GoldQuestion, aliases: Aliases) -> Iterator[str]:
    """Yield the gold answers and their aliases as they are written."""
    for answer in gold.answers:
        yield gold.choices.get(answer, answer)
        yield from names_of(gold, answer, aliases)


def names_of(gold: GoldQuestion, answer: str, aliases: Aliases) -> list[str]:
    """Return a gold answer's other names: the question's own, then those of `aliases`."""
    text = gold.choices.get(answer, answer)
    given = aliases.get(text) or aliases.get(normal_form(text)) or ()
    return [*gold.aliases.get(answer, ()), *given]


def _name_of(answer: str, golds: Sequence[_Gold]) -> str:
    """Return the form of the gold answer that an answer names, by name before alias, or its own."""
    form = normal_form(answer)
    if any(form == gold.form for gold in golds):
        return form
    return next((gold.form for gold in golds if form in gold.aliases), form)


def _hits_by_substring(text: str, names: Iterable[str]) -> bool:
    given = _joined(text)
    others = (_joined(name) for name in names)
    return any(given in other or other in given for other in others if other)


def _joined(text: str) -> str:
    return text.strip().replace(" ", "").lower()


def _set_scores(answered: set[str], golds: set[str]) -> dict[str, float]:
    found = len(answered & golds)
    return {
        "precision": found / len(answered),
        "recall": found / len(golds),
        # 2PR / (P + R), written so that it cannot divide by zero.
        "f1": 2 * found / (len(answered) + len(golds)),
    }


def _why(given: Sequence[str], named: str, golds: Sequence[_Gold]) -> str:
    first = f"'{shorten(given[0])}'"
    more = f" (the first of {len(given)} answers)" if len(given) > 1 else ""
    for gold in golds:
        if named == gold.form:
            if normal_form(given[0]) == gold.form:
                return f"{first}{more} is the gold answer '{shorten(gold.text)}'"
            return f"{first}{more} is an alias of the gold answer '{shorten(gold.text)}'"
    shown = ", ".join(f"'{shorten(gold.text)}'" for gold in golds[:_SHOWN])
    rest = f" and {len(golds) - _SHOWN} more" if len(golds) > _SHOWN else ""
    return f"{first}{more} is not gold: {shown}{rest}"
