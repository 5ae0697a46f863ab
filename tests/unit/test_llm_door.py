"""The model door over real HTTP, against a server on loopback that misbehaves as told."""

from __future__ import annotations

import asyncio
import gc
import socket
import traceback
import warnings
from dataclasses import asdict

import pytest
from pytest_socket import SocketConnectBlockedError, enable_socket, socket_allow_hosts

import nodes.model_call
import nodes.open_models
import nodes.retries
from nodes.answers import Reply as Form
from nodes.context import MethodContext
from nodes.errors import ModelError, ModelSpecError, UnusableAnswerError
from nodes.llm import Prompt, ask
from nodes.model_spec import ModelSpec, parse_spec
from nodes.replies import Decision, statement, verdict
from nodes.usage import summarise
from tests.fake_openai import FakeOpenAI, Reply, error, says

CHOICES = (("A", "moon"), ("B", "forest"))
CHOICE = statement("choice", CHOICES, cites=True)
OPEN = statement("open", (), cites=False)
PROMPT = Prompt("You are one of several.", ["Question: where?", "", "Choices: A moon, B forest"])
GOOD = {"argument": "because", "facts": [1], "answer": "B"}
KEY = "sk-secret-0123456789abcdef"


@pytest.fixture(autouse=True)
def _loopback_only(_no_network):
    enable_socket()
    socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    # `_no_network` takes the block away, pytest-socket's own teardown the allowed hosts.


@pytest.fixture(autouse=True)
def _own_world(monkeypatch):
    monkeypatch.setattr(nodes.model_call, "_refused", {})
    monkeypatch.delenv("GRAPHMOOT_API_KEY", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def waits(monkeypatch):
    """Waits between attempts: recorded, not waited for."""
    out: list[float] = []

    async def sleep(seconds):
        out.append(seconds)

    monkeypatch.setattr(nodes.retries, "_sleep", sleep)
    return out


@pytest.fixture
def server():
    started: list[FakeOpenAI] = []

    def start(*replies):
        started.append(FakeOpenAI(*replies))
        return started[-1]

    yield start
    for one in started:
        one.close()


async def door(fake, form=CHOICE, role="judge", prompt=PROMPT, notify=lambda _: None, **settings):
    context = MethodContext(model=fake.spec, timeout_seconds=5, **settings)
    return await ask(role, prompt, form, context, notify=notify)


# ---- sockets


def test_only_loopback_can_be_reached():
    with (
        socket.socket() as one,
        pytest.warns(UserWarning, match="connect"),
        pytest.raises(SocketConnectBlockedError),
    ):
        one.connect(("192.0.2.1", 9))


# ---- what is sent


async def test_the_request_carries_schema_and_sampling(server):
    fake = server(says(GOOD))
    answer = await door(fake, temperature=0.25, max_tokens=77, seed=9)
    assert answer.value.answer == "B"
    (asked,) = fake.asked
    assert asked.path == "/v1/chat/completions"
    body = asked.body
    assert (body["model"], body["temperature"], body["seed"]) == ("fake", 0.25, 9)
    assert body["max_tokens"] == 77
    assert "max_completion_tokens" not in body
    assert not body.get("stream")
    wanted = body["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["name"] == "judge"
    schema = wanted["json_schema"]["schema"]
    assert schema["required"] == list(schema["properties"])
    assert set(schema["required"]) == {"facts", "argument", "answer"}
    assert schema["additionalProperties"] is False
    assert body["messages"] == [
        {"role": "system", "content": "You are one of several."},
        {"role": "user", "content": "Question: where?\n\nChoices: A moon, B forest"},
    ]


async def test_without_a_seed_none_is_sent(server):
    fake = server(says(GOOD))
    await door(fake, seed=None)
    assert "seed" not in fake.asked[0].body


async def test_openai_gets_max_completion_tokens_and_its_key(server, monkeypatch):
    fake = server(says(GOOD))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
    context = MethodContext(model="openai:gpt-x", max_tokens=55)
    answer = await ask("judge", PROMPT, CHOICE, context)
    body = fake.asked[0].body
    assert body["max_completion_tokens"] == 55
    assert "max_tokens" not in body
    assert body["response_format"]["type"] == "json_schema"
    assert fake.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(answer)


async def test_a_server_gets_its_own_key_and_never_openais(server, monkeypatch):
    fake = server(says(GOOD))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-general")
    await door(fake)
    assert fake.asked[-1].headers["authorization"] == "Bearer none"
    monkeypatch.setenv("GRAPHMOOT_API_KEY", "own-key")
    context = MethodContext(model=f"vllm:{fake.spec}", timeout_seconds=4)
    await ask("judge", PROMPT, CHOICE, context)
    assert fake.asked[-1].headers["authorization"] == "Bearer own-key"


async def test_loopback_is_not_asked_through_a_proxy(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    assert (await door(server(says(GOOD)))).value.answer == "B"


async def test_half_characters_in_prompt_and_reply_do_no_harm(server):
    fake = server(says('{"oops": "\\ud800"} \ud800'), says(GOOD))
    answer = await door(fake, prompt=Prompt("s", ["caf\udce9?"]))
    assert answer.value.answer == "B"
    assert fake.asked[0].user == "caf??"


# ---- replies (cases 9-16)

USABLE = {
    "fenced between prose": 'Sure!\n```json\n{"argument": "x", "answer": "B"}\n```\nHope it helps.',
    "after thoughts": '<think>A? {"answer": "A"}</think>{"argument": "x", "answer": "B"}',
    "in thoughts that never close": '<think>so {"argument": "x", "answer": "B"}',
    "after thoughts opened by the template": 'so A. {"answer": "A"}</think>\n{"answer": "B"}',
    "list for a text": '{"argument": ["x", "y"], "answer": ["B"]}',
    "object for a list": '{"facts": 3, "argument": "x", "answer": "B"}',
    "small letter": '{"ARGUMENT": "x", "Answer": "b"}',
    "the choice's words": '{"argument": "x", "answer": "Forest."}',
    "doubled braces": '{{"argument": "x", "answer": "B"}}',
    "end mark": '{"argument": "x", "answer": "B"}<|im_end|>',
    "word before": 'Answer: {"argument": "x", "answer": "B"}',
    "word within": '{"argument": "x", "answer": "Answer: B"}',
    "label with words": '{"argument": "x", "answer": "B) forest"}',
    "python quotes": "{'argument': 'it is', 'answer': 'B'}",
    "bare label": "**B**",
    "labelled line": "Argument: foxes\nAnswer: B",
}


@pytest.mark.parametrize("text", USABLE.values(), ids=USABLE)
async def test_usable_replies_take_one_call(server, text):
    fake = server(says(text))
    answer = await door(fake)
    assert answer.value.answer == "B"
    assert len(fake.asked) == 1


UNUSABLE = {
    "refusal": "I'm sorry, but I can't help with that.",
    "refusal that starts like a label": "A dog cannot answer this.",
    "empty": "",
    "only thoughts": "<think>hm</think>",
    "the schema": '{"answer": {"type": "string", "enum": ["A", "B"]}}',
    "the whole schema": '{"type": "object", "properties": {"answer": {"enum": ["A", "B"]}}}',
    "null for a choice": '{"argument": "x", "answer": null}',
    "empty for a choice": '{"argument": "x", "answer": ""}',
    "no such choice": '{"argument": "x", "answer": "C"}',
    "all the choices": '{"argument": "x", "answer": "A|B"}',
    "a list of choices": '{"argument": "x", "answer": ["A", "B"]}',
    "template": "{{answer}}",
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE)
async def test_unusable_replies_are_asked_for_once_more(server, text):
    fake = server(says(text), says(GOOD))
    answer = await door(fake)
    assert answer.value.answer == "B"
    assert [call["repair"] for call in answer.calls] == [False, True]
    again = fake.asked[1].body["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[2]["content"] == (text or "(empty)")
    assert '"argument"' in again[3]["content"]
    assert again[:2] == fake.asked[0].body["messages"], "the shared prefix stays"


async def test_after_one_repair_it_is_a_typed_failure_with_both_calls(server):
    fake = server(says("I would rather not."))
    with pytest.raises(UnusableAnswerError) as caught:
        await door(fake)
    assert len(fake.asked) == 2
    assert caught.value.text == "I would rather not."
    usage = summarise(caught.value.calls)
    assert (usage["llm_calls"], usage["repair_calls"]) == (2, 1)
    assert usage["input_tokens"] == 200
    assert "judge" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_fault_in_the_repair_keeps_the_first_call(server):
    fake = server(says("hm"), error(401, "who are you"))
    with pytest.raises(ModelError) as caught:
        await door(fake)
    assert len(caught.value.calls) == 1


async def test_a_cut_reply_is_used_where_possible_and_marked(server):
    fake = server(says('{"answer": "B", "argument": "the fox li', "length"))
    answer = await door(fake)
    assert answer.value.argument == "the fox li"
    assert answer.calls[0]["truncated"] is True


async def test_a_reply_cut_before_the_answer_is_asked_for_again(server):
    fake = server(says('{"argument": "the fox li', "length"), says(GOOD))
    answer = await door(fake)
    assert [call["truncated"] for call in answer.calls] == [True, False]
    assert "cut off at the token limit" in fake.asked[1].body["messages"][3]["content"]


async def test_an_answer_that_was_cut_itself_is_not_used(server):
    fake = server(
        says('{"argument": "x", "answer": "the dark for', "length"), says({"answer": "y"})
    )
    assert (await door(fake, OPEN)).value.answer == "y"


@pytest.mark.parametrize(
    ("sent", "read"), [("2014", "2014"), ("null", None), ('""', None), ('"null"', None)]
)
async def test_open_answers_keep_numbers_and_null_is_none(server, sent, read):
    fake = server(says(f'{{"argument": "x", "answer": {sent}}}'))
    assert (await door(fake, OPEN)).value.answer == read


async def test_capitals_and_yes(server):
    fake = server(
        says({"action": "EXPAND", "reason": "x"}), says({"answer": "Yes", "confidence": "85 %"})
    )
    assert (await door(fake, Decision)).value.action == "expand"
    boolean = await door(fake, verdict("boolean", (), cites=False))
    assert (boolean.value.answer, boolean.value.confidence) == ("true", 85)


async def test_relations_that_are_refused_are_no_empty_list(server):
    class Relations(Form):
        relations: list[str]

    fake = server(says("I cannot see any relations I could choose from, sorry."))
    with pytest.raises(UnusableAnswerError):
        await door(fake, Relations)
    fake = server(says('{"relations": "located at"}'))
    assert (await door(fake, Relations)).value.relations == ["located at"]


async def test_a_reply_that_a_reasoning_parser_swallowed_is_read(server):
    fake = server(says(None, reasoning_content='so… {"argument": "x", "answer": "B"}'))
    assert (await door(fake)).value.answer == "B"


async def test_reasoning_is_not_read_where_there_is_a_reply(server):
    fake = server(says(GOOD, reasoning_content='{"answer": "A"}'))
    assert (await door(fake)).value.answer == "B"


async def test_null_content_is_an_unusable_reply(server):
    fake = server(says(None, "content_filter"), says(GOOD))
    assert len((await door(fake)).calls) == 2


# ---- retries

PASSING = {
    "429": error(429, "slow down"),
    "500": error(500),
    "503 of a proxy": Reply("<html><title>503</title></html>", 503, {"content-type": "text/html"}),
    "529": error(529, "overloaded"),
    "408": error(408),
    "dropped before": Reply(drop="before"),
    "dropped in the middle": Reply(says(GOOD).body, drop="middle"),
    "no choices": Reply({"choices": []}),
    "error inside 200": Reply({"error": {"message": "overloaded", "code": 503}}),
    "broken JSON": Reply('{"choices": [{"mess'),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_passing_faults_are_asked_again(server, waits, fault):
    fake = server(fault, fault, says(GOOD))
    answer = await door(fake)
    assert answer.value.answer == "B"
    assert len(fake.asked) == 3
    assert len(answer.calls) == 1
    assert 0.5 <= waits[0] <= 1.0
    assert 1.0 <= waits[1] <= 1.5


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_a_fault_that_stays_ends_after_max_retries(server, waits, fault):
    fake = server(fault)
    with pytest.raises(ModelError, match="after 3 attempts") as caught:
        await door(fake, max_retries=2)
    assert len(fake.asked) == 3
    assert_one_line(caught.value, fake)


def assert_one_line(fault, fake):
    message = str(fault)
    assert message.startswith(f"model 'fake' at {fake.url}: ")
    assert "\n" not in message
    assert "Traceback" not in message
    assert "attribute" not in message
    assert "<" not in message
    assert len(message) < 500


async def test_no_retries_where_none_are_wanted(server, waits):
    fake = server(error(500))
    with pytest.raises(ModelError):
        await door(fake, max_retries=0)
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        ("0", 0, 0),
        ("3600", 30, 30),
        ("1.5", 1.5, 1.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 30, 30),
        ("soon", 0.5, 1.0),
        ("nan", 0.5, 1.0),
        ("-5", 0.5, 1.0),
    ],
)
async def test_retry_after_is_honoured_up_to_half_a_minute(server, waits, header, low, high):
    fake = server(error(429, headers={"retry-after": header}), says(GOOD))
    await door(fake)
    assert low <= waits[0] <= high


async def test_waits_grow_up_to_half_a_minute(server, waits):
    fake = server(error(503))
    with pytest.raises(ModelError):
        await door(fake, max_retries=9)
    assert waits == sorted(waits) or max(waits) <= 30.5
    assert 30 <= waits[-1] <= 30.5


async def test_every_wait_is_told(server, waits):
    told = []
    await door(server(error(429, "slow down"), says(GOOD)), notify=told.append)
    (line,) = told
    assert "HTTP 429: slow down; trying again in" in line


@pytest.mark.parametrize("slow", [says(GOOD, delay=20), Reply(says(GOOD).body, drip=True)])
async def test_a_slow_reply_is_a_timeout_and_asked_again(server, waits, slow):
    fake = server(slow, says(GOOD))
    context = MethodContext(model=fake.spec, timeout_seconds=0.4)
    assert (await ask("judge", PROMPT, CHOICE, context)).value.answer == "B"
    assert len(fake.asked) == 2


async def test_a_server_that_stays_slow(server, waits):
    fake = server(says(GOOD, delay=20))
    context = MethodContext(model=fake.spec, timeout_seconds=0.2, max_retries=1)
    with pytest.raises(ModelError, match=r"no answer in time after 2 attempts .*timeout_seconds"):
        await ask("judge", PROMPT, CHOICE, context)


async def test_a_server_that_is_not_there(server, waits):
    fake = server(says(GOOD))
    fake.close()
    with pytest.raises(ModelError, match=r"cannot be reached after 2 attempts .*running") as caught:
        await door(fake, max_retries=1)
    assert_one_line(caught.value, fake)


LASTING = {
    "401": (error(401, "bad key"), "HTTP 401: bad key.*check OPENAI_API_KEY"),
    "403": (error(403, "not yours"), "check OPENAI_API_KEY"),
    "404": (error(404, "no model fake"), "no model fake.*usually ends in /v1"),
    "404 of another server": (Reply({"detail": "Not Found"}, 404), "HTTP 404: Not Found.*/v1"),
    "404 page": (Reply("<!DOCTYPE html><html><h1>Gone</h1></html>", 404), "HTML page .Gone.*/v1"),
    "400": (error(400, "bad messages"), "HTTP 400: bad messages$"),
    "context": (
        error(400, "This model's maximum context length is 4096 tokens"),
        "lower max_tokens",
    ),
    "quota": (error(429, "You exceeded", code="insufficient_quota"), "no credit left"),
    "quota by type": (error(429, "You exceeded", type="insufficient_quota"), "no credit left"),
    "a web page": (
        Reply("<html><title>Welcome</title></html>", 200, {"content-type": "text/html"}),
        "an HTML page .Welcome.*usually ends in /v1",
    ),
    "another kind of server": (Reply({"hello": "world"}), "no chat completion.*/v1"),
    "a list": (Reply([]), "no chat completion.*/v1"),
    "choices of another kind": (Reply({"choices": "B"}), "no chat completion"),
    "choices without a message": (Reply({"choices": [{}]}), "no chat completion"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "words"), LASTING.values(), ids=LASTING)
async def test_lasting_faults_are_not_asked_again_and_name_the_mend(server, waits, fault, words):
    fake = server(fault)
    with pytest.raises(ModelError, match=words) as caught:
        await door(fake)
    assert not isinstance(caught.value, UnusableAnswerError)
    assert len(fake.asked) == 1
    assert waits == []
    assert_one_line(caught.value, fake)


@pytest.mark.parametrize("body", [f"key {KEY} is bad", f"Incorrect API key: {KEY}, Bearer {KEY}"])
async def test_an_echoed_key_is_never_shown(server, monkeypatch, body):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ModelError) as caught:
        await door(server(error(401, body)))
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)


# ---- servers that do not take a parameter

REFUSED = [
    error(400, "response_format is not supported"),
    error(400, "This response_format type is unavailable now", type="invalid_request_error"),
    error(
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' "
        "is not supported with this model.",
    ),
    error(422, "body.guided_json: unknown"),
    error(400, "Failed to parse grammar", param=None),
]  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
async def test_a_refused_response_format_is_left_out_from_then_on(server, waits, fault):
    def answers(asked):
        return fault if "response_format" in asked.body else says(GOOD)

    fake = server(answers)
    told = []
    assert (await door(fake, notify=told.append)).value.answer == "B"
    assert len(fake.asked) == 2
    assert "does not take response_format" in told[0]
    assert '"argument"' in fake.asked[1].user, "the form is told in words instead"
    assert fake.asked[1].user.startswith("Question: where?")
    await door(fake, role="proponent")
    assert len(fake.asked) == 3, "remembered"


async def test_other_refused_parameters_are_left_out_one_by_one(server, waits):
    def answers(asked):
        if "max_tokens" in asked.body:
            return error(
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                param="max_tokens",
            )
        for name in ("temperature", "seed"):
            if name in asked.body:
                return error(400, f"Unsupported value: '{name}' does not support that", param=name)
        return says(GOOD)

    fake = server(answers)
    assert (await door(fake)).value.answer == "B"
    assert fake.asked[-1].body["max_completion_tokens"] == 1024
    assert len(fake.asked) == 4


async def test_what_is_still_refused_ends(server, waits):
    fake = server(error(400, "response_format is not supported"))
    with pytest.raises(ModelError, match="HTTP 400"):
        await door(fake)
    assert len(fake.asked) == 2


async def test_a_refusal_is_remembered_for_its_model_only(server, waits):
    fake = server(error(400, "response_format is not supported"), says(GOOD))
    await door(fake)
    context = MethodContext(model=f"other@{fake.url}")
    await ask("judge", PROMPT, CHOICE, context)
    assert "response_format" in fake.asked[-1].body


async def test_concurrent_asks_find_out_together(server, waits):
    def answers(asked):
        if "response_format" in asked.body:
            return Reply(error(400, "no response_format").body, 400, delay=0.1)
        return says(GOOD)

    fake = server(answers)
    both = await asyncio.gather(door(fake), door(fake, role="proponent"))
    assert [answer.value.answer for answer in both] == ["B", "B"]
    assert len(fake.asked) == 4


# ---- usage


async def test_usage_by_role_with_prefix_cached_tokens(server):
    usage = {
        "prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97,
        "prompt_tokens_details": {"cached_tokens": 64},
    }  # fmt: skip
    fake = server(says(GOOD, usage=usage), says(GOOD))
    first, second = await door(fake), await door(fake, role="proponent")
    total = summarise([*first.calls, *second.calls])
    assert total["by_role"]["judge"]["prefix_cached_tokens"] == 64
    assert total["by_role"]["proponent"]["prefix_cached_tokens"] == 0
    assert (total["input_tokens"], total["output_tokens"]) == (190, 17)
    assert first.calls[0]["model"] == "fake-1"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None},
        {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None},
    ],
)  # fmt: skip
async def test_missing_usage_counts_as_nothing(server, usage):
    answer = await door(server(says(GOOD, usage=usage)))
    assert answer.calls[0]["input_tokens"] == 0
    assert answer.calls[0]["output_tokens"] == 0


# ---- response cache


async def test_a_second_identical_question_costs_no_call(server, tmp_path):
    fake = server(says(GOOD))
    cache = str(tmp_path / "replies.db")
    live = await door(fake, response_cache=cache)
    kept = await door(fake, response_cache=cache)
    assert kept.value == live.value
    assert len(fake.asked) == 1
    usage = summarise([*live.calls, *kept.calls])
    assert (usage["llm_calls"], usage["cached_calls"]) == (1, 1)
    assert (usage["input_tokens"], usage["output_tokens"]) == (100, 10)
    assert kept.calls[0]["cached"] is True


async def test_the_cache_is_keyed_on_all_that_determines_a_reply(server, tmp_path):
    fake, other = server(says(GOOD)), server(says(GOOD))
    cache = str(tmp_path / "replies.db")
    await door(fake, response_cache=cache)
    for change in ({"seed": 1}, {"seed": None}, {"temperature": 0.1}, {"max_tokens": 99},
                   {"prompt": Prompt("s", ["else"])}, {"form": OPEN}):  # fmt: skip
        before = len(fake.asked)
        await door(fake, response_cache=cache, **change)
        assert len(fake.asked) == before + 1, change
    await door(other, response_cache=cache)
    assert len(other.asked) == 1
    assert not (await door(fake, response_cache=str(tmp_path / "two.db"))).calls[0]["cached"]


async def test_unusable_replies_are_not_kept(server, tmp_path):
    fake = server(says("hm"), says("hm"), says(GOOD))
    cache = str(tmp_path / "replies.db")
    with pytest.raises(UnusableAnswerError):
        await door(fake, response_cache=cache)
    assert (await door(fake, response_cache=cache)).value.answer == "B"
    assert len(fake.asked) == 3


async def test_a_repaired_reply_is_kept_for_the_question(server, tmp_path):
    fake = server(says("hm"), says(GOOD))
    cache = str(tmp_path / "replies.db")
    await door(fake, response_cache=cache)
    again = await door(fake, response_cache=cache)
    assert [call["cached"] for call in again.calls] == [True]
    assert len(fake.asked) == 2


async def test_a_cut_reply_stays_marked_in_the_cache(server, tmp_path):
    fake = server(says('{"answer": "B", "argument": "the', "length"))
    cache = str(tmp_path / "replies.db")
    first, again = [await door(fake, response_cache=cache) for _ in range(2)]
    assert again.calls[0]["truncated"]
    assert again.value == first.value


async def test_parallel_asks_share_a_cache(server, tmp_path):
    fake = server(says(GOOD))
    cache = str(tmp_path / "replies.db")
    prompts = [Prompt("s", [str(number)]) for number in range(20)]
    await asyncio.gather(*(door(fake, prompt=p, response_cache=cache) for p in prompts))
    again = await asyncio.gather(*(door(fake, prompt=p, response_cache=cache) for p in prompts))
    assert len(fake.asked) == 20
    assert all(answer.calls[0]["cached"] for answer in again)


async def test_a_record_that_cannot_be_read_back_is_asked_for_again(server, tmp_path):
    import sqlite3
    from contextlib import closing

    fake = server(says(GOOD))
    cache = tmp_path / "replies.db"
    await door(fake, response_cache=str(cache))
    for number, broken in enumerate(("", "{", "[]", '{"kwargs": {"text": "{\\"text\\": 1}"}}')):
        with closing(sqlite3.connect(cache)) as connection, connection:
            connection.execute("update full_llm_cache set response = ?", (broken,))
        answer = await door(fake, response_cache=str(cache))
        assert answer.value.answer == "B"
        assert len(fake.asked) == number + 2


async def test_a_cache_that_cannot_be_used_is_one_line(server, tmp_path):
    fake = server(says(GOOD))
    (tmp_path / "text.db").write_text("this is no database, but long enough to look at" * 9)
    for path in (tmp_path / "none" / "replies.db", tmp_path, tmp_path / "text.db"):
        with pytest.raises(ModelError, match=r"response_cache .* cannot be used") as caught:
            await door(fake, response_cache=str(path))
        assert "\n" not in str(caught.value)


async def test_a_cache_deleted_meanwhile_is_made_again(server, tmp_path):
    fake = server(says(GOOD))
    cache = tmp_path / "replies.db"
    await door(fake, response_cache=str(cache))
    cache.unlink()
    assert not (await door(fake, response_cache=str(cache))).calls[0]["cached"]
    assert (await door(fake, response_cache=str(cache))).calls[0]["cached"]


# ---- concurrency and event loops


async def test_concurrent_asks_build_the_model_once(server, monkeypatch):
    built = []
    build = nodes.open_models.build_chat_model

    async def counted(*arguments):
        built.append(arguments)
        await asyncio.sleep(0.05)
        return await build(*arguments)

    monkeypatch.setattr(nodes.open_models, "build_chat_model", counted)
    fake = server(says(GOOD, delay=0.1))
    await asyncio.gather(*(door(fake) for _ in range(8)))
    assert len(built) == 1
    assert fake.most_at_once > 1


async def test_a_model_that_could_not_be_built_is_tried_again(server, monkeypatch):
    fake = server(says(GOOD))
    build = nodes.open_models.build_chat_model

    async def fails(*_):
        await asyncio.sleep(0.01)
        raise ModelError("not yet")

    monkeypatch.setattr(nodes.open_models, "build_chat_model", fails)
    both = await asyncio.gather(door(fake), door(fake), return_exceptions=True)
    assert [str(one) for one in both] == ["not yet", "not yet"]
    assert both[0] is not both[1], "each has calls of its own"
    monkeypatch.setattr(nodes.open_models, "build_chat_model", build)
    assert (await door(fake)).value.answer == "B"


async def test_a_cancelled_ask_does_not_break_the_next(server):
    fake = server(says(GOOD, delay=20), says(GOOD))
    task = asyncio.ensure_future(door(fake))
    await asyncio.to_thread(fake.was_asked.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await door(fake)).value.answer == "B"


async def test_an_ask_cancelled_while_the_model_is_built_does_not_break_the_others(server):
    fake = server(says(GOOD))
    first, second = asyncio.ensure_future(door(fake)), asyncio.ensure_future(door(fake))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).value.answer == "B"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_cancelled_wait_ends_at_once(server):
    fake = server(error(429, headers={"retry-after": "25"}))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(door(fake), 0.3)


def test_event_loops_one_after_another_leave_nothing_open(server):
    fake = server(says(GOOD))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(3):
            assert asyncio.run(door(fake)).value.answer == "B"
            assert not nodes.open_models._of_loop
            assert fake.connections == number + 1
        gc.collect()  # an open transport would warn here, and fail the test


async def test_calls_of_a_loop_share_a_connection(server):
    fake = server(says(GOOD))
    for _ in range(3):
        await door(fake)
    assert fake.connections == 1


def test_a_loop_that_was_only_closed_is_forgotten(server):
    fake = server(says(GOOD))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(door(fake))
    loop.run_until_complete(nodes.open_models._of_loop[loop].closer.aclose())
    loop.close()
    nodes.open_models._of_loop[loop] = nodes.open_models._Models()
    asyncio.run(door(fake))
    assert loop not in nodes.open_models._of_loop


# ---- specifications

SPECS = {
    "local": ModelSpec("local", ""),
    " local ": ModelSpec("local", ""),
    "local:/x/y.gguf": ModelSpec("local", "/x/y.gguf"),
    "openai:gpt-4o-mini": ModelSpec("openai", "gpt-4o-mini"),
    "vllm:org/name@http://h:8000/v1": ModelSpec("server", "org/name", "http://h:8000/v1"),
    "openai:name@https://h/v1/": ModelSpec("server", "name", "https://h/v1"),
    "qwen2.5:7b@http://localhost:11434/v1": ModelSpec(
        "server", "qwen2.5:7b", "http://localhost:11434/v1"
    ),
    "a@b@http://h/v1": ModelSpec("server", "a@b", "http://h/v1"),
    "m@http://[::1]:8000/v1": ModelSpec("server", "m", "http://[::1]:8000/v1"),
    "chat:mine": ModelSpec("chat", "mine"),
}


@pytest.mark.parametrize(("text", "spec"), SPECS.items(), ids=SPECS)
def test_specifications(text, spec):
    assert parse_spec(text) == spec
    assert asdict(parse_spec(text)) == asdict(spec)


@pytest.mark.parametrize(
    "text",
    ["", " ", "gpt-4o", "local:", "openai:", "openai: ", "vllm:", "vllm:name", "@http://h/v1",
     "name@",
     "vllm:@http://h/v1", "vllm: @http://h", "name@ftp://h", "name@http://",
     "name@http://h:port/v1",
     "name@http://h:99999/v1", "name@http://h/v 1", "name@http://user:pass-word@h/v1",
     "http://h/v1",
     "name@http://[::1/v1", "a\nb@c", "x" * 5000],
)  # fmt: skip
def test_bad_specifications_are_one_line_with_the_forms(text):
    with pytest.raises(ModelSpecError, match="vllm:NAME@URL") as caught:
        parse_spec(text)
    assert len(str(caught.value)) < 300
    assert "pass-word" not in str(caught.value)


async def test_a_missing_key_is_one_line():
    for key in ("", " "):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", key)
            with pytest.raises(ModelError, match="openai:gpt-x needs OPENAI_API_KEY"):
                await ask("judge", PROMPT, CHOICE, MethodContext(model="openai:gpt-x"))


async def test_a_chat_model_that_nobody_registered():
    with pytest.raises(ModelError, match="no chat model 'none'"):
        await ask("judge", PROMPT, CHOICE, MethodContext(model="chat:none"))


async def test_a_proxy_variable_that_cannot_be_read_is_one_line(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://proxy")
    with pytest.raises(ModelError, match="model 'm'") as caught:
        await ask("judge", PROMPT, CHOICE, MethodContext(model="m@https://192.0.2.1/v1"))
    assert "\n" not in str(caught.value)


async def test_the_key_is_in_no_traceback_either(server, monkeypatch):
    monkeypatch.setenv("GRAPHMOOT_API_KEY", KEY)
    with pytest.raises(ModelError) as caught:
        await door(server(error(404, "no")))
    assert KEY not in "".join(traceback.format_exception(caught.value))
