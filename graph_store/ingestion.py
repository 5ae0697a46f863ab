"""From sources to a store: read, check every row, count what happened, write atomically."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from graph_store.errors import IngestError, RowError, StoreError
from graph_store.readers.pairs import read_pairs
from graph_store.readers.rows import (
    RawFact,
    clean_name,
    confidence_reader,
    optional_text,
    parse_scale,
)
from graph_store.readers.sources import read_source
from graph_store.sqlite_writer import SqliteWriter

ERRORS_SHOWN = 10
ERRORS_READ = 10_000
"""With `on_error="fail"`, reading stops after this many faulty rows."""

Progress = Callable[[str, int, int], None]
"""Told (step, done, total) now and then; bytes while reading, total 0 when unknown."""


@dataclass
class IngestReport:
    """The account of an ingest.

    Attributes:
        store: the store file.
        rows: rows read, headers and blank lines not counted.
        loaded: facts in the store.
        merged: rows whose (head, relation, tail) was already there; the highest confidence won.
        self_loops: facts whose head is their tail: loaded, never expanded.
        skipped: rows not taken, by reason.
        row_errors: the first faults, each `file:line: message`.
        unmatched: lines of the names, aliases and relations files about nothing in the graph.
    """

    store: str
    rows: int = 0
    loaded: int = 0
    merged: int = 0
    self_loops: int = 0
    entities: int = 0
    relations: int = 0
    aliases: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    row_errors: list[str] = field(default_factory=list)
    unmatched: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the public JSON form of `graphmoot ingest --json`."""
        return asdict(self)


def ingest(
    sources: Sequence[str | Path] | str | Path,
    to: str | Path,
    *,
    source_format: str = "auto",
    confidence_scale: str = "none",
    default_confidence: float | None = None,
    on_error: Literal["fail", "skip"] = "fail",
    names: str | Path | None = None,
    aliases: str | Path | None = None,
    relations: str | Path | None = None,
    progress: Progress | None = None,
) -> IngestReport:
    """Read sources and make the store `to` of them; an existing store is replaced as a whole.

    Until the last moment everything is in one temporary file beside the target, so that a fault,
    an interrupt or a full disk leaves the old store as it was.

    Args:
        sources: files of quads (or one), plain or gzip.
        to: the store file.
        source_format: `auto`, `tsv`, `csv`, `jsonl`.
        confidence_scale: `none` (confidences in (0, 1]), `divide:X`, `minmax` (lowest weight 0.01,
            highest 1), `logistic` (1 / (1 + e^-weight)).
        default_confidence: for rows without a confidence, in (0, 1].
        on_error: `fail` writes nothing when a row is at fault; `skip` leaves those rows out.
        names: table of entity id and display name.
        aliases: table of entity (id, or its name when only one entity has it) and alias.
        relations: table of relation id and words.
        progress: told how far it is.

    Raises:
        IngestError: a row is at fault and `on_error` is `fail`.
        StoreError: a file cannot be read or written.
        ValueError: an option is out of range.
    """
    started = time.perf_counter()
    if default_confidence is not None and not 0 < default_confidence <= 1:
        raise ValueError(f"default confidence {default_confidence:g} is not in (0, 1]")
    if on_error not in ("fail", "skip"):
        raise ValueError(f"on_error is '{on_error}', not fail or skip")
    scale = parse_scale(confidence_scale)
    paths = [Path(p) for p in ([sources] if isinstance(sources, str | Path) else sources)]
    if not paths:
        raise StoreError("no source is given")
    tables = {"names": names, "aliases": aliases, "relations": relations}
    for path in (*paths, *(Path(table) for table in tables.values() if table is not None)):
        if not path.exists():
            raise StoreError(f"{path}: no such file")
    tell = progress or (lambda _step, _done, _total: None)
    report = IngestReport(store=str(to))
    writer = SqliteWriter(Path(to))
    try:
        _read_facts(writer, paths, source_format, scale, default_confidence, on_error, report, tell)
        if scale == "minmax":
            writer.scale_minmax(default_confidence)
        _read_tables(writer, tables, report)
        info = writer.finish(lambda step: tell(step, 0, 0))
    except BaseException:
        writer.abort()
        raise
    accepted = report.rows - sum(report.skipped.values())
    report.loaded, report.merged = info.facts, accepted - info.facts
    report.self_loops, report.aliases = info.self_loops, info.aliases
    report.entities, report.relations = info.entities, info.relations
    report.bytes = Path(to).stat().st_size
    report.seconds = round(time.perf_counter() - started, 3)
    return report


def _read_facts(
    writer: SqliteWriter,
    paths: Sequence[Path],
    source_format: str,
    scale: Any,
    default: float | None,
    on_error: str,
    report: IngestReport,
    tell: Progress,
) -> None:
    confidence = confidence_reader(scale, default)
    skipped: Counter[str] = Counter()
    for path, item in _items(paths, source_format, tell):
        report.rows += 1
        try:
            if isinstance(item, RawFact):
                _take(writer, item, confidence)
                continue
            line, fault = item
            raise fault
        except RowError as error:
            line = item.line if isinstance(item, RawFact) else item[0]
            skipped[error.kind] += 1
            if len(report.row_errors) < ERRORS_SHOWN:
                report.row_errors.append(f"{path}:{line}: {error}")
            if on_error == "fail" and skipped.total() >= ERRORS_READ:
                break
    report.skipped = dict(skipped.most_common())
    if skipped and on_error == "fail":
        count = skipped.total()
        rows = "1 row" if count == 1 else f"{count:,}{'+' if count >= ERRORS_READ else ''} rows"
        raise IngestError(
            f"{rows} cannot be taken; nothing was written (mend the source, or --on-error skip)",
            report.row_errors,
            count,
        )
    if report.rows == skipped.total():
        raise IngestError(f"no facts in {', '.join(map(str, paths))}", report.row_errors, 0)


def _items(
    paths: Sequence[Path], source_format: str, tell: Progress
) -> Iterator[tuple[Path, RawFact | tuple[int, RowError]]]:
    total = sum(path.stat().st_size for path in paths)
    before = 0
    for path in paths:
        size, base = path.stat().st_size, before

        def on_bytes(done: int, base: int = base) -> None:
            tell("reading", base + done, total)

        for item in read_source(path, source_format, on_bytes):
            yield path, item
        before += size


def _take(writer: SqliteWriter, raw: RawFact, confidence: Callable[[Any], float]) -> None:
    head = clean_name(raw.head, "head")
    relation = clean_name(raw.relation, "relation")
    tail = clean_name(raw.tail, "tail")
    value = confidence(raw.confidence)
    provenance = optional_text(raw.provenance, "provenance")
    validity = optional_text(raw.validity, "validity")
    head_name = optional_text(raw.head_name, "head's name")
    tail_name = optional_text(raw.tail_name, "tail's name")
    writer.add(head, relation, tail, value, provenance, validity)
    if head_name:
        writer.name(head, head_name)
    if tail_name:
        writer.name(tail, tail_name)


def _read_tables(
    writer: SqliteWriter, tables: dict[str, str | Path | None], report: IngestReport
) -> None:
    for kind, table in tables.items():
        if table is None:
            continue
        unmatched = 0
        for line, first, second in read_pairs(Path(table)):
            if kind == "names":
                known = writer.name(first, second)
            elif kind == "relations":
                known = writer.label(first, second)
            else:
                meant = writer.entities_called(first)
                if len(meant) > 1:
                    raise StoreError(
                        f"{table}:{line}: {len(meant)} entities are named '{first}'; use the id"
                    )
                known = bool(meant) and writer.alias(meant[0], second)
            unmatched += not known
        if unmatched:
            report.unmatched[kind] = unmatched
