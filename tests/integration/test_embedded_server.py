"""The embedded server with the real llama.cpp and the real model.

One server is shared by most tests, as loading the model takes some seconds. The model is assembled
in the user's own cache directory, which other tests use too.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from nodes import embedded_model, embedded_server
from nodes.embedded_lease import is_locked, state_directory, take_lock
from nodes.embedded_model import ModelUnavailableError, ensure_model

pytestmark = pytest.mark.integration

CONTEXT, SLOTS = 1280, 2  # of no other user, so that the tests own the server
ROOT = Path(embedded_server.__file__).parents[1]
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["A", "B"]},
        "reason": {"type": "string", "maxLength": 30},
    },
    "required": ["answer", "reason"],
    "additionalProperties": False,
}
CLIENT = """
import json, sys, time
from pathlib import Path
from nodes.embedded_lease import state_directory
from nodes.embedded_server import connect
path = Path(sys.argv[1])
server = connect(path, context_tokens=int(sys.argv[2]), slots=int(sys.argv[3]))
record = state_directory(path, int(sys.argv[2]), int(sys.argv[3])).read_record()
print(json.dumps({"pid": record.pid, "base_url": server.base_url}), flush=True)
time.sleep(600)
"""


def await_true(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.1)


def runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def client_process(model, cwd):
    """Another graphmoot process that connects, from a folder of its own, and stays."""
    child = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(model), str(CONTEXT), str(SLOTS)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture(scope="module")
def model():
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (pip install 'graphmoot[local]')")
    try:
        return ensure_model()
    except ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def state(model):
    """The state directory; whatever a test did, its server is gone at its end."""
    state = state_directory(model, CONTEXT, SLOTS)
    yield state
    embedded_server.release()
    await_true(lambda: not is_locked(state.alive_file), 15)


def connect(model, **settings):
    return embedded_server.connect(model, context_tokens=CONTEXT, slots=SLOTS, **settings)


def ask(server, key, **body):
    with httpx.Client(trust_env=False, timeout=300) as client:
        return client.post(
            f"{server.base_url}/chat/completions",
            headers={"Authorization": f"Bearer {key}"},
            json={"messages": [{"role": "user", "content": "Fruit? A) apple B) car"}], **body},
        )


def test_a_server_serves_is_private_and_ends(model, state):
    seen = []
    server = connect(model, progress=lambda *report: seen.append(report))
    record = state.read_record()
    assert seen[0] == ("Starting the embedded model", 0, 0)
    assert connect(model) == server
    assert server.context_tokens == CONTEXT

    answer = ask(
        server,
        server.api_key,
        model=server.model,
        max_tokens=60,
        temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
    )
    assert answer.status_code == 200
    content = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert set(content) == {"answer", "reason"}
    assert content["answer"] in {"A", "B"}
    assert ask(server, "wrong", max_tokens=1).status_code == 401

    assert state.path.stat().st_mode & 0o777 == 0o700
    assert state.record_file.stat().st_mode & 0o777 == 0o600
    for secret_free in ("cmdline", "environ"):
        proc = Path(f"/proc/{record.pid}/{secret_free}")
        assert not proc.exists() or server.api_key.encode() not in proc.read_bytes()
    assert server.api_key not in state.log_file.read_text()

    embedded_server.release()
    await_true(lambda: not runs(record.pid), 10)
    assert not state.record_file.exists()


def test_processes_share_one_server_which_outlives_the_first_but_not_the_last(
    model, state, tmp_path
):
    # A folder that would be taken for our package if the server looked where the user stands.
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "__init__.py").write_text("raise AssertionError('wrong nodes')")
    with client_process(model, ROOT) as (first, seen_by_first):
        server = connect(model)
        record = state.read_record()
        assert seen_by_first == {"pid": record.pid, "base_url": server.base_url}
        first.send_signal(signal.SIGKILL)  # it started the server, and is gone without a word
        first.wait()
        time.sleep(4)
        assert runs(record.pid)
    with client_process(model, ROOT) as (last, seen_by_last):
        embedded_server.release()
        time.sleep(4)
        assert seen_by_last["pid"] == record.pid
        assert runs(record.pid)
        last.send_signal(signal.SIGKILL)
        last.wait()
        await_true(lambda: not runs(record.pid), 10)
    assert not state.record_file.exists()


def test_a_dead_server_is_replaced_and_sigterm_ends_it_cleanly(model, state, monkeypatch, tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "__init__.py").write_text("raise AssertionError('wrong nodes')")
    monkeypatch.chdir(tmp_path)
    connect(model)
    first = state.read_record()
    os.kill(first.pid, signal.SIGKILL)
    await_true(lambda: not is_locked(state.alive_file), 5)
    assert state.read_record() == first  # stale, and its process number free for anyone
    connect(model)
    second = state.read_record()
    assert second.pid != first.pid
    assert second.key != first.key
    os.kill(second.pid, signal.SIGTERM)
    await_true(lambda: not runs(second.pid), 5)
    assert not state.record_file.exists()
    assert "ended" in state.log_file.read_text()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (pip install 'graphmoot[local]')")
    monkeypatch.setenv("GRAPHMOOT_CACHE", str(tmp_path / "cache"))
    yield tmp_path
    embedded_server.release()


def refusal(path, **settings):
    with pytest.raises(ModelUnavailableError) as caught:
        embedded_server.connect(path, **settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "--model" in message
    return message


def test_a_broken_file_is_one_clear_line(own_cache):
    broken = own_cache / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(range(200)))
    assert "GGUF file is version" in refusal(broken)
    state = state_directory(broken, 8192, 2)
    assert not is_locked(state.alive_file)
    lease = take_lock(state.lease_file)  # a failed start leaves no lease
    assert lease is not None
    os.close(lease)


def test_other_files_are_refused_before_a_start(own_cache):
    text = own_cache / "notes.gguf"
    text.write_text("not a model")
    assert "not a GGUF file" in refusal(text)
    assert "No such file" in refusal(own_cache / "missing.gguf")


def test_a_missing_library_names_the_extra(own_cache, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        embedded_server.importlib.util,
        "find_spec",
        lambda name: None if name == "xllamacpp" else real(name),
    )
    assert "pip install 'graphmoot[local]'" in refusal(own_cache / "any.gguf")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on address space")
def test_too_little_memory_is_said(model, own_cache):
    code = (
        "import resource, sys, pathlib; from nodes.embedded_server import connect;"
        "resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9));"
        "connect(pathlib.Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert "not enough memory for the embedded model (1.1 GB and its context of 2 x 8192" in last


def test_the_model_is_the_official_one(model):
    assert model.stat().st_size == embedded_model.SIZE
