"""The store of facts with confidences, entity linking, and evidence search."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph_store.errors import (
        IngestError,
        MissingExtraError,
        StoreError,
        UnknownEntityError,
    )
    from graph_store.evidence_search import EvidenceSearcher, find_evidence
    from graph_store.ingestion import IngestReport, ingest
    from graph_store.linking import Mention, find_mentions
    from graph_store.locations import open_store, shared_store
    from graph_store.model import Entity, Path, SearchStats, Subgraph, Triple
    from graph_store.protocol import Candidate, GraphStore, RelationUse, StoreInfo

# Imported on first use: `graphmoot link` must not load what only a debate needs.
_HOMES = {
    "errors": ("IngestError", "MissingExtraError", "StoreError", "UnknownEntityError"),
    "evidence_search": ("EvidenceSearcher", "find_evidence"),
    "ingestion": ("IngestReport", "ingest"),
    "linking": ("Mention", "find_mentions"),
    "locations": ("open_store", "shared_store"),
    "model": ("Entity", "Path", "SearchStats", "Subgraph", "Triple"),
    "protocol": ("Candidate", "GraphStore", "RelationUse", "StoreInfo"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Candidate",
    "Entity",
    "EvidenceSearcher",
    "GraphStore",
    "IngestError",
    "IngestReport",
    "Mention",
    "MissingExtraError",
    "Path",
    "RelationUse",
    "SearchStats",
    "StoreError",
    "StoreInfo",
    "Subgraph",
    "Triple",
    "UnknownEntityError",
    "find_evidence",
    "find_mentions",
    "ingest",
    "open_store",
    "shared_store",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'graph_store' has no attribute '{name}'")
    return getattr(importlib.import_module(f"graph_store.{_HOME_OF[name]}"), name)
