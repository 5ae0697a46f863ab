"""The report's tables, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.published import FINDINGS, Metric, PublishedNumber
from evals.report.formats import NOTHING, amount, percent, probability
from evals.report.summary import CellSummary, Comparison, Summary

SET_METRICS = ("precision", "recall", "f1")
"""Told where a data set has open questions; elsewhere they are the accuracy again."""

LINKED: Mapping[str, str] = {
    "given": "given by the data set",
    "mention": "linked from its words",
    "question": "found in the question",
    "none": "none found",
}


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes:
        name: short, for ids.
        title: its heading.
        columns: headings.
        rows: cells; each row begins with its heading.
        numbers: headings of the columns that are set flush right.
        note: how to read it.
    """

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    numbers: set[str] = field(default_factory=set)
    note: str = ""


def tables(summary: Summary) -> list[Table]:
    """Return all tables that have something in them."""
    made = [
        accuracy_table(summary),
        answers_table(summary),
        cost_table(summary),
        comparison_table(summary),
        linking_table(summary),
    ]
    return [table for table in made if table.rows]


def questions_of(cell: CellSummary) -> str:
    """Return n, and of how many where the run has not asked all."""
    missing = len(cell.cell.asked - set(cell.cell.rows))
    return f"{cell.n} of {cell.n + missing}" if missing else str(cell.n)


def in_paper(cell: CellSummary, metric: Metric = "accuracy") -> str:
    """Return what a paper prints, the model named."""
    digits = 0 if metric == "tokens" else 2 if metric == "seconds" else 1
    return ", ".join(f"{p.model} {amount(p.value, digits)}" for p in cell.published(metric))


def accuracy_table(summary: Summary) -> Table:
    """Return every cell's accuracy beside the published one."""
    unanswered = any(c.outcomes["no_answer"] + c.outcomes["failed"] for c in summary.cells)
    columns: list[tuple[str, Callable[[CellSummary], str]]] = [
        ("n", questions_of),
        ("accuracy", lambda c: percent(c.metrics["accuracy"])),
        ("of those answered", _accuracy_answered if unanswered else lambda _: ""),
        ("in the paper", in_paper),
    ]
    note = "In %, with 95 % interval."
    if unanswered:
        note += (
            " Abstentions and failures count in the accuracy as not right; the column beside it "
            "leaves them out."
        )
    if sources := sources_of(summary, "accuracy"):
        note += f" In the paper: {sources}."
    presets = dict.fromkeys(str(run.manifest.get("preset")) for run in summary.merged.runs)
    note = " ".join((note, *(FINDINGS[preset] for preset in presets if preset in FINDINGS)))
    return _by_cell(summary, "accuracy", "Accuracy", columns, note)


def _accuracy_answered(cell: CellSummary) -> str:
    return percent(cell.metrics["accuracy-answered"])


def answers_table(summary: Summary) -> Table:
    """Return outcomes and the other metrics."""
    metrics = ["exact-match", "hits@1-substring"]
    if _has_open_questions(summary):
        metrics += SET_METRICS
    columns: list[tuple[str, Callable[[CellSummary], str]]] = [
        (name.replace("_", " "), lambda c, name=name: _count_of(c, name))  # type: ignore[misc]
        for name in ("right", "wrong", "no_answer", "failed")
    ]
    columns += [(name, lambda c, name=name: percent(c.metrics[name])) for name in metrics]  # type: ignore[misc]
    columns += [
        ("Brier", lambda c: amount(c.calibration.brier, 3)),
        ("ECE", lambda c: amount(c.calibration.ece, 3)),
        ("with confidence", lambda c: f"{c.calibration.stated} of {c.calibration.answered}"),
    ]
    note = (
        "Metrics in %, with 95 % interval. hits@1-substring is the rule of Plan-on-Graph's "
        "authors, which accepts either text within the other. Brier score and expected calibration "
        "error are of the stated confidence (0 is best)."
    )
    return _by_cell(summary, "answers", "Outcomes and calibration", columns, note)


def cost_table(summary: Summary) -> Table:
    """Return what a question costs, all calls counted, live ones in brackets where they differ."""
    columns: list[tuple[str, Callable[[CellSummary], str]]] = [
        ("calls", lambda c: _asked(c, "calls", 1)),
        ("tokens in", lambda c: _asked(c, "input_tokens", 0)),
        ("prefix-cached", lambda c: _asked(c, "prefix_cached_tokens", 0)),
        ("tokens out", lambda c: _asked(c, "output_tokens", 0)),
        ("steps", lambda c: _asked(c, "sequential_steps", 1)),
        ("seconds (mean, median)", _seconds),
        ("model seconds", lambda c: amount(c.cost.asked_seconds)),
        (
            "$ per 1,000",
            lambda c: amount(None if c.cost.dollars is None else 1000 * c.cost.dollars, 2),
        ),
        ("in the paper", _costs_in_paper),
    ]
    note = (
        "Means a question. All calls that a method makes count, as if there were no response "
        "cache; in brackets those really made, where they differ. Steps: calls that had to wait "
        "for each other. Seconds: wall time, mean and median, of the n questions without a cached "
        "reply. Model seconds: sum of what the replies took when they were really asked for. "
        "Money: by the runs' price table, for 1,000 questions."
    )
    return _by_cell(summary, "cost", "Cost a question", columns, note)


def comparison_table(summary: Summary) -> Table:
    """Return the paired tests."""
    several = _several(summary)
    columns = ["A", "B", *several, "n", "A − B (points)", "only A right", "only B right"]
    columns += ["p", "p (Holm)"]
    rows = [
        [
            comparison.first.title,
            comparison.second.title,
            *(str(getattr(comparison.first, part)) for part in several.values()),
            *_test_cells(comparison),
        ]
        for comparison in summary.comparisons
    ]
    note = (
        "Of accuracy, on the questions that both have. p is of McNemar's exact test, Holm's "
        "correction is over all pairs of a data set and model. The difference's interval is "
        "bootstrapped: with a handful of questions that only one has right it is too narrow; go "
        "by p."
    )
    numbers = set(columns[2 + len(several) :])
    return Table("paired", "Paired tests", columns, rows, numbers, note)


def linking_table(summary: Summary) -> Table:
    """Return how the questions' topics were linked to the graph, by data set."""
    rows = [
        [dataset, str(total), *(_share(counts[how], total) for how in LINKED)]
        for dataset, counts in summary.linking.items()
        if (total := sum(counts.values()))
    ]
    columns = ["data set", "questions", *LINKED.values()]
    return Table("linking", "Topic entities", columns, rows, set(columns[1:]))


def sources_of(summary: Summary, metric: Metric) -> str:
    """Return the tables that the published numbers beside ours are of."""
    numbers: list[PublishedNumber] = [p for c in summary.cells for p in c.published(metric)]
    return "; ".join(dict.fromkeys(f"{number.source} (n = {number.n})" for number in numbers))


def _several(summary: Summary) -> dict[str, str]:
    """Return the columns that tell cells apart: data set and model where there are several."""
    parts = {"data set": "dataset", "model": "model"}
    return {
        name: part
        for name, part in parts.items()
        if len({getattr(cell.cell, part) for cell in summary.cells}) > 1
    }


def _by_cell(
    summary: Summary,
    name: str,
    title: str,
    columns: Sequence[tuple[str, Callable[[CellSummary], str]]],
    note: str,
) -> Table:
    """Return a table of a row a cell; a column that is empty throughout is left out."""
    several = _several(summary)
    values = {head: [value(cell) for cell in summary.cells] for head, value in columns}
    values = {head: texts for head, texts in values.items() if any(texts)}
    heads = ["configuration", *several, *values]
    rows = [
        [
            cell.cell.title,
            *(str(getattr(cell.cell, part)) for part in several.values()),
            *(texts[number] for texts in values.values()),
        ]
        for number, cell in enumerate(summary.cells)
    ]
    if not several or len(several) < 2:
        own = summary.cells[0].cell
        parts = {"dataset": own.dataset, "model": own.model}
        told = [text for part, text in parts.items() if part not in several.values()]
        title = f"{title}: {', '.join(told)}"
    return Table(name, title, heads, rows, set(values) - {"in the paper"}, note)


def _has_open_questions(summary: Summary) -> bool:
    return any(
        row.gold.question_type == "open"
        for cell in summary.cells
        for row in cell.cell.rows.values()
    )


def _count_of(cell: CellSummary, outcome: str) -> str:
    counts = {str(name): count for name, count in cell.outcomes.items()}
    return str(counts[outcome])


def _asked(cell: CellSummary, part: str, digits: int) -> str:
    asked, live = (spending.to_json()[part] for spending in (cell.cost.asked, cell.cost.live))
    told, really = amount(asked, digits), amount(live, digits)
    return told if told == really else f"{told} ({really})"


def _seconds(cell: CellSummary) -> str:
    cost = cell.cost
    if not cost.seconds_n:
        return NOTHING
    return f"{amount(cost.seconds_mean)}, {amount(cost.seconds_median)} (n = {cost.seconds_n})"


def _costs_in_paper(cell: CellSummary) -> str:
    names: tuple[Metric, ...] = ("seconds", "calls", "tokens")
    told = [f"{name} {in_paper(cell, name)}" for name in names if in_paper(cell, name)]
    return "; ".join(told)


def _test_cells(comparison: Comparison) -> list[str]:
    test: Any = comparison.test
    low, value, high = (100 * getattr(test.difference, part) for part in ("low", "value", "high"))
    return [
        str(test.n),
        f"{value:+.1f} [{low:+.1f}, {high:+.1f}]",
        str(test.higher_a),
        str(test.higher_b),
        probability(test.p_value),
        probability(test.p_holm),
    ]


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)"
