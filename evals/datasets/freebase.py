"""CWQ, WebQSP and GrailQA in one file of JSON lines, told apart by the field `dataset`.

    {"dataset": "cwq", "id": "…", "question": "…", "topic_entities": {"m.03_dwn": "Lou Seal"},
     "answers": ["2014 World Series"], "type": "composition", …}

Given to a method: the question and the topic entities, by name, which finds them in graphs whose
entities are names and in those that have ids with names. They come from the gold queries: one that
is itself a gold answer and that the question does not say is withheld. Relation paths, queries and
logical forms stay behind. Rows without a gold answer are left out, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.datasets.rows import Numbered, Reader, Row, id_of, make_question, text_of
from nodes.question_file import GoldQuestion, QuestionFileError, json_rows

SETS = ("cwq", "webqsp", "grailqa")

_NO_WORD = re.compile(r"[\W_]+")


def reader_of(dataset: str | None = None) -> Reader:
    """Return the reader of one of the sets, or of all in the file."""

    def read(path: Path) -> Numbered:
        for number, row in json_rows(path):
            if dataset in (None, row.get("dataset")):
                yield number, _question(row, f"{path}:{number}", f"freebase-{number:04d}")

    return Reader("freebase", lambda _, row: _recognises(row), read)


def _recognises(row: Row) -> bool:
    return row.get("dataset") in SETS and isinstance(row.get("topic_entities"), dict)


def _question(row: Row, place: str, fallback: str) -> GoldQuestion | None:
    answers = row.get("answers")
    if not isinstance(answers, list):
        raise QuestionFileError(f"{place}: 'answers' must be a list of texts")
    if not answers:
        return None
    question = text_of(row, "question", place).strip()
    return make_question(
        place,
        number=id_of(row, fallback),
        question=question,
        answers=answers,
        kind="open",
        topics=_topics(row.get("topic_entities") or {}, question, answers, place),
        row_type=row.get("type"),
    )


def _topics(value: Any, question: str, answers: Sequence[Any], place: str) -> list[str]:
    if not isinstance(value, dict):
        raise QuestionFileError(f"{place}: 'topic_entities' must map ids to names")
    names = [str(name or number) for number, name in value.items()]
    gold = {_plain(str(answer)) for answer in answers}
    said = f" {_plain(question)} "
    return [name for name in names if _plain(name) not in gold or f" {_plain(name)} " in said]


def _plain(text: str) -> str:
    return _NO_WORD.sub(" ", text.casefold()).strip()


READER = reader_of()
