"""The evidence search of Debate-on-Graph, slow and obvious: the oracle for the fast one.

Written from `METHODS` section 1.1 alone, whose steps the comments number. It shares no code with
`graph_store`: own words for facts, one text embedded at a time, nothing pruned, put off or kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph_store.model import Triple

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Walk:
    """A path from the topic: fact ids in walking order, the facts' words, and its numbers."""

    facts: tuple[Key, ...]
    texts: tuple[str, ...]
    confidence: float
    score: float

    @property
    def distance(self) -> float:
        return len(self.facts) / self.confidence

    @property
    def order(self) -> tuple:
        """Sort key, best first (step 5)."""
        return (-self.score, -self.confidence, len(self.facts), self.texts, self.facts)


@dataclass(frozen=True)
class ReferenceResult:
    """Evidence, best first, and what was visited for each topic as (entity, distance)."""

    facts: list[tuple[Key, float]]
    paths: list[tuple[str, str, tuple[Key, ...], float, float, float]]
    visited: list[list[tuple[str, float]]]


def relation_in_words(relation: str) -> str:
    """`_`, `.`, `/` and camel case split, lower-cased; of `/r/UsedFor` only the last part."""
    if relation.startswith("/"):
        relation = [part for part in relation.split("/") if part][-1]
    words = ""
    for before, letter in zip(" " + relation, relation, strict=False):
        if letter in "_./":
            letter = " "
        elif letter.isupper() and (before.islower() or before.isdigit()):
            words += " "
        words += letter
    return " ".join(words.split()).lower()


def reference_evidence(
    triples: Iterable[Triple],
    names: Mapping[str, str],
    question: str,
    topics: Sequence[str],
    encode: Callable[[str], np.ndarray],
    *,
    k: int,
    width: int,
    max_distance: float,
    alpha: float,
    direction: str,
    ignore_confidence: bool,
) -> ReferenceResult:
    """Search from each topic entity, then unite what was found."""
    stored: dict[Key, float] = {}
    labels: dict[Key, str] = {}
    for triple in triples:
        key = (triple.head, triple.relation, triple.tail)
        stored[key] = max(triple.confidence, stored.get(key, 0.0))
        labels[key] = triple.relation_label
    touching: dict[str, list[tuple[Key, str]]] = defaultdict(list)  # entity -> (fact, neighbour)
    for key in stored:
        head, _, tail = key
        touching[head].append((key, tail))
        if direction == "both":
            touching[tail].append((key, head))

    def name(entity: str) -> str:
        return names.get(entity, entity)

    def text(key: Key) -> str:
        head, relation, tail = key
        words = labels[key] or relation_in_words(relation)
        return f"{name(head).replace('_', ' ')} {words} {name(tail).replace('_', ' ')}"

    def extend(path: Walk, key: Key) -> Walk:
        texts = (*path.texts, text(key))
        confidence = path.confidence * (1.0 if ignore_confidence else stored[key])
        a, b = (np.asarray(encode(t), dtype=np.float64) for t in (", ".join(texts), question))
        cosine = math.fsum(x * y for x, y in zip(a, b, strict=True))  # both of unit length
        score = round(max(0.0, cosine) * confidence**alpha, 6) + 0.0  # step 4
        return Walk((*path.facts, key), texts, confidence, score)

    def search(topic: str) -> tuple[dict[str, list[Walk]], list[tuple[str, float]]]:
        paths = {topic: [Walk((), (), 1.0, 0.0)]}  # step 1
        queue = {topic: 0.0}
        visited: dict[str, float] = {}
        while queue:
            entity = min(queue, key=lambda e: (queue[e], name(e), e))  # step 2
            if queue[entity] > max_distance + 1e-9:
                break
            visited[entity] = queue.pop(entity)
            candidates: dict[str, list[Walk]] = defaultdict(list)  # step 3
            for path in paths[entity]:
                for key, neighbour in touching[entity]:
                    if neighbour not in visited:
                        candidates[neighbour].append(extend(path, key))
            best = {n: max(path.score for path in found) for n, found in candidates.items()}
            kept = sorted(best, key=lambda n: (-best[n], name(n), n))[:width]  # step 5
            threshold = min((best[n] for n in kept), default=0.0)  # step 6
            for n in kept:
                passed = [path for path in candidates[n] if path.score >= threshold]
                paths[n] = sorted(paths.get(n, []) + passed, key=lambda p: p.order)[:k]  # step 7
                queue[n] = min(queue.get(n, math.inf), *(path.distance for path in passed))
        return {e: paths[e] for e in visited if e != topic}, list(visited.items())

    searches = [search(topic) for topic in topics]
    found = [  # step 8
        (topic, entity, path)
        for topic, (paths, _) in zip(topics, searches, strict=True)
        for entity, walks in paths.items()
        for path in walks
    ]
    found.sort(key=lambda row: row[2].order)
    facts = dict.fromkeys(key for _, _, path in found for key in path.facts)
    return ReferenceResult(
        facts=[(key, stored[key]) for key in facts],
        paths=[(t, e, p.facts, p.score, p.confidence, p.distance) for t, e, p in found],
        visited=[visited for _, visited in searches],
    )
