"""Writing a store file: staged, merged, indexed beside the target, then renamed over it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from graph_store.errors import StoreError
from graph_store.linking import name_key, name_keys
from graph_store.protocol import StoreInfo
from graph_store.sqlite_schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    INDEXES,
    KIND_ALIAS,
    KIND_ID,
    KIND_NAME,
    TABLES,
    TRIGRAMS,
    is_store,
)

TEMPORARY_SUFFIX = ".ingest-tmp"
_BATCH = 20_000
_Row = tuple[int, int, int, float, int | None]


class SqliteWriter:
    """Collects facts and makes a store file of them, or leaves everything as it was.

    Ids are given by first appearance, so equal input gives an equal file. Of equal
    (head, relation, tail) the highest confidence wins.

    Raises:
        StoreError: the target is another program's file, its folder is missing, another ingest is
            writing it, or the disk is full.
    """

    def __init__(self, target: Path) -> None:
        _check_target(target)
        # A link to a store stays a link: the store that it names is replaced.
        self.target = target.resolve() if target.is_symlink() else target
        self._temporary = self.target.with_name(self.target.name + TEMPORARY_SUFFIX)
        self._entities: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._notes: dict[tuple[str | None, str | None], int] = {}
        self._names: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self._aliases: dict[int, dict[str, None]] = {}
        self._rows: list[_Row] = []
        self._by_name: dict[str, list[str]] | None = None
        with self._clear_errors():
            self._lock = _locked_file(self._temporary, self.target)
        try:
            self._db = self._open()
        except BaseException:
            self._drop_temporary()
            raise

    def add(
        self,
        head: str,
        relation: str,
        tail: str,
        confidence: float,
        provenance: str | None = None,
        validity: str | None = None,
    ) -> None:
        """Take one fact. `confidence` may be NaN only before `scale_minmax`."""
        entities, relations = self._entities, self._relations
        h = entities.setdefault(head, len(entities))
        t = entities.setdefault(tail, len(entities))
        r = relations.setdefault(relation, len(relations))
        note = None
        if provenance or validity:
            note = self._notes.setdefault((provenance, validity), len(self._notes))
        self._rows.append((h, r, t, confidence, note))
        if len(self._rows) >= _BATCH:
            self._flush()

    def name(self, entity: str, name: str) -> bool:
        """Give an entity its display name, the first one stays; False if it is unknown."""
        eid = self._entities.get(entity)
        if eid is not None and name != entity:
            self._names.setdefault(eid, name)
            self._by_name = None
        return eid is not None

    def alias(self, entity: str, alias: str) -> bool:
        """Give an entity another name; False if it is unknown."""
        eid = self._entities.get(entity)
        if eid is not None:
            self._aliases.setdefault(eid, {})[alias] = None
        return eid is not None

    def label(self, relation: str, words: str) -> bool:
        """Give a relation its words; False if it is unknown."""
        rid = self._relations.get(relation)
        if rid is not None:
            self._labels.setdefault(rid, words)
        return rid is not None

    def entities_called(self, name: str) -> list[str]:
        """Return the entities whose id or display name is `name`."""
        if name in self._entities:
            return [name]
        if self._by_name is None:
            self._by_name = {}
            ids = list(self._entities)
            for eid, shown in self._names.items():
                self._by_name.setdefault(shown, []).append(ids[eid])
        return self._by_name.get(name, [])

    def scale_minmax(self, default: float | None) -> None:
        """Scale the weights so that the highest is 1 and the lowest 0.01; see the ingest docs."""
        self._flush()
        with self._clear_errors():
            self._db.execute(
                "UPDATE raw SET c = CASE WHEN c IS NULL THEN ?1 WHEN high = low THEN 1.0 "
                # Halved, so that the widest span of weights stays finite.
                "ELSE min(1.0, 0.01 + 0.99 * ((c / 2 - low / 2) / (high / 2 - low / 2))) END "
                "FROM (SELECT min(c) AS low, max(c) AS high FROM raw)",
                (default,),
            )

    def finish(self, on_step: Callable[[str], None] = lambda _: None) -> StoreInfo:
        """Merge, index, verify, and rename over the target; returns the store's counts."""
        with self._clear_errors():
            self._flush()
            on_step("merging facts")
            self._merge()
            on_step("indexing names")
            self._write_names()
            on_step("indexing facts")
            self._db.executescript(INDEXES)
            info = self._write_meta()
            self._db.commit()
            self._db.close()
            on_step("saving")
            self._rename()
            self._unlock()
        return info

    def abort(self) -> None:
        """Drop what was written; the target is as it was."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        self._drop_temporary()

    def _drop_temporary(self) -> None:
        if _is_at(self._lock, self._temporary):
            self._temporary.unlink(missing_ok=True)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _open(self) -> sqlite3.Connection:
        with self._clear_errors():
            db = sqlite3.connect(self._temporary, isolation_level=None)
            for pragma in (
                "page_size = 4096",
                f"application_id = {APPLICATION_ID}",
                "journal_mode = OFF",
                "synchronous = OFF",
                "locking_mode = EXCLUSIVE",
                "temp_store = FILE",
                "cache_size = -65536",
            ):
                db.execute(f"PRAGMA {pragma}")
            db.execute("BEGIN EXCLUSIVE")
            for statement in TABLES.split(";"):
                db.execute(statement)
            db.execute("CREATE TEMP TABLE raw (h INTEGER, r INTEGER, t INTEGER, c REAL, n INTEGER)")
            return db

    def _flush(self) -> None:
        with self._clear_errors():
            self._db.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?)", self._rows)
        self._rows.clear()

    def _merge(self) -> None:
        self._db.executescript(
            """
            INSERT INTO fact SELECT h, r, t, max(c) FROM raw GROUP BY h, r, t ORDER BY h, r, t;
            """
        )
        if self._notes:  # of the row that won: the first with the highest confidence
            self._db.execute(
                "INSERT INTO fact_note SELECT h, r, t, n FROM (SELECT h, r, t, n, row_number() "
                "OVER (PARTITION BY h, r, t ORDER BY c DESC, rowid) AS place FROM raw) "
                "WHERE place = 1 AND n IS NOT NULL ORDER BY h, r, t"
            )
        self._db.execute("DROP TABLE raw")

    def _write_names(self) -> None:
        names, execute = self._names, self._db.executemany
        execute(
            "INSERT INTO entity VALUES (?, ?, ?)",
            ((eid, entity, names.get(eid)) for entity, eid in self._entities.items()),
        )
        execute(
            "INSERT INTO relation VALUES (?, ?, ?)",
            ((rid, name, self._labels.get(rid)) for name, rid in self._relations.items()),
        )
        execute(
            "INSERT INTO note VALUES (?, ?, ?)",
            ((nid, *note) for note, nid in self._notes.items()),
        )
        execute("INSERT INTO label VALUES (?, ?, ?, ?)", self._label_rows())
        self._db.execute("CREATE TEMP TABLE key (key TEXT, lid INTEGER)")
        execute(
            "INSERT INTO key VALUES (?, ?)",
            ((key, lid) for lid, text in self._label_texts() for key in name_keys(text)),
        )
        self._db.execute("INSERT INTO name_key SELECT key, lid FROM key ORDER BY key, lid")
        self._db.execute("DROP TABLE key")
        self._db.execute(TRIGRAMS)
        execute(
            "INSERT INTO name_trigram (rowid, key) VALUES (?, ?)",
            ((lid, name_key(text)) for lid, text in self._label_texts()),
        )
        self._db.execute("INSERT INTO name_trigram (name_trigram) VALUES ('optimize')")

    def _labels_of_entities(self) -> Iterator[tuple[int, int, str]]:
        for entity, eid in self._entities.items():
            name = self._names.get(eid)
            yield (eid, KIND_NAME, name or entity)
            if name is not None:
                yield (eid, KIND_ID, entity)
            for alias in self._aliases.get(eid, ()):
                yield (eid, KIND_ALIAS, alias)

    def _label_rows(self) -> Iterator[tuple[int, int, int, str | None]]:
        for lid, (eid, kind, text) in enumerate(self._labels_of_entities()):
            yield (lid, eid, kind, text if kind == KIND_ALIAS else None)

    def _label_texts(self) -> Iterator[tuple[int, str]]:
        for lid, (_, _, text) in enumerate(self._labels_of_entities()):
            yield (lid, text)

    def _write_meta(self) -> StoreInfo:
        row = self._db.execute(
            "SELECT count(*), min(c), avg(c), max(c), coalesce(sum(h = t), 0) FROM fact"
        ).fetchone()
        info = StoreInfo(
            facts=row[0],
            entities=len(self._entities),
            relations=len(self._relations),
            confidence={"min": row[1], "mean": row[2], "max": row[3]},
            self_loops=row[4],
            aliases=sum(len(aliases) for aliases in self._aliases.values()),
        )
        values = {**info.to_dict(), "extra": {}}
        self._db.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT_VERSION),))
        self._db.execute("INSERT INTO meta VALUES ('info', ?)", (json.dumps(values),))
        return info

    def _rename(self) -> None:
        with self._temporary.open("rb+") as file:
            os.fsync(file.fileno())
        self._temporary.replace(self.target)
        folder = os.open(self.target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            reason = "the disk is full" if "full" in str(error) else str(error)
            raise StoreError(
                f"{self.target}: cannot be written: {reason}; the store is as it was"
            ) from error


def _locked_file(path: Path, target: Path) -> int:
    """Return a descriptor of an empty file at `path`, locked until it is closed.

    What a killed ingest left there is emptied; a living one holds the lock.
    """
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(lock, path):
                os.ftruncate(lock, 0)
                return lock
        except BlockingIOError:
            os.close(lock)
            raise StoreError(f"{target}: another ingest is writing this store") from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # the other one was just done and took the file away


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _check_target(target: Path) -> None:
    if target.is_dir():
        raise StoreError(f"{target}: is a folder; name a file for the store")
    if target.exists() and not is_store(target):
        raise StoreError(f"{target}: exists and is not a store of ours; choose another name")
    if not target.parent.is_dir():
        raise StoreError(f"{target.parent}: no such folder; make it first")
