"""Whole sources as `Triple`s in memory; the first fault ends the reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from graph_store.errors import RowError, StoreError
from graph_store.model import Triple
from graph_store.readers.rows import RawFact, clean_name, confidence_reader, optional_text
from graph_store.readers.sources import read_source

if TYPE_CHECKING:
    import networkx as nx


def read_triples(path: Path, source_format: str = "auto") -> Iterator[Triple]:
    """Yield a file's facts.

    Raises:
        StoreError: naming file, line and fault.
    """
    confidence = confidence_reader("none", None)
    for item in read_source(path, source_format):
        line = item.line if isinstance(item, RawFact) else item[0]
        try:
            if not isinstance(item, RawFact):
                raise item[1]
            yield Triple(
                clean_name(item.head, "head"),
                clean_name(item.relation, "relation"),
                clean_name(item.tail, "tail"),
                confidence(item.confidence),
                optional_text(item.head_name) or "",
                optional_text(item.tail_name) or "",
                provenance=optional_text(item.provenance),
                validity=optional_text(item.validity),
            )
        except RowError as error:
            raise StoreError(
                f"{path}:{line}: {error} (`graphmoot ingest` has options for such rows)"
            ) from error


def triples_of_networkx(graph: nx.MultiDiGraph, place: str) -> Iterator[Triple]:
    """Yield the facts of a multigraph: edges with `relation` (or key) and `confidence`.

    Raises:
        StoreError: an edge has no usable relation or confidence.
    """
    confidence = confidence_reader("none", None)
    names = dict(graph.nodes(data="name"))
    for head, tail, key, data in graph.edges(keys=True, data=True):
        try:
            yield Triple(
                clean_name(head, "head"),
                clean_name(data.get("relation", key), "relation"),
                clean_name(tail, "tail"),
                confidence(data.get("confidence")),
                str(names.get(head) or ""),
                str(names.get(tail) or ""),
                provenance=optional_text(data.get("provenance")),
            )
        except RowError as error:
            raise StoreError(f"{place}: edge {head} → {tail}: {error}") from error
