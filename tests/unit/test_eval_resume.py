"""Evaluation runs that go on: exactly the rest, and nothing that would be mixed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from evals.options import RunOptions
from evals.plan import Configuration
from evals.run_folder import RunFolderError, RunWriter, read_run
from evals.runner import Budgets
from tests.eval_session_helpers import (
    NO_GRAPH,
    go,
    ids,
    lines_of,
    options,
    questions,
    says_true,
)

__all__ = ["questions"]


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
