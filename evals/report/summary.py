"""The numbers of a report: per cell metrics, rates, cost, calibration; paired comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from evals.published import Metric, PublishedNumber, published
from evals.records import Estimate, Outcome
from evals.report.cells import ORDER, ReportCell
from evals.report.costs import CellCost, QuestionCost, cell_cost, question_cost
from evals.report.merge import Merged

if TYPE_CHECKING:
    from evals.calibration import Calibration
    from evals.comparison import PairedComparison


class ReportError(ValueError):
    """A report cannot be made as it was asked for."""


@dataclass(frozen=True)
class CellSummary:
    """A cell in numbers.

    Attributes:
        cell: what it is of.
        metrics: estimates by metric, each over the questions that it applies to.
        outcomes: how many questions ended how.
        cost: means a question.
        costs: by question id.
        calibration: of the stated confidences.
    """

    cell: ReportCell
    metrics: Mapping[str, Estimate]
    outcomes: Mapping[Outcome, int]
    cost: CellCost
    costs: Mapping[str, QuestionCost]
    calibration: Calibration

    @property
    def n(self) -> int:
        """Questions answered, or tried."""
        return len(self.cell.rows)

    def published(self, metric: Metric = "accuracy") -> list[PublishedNumber]:
        """Return what papers print for such a row; nothing for a corrupted graph."""
        if self.cell.noise:
            return []
        preset = self.cell.manifest.get("preset")
        return published(self.cell.label, self.cell.dataset, metric=metric, preset=preset)

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form."""
        cell = self.cell
        return {
            "label": cell.title,
            "method": cell.described.get("method"),
            "dataset": cell.dataset,
            "model": cell.model,
            "settings": cell.described.get("settings") or {},
            "n": self.n,
            "asked": len(cell.asked),
            "metrics": {name: estimate.to_json() for name, estimate in self.metrics.items()},
            "outcomes": dict(self.outcomes),
            "cost": self.cost.to_json(),
            "calibration": self.calibration.to_json(),
            "published": [
                {
                    "model": number.model,
                    "metric": number.metric,
                    "value": number.value,
                    "n": number.n,
                    "source": number.source,
                }
                for metric in ("accuracy", "seconds", "calls", "tokens")
                for number in self.published(metric)
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """Two cells on the questions that both have; `test` is of their accuracies."""

    first: ReportCell
    second: ReportCell
    test: PairedComparison

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return {
            "dataset": self.first.dataset,
            "model": self.first.model,
            "a": self.first.title,
            "b": self.second.title,
            **self.test.to_json(),
        }


@dataclass(frozen=True)
class Summary:
    """A report in numbers.

    Attributes:
        merged: what it is of.
        cells: in the order of the report.
        pooled: metrics over all lines of all cells.
        comparisons: between cells of one data set and model.
        linking: by data set, how many questions' topics were linked in which way.
    """

    merged: Merged
    cells: list[CellSummary]
    pooled: Mapping[str, Estimate]
    comparisons: list[Comparison]
    linking: Mapping[str, Mapping[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `graphmoot eval report --json` prints."""
        return {
            "metrics": {name: estimate.to_json() for name, estimate in self.pooled.items()},
            "cells": [cell.to_json() for cell in self.cells],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "linking": {name: dict(counts) for name, counts in self.linking.items()},
            "notes": self.merged.notes,
        }


def summarise_runs(merged: Merged, against: str | None = None) -> Summary:
    """Return the numbers of merged runs.

    Args:
        merged: the runs.
        against: compare with the cells of this label only; None compares all pairs.

    Raises:
        ReportError: there is no such label.
    """
    from evals.estimates import summarise

    _check_label(merged, against)
    scores = [score for cell in merged.cells for score in cell.scores]
    return Summary(
        merged=merged,
        cells=[_summary(cell) for cell in merged.cells],
        pooled=summarise(scores),
        comparisons=_comparisons(merged.cells, against),
        linking=_linking(merged),
    )


def _check_label(merged: Merged, against: str | None) -> None:
    labels = list(dict.fromkeys(name for c in merged.cells for name in (c.title, c.label)))
    if against is not None and against not in labels:
        raise ReportError(f"--against '{against}': no such configuration; there are {labels}")


def _summary(cell: ReportCell) -> CellSummary:
    from evals.calibration import calibrate
    from evals.estimates import summarise

    costs = {number: question_cost(row.line, cell) for number, row in cell.rows.items()}
    outcomes = cell.outcomes
    return CellSummary(
        cell=cell,
        metrics=summarise(cell.scores),
        outcomes={outcome: outcomes[outcome] for outcome in ORDER},
        cost=cell_cost(list(costs.values())),
        costs=costs,
        calibration=calibrate(cell.scores),
    )


def _comparisons(cells: Sequence[ReportCell], against: str | None) -> list[Comparison]:
    """Compare cells in pairs; Holm's correction is over the pairs of one data set and model."""
    from evals.comparison import compare, with_holm

    families: dict[tuple[str, str], list[tuple[ReportCell, ReportCell]]] = {}
    for first, second in combinations(cells, 2):
        group = first.dataset, first.model
        shared = set(first.rows) & set(second.rows)
        if group == (second.dataset, second.model) and shared and _wanted(first, second, against):
            families.setdefault(group, []).append((first, second))
    comparisons = []
    for pairs in families.values():
        tests = with_holm([compare(a.scores, b.scores, "accuracy") for a, b in pairs])
        comparisons += [Comparison(a, b, test) for (a, b), test in zip(pairs, tests, strict=True)]
    return comparisons


def _wanted(first: ReportCell, second: ReportCell, against: str | None) -> bool:
    if against is None:
        return True
    return sum(against in (cell.title, cell.label) for cell in (first, second)) == 1


def _linking(merged: Merged) -> dict[str, Mapping[str, int]]:
    """Count how the topics of the reported questions were linked, by data set."""
    ways: dict[str, dict[str, str]] = {}
    for cell in merged.cells:
        if (cell.manifest.get("graph")) is None:
            continue
        for number, row in cell.rows.items():
            ways.setdefault(cell.dataset, {})[number] = row.linking
    return {
        dataset: {
            how: Counter(by_id.values())[how] for how in ("given", "mention", "question", "none")
        }
        for dataset, by_id in ways.items()
    }
