"""Errors of the store: each is one clear line that names the place and the mend."""

from __future__ import annotations

from collections.abc import Sequence


class StoreError(Exception):
    """A store cannot be opened, read or written."""


class MissingExtraError(StoreError):
    """A part that an optional extra installs is needed and absent."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra '{extra}': pip install 'graphmoot[{extra}]' "
            f"(in a clone: pip install '.[{extra}]')"
        )
        self.extra = extra


class UnknownEntityError(StoreError):
    """An entity is not in the store.

    Attributes:
        mention: what was asked for.
        suggestions: names of the nearest entities, best first.
    """

    def __init__(self, mention: str, suggestions: Sequence[str] = ()) -> None:
        shown = shorten(mention)
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"no entity '{shown}' in this graph{hint}")
        self.mention = mention
        self.suggestions = list(suggestions)


class UnknownRelationError(StoreError):
    """A relation is not in the store."""


class RowError(ValueError):
    """One row of a source cannot be taken; the message says why, `kind` names the sort of fault."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class IngestError(StoreError):
    """A source has rows that cannot be taken; nothing was written.

    Attributes:
        row_errors: the first faults, each `file:line: message`.
        total: how many rows are at fault.
    """

    def __init__(self, message: str, row_errors: Sequence[str] = (), total: int = 0) -> None:
        super().__init__(message)
        self.row_errors = list(row_errors)
        self.total = total


def shorten(text: str, limit: int = 80) -> str:
    """Return `text` cut to `limit` characters with an ellipsis, for messages and prompts."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
