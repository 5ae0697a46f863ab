"""`graphmoot eval upload`: a run's data sets and experiments to LangSmith."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        with _progress() as tell:
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


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show counted progress on stderr: a bar on a terminal, else a line a step."""
    if not sys.stderr.isatty():
        yield _plain_teller()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
    )
    with Progress(*columns, console=output.stderr(), transient=True) as bars:
        tasks: dict[str, int] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(output.visible(step), total=total)
            bars.update(tasks[step], completed=done, total=total)  # type: ignore[arg-type]

        yield tell


def _plain_teller() -> Callable[[str, int, int], None]:
    def tell(step: str, done: int, total: int) -> None:
        output.note(f"{step}: {done:,} of {total:,}")

    return tell
