"""Tab- and comma-separated quads: head, relation, tail[, confidence[, provenance]].

With a header (recognised by its names) columns may stand in any order; without one the order is
the one above. In tab-separated files quotes are ordinary characters, except a pair around a field.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator

from graph_store.errors import RowError, shorten
from graph_store.readers.columns import column_roles, is_header
from graph_store.readers.rows import RawFact

_POSITIONS = {"head": 0, "relation": 1, "tail": 2, "confidence": 3, "provenance": 4}
_NO_NUMBERS = ("nan", "inf", "infinity")
_OTHER_SEPARATORS = {
    "\t": "fields seem to be separated by tabs: --format tsv",
    ",": "fields seem to be separated by commas: --format csv",
    ";": "fields seem to be separated by semicolons: separate them by commas or tabs",
    "|": "fields seem to be separated by |: separate them by commas or tabs",
}

Row = tuple[int, list[str]]


def read_tsv(lines: Iterable[str]) -> Iterator[RawFact | tuple[int, RowError]]:
    """Yield the facts of tab-separated lines, or a line number with what is wrong there."""
    return _facts(tsv_rows(lines), "\t")


def read_csv(lines: Iterable[str]) -> Iterator[RawFact | tuple[int, RowError]]:
    """Yield the facts of comma-separated lines (RFC 4180), or a line number with the fault."""
    return _facts(csv_rows(lines), ",")


def tsv_rows(lines: Iterable[str]) -> Iterator[Row | tuple[int, RowError]]:
    """Yield (line number, cells) of tab-separated lines, or a line number with its fault."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if "\r" in text:
            fault = "a carriage return inside the line; lines end with a line feed"
            yield (number, RowError("carriage return", fault))
        else:
            yield (number, text.split("\t"))


def csv_rows(lines: Iterable[str]) -> Iterator[Row | tuple[int, RowError]]:
    """Yield (number of the first line, cells) of CSV rows, or a line number with the fault."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(lines, strict=True)
    started = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error)
            if "unexpected end" in reason:
                reason = f"a quote opened here is not closed by line {reader.line_num}, the last"
            yield (started, RowError("malformed CSV", f"malformed CSV: {reason}"))
        else:
            yield (started, row)
        started = reader.line_num + 1


def _facts(
    rows: Iterable[Row | tuple[int, RowError]], separator: str
) -> Iterator[RawFact | tuple[int, RowError]]:
    roles: dict[str, int] | None = None
    header: list[str] = []
    for line, row in rows:
        if isinstance(row, RowError):
            yield (line, row)
            continue
        if not any(cell.strip() for cell in row):
            continue
        if roles is None:
            row[0] = row[0].removeprefix("\ufeff")
            if is_header(row):
                roles, header = column_roles(row), row
                continue
            roles = _POSITIONS
            if fault := _unknown_header(row):
                yield (line, fault)
                continue
        elif header and row[1:] == header[1:] and row[0].removeprefix("\ufeff") == header[0]:
            continue  # files that were put one after the other repeat it
        yield _fact(line, row, roles, separator)


def _unknown_header(row: list[str]) -> RowError | None:
    """Return the fault of a first row whose fourth cell is a word, not a confidence."""
    word = row[3].strip().strip('"').strip() if len(row) > 3 else ""
    if not word.replace("_", " ").replace(" ", "").isalpha() or word.casefold() in _NO_NUMBERS:
        return None
    return RowError(
        "confidence not a number",
        f"the confidence '{shorten(word)}' is no number; "
        "if this is a header, call its columns head, relation, tail, confidence",
    )


def _too_few(row: list[str], separator: str) -> RowError:
    columns = "1 column" if len(row) == 1 else f"{len(row)} columns"
    hint = ""
    for other, mend in _OTHER_SEPARATORS.items():
        if other != separator and sum(cell.count(other) for cell in row) >= 2:
            hint = f"; {mend}"
            break
    return RowError("too few columns", f"{columns}, at least 3 are needed{hint}")


def _fact(
    line: int, row: list[str], roles: dict[str, int], separator: str
) -> RawFact | tuple[int, RowError]:
    if len(row) < 3:
        return (line, _too_few(row, separator))

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
        head_name=head if head_id and head else cell("head_name"),
        tail_name=tail if tail_id and tail else cell("tail_name"),
        provenance=cell("provenance"),
        validity=cell("validity"),
    )
