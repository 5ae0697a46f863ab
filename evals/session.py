"""One session of an evaluation: from what a user asked for to a folder of results."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from evals.datasets.registry import Dataset, load_dataset, select
from evals.manifest import continued, describe_dataset, describe_graph, make_manifest
from evals.plan import Configuration, PlanError, PlannedCell, plan_cells
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
    read_lines,
    read_manifest,
)
from evals.runner import Budgets, Ending, Observer, Runner, Task
from evals.topics import Linked, coverage, link_question
from graph_store import shared_store
from nodes.context import default_graph, default_model
from nodes.model_spec import parse_spec
from nodes.question_file import GoldQuestion

CHECKPOINTS = "checkpoints.sqlite"


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
        from evals.prices import Price

        values = dict(kept)
        values["configurations"] = tuple(Configuration(**row) for row in kept["configurations"])
        values["budgets"] = Budgets(**kept["budgets"])
        values["prices"] = {s: Price.model_validate(price) for s, price in kept["prices"].items()}
        values["datasets"], values["models"] = tuple(kept["datasets"]), tuple(kept["models"])
        return cls(out=out, **values)


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
    options = _complete(options, resume=resume)
    known = _known_run(options.out, resume=resume)
    cells, asked, manifest = await asyncio.to_thread(_prepare, options, known, watcher.said)
    with RunWriter(options.out) as writer:
        if _known_run(options.out, resume=resume) != known:
            raise RunFolderError(f"{options.out}: another evaluation has just begun there")
        writer.write_manifest(manifest)
        for one in asked:
            writer.write_questions(_question_rows(one))
        paid = [*every_line(options.out / SUPERSEDED), *read_lines(options.out)]
        done = read_lines(options.out)
        if retry_failed:  # a failed line stays until there is another
            done = [line for line in done if line["outcome"] != "failed"]
        tasks = _tasks(cells, asked, done)
        watcher.planned(tasks, done)
        async with _graphs(options, cells) as graphs:
            runner = Runner(
                writer.append,
                watcher,
                concurrency=manifest["concurrency"],
                budgets=options.budgets,
                prices=_prices(options),
                thread_prefix=manifest["run_id"],
                graphs=graphs,
            )
            role_models = _role_models(manifest)
            for line in paid:
                runner.count(line, role_models.get(key_of(line)[:3], {}))
            return await runner.run(tasks)


def _complete(options: RunOptions, *, resume: bool) -> RunOptions:
    """Fill in what was not said: from the manifest of a resumed run, else the defaults."""
    if not options.configurations and resume:
        kept = RunOptions.from_json(options.out, read_manifest(options.out)["request"])
        said = {k: v for k, v in asdict(options.budgets).items() if v is not None}
        plain = RunOptions(out=options.out)
        given = {
            field.name: value
            for field in fields(options)
            if (value := getattr(options, field.name)) != getattr(plain, field.name)
        }
        return replace(kept, **{**given, "budgets": replace(kept.budgets, **said)})
    if not options.configurations:
        raise PlanError("there is nothing to run: give --method or --preset")
    if not options.datasets:
        raise PlanError("there is nothing to ask: give --dataset")
    models = options.models or (default_model(),)
    return replace(options, models=models, graph=options.graph or default_graph())


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
    on_graph = any(cell.uses_graph for cell in cells)
    store = shared_store(str(options.graph)) if on_graph else None
    asked = []
    for name, (dataset, questions) in loaded.items():
        if store is not None:
            tell(f"linking the topics of {len(questions):,} questions of {name}")
        linked = [link_question(store, q) for q in questions] if store is not None else None
        selection = {"limit": options.limit, "offset": options.offset, "shuffle": options.shuffle}
        asked.append(_Asked(name, dataset, questions, linked, selection))
    manifest = make_manifest(
        cells=cells,
        datasets=[
            describe_dataset(
                a.name,
                a.dataset,
                len(a.questions),
                a.selection,
                coverage(a.linked or ()) if a.linked is not None else {},
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
    manifest["request"] = options.to_json()
    return cells, asked, continued(known, manifest) if known else manifest


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
        yield {c.method.name: c.method.module.build_graph(checkpointer=saver) for c in cells}
