"""Budgets: when one is reached, a method concludes from what it has and says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodes.context import MethodContext
from nodes.state import MethodState
from nodes.usage import live_calls, live_tokens


def elapsed_seconds(trace: Sequence[dict[str, Any]]) -> float:
    """Return the time that a run's nodes took: nodes of one superstep ran at once."""
    steps: dict[int, float] = {}
    for entry in trace:
        step = entry.get("step", 0)
        steps[step] = max(steps.get(step, 0.0), entry.get("seconds", 0.0))
    return sum(steps.values())


def budget_reached(
    state: MethodState, settings: MethodContext, *, calls_ahead: int = 0
) -> str | None:
    """Return which budget allows no further round, in words; None while all do.

    Args:
        state: the run so far.
        settings: the budgets.
        calls_ahead: model calls that the next round and the conclusion need.
    """
    calls = state.get("calls") or []
    made, limit = live_calls(calls), settings.max_llm_calls
    if limit is not None and made + calls_ahead > limit:
        return f"the budget of {limit} model calls"
    if settings.max_total_tokens is not None and live_tokens(calls) >= settings.max_total_tokens:
        return f"the budget of {settings.max_total_tokens:,} tokens"
    if (
        settings.max_seconds is not None
        and elapsed_seconds(state.get("trace") or []) >= settings.max_seconds
    ):
        return f"the budget of {settings.max_seconds:g} seconds"
    return None
