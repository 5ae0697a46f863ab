"""Commands about a store as such: `ingest`, `info`, `link`, `neighbors`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import output
from cli.options import NO_ANSWER, Command, CommandError, Debug, Json, Store, examples
from cli.resolving import check_relation, resolve_entity

if TYPE_CHECKING:
    from graph_store import Candidate, IngestReport, Triple

TABLE_FACTS = 25
"""Facts that `neighbors` prints in a table unless told otherwise; JSON has them all."""

Direction = Literal["out", "in", "both"]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(
        "ingest",
        cls=Command,
        epilog=examples(
            "graphmoot ingest facts.tsv --to facts.graphmoot",
            "graphmoot ingest weights.csv --to w.graphmoot --confidence-scale divide:10",
        ),
    )(ingest)
    app.command("info", cls=Command, epilog=examples("graphmoot info facts.graphmoot"))(info)
    app.command(
        "link", cls=Command, epilog=examples('graphmoot link facts.graphmoot "marrow light"')
    )(link)
    app.command(
        "neighbors",
        cls=Command,
        epilog=examples("graphmoot neighbors sample Marrow_Light --relation built_by"),
    )(neighbors)


def ingest(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="Files of facts: head, relation, tail, confidence, provenance; plain or gzip.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="STORE", help="The store to make; an old one is replaced as a whole."
        ),
    ],
    source_format: Annotated[
        str, typer.Option("--format", help="auto, tsv, csv or jsonl.")
    ] = "auto",
    confidence_scale: Annotated[
        str,
        typer.Option(help="How weights become confidences: none, divide:X, minmax or logistic."),
    ] = "none",
    default_confidence: Annotated[
        float | None,
        typer.Option(metavar="C", help="Confidence of rows without one, above 0 and at most 1."),
    ] = None,
    on_error: Annotated[
        Literal["fail", "skip"],
        typer.Option(help="A row at fault: write nothing, or leave the row out and count it."),
    ] = "fail",
    aliases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of entity and alias.")
    ] = None,
    names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of entity id and display name.")
    ] = None,
    relations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of relation id and its words.")
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Make a store of files of facts with confidences."""
    from graph_store import IngestError
    from graph_store.ingestion import ingest as make_store

    try:
        with output.progress() as tell:
            report = make_store(
                sources,
                to,
                source_format=source_format,
                confidence_scale=confidence_scale,
                default_confidence=default_confidence,
                on_error=on_error,
                names=names,
                aliases=aliases,
                relations=relations,
                progress=tell,
            )
    except IngestError as error:
        _tell_row_errors(error.row_errors, error.total)
        raise
    if as_json:
        output.print_json(report.to_dict())
        return
    _tell_row_errors(report.row_errors, sum(report.skipped.values()))
    _print_report(report)


def _tell_row_errors(row_errors: list[str], total: int) -> None:
    for line in row_errors:
        output.note(line)
    if total > len(row_errors) > 0:
        output.note(f"… and {total - len(row_errors):,} more")


def _print_report(report: IngestReport) -> None:
    pairs: list[tuple[str, object]] = [
        ("store", report.store),
        ("rows read", report.rows),
        ("facts", report.loaded),
        ("entities", report.entities),
        ("relations", report.relations),
        ("aliases", report.aliases),
        ("merged (the same fact again)", report.merged),
        ("self-loops", report.self_loops),
    ]
    pairs += [(f"skipped: {reason}", count) for reason, count in report.skipped.items()]
    pairs += [(f"unmatched lines of {kind}", count) for kind, count in report.unmatched.items()]
    pairs += [("size", output.size(report.bytes)), ("seconds", f"{report.seconds:.2f}")]
    output.print_pairs(pairs)


def info(store: Store, as_json: Json = False, _debug: Debug = False) -> None:
    """Count what is in a store."""
    from graph_store import open_store

    values = open_store(store).info().to_dict()
    if as_json:
        output.print_json(values)
        return
    pairs: list[tuple[str, object]] = [("store", store)]
    for key, value in values.items():
        label = key.replace("_", " ")
        if isinstance(value, dict):
            pairs += [(f"{label} {part}", number) for part, number in value.items()]
        else:
            pairs.append((label, value))
    output.print_pairs(pairs)


def link(
    store: Store,
    mention: Annotated[
        str,
        typer.Argument(metavar="MENTION", help="A name as people write it.", show_default=False),
    ],
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many candidates.")] = 10,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Rank the entities that a name may mean."""
    from graph_store import open_store
    from graph_store.errors import shorten

    candidates = open_store(store).link(mention, top=top)
    if as_json:
        output.print_json([candidate.to_dict() for candidate in candidates])
    elif candidates:
        _print_candidates(candidates)
    if not candidates:
        raise CommandError(f"nothing in this graph is named like '{shorten(mention)}'", NO_ANSWER)
    best = [c for c in candidates if c.score == candidates[0].score]
    if best[0].how == "trigram":
        output.note(f"nothing is named '{shorten(mention)}'; these are the nearest names")
    elif len(best) > 1:
        output.note(
            f"'{shorten(mention)}' is ambiguous: {len(best)} entities fit equally well; "
            "use the id of one"
        )


def _print_candidates(candidates: list[Candidate]) -> None:
    with_ids = any(c.entity != c.name for c in candidates)
    columns = ["rank", "name", *(["id"] if with_ids else []), "score", "how"]
    rows = [
        [rank, c.name, *([c.entity] if with_ids else []), c.score, c.how]
        for rank, c in enumerate(candidates, 1)
    ]
    output.print_table(columns, rows, numbers=("rank", "score"))


def neighbors(
    store: Store,
    entity: Annotated[
        str,
        typer.Argument(metavar="ENTITY", help="An entity's id, name or alias.", show_default=False),
    ],
    relation: Annotated[
        str | None, typer.Option(metavar="R", help="Only facts with this relation id.")
    ] = None,
    direction: Annotated[
        Direction, typer.Option(help="Facts that start here, end here, or both.")
    ] = "both",
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help=f"At most N facts; {TABLE_FACTS} in a table, all in JSON."
        ),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """List the facts around an entity, the most certain first."""
    from graph_store import open_store

    graph = open_store(store)
    found = resolve_entity(graph, entity)
    if relation is not None:
        check_relation(graph, found.id, relation)
    shown = limit if as_json else limit or TABLE_FACTS
    wanted = None if shown is None else shown + 1
    facts = graph.neighbors(found.id, relation=relation, direction=direction, limit=wanted)
    if as_json:
        output.print_json([fact.to_dict() for fact in facts[:shown]])
        return
    if not facts:
        output.note("no such facts")
        return
    print_facts(facts[:shown])
    if shown is not None and len(facts) > shown:
        output.note(f"there are more than these {shown:,} facts; --limit N shows more")


def print_facts(facts: list[Triple], title: str = "") -> None:
    """Print facts as a table; ids and notes get a column where some fact has one."""
    columns = ["head", "relation", "tail", "confidence"]
    optional = [
        ("head id", [f.head if f.head != f.head_name else None for f in facts]),
        ("tail id", [f.tail if f.tail != f.tail_name else None for f in facts]),
        ("provenance", [f.provenance for f in facts]),
        ("validity", [f.validity for f in facts]),
    ]
    extra = [(name, cells) for name, cells in optional if any(cells)]
    rows = [
        [f.head_name, f.relation, f.tail_name, f.confidence, *(cells[i] for _, cells in extra)]
        for i, f in enumerate(facts)
    ]
    output.print_table(
        [*columns, *(name for name, _ in extra)], rows, title=title, numbers=("confidence",)
    )
