"""Opening a store by its location."""

from __future__ import annotations

import threading
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from graph_store.errors import StoreError
from graph_store.sqlite_schema import is_store

if TYPE_CHECKING:
    from graph_store.memory_store import MemoryStore
    from graph_store.protocol import GraphStore

SAMPLE = "sample"
"""The location of the bundled sample graph."""

_TABLES = {".tsv", ".csv", ".jsonl", ".json", ".tab", ".ndjson"}
_shared: dict[tuple[str, int, int], GraphStore] = {}
_lock = threading.Lock()


def open_store(location: str | Path = SAMPLE) -> GraphStore:
    """Open a store for reading.

    Args:
        location: a store file, a small `.tsv`, `.csv`, `.jsonl` (also `.gz`) or `.graphml` file
            that is read into memory, or `sample` for the bundled graph.

    Raises:
        StoreError: there is nothing at the location, or it cannot be read.
    """
    text = str(location)
    if "://" in text:
        scheme = text.split("://", 1)[0]
        raise StoreError(f"{text}: stores of kind '{scheme}' are not supported by this version")
    if text == SAMPLE and not Path(text).exists():
        return _open_sample()
    path = Path(text).expanduser()
    if path.is_dir():
        raise StoreError(f"{path}: is a folder, not a store")
    if not path.exists():
        raise StoreError(f"{path}: no such store; `graphmoot ingest SOURCE --to {path}` makes one")
    if is_store(path):
        from graph_store.sqlite_store import SqliteStore

        return SqliteStore(path)
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] == ".graphml":
        return _open_graphml(path)
    if any(suffix in _TABLES for suffix in suffixes):
        return _open_table(path)
    raise StoreError(f"{path}: not a store; `graphmoot ingest {path} --to STORE` makes one of it")


def shared_store(location: str | Path = SAMPLE) -> GraphStore:
    """Return a store that is opened once a process and reopened when its file has changed."""
    path = Path(str(location)).expanduser()
    try:
        status = path.stat()
        key = (str(path.resolve()), status.st_ino, status.st_mtime_ns)
    except OSError:
        key = (str(location), 0, 0)
    with _lock:
        if key not in _shared:
            # Whoever still reads the replaced file goes on; nobody is handed it again.
            for old in [known for known in _shared if known[0] == key[0]]:
                del _shared[old]
            _shared[key] = open_store(location)
        return _shared[key]


def _open_sample() -> MemoryStore:
    folder = resources.files("graph_store") / "sample"
    with (
        resources.as_file(folder / "facts.tsv") as facts,
        resources.as_file(folder / "aliases.tsv") as aliases,
    ):
        return _open_table(facts, aliases, SAMPLE)


def _open_table(path: Path, aliases: Path | None = None, location: str = "") -> MemoryStore:
    from graph_store.memory_store import MemoryStore
    from graph_store.readers.pairs import read_pairs
    from graph_store.readers.triples import read_triples

    named: dict[str, list[str]] = {}
    if aliases is not None:
        for _, entity, alias in read_pairs(aliases):
            named.setdefault(entity, []).append(alias)
    return MemoryStore.from_triples(
        read_triples(path), aliases=named, location=location or str(path)
    )


def _open_graphml(path: Path) -> MemoryStore:
    import xml.etree.ElementTree as ET

    import networkx as nx

    from graph_store.memory_store import MemoryStore
    from graph_store.readers.triples import triples_of_networkx

    try:
        graph = nx.read_graphml(path, force_multigraph=True)
    except (ET.ParseError, nx.NetworkXError, KeyError, ValueError) as error:
        raise StoreError(f"{path}: not readable as GraphML: {error}") from error
    return MemoryStore.from_triples(triples_of_networkx(graph, str(path)), location=str(path))
