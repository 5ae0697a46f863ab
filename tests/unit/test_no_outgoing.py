"""Nothing leaves the machine unless tracing is on and there is a key.

Every attempt to look up a name or to connect is refused and written down by an audit hook of the
interpreter, below any library; requests and httpx are stopped before, so that the account names
the address. The control cases show that a leak would be seen.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time

import httpx
import pytest
import requests
from langsmith import run_trees
from langsmith import utils as langsmith_utils
from pytest_socket import enable_socket

import nodes.tools
from evals.plan import Configuration, plan_cells
from evals.runner import Runner, Task
from evals.session import Watcher
from evals.tracing import run_config, tracing_allowed, tracing_off
from nodes.question_file import GoldQuestion
from tests.cli_helpers import command_in_process
from tests.fake_embedder import FakeEmbedder
from tests.scripted_model import scripted
from workflows.debate_on_graph import graph

ENDPOINT = "http://langsmith.invalid"
EVENTS = {
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyaddr",
    "socket.gethostbyname",
    "socket.sendmsg",
    "socket.sendto",
    "urllib.Request",
}
NAMES = [
    f"{owner}_{name}"
    for owner in ("LANGSMITH", "LANGCHAIN")
    for name in ("TRACING", "TRACING_V2", "API_KEY", "ENDPOINT", "PROJECT", "RUNS_ENDPOINTS")
]
QUESTION = {"question": "Who built Marrow Light?", "topic_entities": ["Marrow_Light"]}
PATIENCE = 10.0
"""Seconds that a leak may take; LangSmith's client sends in the background."""

_watching: list[list[str]] = []


def _refuse(event, arguments):
    if _watching and event in EVENTS:
        _watching[-1].append(f"{event} {arguments[:2]}")
        raise ConnectionRefusedError("refused by the test")


sys.addaudithook(_refuse)  # hooks cannot be taken away again; this one sleeps outside these tests


@pytest.fixture
def attempts(monkeypatch):
    """What was tried; every try fails."""
    seen: list[str] = []

    def refuse_requests(self, request, **options):
        seen.append(f"requests {request.method} {request.url}")
        raise requests.ConnectionError("refused by the test", request=request)

    def refuse_httpx(self, request):
        seen.append(f"httpx {request.method} {request.url}")
        raise httpx.ConnectError("refused by the test", request=request)

    async def refuse_httpx_async(self, request):
        refuse_httpx(self, request)

    monkeypatch.setattr(requests.Session, "send", refuse_requests)
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", refuse_httpx)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", refuse_httpx_async)
    enable_socket()  # the hook is the stricter guard, and it keeps an account
    _watching.append(seen)
    yield seen
    _watching.remove(seen)


@pytest.fixture
def environment(attempts, monkeypatch, tmp_path):
    """Set what LangSmith reads, and nothing else of the user's; forget what it has read before."""
    before = set(threading.enumerate())
    monkeypatch.setattr(logging.getLogger("langsmith"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("langsmith.client"), "disabled", True)
    monkeypatch.setattr(nodes.tools, "load_embedder", lambda name: FakeEmbedder())
    monkeypatch.setattr(run_trees, "_CLIENT", None)
    monkeypatch.setenv("LANGSMITH_CONFIG_FILE", str(tmp_path / "no-profile"))
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def forget():
        langsmith_utils.get_env_var.cache_clear()
        langsmith_utils.get_tracer_project.cache_clear()

    def set_to(**values):
        for name, value in values.items():
            monkeypatch.setenv(f"LANGSMITH_{name}", value)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", ENDPOINT)
        forget()

    yield set_to
    if run_trees._CLIENT is not None:
        run_trees._CLIENT.close(timeout=0)
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("asyncio"):  # the loop's own pool waits for work
            thread.join(PATIENCE)  # as long as attempts are still refused
    forget()


def says(answer):
    return {"answer": answer, "facts": [1], "argument": "because"}


def script():
    return {
        "proponent": says("Edith Venn"),
        "challenger": says("Josiah Marrow"),
        "decision_maker": [
            {"action": "expand", "reason": "more"},
            {"action": "continue", "reason": "they differ"},
            {"action": "stop", "reason": "enough"},
        ],
        "judge": {"answer": "Edith Venn", "confidence": 90, "reason": "clear"},
        "direct_answer": {"answer": "Edith Venn", "facts": [1], "confidence": 70, "reason": "so"},
    }


async def debate():
    """A whole debate over the sample graph: retrieval, rounds, the search ahead."""
    spec, model = scripted(script())
    config = run_config(
        label="DoG", method="debate-on-graph", dataset="sample", model="scripted",
        question_id="q1", prompts={},
    )  # fmt: skip
    state = await graph.ainvoke(QUESTION, config, context={"graph": "sample", "model": spec})
    assert state["result"]["status"] == "answered"
    assert {asked.role for asked in model.asked} >= {"proponent", "challenger", "judge"}


async def evaluate():
    """The same question as the runner of `graphmoot eval run` asks it."""
    spec, _ = scripted(script())
    (cell,) = plan_cells(
        [Configuration("DoG", "debate-on-graph")],
        datasets=["sample"], models=[spec], shared={"graph": "sample"}, seed=0,
    )  # fmt: skip
    question = GoldQuestion("q1", QUESTION["question"], ("Edith Venn",))
    lines = []
    ending = await Runner(lines.append, Watcher()).run([Task(cell, question, ("Marrow_Light",))])
    assert (ending.by, [line["outcome"] for line in lines]) == ("complete", ["right"])


def settled(attempts):
    """Whether nothing was tried, also after what runs in the background has ended."""
    for thread in threading.enumerate():
        if thread.name == "search-ahead":
            thread.join(PATIENCE)
    # Without a client there is nobody who could send later, such as when the process ends.
    return attempts == [] and run_trees._CLIENT is None


def tried(attempts):
    """Whether something is tried before long."""
    end = time.monotonic() + PATIENCE
    while not attempts and time.monotonic() < end:
        time.sleep(0.02)
    return any("langsmith.invalid" in attempt for attempt in attempts)


# Without a switch or a key


async def test_a_debate_with_a_key_and_no_switch_sends_nothing(environment, attempts):
    environment(API_KEY="lsv2_key")
    await debate()
    assert settled(attempts)


async def test_a_debate_with_tracing_off_sends_nothing_whatever_is_set(environment, attempts):
    environment(API_KEY="lsv2_key", TRACING="true")
    with tracing_off():
        await debate()
    assert settled(attempts)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"API_KEY": "lsv2_key"},
        {"TRACING": "true"},
        {"TRACING_V2": "true"},
        {"API_KEY": "lsv2_key", "TRACING": "false"},
    ],
)
async def test_an_evaluation_sends_nothing_without_both(environment, attempts, values):
    environment(**values)
    assert not tracing_allowed()
    await evaluate()
    assert settled(attempts)


async def test_a_switch_that_was_turned_off_again_counts(environment, attempts, monkeypatch):
    # LangSmith remembers the first value that it read.
    environment(API_KEY="lsv2_key", TRACING="true")
    assert langsmith_utils.tracing_is_enabled()
    monkeypatch.delenv("LANGSMITH_TRACING")
    assert langsmith_utils.tracing_is_enabled()
    await evaluate()
    assert settled(attempts)


def test_the_ask_command_sends_nothing_without_a_key(environment, attempts, capsys):
    environment(TRACING="true")
    spec, _ = scripted({"answerer": {"answer": "Edith Venn", "confidence": 80}})
    ran = command_in_process(capsys)(
        "ask", QUESTION["question"], "--method", "zero-shot", "--model", spec
    )
    assert ran.status == 0, ran.err
    assert settled(attempts)


# Controls: these leak, and it is seen


async def test_control_a_debate_with_a_switch_and_a_key_is_traced(environment, attempts):
    environment(API_KEY="lsv2_key", TRACING="true")
    await debate()
    assert tried(attempts)


async def test_control_a_debate_with_a_switch_alone_would_leak(environment, attempts):
    # Why evaluations ask for the key themselves: LangSmith's client sends without one.
    environment(TRACING="true")
    await debate()
    assert tried(attempts)


async def test_control_an_evaluation_with_both_is_traced(environment, attempts):
    environment(API_KEY="lsv2_key", TRACING="true")
    await evaluate()
    assert tried(attempts)


@pytest.mark.parametrize(
    ("kind", "attempt", "event"),
    [
        ("STREAM", lambda opened: opened.connect(("192.0.2.1", 443)), "socket.connect"),
        ("DGRAM", lambda opened: opened.sendto(b"x", ("192.0.2.1", 53)), "socket.sendto"),
        ("STREAM", lambda _: socket.getaddrinfo("langsmith.invalid", 443), "socket.getaddrinfo"),
    ],
)
def test_control_bare_sockets_are_seen_below_any_library(attempts, kind, attempt, event):
    with (
        socket.socket(socket.AF_INET, getattr(socket, f"SOCK_{kind}")) as opened,
        pytest.raises(ConnectionRefusedError),
    ):
        attempt(opened)
    assert [attempt.split()[0] for attempt in attempts] == [event]


# LangSmith's marks for pytest


@pytest.mark.langsmith
def test_a_test_marked_for_langsmith_runs_offline_with_tracking_off(attempts):
    from langsmith import testing

    testing.log_inputs({"question": "Is it so?"})
    testing.log_outputs({"answer": "true"})
    testing.log_feedback(key="accuracy", score=1)
    assert attempts == []
