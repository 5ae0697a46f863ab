"""`graphmoot eval noise`: versions of a graph with a share of its facts corrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import output
from cli.options import Command, Debug, Json, Store, examples

if TYPE_CHECKING:
    from evals.noise import NoiseRecord


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "noise",
        cls=Command,
        epilog=examples(
            "graphmoot eval noise cn15k.graphmoot --share 0.1 0.2 0.4",
            "graphmoot eval noise cn15k.graphmoot --share 0.2 --confidence lower "
            "--to cn15k-doubted.graphmoot",
            "graphmoot eval noise sample --share 0.1 0.3 --corrupt both --seed 7 "
            "--to sample-{share}-{seed}.graphmoot",
        ),
    )(noise)


def noise(
    store: Store,
    share: Annotated[
        list[float],
        typer.Option(
            metavar="X...",
            help="Share of the facts that is corrupted, 0 to 1; self-loops do not count.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The store to write; {share} and {seed} in the name stand for their values. "
            "Default: NAME-noise-{share}.graphmoot beside the graph.",
        ),
    ] = None,
    corrupt: Annotated[
        Literal["tail", "relation", "both"],
        typer.Option(help="What is replaced in a fact; both: the one or the other."),
    ] = "tail",
    tails: Annotated[
        Literal["same-relation", "uniform"],
        typer.Option(
            help="Replacement tails: those that the relation has elsewhere, or all entities."
        ),
    ] = "same-relation",
    confidence: Annotated[
        Literal["keep", "lower", "remove"],
        typer.Option(
            help="Of a corrupted fact: that of the fact it replaces, a lower one, or 1.0 for "
            "every fact of the graph."
        ),
    ] = "keep",
    factor: Annotated[
        str,
        typer.Option(
            metavar="LOW:HIGH",
            help="With --confidence lower: a confidence is multiplied by a number drawn between.",
        ),
    ] = "0.2:0.6",
    floor: Annotated[
        float,
        typer.Option(metavar="C", help="With --confidence lower: none is lowered further."),
    ] = 0.01,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="With one seed, what is false at a share is false at higher ones."
        ),
    ] = 0,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Write versions of a graph with false facts, to draw accuracy against noise."""
    from evals.noise import NoiseSettings, corrupt_to_shares, default_pattern

    settings = NoiseSettings(
        corrupt=corrupt,
        tails=tails,
        confidence=confidence,
        factor=_parse_factor(factor),
        floor=floor,
        seed=seed,
    )
    with output.progress() as tell:
        records = corrupt_to_shares(
            store,
            to=to or default_pattern(store),
            shares=share,
            settings=settings,
            progress=tell,
        )
    if as_json:
        output.print_json([record.to_json() for record in records])
        return
    _print_records(records)


def _parse_factor(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        return float(low), float(high if colon else low)
    except ValueError:
        raise ValueError(f"--factor '{text}': is not LOW:HIGH, such as 0.2:0.6") from None


def _print_records(records: list[NoiseRecord]) -> None:
    columns = ["share", "corrupted", "tails", "relations", "facts", "store"]
    rows = [
        [
            record.share_reached,
            sum(record.corrupted.values()),
            record.corrupted["tail"],
            record.corrupted["relation"],
            record.facts,
            record.store,
        ]
        for record in records
    ]
    output.print_table(columns, rows, numbers=columns[:-1])
    for record in records:
        output.note(f"{record.corrupted_facts}: the false facts and what they replaced")
