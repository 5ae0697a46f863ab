"""Where a report's files may be written."""

from __future__ import annotations

from pathlib import Path

from evals.report.summary import ReportError


def check_place(path: Path) -> None:
    """Raise `ReportError` when a file cannot be made there, before any work is done for it."""
    if path.is_dir():
        raise ReportError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise ReportError(f"{path}: there is no folder {path.parent}; make it first")
