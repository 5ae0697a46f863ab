"""Options that several commands share, and the errors that end a command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

ANSWERED, FAILED, BAD_INPUT, NO_ANSWER, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit status."""

STATUS = {"answered": ANSWERED, "no_answer": NO_ANSWER}
"""Exit status by the `status` of a result; anything else failed."""


class CommandError(Exception):
    """Ends a command with one line on stderr, and more lines where something has to be listed."""

    def __init__(self, message: str, exit_code: int, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.details = list(details)


class Command(TyperCommand):
    """A command whose repeatable options also take several values in a row.

    `--topic A B` means `--topic A --topic B` as soon as all positional arguments are there.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spell repeated values out before the usual parsing."""
        return super().parse_args(ctx, self._spelt_out(list(args)))

    def _spelt_out(self, args: list[str]) -> list[str]:
        options = {
            name: param
            for param in self.params
            if param.param_type_name == "option"
            for name in (*param.opts, *param.secondary_opts)
        }
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        if any(param.nargs != 1 for param in arguments):
            return args
        wanted = len(arguments)
        out: list[str] = []
        repeating = ""
        position = 0
        while position < len(args):
            token = args[position]
            position += 1
            if token == "--":  # noqa: S105
                return [*out, token, *args[position:]]
            name, equals, _ = token.partition("=")
            option = options.get(name)
            if option is not None:
                repeating = name if getattr(option, "multiple", False) else ""
                out.append(token)
                if not equals and not getattr(option, "is_flag", False) and position < len(args):
                    out.append(args[position])
                    position += 1
            elif token.startswith("-") and len(token) > 1:
                repeating = ""
                out.append(token)
            elif wanted == 0 and repeating:
                out += [repeating, token]
            else:
                wanted = max(0, wanted - 1)
                out.append(token)
        return out


def debugging() -> bool:
    """Return whether tracebacks are wanted."""
    return os.environ.get("GRAPHMOOT_DEBUG", "").lower() not in ("", "0", "false", "no")


def _start_debugging(value: bool) -> bool:
    if value:
        os.environ["GRAPHMOOT_DEBUG"] = "1"
    return value


Debug = Annotated[
    bool,
    typer.Option(
        "--debug", callback=_start_debugging, help="Show the traceback when something fails."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Store = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A store file, a small .tsv, .csv, .jsonl or .graphml file, or 'sample'.",
        show_default=False,
    ),
]


def examples(*lines: str) -> str:
    """Return the epilog of a command's help: examples, one a line."""
    return "\n\n".join(("Examples:", *(f"  {line}" for line in lines)))
