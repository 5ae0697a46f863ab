"""`graphmoot eval report`: tables, a page and a CSV file of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import output
from cli.options import Command, Debug, Json, examples

if TYPE_CHECKING:
    from evals.report.summary import Summary
    from evals.report.tables import Table

MOST_PAIRS = 30
"""Pairs that the terminal shows; the page and JSON have all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "report",
        cls=Command,
        epilog=examples(
            "graphmoot eval report csqa --html csqa.html",
            "graphmoot eval report monday tuesday --csv all.csv --against zero-shot",
        ),
    )(report)


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Runs of `graphmoot eval run`; where two answer the same, the later one counts.",
            show_default=False,
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write one page with tables, plots and every question in full."
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a row for each configuration and question."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Compare with this configuration only; default: all pairs."
        ),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Report on runs: metrics with intervals, cost, paired tests, published numbers beside ours."""
    from evals.report.caution import cautions
    from evals.report.files import check_place
    from evals.report.merge import read_runs
    from evals.report.summary import summarise_runs

    for file in (html, csv):
        if file is not None:
            check_place(file)
    summary = summarise_runs(read_runs(folders), against)
    _write_files(summary, html, csv)
    for note in summary.merged.notes:
        output.note(f"note: {note}")
    if as_json:
        output.print_json({**summary.to_json(), "cautions": cautions(summary)})
    else:
        _print(summary)


def _write_files(summary: Summary, html: Path | None, csv: Path | None) -> None:
    from graph_store.whole_file import write_whole

    if html is not None:
        from evals.report.page import page_text

        output.note(f"{html}: {output.size(write_whole(html, page_text(summary)))}")
    if csv is not None:
        from evals.report.csv_file import csv_text

        output.note(f"{csv}: {output.size(write_whole(csv, csv_text(summary)))}")


def _print(summary: Summary) -> None:
    from evals.report.caution import cautions
    from evals.report.tables import tables

    for table in map(_shortened, tables(summary)):
        output.print_table(table.columns, table.rows, title=table.title, numbers=[*table.numbers])
        if table.note:
            print(output.visible(table.note))
        print()
    for text in cautions(summary):
        print(output.visible(text))


def _shortened(table: Table) -> Table:
    """Return a long table of paired tests cut to the pairs with the least p-values."""
    if table.name != "paired" or len(table.rows) <= MOST_PAIRS:
        return table
    # Texts of p sort as the numbers do: "<0.001" comes before "0.001".
    rows = sorted(table.rows, key=lambda row: row[-2])[:MOST_PAIRS]
    note = (
        f"The {MOST_PAIRS} of {len(table.rows)} pairs with the least p; --against LABEL compares "
        f"with one configuration, --html and --json have all. {table.note}"
    )
    return replace(table, rows=rows, note=note)
