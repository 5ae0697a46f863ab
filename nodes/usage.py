"""What model calls cost: one record a call, summed by role at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict


class Call(TypedDict):
    """One model call.

    `step` is the graph's superstep: calls of one step and different roles or samples ran at once.
    `cached` means that the reply came from the response cache and cost nothing. `repair` marks the
    second call for a reply that could not be read; `truncated` one that hit its token limit.
    `sample` numbers draws of one prompt.
    `asked_seconds` is what the reply took when it was really asked for: for a live call `seconds`
    itself, for a cached one what it would have cost.
    """

    role: str
    step: int
    sample: NotRequired[int]
    model: str
    input_tokens: int
    prefix_cached_tokens: int
    output_tokens: int
    seconds: float
    asked_seconds: float
    cached: bool
    repair: bool
    truncated: bool


def summarise(calls: Sequence[Call]) -> dict[str, Any]:
    """Return the `usage` part of a result.

    `llm_calls` and tokens count live calls only; cached ones are counted in `cached_calls`.
    `sequential_llm_steps` is the longest chain of live calls that had to wait for each other.
    """
    total = _sum(calls)
    roles = dict.fromkeys(call["role"] for call in calls)
    total["by_role"] = {role: _sum([c for c in calls if c["role"] == role]) for role in roles}
    total["sequential_llm_steps"] = _sequential_steps(calls)
    return total


def live_calls(calls: Sequence[Call]) -> int:
    """Return how many calls were really made."""
    return sum(not call["cached"] for call in calls)


def live_tokens(calls: Sequence[Call]) -> int:
    """Return how many tokens were really read and written."""
    return sum(c["input_tokens"] + c["output_tokens"] for c in calls if not c["cached"])


def _sum(calls: Sequence[Call]) -> dict[str, Any]:
    live = [call for call in calls if not call["cached"]]
    return {
        "llm_calls": len(live),
        "cached_calls": len(calls) - len(live),
        "repair_calls": sum(call["repair"] for call in live),
        "input_tokens": sum(call["input_tokens"] for call in live),
        "prefix_cached_tokens": sum(call["prefix_cached_tokens"] for call in live),
        "output_tokens": sum(call["output_tokens"] for call in live),
        "seconds": round(sum(call["seconds"] for call in live), 3),
    }


def _sequential_steps(calls: Sequence[Call]) -> int:
    depth: dict[int, Counter[tuple[str, int]]] = {}
    for call in calls:
        if not call["cached"]:
            chain = call["role"], call.get("sample", 0)
            depth.setdefault(call["step"], Counter())[chain] += 1
    return sum(max(chains.values()) for chains in depth.values())
