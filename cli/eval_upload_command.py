"""`graphmoot eval upload`: a run's data sets and experiments to LangSmith."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import output
from cli.options import FAILED, Command, CommandError, Debug, Json, examples

if TYPE_CHECKING:
    from evals.langsmith_upload import UploadSummary


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "upload",
        cls=Command,
        epilog=examples("LANGSMITH_API_KEY=… graphmoot eval upload csqa"),
    )(upload)


def upload(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder of: graphmoot eval run --out DIR.", show_default=False
        ),
    ],
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Send a run to LangSmith; needs LANGSMITH_API_KEY. Again: only what is new is sent."""
    from evals.langsmith_sending import UploadError
    from evals.langsmith_upload import upload as send

    try:
        with output.progress(of_bytes=False) as tell:
            summary = send(run, progress=tell)
    except UploadError as error:
        raise CommandError(str(error), FAILED) from error
    if as_json:
        output.print_json(summary.to_json())
        return
    _print_summary(summary)


def _print_summary(summary: UploadSummary) -> None:
    rows = [["data set", one.name, one.examples, one.new] for one in summary.datasets]
    rows += [["experiment", one.name, one.results, one.new] for one in summary.experiments]
    output.print_table(["kind", "name", "entries", "new"], rows, numbers=("entries", "new"))
    # Links stand on lines of their own: a table would break them.
    pages = [(one.name, one.url) for one in summary.datasets]
    pages += [(one.name, one.url) for one in summary.experiments]
    for name, url in pages:
        print(output.visible(f"{name}: {url}"))
    if any(e.moved_hours for e in summary.experiments):
        output.note(
            "results older than a day are shown at later times, for LangSmith takes no others; "
            "'started' in their metadata is when they ran"
        )
