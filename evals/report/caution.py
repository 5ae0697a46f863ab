"""What a report's numbers can and cannot show, computed from them."""

from __future__ import annotations

from evals.report.summary import Summary

WIDE = 0.05
"""An interval that reaches farther to either side hides differences that papers report."""

LEVEL = 0.05


def cautions(summary: Summary) -> list[str]:
    """Return sentences for a reader who is about to compare numbers."""
    return [
        text
        for text in (
            _on_intervals(summary),
            _on_tests(summary),
            _on_unequal(summary),
            _on_papers(summary),
        )
        if text
    ]


def half_width(summary: Summary) -> float:
    """Return how far the widest interval of an accuracy reaches to either side, 0 to 1."""
    estimates = [cell.metrics["accuracy"] for cell in summary.cells]
    return max(((e.high - e.low) / 2 for e in estimates if e.n), default=0.0)


def _on_intervals(summary: Summary) -> str:
    reach = half_width(summary)
    counts = sorted({cell.n for cell in summary.cells})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    told = f"With {n}, the 95 % interval of an accuracy reaches up to {100 * reach:.0f} points to "
    told += "either side"
    if reach > WIDE:
        return f"{told}: so few questions show little; smaller differences may be chance."
    return f"{told}."


def _on_tests(summary: Summary) -> str:
    tests = [comparison.test for comparison in summary.comparisons]
    if not tests:
        return ""
    sure = sum(test.p_holm is not None and test.p_holm < LEVEL for test in tests)
    return (
        f"Of {len(tests)} paired comparisons, {sure} show a difference that chance does not "
        f"explain (Holm-corrected p < {LEVEL:g})."
    )


def _on_unequal(summary: Summary) -> str:
    """Tell when cells of one data set and model have not answered the same questions."""
    groups: dict[tuple[str, str], list[set[str]]] = {}
    for cell in summary.cells:
        group = cell.cell.dataset, cell.cell.model
        groups.setdefault(group, []).append(set(cell.cell.rows))
    unequal = [
        ", ".join(group) for group, asked in groups.items() if any(s != asked[0] for s in asked)
    ]
    if not unequal:
        return ""
    return (
        f"Not all configurations have answered the same questions ({'; '.join(unequal)}): compare "
        "them by the paired tests, which are over the questions in common."
    )


def _on_papers(summary: Summary) -> str:
    numbers = [number for cell in summary.cells for number in cell.published()]
    if not numbers:
        return ""
    theirs = ", ".join(dict.fromkeys(number.model for number in numbers))
    ours = ", ".join(dict.fromkeys(cell.cell.model_name for cell in summary.cells))
    return (
        f"The published numbers are of other models ({theirs}; ours: {ours}), graphs and samples "
        "of the data sets: they show the order of the rows, not what ours should be."
    )
