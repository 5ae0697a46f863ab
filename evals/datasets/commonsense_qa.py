"""CommonsenseQA (Talmor et al. 2019): five choices, one right.

The rows are as published (`question` an object with `stem`, `choices` and `question_concept`) or
flat, as data set hubs have them (`choices` an object of two lists). Given to a method: the
question, the choices, and `question_concept` as a mention to link. CommonsenseQA was made from
ConceptNet around that concept.
"""

from __future__ import annotations

from typing import Any

from evals.datasets.rows import Row, answer_of, id_of, json_reader, labelled, make_question, text_of
from nodes.question_file import GoldQuestion


def _recognises(row: Row) -> bool:
    return "answerKey" in row and "question_concept" in _body(row)


def _body(row: Row) -> Row:
    inner: Any = row.get("question")
    return inner if isinstance(inner, dict) else row


def _question(row: Row, place: str, fallback: str) -> GoldQuestion:
    body = _body(row)
    return make_question(
        place,
        number=id_of(row, fallback),
        question=text_of(body, "question" if body is row else "stem", place),
        choices=labelled(body.get("choices"), place),
        answers=[answer_of(row, "answerKey", place)],
        kind="choice",
        topics=[body.get("question_concept") or ""],
    )


READER = json_reader("csqa", _recognises, _question)
