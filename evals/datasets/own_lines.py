"""Our own format, JSON lines as `nodes.question_file` documents them: reading and writing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from evals.datasets.rows import Numbered, Reader
from graph_store.whole_file import write_whole
from nodes.question_file import GoldQuestion, QuestionFileError, read_question_file


def _read(path: Path) -> Numbered:
    yield from enumerate(read_question_file(path), 1)


READER = Reader("jsonl", lambda _line, _row: True, _read)


def write_questions(
    target: Path, questions: Iterable[GoldQuestion], *, source: Path | None = None
) -> Path:
    """Write questions as JSON lines, whole or not at all; gzip where the name ends in `.gz`.

    Args:
        target: the file; an old one is replaced. A link is followed.
        questions: what to write.
        source: the file that they were read from, which is never overwritten.

    Returns:
        The file written, without links.

    Raises:
        QuestionFileError: the target is the source, is no file, or cannot be written.
    """
    path = target.expanduser().resolve()
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise QuestionFileError(f"{target}: is the file that is read; write to another one")
    # /dev/stdout may lead to a regular file, which must not be replaced under its writers.
    device = Path("/dev") in target.expanduser().absolute().parents
    if device or (path.exists() and not path.is_file()):
        raise QuestionFileError(f"{target}: is not a file")
    lines = (json.dumps(question.to_json(), ensure_ascii=False) for question in questions)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # the same questions give the same bytes
    try:
        write_whole(path, data)
    except OSError as error:
        reason = error.strerror or error
        raise QuestionFileError(f"{target}: cannot be written: {reason}") from error
    return path
