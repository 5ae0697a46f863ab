"""What model calls cost in money: a price table and its sums."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nodes.model_spec import parse_spec

PER = 1_000_000
"""Prices are for so many tokens."""


class Price(BaseModel):
    """US dollars for a million tokens; input that the server had cached costs `cached_input`."""

    model_config = ConfigDict(extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)


Prices = dict[str, Price]
"""Prices by model specification."""

LISTED: Prices = {
    "openai:gpt-4o-mini": Price(input=0.15, cached_input=0.075, output=0.60),
    "openai:gpt-4o": Price(input=2.50, cached_input=1.25, output=10.00),
    "openai:gpt-4.1-mini": Price(input=0.40, cached_input=0.10, output=1.60),
    "openai:gpt-3.5-turbo-0125": Price(input=0.50, output=1.50),
}
"""List prices that were public in 2025; `--prices FILE` gives others."""


def read_prices(path: Path) -> Prices:
    """Read a JSON object: model specification to `input`, `output`[, `cached_input`].

    Raises:
        ValueError: the file cannot be read, or is not of that form; the message names the place.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON: {error}") from error
    prices: Prices = {}
    if not isinstance(rows, dict) or not rows:
        rows = {"(none)": rows}
    for model, row in rows.items():
        try:
            prices[model] = Price.model_validate(row)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise ValueError(f"{path}: model '{model}': {where}: {fault['msg']}") from error
    return prices


def price_of(spec: str, prices: Mapping[str, Price]) -> Price | None:
    """Return a model's price; what runs on a machine of one's own costs nothing; None: unknown."""
    if spec in prices:
        return prices[spec]
    kind = parse_spec(spec).kind
    return Price(input=0, output=0) if kind in ("local", "chat") else None


def cost_of(
    calls: Iterable[Mapping[str, Any]], spec_of: Mapping[str, str], prices: Mapping[str, Price]
) -> float | None:
    """Return what live calls cost in US dollars; None when one's price is not known.

    Args:
        calls: records of `nodes.usage.Call`.
        spec_of: model specification by role.
        prices: the price table.
    """
    total = 0.0
    for call in calls:
        if call["cached"]:
            continue
        price = price_of(spec_of[call["role"]], prices)
        if price is None:
            return None
        total += _cost(call, price)
    return total


def _cost(call: Mapping[str, Any], price: Price) -> float:
    kept = call["prefix_cached_tokens"] if price.cached_input is not None else 0
    fresh = call["input_tokens"] - kept
    spent = fresh * price.input + kept * (price.cached_input or 0)
    return float(spent + call["output_tokens"] * price.output) / PER
