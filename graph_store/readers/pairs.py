"""Two-column tables: names, aliases, relation words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from graph_store.errors import RowError, StoreError
from graph_store.readers.delimited import csv_rows, tsv_rows
from graph_store.readers.rows import clean_name
from graph_store.readers.sources import open_lines, read_errors

_HEADERS = {"entity", "id", "relation", "head", "name"}


def read_pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, first column, second column); a header is recognised by its names.

    Columns are separated by tabs, or by commas where the first line has no tab.

    Raises:
        StoreError: the file cannot be read or a line has fewer than two columns.
    """
    with read_errors(path) as lines_of, open_lines(path) as file:
        for line, cells in _rows(path, lines_of(file)):
            if len(cells) < 2:
                raise StoreError(f"{path}:{line}: two columns are needed")
            try:
                yield (line, clean_name(cells[0], "first column"), clean_name(cells[1], "name"))
            except RowError as error:
                raise StoreError(f"{path}:{line}: {error}") from error


def _rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) without blank lines and without the header."""
    blank = 0
    first = ""
    for first in lines:
        if first.strip():
            break
        blank += 1
    rows = tsv_rows if "\t" in first else csv_rows
    fresh = True
    for number, cells in rows(chain([first], lines)):
        if isinstance(cells, RowError):
            raise StoreError(f"{path}:{number + blank}: {cells}") from cells
        if not any(cell.strip() for cell in cells):
            continue
        if not (fresh and cells[0].strip().strip('"').casefold() in _HEADERS):
            yield (number + blank, cells)
        fresh = False
