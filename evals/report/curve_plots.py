"""Curves: accuracy by a setting that configurations differ in alone, and by noise in the graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.records import Estimate
from evals.report.drawing import Plot, as_plot, drawing, series_style, shorten_titles
from evals.report.identity import noise_kind, noise_share
from evals.report.summary import CellSummary, Summary

LEAST_POINTS = 3
"""Fewer values of a setting make no curve."""

NO_SWEEP = frozenset({"seed"})
"""Numbers that are no scale."""

SYMBOLS: Mapping[str, str] = {"width": "width (W)", "fixed_k": "fixed K", "max_rounds": "r_max"}


@dataclass(frozen=True)
class Curve:
    """Points of a line, by rising x, each with its accuracy."""

    name: str
    points: tuple[tuple[float, Estimate], ...]


def sweep_plot(summary: Summary) -> Plot | None:
    """Plot accuracy by each setting that some cells differ in alone (the paper's Fig. 4)."""
    panels = sweeps(summary.cells)
    if not panels:
        return None
    with drawing() as figure_of:
        figure = figure_of(figsize=(0.6 + 4.4 * len(panels), 3.6))
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (name, curves) in zip(axes, panels.items(), strict=True):
            _curves(axis, curves, SYMBOLS.get(name, name.replace("_", " ")))
        axes[0].set_ylabel("accuracy (%)")
        what = ", ".join(SYMBOLS.get(name, name.replace("_", " ")) for name in panels)
        caption = "Configurations that differ in this setting alone; lines at dots: 95 % intervals."
        return as_plot(figure, "sweep", f"Accuracy by {what}", caption)


def noise_plot(summary: Summary) -> Plot | None:
    """Plot accuracy by the share of corrupted facts, a line a configuration."""
    curves = noise_curves(summary.cells)
    if not curves:
        return None
    with drawing() as figure_of:
        figure = figure_of(figsize=(7.2, 3.8))
        axis = figure.subplots()
        _curves(axis, curves, "corrupted facts (% of the graph)")
        axis.set_ylabel("accuracy (%)")
        caption = "Accuracy as facts are made false; lines at dots: 95 % intervals."
        return as_plot(figure, "noise", "Accuracy by noise in the graph", caption)


def sweeps(cells: Sequence[CellSummary]) -> dict[str, list[Curve]]:
    """Return by setting the curves of cells that are alike but for that setting's number."""
    names = sorted({name for cell in cells for name in cell.cell.context} - NO_SWEEP)
    found = {}
    for name in names:
        groups: dict[str, list[CellSummary]] = {}
        for cell in cells:
            if _number(cell.cell.context.get(name)) is not None:
                groups.setdefault(_alike(cell, name), []).append(cell)
        curves = [
            curve for group in groups.values() if (curve := _sweep(group, name, cells)) is not None
        ]
        if curves:
            found[name] = curves
    return found


def noise_curves(cells: Sequence[CellSummary]) -> list[Curve]:
    """Return accuracy by noise for every configuration that ran on versions of a graph.

    The graph as it came is the point at 0 of each kind of noise.
    """
    groups: dict[tuple[str, str, str, str], dict[float, Estimate]] = {}
    clean: dict[tuple[str, str, str], Estimate] = {}
    for cell in cells:
        own = cell.cell
        key, accuracy = (own.label, own.dataset, own.model), cell.metrics["accuracy"]
        if own.noise:
            kind = noise_kind(own.noise)
            groups.setdefault((*key, kind), {})[100 * noise_share(own.noise)] = accuracy
        elif "graph" in own.identity:
            clean.setdefault(key, accuracy)
    curves = []
    for (label, dataset, model, kind), points in groups.items():
        whole = {0.0: clean[label, dataset, model]} if (label, dataset, model) in clean else {}
        ordered = tuple(sorted({**whole, **points}.items()))
        if len(ordered) > 1:
            name = f"{label}{kind}{_where(dataset, model, cells)}"
            curves.append(Curve(name, ordered))
    return curves


def _sweep(group: Sequence[CellSummary], name: str, cells: Sequence[CellSummary]) -> Curve | None:
    points: dict[float, Estimate] = {}
    for cell in group:
        # Rows of a table may come twice under two names (alpha = 1 is also W = 3).
        points.setdefault(float(cell.cell.context[name]), cell.metrics["accuracy"])
    if len(points) < LEAST_POINTS:
        return None
    own = group[0].cell
    line = f"{own.described.get('method')}{_where(own.dataset, own.model, cells)}"
    return Curve(line, tuple(sorted(points.items())))


def _alike(cell: CellSummary, name: str) -> str:
    rest = {k: v for k, v in cell.cell.identity.items() if k != f"setting {name}"}
    return json.dumps([cell.cell.dataset, cell.cell.model, sorted(rest.items())])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _where(dataset: str, model: str, cells: Sequence[CellSummary]) -> str:
    """Return data set and model where the report has several."""
    parts = []
    if len({cell.cell.dataset for cell in cells}) > 1:
        parts.append(dataset)
    if len({cell.cell.model for cell in cells}) > 1:
        parts.append(model)
    return "".join(f", {part}" for part in parts)


def _curves(axis: Any, curves: Sequence[Curve], what: str) -> None:
    width = max(x for c in curves for x, _ in c.points) - min(
        x for c in curves for x, _ in c.points
    )
    for number, curve in enumerate(curves):
        shift = 0.012 * width * (number - (len(curves) - 1) / 2)
        values = [estimate for _, estimate in curve.points]
        axis.errorbar(
            [x + shift for x, _ in curve.points],
            [100 * e.value for e in values],
            yerr=[
                [100 * max(0.0, e.value - e.low) for e in values],
                [100 * max(0.0, e.high - e.value) for e in values],
            ],
            capsize=2.5,
            elinewidth=0.9,
            markersize=5.5,
            linewidth=1.6,
            label=shorten_titles([curve.name])[0],
            **series_style(number),
        )
    axis.set_xlabel(what)
    axis.set_xticks(sorted({x for curve in curves for x, _ in curve.points}))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.grid(visible=True, axis="y")
    axis.legend(loc="best", fontsize=9.5)
