"""Tab- and comma-separated quads: head, relation, tail[, confidence[, provenance]].

With a header (recognised by its names) columns may stand in any order; without one the order is
the one above. In tab-separated files quotes are ordinary characters, except a pair around a field.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator

from graph_store.errors import RowError
from graph_store.readers.columns import column_roles, is_header
from graph_store.readers.rows import RawFact

_POSITIONS = {"head": 0, "relation": 1, "tail": 2, "confidence": 3, "provenance": 4}

Row = tuple[int, list[str]]


def read_tsv(lines: Iterable[str]) -> Iterator[RawFact | tuple[int, RowError]]:
    """Yield the facts of tab-separated lines, or a line number with what is wrong there."""
    return _facts((number, line.rstrip("\r\n").split("\t")) for number, line in enumerate(lines, 1))


def read_csv(lines: Iterable[str]) -> Iterator[RawFact | tuple[int, RowError]]:
    """Yield the facts of comma-separated lines (RFC 4180), or a line number with the fault."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    return _facts(_csv_rows(lines))


def _csv_rows(lines: Iterable[str]) -> Iterator[Row | tuple[int, RowError]]:
    reader = csv.reader(lines, strict=True)
    started = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield (started, RowError("malformed CSV", f"malformed CSV: {error}"))
        else:
            yield (started, row)
        started = reader.line_num + 1


def _facts(rows: Iterable[Row | tuple[int, RowError]]) -> Iterator[RawFact | tuple[int, RowError]]:
    roles: dict[str, int] | None = None
    for line, row in rows:
        if isinstance(row, RowError):
            yield (line, row)
            continue
        if not any(cell.strip() for cell in row):
            continue
        if roles is None:
            if is_header(row):
                roles = column_roles(row)
                continue
            roles = _POSITIONS
        yield _fact(line, row, roles)


def _fact(line: int, row: list[str], roles: dict[str, int]) -> RawFact | tuple[int, RowError]:
    if len(row) < 3:
        return (line, RowError("too few columns", f"{len(row)} columns, at least 3 are needed"))

    def cell(role: str) -> str | None:
        position = roles.get(role)
        return row[position] if position is not None and position < len(row) else None

    head, tail = cell("head"), cell("tail")
    head_id, tail_id = cell("head_id"), cell("tail_id")
    return RawFact(
        line=line,
        head=head_id if head_id else head,
        relation=cell("relation"),
        tail=tail_id if tail_id else tail,
        confidence=cell("confidence"),
        head_name=head if head_id else cell("head_name"),
        tail_name=tail if tail_id else cell("tail_name"),
        provenance=cell("provenance"),
        validity=cell("validity"),
    )
