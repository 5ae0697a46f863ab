"""Reading replies: what is understood, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import contextlib
import json
import time
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodes.answers import Reply, read_reply
from nodes.errors import UnusableAnswerError
from nodes.replies import Decision, DecisionWithoutExpansion, statement, verdict

CHOICES = (("A", "moon"), ("B", "forest"), ("C", "the deep sea"))
CHOICE = statement("choice", CHOICES, cites=True)
OPEN = statement("open", (), cites=True)
BOOLEAN = statement("boolean", (), cites=False)
VERDICT = verdict("open", (), cites=True)


class Relations(Reply):
    """Two texts and a list, nothing optional."""

    MAIN: ClassVar[str | None] = "note"

    relations: list[str]
    note: str
    enough: bool


def answer(value, form=CHOICE):
    return read_reply(json.dumps({"argument": "x", "answer": value}), form).answer


def unusable(text, form=CHOICE, **how):
    with pytest.raises(UnusableAnswerError) as caught:
        read_reply(text, form, **how)
    return str(caught.value)


# ---- labels, truth, actions


@pytest.mark.parametrize(
    "value",
    ["B", "b", " B ", "B.", "(B)", "[B]", "B)", "B) forest", "B. forest", "B: forest", "B - forest",
     "Answer: B", "The answer is B", "Final answer: B", "Option B", "choice b", "forest", "Forest",
     "FOREST.", '"forest"', ["B"], ["forest"], "Answer: forest", "**B**", "`B`"],
)  # fmt: skip
def test_a_choice_is_known_by_label_or_words(value):
    assert answer(value) == "B"


@pytest.mark.parametrize(
    "value",
    ["", " ", None, "D", "fores", "A or B", "A, B", "A/B", "A|B|C", "A and C", ["A", "B"], [], {},
     {"A": 1}, {"B": "forest"}, {"type": "string"}, {"enum": ["A", "B"]}, 7, True, "a dog",
     "B forest",
     "neither", "I cannot tell", "not B", "b" * 100_000, "string", "..."],
)  # fmt: skip
def test_what_names_no_single_choice_is_unusable(value):
    unusable(json.dumps({"argument": "x", "answer": value}))


def test_numbers_as_choices_and_as_labels():
    years = statement("choice", (("A", "2014"), ("B", "2015")), cites=False)
    assert answer(2015, years) == "B"
    numbered = statement("choice", (("1", "moon"), ("2", "forest")), cites=False)
    assert answer(2, numbered) == "2"
    assert answer("2.", numbered) == "2"


def test_words_that_two_choices_share_name_neither():
    twins = statement("choice", (("A", "fox"), ("B", "Fox")), cites=False)
    unusable('{"answer": "fox"}', twins)
    assert answer("A", twins) == "A"


@pytest.mark.parametrize(
    ("value", "read"),
    [("Yes", "true"), ("TRUE", "true"), (True, "true"), ("yes.", "true"), ("Yes, it does", "true"),
     ("y", "true"), (1, "true"), ("No", "false"), (False, "false"), ("FALSE!", "false"), (0,
     "false"),
     ("No, never", "false"), ("true.", "true"), ("Answer: no", "false")],
)  # fmt: skip
def test_truth_in_many_words(value, read):
    assert answer(value, BOOLEAN) == read


@pytest.mark.parametrize(
    "value", ["maybe", "true or false", "true/false", "unknown", None, "nobody", 2]
)
def test_no_truth(value):
    unusable(json.dumps({"answer": value}), BOOLEAN)


@pytest.mark.parametrize("value", ["EXPAND", "expand", " Expand ", "expand.", "expand the evidence",
                                   "expand: the facts are too few", ["expand"],
                                   "**expand**"])  # fmt: skip
def test_actions(value):
    assert read_reply(json.dumps({"action": value}), Decision).action == "expand"
    unusable(json.dumps({"action": value}), DecisionWithoutExpansion)


@pytest.mark.parametrize(
    "value", ["stop|continue|expand", "stop, continue or expand", "stop / expand"]
)
def test_the_list_of_actions_is_no_action(value):
    unusable(json.dumps({"action": value}), Decision)


# ---- open answers, numbers, lists


@pytest.mark.parametrize(
    ("value", "read"),
    [(2014, "2014"), (0.5, "0.5"), (True, "true"), (" Paris ", "Paris"), (["Oslo", "Rome"],
     "Oslo, Rome"),
     (["Oslo"], "Oslo"), ("Answer: Paris", "Paris"), (None, None), ("", None), ("  ", None),
     ("null", None), ([], None), ("None", "None"), ("答案", "答案"), ("A", "A")],
)  # fmt: skip
def test_open_answers(value, read):
    assert (answer(value, OPEN) or None) == read


@pytest.mark.parametrize("value", [{"type": "string"}, {}, {"anyOf": [{"type": "string"}]}])
def test_an_object_is_no_text(value):
    unusable(json.dumps({"argument": "x", "answer": value}), OPEN)


@pytest.mark.parametrize(
    ("value", "read"),
    [(85, 85), ("85", 85), ("85%", 85), ("85 %", 85), (0.85, 85), ("0.85", 85), ("0,85", 85), (1,
     1),
     (1.0, 100), (0, 0), (100, 100), (150, 100), ("85/100", 85), ("~85 percent", 85), (85.4, 85),
     (None, None), ("high", None), ("", None), (-5, None), (True, None), ([85], None), ({}, None)],
)  # fmt: skip
def test_confidence(value, read):
    reply = read_reply(json.dumps({"answer": "x", "confidence": value}), VERDICT)
    assert reply.confidence == read


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 4000])
def test_confidence_beyond_numbers_is_none(value):
    assert read_reply(f'{{"answer": "x", "confidence": {value}}}', VERDICT).confidence is None


@pytest.mark.parametrize(
    ("value", "read"),
    [([1, 3], [1, 3]), ("1, 3", [1, 3]), ("1 and 3", [1, 3]), (3, [3]), ("fact 3", [3]), ("[3]",
     [3]),
     (["fact 3 (0.95)", "[5]"], [3, 5]), ([3.0], [3]), ([None, "x", True], []), (None, []),
     ("none", []),
     ([10**9], []), ("²", []), ([{"fact": 3}], [3]), ({}, [])],
)  # fmt: skip
def test_cited_facts(value, read):
    assert read_reply(json.dumps({"answer": "x", "facts": value}), OPEN).facts == read


def test_a_list_where_a_text_is_asked_and_the_reverse():
    read = read_reply('{"relations": "eats", "note": ["a", "b"], "enough": "Yes"}', Relations)
    assert (read.relations, read.note, read.enough) == (["eats"], "a, b", True)


def test_truth_that_is_none_is_unusable():
    unusable('{"relations": [], "note": "", "enough": "perhaps"}', Relations)


# ---- where the object stands

GOOD = '{"argument": "x", "answer": "B"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nI hope this helps!",
        f"Here you are: {GOOD}",
        f"<think>{{}} maybe A</think>{GOOD}",
        f'<think>{{"answer": "A"}}</think>\n\n{GOOD}',
        f"<THINKING>A</THINKING>{GOOD}",
        f"<think>the reply is {GOOD}",
        f'first {{"answer": "A"}} no </think> {GOOD}',
        f"{GOOD}<think>was that right?</think>",
        f"<think>one</think><think>two</think>{GOOD}",
        f"{GOOD}<|im_end|>",
        f"<s>[INST]{GOOD}</s>",
        f"<|assistant|>{GOOD}<|eot_id|>",
        f"{GOOD}<end_of_turn>",
        f"{GOOD}<｜end▁of▁sentence｜>",
        f"Answer: {GOOD}",
        f'{{"answer": "A"}} no, rather {GOOD}',
        f"{GOOD} {{\"answer\": \"D\"}}",
        f"{GOOD} {{}}",
        f"{{{{answer}}}} means {GOOD}",
        '{{"argument": "x", "answer": "B"}}',
        "{'argument': 'x', 'answer': 'B'}",
        '{"argument": "x", "answer": "B",}',
        '{"argument": "x" "answer": "B"}',
        '{argument: "x", answer: "B"}',
        '{"argument": "say "hi" now", "answer": "B"}',
        '{"argument": "line\nbreak", "answer": "B"}',
        '{"argument": "x", // why\n "answer": "B"}',
        '{"argument": "x", "answer": "B"',
        'The form {answer} asks: {"argument": "x", "answer": "B"',
        '{"Argument": "x", "ANSWER": "B", "more": [1, {"a": 2}]}',
        '{" answer ": "B"}',
        '[{"argument": "x", "answer": "B"}]',
        "B",
        "**B**",
        "(B)",
        "B) forest",
        "forest",
        "Answer: B",
        "Argument: none\nAnswer: A\nFinally:\nAnswer: B",
        "**Answer**: B",
        "- answer: forest",
    ],
)  # fmt: skip
def test_an_answer_is_found(text):
    assert read_reply(text, CHOICE).answer == "B"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\n\n", "{}", "[]", "null",
        '"B" is what I would never say, since I cannot know it',
        "I'm sorry, but I cannot help with that.",
        "A dog does not live on the moon, so I will not choose.",
        "I can't {really} say.", "{{answer}}", '{{"answer": "{{answer}}"}}',
        '{"answer": {"type": "string"}}',
        '{"type": "object", "properties": {"answer": {"type": "string", "enum": ["A", "B"]}}}',
        '{"argument": {"type": "string", "maxLength": 9}, "answer": {"enum": ["moon", "forest"]}}',
        '{"facts": [1], "argument": "x"}', '{"answer"', '{"answer":', '{"answer": ', "```json\n```",
        "<think>B</think>", "<think>", "</think>", "Answer:", "Answer: \n", "{" * 50, "}" * 50,
        '{"argument": "the answer is B"}',
    ],
)  # fmt: skip
def test_no_answer_is_found(text):
    assert unusable(text)


@pytest.mark.parametrize(
    "text",
    ["Stop asking me such things, please.", "Continue reading elsewhere for more on that.",
     "I would stop.", "stop|continue|expand"],
)  # fmt: skip
def test_prose_that_begins_with_an_action_is_none(text):
    unusable(text, Decision)


@pytest.mark.parametrize(
    "text", ["No, I cannot help with that.", "No, I will not", "True crime is fun."]
)
def test_prose_that_begins_with_truth_is_none(text):
    unusable(text, BOOLEAN)


def test_open_prose_is_never_an_answer():
    for text in ("Paris", "I do not know.", "The capital is Paris."):
        unusable(text, OPEN)


def test_the_last_object_that_fits_wins():
    text = '{"action": "stop"} {"action": "expand"} {"action": "dance"}'
    assert read_reply(text, Decision).action == "expand"


def test_the_reason_names_the_field():
    assert "answer" in unusable('{"argument": "x"}')
    assert "no JSON object" in unusable("Sorry.", OPEN)
    assert "cut off" in unusable('{"argument": "x', truncated=True)


# ---- cut off at the token limit


def test_what_is_whole_in_a_cut_reply_is_used():
    read = read_reply('{"answer": "B", "facts": [1], "argument": "the fo', CHOICE, truncated=True)
    assert (read.answer, read.facts, read.argument) == ("B", [1], "the fo")
    read = read_reply('{"answer": "B", "arg', CHOICE, truncated=True)
    assert read.answer == "B"
    read = read_reply('{"answer": "x", "confidence": 8', VERDICT, truncated=True)
    assert (read.answer, read.confidence) == ("x", None)


@pytest.mark.parametrize(
    "text", ['{"answer": "New Yo', '{"argument": "x", "answer": "New', '{"answer": 20']
)
def test_an_answer_cut_within_is_not_used(text):
    unusable(text, OPEN, truncated=True)
    unusable(text, OPEN)


def test_a_whole_object_before_the_cut_is_used():
    assert read_reply(f"{GOOD}\nAnd moreover the", CHOICE, truncated=True).answer == "B"


# ---- anything at all

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
PROSE = st.text(st.characters(exclude_characters="{}<[|｜", exclude_categories=["Cs"]), max_size=40)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def wrapped(draw, inner):
    before, after = draw(PROSE), draw(PROSE)
    form = draw(st.sampled_from(["bare", "fence", "think", "open", "marks", "prose", "twice"]))
    wraps = {
        "bare": inner,
        "fence": f"{before}\n```json\n{inner}\n```\n{after}",
        "think": f"<think>{before}{{}}</think>{inner}",
        "open": f"<think>{before}{inner}",
        "marks": f"<|im_start|>{inner}<|im_end|>",
        "prose": f"{before} {inner} {after}",
        "twice": f'{{"relations": [], "note": "no", "enough": false}} {inner}',
    }
    return wraps[form]


PLAIN = st.text(st.characters(exclude_characters="<>[]", exclude_categories=["Cs"]), max_size=60)


@given(
    st.data(),
    st.lists(PLAIN.filter(bool), max_size=4),
    PLAIN,
    st.booleans(),
    st.dictionaries(st.from_regex(r"[x-z]{1,5}", fullmatch=True), VALUE, max_size=3),
    st.booleans(),
)
def test_any_fitting_object_is_read_back_equal(data, relations, note, enough, more, ascii_only):
    fields = {**more, "relations": relations, "note": f"n{note}", "enough": enough}
    inner = json.dumps(
        fields, ensure_ascii=ascii_only, indent=data.draw(st.sampled_from([None, 2]))
    )
    read = read_reply(data.draw(wrapped(inner)), Relations)
    assert read.relations == [text.strip() for text in relations]
    assert read.note == f"n{note}".strip()
    assert read.enough is enough


@given(st.builds(lambda a, b: {"argument": a, "answer": f"x{b}"}, TEXT, TEXT))
@example({"argument": "say <think> and <|im_end|> or [INST]", "answer": "x</think>"})
@example({"argument": '{"answer": "y"}', "answer": "x```"})
@example({"argument": "Answer: no", "answer": "x"})
def test_a_reply_that_is_all_json_is_taken_word_for_word(fields):
    read = read_reply(json.dumps(fields), OPEN)
    assert (read.argument, read.answer) == (fields["argument"].strip(), fields["answer"].strip())


FORMS = st.sampled_from([CHOICE, OPEN, BOOLEAN, VERDICT, Decision, Relations])
PIECES = st.sampled_from(
    ['{"', '"}', "{", "}", "[", "]", '"', "'", ":", ",", "answer", "action", "relations", "B",
     "stop", "\\", "<think>", "</think>", "<|im_end|>", "```", "\n", " ", "null", "true", "NaN",
     "1e999", "-", "//", "/*", "\\u", "\\ud800", "9" * 5000, "\ud800", "\x00", "Answer:", "facts: ",
     "confidence: 9", "…", "²"]
)  # fmt: skip


@settings(max_examples=200)
@given(FORMS, st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=80), st.booleans())
def test_any_text_is_read_or_unusable(form, text, truncated):
    with contextlib.suppress(UnusableAnswerError):
        assert isinstance(read_reply(text, form, truncated=truncated), form)


@given(FORMS, st.dictionaries(st.sampled_from(["answer", "action", "facts", "confidence", "reason",
       "relations", "note", "enough", "argument"]), VALUE))  # fmt: skip
def test_any_object_is_read_or_unusable(form, value):
    with contextlib.suppress(UnusableAnswerError):
        assert isinstance(read_reply(json.dumps(value), form), form)


MEGABYTE = 1_000_000
HUGE = {
    "braces": "{" * MEGABYTE,
    "closing braces": "}" * MEGABYTE,
    "brackets": '{"answer": ' + "[" * MEGABYTE,
    "nested objects": '{"a":' * (MEGABYTE // 5),
    "wide nested objects": ('{"a":[' + "0," * 500) * (MEGABYTE // 1006),
    "closed nesting": '{"answer": ' + "[" * 900 + "]" * 900 + "}",
    "deeper closed nesting": '{"answer": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "braces in braces": "{" * 5000 + "}" * 5000,
    "quotes": '{"' * (MEGABYTE // 2),
    "objects that do not fit": '{"a": 1} ' * (MEGABYTE // 9),
    "objects that end early": '{"answer": "D", ' * (MEGABYTE // 16),
    "open thoughts": "<think>" * (MEGABYTE // 7),
    "closed thoughts": "</think>" * (MEGABYTE // 8),
    "mixed thoughts": "<think></think>" * (MEGABYTE // 15),
    "lines": "\n" * MEGABYTE,
    "blanks": " " * MEGABYTE,
    "stars": "*" * MEGABYTE,
    "labels": "Answer:\n" * (MEGABYTE // 8),
    "labels that do not fit": "Answer: none\n" * (MEGABYTE // 13),
    "a label and blanks": "Answer:" + " " * MEGABYTE,
    "marks": "<|" * (MEGABYTE // 2),
    "letters": "a" * MEGABYTE,
    "a long text": '{"argument": "' + "a" * MEGABYTE,
    "a long label": '{"answer": "' + "B" * MEGABYTE + '"}',
    "blanks in a label": '{"answer": "' + " " * 300_000 + '."}',
    "ors in a label": '{"answer": "' + " or" * 100_000 + '"}',
    "digits": '{"answer": ' + "9" * MEGABYTE + "}",
    "backslashes": '{"answer": "' + "\\" * MEGABYTE,
    "commas": '{"answer": "D"' + "," * MEGABYTE,
    "fields": "{" + ",".join(f'"f{number}": 1' for number in range(60_000)) + "}",
    "half open": '{"answer": "D' * 60_000,
    "python objects": "{'a': 1}" * 100_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_replies_take_bounded_time(text):
    for form in (CHOICE, Decision):
        started = time.process_time()
        unusable(text, form)
        assert time.process_time() - started < 2.0


def test_a_huge_fitting_reply_is_read():
    argument = "a" * 300_000
    assert (
        read_reply(json.dumps({"argument": argument, "answer": "B"}), CHOICE).argument == argument
    )
    thought = "<think>" + "hm { " * 300_000 + "</think>"
    assert read_reply(thought + GOOD, CHOICE).answer == "B"
