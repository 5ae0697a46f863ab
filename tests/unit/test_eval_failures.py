"""Evaluation runs in which models, questions or graphs fail."""

from __future__ import annotations

import json

import pytest

from evals.options import RunOptions
from evals.plan import Configuration
from evals.prices import Price
from evals.run_folder import RunFolderError
from evals.runner import Budgets
from nodes.errors import ModelError, RequestRefusedError
from tests.eval_session_helpers import (
    NO_GRAPH,
    REFUSAL,
    answer,
    go,
    ids,
    lines_of,
    options,
    questions,
    says_true,
)
from tests.scripted_model import scripted

__all__ = ["questions"]


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
