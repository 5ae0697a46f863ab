"""What backends share: linking, conversion, and the checks on arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graph_store.errors import UnknownEntityError
from graph_store.linking import link_mention
from graph_store.model import Direction, Triple
from graph_store.protocol import Candidate

if TYPE_CHECKING:
    import networkx as nx

    from graph_store.model import Subgraph
    from graph_store.protocol import GraphStore

DIRECTIONS = ("out", "in", "both")


class StoreBase:
    """Mix-in with the parts of `GraphStore` that do not depend on where the facts are."""

    location: str

    def link(self: GraphStore, mention: str, top: int = 10) -> list[Candidate]:
        """Return the entities that a mention may mean, best first; see `linking.link_mention`."""
        return link_mention(self, mention, top)

    def subgraph(
        self: GraphStore, question: str, topic_entities: Sequence[str], **settings: Any
    ) -> Subgraph:
        """Return the evidence around topic entities; settings as of `find_evidence`."""
        from graph_store.evidence_search import find_evidence

        return find_evidence(self, question, topic_entities, **settings)

    def to_networkx(self: GraphStore) -> nx.MultiDiGraph:
        """Return the whole graph as a `networkx.MultiDiGraph`, as `Subgraph.to_networkx`."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        for fact in self.facts():
            graph.add_node(fact.head, name=fact.head_name)
            graph.add_node(fact.tail, name=fact.tail_name)
            graph.add_edge(
                fact.head,
                fact.tail,
                key=fact.relation,
                relation=fact.relation,
                confidence=fact.confidence,
            )
        return graph


def unknown_entity(store: GraphStore, entity: str) -> UnknownEntityError:
    """Return the error for an entity that is not there, with the nearest names."""
    return UnknownEntityError(entity, [c.name for c in store.link(entity, top=5)])


def check_direction(direction: str) -> Direction:
    """Return the direction; raise `ValueError` with the allowed ones."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is '{direction}', not one of {', '.join(DIRECTIONS)}")
    return direction  # type: ignore[return-value]


def check_limit(limit: int | None) -> None:
    """Raise `ValueError` for a negative limit."""
    if limit is not None and limit < 0:
        raise ValueError(f"limit is {limit}, not 0 or more")


def fact_order(entity: str, fact: Triple) -> tuple[float, str, str, str, bool]:
    """Sort key of the facts around an entity; see `GraphStore`."""
    other = fact.other(entity)
    return (-fact.confidence, fact.relation, fact.name_of(other), other, fact.head != entity)
