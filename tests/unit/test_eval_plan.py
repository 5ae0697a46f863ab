"""What an evaluation is to run and may cost; question files with faults."""

from __future__ import annotations

import pytest

from evals.plan import Configuration, PlanError, parse_configuration, plan_cells
from evals.prices import Price, cost_of, price_of, read_prices
from evals.runner import Budgets
from nodes.question_file import QuestionFileError
from tests.eval_session_helpers import (
    go,
    options,
    questions,
    says_true,
)

__all__ = ["questions"]


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
