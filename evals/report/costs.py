"""What questions cost: calls, tokens, sequential steps, seconds, money.

Every cost is told twice. *Asked* counts all calls that the method makes, also those whose reply
came from the response cache, so that a shared cache does not make a method look cheap; *live*
counts the calls that were really made in this run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from evals.prices import Price, cost_of
from evals.records import ResultLine
from evals.report.cells import ReportCell
from nodes.usage import Call, summarise


@dataclass(frozen=True)
class Spending:
    """Calls and tokens, of one question or as means."""

    calls: float
    input_tokens: float
    output_tokens: float
    prefix_cached_tokens: float
    sequential_steps: float

    @property
    def tokens(self) -> float:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, float]:
        """Return all of it under its public names."""
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "tokens": self.tokens,
            "prefix_cached_tokens": self.prefix_cached_tokens,
            "sequential_steps": self.sequential_steps,
        }


@dataclass(frozen=True)
class QuestionCost:
    """What one question cost.

    Attributes:
        asked: with cached replies counted as if they had been asked for.
        live: calls really made.
        seconds: wall time; None when a reply came from the cache, for it then tells nothing.
        asked_seconds: sum over all calls of what their replies took when really asked for; more
            than wall time where calls ran at once.
        dollars: price of all calls, without the response cache; None when a price is not known.
        unreadable: calls that had to repair an unreadable reply.
        truncated: calls whose reply hit its token limit.
    """

    asked: Spending
    live: Spending
    seconds: float | None
    asked_seconds: float
    dollars: float | None
    unreadable: int
    truncated: int


@dataclass(frozen=True)
class CellCost:
    """Means a question over a cell.

    Attributes:
        asked: see `QuestionCost`.
        live: see `QuestionCost`.
        seconds_mean: wall time of the questions without cached replies; None when there are none.
        seconds_median: the same.
        seconds_n: how many questions those are.
        asked_seconds: mean sum of what the replies took when really asked for.
        dollars: mean price of all calls; None when one is not known.
        n: questions.
        unreadable: repairs of unreadable replies, in all.
        truncated: replies that hit their token limit, in all.
    """

    asked: Spending
    live: Spending
    seconds_mean: float | None
    seconds_median: float | None
    seconds_n: int
    asked_seconds: float
    dollars: float | None
    n: int
    unreadable: int
    truncated: int

    def to_json(self) -> dict[str, Any]:
        """Return all of it under its public names."""
        return {
            "asked": self.asked.to_json(),
            "live": self.live.to_json(),
            "seconds": {
                "mean": self.seconds_mean,
                "median": self.seconds_median,
                "n": self.seconds_n,
            },
            "asked_seconds": self.asked_seconds,
            "dollars": self.dollars,
            "repair_calls": self.unreadable,
            "truncated_replies": self.truncated,
        }


def question_cost(line: ResultLine, cell: ReportCell) -> QuestionCost:
    """Return what a question cost, by the price table of the cell's manifest."""
    calls: list[Any] = line["calls"]
    asked: list[Any] = [{**call, "cached": False} for call in calls]
    return QuestionCost(
        asked=_spending(asked),
        live=_spending(calls),
        seconds=None if any(call["cached"] for call in calls) else line["seconds"],
        asked_seconds=sum(call.get("asked_seconds", call["seconds"]) for call in calls),
        dollars=cost_of(asked, _specs(calls, cell), _prices(cell)),
        unreadable=sum(call["repair"] for call in calls),
        truncated=sum(call["truncated"] for call in calls),
    )


def cell_cost(costs: Sequence[QuestionCost]) -> CellCost:
    """Return the means over a cell's questions, of which there is at least one."""
    seconds = [cost.seconds for cost in costs if cost.seconds is not None]
    dollars = [cost.dollars for cost in costs if cost.dollars is not None]
    return CellCost(
        asked=_mean([cost.asked for cost in costs]),
        live=_mean([cost.live for cost in costs]),
        seconds_mean=fmean(seconds) if seconds else None,
        seconds_median=median(seconds) if seconds else None,
        seconds_n=len(seconds),
        asked_seconds=fmean(cost.asked_seconds for cost in costs),
        dollars=fmean(dollars) if len(dollars) == len(costs) else None,
        n=len(costs),
        unreadable=sum(cost.unreadable for cost in costs),
        truncated=sum(cost.truncated for cost in costs),
    )


def _spending(calls: Sequence[Call]) -> Spending:
    usage = summarise(calls)
    return Spending(
        calls=usage["llm_calls"],
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        prefix_cached_tokens=usage["prefix_cached_tokens"],
        sequential_steps=usage["sequential_llm_steps"],
    )


def _mean(parts: Sequence[Spending]) -> Spending:
    return Spending(
        calls=fmean(part.calls for part in parts),
        input_tokens=fmean(part.input_tokens for part in parts),
        output_tokens=fmean(part.output_tokens for part in parts),
        prefix_cached_tokens=fmean(part.prefix_cached_tokens for part in parts),
        sequential_steps=fmean(part.sequential_steps for part in parts),
    )


def _specs(calls: Sequence[Mapping[str, Any]], cell: ReportCell) -> dict[str, str]:
    """Return the model specification of each role that was called."""
    by_role = cell.context.get("role_models") or {}
    return {call["role"]: by_role.get(call["role"], cell.model) for call in calls}


def _prices(cell: ReportCell) -> dict[str, Price]:
    table = cell.manifest.get("prices") or {}
    return {spec: Price.model_validate(price) for spec, price in table.items()}
