"""Numbers as texts."""

from __future__ import annotations

from evals.records import Estimate

NOTHING = "–"


def percent(estimate: Estimate | None, *, bounds: bool = True) -> str:
    """Return an estimate in percent with its interval: `70.0 [52.1, 83.3]`."""
    if estimate is None or estimate.n == 0:
        return NOTHING
    value, low, high = (100 * part for part in (estimate.value, estimate.low, estimate.high))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]" if bounds else f"{value:.1f}"


def amount(value: float | None, digits: int = 1) -> str:
    """Return a number with separators of thousands; `–` for None."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def probability(value: float | None) -> str:
    """Return a p-value."""
    if value is None:
        return NOTHING
    return "<0.001" if value < 0.001 else f"{value:.3f}"
