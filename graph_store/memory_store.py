"""The in-memory backend on networkx, for small graphs and for subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import networkx as nx

from graph_store.base import StoreBase, check_direction, check_limit, fact_order, unknown_entity
from graph_store.linking import FEW_TRIGRAM_HITS, name_keys
from graph_store.model import Direction, Entity, Triple
from graph_store.protocol import NameHit, RelationUse, StoreInfo


class MemoryStore(StoreBase):
    """A `networkx.MultiDiGraph` behind the `GraphStore` protocol.

    Edges are keyed by relation id and carry the `Triple` as attribute `fact`.
    """

    def __init__(
        self,
        graph: nx.MultiDiGraph,
        aliases: Mapping[str, Sequence[str]] | None = None,
        location: str = "memory",
    ) -> None:
        self.location = location
        self._graph = graph
        self._aliases = {key: tuple(dict.fromkeys(value)) for key, value in (aliases or {}).items()}
        self._keys: dict[str, list[NameHit]] = {}
        self._trigrams: dict[str, dict[NameHit, None]] = {}
        for entity, name in graph.nodes(data="name"):
            self._index(entity, name)

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[Triple],
        names: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        location: str = "memory",
    ) -> MemoryStore:
        """Build a store; of equal (head, relation, tail) the highest confidence wins."""
        graph = nx.MultiDiGraph()
        names = names or {}
        for fact in triples:
            head_name = names.get(fact.head, fact.head_name)
            tail_name = names.get(fact.tail, fact.tail_name)
            for entity, name in ((fact.head, head_name), (fact.tail, tail_name)):
                if entity not in graph or graph.nodes[entity]["name"] == entity:
                    graph.add_node(entity, name=name)
            known = graph.get_edge_data(fact.head, fact.tail, fact.relation)
            if known is None or fact.confidence > known["fact"].confidence:
                graph.add_edge(fact.head, fact.tail, key=fact.relation, fact=fact)
        for head, tail, key, fact in graph.edges(keys=True, data="fact"):
            graph[head][tail][key]["fact"] = _named(graph, fact)
        return cls(graph, aliases, location)

    def entity(self, entity: str) -> Entity:
        """See `GraphStore.entity`."""
        self._check(entity)
        return Entity(entity, self._graph.nodes[entity]["name"], self._aliases.get(entity, ()))

    def neighbors(
        self,
        entity: str,
        *,
        relation: str | None = None,
        direction: Direction = "both",
        limit: int | None = None,
    ) -> list[Triple]:
        """See `GraphStore.neighbors`."""
        check_direction(direction)
        check_limit(limit)
        self._check(entity)
        facts: list[Triple] = []
        if direction in ("out", "both"):
            facts += [fact for _, _, fact in self._graph.out_edges(entity, data="fact")]
        if direction in ("in", "both"):
            facts += [
                fact
                for head, _, fact in self._graph.in_edges(entity, data="fact")
                if direction == "in" or head != entity
            ]
        if relation is not None:
            facts = [fact for fact in facts if fact.relation == relation]
        return sorted(facts, key=lambda fact: fact_order(entity, fact))[:limit]

    def relations(self, entity: str, direction: Direction = "both") -> list[RelationUse]:
        """See `GraphStore.relations`."""
        check_direction(direction)
        counts: dict[tuple[str, Direction], list[Triple]] = {}
        ways: list[Direction] = ["out", "in"] if direction == "both" else [direction]
        for way in ways:
            for fact in self.neighbors(entity, direction=way):
                counts.setdefault((fact.relation, way), []).append(fact)
        return [
            RelationUse(relation, facts[0].relation_label, way, len(facts))
            for (relation, way), facts in sorted(counts.items())
        ]

    def tails(self, head: str, relation: str) -> list[Triple]:
        """See `GraphStore.tails`."""
        return self.neighbors(head, relation=relation, direction="out")

    def heads(self, relation: str, tail: str) -> list[Triple]:
        """See `GraphStore.heads`."""
        return self.neighbors(tail, relation=relation, direction="in")

    def by_name_keys(self, keys: Sequence[str]) -> dict[str, list[NameHit]]:
        """See `GraphStore.by_name_keys`."""
        return {key: list(self._keys[key]) for key in keys if key in self._keys}

    def by_trigram(self, key: str, limit: int) -> list[NameHit]:
        """See `GraphStore.by_trigram`."""
        shared: dict[NameHit, int] = {}
        for trigram in _trigrams(key):
            for hit in self._trigrams.get(trigram, ()):
                shared[hit] = shared.get(hit, 0) + 1
        ranked = sorted(shared, key=lambda h: (-shared[h] / (len(h.label) + 8), h.label, h.entity))
        if len(ranked) < FEW_TRIGRAM_HITS:
            keys = sorted(name for name in self._keys if name.startswith(key[:2]))[:limit]
            ranked += [hit for name in keys for hit in self._keys[name] if hit not in shared]
        return ranked[:limit]

    def degree(self, entity: str, at_most: int) -> int:
        """See `GraphStore.degree`."""
        return min(len(self.neighbors(entity)), at_most)

    def facts(self) -> Iterator[Triple]:
        """See `GraphStore.facts`."""
        for _, _, fact in self._graph.edges(data="fact"):
            yield fact

    def info(self) -> StoreInfo:
        """See `GraphStore.info`."""
        facts = list(self.facts())
        values = [fact.confidence for fact in facts]
        return StoreInfo(
            facts=len(facts),
            entities=self._graph.number_of_nodes(),
            relations=len({fact.relation for fact in facts}),
            confidence={
                "min": min(values, default=None),
                "mean": sum(values) / len(values) if values else None,
                "max": max(values, default=None),
            },
            self_loops=sum(fact.head == fact.tail for fact in facts),
            aliases=sum(len(a) for e, a in self._aliases.items() if e in self._graph),
        )

    def close(self) -> None:
        """See `GraphStore.close`; nothing is held."""

    def _check(self, entity: str) -> None:
        if entity not in self._graph:
            raise unknown_entity(self, entity)

    def _index(self, entity: str, name: str) -> None:
        labels = [(name, False), *((alias, True) for alias in self._aliases.get(entity, ()))]
        if name != entity:
            labels.append((entity, False))
        for label, is_alias in labels:
            hit = NameHit(entity, name, label, is_alias)
            for key in name_keys(label):
                self._keys.setdefault(key, []).append(hit)
            for trigram in _trigrams(name_keys(label)[0]):
                self._trigrams.setdefault(trigram, {})[hit] = None


def _named(graph: nx.MultiDiGraph, fact: Triple) -> Triple:
    return Triple(
        fact.head,
        fact.relation,
        fact.tail,
        fact.confidence,
        graph.nodes[fact.head]["name"],
        graph.nodes[fact.tail]["name"],
        fact.relation_label,
        fact.provenance,
        fact.validity,
    )


def _trigrams(key: str) -> set[str]:
    return {key[i : i + 3] for i in range(len(key) - 2)}
