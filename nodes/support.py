"""Which facts of the evidence an answer rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graph_store.linking import name_key

SHORTEST_NAME = 3
"""Shorter names (`a`, `it`) are found inside too many answers to tell anything."""


def supporting_facts(
    evidence: Sequence[dict[str, Any]], cited: Iterable[int], answer: str | None
) -> set[int]:
    """Return the numbers (from 1) of the facts that were cited for an answer or name it.

    Args:
        evidence: facts in their public JSON form.
        cited: numbers that a model gave; those out of range are dropped.
        answer: the answer in words; None when only citations count (true/false).
    """
    within = {number for number in cited if 1 <= number <= len(evidence)}
    if not answer:
        return within
    words = f" {name_key(answer)} "
    named = {
        number
        for number, fact in enumerate(evidence, 1)
        if any(_names(name_key(fact[end]), words) for end in ("head", "tail"))
    }
    return within | named


def _names(key: str, words: str) -> bool:
    return len(key) >= SHORTEST_NAME and (f" {key} " in words or words in f" {key} ")
