"""The folder of an evaluation: what was asked for, the questions, one result line a question.

- `manifest.json`: configurations with all settings and prompt versions, data sets and graph with
  their hashes, packages, seed, budgets, prices.
- `questions.jsonl`: the questions with gold answers and linked topic entities.
- `results.jsonl`: `evals.records.ResultLine`s; a line is whole on disk before its question counts
  as done, so that a run that was killed goes on with exactly the rest.
- `superseded.jsonl`: lines of failed questions that have been asked again since.
- `replies.sqlite`: the response cache, where one is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evals.records import ResultLine, key_of
from graph_store.whole_file import write_whole
from nodes.question_file import GoldQuestion, json_rows, question_of

if TYPE_CHECKING:
    from filelock import FileLock

MANIFEST, QUESTIONS, RESULTS, CACHE, SUPERSEDED = (
    "manifest.json",
    "questions.jsonl",
    "results.jsonl",
    "replies.sqlite",
    "superseded.jsonl",
)
FORMAT = 1
_MANIFEST_KEYS = ("cells", "datasets")
_LINE_KEYS = ("outcome", "result", "calls")

Key = tuple[str, str, str, str]
"""(label, dataset, model, question id): what a result line is the result of."""


class RunFolderError(ValueError):
    """A folder holds no run, or one that cannot be used so; the message names the mend."""


@dataclass
class Run:
    """A run as it is on disk.

    Attributes:
        path: the folder.
        manifest: the content of `manifest.json`.
        questions: by (data set, question id).
        linking: how each question's topics were linked: `given`, `mention`, `question`, `none`.
        lines: the result lines in file order; each key once.
    """

    path: Path
    manifest: dict[str, Any]
    questions: dict[tuple[str, str], GoldQuestion] = field(default_factory=dict)
    linking: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: list[ResultLine] = field(default_factory=list)


def read_run(folder: str | Path) -> Run:
    """Read a run's folder; a last line that was torn by a kill is left out.

    Raises:
        RunFolderError: the folder holds no run of a known format.
        QuestionFileError: a line in the middle of a file cannot be read.
    """
    path = Path(folder)
    run = Run(path, read_manifest(path))
    for number, row in json_rows(path / QUESTIONS):
        question = question_of(row, f"{path / QUESTIONS}:{number}", fallback_id=str(number))
        key = str(row.get("dataset")), question.id
        run.questions[key] = question
        run.linking[key] = str(row.get("linking") or "none")
    run.lines = read_lines(path)
    return run


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a run's manifest; raises `RunFolderError` when there is none that can be read."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder}: holds no run; `graphmoot eval run … --out {folder}` makes one"
        ) from error
    except (ValueError, OSError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise RunFolderError(f"{path}: is of another format than {FORMAT}, which is known here")
    if missing := [name for name in _MANIFEST_KEYS if name not in manifest]:
        raise RunFolderError(f"{path}: has no '{missing[0]}'; start anew with another --out")
    return manifest


def read_lines(folder: Path) -> list[ResultLine]:
    """Return the whole result lines; of equal keys (a question asked again) the last stays."""
    return list({key_of(line): line for line in every_line(folder / RESULTS)}.values())


def every_line(path: Path) -> list[ResultLine]:
    """Return the whole lines of a file of results, as they stand there; none without the file.

    Raises:
        RunFolderError: a line is no result line; the message names it.
    """
    if not path.exists():
        return []
    lines: list[ResultLine] = []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, raw in enumerate(whole.splitlines(), 1):
        try:
            line: ResultLine = json.loads(raw)
            _ = key_of(line), [line[name] for name in _LINE_KEYS]  # type: ignore[literal-required]
            lines.append(line)
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(
                f"{path}:{number}: is no result line ({type(error).__name__}: {error}); delete "
                "that line to have its question asked again"
            ) from error
    return lines


class RunWriter:
    """Writes a run; one process at a time may hold a folder.

    Use as a context manager: entering takes the folder's lock and cuts a torn last line off.

    Attributes:
        folder: the run's folder.
        lines: the result lines that were there on entering, each key once.

    Raises:
        RunFolderError: on entering, when another process writes to the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[ResultLine] = []
        self._superseding = False
        self._known: set[Key] = set()
        self._lock: FileLock | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> RunWriter:
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise RunFolderError(
                f"{self.folder}: another evaluation is writing to it; give another --out"
            ) from error
        self._file = (self.folder / RESULTS).open("a+b")
        self._cut_torn_line(self._file)
        try:
            self.lines = self._keep_last_lines()
        except BaseException:
            self._close()
            raise
        self._known = {key_of(line) for line in self.lines}
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._superseding:
                self._keep_last_lines()
        finally:
            self._close()

    def _close(self) -> None:
        if self._file:
            self._file.close()
        if self._lock:
            self._lock.release()

    @staticmethod
    def _cut_torn_line(file: IO[bytes]) -> None:
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
        file.seek(0, os.SEEK_END)

    def append(self, line: ResultLine) -> None:
        """Write a line; when this returns it is on the disk."""
        assert self._file is not None, "the writer is not entered"
        text = json.dumps(line, ensure_ascii=False, default=str)
        self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._superseding = self._superseding or key_of(line) in self._known

    def _keep_last_lines(self) -> list[ResultLine]:
        """Move lines whose questions have a later one to a file of their own; return the others."""
        lines = every_line(self.folder / RESULTS)
        last = {key_of(line): line for line in lines}
        if len(last) == len(lines) or self._file is None:
            return lines
        earlier = [line for line in lines if last[key_of(line)] is not line]
        known = every_line(self.folder / SUPERSEDED)
        write_whole(self.folder / SUPERSEDED, _as_lines([*known, *earlier]))
        self._file.close()
        write_whole(self.folder / RESULTS, _as_lines(last.values()))
        self._file = (self.folder / RESULTS).open("ab")
        return list(last.values())

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest.json`, whole or not at all."""
        text = json.dumps(manifest, ensure_ascii=False, indent=2, default=str)
        write_whole(self.folder / MANIFEST, f"{text}\n")

    def write_questions(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write `questions.jsonl`, whole or not at all; earlier questions stay.

        What a line says that the new one of its question does not (how it was linked, when this
        session uses no graph) stays too.
        """
        path = self.folder / QUESTIONS
        known = [row for _, row in json_rows(path)] if path.exists() else []
        by_key: dict[tuple[str, str], dict[str, Any]] = {}
        for row in (*known, *rows):
            key = row["dataset"], row["id"]
            by_key[key] = {**by_key.get(key, {}), **row}
        write_whole(path, _as_lines(by_key.values()))


def _as_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in rows)
