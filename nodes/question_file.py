"""Questions with their gold answers, as JSON lines: evaluation sets and few-shot examples.

One JSON object a line:

    {"id": "q1", "question": "Who built Marrow Light?", "answers": ["Edith Venn"],
     "aliases": {"Edith Venn": ["Mistress Venn"]}, "topic_entities": ["Marrow_Light"],
     "choices": {"A": "Josiah Marrow", "B": "Edith Venn"}, "type": "one-hop",
     "question_type": "choice", "reasoning": "…"}

`question` and `answers` (or `answer`, one text) are required; the others may be left out. With
`choices` an answer is a label or a choice's words; with `question_type` `boolean` it is true/false
or yes/no. `aliases` maps an answer to its other names; a list is taken where there is one answer.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from graph_store.readers.sources import open_lines
from nodes.state import Question, QuestionType

YES = frozenset({"true", "yes", "1"})
NO = frozenset({"false", "no", "0"})


class QuestionFileError(ValueError):
    """A question file cannot be read; the message names the file and the line."""


@dataclass(frozen=True)
class GoldQuestion:
    """A question with what is known to be right.

    Attributes:
        id: unique in its set.
        question: the text.
        answers: what is right: labels of choices, `true` or `false`, or texts; never empty.
        question_type: how it is answered.
        choices: label to text; empty where it is not multiple choice.
        topic_entities: ids or names, as the set gives them.
        aliases: a gold answer's other names.
        type: the set's own kind of question (`composition`, `2-hop`).
        reasoning: how the answer follows; shown in few-shot examples only.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    question_type: QuestionType = "open"
    choices: dict[str, str] = field(default_factory=dict)
    topic_entities: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    type: str | None = None
    reasoning: str = ""

    def asked(self, topic_entities: tuple[str, ...] | None = None) -> Question:
        """Return a method's input: nothing of the gold answer is in it.

        Args:
            topic_entities: linked ones in place of the set's own; () lets the method find them.
        """
        topics = self.topic_entities if topic_entities is None else topic_entities
        asked: Question = {"question": self.question, "question_type": self.question_type}
        if self.choices:
            asked["choices"] = dict(self.choices)
        if topics:
            asked["topic_entities"] = list(topics)
        return asked

    def to_json(self) -> dict[str, Any]:
        """Return the line of this question; what is empty is left out."""
        line: dict[str, Any] = {
            "id": self.id,
            "question": self.question,
            "question_type": self.question_type,
            "choices": self.choices,
            "topic_entities": list(self.topic_entities),
            "answers": list(self.answers),
            "aliases": {answer: list(names) for answer, names in self.aliases.items()},
            "type": self.type,
            "reasoning": self.reasoning,
        }
        return {key: value for key, value in line.items() if value not in ("", None, [], {})}


def read_question_file(path: str | Path) -> list[GoldQuestion]:
    """Read a file of questions, plain or gzip.

    Raises:
        QuestionFileError: a line cannot be used, an id comes twice, or there is no question.
        StoreError: the file cannot be opened.
    """
    questions: dict[str, GoldQuestion] = {}
    for number, row in json_rows(path):
        place = f"{path}:{number}"
        question = question_of(row, place, fallback_id=str(number))
        if question.id in questions:
            raise QuestionFileError(f"{place}: the id '{question.id}' comes twice")
        questions[question.id] = question
    if not questions:
        raise QuestionFileError(f"{path}: there is no question in it")
    return list(questions.values())


def json_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON-lines file, plain or gzip, with their line numbers.

    Raises:
        QuestionFileError: a line is no JSON object, or the file is no text.
        StoreError: the file cannot be opened.
    """
    for number, line in text_lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise QuestionFileError(f"{path}:{number}: is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise QuestionFileError(f"{path}:{number}: is not a JSON object")
        yield number, row


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, plain or gzip, that are not blank, with their numbers.

    Raises:
        QuestionFileError: the file is no text in UTF-8.
        StoreError: it cannot be opened.
    """
    try:
        with open_lines(Path(path)) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (UnicodeDecodeError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise QuestionFileError(f"{path}: is not a text file in UTF-8: {error}") from error


def question_of(row: dict[str, Any], place: str, *, fallback_id: str) -> GoldQuestion:
    """Return the question of one object; `place` (file:line) is named in errors.

    Raises:
        QuestionFileError: a part is missing or of the wrong form.
    """
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise QuestionFileError(f"{place}: 'question' must be a text that is not empty")
    choices = _choices(row.get("choices") or {}, place)
    answers = _texts(row.get("answers", row.get("answer")), "answers", place)
    if not answers:
        raise QuestionFileError(f"{place}: there are no 'answers'")
    kind: Any = row.get("question_type") or ("choice" if choices else "open")
    if kind not in get_args(QuestionType):
        allowed = ", ".join(get_args(QuestionType))
        raise QuestionFileError(f"{place}: 'question_type' is '{kind}', not one of {allowed}")
    if kind == "choice":
        answers = tuple(_label(answer, choices, place) for answer in answers)
    elif kind == "boolean":
        answers = tuple(_truth(answer, place) for answer in answers)
    return GoldQuestion(
        id=str(row.get("id") if row.get("id") not in (None, "") else fallback_id),
        question=text,
        answers=answers,
        question_type=kind,
        choices=choices,
        topic_entities=_texts(row.get("topic_entities"), "topic_entities", place),
        aliases=_aliases(row.get("aliases"), answers, choices, place),
        type=None if row.get("type") is None else str(row["type"]),
        reasoning=str(row.get("reasoning") or ""),
    )


def _texts(value: Any, name: str, place: str) -> tuple[str, ...]:
    items = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int | float) for item in items):
        raise QuestionFileError(f"{place}: '{name}' must be a list of texts")
    texts = (_as_text(item).strip() for item in items)
    return tuple(dict.fromkeys(text for text in texts if text))


def _as_text(item: str | float) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def _choices(value: Any, place: str) -> dict[str, str]:
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        value = {chr(ord("A") + index): text for index, text in enumerate(value[:26])}
    if not isinstance(value, dict):
        raise QuestionFileError(f"{place}: 'choices' must map labels to texts")
    choices = {str(label): str(text) for label, text in value.items()}
    if not all(label.strip() and text.strip() for label, text in choices.items()):
        raise QuestionFileError(f"{place}: 'choices' has an empty label or text")
    return choices


def _label(answer: str, choices: dict[str, str], place: str) -> str:
    if answer in choices:
        return answer
    found = [label for label, text in choices.items() if text.casefold() == answer.casefold()]
    if len(found) != 1:
        raise QuestionFileError(f"{place}: the answer '{answer}' is none of the choices")
    return found[0]


def _truth(answer: str, place: str) -> str:
    word = answer.strip().casefold()
    if word in YES:
        return "true"
    if word in NO:
        return "false"
    raise QuestionFileError(f"{place}: the answer '{answer}' is neither true nor false")


def _aliases(
    value: Any, answers: tuple[str, ...], choices: dict[str, str], place: str
) -> dict[str, tuple[str, ...]]:
    if not value:
        return {}
    if isinstance(value, list):
        if len(answers) != 1:
            raise QuestionFileError(
                f"{place}: 'aliases' of several answers must map each answer to its names"
            )
        value = {answers[0]: value}
    if not isinstance(value, dict):
        raise QuestionFileError(f"{place}: 'aliases' must map an answer to its other names")
    labels = {text.casefold(): label for label, text in choices.items()}
    spelt = {answer.casefold(): answer for answer in answers}
    out: dict[str, tuple[str, ...]] = {}
    for answer, names in value.items():
        key = str(answer).strip().casefold()
        out[labels.get(key) or spelt.get(key) or str(answer)] = _texts(names, "aliases", place)
    return {answer: names for answer, names in out.items() if names}
