"""`ask`, `demo` and `methods` as their users see them, with a model that says what it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import nodes.tools
from cli.live_view import LiveView
from nodes.errors import ModelError
from tests.cli_helpers import ROOT, command_in_process, error_lines
from tests.fake_embedder import FakeEmbedder
from tests.scripted_model import scripted

FACTS = """fox	located at	forest	0.95
fox	located at	moon	0.4
fox	eats	mouse	0.9
mouse	lives in	barn	0.8
"""
QUESTION = "Where does the fox live?"
CHOICES = ("--choice", "A=moon", "--choice", "B=forest")


@pytest.fixture(autouse=True)
def _fake_embeddings(monkeypatch):
    monkeypatch.setattr(nodes.tools, "load_embedder", lambda name: FakeEmbedder())


@pytest.fixture
def graphmoot(capsys):
    return command_in_process(capsys)


@pytest.fixture
def store(tmp_path):
    file = tmp_path / "facts.tsv"
    file.write_text(FACTS, encoding="utf-8")
    return file


def model(**lines):
    def says(answer, facts=()):
        return {"answer": answer, "facts": list(facts), "argument": "[bold]because[/] \x1b[31m"}

    return scripted(
        {
            "proponent": says("B", [1]),
            "challenger": says("B"),
            "decision_maker": {"action": "stop", "reason": "agreed"},
            "judge": {"answer": "B", "confidence": 90, "reason": "clear"},
            **lines,
        }
    )


def test_json_is_the_only_thing_on_stdout(store, graphmoot):
    spec, _ = model()
    ran = graphmoot("ask", QUESTION, "--graph", store, "--model", spec, *CHOICES, "--json")
    assert ran.status == 0
    result = ran.json
    assert (result["status"], result["choice"], result["answer"]) == ("answered", "B", "forest")
    assert [f for f in result["evidence"] if f["supports"]]
    assert "Proponent" in ran.err


def test_people_see_answer_confidence_evidence_and_cost(store, graphmoot):
    spec, _ = model()
    ran = graphmoot("ask", QUESTION, "--graph", store, "--model", spec, *CHOICES)
    assert ran.status == 0
    assert "B: forest" in ran.out
    assert "0.90" in ran.out
    rows = [line.split() for line in ran.out.splitlines()]
    supports = [row[0] == "yes" for row in rows if "fox" in row]
    assert supports == sorted(supports, reverse=True)
    assert any(row[0] == "yes" and "forest" in row for row in rows if "fox" in row)
    assert any(row[:2] == ["judge", "1"] for row in rows)
    assert "Judge answers B, confidence 0.9" in ran.err


def test_choices_and_topics_may_stand_in_a_row(store, graphmoot):
    spec, asked = model()
    ran = graphmoot(
        *("ask", QUESTION, "--graph", store, "--model", spec),
        *("--choice", "A=moon", "B=forest", "--topic", "fox", "mouse", "--json"),
    )
    assert {topic["entity"] for topic in ran.json["topic_entities"]} == {"fox", "mouse"}
    assert "forest" in asked.of("challenger")[0].user


def test_what_a_model_says_is_shown_not_obeyed(store, graphmoot):
    spec, _ = model()
    ran = graphmoot("ask", QUESTION, "--graph", store, "--model", spec, *CHOICES)
    assert "[bold]because[/] \\x1b[31m" in ran.err
    assert "\x1b" not in ran.err + ran.out


def test_no_answer_has_status_3(store, graphmoot):
    spec, _ = model(judge={"answer": None, "confidence": 0, "reason": "unknown"})
    ran = graphmoot("ask", QUESTION, "--graph", store, "--model", spec, "--json")
    assert (ran.status, ran.json["status"]) == (3, "no_answer")


def test_a_model_that_fails_has_status_1_and_one_line(store, graphmoot):
    spec, _ = model(challenger=ModelError("no such server"), proponent=ModelError("no such server"))
    ran = graphmoot(
        *("ask", QUESTION, "--graph", store, "--model", spec, *CHOICES, "--json"),
        *("--set", "max_retries=0"),
    )
    assert (ran.status, ran.json["status"]) == (1, "failed")
    assert len(error_lines(ran)) == 1
    assert "no such server" in error_lines(ran)[0]


@pytest.mark.parametrize("as_json", [False, True])
def test_an_unknown_topic_costs_no_model_call(as_json, store, graphmoot):
    spec, asked = model()
    arguments = ["ask", QUESTION, "--graph", store, "--model", spec, "--topic", "foxx"]
    ran = graphmoot(*arguments, *(["--json"] if as_json else []))
    assert ran.status == 3
    assert "'fox'" in error_lines(ran)[0]
    assert asked.asked == []
    if as_json:
        assert ran.json["status"] == "no_answer"
        assert ran.json["error"]["type"] == "UnknownEntityError"
    else:
        assert ran.out == ""


def test_an_ambiguous_topic_is_told(tmp_path, graphmoot):
    graph = tmp_path / "wei.jsonl"
    rows = [
        {"head_id": entity, "head": "Li Wei", "relation": "born in", "tail": "X", "confidence": 1}
        for entity in ("Q1", "Q2")
    ]
    graph.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    spec, asked = model()
    ran = graphmoot("ask", "?x", "--graph", graph, "--model", spec, "--topic", "Li Wei")
    assert ran.status == 2
    assert "ambiguous" in error_lines(ran)[0]
    assert "Q1" in ran.err
    assert "Q2" in ran.err
    assert asked.asked == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--choice", "A"], "--choice 'A'"),
        (["--choice", "=x", "--choice", "B=y"], "--choice '=x'"),
        (["--choice", "A=x", "--choice", "A=y"], "--choice A is given twice"),
        (["--choice", "A=x"], "at least two"),
        (["--choice", "A=", "--choice", "B=y"], "--choice A has no text"),
        (["--choice", "A=x", "--choice", "B=y", "--choice", "C=X "], "--choice A and C"),
        (["--boolean", *CHOICES], "--boolean"),
        (["--set", "max_rounds"], "--set 'max_rounds'"),
        (["--set", "max_rounds=99"], "max_rounds"),
        (["--set", "max_roundz=1"], "max_roundz"),
        (["--set", "graph=x"], "--graph"),
        (["--set", 'role_settings={"jdge": {"temperature": 0}}'], "jdge"),
        (["--role-model", "jdge=local"], "jdge"),
        (["--role-model", "judge"], "--role-model 'judge'"),
        (["--model", "weird"], "weird"),
        (["--method", "nope"], "nope"),
        (["--graph", "no-such.graphmoot"], "no-such.graphmoot"),
    ],
)
def test_bad_options_are_one_line_and_status_2(arguments, named, graphmoot):
    ran = graphmoot("ask", "q", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert named in error_lines(ran)[0]


def test_roles_may_have_models_of_their_own(store, graphmoot):
    spec, main_model = model()
    judge, judging = model(judge={"answer": "A", "confidence": 60, "reason": "odd"})
    ran = graphmoot(
        *("ask", QUESTION, "--graph", store, "--model", spec, *CHOICES),
        *("--role-model", f"judge={judge}", "--set", "max_rounds=1", "--json"),
    )
    assert ran.json["choice"] == "A"
    assert main_model.of("judge") == []
    assert len(judging.of("judge")) == 1


def test_the_demo_tells_the_gold_answer_and_what_to_try_next(graphmoot):
    spec, _ = model(judge={"answer": "C", "confidence": 90, "reason": "survey"})
    ran = graphmoot("demo", "--model", spec)
    assert ran.status == 0
    assert "C: A rotten hull plank" in ran.out
    assert "gold answer: C: A rotten hull plank — the same" in ran.err
    assert "graphmoot ingest" in ran.err
    ran = graphmoot("demo", "--model", spec, "--json")
    assert (ran.json["gold"], ran.json["choice"]) == ("C", "C")


def test_the_demo_lists_its_questions(graphmoot):
    assert "sample-01" in graphmoot("demo", "--list").out
    assert graphmoot("demo", "--question", "999").status == 2


def test_methods_are_listed_with_their_settings(graphmoot):
    assert "debate-on-graph" in graphmoot("methods").out
    entry = next(m for m in graphmoot("methods", "--json").json if m["name"] == "debate-on-graph")
    assert {"name", "paper", "roles", "settings"} <= set(entry)
    assert entry["settings"]["max_rounds"]["default"] == 3
    one = graphmoot("methods", "debate-on-graph").out
    assert "information_asymmetry" in one
    assert "graph TD" in one
    assert graphmoot("methods", "debate-on-graph", "--mermaid").out.startswith("---")
    assert graphmoot("methods", "--mermaid").status == 2
    assert graphmoot("methods", "nope").status == 2


def test_events_that_are_not_known_or_sparse_do_no_harm(capsys):
    with LiveView() as view:
        view.on_event({"event": "new in a later version", "x": 1})
        view.on_event({})
        for kind in ("linked", "evidence", "started", "said", "decided", "judged", "model"):
            view.on_event({"event": kind})
        view.on_event({"event": "failed", "role": "judge", "message": "gone"})
    assert "Judge failed: gone" in capsys.readouterr().err


def test_ctrl_c_ends_with_one_line_that_says_what_was_spent(store):
    code = (
        "import sys, nodes.tools\n"
        "from tests.fake_embedder import FakeEmbedder\n"
        "from tests.scripted_model import scripted\n"
        "from cli.main import main\n"
        "nodes.tools.load_embedder = lambda name: FakeEmbedder()\n"
        "said = {'answer': 'x', 'facts': [], 'argument': 'y'}\n"
        "spec, _ = scripted({'proponent': said, 'challenger': said}, seconds=60)\n"
        "sys.exit(main(['ask', 'Where is the fox?', '--graph', sys.argv[1], '--model', spec]))\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    told = []
    while "Proponent" not in (line := running.stderr.readline()):
        assert line, told
        told.append(line)
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("error: interrupted after")
    assert "model calls finished" in err
