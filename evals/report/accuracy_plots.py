"""Plots of accuracy: by configuration, and against what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from evals.records import Estimate
from evals.report.drawing import (
    INK,
    PAPER,
    SOFT,
    Plot,
    as_plot,
    drawing,
    series_style,
    shorten_titles,
)
from evals.report.summary import CellSummary, Summary

ROW_INCHES = 0.34
BUBBLE_POINTS = 15.0
"""Numbers on points are so far apart at least."""

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
            axis.set_title(f"{shorten_titles([dataset], 20)[0]} ({_n_of(own)})")
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
    groups: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in summary.cells:
        if cell.cost.asked.tokens > 0:
            groups.setdefault((cell.cell.dataset, cell.cell.model), []).append(cell)
    groups = {group: cells for group, cells in groups.items() if len(cells) > 1}
    if not groups:
        return None
    columns: list[tuple[str, Callable[[CellSummary], float]]] = [
        (TOKENS, lambda cell: cell.cost.asked.tokens)
    ]
    if all(cell.cost.asked_seconds > 0 for cells in groups.values() for cell in cells):
        columns.append((SECONDS, lambda cell: cell.cost.asked_seconds))
    titles = list(dict.fromkeys(cell.cell.title for cells in groups.values() for cell in cells))
    with drawing() as figure_of:
        height = max(3.4 * len(groups), 0.5 + 0.2 * len(titles))
        figure = figure_of(figsize=(3.5 * len(columns) + 3.2, height))
        grid = figure.subplots(len(groups), len(columns), sharey="row", squeeze=False)
        for axes, (group, cells) in zip(grid, groups.items(), strict=True):
            axes[0].set_ylabel("accuracy (%)")
            axes[0].set_title(", ".join(group) if len(groups) > 1 else "", loc="left")
            _percent_axis(axes[0].yaxis, cells)
            for axis, (what, value) in zip(axes, columns, strict=True):
                _cost_panel(axis, cells, what, [value(cell) for cell in cells])
        _numbered_legend(figure, titles)
        figure.draw_without_rendering()  # now it is settled what lies where
        for axes, cells in zip(grid, groups.values(), strict=True):
            numbers = [titles.index(cell.cell.title) + 1 for cell in cells]
            for axis, (_, value) in zip(axes, columns, strict=True):
                _number_points(axis, cells, [value(cell) for cell in cells], numbers)
        caption = (
            "All calls that a method makes count, also those whose reply came from the response "
            "cache. Seconds are summed over calls, so calls made at once count in full. Up and to "
            "the left is better; thin lines are 95 % intervals. Numbers stand on or beside dots."
        )
        return as_plot(figure, "cost", "Accuracy against cost", caption)


def _cost_panel(axis: Any, cells: Sequence[CellSummary], what: str, costs: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator

    axis.grid(visible=True)
    axis.set_xscale("log")
    axis.set_xlabel(f"{what} (log scale)")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axis.xaxis.set_minor_formatter("")
    estimates = [cell.metrics["accuracy"] for cell in cells]
    values = [100 * estimate.value for estimate in estimates]
    axis.errorbar(
        costs, values, yerr=_reach(estimates), fmt=".", color=INK, ecolor=SOFT, elinewidth=0.6
    )
    # Wide enough also where all cost the same.
    axis.set_xlim(min(costs) / 1.4, max(costs) * 1.4)


def _number_points(
    axis: Any, cells: Sequence[CellSummary], costs: Sequence[float], numbers: Sequence[int]
) -> None:
    """Write each point's number onto it, or beside it where another's is in the way."""
    values = [100 * cell.metrics["accuracy"].value for cell in cells]
    places = axis.transData.transform(list(zip(costs, values, strict=True)))
    in_points = [(72 * x / axis.figure.dpi, 72 * y / axis.figure.dpi) for x, y in places]
    moves = apart(in_points, BUBBLE_POINTS)
    for number, cost, value, (right, up) in zip(numbers, costs, values, moves, strict=True):
        axis.annotate(
            str(number),
            (cost, value),
            xytext=(right, up),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8} if right or up else None,
            **_bubble(number),
        )


def apart(places: Sequence[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Return how far to move each place so that none is nearer to another than `gap`.

    Each stays where it is or goes to the nearest free spot on rings around it; the first come
    first.
    """
    spots = [(0.0, 0.0)]
    for ring in range(1, 6):
        spots += [
            (ring * gap * math.cos(angle), ring * gap * math.sin(angle))
            for angle in (math.pi * part / 6 for part in range(12))
        ]
    taken: list[tuple[float, float]] = []
    moves = []
    for x, y in places:
        free = (m for m in spots if all(math.dist((x + m[0], y + m[1]), t) >= gap for t in taken))
        move = next(free, (0.0, 0.0))
        moves.append(move)
        taken.append((x + move[0], y + move[1]))
    return moves


def _bubble(number: int) -> dict[str, Any]:
    """Return the style of a number in a coloured circle."""
    circle = {
        "boxstyle": "circle,pad=0.22",
        "facecolor": series_style(number - 1)["color"],
        "edgecolor": PAPER,
        "linewidth": 1,
    }
    return {"ha": "center", "va": "center", "fontsize": 9, "color": PAPER, "bbox": circle}


def _numbered_legend(figure: Any, titles: Sequence[str]) -> None:
    """Write which number is which configuration, at the right of all panels."""
    handles = [_nothing() for _ in titles]
    texts = [f"{number}  {title}" for number, title in enumerate(shorten_titles(titles, 32), 1)]
    figure.legend(handles, texts, loc="outside right upper", handlelength=0, handletextpad=0)


def _nothing() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none")


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
