"""Who uses the embedded server: file locks that the operating system drops with their process.

Three locks lie in a server's state directory:

- `start.lock`, a mutex: held while a client connects, and by the server while it decides to end;
- `lease.lock`, shared: every client process holds it to its end; the server may end when it can
  take it alone;
- `alive.lock`, exclusive: the server process holds it to its end, so that its number in a file can
  be trusted (a process number alone may have been given to another program since).

Locks survive neither `kill -9` nor a power cut, so there is nothing to clean up after either.
"""

import contextlib
import hashlib
import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from graph_store.cache_folder import cache_folder
from nodes.embedded_model import ModelUnavailableError


@dataclass(frozen=True)
class ServerRecord:
    """What a running server tells its clients through `server.json`."""

    pid: int
    port: int
    key: str
    model: str
    context_tokens: int
    slots: int


@dataclass(frozen=True)
class StateDirectory:
    """The private directory of one server: its record, its log and its locks."""

    path: Path

    @property
    def record_file(self) -> Path:
        """The file in which the running server says where and who it is."""
        return self.path / "server.json"

    @property
    def log_file(self) -> Path:
        """What the server printed since its last start."""
        return self.path / "server.log"

    @property
    def start_file(self) -> Path:
        """The mutex of connecting and ending."""
        return self.path / "start.lock"

    @property
    def lease_file(self) -> Path:
        """Held, shared, by every process that uses the server."""
        return self.path / "lease.lock"

    @property
    def alive_file(self) -> Path:
        """Held by the server process."""
        return self.path / "alive.lock"

    def read_record(self) -> ServerRecord | None:
        """Return the server's record, or None where there is none that can be read."""
        try:
            return ServerRecord(**json.loads(self.record_file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write_record(self, record: ServerRecord) -> None:
        """Publish the record in one step; it holds the key, so only its owner may read it.

        Raises:
            OSError: When the directory cannot be written.
        """
        # mkstemp makes files of mode 0600.
        descriptor, name = tempfile.mkstemp(dir=self.path, prefix="server.", suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(record), file)
        Path(name).replace(self.record_file)

    def remove_record(self, pid: int) -> None:
        """Remove the record if it is that of process `pid`, and not of a successor."""
        record = self.read_record()
        if record is not None and record.pid == pid:
            self.record_file.unlink(missing_ok=True)


def state_directory(model_path: Path, context_tokens: int, slots: int) -> StateDirectory:
    """Make and return the state directory of the one server for these settings.

    Raises:
        ModelUnavailableError: When the directory cannot be made.
    """
    status = model_path.stat()
    # The file's size and time: after a change of the file the old server must not answer for it.
    # The machine's name: a home directory may be shared, a loopback address is not.
    identity = (
        str(model_path),
        status.st_size,
        status.st_mtime_ns,
        context_tokens,
        slots,
        platform.node(),
    )
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    path = cache_folder() / "servers" / digest
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise ModelUnavailableError(
            f"cannot write {path}: {error.strerror}; set GRAPHMOOT_CACHE to a directory that can "
            "be written"
        ) from error
    return StateDirectory(path)


def take_lock(path: Path, *, shared: bool = False, wait: float = 0.0) -> int | None:
    """Lock a file with flock and return its descriptor, or None when it stays taken.

    The descriptor is closed on exec, so that programs started meanwhile do not inherit the lock.
    To unlock, close it: an explicit unlock in a forked child would unlock its parent too.

    Args:
        path: The lock file; made if missing.
        shared: Whether others may hold the lock in the same way.
        wait: For how many seconds to keep trying.

    Raises:
        OSError: When the file cannot be opened, or the file system has no locks.
    """
    import fcntl

    flags = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait
    try:
        while True:
            try:
                fcntl.flock(descriptor, flags)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    break
                time.sleep(0.02)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def is_locked(path: Path) -> bool:
    """Say whether somebody holds the file's lock alone.

    Raises:
        OSError: When the file cannot be opened.
    """
    descriptor = take_lock(path, shared=True)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


@contextlib.contextmanager
def locked_start(state: StateDirectory, wait: float) -> Iterator[None]:
    """Hold the mutex of connecting and ending.

    Raises:
        TimeoutError: When another process holds it for longer than `wait` seconds.
        OSError: When the lock file cannot be used.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(state.start_file, timeout=wait)
    try:
        lock.acquire()
    except Timeout as error:
        raise TimeoutError(f"{state.start_file} is held by another process") from error
    try:
        yield
    finally:
        lock.release()


# This process's leases: they must outlive every call, as only the end of the process ends them.
_leases: dict[Path, int] = {}
_leases_guard = threading.Lock()


def hold_lease(state: StateDirectory) -> bool:
    """Keep the server running for as long as this process lives; a second call changes nothing.

    Returns:
        Whether the lease is new.

    Raises:
        TimeoutError: When the lock is not to be had.
        OSError: When the lock file cannot be used.
    """
    with _leases_guard:
        held = _leases.get(state.path)
        if held is not None:
            if _is_open_on(held, state.lease_file):
                return False
            # The cache was deleted under us: a lease on a file that is gone keeps nothing alive.
            os.close(_leases.pop(state.path))
        # A server that looks whether it is still needed holds the lock for a moment.
        descriptor = take_lock(state.lease_file, shared=True, wait=10.0)
        if descriptor is None:
            raise TimeoutError(f"{state.lease_file} is held by another process")
        _leases[state.path] = descriptor
        return True


def _is_open_on(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def drop_lease(state: StateDirectory) -> None:
    """Give this process's lease on one server back."""
    with _leases_guard:
        descriptor = _leases.pop(state.path, None)
        if descriptor is not None:
            os.close(descriptor)


def drop_all_leases() -> None:
    """Give all leases of this process back; servers nobody else uses end soon after."""
    with _leases_guard:
        while _leases:
            os.close(_leases.popitem()[1])
