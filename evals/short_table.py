"""The few numbers that a run prints when it ends; `graphmoot eval report` has the whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from evals.records import ResultLine
from evals.run_folder import Run

COLUMNS = ["configuration", "data set", "model", "n", "right", "abstained", "failed", "calls", "s"]


def short_rows(run: Run) -> tuple[list[str], list[list[object]]]:
    """Return the columns and, for every cell, counts, calls a question and median seconds.

    Calls are those a question takes, whether a reply came from the cache or not; seconds are of
    the questions that used no cached reply.
    """
    cells: dict[tuple[str, str, str], list[ResultLine]] = defaultdict(list)
    for line in run.lines:
        cells[line["label"], line["dataset"], line["model"]].append(line)
    return COLUMNS, [[*cell, *_numbers(lines)] for cell, lines in cells.items()]


def _numbers(lines: Sequence[ResultLine]) -> list[object]:
    outcomes = [line["outcome"] for line in lines]
    right = outcomes.count("right")
    live = [line["seconds"] for line in lines if not any(c["cached"] for c in line["calls"])]
    return [
        len(lines),
        f"{right} ({100 * right / len(lines):.1f} %)",
        outcomes.count("no_answer"),
        outcomes.count("failed"),
        f"{sum(len(line['calls']) for line in lines) / len(lines):.1f}",
        f"{median(live):.1f}" if live else "",
    ]
