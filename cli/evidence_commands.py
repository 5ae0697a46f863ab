"""The command about evidence: `subgraph`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import output
from cli.options import BAD_INPUT, Command, CommandError, Debug, Json, Store, examples
from cli.resolving import resolve_topics
from cli.store_commands import print_facts

if TYPE_CHECKING:
    from graph_store import Subgraph
    from graph_store.embedding import Embedder
    from graph_store.model import Path as ReasoningPath


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(
        "subgraph",
        cls=Command,
        epilog=examples(
            'graphmoot subgraph sample "Who built Marrow Light?" --topic Marrow_Light',
            'graphmoot subgraph sample "Who built Marrow Light?" --k 1 --png evidence.png',
        ),
    )(subgraph)


def subgraph(
    store: Store,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="What the evidence is to bear on.", show_default=False
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENTITY...",
            help="Where the search starts: id, name or alias; else what the question names.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Paths kept for an entity.")] = 3,
    width: Annotated[int, typer.Option(min=1, help="Neighbours kept in an expansion.")] = 3,
    max_distance: Annotated[
        float, typer.Option(min=0, help="Farthest distance, hops divided by confidence.")
    ] = 3.0,
    alpha: Annotated[
        float, typer.Option(min=0, help="Weight of the confidence in a path's score.")
    ] = 1.0,
    direction: Annotated[
        Literal["both", "out"],
        typer.Option(help="Walk facts both ways, or only from head to tail."),
    ] = "both",
    ignore_confidence: Annotated[
        bool, typer.Option("--ignore-confidence", help="Take every confidence as 1 (DoG-E).")
    ] = False,
    similarity: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A sentence-transformers model; default all-MiniLM-L6-v2."
        ),
    ] = None,
    max_candidates: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Candidates scored in one expansion at most."),
    ] = None,
    max_texts: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Texts scored in one search at most.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the evidence as a picture.")
    ] = None,
    graphml: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the evidence as GraphML.")
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Find the evidence around entities that bears on a question."""
    for name, number in (("--max-distance", max_distance), ("--alpha", alpha)):
        if math.isnan(number):
            raise CommandError(f"{name} is not a number", BAD_INPUT)
    if not question.strip():
        raise CommandError("the question is empty", BAD_INPUT)
    from graph_store import open_store

    graph = open_store(store)
    # Before the embedding model loads: a wrong name should be told at once.
    topics = resolve_topics(graph, question, topic or [])
    from graph_store import find_evidence

    limits = {"max_candidates": max_candidates, "max_texts": max_texts}
    found = find_evidence(
        graph,
        question,
        topics,
        k=k,
        width=width,
        max_distance=max_distance,
        alpha=alpha,
        direction=direction,
        ignore_confidence=ignore_confidence,
        embedder=_embedder(similarity),
        **{name: value for name, value in limits.items() if value is not None},
    )
    # Files first: whoever pipes the table into `head` still wants them.
    _write_files(found, png, graphml)
    if as_json:
        output.print_json(found.to_dict())
    else:
        _print(found)
    _tell(found)


def _embedder(name: str | None) -> Embedder | None:
    if name is None:
        return None
    from graph_store.embedding import load_embedder

    return load_embedder(name)


def _write_files(found: Subgraph, png: Path | None, graphml: Path | None) -> None:
    if png is None and graphml is None:
        return
    from graph_store.drawing import draw_subgraph, write_graphml

    if png is not None:
        draw_subgraph(found, png)
        output.note(f"wrote {png}")
    if graphml is not None:
        write_graphml(found, graphml)
        output.note(f"wrote {graphml}")


def _print(found: Subgraph) -> None:
    if not found.paths:
        return
    rows = [
        [rank, walked(path), path.score, path.confidence, path.distance]
        for rank, path in enumerate(found.paths, 1)
    ]
    output.print_table(
        ["rank", "path", "score", "confidence", "distance"],
        rows,
        title="Paths",
        numbers=("rank", "score", "confidence", "distance"),
    )
    print()
    print_facts(list(found.facts), title="Facts")


def walked(path: ReasoningPath) -> str:
    """Return a path as it was walked: `A —r→ B ←s— C`, the arrows as the facts are stored."""
    from graph_store.errors import shorten

    here = path.topic
    words = [shorten(path.facts[0].name_of(here), 40)]
    for fact in path.facts:
        arrow = f"—{fact.relation}→" if fact.head == here else f"←{fact.relation}—"
        here = fact.other(here)
        words += [arrow, shorten(fact.name_of(here), 40)]
    return " ".join(words)


def _tell(found: Subgraph) -> None:
    stats = found.stats
    if not found.paths:
        output.note("no evidence here; a larger --max-distance reaches less certain facts")
    output.note(
        f"{len(found.paths):,} paths, {len(found.facts):,} facts; {stats.visited:,} entities "
        f"visited, {stats.texts_embedded:,} texts embedded, {stats.texts_pruned:,} pruned, "
        f"{stats.milliseconds:,.0f} ms"
    )
    if stats.approximate:
        output.note(f"approximate: {'; '.join(stats.notes)} (--max-candidates, --max-texts)")
