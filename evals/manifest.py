"""The manifest of a run: all that its numbers depend on, and whether a run may be continued."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.noise.paths import RECORD_SUFFIX
from evals.plan import NOT_TOLD, PlannedCell
from evals.prices import Price
from evals.run_folder import FORMAT, RunFolderError
from graph_store.whole_file import content_hash

if TYPE_CHECKING:
    from evals.datasets.registry import Dataset
    from evals.runner import Budgets
    from graph_store.protocol import GraphStore

PACKAGES = (
    "graphmoot",
    "langgraph",
    "langchain-core",
    "langchain-openai",
    "sentence-transformers",
    "onnxruntime",
    "xllamacpp",
    "numpy",
    "scipy",
)
_RUNTIME_ONLY = NOT_TOLD - {"seed"}


def describe_graph(store: GraphStore) -> dict[str, Any]:
    """Return a graph's location, counts and, where it is a file, the hash of its bytes.

    `noise` is the record of `graphmoot eval noise`, for a version that it has written.
    """
    info = store.info()
    path = Path(store.location)
    sha256 = content_hash(path) if path.is_file() else None
    return {
        "location": store.location,
        "sha256": sha256,
        "facts": info.facts,
        "entities": info.entities,
        "relations": info.relations,
        "noise": _noise_of(path, sha256),
    }


def _noise_of(path: Path, sha256: str | None) -> dict[str, Any] | None:
    """Return the noise record beside a store, when it is of this very file."""
    record = path.with_name(path.name + RECORD_SUFFIX)
    if not record.exists():
        return None
    try:
        noise = json.loads(record.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RunFolderError(f"{record}: cannot be read: {error}") from error
    return noise if isinstance(noise, dict) and noise.get("sha256") == sha256 else None


def describe_cell(cell: PlannedCell) -> dict[str, Any]:
    """Return a cell with all its settings and the versions of its prompts."""
    settings = cell.context.model_dump(mode="json")
    return {
        **cell.to_json(),
        "context": {name: value for name, value in settings.items() if name not in _RUNTIME_ONLY},
        "prompts": cell.method.prompts,
        "files": _files_of(settings),
        "uses_graph": cell.uses_graph,
    }


def _files_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of files that settings name."""
    path = settings.get("examples")
    return {"examples": content_hash(Path(path).expanduser())} if path else {}


def describe_dataset(
    name: str, dataset: Dataset, count: int, selection: Mapping[str, Any], linking: dict[str, int]
) -> dict[str, Any]:
    """Return a data set's source, hash, the part taken of it, and how its topics were linked."""
    return {
        "name": name,
        "path": str(dataset.path),
        "sha256": dataset.sha256,
        "reader": dataset.reader,
        "questions": count,
        "selection": dict(selection),
        "linking": linking,
    }


def make_manifest(
    *,
    cells: Sequence[PlannedCell],
    datasets: Sequence[dict[str, Any]],
    graph: dict[str, Any] | None,
    seed: int | None,
    concurrency: int,
    budgets: Budgets,
    prices: Mapping[str, Price],
    preset: str | None,
    run_id: str,
) -> dict[str, Any]:
    """Return the manifest of a new run."""
    return {
        "format": FORMAT,
        "run_id": run_id,
        "sessions": [_session()],
        "created": _now(),
        "graphmoot": _version("graphmoot"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "preset": preset,
        "seed": seed,
        "graph": graph,
        "cells": [describe_cell(cell) for cell in cells],
        "datasets": list(datasets),
        "concurrency": concurrency,
        "budgets": asdict(budgets),
        "prices": {spec: price.model_dump() for spec, price in prices.items()},
    }


def continued(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a run that goes on; configurations and questions may be added.

    Raises:
        RunFolderError: what has been answered under another state of affairs would be mixed with
            what is to come: changed settings, prompts, data or graph; the message says which.
    """
    if missing := [name for name in ("run_id", "sessions", "created", "graph") if name not in old]:
        raise RunFolderError(f"cannot resume: the manifest has no '{missing[0]}'")
    if old["graph"] and new["graph"]:
        _same("the graph", _graph_identity(old["graph"]), _graph_identity(new["graph"]))
    datasets = {dataset["name"]: dataset for dataset in old["datasets"]}
    for dataset in new["datasets"]:
        known = datasets.get(dataset["name"])
        if known:
            what = f"data set {dataset['name']}"
            _same(what, known["sha256"], dataset["sha256"])
            for part in ("offset", "shuffle"):
                _same(f"{what}: {part}", known["selection"][part], dataset["selection"][part])
        if not known or dataset["questions"] >= known["questions"]:
            linking = dataset["linking"] or (known or {}).get("linking") or {}
            datasets[dataset["name"]] = {**dataset, "linking": linking}
    cells = {_cell_key(cell): cell for cell in old["cells"]}
    for cell in new["cells"]:
        if known := cells.get(_cell_key(cell)):
            _same_cell(known, cell)
        cells[_cell_key(cell)] = cell
    return {
        **new,
        "run_id": old["run_id"],
        "created": old["created"],
        "sessions": [*old["sessions"], _session()],
        "preset": new["preset"] or old.get("preset"),
        "graph": new["graph"] or old["graph"],
        "cells": list(cells.values()),
        "datasets": list(datasets.values()),
    }


def _same_cell(known: Mapping[str, Any], cell: Mapping[str, Any]) -> None:
    what = f"'{cell['label']}'"
    _same(f"{what}: method", known["method"], cell["method"])
    for name in sorted({*known["context"], *cell["context"]}):
        _same(f"{what}: {name}", known["context"].get(name), cell["context"].get(name))
    _same(f"{what}: the file of examples", known.get("files") or {}, cell["files"])
    for module in sorted({*known["prompts"], *cell["prompts"]}):
        before, now = (prompts.get(module) for prompts in (known["prompts"], cell["prompts"]))
        if before != now:
            raise RunFolderError(
                f"cannot resume: the prompts in '{module}' have changed since; start anew with "
                "another --out"
            )


def _same(what: str, before: Any, now: Any) -> None:
    if before != now:
        raise RunFolderError(
            f"cannot resume: {what} was {_short(before)} and is now {_short(now)}; run it as "
            "before, or start anew with another --out"
        )


def _short(value: Any) -> str:
    text = str(value)
    return f"{text[:40]}…" if len(text) > 40 else text


def _graph_identity(graph: Mapping[str, Any]) -> Any:
    return graph["sha256"] or graph["location"]


def _cell_key(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    return cell["label"], cell["dataset"], cell["model"]


def _session() -> dict[str, Any]:
    return {"started": _now(), "graphmoot": _version("graphmoot")}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
