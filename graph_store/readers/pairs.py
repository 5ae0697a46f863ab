"""Two-column tables: names, aliases, relation words."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from graph_store.errors import RowError, StoreError
from graph_store.readers.rows import clean_name
from graph_store.readers.sources import open_lines

_HEADERS = {"entity", "id", "relation", "head", "name"}


def read_pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, first column, second column); a header is recognised by its names.

    Columns are separated by tabs, or by commas where the first line has no tab.

    Raises:
        StoreError: the file cannot be read or a line has fewer than two columns.
    """
    with open_lines(path) as file:
        first = file.readline()
        tabbed = "\t" in first
        for number, line in enumerate(_chain(first, file), 1):
            if not line.strip():
                continue
            cells = line.rstrip("\r\n").split("\t") if tabbed else next(csv.reader([line]))
            if number == 1 and cells[0].strip().casefold() in _HEADERS:
                continue
            if len(cells) < 2:
                raise StoreError(f"{path}:{number}: two columns are needed")
            try:
                yield (number, clean_name(cells[0], "first column"), clean_name(cells[1], "name"))
            except RowError as error:
                raise StoreError(f"{path}:{number}: {error}") from error


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
