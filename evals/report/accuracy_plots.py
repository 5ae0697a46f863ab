"""Plots of accuracy: by configuration, and against what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from evals.records import Estimate
from evals.report.drawing import (
    SOFT,
    Plot,
    as_plot,
    drawing,
    series_style,
    shorten_titles,
)
from evals.report.summary import CellSummary, Summary

ROW_INCHES = 0.34
LABEL_POINTS = 12.0
SECONDS, TOKENS = "model seconds a question", "tokens a question"


def accuracy_plot(summary: Summary) -> Plot | None:
    """Plot every configuration's accuracy with its interval, a panel a data set."""
    cells = [cell for cell in summary.cells if "accuracy" in cell.metrics]
    if not cells:
        return None
    titles = list(dict.fromkeys(cell.cell.title for cell in cells))
    datasets = list(dict.fromkeys(cell.cell.dataset for cell in cells))
    models = list(dict.fromkeys(cell.cell.model for cell in cells))
    rows = len(titles) * (1 if len(models) == 1 else 0.6 * len(models))
    height = 1.15 + ROW_INCHES * max(rows, 2) + 0.25 * (len(models) > 1)
    with drawing() as figure_of:
        figure = figure_of(figsize=(2.6 + max(4.2, 2.3 * len(datasets)), height))
        axes = figure.subplots(1, len(datasets), sharex=True, sharey=True, squeeze=False)[0]
        for axis, dataset in zip(axes, datasets, strict=True):
            own = [cell for cell in cells if cell.cell.dataset == dataset]
            _accuracy_panel(axis, own, titles, models)
            axis.set_title(f"{dataset} ({_n_of(own)})")
            axis.set_xlabel("accuracy (%)")
        axes[0].set_yticks(range(len(titles)), shorten_titles(titles))
        axes[0].set_ylim(len(titles) - 0.5, -0.5)
        _percent_axis(axes[0].xaxis, cells)
        if len(models) > 1:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=min(3, len(models)))
        caption = "Dots are the accuracies, lines their 95 % intervals."
        return as_plot(figure, "accuracy", "Accuracy by configuration", caption)


def _accuracy_panel(
    axis: Any, cells: Sequence[CellSummary], titles: Sequence[str], models: Sequence[str]
) -> None:
    axis.grid(visible=True, axis="x")
    for number, model in enumerate(models):
        own = [cell for cell in cells if cell.cell.model == model]
        offset = 0.22 * (number - (len(models) - 1) / 2) if len(models) > 1 else 0.0
        estimates = [cell.metrics["accuracy"] for cell in own]
        axis.errorbar(
            [100 * estimate.value for estimate in estimates],
            [titles.index(cell.cell.title) + offset for cell in own],
            xerr=_reach(estimates),
            linestyle="none",
            markersize=6,
            capsize=3,
            label=model,
            **series_style(number),
        )


def cost_plot(summary: Summary) -> Plot | None:
    """Plot accuracy against tokens and model seconds, a row a data set and model."""
    groups: dict[str, list[CellSummary]] = {}
    for cell in summary.cells:
        if "accuracy" in cell.metrics and cell.cost.asked.tokens > 0:
            models = {other.cell.model for other in summary.cells}
            name = cell.cell.dataset + (f", {cell.cell.model}" if len(models) > 1 else "")
            groups.setdefault(name, []).append(cell)
    groups = {name: cells for name, cells in groups.items() if len(cells) > 1}
    if not groups:
        return None
    columns: list[tuple[str, Callable[[CellSummary], float]]] = [
        (TOKENS, lambda cell: cell.cost.asked.tokens)
    ]
    if any(cell.cost.asked_seconds > 0 for cells in groups.values() for cell in cells):
        columns.append((SECONDS, lambda cell: cell.cost.asked_seconds))
    most = max(len(cells) for cells in groups.values())
    with drawing() as figure_of:
        size = (4.6 * len(columns) + 0.6, (2.6 + 0.13 * most) * len(groups))
        figure = figure_of(figsize=size)
        grid = figure.subplots(len(groups), len(columns), sharey="row", squeeze=False)
        for axes, (name, cells) in zip(grid, groups.items(), strict=True):
            axes[0].set_ylabel(f"accuracy (%)\n{name}")
            _percent_axis(axes[0].yaxis, cells)
            for axis, (what, value) in zip(axes, columns, strict=True):
                _cost_panel(axis, cells, what, [value(cell) for cell in cells])
        caption = (
            "All calls that a method makes count, also those whose reply came from the response "
            "cache. Seconds are summed over calls, so calls made at once count in full. Up and to "
            "the left is better."
        )
        return as_plot(figure, "cost", "Accuracy against cost", caption)


def _cost_panel(axis: Any, cells: Sequence[CellSummary], what: str, costs: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator

    axis.grid(visible=True)
    axis.set_xscale("log")
    axis.set_xlabel(f"{what} (log scale)")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    axis.xaxis.set_minor_formatter("")
    for number, (cell, cost) in enumerate(zip(cells, costs, strict=True)):
        estimate = cell.metrics["accuracy"]
        axis.errorbar(
            [max(cost, 1e-3)],
            [100 * estimate.value],
            yerr=_reach([estimate]),
            markersize=7,
            capsize=2,
            elinewidth=0.8,
            alpha=0.9,
            **series_style(number),
        )
    _label_points(axis, cells, [max(cost, 1e-3) for cost in costs])


def _label_points(axis: Any, cells: Sequence[CellSummary], costs: Sequence[float]) -> None:
    """Write names beside points: to the left of those at the right, to the right of the others."""
    low, high = axis.get_ylim()
    points = axis.get_position().height * axis.figure.get_figheight() * 72
    heights = [points * (100 * c.metrics["accuracy"].value - low) / (high - low) for c in cells]
    titles = shorten_titles([cell.cell.title for cell in cells], 26)
    middle = math.sqrt(min(costs) * max(costs))
    for left in (True, False):
        side = [n for n, cost in enumerate(costs) if (cost > middle) == left]
        side.sort(key=lambda number: heights[number])
        places = spread([heights[number] for number in side], LABEL_POINTS, points)
        for number, place in zip(side, places, strict=True):
            moved = place - heights[number]
            axis.annotate(
                titles[number],
                (costs[number], 100 * cells[number].metrics["accuracy"].value),
                xytext=(-12 if left else 12, moved),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=9.5,
                arrowprops={"arrowstyle": "-", "color": SOFT, "lw": 0.6} if moved else None,
            )


def spread(places: Sequence[float], gap: float, most: float) -> list[float]:
    """Return ascending places moved apart to a gap, the last at `most` at the highest."""
    out: list[float] = []
    for place in places:
        out.append(max(place, out[-1] + gap) if out else place)
    ceiling = most
    for number in reversed(range(len(out))):
        out[number] = min(out[number], ceiling)
        ceiling = out[number] - gap
    return out


def _reach(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Return how far intervals reach below and above, in percent points."""
    return [
        [100 * max(0.0, estimate.value - estimate.low) for estimate in estimates],
        [100 * max(0.0, estimate.high - estimate.value) for estimate in estimates],
    ]


def _percent_axis(axis: Any, cells: Sequence[CellSummary]) -> None:
    """Show from 0 to 100, or a part where all intervals are far from the ends."""
    low = min(100 * cell.metrics["accuracy"].low for cell in cells)
    start = max(0.0, 10 * (low // 10) - 5) if low > 25 else 0.0
    axis.axes.set(**{f"{axis.axis_name}lim": (start, 102)})
    axis.set_tick_params(color=SOFT)


def _n_of(cells: Sequence[CellSummary]) -> str:
    counts = sorted({cell.n for cell in cells})
    return f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]}–{counts[-1]}"
