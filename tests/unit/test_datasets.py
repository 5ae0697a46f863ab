"""Data sets: what the readers keep of each source, what they withhold, what they refuse."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from evals.datasets.own_lines import write_questions
from evals.datasets.registry import DatasetError, load_dataset, path_of, select, sniff
from evals.datasets.sources import READERS, SOURCES
from graph_store import whole_file
from nodes.question_file import GoldQuestion, QuestionFileError, read_question_file
from tests.cli_helpers import ROOT, command_in_process, error_lines

DATA = ROOT / os.environ.get("GRAPHMOOT_DATA", "../shared/data")
SECRET = "SECRET"

CSQA = {
    "id": "c1",
    "question": "Where does a heron wait for fish?",
    "question_concept": "heron",
    "choices": {"label": ["A", "B", "C"], "text": ["attic", "pond", "kiln"]},
    "answerKey": "B",
}
CSQA_PUBLISHED = {
    "id": "c1",
    "question": {
        "stem": "Where does a heron wait for fish?",
        "question_concept": "heron",
        "choices": [
            {"label": "A", "text": "attic"},
            {"label": "B", "text": "pond"},
            {"label": "C", "text": "kiln"},
        ],
    },
    "answerKey": "B",
}
CSQA2 = {
    "id": "t1",
    "question": "A ladle is a spoon.",
    "answer": "yes",
    "topic_prompt": "ladle",
    "relational_prompt": "is a",
    "confidence": 0.83,
    "validations": ["yes", "no"],
}
OBQA = {
    "id": "o1",
    "question": {
        "stem": "A wet towel dries fastest",
        "choices": [
            {"label": "A", "text": "in a drawer"},
            {"label": "B", "text": "in the wind"},
            {"label": "C", "text": "in a bag"},
            {"label": "D", "text": "in a bath"},
        ],
    },
    "answerKey": "B",
    "fact1": f"{SECRET}: moving air speeds up evaporation",
}
OBQA_FLAT = {
    "id": "o1",
    "question_stem": "A wet towel dries fastest",
    "choices": {
        "label": ["A", "B", "C", "D"],
        "text": ["in a drawer", "in the wind", "in a bag", "in a bath"],
    },
    "answerKey": "B",
    "fact1": f"{SECRET}: moving air speeds up evaporation",
}
MEDQA = {
    "question": "Which vitamin prevents scurvy?",
    "answer": "Vitamin C",
    "options": {"A": "Vitamin A", "B": "Vitamin D", "C": "Vitamin K", "D": "Vitamin C"},
    "meta_info": "step1",
    "answer_idx": "D",
}
WEBQSP = {
    "dataset": "webqsp",
    "id": "w1",
    "question": "where does the river tarn start?",
    "topic_entities": {"m.01": "River Tarn"},
    "answers": ["Mont Lozere", "Cevennes", "Mont Lozere"],
    "type": None,
    "gold_relation_paths": [[f"{SECRET}.origin"]],
    "sparql": f"SELECT {SECRET}",
}
CWQ = {**WEBQSP, "dataset": "cwq", "id": "q1", "type": "composition"}
PATH_LINES = (
    "who is the couple of ada_venn 's dad ?\tzoe_venn(zoe_venn/mia_lark/)\t"
    "ada_venn#parents#tom_venn#spouse#zoe_venn#<end>#zoe_venn\n"
)
OWN = {"id": "j1", "question": "Who?", "answers": ["Edith"], "aliases": {"Edith": ["Edie"]}}

ONE_OF_EACH = {
    "csqa": CSQA,
    "csqa2": CSQA2,
    "obqa": OBQA,
    "medqa": MEDQA,
    "path-question": PATH_LINES,
    "freebase": CWQ,
    "jsonl": OWN,
}


@pytest.fixture
def write(tmp_path):
    def write_file(*rows, name="rows.jsonl"):
        path = tmp_path / name
        lines = (row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        data = "".join(lines).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture
def read(write):
    def read_rows(spec, *rows):
        return load_dataset(f"{spec}:{write(*rows)}").questions

    return read_rows


# What each reader makes of its source


@pytest.mark.parametrize("row", [CSQA, CSQA_PUBLISHED])
def test_commonsense_qa_gives_choices_a_label_and_the_concept_as_topic(read, row):
    assert read("csqa", row) == [
        GoldQuestion(
            id="c1",
            question="Where does a heron wait for fish?",
            answers=("B",),
            question_type="choice",
            choices={"A": "attic", "B": "pond", "C": "kiln"},
            topic_entities=("heron",),
        )
    ]


def test_commonsense_qa_keeps_the_label_where_two_choices_have_the_same_words(read):
    choices = {"label": ["A", "B", "C"], "text": ["pond", "pond", "kiln"]}
    (question,) = read("csqa", {**CSQA, "choices": choices})
    assert question.answers == ("B",)


@pytest.mark.parametrize(("said", "gold"), [("yes", "true"), ("no", "false")])
def test_commonsense_qa2_is_boolean_with_the_topic_prompt_as_topic(read, said, gold):
    (question,) = read("csqa2", {**CSQA2, "answer": said})
    assert question == GoldQuestion(
        id="t1",
        question="A ladle is a spoon.",
        answers=(gold,),
        question_type="boolean",
        topic_entities=("ladle",),
    )


@pytest.mark.parametrize("row", [OBQA, OBQA_FLAT])
def test_openbookqa_gives_stem_and_choices_without_topics(read, row):
    (question,) = read("obqa", row)
    assert question == GoldQuestion(
        id="o1",
        question="A wet towel dries fastest",
        answers=("B",),
        question_type="choice",
        choices={"A": "in a drawer", "B": "in the wind", "C": "in a bag", "D": "in a bath"},
    )


@pytest.mark.parametrize("options", [4, 5])
def test_medqa_takes_four_or_five_options_and_names_questions_after_their_line(read, options):
    row = {**MEDQA, "options": dict(zip("DABCE"[:options], "vwxyz"[:options], strict=True))}
    first, second = read("medqa", row, "\n", row)
    assert (first.id, second.id) == ("medqa-0001", "medqa-0003")
    assert first.answers == ("D",)
    assert first.choices["D"] == "v"
    assert len(first.choices) == options
    assert first.type == "step1"
    assert not first.topic_entities


def test_medqa_takes_options_listed_as_key_and_value(read):
    listed = [{"key": key, "value": value} for key, value in MEDQA["options"].items()]
    assert read("medqa", {**MEDQA, "options": listed}) == read("medqa", MEDQA)


def test_path_question_gives_all_right_answers_and_the_subject_but_not_the_path(read):
    (question,) = read("pq-2h", PATH_LINES)
    assert question == GoldQuestion(
        id="pq-2h-0001",
        question="who is the couple of ada_venn 's dad ?",
        answers=("zoe_venn", "mia_lark"),
        topic_entities=("ada_venn",),
        type="2-hop",
    )


def test_path_question_reads_three_hops_and_paths_without_an_end_mark(read):
    line = " what is the x of A 's y ?\tD(D/)\tA#y#B#x#C#z#D\n"
    (question,) = read("path-question", line)
    assert (question.type, question.id) == ("3-hop", "pq-3h-0001")
    assert question.question == "what is the x of A 's y ?"
    assert question.answers == ("D",)


def test_path_question_reads_names_with_brackets_and_slashes(read):
    line = "the song of A 's b ?\tAC/DC_(live)(b/AC/DC_(live)/c/)\tA#b#X#song#AC/DC_(live)\n"
    (question,) = read("path-question", line)
    assert question.answers == ("AC/DC_(live)", "b", "c")


def test_path_question_withholds_a_subject_that_the_question_does_not_name(read):
    (question,) = read("path-question", PATH_LINES.replace("of ada_venn 's", "of her"))
    assert question.topic_entities == ()


def test_freebase_gives_topics_by_name_and_each_answer_once(read):
    (question,) = read("freebase", WEBQSP)
    assert question == GoldQuestion(
        id="w1",
        question="where does the river tarn start?",
        answers=("Mont Lozere", "Cevennes"),
        topic_entities=("River Tarn",),
    )


def test_a_freebase_topic_without_a_name_is_given_by_id(read):
    (question,) = read("freebase", {**WEBQSP, "topic_entities": {"m.01": ""}})
    assert question.topic_entities == ("m.01",)


def test_each_freebase_set_takes_its_own_rows(read):
    assert [q.id for q in read("cwq", WEBQSP, CWQ)] == ["q1"]
    assert [q.id for q in read("webqsp", WEBQSP, CWQ)] == ["w1"]
    assert [q.id for q in read("freebase", WEBQSP, CWQ)] == ["w1", "q1"]
    with pytest.raises(QuestionFileError, match="no question of 'grailqa'"):
        read("grailqa", WEBQSP, CWQ)


def test_a_topic_that_is_a_gold_answer_is_given_only_where_the_question_says_it(read):
    topics = {"m.1": "Guatemalan quetzal", "m.2": "Guatemala"}
    row = {**CWQ, "topic_entities": topics, "answers": ["Guatemalan Quetzal"]}
    (hidden,) = read("cwq", {**row, "question": "What money has Guatemala?"})
    (said,) = read("cwq", {**row, "question": "Who spends the Guatemalan quetzal?"})
    assert hidden.topic_entities == ("Guatemala",)
    assert said.topic_entities == ("Guatemalan quetzal", "Guatemala")


def test_rows_without_a_gold_answer_are_left_out_and_counted(write):
    found = load_dataset(f"webqsp:{write(WEBQSP, {**WEBQSP, 'id': 'w2', 'answers': []})}")
    assert [q.id for q in found.questions] == ["w1"]
    assert "left out: 1" in found.note
    assert "left out" not in load_dataset(f"webqsp:{write(WEBQSP)}").note


def test_our_own_lines_are_read_as_question_file_reads_them(write):
    path = write(OWN)
    assert load_dataset(str(path)).questions == read_question_file(path)


@pytest.mark.parametrize("row", [CSQA, CSQA2, OBQA, OBQA_FLAT, MEDQA, CWQ])
def test_fields_that_a_reader_does_not_name_reach_no_question(read, write, row):
    extra = {f"x{n}": SECRET for n in range(3)}
    extra |= {"reasoning": SECRET, "aliases": {SECRET: [SECRET]}, "explanation": SECRET}
    (question,) = load_dataset(str(write({**row, **extra}))).questions
    assert SECRET not in repr(question)
    assert SECRET not in json.dumps(question.asked())


# Finding the reader


@pytest.mark.parametrize("name", [*ONE_OF_EACH])
@pytest.mark.parametrize("ending", [".txt", ".jsonl.gz"])
def test_a_file_is_recognised_by_its_content_whatever_its_name(write, name, ending):
    path = write("\n", ONE_OF_EACH[name], name=f"data{ending}")
    assert sniff(path) == name
    found = load_dataset(str(path))
    assert (found.reader, found.name, len(found.questions)) == (name, "data", 1)


@pytest.mark.parametrize("row", [CSQA_PUBLISHED, OBQA_FLAT])
def test_both_forms_of_a_source_are_recognised(write, row):
    assert sniff(write(row)) == ("csqa" if row is CSQA_PUBLISHED else "obqa")


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbf" + PATH_LINES.replace("\n", "\r\n").encode())
    assert load_dataset(str(path)).questions[0].type == "2-hop"


def test_a_named_reader_is_used_whatever_the_content(write):
    path = write(CSQA2)
    assert load_dataset(f"jsonl:{path}").questions[0].question_type == "open"
    with pytest.raises(QuestionFileError, match=re.escape(f"{path}:1: the choices")):
        load_dataset(f"csqa:{path}")


def test_a_file_under_a_data_sets_name_is_that_data_set(write):
    path = write(CSQA, name="mine.jsonl")
    assert load_dataset(f"csqa:{path}").name == "csqa"
    assert load_dataset(str(path)).name == "mine"


def test_a_file_of_a_known_source_has_its_licence_and_another_has_none(write):
    assert load_dataset(str(write(CSQA, name="a.jsonl"))).licence == "MIT"
    assert load_dataset(str(write(OWN, name="b.jsonl"))).licence == "not known"


def test_the_hash_is_that_of_the_files_bytes(write):
    path = write(CSQA, name="a.jsonl.gz")
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_dataset(str(path)).sha256 == expected


def test_the_bundled_sample_is_a_data_set():
    found = load_dataset("sample")
    assert found.name == "sample"
    kinds = Counter(question.question_type for question in found.questions)
    assert kinds == {"choice": 8, "boolean": 4, "open": 3}


def test_names_are_looked_for_below_the_data_folder(tmp_path, monkeypatch):
    for folder in ("given", "variable", "work/../shared/data"):
        target = tmp_path / folder / "qa"
        target.mkdir(parents=True)
        row = {**CSQA, "id": folder}
        path = target / "csqa_dev_rand_split.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(row).encode()))
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("GRAPHMOOT_DATA", raising=False)
    assert load_dataset("csqa").questions[0].id == "work/../shared/data"
    monkeypatch.setenv("GRAPHMOOT_DATA", str(tmp_path / "variable"))
    assert load_dataset("csqa").questions[0].id == "variable"
    given = load_dataset("csqa", data_folder=tmp_path / "given")
    assert given.questions[0].id == "given"


# What is refused


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "sample"])
def test_a_missing_file_is_named_with_the_variable_and_the_home_page(tmp_path, name):
    with pytest.raises(DatasetError) as caught:
        load_dataset(name, data_folder=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / SOURCES[name].file) in message
    assert "GRAPHMOOT_DATA" in message
    assert SOURCES[name].home.startswith("https://")
    assert SOURCES[name].home in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["cqsa", "no/such.jsonl", "csqa:no/such.jsonl", "sample:x", ""])
def test_what_is_neither_a_name_nor_a_file_is_refused(text):
    with pytest.raises(DatasetError):
        load_dataset(text)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(DatasetError, match="csqa, csqa2, obqa, obqa-train, medqa, pq-2h"):
        load_dataset("cqsa")


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    ("spec", "good", "bad", "words"),
    [
        ("csqa", CSQA, without(CSQA, "answerKey"), "answers are hidden"),
        ("csqa", CSQA, {**CSQA, "id": "c2", "answerKey": "E"}, "none of the choices"),
        ("csqa", CSQA, {**CSQA, "id": "c2", "question": " "}, "'question'"),
        ("csqa", CSQA, {**CSQA, "choices": {"label": ["B"], "text": ["x", "y"]}}, "must have a"),
        ("csqa", CSQA, {**CSQA, "choices": {"label": ["A", "A"], "text": ["x", "y"]}}, "differ"),
        ("csqa", CSQA, {**CSQA, "choices": None}, "choices"),
        ("csqa2", CSQA2, {**CSQA2, "answer": "maybe"}, "neither true nor false"),
        ("csqa2", CSQA2, without(CSQA2, "answer"), "answers are hidden"),
        ("obqa", OBQA, {**OBQA, "question": "flat"}, "'stem'"),
        ("obqa", OBQA, {**OBQA, "answerKey": ""}, "answers are hidden"),
        ("medqa", MEDQA, {**MEDQA, "options": "A or B"}, "'options'"),
        ("medqa", MEDQA, {**MEDQA, "answer_idx": "F"}, "none of the choices"),
        ("pq-2h", PATH_LINES, "who ?\tzoe(zoe/)\n", "separated by tabs"),
        ("pq-2h", PATH_LINES, "who ?\tzoe(zoe/)\ta#b\n", "gold path must be"),
        ("pq-2h", PATH_LINES, "who ?\tzoe(mia/)\ta#b#zoe\n", "not among the answers"),
        ("pq-2h", PATH_LINES, "who ?\tzoe\ta#b#zoe\n", "as the path ends"),
        ("cwq", CWQ, {**CWQ, "answers": "one"}, "'answers'"),
        ("cwq", CWQ, {**CWQ, "topic_entities": ["x"]}, "map ids to names"),
        ("cwq", CWQ, {**CWQ, "answers": [{"a": 1}]}, "'answers'"),
        ("jsonl", OWN, {**OWN, "answers": []}, "'answers'"),
        ("csqa", CSQA, "{\n", "not JSON"),
        ("csqa", CSQA, "[]\n", "not a JSON object"),
    ],
)
def test_a_row_at_fault_is_named_by_file_and_line(write, spec, good, bad, words):
    path = write(good, "\n", bad)
    with pytest.raises(QuestionFileError, match=words) as caught:
        load_dataset(f"{spec}:{path}")
    assert str(caught.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name not in ("medqa", "jsonl")])
def test_an_id_that_comes_twice_is_refused(write, name):
    row = ONE_OF_EACH[name]
    if name == "path-question":
        assert len(load_dataset(str(write(row, row))).questions) == 2  # ids are line numbers
        return
    path = write(row, row)
    with pytest.raises(QuestionFileError, match=f"{path}:2: .*comes twice, first in line 1"):
        load_dataset(str(path))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"\xff\xfe\x00binary\n",
        gzip.compress(json.dumps(CSQA).encode())[:-9],
        gzip.compress(b"x" * 500)[:12] + b"\x00" * 40,
        b"\x1f\x8bnot gzip",
        b"[" * 5000,
    ],
    ids=["empty", "blank", "binary", "cut gzip", "broken gzip", "no gzip", "nested"],
)
@pytest.mark.parametrize("spec", ["", "csqa:", "pq-2h:"])
def test_a_file_that_cannot_be_read_ends_in_one_line_that_names_it(tmp_path, data, spec):
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    with pytest.raises(QuestionFileError) as caught:
        load_dataset(f"{spec}{path}")
    assert str(path) in str(caught.value)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no regular file"):
        load_dataset(str(tmp_path))


# Taking a part

LETTERS = [GoldQuestion(id=name, question=f"{name}?", answers=(name,)) for name in "abcdefghij"]


def ids(questions):
    return "".join(question.id for question in questions)


def test_without_a_seed_the_order_is_the_files():
    assert ids(select(LETTERS)) == "abcdefghij"
    assert ids(select(LETTERS, limit=3, offset=2)) == "cde"
    assert ids(select(LETTERS, limit=99, offset=8)) == "ij"
    assert ids(select(LETTERS, limit=0)) == ""
    assert ids(select(LETTERS, offset=10)) == ""


def test_a_seed_gives_one_order_for_good():
    # Written down once: a change here would change what published runs took.
    assert ids(select(LETTERS, shuffle_seed=0)) == "hfgdjaicbe"
    assert ids(select(LETTERS, shuffle_seed=1)) == "idgajfebhc"


def test_windows_of_a_shuffled_set_are_disjoint_and_make_up_the_whole():
    whole = ids(select(LETTERS, shuffle_seed=7))
    parts = [ids(select(LETTERS, limit=3, offset=at, shuffle_seed=7)) for at in range(0, 10, 3)]
    assert "".join(parts) == whole
    assert sorted(whole) == sorted("abcdefghij")


def test_the_random_order_does_not_depend_on_the_order_in_the_file():
    assert select(LETTERS[::-1], shuffle_seed=3) == select(LETTERS, shuffle_seed=3)


def test_every_place_is_about_equally_likely_for_a_question():
    first = Counter(select(LETTERS, limit=1, shuffle_seed=seed)[0].id for seed in range(2000))
    # 200 expected; 6 standard deviations of a binomial count are 80.
    assert len(first) == 10
    assert all(120 < count < 280 for count in first.values())


@pytest.mark.parametrize("part", [{"limit": -1}, {"offset": -1}])
def test_negative_parts_are_refused(part):
    with pytest.raises(DatasetError, match="negative"):
        select(LETTERS, **part)


# Writing, and the commands


@pytest.fixture
def graphmoot(capsys):
    return command_in_process(capsys)


@pytest.mark.parametrize("name", [*ONE_OF_EACH])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_what_is_converted_reads_back_the_same(write, tmp_path, graphmoot, name, ending):
    source = write(ONE_OF_EACH[name], name="source.txt")
    target = tmp_path / f"target.{ending}"
    assert graphmoot("eval", "convert", f"{name}:{source}", "--to", target).status == 0
    assert read_question_file(target) == load_dataset(str(source)).questions
    assert target.read_bytes().startswith(b"\x1f\x8b") == ending.endswith("gz")


def test_convert_takes_the_part_that_select_takes(write, tmp_path, graphmoot):
    rows = [{**OWN, "id": f"q{n}"} for n in range(9)]
    source, target = write(*rows), tmp_path / "part.jsonl"
    part = ("--limit", 3, "--offset", 2, "--shuffle", 5)
    ran = graphmoot("eval", "convert", source, "--to", target, *part, "--json")
    assert ran.status == 0
    assert (ran.json["read"], ran.json["written"], ran.json["reader"]) == (9, 3, "jsonl")
    expected = select(read_question_file(source), limit=3, offset=2, shuffle_seed=5)
    assert read_question_file(target) == expected


def test_convert_past_the_end_writes_nothing(write, tmp_path, graphmoot):
    target = tmp_path / "none.jsonl"
    ran = graphmoot("eval", "convert", write(OWN), "--to", target, "--offset", 1)
    assert ran.status == 2
    assert "has only 1 questions" in error_lines(ran)[0]
    assert not target.exists()


@pytest.mark.parametrize("way", ["same", "symbolic link", "hard link"])
def test_convert_never_overwrites_its_source(write, tmp_path, graphmoot, way):
    source = write(CSQA)
    before, target = source.read_bytes(), tmp_path / "other.jsonl"
    if way == "same":
        target = source
    elif way == "symbolic link":
        target.symlink_to(source)
    else:
        target.hardlink_to(source)
    ran = graphmoot("eval", "convert", source, "--to", target)
    assert ran.status == 2
    assert len(error_lines(ran)) == 1
    assert source.read_bytes() == before


def test_a_target_that_is_a_link_is_followed(write, tmp_path, graphmoot):
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    assert graphmoot("eval", "convert", write(OWN), "--to", link).status == 0
    assert link.is_symlink()
    assert read_question_file(real)[0].id == "j1"


def test_writing_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    target = tmp_path / "kept.jsonl"
    target.write_text("old", encoding="utf-8")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(QuestionFileError, match="No space left"):
        write_questions(target, LETTERS)
    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.jsonl"]


def test_a_target_that_can_be_no_file_is_one_error(write, tmp_path, graphmoot):
    source = write(OWN)
    for target in (tmp_path / "no" / "x.jsonl", tmp_path, Path("/dev/stdout")):
        ran = graphmoot("eval", "convert", source, "--to", target)
        assert ran.status == 2
        assert str(target) in error_lines(ran)[0]


def test_datasets_tells_present_absent_and_unreadable_apart(tmp_path, monkeypatch, graphmoot):
    for name, data in (("csqa", json.dumps(CSQA).encode()), ("csqa2", b'{"topic_prompt": 1}')):
        path = path_of(SOURCES[name], tmp_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data))
    monkeypatch.setenv("GRAPHMOOT_DATA", str(tmp_path))
    rows = {row["name"]: row for row in graphmoot("eval", "datasets", "--json").json}
    assert list(rows) == list(SOURCES)
    assert (rows["csqa"]["present"], rows["csqa"]["questions"]) == (True, 1)
    assert (rows["cwq"]["present"], rows["cwq"]["questions"]) == (False, None)
    assert rows["csqa2"]["questions"] is None
    assert "csqa2_dev.jsonl.gz:1: " in rows["csqa2"]["fault"]
    assert rows["sample"]["questions"] == 15
    ran = graphmoot("eval", "datasets")
    assert ran.status == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}
    assert "absent" in lines["cwq"]
    assert "unreadable" in lines["csqa2"]
    assert "MIT" in lines["csqa"]


# The real files, against the counts of their description and against the raw rows


@cache
def raw_lines(name):
    path = path_of(SOURCES[name], DATA)
    if not path.exists():
        pytest.skip(f"no {path.name} in {DATA} (set GRAPHMOOT_DATA)")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(lines)


@cache
def raw_rows(name):
    return [json.loads(line) for line in raw_lines(name)]


@cache
def real(name):
    raw_lines(name)
    return load_dataset(name, data_folder=DATA)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("csqa", 609),
        ("csqa2", 1255),
        ("obqa", 242),
        ("obqa-train", 4957),
        ("medqa", 625),
        ("pq-2h", 1908),
        ("cwq", 1759),
        ("grailqa", 529),
    ],
)
def test_real_sets_have_the_published_number_of_questions(name, count):
    assert len(real(name).questions) == count


def test_the_three_freebase_sets_make_up_the_file_but_for_six_without_an_answer():
    parts = [real(name) for name in ("cwq", "webqsp", "grailqa")]
    assert sum(len(part.questions) for part in parts) + 6 == 3071
    assert "left out: 6" in real("webqsp").note
    everything = {q.id for q in load_dataset(str(parts[0].path)).questions}
    assert everything == {q.id for part in parts for q in part.questions}


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "sample"])
def test_real_sets_are_recognised_and_survive_conversion(name, tmp_path):
    found = real(name)
    assert READERS[sniff(found.path)].name == found.reader
    target = tmp_path / "converted.jsonl"
    write_questions(target, found.questions)
    assert read_question_file(target) == found.questions


def test_real_choice_sets_answer_with_the_label_of_the_source():
    for row, question in zip(raw_rows("csqa"), real("csqa").questions, strict=True):
        assert question.answers == (row["answerKey"],)
        assert row["answerKey"] in question.choices
        assert list(question.choices.values()) == row["choices"]["text"]
        assert question.topic_entities == (row["question_concept"],)
    for row, question in zip(raw_rows("medqa"), real("medqa").questions, strict=True):
        assert question.choices[question.answers[0]] == row["answer"]


def test_real_boolean_answers_are_the_sources():
    gold = [q.answers[0] == "true" for q in real("csqa2").questions]
    assert gold == [row["answer"] == "yes" for row in raw_rows("csqa2")]
    assert sum(gold) == 603


def test_no_gold_fact_of_openbookqa_is_in_any_field():
    rows = raw_rows("obqa")
    facts = [row["fact1"].casefold() for row in rows]
    stems = [row["question"]["stem"].casefold() for row in rows]
    # Two stems repeat their fact word for word; that much of it the source itself shows.
    shown = [fact for fact, stem in zip(facts, stems, strict=True) if fact in stem]
    assert len(shown) == 2
    for question in real("obqa").questions:
        text = repr(question).casefold()
        assert not [fact for fact in facts if fact in text and fact not in shown]
        assert set(question.to_json()) == {"id", "question", "question_type", "choices", "answers"}


def test_path_question_answers_are_what_the_gold_path_reaches_in_its_graph():
    path = DATA / "pathquestion" / "2H-kb.txt.gz"
    rows = [line.rstrip("\n").split("\t") for line in raw_lines("pq-2h")]
    tails, entities = {}, set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            head, relation, tail = line.rstrip("\n").split("\t")
            tails.setdefault((head, relation), set()).add(tail)
            entities |= {head, tail}
    for (text, _, gold_path), question in zip(rows, real("pq-2h").questions, strict=True):
        subject, first, _, second, *_ = gold_path.split("#")
        reached = set().union(
            *(tails.get((middle, second), ()) for middle in tails[subject, first])
        )
        assert set(question.answers) == reached
        assert question.answers
        assert question.topic_entities == (subject,)
        assert subject in question.question
        assert subject in entities
        # With these fields and no others nothing of the path between its ends is left.
        assert question == GoldQuestion(
            id=question.id,
            question=text,
            answers=question.answers,
            topic_entities=(subject,),
            type="2-hop",
        )


def test_freebase_topics_are_entities_of_the_graph_that_goes_with_them():
    path = DATA / "freebase_mini" / "triples.tsv.gz"
    topics = [t for name in ("cwq", "webqsp", "grailqa") for q in real(name).questions
              for t in q.topic_entities]  # fmt: skip
    entities = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            head, _, tail, *_ = line.rstrip("\n").split("\t")
            entities |= {head, tail}
    known = sum(topic in entities for topic in topics)
    assert known / len(topics) > 0.97
    assert not [topic for topic in topics if topic.startswith("m.")]


def test_no_freebase_topic_gives_away_an_answer_that_the_question_does_not_say():
    def words(text):
        return "".join(c if c.isalnum() else " " for c in text.lower()).split()

    def says(question, name):
        span = len(words(name))
        said = words(question)
        return any(said[at : at + span] == words(name) for at in range(len(said)))

    withheld = 0
    for name in ("cwq", "webqsp", "grailqa"):
        topics = {row["id"]: row["topic_entities"].values() for row in raw_rows(name)}
        for question in real(name).questions:
            gold = [words(answer) for answer in question.answers]
            for topic in question.topic_entities:
                assert words(topic) not in gold or says(question.question, topic)
            withheld += len(set(topics[question.id])) - len(question.topic_entities)
    assert withheld == 6


def test_the_data_folder_of_the_tests_is_no_part_of_the_project():
    assert not DATA.resolve().is_relative_to(Path(ROOT).resolve())
