"""The workflows behind a LangGraph server: offline, without an account, with the embedded model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from workflows import registry

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("langgraph_api") is None, reason="extra 'server' not installed"),
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="extra 'local' not installed"),
]
ROOT = Path(__file__).parents[2]
QUESTION = {
    "question": "What sank the Brindle Lass?",
    "choices": {"A": "Cannon fire", "B": "A rotten hull plank"},
    "topic_entities": ["Brindle_Lass"],
}
CONTEXT = {"model": "local", "graph": "sample", "max_rounds": 1, "max_tokens": 120}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, process, log)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def _wait_until_up(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/ok", timeout=2, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    pytest.fail(f"the server did not come up:\n{log.read_text()[-3000:]}")


@pytest_asyncio.fixture
async def client(server):
    from langgraph_sdk import get_client

    async with get_client(url=server, timeout=900) as client:
        yield client


async def test_lists_the_assistants_and_their_settings(client):
    assistants = await client.assistants.search(limit=100)
    by_graph = {assistant["graph_id"]: assistant for assistant in assistants}
    assert set(by_graph) == set(registry.names())
    schemas = await client.assistants.get_schemas(by_graph["debate-on-graph"]["assistant_id"])
    settings = schemas["context_schema"]["properties"]
    assert settings["max_rounds"]["default"] == 3
    assert "D_max" in settings["max_distance"]["description"]
    assert set(schemas["input_schema"]["properties"]) == {
        "question",
        "choices",
        "question_type",
        "topic_entities",
    }


async def test_streams_a_debate_to_the_end_and_forks_it_from_a_checkpoint(client):
    thread = await client.threads.create()
    events, nodes, result = [], [], None
    async for part in client.runs.stream(
        thread["thread_id"],
        "debate-on-graph",
        input=QUESTION,
        context=CONTEXT,
        stream_mode=["custom", "updates", "values"],
    ):
        assert part.event != "error", part.data
        if part.event == "custom":
            events.append(part.data["event"])
        elif part.event == "updates":
            nodes += list(part.data)
        elif part.event == "values":
            result = part.data.get("result")
    assert {"proponent", "challenger", "decision_maker", "judge", "report"} <= set(nodes)
    assert "evidence" in events
    assert events.count("said") == 2
    assert result["status"] == "answered"
    assert result["choice"] in QUESTION["choices"]
    assert result["usage"]["llm_calls"] >= 4

    history = await client.threads.get_history(thread["thread_id"], limit=20)
    before_judge = next(state for state in history if state["next"] == ["judge"])
    forked = await client.runs.wait(
        thread["thread_id"],
        "debate-on-graph",
        input=None,
        context=CONTEXT,
        checkpoint=before_judge["checkpoint"],
    )
    assert forked["result"]["status"] == "answered"
    assert forked["statements"] == before_judge["values"]["statements"]
    again = await client.threads.get_history(thread["thread_id"], limit=40)
    assert len(again) > len(history)


async def test_a_wrong_setting_is_a_clear_error(client):
    thread = await client.threads.create()
    stream = client.runs.stream(
        thread["thread_id"],
        "debate-on-graph",
        input=QUESTION,
        context={**CONTEXT, "max_rounds": 99},
        stream_mode="values",
    )
    seen = [str(part.data) async for part in stream if part.event == "error"]
    assert seen
    assert "max_rounds" in seen[0]
