"""The report as one HTML file that fetches nothing: styles, plots, script and results are in it.

Text of graphs and models is untrusted: the template escapes it, the script makes text nodes of it,
and a content security policy forbids every request and every script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evals.report.caution import WIDE, cautions, half_width
from evals.report.details import page_data
from evals.report.identity import noise_kind, noise_share
from evals.report.matrix import matrix_table
from evals.report.summary import Summary
from evals.report.tables import tables

if TYPE_CHECKING:
    from evals.report.drawing import Plot

_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""Signs that could end a script element; inside JSON their escapes mean the same."""

PACKAGE = "evals.report"


def page_text(summary: Summary) -> str:
    """Return the page.

    Raises:
        MissingExtraError: the extra `plot` is not installed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(PACKAGE, "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    script = files(PACKAGE).joinpath("page/script.js").read_text(encoding="utf-8")
    data = page_data([cell.cell for cell in summary.cells], [cell.costs for cell in summary.cells])
    return environment.get_template("page.html.jinja").render(
        title=_title(summary),
        facts=_facts(summary),
        runs=_runs(summary),
        configurations=_configurations(summary),
        tables=[table for table in (matrix_table(summary), *tables(summary)) if table.rows],
        plots=plots(summary),
        cautions=cautions(summary),
        wide=half_width(summary) > WIDE,
        notes=summary.merged.notes,
        data=json_for_script(data),
        filters=_filters(data),
        script=script,
        script_hash=_hash(script),
    )


def plots(summary: Summary) -> list[Plot]:
    """Return the plots that have data."""
    from evals.report.accuracy_plots import accuracy_plot, cost_plot
    from evals.report.behaviour_plots import calibration_plot, ending_plot
    from evals.report.curve_plots import noise_plot, sweep_plot

    makers = (accuracy_plot, cost_plot, sweep_plot, noise_plot, ending_plot, calibration_plot)
    return [plot for make in makers if (plot := make(summary)) is not None]


def json_for_script(value: Any) -> str:
    """Return JSON that cannot end the script element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.translate(_UNSAFE)


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _title(summary: Summary) -> str:
    datasets = dict.fromkeys(cell.cell.dataset for cell in summary.cells)
    models = dict.fromkeys(cell.cell.model_name for cell in summary.cells)
    return f"{', '.join(datasets)} with {', '.join(models)}"


def _filters(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what the list of questions can be filtered by."""
    used = {sign for q in data["questions"] for _, _, signs in q["c"].values() for sign in signs}
    return {
        "datasets": list(dict.fromkeys(cell["d"] for cell in data["cells"])),
        "cells": list(dict.fromkeys(cell["t"] for cell in data["cells"])),
        "signs": [[n, text] for n, text in enumerate(data["signs"]) if n in used],
    }


def _facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the few things of the runs that the head of the page tells."""
    manifests = [run.manifest for run in summary.merged.runs]
    prompts = [
        f"{module} {prompt.get('version')}"
        for cell in summary.cells
        for module, prompt in (cell.cell.described.get("prompts") or {}).items()
    ]
    facts = {
        "Preset": [str(m["preset"]) for m in manifests if m.get("preset")],
        "Data": [text for m in manifests for text in _datasets(m).splitlines()],
        "Graph": [_graph(m.get("graph")) for m in manifests],
        "Models": [cell.cell.model_name for cell in summary.cells],
        "Prompts": prompts,
        "Seed": [str(m.get("seed")) for m in manifests],
        "graphmoot": [str(m.get("graphmoot")) for m in manifests],
    }
    return [(name, "; ".join(dict.fromkeys(texts))) for name, texts in facts.items() if texts]


def _runs(summary: Summary) -> list[tuple[str, list[str]]]:
    """Return what was run: rows of a name and a text for each run."""
    manifests = [run.manifest for run in summary.merged.runs]
    rows = [
        ("folder", [run.path.name for run in summary.merged.runs]),
        ("preset", [str(m.get("preset") or "") for m in manifests]),
        ("data sets", [_datasets(m) for m in manifests]),
        ("graph", [_graph(m.get("graph")) for m in manifests]),
        ("models", [_models(m) for m in manifests]),
        ("sampling seed", [str(m.get("seed")) for m in manifests]),
        ("started", [str(m.get("created") or "") for m in manifests]),
        ("concurrency", [str(m.get("concurrency") or "") for m in manifests]),
        ("budgets", [_pairs(m.get("budgets")) for m in manifests]),
        ("graphmoot", [str(m.get("graphmoot") or "") for m in manifests]),
        ("machine", [f"Python {m.get('python')}, {m.get('platform')}" for m in manifests]),
        ("packages", [_pairs(m.get("packages"), " ") for m in manifests]),
    ]
    return [(name, texts) for name, texts in rows if any(texts)]


def _datasets(manifest: Mapping[str, Any]) -> str:
    told = []
    for dataset in manifest.get("datasets") or []:
        selection = _pairs(dataset.get("selection"), " ") or "all"
        told.append(
            f"{dataset['name']}: {dataset.get('questions')} questions ({selection}; reader "
            f"{dataset.get('reader')}; SHA-256 {str(dataset.get('sha256'))[:12]}…)"
        )
    return "\n".join(told)


def _graph(graph: Mapping[str, Any] | None) -> str:
    if not graph:
        return "none"
    counts = ", ".join(
        f"{graph[part]:,} {part}" for part in ("facts", "entities", "relations") if graph.get(part)
    )
    told = [str(graph.get("location")), counts]
    if graph.get("sha256"):
        told.append(f"SHA-256 {str(graph['sha256'])[:12]}…")
    if graph.get("noise"):
        told.append(f"noise {100 * noise_share(graph['noise']):g} %{noise_kind(graph['noise'])}")
    return "; ".join(part for part in told if part)


def _models(manifest: Mapping[str, Any]) -> str:
    specs: dict[str, None] = {}
    for cell in manifest.get("cells") or []:
        specs[str(cell["model"])] = None
        specs.update(dict.fromkeys(((cell.get("context") or {}).get("role_models") or {}).values()))
    return ", ".join(specs)


def _pairs(values: Mapping[str, Any] | None, sign: str = " = ") -> str:
    return ", ".join(f"{k}{sign}{v}" for k, v in (values or {}).items() if v is not None)


def _configurations(summary: Summary) -> list[dict[str, Any]]:
    """Return each configuration once, with its settings and the versions of its prompts."""
    rows: dict[str, dict[str, Any]] = {}
    for cell in summary.cells:
        described = cell.cell.described
        prompts: Mapping[str, Mapping[str, Any]] = described.get("prompts") or {}
        row = {
            "title": cell.cell.title,
            "method": described.get("method"),
            "settings": _pairs(described.get("settings")),
            "prompts": ", ".join(
                f"{module} version {prompt.get('version')} ({str(prompt.get('sha256'))[:10]}…)"
                for module, prompt in prompts.items()
            ),
            "context": _sorted_pairs(cell.cell.context),
        }
        rows.setdefault(json.dumps(row, default=str), row)
    return list(rows.values())


def _sorted_pairs(values: Mapping[str, Any]) -> Sequence[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in sorted(values.items())]
