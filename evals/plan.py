"""What an evaluation is to run: configurations of methods, on data sets, with models.

A configuration is written `[LABEL=]METHOD[:NAME=VALUE,…]`, such as `zero-shot` or
`DoG-E=debate-on-graph:ignore_confidence=true`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.records import Cell
from nodes.context import MethodContext
from nodes.model_spec import parse_spec
from workflows import registry
from workflows.registry import Method


class PlanError(ValueError):
    """An evaluation cannot be run as it was asked for."""


@dataclass(frozen=True)
class Configuration:
    """A method with settings, under the name that tables give it."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedCell:
    """A configuration on one data set with one model, its settings validated."""

    label: str
    method: Method
    dataset: str
    context: MethodContext
    settings: Mapping[str, Any]

    @property
    def uses_graph(self) -> bool:
        """Whether the method looks into the graph at all, with these settings."""
        return bool(getattr(self.context, "use_graph", True))

    def to_json(self) -> Cell:
        """Return the cell as the manifest has it."""
        return Cell(
            label=self.label,
            method=self.method.name,
            dataset=self.dataset,
            model=self.context.model,
            settings=dict(self.settings),
        )


def parse_configuration(text: str) -> Configuration:
    """Read `[LABEL=]METHOD[:NAME=VALUE,…]`; commas inside brackets do not separate.

    Raises:
        PlanError: a setting has no `=`, or its name comes twice.
    """
    label, rest = _split_label(text)
    method, colon, settings_text = rest.partition(":")
    settings: dict[str, Any] = {}
    for part in _split_settings(settings_text) if colon else []:
        name, is_set, value = part.partition("=")
        if not is_set or not name.strip():
            raise PlanError(f"--method '{text}': '{part}' is not NAME=VALUE")
        if name.strip() in settings:
            raise PlanError(f"--method '{text}': {name.strip()} is given twice")
        settings[name.strip()] = value.strip()
    shown = f"[{settings_text.strip()}]" if settings else ""
    return Configuration(label or f"{method.strip()}{shown}", method.strip(), settings)


def _split_label(text: str) -> tuple[str, str]:
    """Return the label ('' without one) and the rest, which begins with a method's name.

    Labels may hold `=` and `:`, as the papers' row names do: `UKG (K=1)=debate-on-graph:fixed_k=1`.
    """
    names = "|".join(map(re.escape, registry.names()))
    labelled = re.match(rf"\s*(?:{names})(?::|\s*$)", text)
    found = None if labelled else re.search(rf"=\s*(?:{names})(?::|\s*$)", text)
    if found:
        return text[: found.start()].strip(), text[found.start() + 1 :].strip()
    before, _, settings = text.partition(":")
    label, equals, method = before.partition("=")
    if not equals or labelled:
        return "", text.strip()
    return label.strip(), f"{method.strip()}:{settings}" if settings else method.strip()


def _split_settings(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def plan_cells(
    configurations: Sequence[Configuration],
    *,
    datasets: Sequence[str],
    models: Sequence[str],
    shared: Mapping[str, Any],
    seed: int | None,
) -> list[PlannedCell]:
    """Return every configuration on every data set with every model, validated.

    Args:
        configurations: each with a label of its own.
        datasets: names of the data sets.
        models: model specifications.
        shared: settings for every method that has them (`--set`, the graph, the cache).
        seed: sampling seed of configurations that set none themselves.

    Raises:
        PlanError: a label comes twice, or no method has one of the shared settings.
        ValueError: a method, a setting or a model specification is unknown or out of bounds.
    """
    _check_labels(configurations)
    for spec in models:
        parse_spec(spec)
    methods = [registry.get(configuration.method) for configuration in configurations]
    _check_owned(configurations)
    for name in shared:
        if not any(name in method.context.model_fields for method in methods):
            raise PlanError(f"--set {name}: none of these methods has such a setting")
    cells = []
    for dataset in datasets:
        for model in models:
            for configuration, method in zip(configurations, methods, strict=True):
                fields = method.context.model_fields
                common = {name: value for name, value in shared.items() if name in fields}
                own = {"seed": seed, **common, **configuration.settings}
                context = method.make_context({"model": model, **own})
                method.check(context)
                cells.append(
                    PlannedCell(
                        configuration.label, method, dataset, context, _told(method, context)
                    )
                )
    seen: set[tuple[str, str, str]] = set()
    for cell in cells:
        key = cell.label, cell.dataset, cell.context.model
        if key in seen:
            raise PlanError(
                f"'{cell.label}' on {cell.dataset} with {cell.context.model} comes twice"
            )
        seen.add(key)
    return cells


OWNED = {"graph": "--graph", "response_cache": "--no-cache"}
"""Settings of a whole run, which no configuration may have for itself."""


def _check_owned(configurations: Iterable[Configuration]) -> None:
    for configuration in configurations:
        for name, option in OWNED.items():
            if name in configuration.settings:
                raise PlanError(
                    f"'{configuration.label}': {name} holds for the whole run; give {option}, and "
                    "run other graphs into other folders"
                )


def _check_labels(configurations: Iterable[Configuration]) -> None:
    seen: set[str] = set()
    for configuration in configurations:
        if configuration.label in seen:
            raise PlanError(
                f"two configurations are called '{configuration.label}'; name one: "
                f"--method NAME={configuration.method}…"
            )
        seen.add(configuration.label)


NOT_TOLD = frozenset(
    {"graph", "model", "seed", "response_cache", "timeout_seconds", "max_retries", "search_ahead"}
)
"""Settings that do not make a configuration another one; the manifest has them elsewhere."""


def _told(method: Method, context: MethodContext) -> dict[str, Any]:
    """Return the settings that differ from the method's defaults, as JSON values."""
    values = context.model_dump(mode="json")
    defaults = method.context().model_dump(mode="json")
    return {
        name: value
        for name, value in values.items()
        if value != defaults[name] and name not in NOT_TOLD
    }
