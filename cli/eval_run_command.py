"""`graphmoot eval run`: methods on data sets with models, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import output
from cli.options import (
    ANSWERED,
    FAILED,
    INTERRUPTED,
    NO_ANSWER,
    Command,
    CommandError,
    Debug,
    Json,
    examples,
)

if TYPE_CHECKING:
    from evals.options import RunOptions
    from evals.plan import Configuration
    from evals.runner import Ending

STATUS = {"complete": ANSWERED, "budget": NO_ANSWER, "model": FAILED, "graph": FAILED}
"""Exit status by how a run ended; after a budget it is whole but not all was asked."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "run",
        cls=Command,
        epilog=examples(
            "graphmoot eval run --method zero-shot debate-on-graph --dataset sample --out first",
            "graphmoot eval run --method DoG=debate-on-graph "
            "DoG-E=debate-on-graph:ignore_confidence=true --dataset csqa --graph cn15k.graphmoot "
            "--model openai:gpt-4o-mini --limit 100 --max-dollars 2 --out csqa",
            "graphmoot eval run --preset dog-table-3 --dataset obqa --graph cn15k.graphmoot "
            "--limit 50 --out ablations",
            "graphmoot eval run --resume --out csqa",
        ),
    )(run)
    app.command("presets", cls=Command, epilog=examples("graphmoot eval presets"))(presets)


def run(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run's folder.", show_default=False)],
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]METHOD[:NAME=VALUE,…]...",
            help="A method, with settings of its own and a name for tables.",
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="See: graphmoot eval presets.")
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE...", help="See: graphmoot eval datasets."),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="STORE", help="The store; default: GRAPHMOOT_GRAPH, else the bundled sample."
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="SPEC...", help="As of: graphmoot ask.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE...", help="For all methods that have it."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Questions taken of each data set.")
    ] = None,
    offset: Annotated[int, typer.Option(metavar="N", min=0, help="Questions left out first.")] = 0,
    shuffle: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Take a random part rather than the first questions."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Sampling seed of the models.")] = 0,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Questions in work at once; default 1 for local models, else 4.",
        ),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Budget of the run: model calls.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Budget of the run: tokens.")
    ] = None,
    max_dollars: Annotated[
        float | None, typer.Option(metavar="X", min=0, help="Budget of the run: US dollars.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="Budget of this session: seconds.")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON: model to input, output[, cached_input] in US dollars for 1M tokens.",
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no replies; ask for equal prompts again.")
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Keep every question's final LangGraph state.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out; questions may be added.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: ask failed questions again.")
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Ask every question with every method and model; each result is on disk as it comes."""
    if retry_failed and not resume:
        raise ValueError("--retry-failed goes with --resume")
    from cli.running import split_pairs
    from evals.options import RunOptions
    from evals.prices import read_prices
    from evals.runner import Budgets

    rows, sets = _rows(method or [], preset, dataset or [])
    options = RunOptions(
        out=out,
        configurations=tuple(rows),
        datasets=tuple(sets),
        graph=graph,
        models=tuple(model or ()),
        settings=split_pairs(setting or [], "--set", "NAME=VALUE, such as max_rounds=2"),
        limit=limit,
        offset=offset,
        shuffle=shuffle,
        seed=seed,
        concurrency=concurrency,
        budgets=Budgets(max_calls, max_tokens, max_dollars, max_seconds),
        prices=read_prices(prices) if prices else {},
        cache=not no_cache,
        checkpoints=checkpoints,
        preset=preset,
    )
    ending, done, total = _watched(options, resume=resume, retry_failed=retry_failed)
    _print_run(options, ending, as_json=as_json)
    if ending.by != "complete":
        raise CommandError(
            f"{ending.text}; {done:,} of {total:,} done; "
            f"`graphmoot eval run --resume --out {out}` goes on",
            STATUS[ending.by],
        )


def _rows(
    methods: list[str], preset: str | None, datasets: list[str]
) -> tuple[list[Configuration], list[str]]:
    """Return the configurations and data sets of a preset and those that were given."""
    from evals.plan import parse_configuration
    from evals.presets import available, get_preset
    from workflows import registry

    rows = [parse_configuration(text) for text in methods]
    if preset is None:
        return rows, datasets
    chosen = get_preset(preset)
    known, missing = available(chosen.configurations, registry.names())
    if missing:
        output.note(f"left out, for there is no such method yet: {', '.join(missing)}")
    if chosen.note and not datasets:
        output.note(f"note: {chosen.note}")
    return [*known, *rows], datasets or list(chosen.datasets)


def _watched(options: RunOptions, *, resume: bool, retry_failed: bool) -> tuple[Ending, int, int]:
    """Run with progress; return how it ended, how many results there are, and of how many."""
    import asyncio

    from cli.eval_progress import EvalProgress
    from evals.session import run_session

    with EvalProgress() as progress:
        try:
            ending = asyncio.run(
                run_session(options, progress, resume=resume, retry_failed=retry_failed)
            )
        except KeyboardInterrupt:
            raise CommandError(
                f"interrupted; {progress.done:,} of {progress.total:,} done; "
                f"`graphmoot eval run --resume --out {options.out}` goes on",
                INTERRUPTED,
            ) from None
    return ending, progress.done, progress.total


def _print_run(options: RunOptions, ending: Ending, *, as_json: bool) -> None:
    from evals.run_folder import RESULTS, read_run
    from evals.short_table import short_rows

    run = read_run(options.out)
    if as_json:
        output.print_json(_summary(options, ending, len(run.lines)))
    else:
        columns, rows = short_rows(run)
        output.print_table(columns, rows, numbers=columns[3:])
        output.note(f"{options.out / RESULTS}: {len(run.lines):,} results")
        output.note(f"graphmoot eval report {options.out} --html report.html shows them")


def _summary(options: RunOptions, ending: Ending, count: int) -> dict[str, Any]:
    return {
        "out": str(options.out),
        "ended": {"by": ending.by, "text": ending.text},
        "results": count,
    }


def presets(as_json: Json = False, _debug: Debug = False) -> None:
    """List the presets: the papers' tables and figures."""
    from evals.presets import PRESETS

    if as_json:
        output.print_json(
            [
                {
                    "name": preset.name,
                    "title": preset.title,
                    "datasets": list(preset.datasets),
                    "note": preset.note,
                    "configurations": [
                        {"label": c.label, "method": c.method, "settings": dict(c.settings)}
                        for c in preset.configurations
                    ],
                }
                for preset in PRESETS.values()
            ]
        )
        return
    rows = [
        [p.name, p.title, ", ".join(c.label for c in p.configurations), ", ".join(p.datasets)]
        for p in PRESETS.values()
    ]
    output.print_table(["name", "of", "rows", "data sets"], rows)
