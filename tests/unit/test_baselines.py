"""The baselines without a graph: what is asked, how samples vote, how runs end."""

from __future__ import annotations

import json

import pytest

from nodes.errors import ModelError
from nodes.few_shot_examples import load_examples
from nodes.vote import majority
from tests.cli_helpers import command_in_process, error_lines
from tests.scripted_model import scripted
from workflows import registry

NAMES = ("zero-shot", "few-shot", "chain-of-thought", "self-consistency")
CHOICE = {"question": "Where does the fox live?", "choices": {"A": "moon", "B": "forest"}}
BOOLEAN = {"question": "Foxes live on the moon.", "question_type": "boolean"}
OPEN = {"question": "Where does the fox live?", "question_type": "open"}


def says(answer="B", confidence=80, reason="because"):
    return {"answer": answer, "confidence": confidence, "reason": reason}


async def run(method, question=CHOICE, lines=None, fields=None, **settings):
    lines = says() if lines is None else lines
    spec, model = scripted({"answerer": lines, "reasoner": lines}, **(fields or {}))
    state = await registry.get(method).graph.ainvoke(question, context={"model": spec, **settings})
    return state["result"], model


def asked_fields(model):
    schema = model.asked[-1].parameters["response_format"]["json_schema"]["schema"]
    return list(schema["properties"])


# All of them


@pytest.mark.parametrize("method", NAMES)
async def test_result_has_the_same_keys_as_a_debates(method):
    result, _ = await run(method)
    assert list(result) == [
        "status", "answer", "answers", "choice", "confidence", "evidence", "method",
        "topic_entities", "ended", "trace", "usage", "seconds", "warnings", "error",
    ]  # fmt: skip
    assert (result["status"], result["answer"], result["choice"]) == ("answered", "forest", "B")
    assert result["method"] == method
    assert result["evidence"] == result["topic_entities"] == []
    assert result["usage"]["sequential_llm_steps"] == 1


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(
    ("question", "answer", "shown"),
    [(CHOICE, "A", "moon"), (BOOLEAN, "false", "false"), (OPEN, "in a forest", "in a forest")],
)
async def test_all_question_types_are_answered(method, question, answer, shown):
    result, _ = await run(method, question, says(answer))
    assert result["answer"] == shown


@pytest.mark.parametrize("method", NAMES)
async def test_null_is_no_answer(method):
    result, _ = await run(method, OPEN, says(None, None))
    assert (result["status"], result["answer"], result["confidence"]) == ("no_answer", None, None)


@pytest.mark.parametrize("method", NAMES)
async def test_unreadable_replies_fail(method):
    result, _ = await run(method, lines="I would rather not.")
    assert result["status"] == "failed"
    assert result["error"]["type"] == "UnusableAnswerError"
    assert result["ended"]["by"] == "failure"


@pytest.mark.parametrize("method", NAMES)
async def test_a_model_that_is_gone_fails_the_run(method):
    result, _ = await run(method, lines=ModelError("no such server"))
    assert result["error"] == {"type": "ModelError", "message": "no such server"}


@pytest.mark.parametrize("method", NAMES)
async def test_the_question_stands_after_what_all_questions_share(method):
    _, model = await run(method)
    _, other = await run(method, {**CHOICE, "question": "Where do bees live?"})
    ours, theirs = model.asked[0].user, other.asked[0].user
    before = ours.index("Question: Where does the fox")
    assert ours[:before] == theirs[:before]
    assert model.asked[0].system == other.asked[0].system


@pytest.mark.parametrize("method", NAMES)
async def test_a_chinese_question_is_to_be_answered_in_chinese(method):
    _, model = await run(method, {"question": "狐狸住在哪里？"}, says("森林"))
    assert model.asked[0].user.endswith("Write in Chinese (中文).")


# Zero-shot and chain of thought


async def test_zero_shot_asks_for_no_reasoning_and_chain_of_thought_for_it_first():
    _, zero = await run("zero-shot")
    _, chain = await run("chain-of-thought", reasoning_length=321)
    assert asked_fields(zero) == ["answer", "confidence"]
    assert asked_fields(chain) == ["reason", "answer", "confidence"]
    schema = chain.asked[0].parameters["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["reason"]["maxLength"] == 321


async def test_chain_of_thought_shows_no_examples_unless_asked():
    _, without = await run("chain-of-thought")
    _, with_two = await run("chain-of-thought", shots=2)
    assert "Reasoning:" not in without.asked[0].user
    assert with_two.asked[0].user.count("Reasoning:") == 2


# Few-shot


async def test_examples_are_of_the_questions_type():
    for question, kind in ((CHOICE, "choice"), (BOOLEAN, "boolean"), (OPEN, "open")):
        lines = says({"choice": "B", "boolean": "true", "open": "x"}[kind])
        result, _ = await run("few-shot", question, lines, shots=3)
        assert result["trace"][0]["examples"] == [f"example-{kind}-{n}" for n in (1, 2, 3)]


async def test_a_question_is_never_its_own_example():
    example = load_examples(None)[0]
    question = {"question": f" {example.question.upper()} ", "choices": example.choices}
    result, model = await run("few-shot", question, shots=6)
    assert example.id not in result["trace"][0]["examples"]
    assert len(result["trace"][0]["examples"]) == 5
    assert any("only 5 of 6 examples" in warning for warning in result["warnings"])
    assert model.asked[0].user.casefold().count(example.question.casefold()) == 1


async def test_examples_come_from_a_file_and_show_their_answers(tmp_path):
    file = tmp_path / "examples.jsonl"
    row = {"question": "Who barks?", "choices": {"A": "cat", "B": "dog"}, "answers": ["B"]}
    file.write_text(json.dumps(row), encoding="utf-8")
    _, model = await run("few-shot", examples=str(file), shots=1)
    assert "Question: Who barks?" in model.asked[0].user
    assert "Answer: dog" in model.asked[0].user


@pytest.mark.parametrize("content", [None, "{", '{"question": "Q?"}'])
@pytest.mark.parametrize("method", ["few-shot", "chain-of-thought", "self-consistency"])
def test_a_faulty_file_of_examples_is_bad_usage(tmp_path, capsys, content, method):
    file = tmp_path / "examples.jsonl"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    ran = command_in_process(capsys)(
        "ask", "Q?", "--method", method, "--model", "local",
        "--set", f"examples={file}", "--set", "shots=1",
    )  # fmt: skip
    assert ran.status == 2
    assert len(error_lines(ran)) == 1
    assert "examples.jsonl" in ran.err


def test_bundled_examples_suffice_for_every_type():
    kinds = [example.question_type for example in load_examples(None)]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "choice": 6,
        "boolean": 6,
        "open": 6,
    }
    assert all(example.reasoning for example in load_examples(None))


# Self-consistency


async def test_samples_are_asked_at_once_with_seeds_of_their_own():
    result, model = await run("self-consistency", samples=4, seed=10, fields={"seconds": 0.05})
    assert model.most_at_once == 4
    assert sorted(asked.parameters["seed"] for asked in model.asked) == [10, 11, 12, 13]
    assert result["usage"]["llm_calls"] == 4
    assert result["usage"]["sequential_llm_steps"] == 1


async def test_the_majority_is_taken_with_its_share_as_confidence():
    lines = [says("A"), says("B"), says("B")]
    result, _ = await run("self-consistency", lines=lines, samples=3)
    assert (result["choice"], result["confidence"]) == ("B", pytest.approx(2 / 3, abs=1e-4))
    assert result["ended"]["votes"] == {"B": 2, "A": 1}
    assert result["ended"]["by"] == "vote"


async def test_unreadable_samples_do_not_vote_but_lower_the_share():
    def line(asked):
        return "no" if asked.parameters["seed"] in (0, 1) else says("A")

    result, _ = await run("self-consistency", lines=line, samples=4)
    assert (result["status"], result["choice"], result["confidence"]) == ("answered", "A", 0.5)
    assert result["usage"]["repair_calls"] == 2
    assert result["usage"]["sequential_llm_steps"] == 2


async def test_a_budget_draws_fewer_samples_and_says_so():
    result, model = await run("self-consistency", samples=5, max_llm_calls=2)
    assert len(model.asked) == 2
    assert any("only 2 of 5 samples" in warning for warning in result["warnings"])


async def test_without_a_seed_the_cache_still_keeps_samples_apart(tmp_path):
    cache = str(tmp_path / "replies.sqlite")
    settings = {"samples": 3, "seed": None, "response_cache": cache}
    lines = [says("A"), says("B"), says("B")]
    first, model = await run("self-consistency", lines=lines, **settings)
    assert len(model.asked) == 3
    assert first["ended"]["votes"] == {"B": 2, "A": 1}


def sample(answer, confidence=0.5, fault=None):
    return {"answer": answer, "confidence": confidence, "reason": f"for {answer}", "fault": fault}


@pytest.mark.parametrize(
    ("samples", "kind", "winner"),
    [
        ([sample("A", 0.2), sample("B", 0.9)], "choice", "B"),
        ([sample("A", 0.5), sample("B", 0.5)], "choice", "A"),
        ([sample("A", None), sample("B", None)], "choice", "A"),
        ([sample("Paris"), sample("London", 0.9), sample("paris ")], "open", "Paris"),
        ([sample(None), sample(None), sample("x")], "open", "x"),
        ([sample("A", 1.0, fault="cut"), sample("B", 0.1)], "choice", "B"),
        ([sample("!"), sample("?"), sample("?")], "open", "?"),
    ],
)
def test_ties_go_to_the_surer_then_to_the_first(samples, kind, winner):
    verdict, _ = majority(samples, kind)
    assert verdict["answer"] == winner


# On the command line


def test_ask_without_a_graph_opens_none(capsys, tmp_path):
    spec, _ = scripted({"answerer": says()})
    ran = command_in_process(capsys)(
        "ask", CHOICE["question"], "--choice", "A=moon", "B=forest", "--method", "zero-shot",
        "--model", spec, "--graph", tmp_path / "none.graphmoot", "--topic", "fox", "--json",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert ran.json["choice"] == "B"


def test_prompt_versions_tell_changes(monkeypatch):
    from prompts import baselines

    before = registry.get("zero-shot").prompts
    assert set(before) == {"baselines", "debate_on_graph", "shared"}
    monkeypatch.setattr(baselines, "ANSWER", "Guess.")
    after = registry.get("zero-shot").prompts
    assert before["baselines"]["sha256"] != after["baselines"]["sha256"]
    assert before["shared"] == after["shared"]
