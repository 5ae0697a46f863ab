"""Opening sources: gzip or plain, UTF-8, with the format by name or by a look at the content."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from graph_store.errors import RowError, StoreError
from graph_store.readers.delimited import read_csv, read_tsv
from graph_store.readers.json_lines import read_jsonl
from graph_store.readers.rows import RawFact
from graph_store.sqlite_schema import is_store

Item = RawFact | tuple[int, RowError]
READERS: dict[str, Callable[[Iterator[str]], Iterator[Item]]] = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_jsonl,
}
_SUFFIXES = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


def sniff_format(path: Path) -> str:
    """Return `tsv`, `csv` or `jsonl` by the file's name, else by its first line.

    Raises:
        StoreError: the file cannot be read, or its format cannot be told.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    for suffix in reversed(suffixes):
        if suffix in _SUFFIXES:
            return _SUFFIXES[suffix]
    if not path.is_file() and not path.is_dir():
        # A look would take away what a pipe gives only once.
        raise StoreError(f"{path}: is no plain file; --format says its format (tsv, csv, jsonl)")
    if is_store(path):
        raise StoreError(f"{path}: is a store already; give the files of facts it is made of")
    with open_lines(path) as file:
        try:
            first = next((line for line in file if line.strip()), "")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error
    if first.lstrip()[:1] in ("{", "["):
        return "jsonl"
    if first.count("\t") >= 2:
        return "tsv"
    if first.count(",") >= 2:
        return "csv"
    raise StoreError(f"{path}: format not recognised; --format says it (tsv, csv, jsonl)")


def read_source(
    path: Path, source_format: str, on_bytes: Callable[[int], None] | None = None
) -> Iterator[Item]:
    """Yield the rows of a file as facts, or as line numbers with their faults.

    Args:
        path: the file, gzip accepted (told by its content, not its name).
        source_format: a key of `READERS`, or `auto`.
        on_bytes: told the number of bytes of the file read so far, now and then.

    Raises:
        StoreError: the file cannot be read.
    """
    name = sniff_format(path) if source_format == "auto" else source_format
    if name not in READERS:
        raise StoreError(f"format '{name}' is not one of auto, {', '.join(READERS)}")
    with read_errors(path) as lines_of, open_lines(path, on_bytes) as file:
        yield from READERS[name](lines_of(file))


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[Callable[[Iterable[str]], Iterator[str]]]:
    """Turn faults of reading into one clear line.

    Yields:
        a function through which the lines go, so that the message can say after which one.

    Raises:
        StoreError: what is read is not UTF-8, a damaged gzip, or unreadable.
    """
    line = 0

    def counted(lines: Iterable[str]) -> Iterator[str]:
        nonlocal line
        for text in lines:
            line += 1
            yield text

    try:
        yield counted
    except UnicodeDecodeError as error:
        place = _first_bad_line(path) or line + 1
        raise StoreError(
            f"{path}:{place}: not UTF-8 ({error.reason}); convert the file first"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StoreError(f"{path}: damaged gzip after line {line}: {error}") from error


def open_lines(path: Path, on_bytes: Callable[[int], None] | None = None) -> io.TextIOWrapper:
    """Open a plain or gzipped UTF-8 file as lines; a byte order mark is dropped.

    Raises:
        StoreError: the file is missing, a folder, or not allowed.
    """
    try:
        raw = path.open("rb")
    except IsADirectoryError:
        raise StoreError(f"{path}: is a folder, not a file") from None
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be opened: {error.strerror}") from error
    told: io.RawIOBase | io.BufferedIOBase = _Told(raw, on_bytes) if on_bytes else raw
    buffered = io.BufferedReader(told, 1 << 20)
    binary = _Unzipped(buffered) if buffered.peek(2)[:2] == b"\x1f\x8b" else buffered
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="\n")


def _first_bad_line(path: Path) -> int | None:
    """Return the number of the first line that is not UTF-8, by reading the file again."""
    if not path.is_file():
        return None
    with path.open("rb") as raw:
        zipped = raw.peek(2)[:2] == b"\x1f\x8b"
        for number, line in enumerate(_Unzipped(raw) if zipped else raw, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


class _Unzipped(gzip.GzipFile):
    """An unzipped file that, unlike its base, closes the file under it."""

    def __init__(self, packed: io.BufferedReader[Any]) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


class _Told(io.RawIOBase):
    """Raw bytes that report how far they were read."""

    def __init__(self, raw: io.BufferedReader, on_bytes: Callable[[int], None]) -> None:
        self._raw = raw
        self._on_bytes = on_bytes
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        count = self._raw.readinto(buffer)
        self._done += count
        self._on_bytes(self._done)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
