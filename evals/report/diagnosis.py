"""Signs of why a question went wrong, read off its result: linking, evidence, debate, replies.

They are computed, not judged: each says what was there and what was not, for a reader who sorts
errors by cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evals.records import Prediction
from evals.report.cells import Answered
from graph_store.linking import name_key

SIGNS: Mapping[str, str] = {
    "unlinked": "no topic entity was linked",
    "no-evidence": "no evidence was found",
    "not-in-evidence": "no evidence fact names the right answer",
    "in-evidence": "the evidence names the right answer",
    "lost": "somebody held the right answer, the final one is another",
    "never-held": "nobody held the right answer",
    "unreadable": "a reply could not be read",
    "cut": "a reply was cut at its token limit",
}
"""Signs by their short name, which the page filters by."""

_LAST = frozenset({"judge", "direct_answer", "vote"})
"""Whose answer is the final one."""


@dataclass
class Diagnosis:
    """What a result shows.

    Attributes:
        signs: short names, see `SIGNS`.
        naming: numbers (from 1) of the evidence facts that name a right answer.
        held_right: by role, the rounds or samples in which it gave a right answer.
    """

    signs: list[str] = field(default_factory=list)
    naming: list[int] = field(default_factory=list)
    held_right: dict[str, list[int]] = field(default_factory=dict)


def diagnose(row: Answered) -> Diagnosis:
    """Return the signs of a result; those about errors only where it is not right."""
    result = row.line["result"]
    trace = result.get("trace") or []
    evidence = result.get("evidence") or []
    found = Diagnosis()
    searched = any(entry.get("node") in ("link_topics", "retrieve") for entry in trace)
    if searched and not result.get("topic_entities"):
        found.signs.append("unlinked")
    elif searched and not evidence:
        found.signs.append("no-evidence")
    if evidence and row.gold.question_type != "boolean":
        found.naming = _naming(row, evidence)
        found.signs.append("in-evidence" if found.naming else "not-in-evidence")
    _look_at_replies(row, trace, found)
    if any(entry.get("fault") for entry in trace):
        found.signs.append("unreadable")
    if any(call.get("truncated") for call in row.line["calls"]):
        found.signs.append("cut")
    return found


def gold_words(row: Answered) -> list[str]:
    """Return the right answers in words: a choice's text rather than its label."""
    gold = row.gold
    return [gold.choices.get(answer, answer) for answer in gold.answers]


def _naming(row: Answered, evidence: list[dict[str, Any]]) -> list[int]:
    """Return the facts of which an end is a right answer, or has its words in its name."""
    names = [name for answer in row.gold.answers for name in row.gold.aliases.get(answer, ())]
    words = [f" {key} " for name in (*gold_words(row), *names) if (key := name_key(name))]
    ends = [[f" {name_key(str(fact[end]))} " for end in ("head", "tail")] for fact in evidence]
    return [
        number
        for number, pair in enumerate(ends, 1)
        if any(word in end for word in words for end in pair)
    ]


def _look_at_replies(row: Answered, trace: list[dict[str, Any]], found: Diagnosis) -> None:
    """Note who held a right answer, where several replies came before the final answer."""
    replies = [entry for entry in trace if "answer" in entry and entry.get("node") not in _LAST]
    if len(replies) < 2:
        return
    for entry in replies:
        if entry["answer"] is not None and _is_right(row, str(entry["answer"])):
            number = entry.get("round") or entry.get("sample", 0)
            found.held_right.setdefault(str(entry["node"]), []).append(int(number))
    if row.score.outcome != "right":
        found.signs.append("lost" if found.held_right else "never-held")


def _is_right(row: Answered, answer: str) -> bool:
    from evals.metrics import score_question

    choices = row.gold.choices
    held = Prediction(
        id=row.gold.id,
        answers=(choices.get(answer, answer),),
        choice=answer if answer in choices else None,
    )
    return score_question(row.gold, held).outcome == "right"
