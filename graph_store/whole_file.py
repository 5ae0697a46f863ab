"""Files that are written whole or not at all, and the hash that tells them apart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> int:
    """Write a file beside its place, sync it, and rename it over an old one.

    Args:
        path: the file; its folder is there.
        content: a text goes in UTF-8; a lone surrogate (a broken byte in a graph) as an escape.

    Returns:
        Its size in bytes.

    Raises:
        OSError: it cannot be written; an old file is as it was.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    replace_whole(path, write)
    return len(data)


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Have a file written beside its place, and rename it over an old one; see `write_whole`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
