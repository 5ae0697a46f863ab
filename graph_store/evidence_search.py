"""Evidence search of Debate-on-Graph: best first over an uncertain graph (§3, §4.1, Eq. 3–9).

The rules are those of `docs/methods.md`; what is here besides them only saves work and does not
change the result: texts are embedded in batches and once; candidates whose bound Conf(p)^alpha
(cosines are at most 1) cannot reach the threshold are not embedded; and an expansion that cannot
change the search is put off: one whose children all lie beyond `max_distance`, or have better paths
already. It is taken up again when a child is reached by another path that it may add to. Only the
budgets `max_candidates` and `max_texts` can change a result; then `stats.approximate` is true and
`stats.notes` says what was cut.
"""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graph_store.base import check_direction
from graph_store.embedding import Embedder, load_embedder
from graph_store.model import Direction, Path, SearchStats, Subgraph, Triple
from graph_store.search_state import Expansion, Search, Walk

if TYPE_CHECKING:
    from graph_store.protocol import GraphStore

TOLERANCE = 1e-9
DECIMALS = 6
FIRST_BATCH, NEXT_BATCH, LARGEST_BATCH = 24, 32, 256
LIKELY_COSINE = 0.75
"""Cosines are rarely higher: candidates with so much of the best bound are scored in one batch."""

BOUND_MARGIN = 2.0 * 10.0**-DECIMALS
"""Rounding may lift a score over its bound by half a unit, and a cosine over 1 by less."""
MAX_CANDIDATES, MAX_TEXTS = 4_000, 20_000

_WORD = re.compile(r"\w{3,}")


def find_evidence(
    store: GraphStore,
    question: str,
    topic_entities: Sequence[str],
    *,
    k: int = 3,
    width: int = 3,
    max_distance: float = 3.0,
    alpha: float = 1.0,
    direction: Direction = "both",
    ignore_confidence: bool = False,
    embedder: Embedder | None = None,
    max_candidates: int = MAX_CANDIDATES,
    max_texts: int = MAX_TEXTS,
) -> Subgraph:
    """Return the evidence around topic entities that bears on a question.

    Args:
        store: the graph.
        question: the question, embedded as it is.
        topic_entities: entity ids; one search each, then the union.
        k: paths kept for an entity (K).
        width: neighbours kept in an expansion (W).
        max_distance: farthest entity distance Hop/Conf that is visited (D_max).
        alpha: weight of the confidence in a path's score (Eq. 5).
        direction: `both` walks facts against their direction too, `out` does not.
        ignore_confidence: take every confidence as 1 (the variant DoG-E).
        embedder: model for semantic relevance; default all-MiniLM-L6-v2.
        max_candidates: candidate paths scored in one expansion before it becomes approximate.
        max_texts: texts scored in one search before it ends early, marked approximate.

    Returns:
        The subgraph: paths and facts, best first.

    Raises:
        UnknownEntityError: a topic entity is not in the store.
        ValueError: a setting is out of range.
        MissingExtraError: no embedder was given and the extra `embeddings` is absent.
    """
    searcher = EvidenceSearcher(
        store,
        question,
        width=width,
        max_distance=max_distance,
        alpha=alpha,
        direction=direction,
        ignore_confidence=ignore_confidence,
        embedder=embedder,
        max_candidates=max_candidates,
        max_texts=max_texts,
    )
    return searcher.evidence(topic_entities, k)


class EvidenceSearcher:
    """Searches for one question; neighbours and similarities are kept across topics and levels.

    Args and errors: see `find_evidence`.
    """

    def __init__(
        self,
        store: GraphStore,
        question: str,
        *,
        width: int = 3,
        max_distance: float = 3.0,
        alpha: float = 1.0,
        direction: Direction = "both",
        ignore_confidence: bool = False,
        embedder: Embedder | None = None,
        max_candidates: int = MAX_CANDIDATES,
        max_texts: int = MAX_TEXTS,
    ) -> None:
        if width < 1 or max_candidates < 1 or max_texts < 1:
            raise ValueError("width, max_candidates and max_texts must be at least 1")
        if max_distance < 0 or alpha < 0:
            raise ValueError("max_distance and alpha must not be negative")
        self._store = store
        self._question = question
        self._width = width
        self._max_distance = max_distance
        self._alpha = alpha
        self._direction = check_direction(direction)
        self._ignore_confidence = ignore_confidence
        self._embedder = embedder or load_embedder()
        self._max_candidates = max_candidates
        self._max_texts = max_texts
        self._neighbors: dict[str, list[tuple[Triple, str]]] = {}
        self._similarity: dict[str, float] = {}
        self._question_vector = self._embedder.encode([question])[0].astype(np.float64)
        self._question_words = frozenset(_WORD.findall(question.casefold()))

    def evidence(self, topic_entities: Sequence[str], k: int) -> Subgraph:
        """Return the union of one search at level `k` from each topic entity."""
        if k < 1:
            raise ValueError(f"k is {k}, must be at least 1")
        paths: list[Path] = []
        stats = SearchStats()
        topics = tuple(dict.fromkeys(topic_entities))
        for topic in topics:
            found, cost = self._search(topic, k)
            paths += found
            stats += cost
        return Subgraph.from_paths(topics, paths, stats)

    def _search(self, topic: str, k: int) -> tuple[list[Path], SearchStats]:
        started = time.perf_counter()
        embedded_before = len(self._similarity)
        search = Search(k, {topic: self._store.entity(topic).name})
        search.paths[topic] = [Walk((), topic, 1.0, "")]
        self._enqueue(search, topic, 0.0)
        while (entity := self._pop(search)) is not None:
            for expansion in search.waiting.pop(entity, ()):
                self._take_up(search, expansion, entity)
            search.visited[entity] = len(search.visited)
            self._expand(search, entity)
            if len(search.scored) >= self._max_texts:
                search.notes[f"search ended after {self._max_texts:,} texts"] = None
                break
        stats = SearchStats(
            visited=len(search.visited),
            texts_embedded=len(self._similarity) - embedded_before,
            texts_scored=len(search.scored),
            texts_pruned=search.pruned + sum(search.put_off.values()),
            milliseconds=(time.perf_counter() - started) * 1000,
            approximate=bool(search.notes),
            notes=tuple(search.notes),
        )
        kept = (walk for entity in search.visited for walk in search.paths[entity] if walk.facts)
        return [Path(topic, w.end, w.facts, w.score, w.confidence) for w in kept], stats

    def _pop(self, search: Search) -> str | None:
        while search.queue:
            distance, _, entity = heapq.heappop(search.queue)
            if entity in search.visited or distance != search.priority[entity]:
                continue  # an older, larger priority of the same entity
            return entity if distance <= self._max_distance + TOLERANCE else None
        return None

    def _enqueue(self, search: Search, entity: str, distance: float) -> None:
        if distance < search.priority.get(entity, float("inf")):
            search.priority[entity] = distance
            heapq.heappush(search.queue, (distance, search.names[entity], entity))

    def _expand(self, search: Search, entity: str) -> None:
        """Score a popped entity's children now, or put it off while that cannot change anything."""
        expansion = Expansion(entity, tuple(search.paths[entity]), search.visited[entity])
        candidates = self._candidates(search, expansion)
        telling = {
            walk.end
            for walk in candidates
            if self._in_reach(walk) and self._may_matter(search, walk)
        }
        if telling and self._score(search, candidates, telling):
            return
        search.put_off[entity] = len(candidates)
        # What is in reach and does not matter now never will: paths only get better.
        for child in dict.fromkeys(w.end for w in candidates if not self._in_reach(w)):
            search.waiting.setdefault(child, []).append(expansion)

    def _take_up(self, search: Search, expansion: Expansion, child: str) -> None:
        """Score a put-off expansion, as it stood then, if it may add to a popped child."""
        if expansion.entity not in search.put_off:
            return
        candidates = self._candidates(search, expansion)
        if any(walk.end == child and self._may_matter(search, walk) for walk in candidates):
            del search.put_off[expansion.entity]
            self._score(search, candidates)

    def _in_reach(self, walk: Walk) -> bool:
        return walk.distance <= self._max_distance + TOLERANCE

    def _bound(self, walk: Walk) -> float:
        return float(walk.confidence**self._alpha) + BOUND_MARGIN

    def _may_matter(self, search: Search, walk: Walk) -> bool:
        """Return whether a candidate, if it survived, could change its entity's state."""
        kept = search.paths.get(walk.end, [])
        return (
            len(kept) < search.k
            or self._bound(walk) >= kept[-1].score
            or walk.distance < search.priority[walk.end]
        )

    def _candidates(self, search: Search, expansion: Expansion) -> list[Walk]:
        """Return every retained path extended by every fact to a then unvisited entity (Eq. 7)."""
        visited, step = search.visited, expansion.step
        steps = [
            (fact, other)
            for fact, other in self._facts_around(expansion.entity)
            if visited.get(other, step + 1) > step
        ]
        if len(steps) * len(expansion.walks) > self._max_candidates:
            steps = self._likeliest(search, expansion, steps)
        walks = []
        for fact, other in steps:
            search.names[other] = fact.name_of(other)
            confidence = 1.0 if self._ignore_confidence else fact.confidence
            for walk in expansion.walks:
                text = f"{walk.text}, {fact.text}" if walk.text else fact.text
                walks.append(Walk((*walk.facts, fact), other, walk.confidence * confidence, text))
        return walks

    def _likeliest(
        self, search: Search, expansion: Expansion, steps: list[tuple[Triple, str]]
    ) -> list[tuple[Triple, str]]:
        """Cut an expansion to the budget by confidence and words shared with the question."""

        def promise(item: tuple[Triple, str]) -> tuple[float, str, tuple[str, str, str]]:
            fact = item[0]
            shared = self._question_words.intersection(_WORD.findall(fact.text.casefold()))
            weight = 1.0 if self._ignore_confidence else fact.confidence**self._alpha
            return (-weight * (1 + len(shared)), fact.text, fact.key)

        room = max(self._width, self._max_candidates // max(1, len(expansion.walks)))
        name = search.names[expansion.entity]
        search.notes[f"'{name}': {room:,} of {len(steps):,} facts considered"] = None
        return sorted(steps, key=promise)[:room]

    def _facts_around(self, entity: str) -> list[tuple[Triple, str]]:
        known = self._neighbors.get(entity)
        if known is None:
            facts = self._store.neighbors(entity, direction=self._direction)
            known = [(fact, fact.other(entity)) for fact in facts if fact.head != fact.tail]
            self._neighbors[entity] = known
        return known

    def _score(
        self, search: Search, candidates: list[Walk], telling: set[str] | None = None
    ) -> bool:
        """Keep the best W neighbours and their paths at or above the threshold (Eq. 8, 9).

        Args:
            search: the search.
            candidates: the expansion's candidate paths.
            telling: the neighbours through which it can change the search; None for all.

        Returns:
            False when W others beat all telling neighbours: then nothing is kept for now.
        """
        weighted = sorted(
            ((self._bound(walk), walk) for walk in candidates),
            key=lambda item: (-item[0], item[1].text),
        )
        scored: list[Walk] = []
        best: dict[str, float] = {}
        untold = sum(walk.end in telling for walk in candidates) if telling else -1
        position, threshold = 0, -1.0
        while position < len(weighted) and weighted[position][0] >= threshold:
            batch = self._batch(weighted, position)
            position += len(batch)
            for walk in self._scored(search, batch):
                scored.append(walk)
                best[walk.end] = max(walk.score, best.get(walk.end, -1.0))
                untold -= telling is not None and walk.end in telling
            if len(best) >= self._width:
                threshold = heapq.nlargest(self._width, best.values())[-1]
                if telling and untold == 0 and threshold > max(best[end] for end in telling):
                    return False
        search.pruned += len(weighted) - position
        kept = sorted(best, key=lambda end: (-best[end], search.names[end], end))[: self._width]
        least = min((best[end] for end in kept), default=0.0)
        chosen = set(kept)
        self._merge(search, [w for w in scored if w.end in chosen and w.score >= least])
        return True

    def _batch(self, weighted: list[tuple[float, Walk]], position: int) -> list[Walk]:
        """Return the next candidates to score: at first all that will hardly be spared."""
        size = NEXT_BATCH
        if position == 0:
            likely = weighted[0][0] * LIKELY_COSINE
            size = next(
                (n for n, (bound, _) in enumerate(weighted) if bound < likely), len(weighted)
            )
            size = min(max(size, FIRST_BATCH), LARGEST_BATCH)
        return [walk for _, walk in weighted[position : position + size]]

    def _scored(self, search: Search, walks: Sequence[Walk]) -> list[Walk]:
        texts = list(dict.fromkeys(walk.text for walk in walks))
        search.scored.update(texts)
        missing = [text for text in texts if text not in self._similarity]
        if missing:
            # Cosines in double precision, row by row, so that they do not depend on the batch.
            for text, vector in zip(missing, self._embedder.encode(missing), strict=True):
                cosine = float(np.dot(vector.astype(np.float64), self._question_vector))
                self._similarity[text] = max(0.0, cosine)
        return [
            replace(
                walk,
                score=round(self._similarity[walk.text] * walk.confidence**self._alpha, DECIMALS),
            )
            for walk in walks
        ]

    def _merge(self, search: Search, surviving: list[Walk]) -> None:
        """Add surviving paths to their entities, keep the best K, let priorities decrease."""
        arrived: dict[str, list[Walk]] = {}
        for walk in surviving:
            arrived.setdefault(walk.end, []).append(walk)
        for entity, walks in arrived.items():
            if entity in search.visited:
                continue
            pool = search.paths.get(entity, []) + walks
            search.paths[entity] = sorted(pool, key=lambda walk: walk.rank)[: search.k]
            self._enqueue(search, entity, min(walk.distance for walk in walks))
