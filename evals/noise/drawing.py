"""Which facts are corrupted, and into what.

Facts are put into one random order, and replacements are drawn one after the other in that order.
What is drawn for a fact depends on the graph, the seed and the facts before it, never on how many
are drawn: a smaller share is a part of a larger one, with the same replacements.

Only `random.Random.random` is used: of Python's generators it is the one whose numbers are promised
to stay the same in later versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.noise.settings import NoiseError, NoiseSettings
from evals.noise.source import SourceGraph

How = Literal["tail", "relation"]

TRIES = 32
"""Candidates drawn for one replacement before all that are possible are listed."""


class Corruption(NamedTuple):
    """A fact and what takes its place, in the numbers of a `SourceGraph`.

    Attributes:
        fact: row of the fact.
        relation: relation of the false fact.
        tail: tail of the false fact.
        how: which of the two was replaced.
        factor: what its confidence is multiplied by, where confidences are lowered.
    """

    fact: int
    relation: int
    tail: int
    how: How
    factor: float


def draw(source: SourceGraph, count: int, settings: NoiseSettings) -> list[Corruption]:
    """Return `count` corruptions in the order in which they were drawn.

    Each turns a fact into one that is false in the graph, is no self-loop, and is not the outcome
    of another corruption. Self-loops are left alone: no method walks them, so a corrupted one
    would be evidence where there was none. A fact that cannot be made false is passed over.

    Raises:
        NoiseError: fewer than `count` facts can be corrupted so.
    """
    drawer = _Drawer(source, settings)
    factors = _stream(settings, "factor")
    low, high = settings.factor
    drawn: list[Corruption] = []
    for fact in _random_order(source, settings):
        if len(drawn) == count:
            return drawn
        if (found := drawer.replace(fact)) is not None:
            factor = low + (high - low) * factors.random()
            drawn.append(Corruption(fact, *found, factor))
    if len(drawn) < count:
        raise NoiseError(_too_few(source, settings, len(drawn), count))
    return drawn


def corruptible(source: SourceGraph) -> int:
    """Return the number of facts that shares are of: all but the self-loops."""
    return int(np.count_nonzero(source.facts[:, 0] != source.facts[:, 2]))


def _stream(settings: NoiseSettings, name: str) -> Random:
    return Random(f"graphmoot noise {name} {settings.seed}")  # noqa: S311 - nothing secret


def _random_order(source: SourceGraph, settings: NoiseSettings) -> list[int]:
    rows = np.flatnonzero(source.facts[:, 0] != source.facts[:, 2])
    stream = _stream(settings, "order")
    places = np.array([stream.random() for _ in range(len(rows))])
    order: list[int] = rows[np.argsort(places, kind="stable")].tolist()
    return order


class _Drawer:
    """Draws replacements; remembers those that it made."""

    def __init__(self, source: SourceGraph, settings: NoiseSettings) -> None:
        self._source = source
        self._corrupt = settings.corrupt
        self._random = _stream(settings, "replacement").random
        self._made: set[int] = set()
        self._all_relations = range(len(source.relations))
        self._all_entities = range(len(source.entities))
        self._tails = _tails_by_relation(source) if settings.tails == "same-relation" else None

    def replace(self, fact: int) -> tuple[int, int, How] | None:
        """Return (relation, tail, how) of a false fact in place of a true one; None if none is."""
        head, relation, tail = self._source.facts[fact].tolist()
        for how in self._ways():
            if how == "tail":
                found = self._pick(
                    self._tail_candidates(relation),
                    lambda other: other != head and self._is_free(head, relation, other),
                )
                made = None if found is None else (relation, found)
            else:
                found = self._pick(
                    self._all_relations, lambda other: self._is_free(head, other, tail)
                )
                made = None if found is None else (found, tail)
            if made is not None:
                self._made.add(self._source.key(head, *made))
                return (*made, how)
        return None

    def _ways(self) -> tuple[How, ...]:
        if self._corrupt == "both":
            return ("tail", "relation") if self._random() < 0.5 else ("relation", "tail")
        return (self._corrupt,)

    def _tail_candidates(self, relation: int) -> Sequence[int]:
        return self._all_entities if self._tails is None else self._tails[relation]

    def _is_free(self, head: int, relation: int, tail: int) -> bool:
        key = self._source.key(head, relation, tail)
        return key not in self._made and not self._source.has(key)

    def _pick(self, candidates: Sequence[int], allowed: Callable[[int], bool]) -> int | None:
        """Return one of the allowed candidates, each as likely; None when there is none."""
        if len(candidates) > TRIES:
            for _ in range(TRIES):
                chosen = candidates[int(self._random() * len(candidates))]
                if allowed(chosen):
                    return chosen
        rest = [candidate for candidate in candidates if allowed(candidate)]
        return rest[int(self._random() * len(rest))] if rest else None


def _tails_by_relation(source: SourceGraph) -> list[list[int]]:
    """Return, by relation, the entities that are its tail in some fact, ascending."""
    pairs: NDArray[np.int64] = np.unique(source.facts[:, 1:], axis=0)
    bounds = np.searchsorted(pairs[:, 0], np.arange(len(source.relations) + 1))
    tails: list[int] = pairs[:, 1].tolist()
    return [tails[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]


def _too_few(source: SourceGraph, settings: NoiseSettings, found: int, count: int) -> str:
    possible = found / corruptible(source) if found else 0.0
    more = "a smaller --share"
    if settings.corrupt != "relation" and settings.tails == "same-relation":
        more += " or --tails uniform"
    if settings.corrupt != "both":
        more += " or --corrupt both"
    return (
        f"{source.store.location}: {count:,} facts were to be corrupted and only {found:,} can be "
        f"made false so (a share of {int(possible * 10_000) / 10_000:g}); give {more}"
    )
