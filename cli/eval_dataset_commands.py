"""Commands about data sets: `eval datasets`, `eval convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import output
from cli.options import BAD_INPUT, Command, CommandError, Debug, Json, examples

if TYPE_CHECKING:
    from evals.datasets.sources import Source


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command("datasets", cls=Command, epilog=examples("graphmoot eval datasets"))(datasets)
    app.command(
        "convert",
        cls=Command,
        epilog=examples(
            "graphmoot eval convert obqa-train --to examples.jsonl --limit 8 --shuffle 1",
            "graphmoot eval convert csqa:train_rand_split.jsonl --to csqa-train.jsonl.gz",
        ),
    )(convert)


def datasets(as_json: Json = False, _debug: Debug = False) -> None:
    """List the data sets known by name, and which of them are there."""
    from evals.datasets.registry import VARIABLE, data_root
    from evals.datasets.sources import SOURCES

    rows = [_described(source) for source in SOURCES.values()]
    if as_json:
        output.print_json(rows)
        return
    columns = ["name", "title", "answers", "questions", "licence", "home"]
    cells = [
        [row["name"], row["title"], row["question_type"], _count(row), row["licence"], row["home"]]
        for row in rows
    ]
    output.print_table(columns, cells, numbers=("questions",))
    for row in rows:
        if row["fault"]:
            output.note(row["fault"])
    output.note(f"files are looked for below {data_root()}; {VARIABLE} names another folder")


def _count(row: dict[str, Any]) -> object:
    if row["fault"]:
        return "unreadable"
    return row["questions"] if row["present"] else "absent"


def _described(source: Source) -> dict[str, Any]:
    from evals.datasets.registry import load_dataset, path_of

    path = path_of(source)
    row: dict[str, Any] = {
        "name": source.name,
        "title": source.title,
        "question_type": source.question_type,
        "present": path.is_file(),
        "questions": None,
        "path": str(path),
        "licence": source.licence,
        "home": source.home,
        "note": source.note,
        "fault": None,
    }
    if row["present"]:
        try:
            found = load_dataset(source.name)
        except (ValueError, OSError) as error:
            row["fault"] = str(error)
        else:
            row["questions"], row["note"] = len(found.questions), found.note
    return row


def convert(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="A data set's name, a file, or NAME:FILE; see: graphmoot eval datasets.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="FILE", help="JSON lines to write, gzip if it ends in .gz; replaced."
        ),
    ],
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most N questions; default all.")
    ] = None,
    offset: Annotated[
        int, typer.Option(metavar="N", min=0, help="Leave out the first N questions.")
    ] = 0,
    shuffle: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Before --offset and --limit, bring in a random order."),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Write a data set, or a part of it, as questions in our own format."""
    from evals.datasets.own_lines import write_questions
    from evals.datasets.registry import load_dataset, select

    found = load_dataset(dataset)
    chosen = select(found.questions, limit=limit, offset=offset, shuffle_seed=shuffle)
    if not chosen:
        raise CommandError(
            f"--offset {offset}: '{dataset}' has only {len(found.questions):,} questions", BAD_INPUT
        )
    written = write_questions(to, chosen, source=found.path)
    values = {
        "dataset": found.name,
        "reader": found.reader,
        "read": len(found.questions),
        "written": len(chosen),
        "to": str(written),
        "licence": found.licence,
        "note": found.note,
    }
    if as_json:
        output.print_json(values)
    else:
        output.print_pairs(values.items())
