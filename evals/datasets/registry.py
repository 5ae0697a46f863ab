"""Loading a data set by name or file, and taking a part of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from evals.datasets.rows import Reader, Row, first_line
from evals.datasets.sources import READERS, SOURCES, Source
from graph_store.whole_file import content_hash
from nodes.question_file import GoldQuestion, QuestionFileError

VARIABLE = "GRAPHMOOT_DATA"
DEFAULT_FOLDER = "../shared/data"


class DatasetError(ValueError):
    """There is no such data set, or a part of it cannot be taken; the message names the mend."""


@dataclass(frozen=True)
class Dataset:
    """Questions with gold answers, and where they are from.

    Attributes:
        name: for tables: the name it is known by, else the file's name without its endings.
        path: the file.
        sha256: of the file's bytes, in hex.
        questions: in the file's order; ids are unique.
        reader: the name of the reader that was used.
        licence: of the data, as far as it is known.
        note: what is given to a method and what is withheld or left out.
    """

    name: str
    path: Path
    sha256: str
    questions: list[GoldQuestion]
    reader: str
    licence: str
    note: str


def load_dataset(name_or_path: str, *, data_folder: Path | None = None) -> Dataset:
    """Load a data set.

    Args:
        name_or_path: a name (`SOURCES`); a file, whose source is recognised by its first line, else
            read as our own JSON lines; or `NAME:FILE`, NAME being a data set or a reader. With a
            data set's name the file is taken as that set. A name wins over a file of that name.
        data_folder: where files of data sets known by name are; default: see `data_root`.

    Raises:
        DatasetError: there is no such data set or file.
        QuestionFileError: a row is at fault, or an id comes twice; the message names file and line.
        StoreError: the file cannot be opened.
    """
    if source := SOURCES.get(name_or_path):
        return _load_source(source, data_folder)
    name, colon, file = name_or_path.partition(":")
    if colon and file:
        if (source := SOURCES.get(name)) and source.file:
            return _load(source.name, _existing(file), source.reader, source)
        if reader := READERS.get(name):
            path = _existing(file)
            return _load(_stem(path), path, reader, _source_of(reader))
    path = _existing(name_or_path)
    reader = READERS[sniff(path)]
    return _load(_stem(path), path, reader, _source_of(reader))


def data_root(data_folder: Path | None = None) -> Path:
    """Return the folder of data sets: the one given, `GRAPHMOOT_DATA`, else `../shared/data`."""
    if data_folder is not None:
        return data_folder
    return Path(os.environ.get(VARIABLE) or DEFAULT_FOLDER).expanduser()


def path_of(source: Source, data_folder: Path | None = None) -> Path:
    """Return where a data set's file should be."""
    if source.file is None:
        return Path(str(resources.files("graph_store") / "sample" / "questions.jsonl"))
    return data_root(data_folder) / source.file


def sniff(path: Path) -> str:
    """Return the name of the reader that a file's first line is for; `jsonl` where none is."""
    line = first_line(path)
    row: Row = {}
    try:
        found = json.loads(line)
        row = found if isinstance(found, dict) else {}
    except (ValueError, RecursionError):
        pass
    return next(name for name, reader in READERS.items() if reader.recognises(line, row))


def select(
    questions: Sequence[GoldQuestion],
    limit: int | None = None,
    offset: int = 0,
    shuffle_seed: int | None = None,
) -> list[GoldQuestion]:
    """Take a part: shuffle, then leave out the first `offset`, then take `limit`.

    The random order depends on the seed and the ids alone (it is that of a hash of both), not on
    the order in the file or on the version of Python.

    Raises:
        DatasetError: `limit` or `offset` is negative.
    """
    if offset < 0 or (limit is not None and limit < 0):
        raise DatasetError("limit and offset must not be negative")
    chosen = list(questions)
    if shuffle_seed is not None:
        chosen.sort(key=lambda question: _rank(shuffle_seed, question.id))
    end = None if limit is None else offset + limit
    return chosen[offset:end]


def _rank(seed: int, question_id: str) -> bytes:
    text = f"{seed}:{question_id}".encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).digest()


def _load_source(source: Source, data_folder: Path | None) -> Dataset:
    path = path_of(source, data_folder)
    if not path.is_file():
        raise DatasetError(
            f"{path}: no such file; data set '{source.name}' is looked for as {source.file} below "
            f"{VARIABLE} (now {data_root(data_folder)}); it is published at {source.home}; "
            f"'{source.name}:FILE' reads it from elsewhere"
        )
    return _load(source.name, path, source.reader, source)


def _existing(file: str) -> Path:
    path = Path(file).expanduser()
    if not path.exists():
        known = ", ".join(SOURCES)
        raise DatasetError(f"'{file}': no such data set or file; known by name: {known}")
    if not path.is_file():
        raise DatasetError(f"{path}: is no regular file; a file of questions is read several times")
    return path


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rsplit(".", 1)[0] or path.name


def _source_of(reader: Reader) -> Source | None:
    found = (
        source for source in SOURCES.values() if source.file and source.reader.name == reader.name
    )
    return next(found, None)


def _load(name: str, path: Path, reader: Reader, source: Source | None) -> Dataset:
    questions, left_out = _read(path, reader)
    if not questions:
        raise QuestionFileError(f"{path}: there is no question of '{name}' in it")
    notes = [source.note] if source else []
    if left_out:
        notes.append(f"rows without a gold answer, left out: {left_out}")
    licence = source.licence if source else "not known"
    return Dataset(
        name, path, content_hash(path), questions, reader.name, licence, "; ".join(notes)
    )


def _read(path: Path, reader: Reader) -> tuple[list[GoldQuestion], int]:
    """Return the questions, and the number of rows that have no gold answer."""
    places: dict[str, int] = {}
    questions: list[GoldQuestion] = []
    left_out = 0
    for number, question in reader.read(path):
        if question is None:
            left_out += 1
            continue
        if first := places.get(question.id):
            raise QuestionFileError(
                f"{path}:{number}: the id '{question.id}' comes twice, first in line {first}"
            )
        places[question.id] = number
        questions.append(question)
    return questions, left_out
