"""The embedded model as a local server: one process that all graphmoot processes share.

`connect` finds the running server or starts it, and takes a lease that lasts as long as the calling
process; the server ends soon after the last lease. The server process itself is
`nodes.embedded_process`.
"""

import contextlib
import http.client
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from nodes.embedded_lease import (
    ServerRecord,
    StateDirectory,
    drop_all_leases,
    drop_lease,
    hold_lease,
    is_locked,
    locked_start,
    state_directory,
)
from nodes.embedded_model import INSTALL_HINT, ModelUnavailableError, Progress
from nodes.embedded_process import EXIT_ALREADY_RUNNING, ProcessSettings

_HOST = "127.0.0.1"
_LABEL = "Starting the embedded model"
_HEALTH_TIMEOUT = 5.0


@dataclass(frozen=True)
class EmbeddedServer:
    """Where the embedded model answers: an OpenAI-compatible server on loopback.

    Clients must not send its requests through a proxy (httpx: `trust_env=False`).
    """

    base_url: str
    api_key: str
    model: str
    context_tokens: int
    slots: int


def connect(
    model_path: Path,
    *,
    context_tokens: int = 8192,
    slots: int = 2,
    threads: int | None = None,
    startup_timeout: float = 180.0,
    progress: Progress | None = None,
) -> EmbeddedServer:
    """Find or start the server for a model and keep it running until this process ends.

    Blocks, so call it in a thread from async code. A second call in the same process returns the
    same server; if that has died meanwhile, a new one is started.

    Args:
        model_path: The GGUF file.
        context_tokens: What each request may use, prompt and answer together.
        slots: How many requests are worked on at once.
        threads: Processor threads; by default one for each core.
        startup_timeout: For how many seconds to wait until the server answers.
        progress: Called while waiting with a label, the seconds waited and 0 for "unknown".

    Returns:
        Where and how to reach the server.

    Raises:
        ModelUnavailableError: When the server cannot be started; one line with the mend.
    """
    _check_platform()
    path = model_path.expanduser().resolve()
    _check_model(path)
    state = state_directory(path, context_tokens, slots)
    settings = ProcessSettings(state.path, path, context_tokens, slots, threads or _cores())
    deadline = time.monotonic() + startup_timeout
    try:
        with locked_start(state, wait=startup_timeout):
            is_new = hold_lease(state)
            try:
                return _describe(_find_or_start(state, settings, deadline, progress))
            except BaseException:
                if is_new:
                    drop_lease(state)
                raise
    except TimeoutError as error:
        raise ModelUnavailableError(
            f"the embedded model's server did not answer within {startup_timeout:g} s; see "
            f"{state.log_file}, or name another model with --model NAME@URL"
        ) from error
    except OSError as error:
        raise ModelUnavailableError(
            f"the embedded model's server cannot be started in {state.path}: {error}; set "
            "GRAPHMOOT_CACHE to a directory on a local disk"
        ) from error


def release() -> None:
    """Give this process's leases back; servers that nobody else uses end some seconds later."""
    drop_all_leases()


def _check_platform() -> None:
    if importlib.util.find_spec("fcntl") is None:
        raise ModelUnavailableError(
            "the embedded model's server needs Linux or macOS; name another model with "
            "--model NAME@URL"
        )
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelUnavailableError(
            f"xllamacpp, which runs the embedded model, is not installed; {INSTALL_HINT}"
        )


def _check_model(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelUnavailableError(
            f"cannot read the model file {path}: {error.strerror}; name a GGUF file with "
            "--model local:PATH"
        ) from error
    if magic != b"GGUF":
        raise ModelUnavailableError(
            f"{path} is not a GGUF file; name one with --model local:PATH.gguf"
        )


def _cores() -> int:
    """Count the physical cores this process may use: two threads on one core gain nothing."""
    allowed = getattr(os, "sched_getaffinity", None)
    if allowed is None:
        return os.cpu_count() or 1
    topology = Path("/sys/devices/system/cpu")
    cores = set()
    for cpu in allowed(0):
        siblings = topology / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        cores.add(siblings.read_text() if siblings.is_file() else str(cpu))
    return len(cores) or 1


def _describe(record: ServerRecord) -> EmbeddedServer:
    return EmbeddedServer(
        base_url=f"http://{_HOST}:{record.port}/v1",
        api_key=record.key,
        model=record.model,
        context_tokens=record.context_tokens,
        slots=record.slots,
    )


def _find_or_start(
    state: StateDirectory, settings: ProcessSettings, deadline: float, progress: Progress | None
) -> ServerRecord:
    """Wait for the server, starting it where none lives. Called under the mutex, with a lease.

    A server may live and not be ready: its first client was killed while it loaded the model.
    """
    started, child = time.monotonic(), None
    while True:
        if child is None and not is_locked(state.alive_file):
            state.record_file.unlink(missing_ok=True)
            child = _spawn(state, settings)
        record = state.read_record()
        if record is not None and _answers(state, record):
            return record
        status = child.poll() if child is not None else None
        if status == EXIT_ALREADY_RUNNING:
            child = None
        elif status is not None:
            raise ModelUnavailableError(_why_it_died(state, settings, status))
        if time.monotonic() >= deadline:
            if child is not None:
                child.kill()
            raise TimeoutError
        if progress:
            progress(_LABEL, int(time.monotonic() - started), 0)
        time.sleep(0.1)


def _spawn(state: StateDirectory, settings: ProcessSettings) -> "subprocess.Popen[bytes]":
    """Start the server process, apart from this one's terminal and its signals."""
    package_parent = str(Path(__file__).resolve().parents[1])
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([package_parent, inherited] if inherited else [package_parent])
    # -P: a folder called `nodes` where the user happens to stand must not be taken for ours.
    command = [sys.executable, "-P", "-m", "nodes.embedded_process", *settings.arguments()]
    log = os.open(state.log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        child = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            cwd=state.path,  # so that it does not hold on to the user's folder
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    finally:
        os.close(log)
    # Reaps the child whenever it ends, so that a long-lived client keeps no zombie.
    threading.Thread(target=child.wait, name="embedded-server-reaper", daemon=True).start()
    return child


def _answers(state: StateDirectory, record: ServerRecord) -> bool:
    """Say whether the living server answers; a hung one is ended, so that it is replaced."""
    connection = http.client.HTTPConnection(_HOST, record.port, timeout=_HEALTH_TIMEOUT)
    try:
        connection.request("GET", "/health")
        if connection.getresponse().status == http.HTTPStatus.OK:
            return True
    except TimeoutError:
        return True  # busy, not gone: its port is open, and others may be using it
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
    # Its lock proves that the record's process is the server, and not a stranger with its number.
    if is_locked(state.alive_file):
        _end_hung_server(state, record.pid)
    return False


def _end_hung_server(state: StateDirectory, pid: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            if not is_locked(state.alive_file):
                return
            time.sleep(0.05)


_MEMORY_SIGNS = re.compile(
    r"insufficient memory|cannot allocate memory|failed to allocate|unable to allocate|bad_alloc"
    r"|MemoryError",
    re.IGNORECASE,
)
_REASON = re.compile(r"error loading model: (.*)|^\S+ E \S+: (.*)|^(\w*(?:Error|error): .*)", re.M)


def _why_it_died(state: StateDirectory, settings: ProcessSettings, status: int) -> str:
    """Boil the server's log down to one line with the mend."""
    log = state.log_file.read_text("utf-8", errors="replace")
    if status == -signal.SIGKILL or _MEMORY_SIGNS.search(log):
        return (
            f"not enough memory for the embedded model ({settings.model.stat().st_size / 1e9:.1f} "
            f"GB and its context of {settings.slots} x {settings.context_tokens} tokens); close "
            "other programs, choose a smaller model, or name a remote one with --model NAME@URL"
        )
    found = _REASON.search(log)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    reason = next(filter(None, found.groups()), "") if found else " / ".join(lines[-3:])
    return (
        f"the embedded model's server ended with status {status} while loading {settings.model}: "
        f"{reason or 'it printed nothing'}; see {state.log_file}, or name another model with "
        "--model NAME@URL"
    )
