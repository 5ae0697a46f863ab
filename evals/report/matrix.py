"""Accuracies in the form of the papers' tables: a row a configuration, columns by data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evals.report.formats import amount, percent
from evals.report.summary import CellSummary, Summary
from evals.report.tables import Table, sources_of


def matrix_table(summary: Summary) -> Table:
    """Return accuracies as papers print them: a row a configuration, columns by data set.

    Only where there are several data sets or models; the published numbers stand beside ours.
    """
    groups = dict.fromkeys((cell.cell.dataset, cell.cell.model) for cell in summary.cells)
    titles = dict.fromkeys(cell.cell.title for cell in summary.cells)
    found = {(c.cell.title, c.cell.dataset, c.cell.model): c for c in summary.cells}
    columns: list[tuple[str, Callable[[str], str]]] = []
    for dataset in dict.fromkeys(dataset for dataset, _ in groups):
        ours = [model for name, model in groups if name == dataset]
        columns += [(f"{dataset}: {model}", _ours_at(found, dataset, model)) for model in ours]
        own = [cell for cell in summary.cells if cell.cell.dataset == dataset]
        theirs = dict.fromkeys(number.model for cell in own for number in cell.published())
        columns += [(f"{dataset}: paper, {model}", _theirs_at(own, model)) for model in theirs]
    rows = [[title, *(value(title) for _, value in columns)] for title in titles]
    heads = ["configuration", *(name for name, _ in columns)]
    sources = sources_of(summary, "accuracy")
    note = "Accuracy in %, with 95 % interval." + (f" Paper: {sources}." if sources else "")
    return Table(
        "matrix",
        "As papers print it",
        heads,
        rows if len(groups) > 1 else [],
        set(heads[1:]),
        note,
    )


def _ours_at(
    found: Mapping[tuple[str, str, str], CellSummary], dataset: str, model: str
) -> Callable[[str], str]:
    def value(title: str) -> str:
        cell = found.get((title, dataset, model))
        return percent(cell.metrics["accuracy"]) if cell else ""

    return value


def _theirs_at(cells: Sequence[CellSummary], model: str) -> Callable[[str], str]:
    def value(title: str) -> str:
        numbers = [n for c in cells if c.cell.title == title for n in c.published()]
        return next((amount(n.value) for n in numbers if n.model == model), "")

    return value
