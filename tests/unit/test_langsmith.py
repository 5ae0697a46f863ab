"""Runs at LangSmith: what is sent, that it is sent once, and what is never sent."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from langsmith import Client
from langsmith import utils as langsmith_utils

from evals.langsmith_sending import SENT, Clock, MissingKeyError, UploadError, run_uuid
from evals.langsmith_upload import upload
from evals.metrics import score_question
from evals.records import prediction_of
from evals.run_folder import RunFolderError, read_run
from evals.tracing import prompt_version, run_config, tracing_allowed, tracing_off
from tests.cli_helpers import command_in_process, error_lines
from tests.fake_langsmith import FakeLangSmith

PROMPTS = {
    "debate_on_graph": {"version": "2", "sha256": "d" * 64},
    "shared": {"version": "1", "sha256": "s" * 64},
}
QUESTIONS = [
    {"id": "q1", "question": "Who built the light?", "answers": ["Zaphod Gold"],
     "aliases": {"Zaphod Gold": ["Goldie"]}, "reasoning": "Golden chain of facts",
     "topic_entities": ["light"], "type": "one-hop"},
    {"id": "q2", "question": "Which is it?", "choices": {"A": "moon", "B": "forest"},
     "answers": ["B"]},
    {"id": "q3", "question": "Is it so?", "question_type": "boolean", "answers": ["true"]},
]  # fmt: skip
SECRETS = ("Zaphod", "Goldie", "Golden chain")
"""Texts of gold that no answer below has."""


def result(status="answered", answers=(), choice=None, error=None):
    return {
        "status": status, "answers": list(answers), "answer": next(iter(answers), None),
        "choice": choice, "confidence": 0.7, "evidence": [], "error": error,
        "usage": {"llm_calls": 4, "input_tokens": 400, "output_tokens": 40, "by_role": {}},
        "trace": [{"role": "judge", "text": "hm"}],
    }  # fmt: skip


RESULTS = {
    "q1": result(answers=["Someone else"]),
    "q2": result(answers=["forest"], choice="B"),
    "q3": result("failed", error={"type": "UnusableAnswerError", "message": "not readable"}),
}


def cell(label, **fields):
    return {
        "label": label, "method": "debate-on-graph", "dataset": "riddles", "model": "local",
        "settings": {"max_rounds": 2}, "context": {"seed": 5, "max_rounds": 2},
        "prompts": PROMPTS, **fields,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "run")


def made(path, labels=("DoG", "DoG-E"), ago=timedelta(minutes=5), questions=QUESTIONS):
    path.mkdir(exist_ok=True)
    manifest = {
        "format": 1, "run_id": "abc123", "graphmoot": "0.1.0", "preset": None,
        "graph": {"location": "/secret/place/cn15k.graphmoot", "sha256": "f" * 64},
        "cells": [cell(label) for label in labels],
        "datasets": [{"name": "riddles", "path": "/secret/place/riddles.jsonl", "sha256": "e" * 64,
                      "reader": "own", "questions": len(questions)}],
    }  # fmt: skip
    started = datetime.now(UTC) - ago
    lines = [
        {"label": label, "method": "debate-on-graph", "dataset": "riddles", "model": "local",
         "question_id": q["id"], "outcome": outcome, "thread": f"abc123/{label}/{q['id']}",
         "started": (started + timedelta(seconds=n)).isoformat(timespec="seconds"),
         "seconds": 2.5, "result": RESULTS[q["id"]], "calls": []}
        for label in labels
        for n, (q, outcome) in enumerate(zip(questions, ("wrong", "right", "failed"), strict=True))
    ]  # fmt: skip
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name, rows in (
        ("questions.jsonl", [{**q, "dataset": "riddles", "linking": "given"} for q in questions]),
        ("results.jsonl", lines),
    ):
        (path / name).write_text("".join(f"{json.dumps(r)}\n" for r in rows), encoding="utf-8")
    return path


@pytest.fixture
def server():
    return FakeLangSmith()


def client_of(server, **fields):
    return Client(
        api_url="http://localhost:1984", api_key="key", session=server,
        auto_batch_tracing=False, **{"info": {}, **fields},
    )  # fmt: skip


def send(folder, server):
    return upload(folder, client_of(server))


def state(server):
    tables = server.datasets, server.examples, server.sessions, server.runs, server.feedback
    return json.dumps(tables, sort_keys=True)


# What is sent


def test_a_data_set_has_every_question_and_an_experiment_every_result(folder, server):
    summary = send(folder, server)
    (dataset,) = server.datasets.values()
    assert dataset["name"] == "riddles eeeeeeee"
    assert {e["metadata"]["question_id"] for e in server.examples.values()} == {"q1", "q2", "q3"}
    assert {s["reference_dataset_id"] for s in server.sessions.values()} == {dataset["id"]}
    assert [s["name"] for s in server.sessions.values()] == [
        "DoG · riddles · local · abc123",
        "DoG-E · riddles · local · abc123",
    ]
    assert len(server.runs) == 6
    assert [(e.label, e.results, e.new) for e in summary.experiments] == [
        ("DoG", 3, 3), ("DoG-E", 3, 3),
    ]  # fmt: skip
    assert [(d.examples, d.new) for d in summary.datasets] == [(3, 3)]


def test_runs_belong_to_their_experiment_and_example_and_carry_result_and_error(folder, server):
    send(folder, server)
    ids = {e["metadata"]["question_id"]: e["id"] for e in server.examples.values()}
    runs = [r for r in server.runs.values() if r["session_name"].startswith("DoG ·")]
    by_question = {r["extra"]["metadata"]["question_id"]: r for r in runs}
    for question, run in by_question.items():
        assert run["reference_example_id"] == ids[question]
        assert run["outputs"] == RESULTS[question]
        assert run["trace_id"] == run["id"]
        assert run["dotted_order"].endswith(f"Z{run['id']}")
        span = datetime.fromisoformat(run["end_time"]) - datetime.fromisoformat(run["start_time"])
        assert span == timedelta(seconds=2.5)
    assert by_question["q3"]["error"] == "UnusableAnswerError: not readable"
    assert by_question["q1"].get("error") is None


def test_runs_and_experiments_carry_tags_and_metadata(folder, server):
    send(folder, server)
    run = next(r for r in server.runs.values() if r["extra"]["metadata"]["question_id"] == "q2")
    metadata = run["extra"]["metadata"]
    assert {
        "method": "debate-on-graph", "dataset": "riddles", "model": "local", "label": "DoG",
        "prompt_version": "debate_on_graph@2, shared@1", "question_id": "q2", "outcome": "right",
        "llm_calls": 4, "input_tokens": 400,
    }.items() <= metadata.items()  # fmt: skip
    assert {"method:debate-on-graph", "dataset:riddles", "model:local", "label:DoG"} <= set(
        run["tags"]
    )
    extra = next(iter(server.sessions.values()))["extra"]
    assert "method:debate-on-graph" in extra["tags"]
    assert extra["metadata"]["settings"] == {"max_rounds": 2}
    assert extra["metadata"]["seed"] == 5
    assert extra["metadata"]["graph_sha256"] == "f" * 64


def test_feedback_is_what_the_scorer_says(folder, server):
    send(folder, server)
    run = read_run(folder)
    for line in run.lines:
        question = run.questions["riddles", line["question_id"]]
        score = score_question(question, prediction_of(line["result"], question.id))
        (sent,) = [
            r for r in server.runs.values()
            if r["extra"]["metadata"]["thread"] == line["thread"]
        ]  # fmt: skip
        about = [f for f in server.feedback.values() if f["run_id"] == sent["id"]]
        (outcome,) = [f for f in about if f["key"] == "outcome"]
        assert outcome["value"] == score.outcome == line["outcome"]
        scores = {f["key"]: f["score"] for f in about if f["key"] != "outcome"}
        assert scores == pytest.approx(score.values, abs=1e-4)
        assert scores


def test_gold_is_in_reference_outputs_and_never_in_inputs_or_runs(folder, server):
    send(folder, server)
    by_question = {e["metadata"]["question_id"]: e for e in server.examples.values()}
    assert by_question["q1"]["outputs"] == {
        "answers": ["Zaphod Gold"],
        "aliases": {"Zaphod Gold": ["Goldie"]},
        "reasoning": "Golden chain of facts",
    }
    assert by_question["q2"]["inputs"] == {
        "question": "Which is it?", "question_type": "choice",
        "choices": {"A": "moon", "B": "forest"},
    }  # fmt: skip
    without_outputs = [{**e, "outputs": None} for e in server.examples.values()]
    others = [without_outputs, *server.runs.values(), *server.sessions.values()]
    for sent in (*others, *server.datasets.values()):
        assert not any(secret in json.dumps(sent) for secret in SECRETS)


def test_servers_that_take_examples_in_parts_get_the_same_ones(folder, server):
    in_parts = FakeLangSmith()
    info = {"instance_flags": {"dataset_examples_multipart_enabled": True}}
    upload(folder, client_of(in_parts, info=info))
    send(folder, server)
    shown = [
        sorted(
            json.dumps([e["metadata"], e["inputs"], e["outputs"]], sort_keys=True)
            for e in one.examples.values()
        )
        for one in (in_parts, server)
    ]
    assert shown[0] == shown[1]
    assert len(in_parts.runs) == len(server.runs) == 6


def test_no_path_of_this_machine_is_sent(folder, server):
    send(folder, server)
    assert "/secret/place" not in json.dumps(server.asked, default=str)


def test_pages_are_told(folder, server):
    summary = send(folder, server)
    (dataset,) = server.datasets.values()
    for experiment, session in zip(summary.experiments, server.sessions.values(), strict=True):
        assert experiment.url.endswith(
            f"/datasets/{dataset['id']}/compare?selectedSessions={session['id']}"
        )
    assert summary.datasets[0].url.endswith(f"/datasets/{dataset['id']}")


# Again


def test_a_second_upload_changes_nothing_and_sends_no_result(folder, server):
    send(folder, server)
    before, asked = state(server), len(server.asked)
    summary = send(folder, server)
    assert state(server) == before
    assert {method for method, _, _ in server.asked[asked:]} == {"GET"}
    assert [e.new for e in summary.experiments] == [0, 0]


def test_without_the_account_of_what_was_sent_nothing_comes_twice_either(folder, server):
    send(folder, server)
    before = state(server)
    (folder / SENT).unlink()
    send(folder, server)
    assert state(server) == before


def test_a_broken_upload_goes_on_where_it_was(folder, server, monkeypatch):
    monkeypatch.setattr("evals.langsmith_upload.BATCH", 1)
    real, count = server._add_feedback, []

    def breaks_down(body):
        count.append(1)
        return (422, {"detail": "too much"}) if len(count) == 12 else real(body)

    monkeypatch.setattr(server, "_add_feedback", breaks_down)
    with pytest.raises(UploadError, match="upload again to go on"):
        send(folder, server)
    assert 0 < len(server.runs) < 6
    send(folder, server)
    whole = FakeLangSmith()
    (folder / SENT).unlink()
    send(folder, whole)
    assert len(server.runs) == len(whole.runs) == 6
    assert sorted(f["key"] for f in server.feedback.values()) == sorted(
        f["key"] for f in whole.feedback.values()
    )


def test_a_run_that_has_grown_adds_to_its_data_set_and_experiment(tmp_path, server):
    one = made(tmp_path / "run", labels=("DoG",))
    lines = (one / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    questions = (one / "questions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (one / "results.jsonl").write_text("".join(lines[:2]), encoding="utf-8")
    (one / "questions.jsonl").write_text("".join(questions[:2]), encoding="utf-8")
    send(one, server)
    (one / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    (one / "questions.jsonl").write_text("".join(questions), encoding="utf-8")
    summary = send(one, server)
    assert (summary.datasets[0].new, summary.experiments[0].new) == (1, 1)
    assert (len(server.datasets), len(server.sessions), len(server.runs)) == (1, 1, 3)


async def test_a_folder_of_the_runner_uploads_as_it_is(tmp_path, server):
    from evals.options import RunOptions
    from evals.plan import Configuration
    from evals.session import Watcher, run_session
    from tests.scripted_model import scripted

    file = tmp_path / "riddles.jsonl"
    file.write_text("".join(f"{json.dumps(q)}\n" for q in QUESTIONS), encoding="utf-8")
    reply = {"answer": "true", "confidence": 80, "reason": "so"}
    spec, _ = scripted({"direct_answer": lambda asked: reply if "so?" in asked.user else "?"})
    alone = Configuration("alone", "debate-on-graph", {"use_graph": "false", "debate": "false"})
    run = RunOptions(
        out=tmp_path / "run", configurations=(alone,), datasets=(str(file),), models=(spec,)
    )
    await run_session(run, Watcher())
    summary = send(run.out, server)
    assert [(e.label, e.results) for e in summary.experiments] == [("alone", 3)]
    told = {r["extra"]["metadata"]["question_id"]: r for r in server.runs.values()}
    assert {q: r["extra"]["metadata"]["outcome"] for q, r in told.items()} == {
        "q1": "failed", "q2": "failed", "q3": "right",
    }  # fmt: skip
    assert told["q3"]["outputs"]["answer"] == "true"
    assert "debate_on_graph@" in told["q3"]["extra"]["metadata"]["prompt_version"]
    assert str(tmp_path) not in json.dumps(server.asked, default=str)


def test_two_runs_of_one_data_set_share_it_and_have_experiments_of_their_own(tmp_path, server):
    for name in ("one", "two"):
        run = made(tmp_path / name, labels=("DoG",))
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        manifest["run_id"] = name
        (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        send(run, server)
    assert (len(server.datasets), len(server.examples), len(server.sessions)) == (1, 3, 2)


# Times


def test_results_of_long_ago_are_moved_to_where_langsmith_takes_them(tmp_path, server):
    run = made(tmp_path / "run", ago=timedelta(days=40))
    server.oldest = datetime.now(UTC) - timedelta(hours=24)
    summary = send(run, server)
    assert len(server.runs) == 6
    assert summary.experiments[0].moved_hours == pytest.approx(40 * 24, abs=0.1)
    for sent in server.runs.values():
        started = datetime.fromisoformat(sent["extra"]["metadata"]["started"])
        assert datetime.now(UTC) - started > timedelta(days=39)


def test_results_of_today_keep_their_times(folder, server):
    summary = send(folder, server)
    assert summary.experiments[0].moved_hours == 0
    starts = {line["thread"]: line["started"] for line in read_run(folder).lines}
    for sent in server.runs.values():
        told = datetime.fromisoformat(starts[sent["extra"]["metadata"]["thread"]])
        assert datetime.fromisoformat(sent["start_time"]).astimezone(UTC) == told


def test_a_run_longer_than_the_window_fits_into_it_with_its_durations():
    now = datetime(2025, 5, 5, tzinfo=UTC)
    lines = [
        {"started": (now - timedelta(hours=h)).isoformat(), "seconds": 60.0} for h in (90, 50, 10)
    ]
    clock = Clock(lines, now)
    times = [clock.times(line) for line in lines]
    assert all(now - timedelta(hours=24) < start < end <= now for start, end in times)
    assert {end - start for start, end in times} == {timedelta(seconds=60)}
    assert times == sorted(times)


def test_run_ids_are_of_version_7_with_their_time_and_their_own():
    start = datetime(2025, 5, 5, 12, tzinfo=UTC)
    ids = [
        run_uuid(start, uuid.UUID(int=project), {"question_id": question, "started": started})
        for project in (1, 2)
        for question in ("a", "b")
        for started in ("x", "y")
    ]
    assert len(set(ids)) == 8
    assert {(one.version, one.variant) for one in ids} == {(7, uuid.RFC_4122)}
    assert {one.int >> 80 for one in ids} == {int(start.timestamp() * 1000)}


# What goes wrong


@pytest.fixture
def no_key(monkeypatch):
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_key_the_command_says_so_in_one_line(folder, capsys, no_key):
    with pytest.raises(MissingKeyError):
        upload(folder)
    ran = command_in_process(capsys)("eval", "upload", folder)
    assert ran.status == 2
    (line,) = error_lines(ran)
    assert "LANGSMITH_API_KEY is not set" in line


@pytest.fixture
def keyed(monkeypatch, server):
    """The client that the environment gives, on the fake server."""
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_key")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://localhost:1984")
    monkeypatch.setenv("LANGSMITH_TRACING_SAMPLING_RATE", "0")
    langsmith_utils.get_env_var.cache_clear()
    monkeypatch.setattr("langsmith.client.requests.Session", lambda: server)
    yield server
    langsmith_utils.get_env_var.cache_clear()


def test_the_command_sends_everything_and_prints_the_pages(folder, capsys, keyed):
    ran = command_in_process(capsys)("eval", "upload", folder)
    assert ran.status == 0
    assert len(keyed.runs) == 6  # whatever the sampling rate for traces is
    assert ran.out.count("/compare?selectedSessions=") == 2
    assert "DoG · riddles · local" in ran.out
    again = command_in_process(capsys)("eval", "upload", folder, "--json").json
    assert [e["new"] for e in again["experiments"]] == [0, 0]


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (("GET", "/datasets"), 401, "refuses the key"),
        (("POST", "/datasets"), 403, "Failed to POST /datasets"),
        (("POST", "/runs/batch"), 422, "Failed to POST"),
        (("POST", "/feedback"), 400, "Failed to POST /feedback"),
    ],
)
def test_what_langsmith_refuses_is_one_line_and_status_1(folder, capsys, keyed, path, status, told):
    keyed.failing[path] = status
    ran = command_in_process(capsys)("eval", "upload", folder)
    assert ran.status == 1
    assert len(error_lines(ran)) == 1
    assert told in error_lines(ran)[0]
    assert "Traceback" not in ran.err
    assert "lsv2_key" not in ran.err
    del keyed.failing[path]
    assert command_in_process(capsys)("eval", "upload", folder).status == 0
    assert len(keyed.runs) == 6


def test_folders_without_a_run_or_results_are_named(tmp_path, server):
    with pytest.raises(RunFolderError, match="holds no run"):
        send(tmp_path, server)
    run = made(tmp_path / "run")
    (run / "results.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(RunFolderError, match="no results to upload"):
        send(run, server)
    assert server.asked == []


def test_a_spoilt_account_of_what_was_sent_is_named(folder, server):
    (folder / SENT).write_text("{", encoding="utf-8")
    with pytest.raises(UploadError, match=rf"{SENT}: cannot be read.*delete it"):
        send(folder, server)


# Traces


def test_a_trace_carries_method_data_set_model_prompts_and_question():
    config = run_config(
        label="DoG-E", method="debate-on-graph", dataset="csqa", model="openai:gpt-4o-mini",
        question_id="q7", prompts=PROMPTS,
    )  # fmt: skip
    assert config["run_name"] == "DoG-E · csqa · q7"
    assert config["metadata"] == {
        "label": "DoG-E", "method": "debate-on-graph", "dataset": "csqa",
        "model": "openai:gpt-4o-mini", "prompt_version": "debate_on_graph@2, shared@1",
        "question_id": "q7",
    }  # fmt: skip
    assert {"label:DoG-E", "method:debate-on-graph", "dataset:csqa"} <= set(config["tags"])


async def test_a_traced_question_has_them_on_every_run_and_its_name_on_the_first(server, tmp_path):
    from langsmith import tracing_context

    from tests.scripted_model import scripted
    from workflows.debate_on_graph import graph

    spec, _ = scripted({"direct_answer": {"answer": "true", "confidence": 80, "reason": "so"}})
    config = run_config(
        label="alone", method="debate-on-graph", dataset="riddles", model=spec,
        question_id="q3", prompts=PROMPTS,
    )  # fmt: skip
    with tracing_context(enabled=True, client=client_of(server), project_name="evaluation"):
        await graph.ainvoke(
            {"question": "Is it so?", "question_type": "boolean"}, config,
            context={"model": spec, "use_graph": False, "debate": False},
        )  # fmt: skip
    (root,) = [run for run in server.runs.values() if not run.get("parent_run_id")]
    assert root["name"] == "alone · riddles · q3"
    assert len(server.runs) > 3
    for run in server.runs.values():
        assert run["session_name"] == "evaluation"
        assert config["metadata"].items() <= run["extra"]["metadata"].items()
        assert set(config["tags"]) <= set(run["tags"])


def test_prompt_versions_come_in_one_order():
    assert prompt_version(dict(reversed(PROMPTS.items()))) == prompt_version(PROMPTS)
    assert prompt_version({}) == ""


@pytest.mark.parametrize(
    ("environment", "allowed"),
    [
        ({}, False),
        ({"LANGSMITH_API_KEY": "k"}, False),
        ({"LANGSMITH_TRACING": "true"}, False),
        ({"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": " "}, False),
        ({"LANGSMITH_TRACING": "false", "LANGSMITH_API_KEY": "k"}, False),
        ({"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "k"}, True),
        ({"LANGCHAIN_TRACING_V2": "true", "LANGCHAIN_API_KEY": "k"}, True),
    ],
)
def test_tracing_needs_a_switch_and_a_key(monkeypatch, no_key, environment, allowed):
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tracing_allowed() is allowed


def test_tracing_off_outweighs_whatever_switched_tracing_on(server):
    from langchain_core.tracers.context import _tracing_v2_is_enabled, tracing_v2_enabled
    from langsmith import tracing_context

    with tracing_v2_enabled(client=client_of(server)), tracing_context(enabled=True):
        assert _tracing_v2_is_enabled()
        with tracing_off():
            assert not _tracing_v2_is_enabled()
        assert _tracing_v2_is_enabled()


def test_the_fake_server_drops_old_runs_and_keeps_first_ones():
    # The tests above rest on these two habits of LangSmith's.
    server = FakeLangSmith()
    server.oldest = datetime.now(UTC)
    row = {"id": hashlib.md5(b"x").hexdigest(), "start_time": "2020-01-01T00:00:00+00:00"}
    assert server._add_runs({"post": [row]})[0] == 202
    assert server.runs == {}
