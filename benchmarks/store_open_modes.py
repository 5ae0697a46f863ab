"""Compare ways to open a store file: immutable, read-only, and read-only with a write-ahead log.

Run: python benchmarks/store_open_modes.py STORE
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

QUERY = (
    "SELECT h, r, t, c FROM fact WHERE h = ?1 UNION ALL SELECT h, r, t, c FROM fact WHERE t = ?1"
)
LOOKUPS = 3000


def main(store: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain, wal = Path(folder, "plain"), Path(folder, "wal")
        shutil.copy(store, plain)
        shutil.copy(store, wal)
        with sqlite3.connect(wal) as db:
            db.execute("PRAGMA journal_mode = WAL")
        modes = {
            "immutable": f"file:{plain}?mode=ro&immutable=1",
            "read-only": f"file:{plain}?mode=ro",
            "read-only, WAL": f"file:{wal}?mode=ro",
        }
        rows: dict[str, list[tuple[float, float]]] = {name: [] for name in modes}
        for _ in range(5):
            for name, uri in modes.items():
                rows[name].append(_measure(uri))
        base = statistics.median(lookup for _, lookup in rows["immutable"])
        print(f"{'mode':16} {'open ms':>8} {'µs a look-up':>13} {'ratio':>6}")
        for name, values in rows.items():
            opened = statistics.median(v[0] for v in values)
            lookup = statistics.median(v[1] for v in values)
            print(f"{name:16} {opened:8.2f} {lookup:13.1f} {lookup / base:6.2f}")


def _measure(uri: str) -> tuple[float, float]:
    started = time.perf_counter()
    db = sqlite3.connect(uri, uri=True, isolation_level=None)
    (entities,) = db.execute("SELECT count(*) FROM entity").fetchone()
    opened = (time.perf_counter() - started) * 1e3
    ids = random.Random(0).choices(range(entities), k=LOOKUPS)
    started = time.perf_counter()
    for entity in ids:
        db.execute(QUERY, (entity,)).fetchall()
    lookup = (time.perf_counter() - started) / LOOKUPS * 1e6
    db.close()
    return opened, lookup


if __name__ == "__main__":
    main(sys.argv[1])
