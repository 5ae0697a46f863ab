"""Evaluation runs: what is asked, what is on disk, how topics are linked, replies cached."""

from __future__ import annotations

import json

from evals.plan import Configuration
from evals.run_folder import read_run
from evals.runner import Budgets
from tests.eval_session_helpers import (
    NO_GRAPH,
    answer,
    go,
    ids,
    options,
    questions,
    says_true,
)
from tests.scripted_model import scripted

__all__ = ["questions"]


# A whole run


def test_every_question_has_one_line_with_its_outcome_usage_and_thread(tmp_path, questions):
    spec, model = says_true()
    ending, _ = go(options(tmp_path, questions, spec))
    run = read_run(tmp_path / "run")
    assert ending.by == "complete"
    assert sorted(ids(run.lines)) == [f"q{n}" for n in range(6)]
    assert [line["outcome"] for line in run.lines].count("right") == 3
    assert len({line["thread"] for line in run.lines}) == 6
    assert len(model.asked) == 6
    first = run.lines[0]
    assert first["result"]["usage"]["llm_calls"] == len(first["calls"]) == 1
    assert first["label"] == "one call"
    assert set(run.questions) == {(first["dataset"], f"q{n}") for n in range(6)}


def test_questions_come_before_configurations_so_that_early_ends_leave_pairs(tmp_path, questions):
    spec, _ = says_true()
    rows = tuple(Configuration(label, "debate-on-graph", NO_GRAPH) for label in ("a", "b"))
    rows = (rows[0], Configuration("b", "debate-on-graph", {**NO_GRAPH, "temperature": 0}))
    _, heard = go(options(tmp_path, questions, spec, rows=rows, budgets=Budgets(calls=5)))
    assert [(line["question_id"], line["label"]) for line in heard.lines] == [
        ("q0", "a"), ("q0", "b"), ("q1", "a"), ("q1", "b"), ("q2", "a"),
    ]  # fmt: skip


def test_no_gold_answer_reaches_a_model(tmp_path):
    file = tmp_path / "gold.jsonl"
    row = {"id": "x", "question": "Who?", "answers": ["Zaphod"], "aliases": ["Beeblebrox"],
           "type": "secretkind", "reasoning": "hitchhiker"}  # fmt: skip
    file.write_text(json.dumps(row), encoding="utf-8")
    spec, model = scripted({"direct_answer": {"answer": "Ford", "confidence": 5, "reason": ""}})
    go(options(tmp_path, str(file), spec))
    shown = json.dumps([m.content for asked in model.asked for m in asked.messages])
    assert "Who?" in shown
    assert not any(word in shown for word in ("Zaphod", "Beeblebrox", "secretkind", "hitchhiker"))


def test_concurrency_is_bounded_and_used(tmp_path, questions):
    spec, model = says_true(seconds=0.05)
    go(options(tmp_path, questions, spec, concurrency=3))
    assert model.most_at_once == 3


def test_manifest_has_what_the_numbers_depend_on(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, seed=7, limit=4))
    manifest = read_run(tmp_path / "run").manifest
    cell = manifest["cells"][0]
    assert (cell["label"], cell["method"], cell["model"]) == ("one call", "debate-on-graph", spec)
    assert cell["settings"] == {"use_graph": False, "debate": False}
    assert cell["context"]["seed"] == 7
    assert cell["context"]["max_rounds"] == 3
    assert cell["prompts"]["debate_on_graph"]["version"]
    assert len(manifest["datasets"][0]["sha256"]) == 64
    assert manifest["datasets"][0]["questions"] == 4
    assert manifest["packages"]["langgraph"]
    assert manifest["graph"] is None


# Topics


def test_topics_are_linked_once_and_coverage_is_told(tmp_path):
    file = tmp_path / "facts.tsv"
    file.write_text("fox\tlives in\tforest\t0.9\n", encoding="utf-8")
    rows = [
        {"id": "given", "question": "Where?", "answers": ["x"], "topic_entities": ["fox"]},
        {"id": "mention", "question": "Where?", "answers": ["x"], "topic_entities": ["FOX"]},
        {"id": "question", "question": "Where is the fox?", "answers": ["x"],
         "topic_entities": ["unheard of"]},
        {"id": "none", "question": "Why?", "answers": ["x"]},
    ]  # fmt: skip
    questions = tmp_path / "q.jsonl"
    questions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    from evals.topics import coverage, link_question
    from graph_store import open_store
    from nodes.question_file import read_question_file

    linked = [link_question(open_store(file), q) for q in read_question_file(questions)]
    assert [one.how for one in linked] == ["given", "mention", "question", "none"]
    assert [one.topics for one in linked] == [("fox",), ("fox",), (), ()]
    assert coverage(linked) == {"given": 1, "mention": 1, "question": 1, "none": 1}


def test_a_session_without_a_graph_does_not_forget_how_topics_were_linked(tmp_path, questions):
    graph = tmp_path / "facts.tsv"
    graph.write_text("3\tis\todd\t0.9\n2\tis\teven\t0.9\n", encoding="utf-8")
    spec, _ = scripted({"direct_answer": {**answer(), "facts": []}, "answerer": answer()})
    with_graph = (Configuration("k1", "debate-on-graph", {"debate": "false", "fixed_k": "1"}),)
    without = (Configuration("zero", "zero-shot"),)
    rows = {"graph": str(graph), "settings": {}}
    go(options(tmp_path, questions, spec, rows=with_graph, budgets=Budgets(seconds=0), **rows))
    before = read_run(tmp_path / "run")
    assert set(before.linking.values()) == {"question"}
    ending, _ = go(options(tmp_path, questions, spec, rows=without, **rows), resume=True)
    after = read_run(tmp_path / "run")
    assert ending.by == "complete"
    assert after.linking == before.linking
    assert after.manifest["datasets"][0]["linking"] == before.manifest["datasets"][0]["linking"]
    assert after.manifest["graph"] == before.manifest["graph"]


# Cache, checkpoints


def test_equal_prompts_are_asked_once_and_cached_calls_are_told_apart(tmp_path, questions):
    spec, model = says_true()
    rows = (
        Configuration("one", "debate-on-graph", NO_GRAPH),
        Configuration("same", "debate-on-graph", {**NO_GRAPH, "alpha": 2}),
    )
    _, heard = go(options(tmp_path, questions, spec, rows=rows))
    assert len(model.asked) == 6
    usage = {(line["label"]): line["result"]["usage"] for line in heard.lines}
    assert (usage["one"]["llm_calls"], usage["one"]["cached_calls"]) == (1, 0)
    assert (usage["same"]["llm_calls"], usage["same"]["cached_calls"]) == (0, 1)
    assert heard.spent.calls == 6
    cached = next(line for line in heard.lines if line["label"] == "same")["calls"][0]
    assert cached["asked_seconds"] >= 0


def test_without_cache_everything_is_asked(tmp_path, questions):
    spec, model = says_true()
    rows = tuple(
        Configuration(label, "debate-on-graph", {**NO_GRAPH, "alpha": alpha})
        for label, alpha in (("a", 1), ("b", 2))
    )
    go(options(tmp_path, questions, spec, rows=rows, cache=False))
    assert len(model.asked) == 12


def test_final_states_are_kept_under_the_questions_threads(tmp_path, questions):
    spec, _ = says_true()
    _, heard = go(options(tmp_path, questions, spec, limit=2, checkpoints=True))
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "run" / "checkpoints.sqlite")) as kept:
        threads = [row[0] for row in kept.execute("SELECT thread_id FROM checkpoints")]
    # durability="exit": one checkpoint a question.
    assert sorted(threads) == sorted(line["thread"] for line in heard.lines)
