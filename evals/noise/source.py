"""The graph that is corrupted, as arrays: a few dozen bytes a fact, also for millions of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.noise.settings import NoiseError
from graph_store.model import Triple
from graph_store.protocol import GraphStore
from graph_store.sqlite_schema import connect_reader
from graph_store.sqlite_store import SqliteStore

_LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True)
class SourceGraph:
    """A graph's facts by number. Numbers follow the ids' order, so equal graphs are equal here.

    Attributes:
        store: where the facts are.
        entities: ids by number, sorted.
        relations: ids by number, sorted.
        entity_order: ids as the store has them; a copy that keeps this order links alike.
        relation_order: ids as the store has them.
        names: display names, where they differ from the ids.
        labels: words of relations, where there are any.
        facts: int64 of shape (facts, 3): numbers of head, relation, tail; rows sorted.
        confidences: float64 of shape (facts,).
        keys: int64 of shape (facts,), ascending: one number for each (head, relation, tail).
    """

    store: GraphStore
    entities: list[str]
    relations: list[str]
    entity_order: list[str]
    relation_order: list[str]
    names: dict[str, str]
    labels: dict[str, str]
    facts: NDArray[np.int64]
    confidences: NDArray[np.float64]
    keys: NDArray[np.int64]

    def key(self, head: int, relation: int, tail: int) -> int:
        """Return the number of a fact, true or not."""
        return (head * len(self.relations) + relation) * len(self.entities) + tail

    def has(self, key: int) -> bool:
        """Return whether a fact is in the graph."""
        place = int(np.searchsorted(self.keys, key))
        return place < len(self.keys) and int(self.keys[place]) == key

    def triple(self, head: int, relation: int, tail: int, confidence: float) -> Triple:
        """Return a fact in ids and names."""
        h, r, t = self.entities[head], self.relations[relation], self.entities[tail]
        return Triple(
            h,
            r,
            t,
            confidence,
            head_name=self.names.get(h, h),
            tail_name=self.names.get(t, t),
            relation_label=self.labels.get(r, ""),
        )


def read_source(store: GraphStore) -> SourceGraph:
    """Read all facts of a store.

    Raises:
        NoiseError: entities and relations are too many for one number a fact (above 9.2e18
            possible facts).
    """
    entities = {entity: number for number, entity in enumerate(_kept_ids(store, "entity"))}
    relations = {relation: number for number, relation in enumerate(_kept_ids(store, "relation"))}
    names: dict[str, str] = {}
    labels: dict[str, str] = {}
    rows, confidences = array("q"), array("d")
    for fact in store.facts():
        for entity, name in ((fact.head, fact.head_name), (fact.tail, fact.tail_name)):
            entities.setdefault(entity, len(entities))
            if name != entity:
                names[entity] = name
        relations.setdefault(fact.relation, len(relations))
        if fact.relation_label:
            labels[fact.relation] = fact.relation_label
        rows.extend((entities[fact.head], relations[fact.relation], entities[fact.tail]))
        confidences.append(fact.confidence)
    if len(entities) ** 2 * len(relations) > _LARGEST_KEY:
        raise NoiseError(f"{store.location}: has too many entities and relations to corrupt")
    numbers = np.array(rows, dtype=np.int64).reshape(-1, 3)
    by_id = _by_id(entities), _by_id(relations), _by_id(entities)
    facts = np.stack([by_id[i][numbers[:, i]] for i in range(3)], axis=1)
    keys = (facts[:, 0] * len(relations) + facts[:, 1]) * len(entities) + facts[:, 2]
    order = np.argsort(keys)
    return SourceGraph(
        store=store,
        entities=sorted(entities),
        relations=sorted(relations),
        entity_order=list(entities),
        relation_order=list(relations),
        names=names | _names_without_facts(store, entities, facts),
        labels=labels,
        facts=facts[order],
        confidences=np.array(confidences, dtype=np.float64)[order],
        keys=keys[order],
    )


def _by_id(numbers: dict[str, int]) -> NDArray[np.int64]:
    """Return, for the number of each id by appearance, its number by the ids' order."""
    places = np.empty(len(numbers), dtype=np.int64)
    for place, name in enumerate(sorted(numbers)):
        places[numbers[name]] = place
    return places


def _kept_ids(store: GraphStore, table: str) -> list[str]:
    """Return the ids that a store file keeps, also those that no fact is about."""
    if not isinstance(store, SqliteStore):
        return []
    column = {"entity": "eid", "relation": "rid"}[table]
    connection: Any = connect_reader(store.path)
    try:
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY {column}")  # noqa: S608
        return [name for (name,) in rows]
    finally:
        connection.close()


def _names_without_facts(
    store: GraphStore, entities: dict[str, int], facts: NDArray[np.int64]
) -> dict[str, str]:
    told = set(np.unique(facts[:, (0, 2)]).tolist())
    alone = [entity for place, entity in enumerate(sorted(entities)) if place not in told]
    found = {entity: store.entity(entity).name for entity in alone}
    return {entity: name for entity, name in found.items() if name != entity}
