"""Evaluation runs: what is asked, what is on disk, how runs end and go on."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from evals.options import RunOptions
from evals.plan import Configuration, PlanError, parse_configuration, plan_cells
from evals.prices import Price, cost_of, price_of, read_prices
from evals.run_folder import RunFolderError, RunWriter, read_lines, read_run
from evals.runner import Budgets
from evals.session import Watcher, run_session
from nodes.errors import ModelError, RequestRefusedError
from nodes.question_file import QuestionFileError
from tests.scripted_model import scripted

QUESTIONS = [
    {
        "id": f"q{n}",
        "question": f"Is {n} even?",
        "question_type": "boolean",
        "answers": [n % 2 == 0],
    }
    for n in range(6)
]
NO_GRAPH = {"use_graph": "false", "debate": "false"}
"""One call of the role `direct_answer`."""
REFUSAL = "I would rather not say anything about that."


class Heard(Watcher):
    def __init__(self) -> None:
        self.lines = []
        self.texts = []
        self.tasks = []
        self.on_line = lambda line: None

    def planned(self, tasks, done):
        self.tasks = list(tasks)

    def finished(self, line, spent):
        self.lines.append(line)
        self.spent = spent
        self.on_line(line)

    def said(self, text):
        self.texts.append(text)


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "numbers.jsonl"
    file.write_text("".join(f"{json.dumps(q)}\n" for q in QUESTIONS), encoding="utf-8")
    return str(file)


def answer(value="true", confidence=80):
    return {"answer": value, "confidence": confidence, "reason": "so it is"}


def says_true(**fields):
    return scripted({"direct_answer": answer()}, **fields)


def options(tmp_path, questions, spec, **changes):
    changes.setdefault("concurrency", 1)
    rows = changes.pop("rows", (Configuration("one call", "debate-on-graph", NO_GRAPH),))
    return RunOptions(
        out=tmp_path / "run", configurations=rows, datasets=(questions,), models=(spec,), **changes
    )


def go(options, watcher=None, **how):
    watcher = watcher or Heard()
    return asyncio.run(run_session(options, watcher, **how)), watcher


def lines_of(tmp_path):
    return read_lines(tmp_path / "run")


def ids(lines):
    return [line["question_id"] for line in lines]


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


# Going on


def test_resume_asks_exactly_the_rest(tmp_path, questions):
    spec, model = says_true()
    whole = options(tmp_path, questions, spec, cache=False)
    ending, _ = go(options(tmp_path, questions, spec, cache=False, budgets=Budgets(calls=2)))
    assert (ending.by, len(lines_of(tmp_path))) == ("budget", 2)
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    ending, heard = go(whole, resume=True)
    assert ending.by == "complete"
    assert ids(heard.lines) == ["q2", "q3", "q4", "q5"]
    assert len(model.asked) == 6
    assert (tmp_path / "run" / "results.jsonl").read_bytes().startswith(before)


def test_resume_without_a_method_continues_as_it_was(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, budgets=Budgets(calls=2), seed=3))
    ending, heard = go(RunOptions(out=tmp_path / "run", budgets=Budgets(calls=100)), resume=True)
    assert (ending.by, len(heard.lines)) == ("complete", 4)
    manifest = read_run(tmp_path / "run").manifest
    assert manifest["seed"] == 3
    assert len(manifest["sessions"]) == 2


def test_a_torn_last_line_is_cut_and_its_question_asked_again(tmp_path, questions):
    spec, model = says_true()
    go(options(tmp_path, questions, spec, cache=False))
    file = tmp_path / "run" / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    assert len(read_run(tmp_path / "run").lines) == 5
    _, heard = go(options(tmp_path, questions, spec, cache=False), resume=True)
    assert ids(heard.lines) == ["q5"]
    assert len(lines_of(tmp_path)) == 6
    assert len(model.asked) == 7


def test_a_broken_line_in_the_middle_is_named(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec))
    file = tmp_path / "run" / "results.jsonl"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([rows[0], "{broken", *rows[2:], ""]))
    with pytest.raises(RunFolderError, match=r"results\.jsonl:2"):
        go(options(tmp_path, questions, spec), resume=True)


def test_a_run_is_not_overwritten_without_resume(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec))
    with pytest.raises(RunFolderError, match="--resume"):
        go(options(tmp_path, questions, spec))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"rows": (Configuration("one call", "debate-on-graph", {**NO_GRAPH, "alpha": 2}),)},
            "alpha",
        ),
        ({"seed": 1}, "seed"),
        ({"offset": 1}, "offset"),
    ],
)
def test_resume_refuses_to_mix_what_has_changed(tmp_path, questions, change, named):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, limit=2))
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(RunFolderError, match=f"cannot resume.*{named}"):
        go(options(tmp_path, questions, spec, **{"limit": 2, **change}), resume=True)
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_resume_refuses_changed_prompts_and_changed_questions(tmp_path, questions, monkeypatch):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, limit=2))
    Path(questions).write_text(Path(questions).read_text().replace("even", "odd"))
    with pytest.raises(RunFolderError, match="cannot resume: data set numbers"):
        go(options(tmp_path, questions, spec, limit=2), resume=True)
    Path(questions).write_text(Path(questions).read_text().replace("odd", "even"))
    from prompts import debate_on_graph

    monkeypatch.setattr(debate_on_graph, "DIRECT", "Just guess.")
    with pytest.raises(RunFolderError, match="prompts in 'debate_on_graph' have changed"):
        go(options(tmp_path, questions, spec, limit=2), resume=True)


def test_a_run_may_grow_by_questions_and_configurations(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, limit=2))
    more = (
        Configuration("one call", "debate-on-graph", NO_GRAPH),
        Configuration("cold", "debate-on-graph", {**NO_GRAPH, "temperature": 0}),
    )
    _, heard = go(options(tmp_path, questions, spec, rows=more, limit=3), resume=True)
    assert sorted((line["label"], line["question_id"]) for line in heard.lines) == [
        ("cold", "q0"), ("cold", "q1"), ("cold", "q2"), ("one call", "q2"),
    ]  # fmt: skip
    run = read_run(tmp_path / "run")
    assert [cell["label"] for cell in run.manifest["cells"]] == ["one call", "cold"]
    assert len(run.questions) == 3


def test_two_processes_cannot_write_to_one_folder(tmp_path, questions):
    spec, _ = says_true()
    with RunWriter(tmp_path / "run"), pytest.raises(RunFolderError, match="another evaluation"):
        go(options(tmp_path, questions, spec))


def test_two_runs_at_once_share_no_threads(tmp_path, questions):
    spec, _ = says_true(seconds=0.01)
    other = tmp_path / "other"
    other.mkdir()

    def second():
        go(options(other, questions, spec))

    thread = threading.Thread(target=second)
    thread.start()
    go(options(tmp_path, questions, spec))
    thread.join()
    threads = [line["thread"] for folder in (tmp_path, other) for line in lines_of(folder)]
    assert len(threads) == len(set(threads)) == 12


# Failures


def test_unreadable_replies_fail_the_question_and_not_the_run(tmp_path, questions):
    def line(asked):
        return "I would rather not." if "Is 3" in asked.user else answer()

    spec, _ = scripted({"direct_answer": line})
    ending, heard = go(options(tmp_path, questions, spec))
    assert ending.by == "complete"
    outcomes = {line["question_id"]: line["outcome"] for line in heard.lines}
    assert outcomes["q3"] == "failed"
    assert [outcomes[q] for q in ("q1", "q5")] == ["wrong", "wrong"]
    failed = next(line for line in heard.lines if line["question_id"] == "q3")
    assert failed["result"]["error"]["type"] == "UnusableAnswerError"


def test_a_model_that_is_gone_ends_the_run_and_leaves_its_questions_open(tmp_path, questions):
    replies = [answer(), answer(), ModelError("the server is gone; start it")]
    spec, _ = scripted({"direct_answer": replies})
    ending, heard = go(options(tmp_path, questions, spec, cache=False))
    assert ending.by == "model"
    assert "the server is gone" in ending.text
    assert ids(heard.lines) == ["q0", "q1"]
    _, model = says_true()
    model_lines = options(tmp_path, questions, spec, cache=False)
    from nodes.model_spec import register_chat_model

    register_chat_model(spec.removeprefix("chat:"), model)
    ending, heard = go(model_lines, resume=True)
    assert ending.by == "complete"
    assert ids(heard.lines) == ["q2", "q3", "q4", "q5"]


def test_a_model_that_is_gone_leaves_also_the_last_questions_open(tmp_path, questions):
    spec, _ = scripted({"direct_answer": ModelError("nobody answers")})
    ending, heard = go(options(tmp_path, questions, spec, limit=2))
    assert ending.by == "model"
    assert heard.lines == []


def test_a_question_whose_model_fails_once_is_put_off_and_answered(tmp_path, questions):
    failures = []

    def line(asked):
        if "Is 2" in asked.user and not failures:
            failures.append(1)
            raise ModelError("busy")
        return answer()

    spec, _ = scripted({"direct_answer": line})
    ending, heard = go(options(tmp_path, questions, spec))
    assert ending.by == "complete"
    assert ids(heard.lines) == ["q0", "q1", "q3", "q4", "q5", "q2"]
    assert any("one call, q2 is put off: " in text for text in heard.texts)


def test_a_question_whose_model_always_fails_is_failed_and_asked_again_on_request(
    tmp_path, questions
):
    broken = [True]

    def line(asked):
        if "Is 2" in asked.user and broken:
            raise ModelError("the prompt is too long")
        return answer()

    spec, _ = scripted({"direct_answer": line})
    ending, heard = go(options(tmp_path, questions, spec, cache=False))
    assert ending.by == "complete"
    assert [line["question_id"] for line in heard.lines if line["outcome"] == "failed"] == ["q2"]
    _, heard = go(options(tmp_path, questions, spec, cache=False), resume=True)
    assert heard.lines == []
    broken.clear()
    how = {"resume": True, "retry_failed": True}
    _, heard = go(options(tmp_path, questions, spec, cache=False), **how)
    assert [(line["question_id"], line["outcome"]) for line in heard.lines] == [("q2", "right")]
    assert len(lines_of(tmp_path)) == 6


def test_a_request_that_is_refused_is_no_sign_that_the_model_is_gone(tmp_path, questions):
    def line(asked):
        if "Is 1" in asked.user:
            raise RequestRefusedError("HTTP 400: filtered")
        return answer()

    spec, _ = scripted({"direct_answer": line})
    rows = tuple(
        Configuration(f"c{n}", "debate-on-graph", {**NO_GRAPH, "alpha": str(n)}) for n in range(5)
    )
    ending, heard = go(options(tmp_path, questions, spec, rows=rows, cache=False))
    assert ending.by == "complete"
    failed = [line for line in heard.lines if line["outcome"] == "failed"]
    assert {line["question_id"] for line in failed} == {"q1"}
    assert len(failed) == 5


def test_retrying_other_configurations_loses_no_failed_line(tmp_path, questions):
    spec, _ = scripted({"direct_answer": REFUSAL, "answerer": answer()})
    go(options(tmp_path, questions, spec, limit=2))
    other = (Configuration("zero", "zero-shot"),)
    how = {"resume": True, "retry_failed": True}
    go(options(tmp_path, questions, spec, rows=other, limit=2), **how)
    outcomes = [(line["label"], line["outcome"]) for line in lines_of(tmp_path)]
    assert outcomes.count(("one call", "failed")) == 2
    go(options(tmp_path, questions, spec, limit=2, budgets=Budgets(seconds=0)), **how)
    assert len(lines_of(tmp_path)) == 4


def test_lines_of_questions_asked_again_are_kept_apart_and_still_paid_for(tmp_path, questions):
    replies = [REFUSAL, REFUSAL, answer()]
    spec, model = scripted({"direct_answer": replies})
    go(options(tmp_path, questions, spec, limit=1, cache=False))
    how = {"resume": True, "retry_failed": True}
    once = options(tmp_path, questions, spec, limit=1, cache=False, budgets=Budgets(calls=3))
    _, heard = go(once, **how)
    assert heard.spent.calls == 3  # the two unreadable ones and the third
    assert [line["outcome"] for line in lines_of(tmp_path)] == ["right"]
    raw = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert len(raw) == 1
    superseded = (tmp_path / "run" / "superseded.jsonl").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in superseded] == ["failed"]
    more = options(tmp_path, questions, spec, limit=2, cache=False, budgets=Budgets(calls=3))
    ending, _ = go(more, resume=True)
    assert ending.by == "budget"
    assert len(model.asked) == 3


def test_money_spent_by_other_configurations_counts(tmp_path, questions):
    spec, _ = scripted({"direct_answer": answer(), "answerer": answer()})
    prices = {spec: Price(input=0.5, output=3)}  # $0.00008 a call
    go(options(tmp_path, questions, spec, prices=prices, limit=3))
    other = options(tmp_path, questions, spec, rows=(Configuration("zero", "zero-shot"),),
                    prices=prices, limit=3, budgets=Budgets(dollars=0.0003))  # fmt: skip
    ending, heard = go(other, resume=True)
    assert (ending.by, len(heard.lines)) == ("budget", 1)


def test_a_finished_run_is_complete_though_its_budget_is_used_up(tmp_path, questions):
    spec, _ = says_true()
    ending, _ = go(options(tmp_path, questions, spec, limit=2, budgets=Budgets(calls=2)))
    assert ending.by == "complete"


def test_equal_prompts_at_once_are_asked_once(tmp_path, questions):
    spec, model = says_true(seconds=0.02)
    rows = tuple(
        Configuration(f"c{n}", "debate-on-graph", {**NO_GRAPH, "alpha": str(n)}) for n in range(4)
    )
    ending, heard = go(options(tmp_path, questions, spec, rows=rows, concurrency=8))
    assert ending.by == "complete"
    assert len(model.asked) == 6
    assert heard.texts == []


def test_a_plain_resume_does_the_rest_of_all_that_was_asked_for(tmp_path, questions):
    spec, _ = scripted({"direct_answer": answer(), "answerer": answer()})
    go(options(tmp_path, questions, spec, limit=4, budgets=Budgets(calls=1)))
    other = (Configuration("zero", "zero-shot"),)
    go(
        options(tmp_path, questions, spec, rows=other, limit=2, budgets=Budgets(calls=2)),
        resume=True,
    )
    ending, _ = go(RunOptions(out=tmp_path / "run", budgets=Budgets(calls=99)), resume=True)
    labels = [line["label"] for line in lines_of(tmp_path)]
    assert ending.by == "complete"
    assert (labels.count("one call"), labels.count("zero")) == (4, 2)


def test_a_plain_resume_takes_new_options(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, limit=2))
    _, heard = go(RunOptions(out=tmp_path / "run", limit=4), resume=True)
    assert ids(heard.lines) == ["q2", "q3"]
    with pytest.raises(RunFolderError, match=r"cannot resume.*seed"):
        go(RunOptions(out=tmp_path / "run", seed=9), resume=True)


def test_a_graph_that_is_replaced_ends_the_run_and_leaves_the_rest_open(tmp_path, questions):
    graph = tmp_path / "facts.tsv"
    graph.write_text("3\tis\todd\t0.9\n", encoding="utf-8")

    def line(asked):
        if "Is 2" in asked.user:
            graph.write_text("3\tis\teven\t0.9\n2\tis\todd\t0.9\n", encoding="utf-8")
        return {**answer(), "facts": []}

    spec, _ = scripted({"direct_answer": line})
    rows = (Configuration("k1", "debate-on-graph", {"debate": "false", "fixed_k": "1"}),)
    ending, heard = go(options(tmp_path, questions, spec, rows=rows, graph=str(graph)))
    assert ending.by == "graph"
    assert ids(heard.lines) == ["q0", "q1"]
    with pytest.raises(RunFolderError, match="cannot resume: the graph"):
        go(options(tmp_path, questions, spec, rows=rows, graph=str(graph)), resume=True)


def test_a_changed_file_of_examples_is_not_mixed(tmp_path, questions):
    file = tmp_path / "examples.jsonl"
    row = {"question": "Is 8 even?", "question_type": "boolean", "answers": ["true"]}
    file.write_text(json.dumps(row), encoding="utf-8")
    spec, _ = scripted({"answerer": answer()})
    rows = (Configuration("few", "few-shot", {"examples": str(file), "shots": "1"}),)
    go(options(tmp_path, questions, spec, rows=rows, limit=1))
    file.write_text(json.dumps({**row, "question": "Is 7 odd?"}), encoding="utf-8")
    with pytest.raises(RunFolderError, match="cannot resume: 'few': the file of examples"):
        go(options(tmp_path, questions, spec, rows=rows, limit=2), resume=True)


def test_an_unexpected_error_fails_one_question_with_its_message(tmp_path, questions, monkeypatch):
    import evals.runner

    class Broken:
        checkpointer = None

        async def ainvoke(self, asked, config, context, **options):
            raise KeyError("boom")

    monkeypatch.setattr(evals.runner.Runner, "_graph_of", lambda self, cell: Broken())
    spec, _ = says_true()
    ending, heard = go(options(tmp_path, questions, spec))
    assert ending.by == "complete"
    assert {line["outcome"] for line in heard.lines} == {"failed"}
    assert heard.lines[0]["result"]["error"] == {"type": "KeyError", "message": "'boom'"}


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


# Budgets and prices


@pytest.mark.parametrize(
    ("budget", "count"),
    [({"calls": 3}, 3), ({"tokens": 330}, 3), ({"dollars": 0.00031}, 4), ({"seconds": 0}, 0)],
)
def test_budgets_end_a_run_between_questions(tmp_path, questions, budget, count):
    spec, _ = says_true()
    prices = {spec: Price(input=0.5, output=3)}  # 100 tokens in, 10 out: $0.00008 a call
    ending, heard = go(options(tmp_path, questions, spec, budgets=Budgets(**budget), prices=prices))
    assert ending.by == "budget"
    assert "budget of" in ending.text
    assert len(heard.lines) == count


def test_budgets_count_what_earlier_sessions_spent(tmp_path, questions):
    spec, _ = says_true()
    go(options(tmp_path, questions, spec, budgets=Budgets(calls=2)))
    ending, heard = go(options(tmp_path, questions, spec, budgets=Budgets(calls=3)), resume=True)
    assert (ending.by, len(heard.lines)) == ("budget", 1)


def test_a_money_budget_needs_a_known_price(tmp_path, questions):
    limits = Budgets(dollars=1)
    with pytest.raises(PlanError, match=r"price of 'mine@http://127\.0\.0\.1:9/v1' is not known"):
        go(options(tmp_path, questions, "mine@http://127.0.0.1:9/v1", budgets=limits))


def call(**fields):
    return {"role": "judge", "cached": False, "input_tokens": 1_000_000, "output_tokens": 500_000,
            "prefix_cached_tokens": 400_000, **fields}  # fmt: skip


def test_cost_counts_live_tokens_at_their_prices():
    prices = {"m": Price(input=1, cached_input=0.25, output=4)}
    spent = cost_of([call(), call(cached=True)], {"judge": "m"}, prices)
    assert spent == pytest.approx(0.6 * 1 + 0.4 * 0.25 + 0.5 * 4)
    without = cost_of([call()], {"judge": "m"}, {"m": Price(input=1, output=4)})
    assert without == pytest.approx(1 + 2)
    assert cost_of([call()], {"judge": "openai:unheard-of"}, prices) is None
    assert price_of("local", {}) == Price(input=0, output=0)


@pytest.mark.parametrize(
    "text", ["[]", '{"m": {"input": -1, "output": 1}}', '{"m": {"inptu": 1}}', "x"]
)
def test_a_faulty_price_file_is_named(tmp_path, text):
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"prices\.json"):
        read_prices(file)


# Plans


@pytest.mark.parametrize(
    ("text", "label", "method", "settings"),
    [
        ("zero-shot", "zero-shot", "zero-shot", {}),
        ("DoG-E=debate-on-graph:ignore_confidence=true", "DoG-E", "debate-on-graph",
         {"ignore_confidence": "true"}),
        ("debate-on-graph:debate=false,fixed_k=3", "debate-on-graph[debate=false,fixed_k=3]",
         "debate-on-graph", {"debate": "false", "fixed_k": "3"}),
        ("w/ UKG (K=1)=debate-on-graph:fixed_k=1", "w/ UKG (K=1)", "debate-on-graph",
         {"fixed_k": "1"}),
        ("a: b=zero-shot", "a: b", "zero-shot", {}),
        ("mine=not-yet:x=1", "mine", "not-yet", {"x": "1"}),
        ("zero-shot:model=zero-shot", "zero-shot[model=zero-shot]", "zero-shot",
         {"model": "zero-shot"}),
        ("x=debate-on-graph:k_levels=[1,2],role_models={\"judge\":\"local\"}", "x",
         "debate-on-graph", {"k_levels": "[1,2]", "role_models": '{"judge":"local"}'}),
    ],
)  # fmt: skip
def test_configurations_are_read(text, label, method, settings):
    assert parse_configuration(text) == Configuration(label, method, settings)


@pytest.mark.parametrize(
    ("rows", "shared", "fault"),
    [
        (["a:b"], {}, "not NAME=VALUE"),
        (["debate-on-graph", "debate-on-graph"], {}, "two configurations are called"),
        (["nothing"], {}, "no method 'nothing'"),
        (["debate-on-graph:max_rounds=99"], {}, "max_rounds=99"),
        (["debate-on-graph:colour=red"], {}, "no setting 'colour'"),
        (["debate-on-graph"], {"colour": "red"}, "--set colour"),
    ],
)
def test_faulty_plans_are_named(rows, shared, fault):
    with pytest.raises(ValueError, match=fault):
        plan_cells(
            [parse_configuration(row) for row in rows],
            datasets=["d"], models=["local"], shared=shared, seed=0,
        )  # fmt: skip


def test_cells_are_all_combinations():
    cells = plan_cells(
        [Configuration("a", "debate-on-graph"), Configuration("b", "debate-on-graph", {"seed": 5})],
        datasets=["x", "y"], models=["local", "openai:gpt-4o-mini"], shared={}, seed=1,
    )  # fmt: skip
    assert len({(c.label, c.dataset, c.context.model) for c in cells}) == 8
    assert {(c.label, c.context.seed) for c in cells} == {("a", 1), ("b", 5)}


# Question files


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('{"question": "", "answers": ["x"]}', ":1: 'question'"),
        ('{"question": "Q?"}', ":1: there are no 'answers'"),
        (
            '{"question": "Q?", "answers": ["C"], "choices": {"A": "x", "B": "y"}}',
            "none of the choices",
        ),
        ('{"question": "Q?", "answers": ["perhaps"], "question_type": "boolean"}', "neither true"),
        ('{"question": "Q?", "answers": ["a", "b"], "aliases": ["c"]}', "must map"),
        ("[1]", "not a JSON object"),
        ("{", "not JSON"),
        ("", "no question in it"),
    ],
)
def test_faulty_questions_are_named_by_line(tmp_path, questions, row, fault):
    file = tmp_path / "bad.jsonl"
    file.write_text(row, encoding="utf-8")
    spec, _ = says_true()
    with pytest.raises(QuestionFileError, match=fault):
        go(options(tmp_path, str(file), spec))
