"""OpenBookQA (Mihaylov et al. 2018): four choices, one right.

The rows are as published (`question` an object with `stem` and `choices`) or flat, as data set hubs
have them (`question_stem`). Given to a method: the question and the choices. `fact1`, the book's
fact that a question was made of, is never read.
"""

from __future__ import annotations

from typing import Any

from evals.datasets.rows import Row, answer_of, id_of, json_reader, labelled, make_question, text_of
from nodes.question_file import GoldQuestion, QuestionFileError


def _recognises(row: Row) -> bool:
    inner: Any = row.get("question")
    nested = isinstance(inner, dict) and "stem" in inner and "question_concept" not in inner
    return "answerKey" in row and (nested or "question_stem" in row)


def _question(row: Row, place: str, fallback: str) -> GoldQuestion:
    body: Any = row if "question_stem" in row else row.get("question")
    if not isinstance(body, dict):
        raise QuestionFileError(f"{place}: 'question' must be an object with 'stem' and 'choices'")
    return make_question(
        place,
        number=id_of(row, fallback),
        question=text_of(body, "question_stem" if body is row else "stem", place),
        choices=labelled(body.get("choices"), place),
        answers=[answer_of(row, "answerKey", place)],
        kind="choice",
    )


READER = json_reader("obqa", _recognises, _question)
