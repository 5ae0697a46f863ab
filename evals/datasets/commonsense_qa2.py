"""CommonsenseQA 2.0 (Talmor et al. 2021): statements and questions to answer yes or no.

Given to a method: the question, and `topic_prompt` (what its author was asked to write about) as a
mention to link. The votes and the confidence of those who checked a question stay behind.
"""

from __future__ import annotations

from evals.datasets.rows import Row, answer_of, id_of, json_reader, make_question, text_of
from nodes.question_file import GoldQuestion


def _recognises(row: Row) -> bool:
    return "topic_prompt" in row and "relational_prompt" in row


def _question(row: Row, place: str, fallback: str) -> GoldQuestion:
    return make_question(
        place,
        number=id_of(row, fallback),
        question=text_of(row, "question", place),
        answers=[answer_of(row, "answer", place)],
        kind="boolean",
        topics=[row.get("topic_prompt") or ""],
    )


READER = json_reader("csqa2", _recognises, _question)
