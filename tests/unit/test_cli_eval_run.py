"""`graphmoot eval run` as a user has it: what it prints, how it leaves, what it says."""

from __future__ import annotations

import json

import pytest

from nodes.errors import ModelError
from tests.cli_helpers import command_in_process, error_lines
from tests.scripted_model import scripted


@pytest.fixture
def command(capsys):
    return command_in_process(capsys)


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "numbers.jsonl"
    rows = [
        {"id": f"q{n}", "question": f"Is {n} even?", "question_type": "boolean",
         "answers": [n % 2 == 0]}
        for n in range(4)
    ]  # fmt: skip
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def true_sayer(lines=None):
    return scripted({"answerer": lines or {"answer": "true", "confidence": 60}})


def test_a_run_prints_its_table_and_where_its_results_are(command, questions, tmp_path):
    spec, _ = true_sayer()
    out = tmp_path / "run"
    ran = command("eval", "run", "--method", "zero-shot", "--dataset", questions,
                  "--model", spec, "--out", out)  # fmt: skip
    assert ran.status == 0, ran.err
    assert "2 (50.0 %)" in ran.out
    assert f"{out / 'results.jsonl'}: 4 results" in ran.err
    assert "4 questions to answer in 1 cells" in ran.err


def test_json_is_one_document(command, questions, tmp_path):
    spec, _ = true_sayer()
    ran = command("eval", "run", "--method", "zero-shot", "--dataset", questions,
                  "--model", spec, "--out", tmp_path / "run", "--json")  # fmt: skip
    assert ran.json == {
        "out": str(tmp_path / "run"),
        "ended": {"by": "complete", "text": ""},
        "results": 4,
    }


def test_settings_reach_the_methods_that_have_them(command, questions, tmp_path):
    spec, model = true_sayer()
    ran = command("eval", "run", "--method", "a=zero-shot:temperature=0.1", "b=few-shot:shots=1",
                  "--set", "max_tokens=99", "shots=2", "--dataset", questions, "--limit", "1",
                  "--model", spec, "--out", tmp_path / "run", "--seed", "5",
                  "--concurrency", "1")  # fmt: skip
    assert ran.status == 0, ran.err
    first, second = model.asked
    assert (first.parameters["temperature"], second.parameters["temperature"]) == (0.1, 0.5)
    assert [asked.parameters["max_tokens"] for asked in model.asked] == [99, 99]
    assert [asked.parameters["seed"] for asked in model.asked] == [5, 5]
    assert second.user.count("Answer: ") == 1


def test_a_budget_leaves_with_3_and_says_how_to_go_on(command, questions, tmp_path):
    spec, _ = true_sayer()
    out = tmp_path / "run"
    common = ("eval", "run", "--method", "zero-shot", "--dataset", questions, "--model", spec)
    ran = command(*common, "--concurrency", "1", "--max-calls", "2", "--out", out)
    assert ran.status == 3
    told = (
        "error: the budget of 2 model calls is reached; 2 of 4 done; `graphmoot eval run --resume"
    )
    assert error_lines(ran) == [f"{told} --out {out}` goes on"]
    ran = command("eval", "run", "--resume", "--out", out, "--max-calls", "9")
    assert ran.status == 0, ran.err
    assert "4 questions to answer in 1 cells, 2 of them done before" in ran.err


def test_a_model_that_is_gone_leaves_with_1_and_one_line(command, questions, tmp_path):
    spec, _ = true_sayer(ModelError("nobody answers at http://x; start the server"))
    ran = command("eval", "run", "--method", "zero-shot", "--dataset", questions,
                  "--model", spec, "--out", tmp_path / "run")  # fmt: skip
    assert ran.status == 1
    assert len(error_lines(ran)) == 1
    assert "start the server; 0 of 4 done; `graphmoot eval run --resume" in error_lines(ran)[0]


def test_presets_run_under_the_papers_names(command, questions, tmp_path):
    spec, model = scripted(
        {
            "direct_answer": {"answer": "true", "confidence": 60, "reason": "so"},
            "proponent": {"argument": "so", "answer": "true"},
            "challenger": {"argument": "so", "answer": "true"},
            "decision_maker": {"action": "stop", "reason": "agreed"},
            "judge": {"answer": "true", "confidence": 60, "reason": "so"},
        }
    )
    ran = command("eval", "run", "--preset", "dog-table-3", "--dataset", questions, "--limit", "1",
                  "--set", "use_graph=false", "--model", spec, "--out", tmp_path / "run",
                  "--concurrency", "1")  # fmt: skip
    assert ran.status == 0, ran.err
    for label in ("DoG (full)", "w/o MAD, w/ UKG (K=5)", "w/ MAD, w/o Info Asymmetry"):
        assert label in ran.out
    # Equal prompts are asked once: with no graph, all variants without debate are the same.
    assert len(model.of("direct_answer")) == 1


def test_rows_without_a_method_yet_are_left_out_and_named(
    command, questions, tmp_path, monkeypatch
):
    from workflows import registry

    monkeypatch.setattr(registry, "names", lambda: ["zero-shot"])
    spec, _ = true_sayer()
    ran = command("eval", "run", "--preset", "dog-table-2", "--dataset", questions, "--limit", "1",
                  "--model", spec, "--out", tmp_path / "run")  # fmt: skip
    assert ran.status == 0, ran.err
    assert "left out, for there is no such method yet: Few-shot, CoT, SC" in ran.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--method", "zero-shots"), "no method 'zero-shots'"),
        (("--method", "zero-shot:temperature=hot"), "temperature=hot"),
        (("--method", "zero-shot", "zero-shot"), "two configurations are called 'zero-shot'"),
        (("--method", "zero-shot", "--model", "local", "local"), "comes twice"),
        (("--method", "zero-shot:graph=sample"), "give --graph"),
        (("--method", "zero-shot", "--set", "graph=sample"), "--set graph: use --graph"),
        (("--preset", "table-9"), "no preset 'table-9'"),
        ((), "give --method or --preset"),
        (("--method", "zero-shot", "--retry-failed"), "--retry-failed goes with --resume"),
        (("--method", "zero-shot", "--model", "gpt"), "model 'gpt' is not of a known form"),
        (("--method", "zero-shot", "--set", "colour=red"), "--set colour"),
        (("--method", "zero-shot", "--offset", "9"), "no question is left"),
        (("--method", "zero-shot", "--prices", "none.json"), "none.json"),
        (("--method", "few-shot:examples=none.jsonl"), "none.jsonl"),
    ],
)
def test_bad_usage_is_one_line_before_anything_is_written(
    command, questions, tmp_path, arguments, named
):
    out = tmp_path / "run"
    model = () if "--model" in arguments else ("--model", "local")
    ran = command("eval", "run", "--dataset", questions, "--out", out, *model, *arguments)
    assert ran.status == 2, ran.err
    assert len(error_lines(ran)) == 1
    assert named in error_lines(ran)[0]
    assert not out.exists()


def test_resuming_where_there_is_no_run_says_so(command, tmp_path):
    ran = command("eval", "run", "--resume", "--out", tmp_path / "nothing")
    assert ran.status == 2
    assert "holds no run" in error_lines(ran)[0]


def test_presets_are_listed(command):
    ran = command("eval", "presets", "--json")
    assert [preset["name"] for preset in ran.json][:3] == [
        "dog-table-2", "dog-table-3", "dog-table-4",
    ]  # fmt: skip
    ablations = ran.json[1]["configurations"]
    assert ablations[1]["settings"] == {"debate": False, "fixed_k": 1}
