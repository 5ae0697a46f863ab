"""Writing a report's files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evals.report.summary import ReportError


def check_place(path: Path) -> None:
    """Raise `ReportError` when a file cannot be made there, before any work is done for it."""
    if path.is_dir():
        raise ReportError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise ReportError(f"{path}: there is no folder {path.parent}; make it first")


def write_whole(path: Path, text: str) -> int:
    """Write a file whole or not at all, in UTF-8; returns its size in bytes.

    Raises:
        OSError: it cannot be written.
    """
    # A lone surrogate (a broken byte in a graph) is written out rather than failing the report.
    data = text.encode("utf-8", "backslashreplace")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return len(data)
