"""One session of an evaluation: from what a user asked for to a folder of results."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.datasets.registry import Dataset, load_dataset, select
from evals.manifest import continued, describe_dataset, describe_graph, make_manifest
from evals.options import RunOptions, requests_of
from evals.plan import OWNED, PlanError, PlannedCell, plan_cells
from evals.prices import LISTED, Prices, price_of
from evals.records import ResultLine, key_of
from evals.run_folder import (
    CACHE,
    MANIFEST,
    RESULTS,
    SUPERSEDED,
    RunFolderError,
    RunWriter,
    every_line,
    read_manifest,
)
from evals.runner import Ending, Observer, Runner, Task
from evals.topics import Linked, coverage, link_question
from graph_store import GraphStore, shared_store
from nodes.model_spec import parse_spec
from nodes.question_file import GoldQuestion

CHECKPOINTS = "checkpoints.sqlite"


class Watcher(Observer):
    """An observer that also hears what a session is about to do."""

    def planned(self, tasks: Sequence[Task], done: Sequence[ResultLine]) -> None:
        """Hear which questions are still to be asked, and which lines there are already."""


@dataclass(frozen=True)
class _Asked:
    """A data set with the questions taken and their topics (None where no graph is used)."""

    name: str
    dataset: Dataset
    questions: list[GoldQuestion]
    linked: list[Linked] | None
    selection: dict[str, Any]


async def run_session(
    options: RunOptions, watcher: Watcher, *, resume: bool = False, retry_failed: bool = False
) -> Ending:
    """Run an evaluation, or the rest of one.

    Args:
        options: what to run; without configurations a resumed run is continued as it was.
        watcher: hears how it gets on.
        resume: go on with the run that the folder holds.
        retry_failed: ask failed questions again.

    Raises:
        PlanError: there is nothing to run, or not so.
        RunFolderError: the folder holds a run already (without `resume`), or a different one.
        ValueError: a method, setting, data set, file or model cannot be used; the message names it.
    """
    requests = requests_of(options, resume=resume)
    known = _known_run(options.out, resume=resume)
    parts: list[tuple[list[PlannedCell], list[_Asked]]] = []
    manifest = known
    for request in requests:
        prepared = await asyncio.to_thread(_prepare, request, manifest, watcher.said)
        parts.append(prepared[:2])
        manifest = prepared[2]
    assert manifest is not None, "there is at least one request"
    options = requests[-1]
    with RunWriter(options.out) as writer:
        if _known_run(options.out, resume=resume) != known:
            raise RunFolderError(f"{options.out}: another evaluation has just begun there")
        writer.write_manifest(manifest)
        for one in (one for _, asked in parts for one in asked):
            writer.write_questions(_question_rows(one))
        paid = [*every_line(options.out / SUPERSEDED), *writer.lines]
        done = writer.lines
        if retry_failed:  # a failed line stays until there is another
            done = [line for line in done if line["outcome"] != "failed"]
        every = (task for cells, asked in parts for task in _tasks(cells, asked, done))
        tasks = list({task.key: task for task in every}.values())
        cells = [cell for cells, _ in parts for cell in cells]
        watcher.planned(tasks, done)
        async with _graphs(options, cells) as graphs:
            runner = Runner(
                writer.append,
                watcher,
                concurrency=manifest["concurrency"],
                budgets=options.budgets,
                prices=_prices(options),
                thread_prefix=manifest["run_id"],
                graph_fault=_graph_watch(manifest["graph"]),
                graphs=graphs,
            )
            role_models = _role_models(manifest)
            for line in paid:
                runner.count(line, role_models.get(key_of(line)[:3], {}))
            return await runner.run(tasks)


def _known_run(out: Path, *, resume: bool) -> dict[str, Any] | None:
    if not (out / MANIFEST).exists():
        if (out / RESULTS).exists() and (out / RESULTS).stat().st_size:
            raise RunFolderError(f"{out}: holds results without {MANIFEST}; give another --out")
        return None
    if not resume:
        raise RunFolderError(
            f"{out}: holds a run; --resume goes on with it, another --out begins anew"
        )
    return read_manifest(out)


def _prepare(
    options: RunOptions, known: dict[str, Any] | None, tell: Callable[[str], None]
) -> tuple[list[PlannedCell], list[_Asked], dict[str, Any]]:
    """Validate everything that can be wrong before any model is asked."""
    for name, option in {**OWNED, "model": "--model", "seed": "--seed"}.items():
        if name in options.settings:
            raise PlanError(f"--set {name}: use {option} instead")
    loaded = _load(options)
    shared = {**options.settings, "graph": options.graph}
    if options.cache:
        shared["response_cache"] = str(options.out / CACHE)
    cells = plan_cells(
        options.configurations,
        datasets=list(loaded),
        models=options.models,
        shared=shared,
        seed=options.seed,
    )
    _check_money(options, cells)
    store = shared_store(str(options.graph)) if any(c.uses_graph for c in cells) else None
    asked = [_linked(name, *loaded[name], options, store, tell) for name in loaded]
    manifest = make_manifest(
        cells=cells,
        datasets=[
            describe_dataset(
                a.name,
                a.dataset,
                len(a.questions),
                a.selection,
                coverage(a.linked) if a.linked is not None else {},
            )
            for a in asked
        ],
        graph=describe_graph(store) if store else None,
        seed=options.seed,
        concurrency=options.concurrency or _concurrency(options.models),
        budgets=options.budgets,
        prices=_prices(options),
        preset=options.preset,
        run_id=uuid.uuid4().hex[:12],
    )
    before = known.get("requests", []) if known else []
    request = options.to_json()
    manifest["requests"] = [*before, *([] if request in before else [request])]
    return cells, asked, continued(known, manifest) if known else manifest


def _linked(
    name: str,
    dataset: Dataset,
    questions: list[GoldQuestion],
    options: RunOptions,
    store: GraphStore | None,
    tell: Callable[[str], None],
) -> _Asked:
    selection = {"limit": options.limit, "offset": options.offset, "shuffle": options.shuffle}
    if store is None:
        return _Asked(name, dataset, questions, None, selection)
    tell(f"linking the topics of {len(questions):,} questions of {name}")
    linked = [link_question(store, question) for question in questions]
    return _Asked(name, dataset, questions, linked, selection)


def _graph_watch(graph: Mapping[str, Any] | None) -> Callable[[], str]:
    """Return what tells whether the store's file is still the one that the run began with."""
    path = Path(graph["location"]) if graph else None
    first = _identity(path)

    def fault() -> str:
        if first == _identity(path):
            return ""
        return f"the graph {path} was replaced or removed; the questions in work are left open"

    return fault


def _identity(path: Path | None) -> tuple[int, int, int] | None:
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if status else None


def _role_models(manifest: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, str]]:
    return {
        (cell["label"], cell["dataset"], cell["model"]): cell["context"].get("role_models") or {}
        for cell in manifest["cells"]
    }


def _load(options: RunOptions) -> dict[str, tuple[Dataset, list[GoldQuestion]]]:
    loaded: dict[str, tuple[Dataset, list[GoldQuestion]]] = {}
    for text in options.datasets:
        dataset = load_dataset(text)
        questions = select(
            dataset.questions,
            limit=options.limit,
            offset=options.offset,
            shuffle_seed=options.shuffle,
        )
        if not questions:
            raise PlanError(f"--dataset {text}: no question is left after --offset and --limit")
        if dataset.name in loaded:
            raise PlanError(f"--dataset {text}: a data set named '{dataset.name}' is given twice")
        loaded[dataset.name] = dataset, questions
    return loaded


def _check_money(options: RunOptions, cells: Sequence[PlannedCell]) -> None:
    if options.budgets.dollars is None:
        return
    prices = _prices(options)
    for cell in cells:
        for spec in {cell.context.model, *cell.context.role_models.values()}:
            if price_of(spec, prices) is None:
                raise PlanError(f"--max-dollars: the price of '{spec}' is not known; give --prices")


def _prices(options: RunOptions) -> Prices:
    return {**LISTED, **options.prices}


def _concurrency(models: Sequence[str]) -> int:
    return 1 if any(parse_spec(model).kind == "local" for model in models) else 4


def _question_rows(asked: _Asked) -> list[dict[str, Any]]:
    """Return the lines of `questions.jsonl`; without a graph they say nothing of topics."""
    rows = [{**question.to_json(), "dataset": asked.name} for question in asked.questions]
    for row, linked in zip(rows, asked.linked or (), strict=False):
        row |= {"topics": list(linked.topics), "linking": linked.how}
    return rows


def _tasks(
    cells: Sequence[PlannedCell], asked: Sequence[_Asked], done: Sequence[ResultLine]
) -> list[Task]:
    """Return what is still to be asked: for each question every configuration in turn."""
    have = {key_of(line) for line in done}
    tasks = []
    for one in asked:
        own = [cell for cell in cells if cell.dataset == one.name]
        topics = [linked.topics for linked in one.linked or ()] or [()] * len(one.questions)
        for question, found in zip(one.questions, topics, strict=True):
            tasks += [Task(cell, question, found) for cell in own]
    return [task for task in tasks if task.key not in have]


@asynccontextmanager
async def _graphs(
    options: RunOptions, cells: Sequence[PlannedCell]
) -> AsyncIterator[dict[str, Any]]:
    """Yield graphs that keep their final states in the folder, when that is wanted."""
    if not options.checkpoints:
        yield {}
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(options.out / CHECKPOINTS)) as saver:
        methods = {cell.method.name: cell.method for cell in cells}
        yield {name: m.module.build_graph(checkpointer=saver) for name, m in methods.items()}
