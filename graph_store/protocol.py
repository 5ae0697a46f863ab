"""What every backend offers: the one page that a new backend has to implement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graph_store.model import Direction, Entity, Triple

if TYPE_CHECKING:
    import networkx as nx

    from graph_store.model import Subgraph


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a mention may mean.

    Attributes:
        entity: entity id.
        name: display name.
        score: 0 to 1; 1 is the very name or id.
        how: `exact`, `case-folded`, `normalised`, `alias`, `trigram`.
    """

    entity: str
    name: str
    score: float
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RelationUse:
    """A relation around an entity: its id, its words, its direction there, how many facts."""

    relation: str
    label: str
    direction: Direction
    count: int


@dataclass(frozen=True)
class StoreInfo:
    """Counts of a store; `confidence` has `min`, `mean`, `max` over its facts."""

    facts: int
    entities: int
    relations: int
    confidence: dict[str, float | None]
    self_loops: int
    aliases: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form."""
        values = asdict(self)
        return {**{k: v for k, v in values.items() if k != "extra"}, **values["extra"]}


@runtime_checkable
class GraphStore(Protocol):
    """A graph of facts with confidences. Safe to read from several threads at once.

    Orders are total and do not depend on insertion: facts come by (−confidence, relation id,
    name of the other end, its id, direction), relations by (id, direction).
    """

    location: str

    def entity(self, entity: str) -> Entity:
        """Return an entity by id; raise `UnknownEntityError` with suggestions."""
        ...

    def neighbors(
        self,
        entity: str,
        *,
        relation: str | None = None,
        direction: Direction = "both",
        limit: int | None = None,
    ) -> list[Triple]:
        """Return the facts that touch an entity, in stored orientation.

        A self-loop is one fact and is given once. Raises `UnknownEntityError`.
        """
        ...

    def relations(self, entity: str, direction: Direction = "both") -> list[RelationUse]:
        """Return the relations around an entity with their counts."""
        ...

    def tails(self, head: str, relation: str) -> list[Triple]:
        """Return the facts (head, relation, ?)."""
        ...

    def heads(self, relation: str, tail: str) -> list[Triple]:
        """Return the facts (?, relation, tail)."""
        ...

    def by_name_keys(self, keys: Sequence[str]) -> dict[str, list[NameHit]]:
        """Return, for each normalised key that some name or alias has, who has it."""
        ...

    def by_trigram(self, key: str, limit: int) -> list[NameHit]:
        """Return names and aliases that share letter trigrams with a key, likeliest first.

        When there are few, names whose key begins with the same two letters follow.
        """
        ...

    def degree(self, entity: str, at_most: int) -> int:
        """Return the number of facts that touch an entity, counted no further than `at_most`."""
        ...

    def facts(self) -> Iterator[Triple]:
        """Iterate over all facts."""
        ...

    def info(self) -> StoreInfo:
        """Return the store's counts."""
        ...

    def link(self, mention: str, top: int = 10) -> list[Candidate]:
        """Return the entities that a mention may mean, best first."""
        ...

    def subgraph(self, question: str, topic_entities: Sequence[str], **settings: Any) -> Subgraph:
        """Return the evidence around topic entities; settings as of `find_evidence`."""
        ...

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the whole graph as a `networkx.MultiDiGraph`, as `Subgraph.to_networkx`."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


@dataclass(frozen=True, slots=True)
class NameHit:
    """One name, id or alias of an entity that a key matched.

    Attributes:
        entity: entity id.
        name: the entity's display name.
        label: the text that matched.
        is_alias: whether that text is an alias.
    """

    entity: str
    name: str
    label: str
    is_alias: bool
