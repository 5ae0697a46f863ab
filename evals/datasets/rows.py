"""What the readers share: the form of a reader, and parts of rows taken with a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodes.question_file import (
    GoldQuestion,
    QuestionFileError,
    json_rows,
    question_of,
    text_lines,
)
from nodes.state import QuestionType

Row = dict[str, Any]
Numbered = Iterator[tuple[int, GoldQuestion | None]]
"""Line numbers with questions; None stands for a row that has no gold answer."""


@dataclass(frozen=True)
class Reader:
    """Reads the files of one source.

    Attributes:
        name: as in `NAME:PATH`.
        recognises: whether a file that begins with this line is of the source. It gets the line's
            text and the object that it holds in JSON, {} where it holds none.
        read: yields a file's questions; raises `QuestionFileError` at a row that is at fault.
    """

    name: str
    recognises: Callable[[str, Row], bool]
    read: Callable[[Path], Numbered]


def json_reader(
    name: str,
    recognises: Callable[[Row], bool],
    question: Callable[[Row, str, str], GoldQuestion | None],
) -> Reader:
    """Return the reader of a source in JSON lines.

    Args:
        name: of the reader.
        recognises: whether a row is of the source.
        question: makes a question of a row, its place (file:line) and the id to fall back on.
    """

    def read(path: Path) -> Numbered:
        for number, row in json_rows(path):
            yield number, question(row, f"{path}:{number}", f"{name}-{number:04d}")

    return Reader(name, lambda _, row: recognises(row), read)


def make_question(
    place: str,
    *,
    number: str,
    question: str,
    answers: Sequence[Any],
    kind: QuestionType,
    choices: dict[str, str] | None = None,
    topics: Sequence[Any] = (),
    row_type: Any = None,
) -> GoldQuestion:
    """Return a checked question; `number` is its id, `row_type` the source's kind of question.

    Raises:
        QuestionFileError: a part is at fault; the message begins with `place`.
    """
    row = {
        "question": question,
        "question_type": kind,
        "choices": choices or {},
        "answers": list(answers),
        "topic_entities": list(topics),
        "type": row_type or None,
    }
    return question_of(row, place, fallback_id=number)


def id_of(row: Row, fallback: str) -> str:
    """Return a row's own id, else the fallback."""
    found = row.get("id")
    return fallback if found in (None, "") else str(found)


def text_of(row: Row, name: str, place: str) -> str:
    """Return a field that must be a text with something in it.

    Raises:
        QuestionFileError: it is not.
    """
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise QuestionFileError(f"{place}: '{name}' must be a text that is not empty")
    return value


def answer_of(row: Row, name: str, place: str) -> str:
    """Return the gold answer; raises `QuestionFileError` where a test split hides it."""
    if not row.get(name):
        raise QuestionFileError(
            f"{place}: there is no '{name}'; a split whose answers are hidden cannot be scored"
        )
    return text_of(row, name, place)


def labelled(value: Any, place: str, keys: tuple[str, str] = ("label", "text")) -> dict[str, str]:
    """Return choices by label.

    Args:
        value: lists of labels and of texts, or one object a choice.
        place: file:line.
        keys: the names of label and text.

    Raises:
        QuestionFileError: it is neither, or a label comes twice.
    """
    label, text = keys
    try:
        if isinstance(value, dict):
            pairs = list(zip(value[label], value[text], strict=True))
        else:
            pairs = [(choice[label], choice[text]) for choice in value]
    except (KeyError, TypeError, ValueError) as error:
        raise QuestionFileError(
            f"{place}: the choices must have a '{label}' and a '{text}' each"
        ) from error
    choices = {str(name): str(words) for name, words in pairs}
    if len(choices) < len(pairs) or not choices:
        raise QuestionFileError(f"{place}: the choices need labels that differ")
    return choices


def first_line(path: Path) -> str:
    """Return the first line that is not blank; "" where the file cannot be read as text."""
    try:
        return next((line for _, line in text_lines(path)), "")
    except QuestionFileError:
        return ""
