"""What a user asks of an evaluation, and what a resumed run goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from evals.plan import Configuration, PlanError
from evals.prices import Price, Prices
from evals.run_folder import read_manifest
from evals.runner import Budgets
from nodes.context import default_graph, default_model


@dataclass(frozen=True)
class RunOptions:
    """What a user asks for; everything that a resumed run needs again is kept in the manifest.

    Attributes:
        out: the run's folder.
        configurations: methods with settings.
        datasets: names or files of data sets.
        graph: store location; None for the default.
        models: model specifications; empty for the default.
        settings: for all methods that have them.
        limit: questions taken of each set; None for all.
        offset: questions left out at the start.
        shuffle: seed of a random order before offset and limit; None for the set's own order.
        seed: sampling seed.
        concurrency: questions in work at once; None: 1 for the embedded model, else 4.
        budgets: bounds of the whole run.
        prices: by model specification, beside those known.
        cache: keep replies in the folder and never ask for one twice.
        checkpoints: keep every question's final LangGraph state in the folder.
        preset: the preset that the configurations are of.
    """

    out: Path
    configurations: tuple[Configuration, ...] = ()
    datasets: tuple[str, ...] = ()
    graph: str | None = None
    models: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    offset: int = 0
    shuffle: int | None = None
    seed: int | None = 0
    concurrency: int | None = None
    budgets: Budgets = field(default_factory=Budgets)
    prices: Prices = field(default_factory=dict)
    cache: bool = True
    checkpoints: bool = False
    preset: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` makes the same options of, but for the folder."""
        kept = {
            name: value for name, value in asdict(self).items() if name not in ("out", "prices")
        }
        return {**kept, "prices": {spec: price.model_dump() for spec, price in self.prices.items()}}

    @classmethod
    def from_json(cls, out: Path, kept: Mapping[str, Any]) -> RunOptions:
        """Return the options that a manifest has kept."""
        values = dict(kept)
        values["configurations"] = tuple(Configuration(**row) for row in kept["configurations"])
        values["budgets"] = Budgets(**kept["budgets"])
        values["prices"] = {s: Price.model_validate(price) for s, price in kept["prices"].items()}
        values["datasets"], values["models"] = tuple(kept["datasets"]), tuple(kept["models"])
        return cls(out=out, **values)


def requests_of(options: RunOptions, *, resume: bool) -> list[RunOptions]:
    """Return what is to be run.

    That is what was asked for, with the defaults filled in; for a resumed run without
    configurations all that its manifest says was asked for, with what is given now in its place.

    Raises:
        PlanError: there is nothing to run, or nothing to ask.
        RunFolderError: the folder holds no run.
    """
    if not options.configurations and resume:
        kept = read_manifest(options.out).get("requests") or []
        if not kept:
            raise PlanError(
                "the manifest does not say what was asked for: give --method, --dataset"
            )
        return [_with_given(RunOptions.from_json(options.out, row), options) for row in kept]
    if not options.configurations:
        raise PlanError("there is nothing to run: give --method or --preset")
    if not options.datasets:
        raise PlanError("there is nothing to ask: give --dataset")
    models = options.models or (default_model(),)
    return [replace(options, models=models, graph=options.graph or default_graph())]


def _with_given(kept: RunOptions, options: RunOptions) -> RunOptions:
    plain = RunOptions(out=options.out)
    given = {
        one.name: value
        for one in fields(options)
        if (value := getattr(options, one.name)) != getattr(plain, one.name)
    }
    bounds = {name: value for name, value in asdict(options.budgets).items() if value is not None}
    return replace(kept, **{**given, "budgets": replace(kept.budgets, **bounds)})
