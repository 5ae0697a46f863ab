"""MedQA-US (Jin et al. 2021): questions of the US medical licensing exam, four or five choices.

Given to a method: the question and the choices. The source has no ids: a question is named after
its line, `medqa-0001`. `type` is the step of the exam.
"""

from __future__ import annotations

from typing import Any

from evals.datasets.rows import Row, answer_of, id_of, json_reader, labelled, make_question, text_of
from nodes.question_file import GoldQuestion, QuestionFileError


def _recognises(row: Row) -> bool:
    return "options" in row and "answer_idx" in row


def _question(row: Row, place: str, fallback: str) -> GoldQuestion:
    return make_question(
        place,
        number=id_of(row, fallback),
        question=text_of(row, "question", place),
        choices=_choices(row.get("options"), place),
        answers=[answer_of(row, "answer_idx", place)],
        kind="choice",
        row_type=row.get("meta_info"),
    )


def _choices(options: Any, place: str) -> dict[str, str]:
    if isinstance(options, list):
        return labelled(options, place, ("key", "value"))
    if not isinstance(options, dict) or not options:
        raise QuestionFileError(f"{place}: 'options' must map labels to texts")
    return {str(label): str(text) for label, text in options.items()}


READER = json_reader("medqa", _recognises, _question)
