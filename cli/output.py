"""What the command prints: JSON and tables on stdout, notes and progress on stderr.

Text from a graph or a model is never read as markup, and its control characters are shown, not
obeyed: a name may hold an escape sequence that would repaint the terminal.
"""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 200
"""Longer texts are shortened in tables; JSON has them whole."""

PLAIN_SECONDS = 5.0
"""Without a terminal, progress is told at most this often."""

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # ordinary letters' joints in Persian, Hindi and emoji
_C1 = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}

Tell = Callable[[str, int, int], None]


def visible(text: str, *, lines: bool = False, limit: int | None = None) -> str:
    """Return `text` with control, direction and broken characters written out as escapes.

    Args:
        text: anything from a graph, a model or a user.
        lines: keep line breaks.
        limit: shorten to this many characters, with an ellipsis.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 1]}…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_character(c, lines=lines) for c in text)


def _visible_character(character: str, *, lines: bool) -> str:
    if character in _JOINERS or (lines and character == "\n"):
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def stdout() -> Console:
    """Return a console on stdout; when that is no terminal, lines are never wrapped."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Return a console on stderr."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    from rich.console import Console

    # Markup, emoji and highlighting are off for good: style is given, never parsed out of text.
    console = Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 100_000
    return console


def print_json(value: Any) -> None:
    """Print one JSON document on stdout, in UTF-8 whatever the locale says."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str).translate(_C1)
    # A lone surrogate (a broken byte in an argument) becomes \udcXX, which is how JSON writes it.
    data = f"{text}\n".encode("utf-8", "backslashreplace")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    """Say something about the run on stderr, one line, after what stdout has so far."""
    sys.stdout.flush()
    print(visible(text), file=sys.stderr)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    numbers: Sequence[str] = (),
) -> None:
    """Print a table on stdout.

    Args:
        columns: the headings.
        rows: the cells; strings are made safe, floats get up to 4 digits.
        title: a line above it.
        numbers: headings of the columns that are set flush right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    # On a terminal a long name goes on in the next line rather than being cut.
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        flush = "right" if column in numbers else "left"
        table.add_column(column, justify=flush, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    if title:
        console.print(Text(title, style="bold"))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    # The blanks that pad the last column only trouble whoever pipes the table on.
    print("\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n")))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return visible(str(value), limit=SHOWN)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print lines of a word and its value on stdout, values aligned."""
    rows = [(label, _cell(value)) for label, value in pairs]
    width = max((len(label) for label, _ in rows), default=0)
    for label, value in rows:
        print(f"{label:<{width}}  {value}")


@contextmanager
def progress(*, of_bytes: bool = True) -> Iterator[Tell]:
    """Show progress on stderr; yields what to call with (step, done, total), total 0 if unknown.

    On a terminal that is a bar with bytes and speed (else a count) and the time left, otherwise a
    plain line now and then.
    """
    if not sys.stderr.isatty():
        yield _plain_teller(size if of_bytes else "{:,}".format)
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class WhenSized(ProgressColumn):
        """A column that is empty while the amount of work is not known."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__()
            self._column = column

        def render(self, task: Task) -> Text:
            return Text.assemble(self._column.render(task)) if task.total else Text()  # type: ignore[arg-type]

    counts = (DownloadColumn(), TransferSpeedColumn()) if of_bytes else (MofNCompleteColumn(),)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(WhenSized(column) for column in (*counts, TimeRemainingColumn())),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in tasks:
                for other in tasks.values():
                    bar.update(other, visible=False)
                tasks[step] = bar.add_task(step, total=total or None)
            bar.update(tasks[step], completed=done, total=total or None)

        yield tell


def _plain_teller(amount: Callable[[int], str]) -> Tell:
    last = [time.monotonic()]

    def tell(step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] < PLAIN_SECONDS:
            return
        last[0] = now
        share = f" {100 * done // total} % of {amount(total)}" if total else ""
        note(f"{step}{share}")

    return tell


def size(count: int) -> str:
    """Return a number of bytes in words."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):  # noqa: B007
        if value < 1000:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
