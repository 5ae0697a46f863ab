"""Usage: sums, what ran at once, what the cache gave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.usage import Call, live_calls, live_tokens, summarise


def call(role="judge", step=1, **fields) -> Call:
    return {
        "role": role, "step": step, "model": "m", "input_tokens": 100, "prefix_cached_tokens": 40,
        "output_tokens": 10, "seconds": 0.5, "asked_seconds": 0.5, "cached": False,
        "repair": False, "truncated": False,
        **fields,
    }  # fmt: skip


def test_nothing_asked_costs_nothing():
    assert summarise([]) == {
        "llm_calls": 0, "cached_calls": 0, "repair_calls": 0, "input_tokens": 0,
        "prefix_cached_tokens": 0, "output_tokens": 0, "seconds": 0, "by_role": {},
        "sequential_llm_steps": 0,
    }  # fmt: skip


def test_calls_are_summed_in_all_and_by_role():
    usage = summarise([call("proponent"), call("challenger"), call("judge", 2, input_tokens=7)])
    assert usage["llm_calls"] == 3
    assert usage["input_tokens"] == 207
    assert usage["prefix_cached_tokens"] == 120
    assert usage["output_tokens"] == 30
    assert usage["seconds"] == 1.5
    assert list(usage["by_role"]) == ["proponent", "challenger", "judge"]
    assert usage["by_role"]["judge"]["input_tokens"] == 7
    assert "by_role" not in usage["by_role"]["judge"]


def test_cached_calls_are_counted_apart_and_cost_nothing():
    usage = summarise([call(cached=True), call(), call("proponent", cached=True)])
    assert (usage["llm_calls"], usage["cached_calls"]) == (1, 2)
    assert (usage["input_tokens"], usage["output_tokens"], usage["seconds"]) == (100, 10, 0.5)
    assert usage["by_role"]["proponent"]["llm_calls"] == 0
    assert usage["by_role"]["proponent"]["cached_calls"] == 1
    assert usage["sequential_llm_steps"] == 1


def test_roles_of_one_step_count_once_their_repairs_wait_for_each_other():
    debaters = [call("proponent", 3), call("challenger", 3)]
    assert summarise(debaters)["sequential_llm_steps"] == 1
    repaired = [*debaters, call("challenger", 3, repair=True)]
    assert summarise(repaired)["sequential_llm_steps"] == 2
    assert summarise(repaired)["repair_calls"] == 1
    assert summarise([*repaired, call("judge", 4)])["sequential_llm_steps"] == 3


def test_samples_of_one_step_count_once_the_longest_of_them_counts():
    samples = [call("reasoner", 2, sample=number) for number in range(5)]
    assert summarise(samples)["llm_calls"] == 5
    assert summarise(samples)["sequential_llm_steps"] == 1
    repaired = [*samples, *(call("reasoner", 2, sample=n, repair=True) for n in (1, 3))]
    assert summarise(repaired)["sequential_llm_steps"] == 2
    assert summarise([*repaired, call("judge", 3)])["sequential_llm_steps"] == 3


def test_a_call_without_a_sample_is_the_first_sample():
    assert summarise([call(), call(sample=0, repair=True)])["sequential_llm_steps"] == 2


def test_a_cached_repair_is_not_a_repair_call():
    assert summarise([call(cached=True, repair=True)])["repair_calls"] == 0


CALLS = st.lists(
    st.builds(
        call,
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 4),
        sample=st.integers(0, 2),
        input_tokens=st.integers(0, 9),
        output_tokens=st.integers(0, 9),
        cached=st.booleans(),
        repair=st.booleans(),
    ),
    max_size=12,
)


@given(CALLS)
def test_roles_add_up_to_the_whole(calls):
    usage = summarise(calls)
    for name in ("llm_calls", "cached_calls", "repair_calls", "input_tokens", "output_tokens"):
        assert usage[name] == sum(role[name] for role in usage["by_role"].values())
    assert usage["llm_calls"] + usage["cached_calls"] == len(calls)
    assert usage["llm_calls"] == live_calls(calls)
    assert usage["input_tokens"] + usage["output_tokens"] == live_tokens(calls)
    assert (usage["llm_calls"] > 0) <= usage["sequential_llm_steps"] <= usage["llm_calls"]
