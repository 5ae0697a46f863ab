"""PathQuestion (Zhou et al. 2018): questions made from paths of two or three facts of Freebase.

A line is `question TAB answer(all/right/answers/) TAB gold path`, the path
`subject#relation#entity#relation#answer`, in PQ with `#<end>#answer` after it. Given to a method:
the question, and the path's subject as the topic entity, as it stands in the question. Of the path
nothing else is kept but the number of its facts, as `type`.
"""

from __future__ import annotations

from pathlib import Path

from evals.datasets.rows import Numbered, Reader, Row, make_question
from nodes.question_file import GoldQuestion, QuestionFileError, text_lines

_END = "<end>"


def _recognises(line: str, _: Row) -> bool:
    columns = line.split("\t")
    return len(columns) == 3 and columns[1].endswith(")") and columns[2].count("#") >= 2


def _read(path: Path) -> Numbered:
    for number, line in text_lines(path):
        yield number, _question(line, f"{path}:{number}", number)


def _question(line: str, place: str, number: int) -> GoldQuestion:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 3:
        raise QuestionFileError(
            f"{place}: must have question, answers and gold path, separated by tabs"
        )
    question, answers, path = columns
    subject, *steps = path.split(f"#{_END}")[0].split("#")
    if not steps or len(steps) % 2:
        raise QuestionFileError(f"{place}: the gold path must be subject#relation#…#answer")
    hops = len(steps) // 2
    return make_question(
        place,
        number=f"pq-{hops}h-{number:04d}",
        question=question,
        answers=_answers(answers, steps[-1], place),
        kind="open",
        # A subject that the question does not name would be a hint.
        topics=[subject] if subject in question.split() else [],
        row_type=f"{hops}-hop",
    )


def _answers(column: str, first: str, place: str) -> list[str]:
    """Return the right answers, the one at the end of the gold path first.

    A name may have brackets and slashes in it; the path's answer tells where it ends.
    """
    if not (column.startswith(f"{first}(") and column.endswith(")")):
        raise QuestionFileError(f"{place}: the answers must be '{first}(…/…/)', as the path ends")
    all_right = f"/{column[len(first) + 1 : -1].rstrip('/')}/"
    if f"/{first}/" not in all_right:
        raise QuestionFileError(f"{place}: '{first}' is not among the answers in the brackets")
    others = all_right.replace(f"/{first}/", "/", 1).split("/")
    return [first, *(name for name in others if name)]


READER = Reader("path-question", _recognises, _read)
