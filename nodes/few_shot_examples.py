"""Examples for few-shot prompting: questions with answers, from a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path

from graph_store.linking import name_key
from nodes.question_file import GoldQuestion, QuestionFileError, read_question_file
from nodes.state import Question, choice_shown, question_type_of
from nodes.wording import question_part
from prompts import baselines as texts


def load_examples(path: str | None) -> Sequence[GoldQuestion]:
    """Return the examples of a file, or those that come with the package.

    Raises:
        QuestionFileError: the file cannot be read, or a line of it cannot be used.
    """
    if path is None:
        with resources.as_file(resources.files("nodes") / "few_shot_examples.jsonl") as bundled:
            return _read(str(bundled), 0)
    try:
        file = Path(path).expanduser()
        return _read(str(file), file.stat().st_mtime_ns)
    except OSError as error:
        raise QuestionFileError(f"examples={path}: {error.strerror}") from error
    except RuntimeError as error:  # `~name` of nobody
        raise QuestionFileError(f"examples={path}: {error}") from error


@lru_cache(maxsize=8)
def _read(path: str, _version: int) -> tuple[GoldQuestion, ...]:
    return tuple(read_question_file(path))


def examples_part(
    examples: Sequence[GoldQuestion], state: Question, shots: int, *, reasons: bool
) -> tuple[str, list[str]]:
    """Return the examples' part of a prompt, and the ids of those chosen.

    Args:
        examples: in the order in which they are preferred.
        state: the question: only examples of its type are taken, and never itself.
        shots: how many at most.
        reasons: show how the answers follow; examples without a reasoning are passed over.
    """
    asked, kind = name_key(state["question"]), question_type_of(state)
    fitting = [
        example
        for example in examples
        if example.question_type == kind
        and name_key(example.question) != asked
        and (example.reasoning or not reasons)
    ][:shots]
    if not fitting:
        return "", []
    shown = "\n\n".join(_shown(example, reasons=reasons) for example in fitting)
    return texts.EXAMPLES.format(examples=shown), [example.id for example in fitting]


def _shown(example: GoldQuestion, *, reasons: bool) -> str:
    choices = tuple(example.choices.items())
    answer = choice_shown(example.answers[0], choices) if choices else example.answers[0]
    form = texts.EXAMPLE_WITH_REASONING if reasons else texts.EXAMPLE
    return form.format(
        question=question_part(example.asked(())), reasoning=example.reasoning, answer=answer
    )
