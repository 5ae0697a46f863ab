"""The values that flow through the project: entities, facts, paths, subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from graph_store.verbalise import fact_words, path_words

if TYPE_CHECKING:
    import networkx as nx

Direction = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity: its id, its display name, its aliases. Two entities may share a name."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Triple:
    """A fact (head, relation, tail) with the probability that it is true.

    Debate-on-Graph, Definition 1, Eq. 1. Facts are equal when ids and confidence are; the names
    are only for people and models.

    Attributes:
        head: id of the head entity.
        relation: id of the relation.
        tail: id of the tail entity.
        confidence: probability in (0, 1].
        head_name: display name of the head; the id when the store has no other.
        tail_name: display name of the tail; the id when the store has no other.
        relation_label: the store's words for the relation; empty when it has none.
        provenance: where the fact comes from, if the source said so.
        validity: when the fact holds, if the source said so.
    """

    head: str
    relation: str
    tail: str
    confidence: float = 1.0
    head_name: str = field(default="", compare=False)
    tail_name: str = field(default="", compare=False)
    relation_label: str = field(default="", compare=False)
    provenance: str | None = field(default=None, compare=False)
    validity: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.head_name:
            object.__setattr__(self, "head_name", self.head)
        if not self.tail_name:
            object.__setattr__(self, "tail_name", self.tail)

    @property
    def key(self) -> tuple[str, str, str]:
        """The fact's identity: (head, relation, tail) ids."""
        return (self.head, self.relation, self.tail)

    @cached_property
    def text(self) -> str:
        """The fact in words, in its stored orientation."""
        return fact_words(self)

    def other(self, entity: str) -> str:
        """Return the id at the fact's other end, seen from `entity`."""
        return self.tail if entity == self.head else self.head

    def name_of(self, entity: str) -> str:
        """Return the display name of one of the fact's two ends."""
        return self.head_name if entity == self.head else self.tail_name

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form: names, with `head_id` and `tail_id` where they differ."""
        out: dict[str, Any] = {
            "head": self.head_name,
            "relation": self.relation,
            "tail": self.tail_name,
            "confidence": self.confidence,
        }
        if self.head_name != self.head:
            out["head_id"] = self.head
        if self.tail_name != self.tail:
            out["tail_id"] = self.tail
        for name in ("relation_label", "provenance", "validity"):
            if value := getattr(self, name):
                out[name] = value
        return out

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Triple:
        """Rebuild a fact from its public JSON form."""
        return cls(
            head=value.get("head_id", value["head"]),
            relation=value["relation"],
            tail=value.get("tail_id", value["tail"]),
            confidence=value["confidence"],
            head_name=value["head"],
            tail_name=value["tail"],
            relation_label=value.get("relation_label", ""),
            provenance=value.get("provenance"),
            validity=value.get("validity"),
        )


@dataclass(frozen=True)
class Path:
    """A reasoning path from a topic entity, its facts in walking order (Definition 4).

    Attributes:
        topic: id of the entity where the path starts.
        entity: id of the entity where it ends.
        facts: the facts walked, each in its stored orientation.
        score: Score(p, Q) = SR(p, Q) · Conf(p)^alpha, rounded to 6 decimals (Eq. 5).
        confidence: Conf(p), the product of the facts' confidences (Eq. 3).
    """

    topic: str
    entity: str
    facts: tuple[Triple, ...]
    score: float
    confidence: float

    @property
    def hops(self) -> int:
        """The number of facts in the path."""
        return len(self.facts)

    @property
    def distance(self) -> float:
        """Hop(p) / Conf(p), what Eq. 6 minimises over paths."""
        return self.hops / self.confidence if self.hops else 0.0

    @cached_property
    def text(self) -> str:
        """The path in words: its facts in walking order, joined with `, `."""
        return path_words(self.facts)

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best first: score, confidence, fewer hops, then the facts' texts and ids."""
        return (
            -self.score,
            -self.confidence,
            self.hops,
            tuple(fact.text for fact in self.facts),
            tuple(fact.key for fact in self.facts),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form."""
        last = self.facts[-1]
        out: dict[str, Any] = {
            "entity": last.name_of(self.entity),
            "facts": [fact.to_dict() for fact in self.facts],
            "score": self.score,
            "confidence": self.confidence,
            "distance": self.distance,
        }
        if out["entity"] != self.entity:
            out["entity_id"] = self.entity
        return out


@dataclass(frozen=True)
class SearchStats:
    """What a search did.

    Attributes:
        visited: entities popped from the queue, topics included.
        texts_embedded: texts that went through the embedding model (not found in the cache).
        texts_scored: candidate texts that were scored, cached or not.
        texts_pruned: candidate paths that a bound or a put-off expansion made unnecessary.
        milliseconds: wall time.
        approximate: whether a budget was reached, so that the result may not be exact.
        notes: what was cut, in words.
    """

    visited: int = 0
    texts_embedded: int = 0
    texts_scored: int = 0
    texts_pruned: int = 0
    milliseconds: float = 0.0
    approximate: bool = False
    notes: tuple[str, ...] = ()

    def __add__(self, other: SearchStats) -> SearchStats:
        return SearchStats(
            self.visited + other.visited,
            self.texts_embedded + other.texts_embedded,
            self.texts_scored + other.texts_scored,
            self.texts_pruned + other.texts_pruned,
            self.milliseconds + other.milliseconds,
            self.approximate or other.approximate,
            (*self.notes, *(n for n in other.notes if n not in self.notes)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return {
            "visited": self.visited,
            "texts_embedded": self.texts_embedded,
            "texts_scored": self.texts_scored,
            "texts_pruned": self.texts_pruned,
            "milliseconds": round(self.milliseconds, 3),
            "approximate": self.approximate,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Subgraph:
    """Evidence: the paths kept for the visited entities, and their facts, best first.

    Attributes:
        topic_entities: ids of the entities from which the searches started.
        facts: the union of the paths' facts, in the order of the paths, each once.
        paths: the kept paths, best first.
        stats: what the search did.
    """

    topic_entities: tuple[str, ...]
    facts: tuple[Triple, ...]
    paths: tuple[Path, ...]
    stats: SearchStats = field(default_factory=SearchStats, compare=False)

    @classmethod
    def from_paths(
        cls, topics: Sequence[str], paths: Iterable[Path], stats: SearchStats | None = None
    ) -> Subgraph:
        """Build a subgraph from paths in any order; equal paths are kept once."""
        best = sorted(dict.fromkeys(paths), key=lambda path: path.rank)
        return cls(tuple(topics), _facts_of(best), tuple(best), stats or SearchStats())

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the facts as a `networkx.MultiDiGraph`.

        Nodes are entity ids with attributes `name` and `topic` (bool); edges are keyed by the
        relation id with attributes `relation`, `confidence`, and `provenance` where known.
        """
        import networkx as nx

        graph = nx.MultiDiGraph()
        for fact in self.facts:
            graph.add_node(fact.head, name=fact.head_name)
            graph.add_node(fact.tail, name=fact.tail_name)
            extra = {"provenance": fact.provenance} if fact.provenance else {}
            graph.add_edge(
                fact.head,
                fact.tail,
                key=fact.relation,
                relation=fact.relation,
                confidence=fact.confidence,
                **extra,
            )
        for topic in self.topic_entities:
            if topic not in graph:
                graph.add_node(topic, name=topic)
        topics = set(self.topic_entities)
        for node, attributes in graph.nodes(data=True):
            attributes["topic"] = node in topics
        return graph

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form of `graphmoot subgraph --json`."""
        return {
            "topic_entities": list(self.topic_entities),
            "evidence": [fact.to_dict() for fact in self.facts],
            "paths": [path.to_dict() for path in self.paths],
            "stats": self.stats.to_dict(),
        }


def _facts_of(paths: Iterable[Path]) -> tuple[Triple, ...]:
    return tuple(dict.fromkeys(fact for path in paths for fact in path.facts))
