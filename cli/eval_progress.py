"""How an evaluation gets on: a bar a cell with its running accuracy, and what it has cost."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cli import output
from evals.session import Watcher

if TYPE_CHECKING:
    from rich.progress import Progress

    from evals.records import ResultLine
    from evals.runner import Spent, Task

CellName = tuple[str, str, str]
PLAIN_SECONDS = 10.0
"""Without a terminal, progress is told at most this often."""


class EvalProgress(Watcher):
    """Shows progress on stderr: bars on a terminal, else a plain line now and then.

    Attributes:
        total: questions of the run, over all cells.
        done: how many of them have a result.
    """

    def __init__(self) -> None:
        self.total = self.done = 0
        self._cells: dict[CellName, Counter[str]] = {}
        self._bars: dict[CellName, Any] = {}
        self._progress: Progress | None = None
        self._last = time.monotonic()

    def __enter__(self) -> EvalProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def planned(self, tasks: Sequence[Task], done: Sequence[ResultLine]) -> None:
        """Show how much there is to do."""
        for line in done:
            self._counts(_cell_of(line))[line["outcome"]] += 1
        open_questions = Counter((task.key[0], task.key[1], task.key[2]) for task in tasks)
        for cell in open_questions:
            self._counts(cell)
        self.done, self.total = len(done), len(done) + len(tasks)
        already = f", {self.done:,} of them done before" if done else ""
        output.note(f"{self.total:,} questions to answer in {len(self._cells)} cells{already}")
        if sys.stderr.isatty() and tasks:
            self._open_bars(open_questions)

    def _counts(self, cell: CellName) -> Counter[str]:
        return self._cells.setdefault(cell, Counter())

    def _open_bars(self, open_questions: Counter[CellName]) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[right]}", markup=False),
            TimeRemainingColumn(),
            console=output.stderr(),
        )
        for cell, counts in self._cells.items():
            have = counts.total()
            self._bars[cell] = self._progress.add_task(
                " · ".join(cell),
                total=have + open_questions[cell],
                completed=have,
                right=_right(counts),
            )
        self._bars["", "", ""] = self._progress.add_task(
            "all", total=self.total, completed=self.done, right=""
        )
        self._progress.start()

    def finished(self, line: ResultLine, spent: Spent) -> None:
        """Count a result."""
        cell = _cell_of(line)
        counts = self._counts(cell)
        counts[line["outcome"]] += 1
        self.done += 1
        if self._progress:
            self._progress.update(self._bars[cell], advance=1, right=_right(counts))
            self._progress.update(self._bars["", "", ""], advance=1, right=_cost(spent))
        elif time.monotonic() - self._last >= PLAIN_SECONDS or self.done == self.total:
            self._last = time.monotonic()
            output.note(
                f"{self.done:,} of {self.total:,} · {' · '.join(cell)}: {_right(counts)} · "
                f"{_cost(spent)}"
            )

    def said(self, text: str) -> None:
        """Say something between the bars."""
        if self._progress:
            self._progress.console.print(output.visible(text), markup=False)
        else:
            output.note(text)


def _cell_of(line: ResultLine) -> CellName:
    return line["label"], line["dataset"], line["model"]


def _right(counts: Counter[str]) -> str:
    done = counts.total()
    if not done:
        return ""
    shown = f"{counts['right']}/{done} right ({100 * counts['right'] / done:.0f} %)"
    others = [f"{counts[o]} {word}" for o, word in _OTHERS if counts[o]]
    return ", ".join([shown, *others])


_OTHERS = (("no_answer", "abstained"), ("failed", "failed"))


def _cost(spent: Spent) -> str:
    money = "" if not spent.dollars else f", ${spent.dollars:.4f}"
    return f"{spent.calls:,} calls, {spent.tokens:,} tokens{money}"
