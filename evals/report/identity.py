"""What makes two cells the same: and titles that tell apart those of one label that are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.records import ResultLine
from evals.report.cells import Identity, ReportCell

CellKey = tuple[str, str, str]
"""(label, data set, model)."""


def key_of_cell(entry: Mapping[str, Any] | ResultLine) -> CellKey:
    """Return the label, data set and model of a manifest's entry or a result line."""
    return str(entry["label"]), str(entry["dataset"]), str(entry["model"])


def identity_of(entry: Mapping[str, Any], manifest: Mapping[str, Any]) -> Identity:
    """Return all that a cell's answers depend on, each part as a text."""
    context = entry.get("context") or entry.get("settings") or {}
    identity = {"method": str(entry.get("method"))}
    identity |= {f"setting {name}": _text(value) for name, value in sorted(context.items())}
    for module, prompts in sorted((entry.get("prompts") or {}).items()):
        identity[f"prompts {module}"] = str(prompts.get("sha256") or prompts.get("version"))
    for dataset in manifest.get("datasets") or []:
        if dataset["name"] == entry["dataset"]:
            identity["data set"] = str(dataset.get("sha256"))
    graph = manifest.get("graph")
    if graph and _uses_graph(entry):
        identity["graph"] = str(graph.get("sha256") or graph.get("location"))
    return identity


def _uses_graph(entry: Mapping[str, Any]) -> bool:
    for place in (entry, entry.get("context") or {}):
        for name in ("uses_graph", "use_graph"):
            if name in place:
                return bool(place[name])
    from workflows import registry

    try:
        settings = registry.get(str(entry.get("method"))).context
    except registry.UnknownMethodError:
        return True
    return bool(getattr(settings, "use_graph", True))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def name_apart(cells: Iterable[ReportCell]) -> list[str]:
    """Give cells of one label titles that tell them apart; return what to say about it."""
    groups: dict[CellKey, list[ReportCell]] = {}
    for cell in cells:
        groups.setdefault(key_of_cell(cell.described), []).append(cell)
    notes: dict[str, None] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        parts = {part for cell in group for part in cell.identity}
        differing = sorted(p for p in parts if len({c.identity.get(p) for c in group}) > 1)
        for number, cell in enumerate(group, 1):
            cell.title = f"{cell.label} [{_distinction(cell, differing)}]"
            if any(other.title == cell.title for other in group if other is not cell):
                cell.title = f"{cell.title[:-1]}, {number}]"
        what = ", ".join(part.removeprefix("setting ") for part in differing)
        notes[
            f"'{group[0].label}' is not the same configuration in these runs ({what} differ); "
            f"shown apart as {', '.join(cell.title for cell in group)}"
        ] = None
    return list(notes)


def _distinction(cell: ReportCell, differing: Sequence[str]) -> str:
    words = []
    for part in differing:
        kind, _, name = part.partition(" ")
        value = cell.identity.get(part, "none")
        if part == "graph":
            words.append(_graph_name(cell))
        elif kind == "setting":
            words.append(f"{name}={value}")
        elif kind == "method":
            words.append(value)
        else:
            words.append(f"{kind} {value[:7]}")
    return ", ".join(dict.fromkeys(words))


def _graph_name(cell: ReportCell) -> str:
    if cell.noise:
        return f"noise {100 * noise_share(cell.noise):g} %{noise_kind(cell.noise)}"
    graph = cell.manifest.get("graph") or {}
    return f"graph {Path(str(graph.get('location', 'none'))).stem}"


def noise_share(noise: Mapping[str, Any]) -> float:
    """Return the share of facts that were corrupted, 0 to 1."""
    names = ("share", "share_reached", "share_asked")
    return float(next((noise[name] for name in names if noise.get(name) is not None), 0))


def noise_kind(noise: Mapping[str, Any]) -> str:
    """Return what else is to be said of a corruption; '' for the usual one."""
    settings = noise.get("settings") or noise
    usual = {"corrupt": "tail", "tails": "same-relation", "confidence": "keep", "seed": 0}
    told = [f"{n} {settings[n]}" for n, value in usual.items() if settings.get(n, value) != value]
    return "".join(f", {text}" for text in told)
