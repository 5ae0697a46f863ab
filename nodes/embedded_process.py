"""The embedded server's own process: `python -m nodes.embedded_process`, started by `connect`.

It serves an OpenAI-compatible HTTP interface on loopback and ends when no process needs it.
"""

import argparse
import contextlib
import http.client
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from nodes.embedded_lease import ServerRecord, StateDirectory, locked_start, take_lock

EXIT_ALREADY_RUNNING = 75
"""Exit status of a server that found another one in its place."""

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.5
# Prompts that left a slot are kept in memory and come back without evaluation; llama.cpp's own
# limit of 8 GiB is too much for a guest on a laptop.
_PROMPT_CACHE_MIB = 1024
# Each waiting request holds a thread; health must still be answered when many wait.
_SPARE_HTTP_THREADS = 30


@dataclass(frozen=True)
class ProcessSettings:
    """What the server process is told on its command line; nothing secret."""

    state: Path
    model: Path
    context_tokens: int
    slots: int
    threads: int

    def arguments(self) -> list[str]:
        """Return the command-line arguments that `parse` reads."""
        return [
            f"--state={self.state}",
            f"--model={self.model}",
            f"--context-tokens={self.context_tokens}",
            f"--slots={self.slots}",
            f"--threads={self.threads}",
        ]

    @classmethod
    def parse(cls, arguments: list[str]) -> "ProcessSettings":
        """Read the command line.

        Raises:
            SystemExit: When it is not what `arguments` makes.
        """
        parser = argparse.ArgumentParser(
            prog="python -m nodes.embedded_process", description=__doc__
        )
        parser.add_argument("--state", type=Path, required=True)
        parser.add_argument("--model", type=Path, required=True)
        parser.add_argument("--context-tokens", type=int, required=True)
        parser.add_argument("--slots", type=int, required=True)
        parser.add_argument("--threads", type=int, required=True)
        return cls(**vars(parser.parse_args(arguments)))


def main(arguments: list[str] | None = None) -> NoReturn:
    """Serve until no process holds a lease, or until SIGTERM.

    Raises:
        SystemExit: With status 75 when another server runs here already, 1 when the model cannot
            be loaded.
    """
    settings = ProcessSettings.parse(sys.argv[1:] if arguments is None else arguments)
    state = StateDirectory(settings.state)
    # Waits a little: whoever asks whether a server is alive holds the lock for a moment.
    if take_lock(state.alive_file, wait=2.0) is None:
        sys.exit(EXIT_ALREADY_RUNNING)
    lease = os.open(state.lease_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # The server serves from threads of its own for as long as this name keeps it.
    _server, record = _start(settings)
    # Only now: llama.cpp installs handlers of its own while it starts.
    _end_on_signal(state, signal.SIGTERM, signal.SIGINT)
    state.write_record(record)
    print(f"ready: {settings.model.name} on port {record.port}", file=sys.stderr)
    _wait_until_unused(state, lease)


def _start(settings: ProcessSettings) -> tuple[Any, ServerRecord]:
    """Load the model; return the running server and its record."""
    # Read when OpenMP is loaded. Its threads spin while they wait for each other, by default; where
    # another program keeps one core busy, that makes llama.cpp more than ten times slower. A short
    # spin costs a quiet machine nothing.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    import xllamacpp

    key = secrets.token_urlsafe(32)
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, settings, key))
    except (RuntimeError, MemoryError) as error:
        # llama.cpp has said why on the lines before.
        print(f"failed: {error}", file=sys.stderr)
        sys.exit(1)
    port = int(server.listening_address.rpartition(":")[2])
    return server, ServerRecord(
        pid=os.getpid(),
        port=port,
        key=key,
        model=settings.model.stem,
        context_tokens=_context_of_a_request(port, key),
        slots=settings.slots,
    )


def _parameters(xllamacpp: Any, settings: ProcessSettings, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(settings.model)
    parameters.model_alias = {settings.model.stem}
    parameters.hostnames = [_HOST]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.n_parallel = settings.slots
    # llama.cpp deals this context out to the slots in equal shares.
    parameters.n_ctx = settings.context_tokens * settings.slots
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    parameters.n_threads_http = settings.slots + _SPARE_HTTP_THREADS
    parameters.cache_prompt = True
    parameters.cache_ram_mib = _PROMPT_CACHE_MIB
    parameters.warmup = False
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.endpoint_props = False
    parameters.verbosity = 2  # errors and warnings: prompts stay out of the log
    return parameters


def _context_of_a_request(port: int, key: str) -> int:
    """Ask the server what one request may use; it rounds, and models have limits."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=30)
    try:
        connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return int(answer["data"][0]["meta"]["n_ctx"])


def _wait_until_unused(state: StateDirectory, lease: int) -> NoReturn:
    """End the process once nobody has held a lease for the linger time."""
    linger = float(os.environ.get("GRAPHMOOT_SERVER_LINGER", "2"))
    last_used = time.monotonic()
    while True:
        time.sleep(_POLL_SECONDS)
        if _is_in_use(lease):
            last_used = time.monotonic()
        elif time.monotonic() - last_used >= linger:
            with _no_client_connecting(state) as certain:
                if certain and not _is_in_use(lease):
                    _end(state)


def _is_in_use(lease: int) -> bool:
    """Say whether a client holds a lease, on a descriptor that outlives a deleted directory."""
    import fcntl

    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lease, fcntl.LOCK_UN)
    return False


@contextlib.contextmanager
def _no_client_connecting(state: StateDirectory) -> Iterator[bool]:
    """Hold the mutex if it is free; yields whether no client can be in the middle of connecting."""
    if not state.path.is_dir():
        yield True  # the cache was deleted: no client can find this server any more
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_start(state, wait=0))
        except TimeoutError:
            yield False
        else:
            yield True


def _end_on_signal(state: StateDirectory, *numbers: signal.Signals) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        _end(state)

    for number in numbers:
        signal.signal(number, end)


def _end(state: StateDirectory) -> NoReturn:
    """Withdraw the record and end the process at once, with all its locks.

    Not by way of the server's destructor: that waits for the batch under work, and was seen to
    wait for ever. There is nothing to save.
    """
    state.remove_record(os.getpid())
    print("ended", file=sys.stderr, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
