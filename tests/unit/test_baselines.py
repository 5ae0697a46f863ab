"""The baselines without a graph: what is asked, how samples vote, how runs end."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from evals.normalise import same_answer
from nodes.errors import ModelError
from nodes.few_shot_examples import load_examples
from nodes.model_call import Request
from nodes.model_spec import parse_spec
from nodes.question_file import QuestionFileError
from nodes.vote import answer_key, majority
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


def model_of(model):
    """Return the specification of a model that a run was given."""
    return f"chat:scripted-{id(model)}"


def examples_file(folder, *rows):
    file = folder / "examples.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


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
    assert model.asked[0].user.count("Write in") == 1


GOLD_EXAMPLE = {"question": "Who barks?", "choices": ["cat", "dog"], "answers": ["dog"]}


@pytest.mark.parametrize("method", NAMES)
async def test_a_prompt_has_the_choices_in_words_and_nothing_of_several_agents(method):
    _, model = await run(method)
    (asked, *_) = model.asked
    assert "- moon\n- forest" in asked.user
    assert "A. moon" not in asked.user
    assert not any(word in asked.system + asked.user for word in ("agents", "Judge", "facts"))


@pytest.mark.parametrize("method", NAMES)
async def test_choices_that_need_labels_have_them(method):
    choices = {"A": "cold", "B": "rain", "C": "both A and B"}
    result, model = await run(method, {**CHOICE, "choices": choices}, says("C"))
    assert "- C. both A and B" in model.asked[0].user
    assert (result["choice"], result["answer"]) == ("C", "both A and B")


@pytest.mark.parametrize("method", NAMES)
async def test_only_open_questions_may_be_left_unanswered(method):
    for question, may in ((CHOICE, False), (BOOLEAN, False), (OPEN, True)):
        lines = says("true" if question is BOOLEAN else "B")
        _, model = await run(method, question, lines)
        assert ("or null" in model.asked[0].user) is may


def test_the_drawings_are_the_methods_figures():
    ways = {
        "zero-shot": "begin answer report",
        "few-shot": "begin choose_examples answer report",
        "chain-of-thought": "begin choose_examples reason report",
        "self-consistency": "begin choose_examples draw_samples vote report",
    }
    for method, way in ways.items():
        nodes = ["__start__", *way.split(), "__end__"]
        drawn = {
            (edge.source, edge.target) for edge in registry.get(method).graph.get_graph().edges
        }
        assert drawn == set(pairwise(nodes)), method


@pytest.mark.parametrize("method", NAMES)
async def test_a_threads_second_question_starts_afresh(method):
    spec, _ = scripted({"answerer": [says("A"), says("B")], "reasoner": [says("A"), says("B")]})
    graph = registry.get(method).module.build_graph(InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    settings = {"model": spec, **({"samples": 1} if method == "self-consistency" else {})}
    first = await graph.ainvoke(CHOICE, config, context=settings)
    second = await graph.ainvoke({"question": "Where?", "choices": {"B": "here", "C": "there"}},
                                 config, context=settings)  # fmt: skip
    assert first["result"]["answer"] == "moon"
    assert second["result"]["answer"] == "here"
    assert second["result"]["usage"]["llm_calls"] == 1


@pytest.mark.parametrize("method", NAMES)
async def test_input_that_cannot_be_worked_on_is_refused_before_any_call(method):
    spec, model = scripted({})
    with pytest.raises(ValueError, match="choices"):
        await registry.get(method).graph.ainvoke(
            {"question": "Q?", "question_type": "choice"}, context={"model": spec}
        )
    assert model.asked == []


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


async def test_examples_without_a_reasoning_are_no_examples_of_one(tmp_path):
    file = examples_file(tmp_path, GOLD_EXAMPLE, {**GOLD_EXAMPLE, "question": "Who meows?",
                         "answers": ["cat"], "reasoning": "Cats meow."})  # fmt: skip
    result, model = await run("chain-of-thought", examples=str(file), shots=2)
    assert "Reasoning: Cats meow.\nAnswer: cat" in model.asked[0].user
    assert "Who barks?" not in model.asked[0].user
    assert result["warnings"] == [
        "only 1 of 2 examples: the file has no more of type 'choice' with a reasoning"
    ]


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
    file = examples_file(tmp_path, GOLD_EXAMPLE)
    _, model = await run("few-shot", examples=str(file), shots=1)
    assert "Question: Who barks?" in model.asked[0].user
    assert "Answer: dog" in model.asked[0].user


async def test_without_a_fitting_example_the_prompt_is_that_of_zero_shot(tmp_path):
    file = examples_file(tmp_path, GOLD_EXAMPLE)
    result, few = await run("few-shot", OPEN, says("x"), examples=str(file))
    _, zero = await run("zero-shot", OPEN, says("x"))
    assert few.asked[0].user == zero.asked[0].user
    assert any("only 0 of 4 examples" in warning for warning in result["warnings"])


async def test_no_label_of_the_asked_questions_answer_is_shown():
    example = next(e for e in load_examples(None) if e.question_type == "boolean")
    question = {"question": example.question, "question_type": "boolean"}
    _, model = await run("few-shot", question, says("true"), shots=6)
    after = model.asked[0].user.split(example.question)[1]
    assert "Answer: " not in after


def test_examples_in_the_home_of_nobody_are_bad_usage():
    with pytest.raises(QuestionFileError, match="examples=~nobody-of-that-name/x"):
        load_examples("~nobody-of-that-name/x")


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
    seeds = {asked.parameters["seed"] for asked in model.asked}
    assert len(seeds) == 4
    assert 10 in seeds
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
        seeds.setdefault(asked.parameters["seed"], len(seeds))
        return "no" if seeds[asked.parameters["seed"]] < 2 else says("A")

    seeds = {}
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
    again = await registry.get("self-consistency").graph.ainvoke(
        CHOICE, context={"model": model_of(model), **settings}
    )
    assert len(model.asked) == 3
    assert again["result"]["ended"]["votes"] == {"B": 2, "A": 1}
    assert again["result"]["usage"]["cached_calls"] == 3


def test_the_first_samples_cache_key_is_that_of_a_lone_call():
    spec, _ = scripted({})
    name = spec.removeprefix("chat:")
    request = partial(Request, "reasoner", parse_spec(spec), 0.5, 1024)
    messages = [HumanMessage("Q?")]
    alone = ['[["human", "Q?"]]', json.dumps(["chat", name, "", 0.5, 1024, None, {}])]
    assert list(request(None, {}).cache_key(messages)) == alone
    keys = [request(None, {}, sample=n).cache_key(messages) for n in range(3)]
    assert keys[0] == tuple(alone)
    assert len(set(keys)) == 3


async def test_runs_with_neighbouring_seeds_share_no_sample():
    seeds = []
    for seed in range(4):
        _, model = await run("self-consistency", samples=5, seed=seed)
        seeds += [asked.parameters["seed"] for asked in model.asked]
    assert len(set(seeds)) == 20


async def test_the_first_sample_is_the_lone_chain_of_thought_of_its_seed(tmp_path):
    cache = str(tmp_path / "replies.sqlite")
    _, model = await run("self-consistency", samples=2, seed=7, response_cache=cache)
    result = await registry.get("chain-of-thought").graph.ainvoke(
        CHOICE, context={"model": model_of(model), "seed": 7, "response_cache": cache}
    )
    assert result["result"]["usage"]["cached_calls"] == 1


async def test_every_sample_is_an_entry_of_the_trace():
    result, _ = await run("self-consistency", lines=[says("A", reason="one"), "no"], samples=3)
    entries = [entry for entry in result["trace"] if entry["node"] == "reasoner"]
    assert [entry["sample"] for entry in entries] == [0, 1, 2]
    assert [entry["answer"] for entry in entries] == ["A", None, None]
    assert ["fault" in entry for entry in entries] == [False, True, True]


async def test_all_samples_null_is_no_answer_one_answer_wins():
    nothing, _ = await run("self-consistency", OPEN, says(None), samples=3)
    assert (nothing["status"], nothing["ended"]["votes"]) == ("no_answer", {})
    one, _ = await run("self-consistency", OPEN, [says(None), says(None), says("x")], samples=3)
    assert (one["answer"], one["confidence"]) == ("x", pytest.approx(1 / 3, abs=1e-4))


async def test_samples_that_cannot_differ_are_warned_of():
    result, _ = await run("self-consistency", samples=3, temperature=0)
    assert any("temperature 0" in warning for warning in result["warnings"])
    for settings in ({"samples": 1, "temperature": 0}, {"samples": 3}):
        result, _ = await run("self-consistency", **settings)
        assert result["warnings"] == []


@pytest.mark.parametrize("samples", [0, 51])
def test_samples_are_one_to_fifty(samples):
    with pytest.raises(ValueError, match="samples"):
        registry.get("self-consistency").make_context({"samples": samples})


def sample(answer, confidence=0.5, fault=None):
    return {"answer": answer, "confidence": confidence, "reason": f"for {answer}", "fault": fault}


@pytest.mark.parametrize(
    ("samples", "kind", "winner"),
    [
        ([sample("A", 0.2), sample("B", 0.9)], "choice", "B"),
        ([sample("A", 0.5), sample("B", 0.5)], "choice", "A"),
        ([sample("A", None), sample("B", None)], "choice", "A"),
        ([sample("Paris"), sample("London", 0.9), sample("paris ")], "open", "Paris"),
        ([sample("London", 0.9), sample("Paris."), sample("paris")], "open", "Paris."),
        ([sample(None), sample(None), sample("x")], "open", "x"),
        ([sample("A", 1.0, fault="cut"), sample("B", 0.1)], "choice", "B"),
        ([sample("!"), sample("?"), sample("?")], "open", "?"),
    ],
)
def test_ties_go_to_the_surer_then_to_the_first(samples, kind, winner):
    verdict, _ = majority(samples, kind)
    assert verdict["answer"] == winner


PERCENTS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 100)), min_size=1, max_size=7)


@given(PERCENTS)
@example([("A", 70), ("B", 40), ("A", 10), ("B", 40)])  # a tie, though not in binary fractions
def test_the_winner_is_that_of_a_count_in_whole_percents(drawn):
    labels = [label for label, _ in drawn]
    expected = max(
        dict.fromkeys(labels),
        key=lambda label: (
            labels.count(label),
            sum(percent for other, percent in drawn if other == label),
            -labels.index(label),
        ),
    )
    verdict, votes = majority([sample(label, percent / 100) for label, percent in drawn], "choice")
    assert verdict["answer"] == expected
    assert verdict["confidence"] == pytest.approx(labels.count(expected) / len(labels), abs=1e-4)
    assert votes == {label: labels.count(label) for label in labels}


SAME = [
    ("Paris", "paris."), ("the forest", "Forest"), ("“Hamlet”", "Hamlet"), ("森林。", "森林"),
    ("(in) Rome", "in) Rome"), ("¿Qué?", "qué"), ("New_York", "new york"), ("A cat!", "a cat"),
]  # fmt: skip
DIFFERENT = [
    ("-3", "3"), (".5", "5"), ("50%", "50"), ("C#", "C"), ("C++", "C"), ("A", "the"),
    ("Vitamin A", "Vitamin"), ("1.5", "15"), ("año", "ano"), ("!", "?"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_answers_that_vote_together_are_the_same_to_exact_match(one, other):
    assert answer_key(one) == answer_key(other)
    assert same_answer(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_answers_that_differ_in_more_than_dress_vote_apart(one, other):
    assert answer_key(one) != answer_key(other)
    assert not same_answer(one, other)


# On the command line


def test_ask_without_a_graph_opens_none(capsys, tmp_path):
    spec, _ = scripted({"answerer": says()})
    ran = command_in_process(capsys)(
        "ask", CHOICE["question"], "--choice", "A=moon", "B=forest", "--method", "zero-shot",
        "--model", spec, "--graph", tmp_path / "none.graphmoot", "--topic", "fox", "--json",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert ran.json["choice"] == "B"


def test_ask_shows_the_samples_and_their_votes(capsys):
    spec, _ = scripted({"reasoner": [says("A"), says("B", reason="dens"), says("B"), "no"]})
    ran = command_in_process(capsys)(
        "ask", CHOICE["question"], "--choice", "A=moon", "B=forest", "--model", spec,
        "--method", "self-consistency", "--set", "samples=4",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert ran.err.count("samples at once") == 1
    assert "Reasoner answers B in sample 2 of 4" in ran.err
    assert "dens" in ran.err
    assert "Reasoner failed" in ran.err
    assert "B 2, A 1, of 4 samples" in ran.out
    assert "B: forest" in ran.out


def test_methods_tell_that_no_graph_is_looked_into():
    for method in NAMES:
        assert "Not looked into" in registry.get(method).settings()["graph"]["description"]


def test_prompt_versions_tell_changes(monkeypatch):
    from prompts import baselines

    before = registry.get("zero-shot").prompts
    assert set(before) == {"baselines", "debate_on_graph", "shared"}
    monkeypatch.setattr(baselines, "ANSWER", "Guess.")
    after = registry.get("zero-shot").prompts
    assert before["baselines"]["sha256"] != after["baselines"]["sha256"]
    assert before["shared"] == after["shared"]
