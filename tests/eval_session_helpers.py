"""What the tests of evaluation runs share: questions about numbers, a model that says true."""

from __future__ import annotations

import asyncio
import json

import pytest

from evals.options import RunOptions
from evals.plan import Configuration
from evals.run_folder import read_lines
from evals.session import Watcher, run_session
from tests.scripted_model import scripted

QUESTIONS = [
    {
        "id": f"q{n}",
        "question": f"Is {n} even?",
        "question_type": "boolean",
        "answers": [n % 2 == 0],
    }
    for n in range(6)
]
NO_GRAPH = {"use_graph": "false", "debate": "false"}
"""One call of the role `direct_answer`."""
REFUSAL = "I would rather not say anything about that."


class Heard(Watcher):
    def __init__(self) -> None:
        self.lines = []
        self.texts = []
        self.tasks = []
        self.on_line = lambda line: None

    def planned(self, tasks, done):
        self.tasks = list(tasks)

    def finished(self, line, spent):
        self.lines.append(line)
        self.spent = spent
        self.on_line(line)

    def said(self, text):
        self.texts.append(text)


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "numbers.jsonl"
    file.write_text("".join(f"{json.dumps(q)}\n" for q in QUESTIONS), encoding="utf-8")
    return str(file)


def answer(value="true", confidence=80):
    return {"answer": value, "confidence": confidence, "reason": "so it is"}


def says_true(**fields):
    return scripted({"direct_answer": answer()}, **fields)


def options(tmp_path, questions, spec, **changes):
    changes.setdefault("concurrency", 1)
    rows = changes.pop("rows", (Configuration("one call", "debate-on-graph", NO_GRAPH),))
    return RunOptions(
        out=tmp_path / "run", configurations=rows, datasets=(questions,), models=(spec,), **changes
    )


def go(options, watcher=None, **how):
    watcher = watcher or Heard()
    return asyncio.run(run_session(options, watcher, **how)), watcher


def lines_of(tmp_path):
    return read_lines(tmp_path / "run")


def ids(lines):
    return [line["question_id"] for line in lines]
