"""Plots of how methods behave: K and rounds at the end, and whether stated confidence holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evals.report.drawing import (
    INK,
    PAPER,
    RAMP,
    SERIES,
    SOFT,
    Plot,
    as_plot,
    drawing,
    shorten_titles,
)
from evals.report.summary import CellSummary, Summary

if TYPE_CHECKING:
    from evals.calibration import Calibration
    from evals.records import QuestionScore

NARROW = 0.08
"""Narrower shares get no number written into their bar."""


def ending_plot(summary: Summary) -> Plot | None:
    """Plot the shares of K and of the round at which debates ended (the paper's Fig. 3)."""
    cells = [cell for cell in summary.cells if _endings(cell, "round")]
    if not cells:
        return None
    parts = [("K at the end", "k"), ("round at the end", "round")]
    parts = [(what, key) for what, key in parts if any(_endings(cell, key) for cell in cells)]
    with drawing() as figure_of:
        figure = figure_of(figsize=(2.8 + 3.7 * len(parts), 1.15 + 0.38 * max(2, len(cells))))
        axes = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
        for axis, (what, key) in zip(axes, parts, strict=True):
            _ending_panel(axis, [_endings(cell, key) for cell in cells], what)
        axes[0].set_yticks(range(len(cells)), shorten_titles([_name(c, summary) for c in cells]))
        axes[0].set_ylim(len(cells) - 0.5, -0.5)
        caption = "Of the questions whose debate came to an end; failed ones are left out."
        return as_plot(figure, "ending", "K and round when the debate ended", caption)


def _endings(cell: CellSummary, key: str) -> Counter[int]:
    """Count K or the round at the end over the questions that ended in a debate."""
    ended = [
        row.line["result"].get("ended") or {}
        for row in cell.cell.rows.values()
        if row.score.outcome != "failed"
    ]
    return Counter(int(end[key]) for end in ended if end.get("round") and end.get(key))


def _ending_panel(axis: Any, counts: Sequence[Counter[int]], what: str) -> None:
    values = sorted({value for count in counts for value in count})
    shades = _shades(len(values))
    for number, count in enumerate(counts):
        start = 0.0
        for value, shade in zip(values, shades, strict=True):
            share = count[value] / max(1, count.total())
            axis.barh(
                number,
                100 * share,
                left=100 * start,
                color=shade,
                edgecolor=PAPER,
                height=0.7,
                label=f"{value}" if number == 0 else None,
            )
            if share >= NARROW:
                ink = PAPER if shade in RAMP[2:] else INK
                middle = 100 * (start + share / 2)
                axis.text(middle, number, f"{100 * share:.0f}", ha="center", va="center", color=ink)
            start += share
    axis.set_xlim(0, 100)
    axis.set_title(what)
    axis.set_xlabel("share of questions (%)")
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), title=what.split(maxsplit=1)[0])
    axis.tick_params(axis="y", length=0)


def _shades(count: int) -> list[str]:
    if count <= 1:
        return [RAMP[2]] * count
    return [RAMP[round(number * (len(RAMP) - 1) / (count - 1))] for number in range(count)]


def calibration_plot(summary: Summary) -> Plot | None:
    """Plot reliability diagrams: accuracy in bins of stated confidence, a panel a configuration."""
    panels = _calibrations(summary)
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    with drawing() as figure_of:
        figure = figure_of(figsize=(0.7 + 2.35 * columns, 0.6 + 2.6 * rows))
        figure.set_layout_engine("constrained", h_pad=0.1)
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axis in grid[len(panels) :]:
            axis.set_axis_off()
        for axis, (name, calibration) in zip(grid, panels.items(), strict=False):
            _calibration_panel(axis, calibration, name)
        figure.supxlabel("stated confidence (%)", fontsize=10.5, color=INK)
        figure.supylabel("accuracy (%)", fontsize=10.5, color=INK)
        caption = (
            "Each dot is a bin of questions, its area their number, the line its 95 % interval; "
            "on the diagonal, confidence is what it says. Only answers with a stated confidence, "
            "of all data sets together."
        )
        return as_plot(figure, "calibration", "Stated confidence against accuracy", caption)


def _calibrations(summary: Summary) -> dict[str, Calibration]:
    """Return the calibration of each configuration and model that states confidences."""
    from evals.calibration import calibrate

    several = len({cell.cell.model for cell in summary.cells}) > 1
    scores: dict[str, list[QuestionScore]] = {}
    for cell in summary.cells:
        name = f"{cell.cell.title}, {cell.cell.model}" if several else cell.cell.title
        scores.setdefault(name, []).extend(cell.cell.scores)
    found = {name: calibrate(own) for name, own in scores.items()}
    return {name: calibration for name, calibration in found.items() if calibration.stated}


def _calibration_panel(axis: Any, calibration: Calibration, name: str) -> None:
    from evals.estimates import mean_estimate

    axis.plot([0, 100], [0, 100], color=SOFT, linewidth=0.9, linestyle="--")
    for part in calibration.bins:
        if not part.n:
            continue
        accuracy, confidence = part.accuracy or 0.0, part.confidence or 0.0
        right = round(accuracy * part.n)
        reach = mean_estimate([1.0] * right + [0.0] * (part.n - right))
        place, area = 100 * confidence, 12 + 180 * part.n / calibration.stated
        axis.plot([place] * 2, [100 * reach.low, 100 * reach.high], color=SERIES[0], linewidth=1)
        axis.scatter([place], [100 * accuracy], s=area, color=SERIES[0], zorder=3)
    axis.set(xlim=(-9, 109), ylim=(-9, 109), xticks=(0, 50, 100), yticks=(0, 50, 100))
    axis.set_aspect("equal")
    axis.grid(visible=True)
    ece, title = 100 * (calibration.ece or 0), shorten_titles([name], 34)[0]
    axis.set_title(f"{title}\nECE {ece:.0f} %, n = {calibration.stated}", fontsize=9.5)


def _name(cell: CellSummary, summary: Summary) -> str:
    """Return a title with what is needed to tell it from the others of the report."""
    own = cell.cell
    telling = [
        part
        for part in ("dataset", "model")
        if len({getattr(other.cell, part) for other in summary.cells}) > 1
    ]
    return ", ".join((own.title, *(getattr(own, part) for part in telling)))
