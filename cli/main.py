"""The `graphmoot` command: its commands, and how every failure ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cli import ask_commands, eval_commands, evidence_commands, output, store_commands
from cli.options import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    NO_ANSWER,
    CommandError,
    Debug,
    debugging,
    examples,
)

app = typer.Typer(
    name="graphmoot",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"graphmoot {version('graphmoot')}")
        except PackageNotFoundError:  # run from a checkout
            print("graphmoot (not installed)")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "graphmoot demo",
        "graphmoot ingest facts.tsv --to facts.graphmoot",
        'graphmoot ask "Who built Marrow Light?" --graph sample',
    ),
)
def _graphmoot(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    _debug: Debug = False,
) -> None:
    """Answers over knowledge graphs whose facts are uncertain, with the evidence and the doubt."""
    if context.invoked_subcommand is None:
        print(context.get_help())


for group in (ask_commands, store_commands, evidence_commands, eval_commands):
    group.register(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; see `DESIGN` in docs for what each means.

    Args:
        arguments: the words after `graphmoot`; default those of this process.
    """
    kept = os.environ.get("GRAPHMOOT_DEBUG")
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # An odd locale must not turn a name into a failure.
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        if kept is None:
            os.environ.pop("GRAPHMOOT_DEBUG", None)


def _open_closed_streams() -> None:
    """Stand in for streams that the caller closed (`2>&-`): nobody reads them, nothing fails."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _run(arguments: list[str]) -> int:
    try:
        command = typer.main.get_command(app)
        status = command.main(arguments, prog_name="graphmoot", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _quietly_broken()
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except SystemExit as error:
        # rich and typer leave like this when nobody reads stdout any more.
        if error.code not in (0, None):
            return _quietly_broken()
        return 0
    except Exception as error:  # noqa: BLE001 - the one place where failures become lines
        return _report(error)
    if status == INTERRUPTED:
        _error_line("interrupted")
    return status if isinstance(status, int) else 0


def _quietly_broken() -> int:
    # Else the interpreter complains once more when it flushes at exit.
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    return FAILED


def _report(error: Exception) -> int:
    """Print a failure as one line and return the exit status that belongs to it."""
    if debugging():
        import traceback

        traceback.print_exception(error)
    message, status = _meaning(error)
    _error_line(message)
    for detail in _details(error):
        output.note(f"  {detail}")
    return status


def _meaning(error: Exception) -> tuple[str, int]:
    if callable(told := getattr(error, "format_message", None)):  # typer's usage errors
        return str(told()), int(getattr(error, "exit_code", BAD_INPUT))
    if isinstance(error, CommandError):
        return str(error), error.exit_code
    from graph_store.errors import MissingExtraError, StoreError, UnknownEntityError, shorten
    from nodes.errors import ModelError

    text = str(error)
    if isinstance(error, UnknownEntityError):
        names = ", ".join(f"'{shorten(name)}'" for name in error.suggestions)
        hint = f"; did you mean {names}?" if names else ""
        return f"no entity '{shorten(error.mention)}' in this graph{hint}", NO_ANSWER
    if isinstance(error, MissingExtraError):
        return text, FAILED
    if isinstance(error, StoreError | ValueError) and text:
        return text, BAD_INPUT
    if isinstance(error, ModelError):
        return text, FAILED
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}", FAILED
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{shown} (unexpected; --debug shows where)", FAILED


def _details(error: Exception) -> list[str]:
    if isinstance(error, CommandError):
        return error.details
    context = getattr(error, "ctx", None)
    if context is not None and hasattr(error, "format_message"):
        return [f"see: {context.command_path} --help"]
    return []


def _error_line(message: str) -> None:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    print(f"error: {output.visible('; '.join(lines))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
