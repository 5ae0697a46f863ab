"""The layout of a store file, shared by its writer and its readers."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from graph_store.errors import StoreError

APPLICATION_ID = 0x474D4F54  # "GMOT", in the file's header
FORMAT_VERSION = 1

KIND_NAME, KIND_ID, KIND_ALIAS = 0, 1, 2

TABLES = """
CREATE TABLE entity (eid INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT);
CREATE TABLE relation (rid INTEGER PRIMARY KEY, id TEXT NOT NULL, label TEXT);
CREATE TABLE note (nid INTEGER PRIMARY KEY, provenance TEXT, validity TEXT);
CREATE TABLE fact (
    h INTEGER NOT NULL, r INTEGER NOT NULL, t INTEGER NOT NULL, c REAL NOT NULL,
    PRIMARY KEY (h, r, t)
) WITHOUT ROWID;
CREATE TABLE fact_note (
    h INTEGER NOT NULL, r INTEGER NOT NULL, t INTEGER NOT NULL, nid INTEGER NOT NULL,
    PRIMARY KEY (h, r, t)
) WITHOUT ROWID;
CREATE TABLE label (
    lid INTEGER PRIMARY KEY, eid INTEGER NOT NULL, kind INTEGER NOT NULL, text TEXT
);
CREATE TABLE name_key (
    key TEXT NOT NULL, lid INTEGER NOT NULL, PRIMARY KEY (key, lid)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

INDEXES = """
CREATE UNIQUE INDEX entity_id ON entity (id);
CREATE UNIQUE INDEX relation_id ON relation (id);
CREATE INDEX fact_tail ON fact (t, r, h, c);
CREATE INDEX label_entity ON label (eid);
"""

TRIGRAMS = """
CREATE VIRTUAL TABLE name_trigram USING fts5(key, content='', detail='none', tokenize='trigram');
"""


def is_store(path: Path) -> bool:
    """Return whether a file carries this project's mark in its SQLite header."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and header[68:72] == APPLICATION_ID.to_bytes(
        4, "big"
    )


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a store file for reading.

    A store file is never changed in place (ingest writes another and renames it), so it is opened
    immutable: no lock files, no write-ahead log, also from read-only media.

    Raises:
        StoreError: the file cannot be opened or has another format version.
    """
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with contextlib.ExitStack() as on_error:
        try:
            _check_whole(path)
            connection = sqlite3.connect(
                uri, uri=True, check_same_thread=False, cached_statements=256
            )
            on_error.callback(connection.close)
            version = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
            connection.execute("PRAGMA mmap_size = 268435456")
            connection.execute("PRAGMA query_only = 1")
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path}: cannot be read as a store: {error}") from error
        if version is None or version[0] != str(FORMAT_VERSION):
            found = version[0] if version else "none"
            raise StoreError(
                f"{path}: store format {found}, this version reads {FORMAT_VERSION}: "
                "ingest it again"
            )
        on_error.pop_all()
    return connection


def _check_whole(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(32)
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if path.stat().st_size < pages * (65536 if page_size == 1 else page_size):
        raise StoreError(f"{path}: the file is cut short; copy it whole, or ingest it again")
