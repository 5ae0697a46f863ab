"""The default backend: one immutable SQLite file, read by any number of threads."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graph_store.base import StoreBase, check_direction, check_limit, unknown_entity
from graph_store.errors import StoreError
from graph_store.linking import FEW_TRIGRAM_HITS
from graph_store.model import Direction, Entity, Triple
from graph_store.protocol import NameHit, RelationUse, StoreInfo
from graph_store.sqlite_schema import KIND_ALIAS, KIND_ID, connect_reader

_NAME = "COALESCE({0}.name, {0}.id)"
_ROW = f"""
SELECT f.h, r.id, f.t, f.c, e.id, {_NAME.format("e")}, r.label, f.h <> ?1, f.r
FROM fact f {{index}} JOIN entity e ON e.eid = f.{{other}} JOIN relation r ON r.rid = f.r
WHERE f.{{here}} = ?1 {{condition}}
"""
_ORDER = " ORDER BY 4 DESC, 2, 6, 5, 8"

_LABEL = f"COALESCE(l.text, CASE l.kind WHEN {KIND_ID} THEN e.id ELSE {_NAME.format('e')} END)"
_FOUND = f"""
SELECT k.key, e.id, {_NAME.format("e")}, {_LABEL}, l.kind
FROM name_key k JOIN label l ON l.lid = k.lid JOIN entity e ON e.eid = l.eid
WHERE k.key IN ({{marks}}) ORDER BY k.key, k.lid
"""
_TRIGRAM = f"""
SELECT e.id, {_NAME.format("e")}, {_LABEL}, l.kind
FROM (SELECT rowid AS lid, rank FROM name_trigram WHERE name_trigram MATCH ? ORDER BY rank, rowid
      LIMIT ?) m
JOIN label l ON l.lid = m.lid JOIN entity e ON e.eid = l.eid ORDER BY m.rank, m.lid
"""
_PREFIX = f"""
SELECT e.id, {_NAME.format("e")}, {_LABEL}, l.kind
FROM name_key k JOIN label l ON l.lid = k.lid JOIN entity e ON e.eid = l.eid
WHERE k.key >= ? AND k.key < ? ORDER BY k.key, k.lid LIMIT ?
"""
_MAX_VARIABLES = 500
_MAX_TRIGRAMS = 24


class SqliteStore(StoreBase):
    """A store file made by `graphmoot ingest`; see `GraphStore` for the methods.

    Each thread has a connection of its own; an open store goes on reading the file that it opened
    when a later ingest replaces it.

    Raises:
        StoreError: the file is not a store.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.location = str(path)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened = _identity(path)
        self._first = connect_reader(path)
        self._closed = False
        self._all: list[tuple[threading.Thread, sqlite3.Connection]] = []

    def entity(self, entity: str) -> Entity:
        """See `GraphStore.entity`."""
        eid, name = self._entity_row(entity)
        aliases = self._connection().execute(
            "SELECT text FROM label WHERE eid = ? AND kind = ? ORDER BY lid", (eid, KIND_ALIAS)
        )
        return Entity(entity, name, tuple(text for (text,) in aliases))

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
        eid, name = self._entity_row(entity)
        arguments: list[object] = [eid]
        condition = ""
        if relation is not None:
            arguments.append(self._relation_row(relation))
            condition = "AND f.r = ?2"
        outgoing = _ROW.format(index="", other="t", here="h", condition=condition)
        incoming = _ROW.format(
            index="INDEXED BY fact_tail", other="h", here="t", condition=condition
        )
        both = f"{outgoing} UNION ALL {incoming} AND f.h <> ?1"
        sql = {"out": outgoing, "in": incoming, "both": both}[direction] + _ORDER
        if limit is not None:
            sql += f" LIMIT {int(limit)}"
        rows = self._connection().execute(sql, arguments).fetchall()
        return [self._triple(row, eid, entity, name) for row in rows]

    def relations(self, entity: str, direction: Direction = "both") -> list[RelationUse]:
        """See `GraphStore.relations`."""
        check_direction(direction)
        eid, _ = self._entity_row(entity)
        uses = []
        for here, way in (("h", "out"), ("t", "in")):
            if direction not in (way, "both"):
                continue
            rows = self._connection().execute(
                f"SELECT r.id, r.label, count(*) FROM fact f JOIN relation r ON r.rid = f.r "
                f"WHERE f.{here} = ? GROUP BY f.r",
                (eid,),
            )
            uses += [RelationUse(rid, label or "", way, n) for rid, label, n in rows]  # type: ignore[arg-type]
        return sorted(uses, key=lambda use: (use.relation, use.direction))

    def tails(self, head: str, relation: str) -> list[Triple]:
        """See `GraphStore.tails`."""
        return self.neighbors(head, relation=relation, direction="out")

    def heads(self, relation: str, tail: str) -> list[Triple]:
        """See `GraphStore.heads`."""
        return self.neighbors(tail, relation=relation, direction="in")

    def by_name_keys(self, keys: Sequence[str]) -> dict[str, list[NameHit]]:
        """See `GraphStore.by_name_keys`."""
        found: dict[str, list[NameHit]] = {}
        keys = [key for key in dict.fromkeys(keys) if _storable(key)]
        for start in range(0, len(keys), _MAX_VARIABLES):
            some = keys[start : start + _MAX_VARIABLES]
            sql = _FOUND.format(marks=",".join("?" * len(some)))
            for key, *hit in self._connection().execute(sql, some):
                found.setdefault(key, []).append(_hit(hit))
        return found

    def by_trigram(self, key: str, limit: int) -> list[NameHit]:
        """See `GraphStore.by_trigram`."""
        if not _storable(key) or "\x00" in key:
            return []
        trigrams = list(dict.fromkeys(key[i : i + 3] for i in range(len(key) - 2)))
        rows: list[tuple[str, str, str, int]] = []
        if trigrams:
            step = max(1, len(trigrams) // _MAX_TRIGRAMS)
            quoted = ('"{}"'.format(t.replace('"', '""')) for t in trigrams[::step])
            rows = self._connection().execute(_TRIGRAM, (" OR ".join(quoted), limit)).fetchall()
        if len(rows) < FEW_TRIGRAM_HITS:
            first = key[:2]
            rows += self._connection().execute(_PREFIX, (first, f"{first}\U0010ffff", limit))
        return list(dict.fromkeys(_hit(row) for row in rows))[:limit]

    def degree(self, entity: str, at_most: int) -> int:
        """See `GraphStore.degree`."""
        eid, _ = self._entity_row(entity)
        (count,) = (
            self._connection()
            .execute(
                "SELECT count(*) FROM (SELECT 1 FROM fact WHERE h = ?1 UNION ALL "
                "SELECT 1 FROM fact WHERE t = ?1 AND h <> ?1 LIMIT ?2)",
                (eid, at_most),
            )
            .fetchone()
        )
        return int(count)

    def facts(self) -> Iterator[Triple]:
        """See `GraphStore.facts`."""
        rows = self._connection().execute(
            f"SELECT a.id, r.id, b.id, f.c, {_NAME.format('a')}, {_NAME.format('b')}, r.label, "
            "n.provenance, n.validity FROM fact f JOIN entity a ON a.eid = f.h "
            "JOIN entity b ON b.eid = f.t JOIN relation r ON r.rid = f.r "
            "LEFT JOIN fact_note x ON x.h = f.h AND x.r = f.r AND x.t = f.t "
            "LEFT JOIN note n ON n.nid = x.nid ORDER BY f.h, f.r, f.t"
        )
        for head, relation, tail, c, head_name, tail_name, label, provenance, validity in rows:
            yield Triple(
                head, relation, tail, c, head_name, tail_name, label or "", provenance, validity
            )

    def info(self) -> StoreInfo:
        """See `GraphStore.info`."""
        rows = dict(self._connection().execute("SELECT key, value FROM meta").fetchall())
        values = json.loads(rows["info"])
        return StoreInfo(**values)

    def close(self) -> None:
        """See `GraphStore.close`."""
        with self._lock:
            self._closed = True
            self._first.close()
            for _, connection in self._all:
                connection.close()
            self._all.clear()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if self._closed:
            raise StoreError(f"{self.location}: the store was closed")
        if connection is None:
            with self._lock:
                if self._closed:
                    raise StoreError(f"{self.location}: the store was closed")
                connection = self._open_for_thread()
            self._local.connection = connection
        return connection

    def _open_for_thread(self) -> sqlite3.Connection:
        # When an ingest has replaced the file since, a new connection would read another graph
        # than the other threads do: then the first connection is shared (SQLite serialises it).
        if _identity(self.path) != self._opened:
            return self._first
        connection = connect_reader(self.path)
        if _identity(self.path) != self._opened:
            connection.close()
            return self._first
        self._close_those_of_ended_threads()
        self._all.append((threading.current_thread(), connection))
        return connection

    def _close_those_of_ended_threads(self) -> None:
        # A server may start a thread for every request.
        for thread, connection in self._all:
            if not thread.is_alive():
                connection.close()
        self._all = [item for item in self._all if item[0].is_alive()]

    def _entity_row(self, entity: str) -> tuple[int, str]:
        row = self._row("SELECT eid, COALESCE(name, id) FROM entity WHERE id = ?", entity)
        if row is None:
            raise unknown_entity(self, entity)
        return int(row[0]), str(row[1])

    def _relation_row(self, relation: str) -> int:
        row = self._row("SELECT rid FROM relation WHERE id = ?", relation)
        # An unknown relation has no facts: -1 matches none.
        return -1 if row is None else int(row[0])

    def _row(self, sql: str, name: str) -> tuple[Any, ...] | None:
        if not _storable(name):
            return None
        row: tuple[Any, ...] | None = self._connection().execute(sql, (name,)).fetchone()
        return row

    def _triple(self, row: tuple[Any, ...], eid: int, entity: str, name: str) -> Triple:
        h, relation, t, c, other, other_name, label, _, r = row
        note = self._note(h, r, t)
        here, there = (entity, name), (other, other_name)
        head, tail = (here, there) if h == eid else (there, here)
        return Triple(head[0], relation, tail[0], c, head[1], tail[1], label or "", *note)

    def _note(self, h: object, r: object, t: object) -> tuple[str | None, str | None]:
        if self._has_notes():
            row = (
                self._connection()
                .execute(
                    "SELECT provenance, validity FROM fact_note JOIN note USING (nid) "
                    "WHERE h = ? AND r = ? AND t = ?",
                    (h, r, t),
                )
                .fetchone()
            )
            if row is not None:
                return (row[0], row[1])
        return (None, None)

    def _has_notes(self) -> bool:
        known: bool | None = getattr(self._local, "has_notes", None)
        if known is None:
            found = self._connection().execute("SELECT 1 FROM fact_note LIMIT 1").fetchone()
            known = self._local.has_notes = found is not None
        return known


def _hit(row: Sequence[Any]) -> NameHit:
    entity, name, label, kind = row
    return NameHit(entity, name, label, kind == KIND_ALIAS)


def _storable(text: str) -> bool:
    """Return whether SQLite can hold a text; a command line may bring half characters."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)
