"""Ingest: formats, faulty rows, confidences, tables, and what is left after an accident."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graph_store import IngestError, IngestReport, StoreError, ingest, open_store, shared_store
from graph_store.sqlite_writer import TEMPORARY_SUFFIX
from graph_store.whole_file import content_hash

Fact = tuple[str, str, str, float]


class Bench:
    """A folder with a source and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store.gm"
        self.temporary = folder / f"store.gm{TEMPORARY_SUFFIX}"

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def ingest(self, content: str | bytes, name: str = "f.tsv", **options: Any) -> IngestReport:
        return ingest([self.file(name, content)], self.store, **options)

    def facts(self) -> list[Fact]:
        store = open_store(self.store)
        found = sorted((f.head, f.relation, f.tail, f.confidence) for f in store.facts())
        store.close()
        return found

    def refused(self, content: str | bytes, name: str = "f.tsv", **options: Any) -> IngestError:
        """Ingest what must be refused; nothing may be left of it."""
        before = sorted(self.folder.iterdir())
        old = self.store.read_bytes() if self.store.exists() else None
        with pytest.raises(IngestError) as caught:
            self.ingest(content, name, **options)
        assert sorted({*self.folder.iterdir()} - {self.folder / name}) == sorted(
            {*before} - {self.folder / name}
        )
        assert (self.store.read_bytes() if self.store.exists() else None) == old
        return caught.value


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


TWO: list[Fact] = [("Ada", "knows", "Bob", 0.5), ("Bob", "knows", "Cat", 0.25)]


# formats

SAME = {
    "plain.tsv": "Ada\tknows\tBob\t0.5\nBob\tknows\tCat\t0.25\n",
    "no-last-newline.tsv": "Ada\tknows\tBob\t0.5\nBob\tknows\tCat\t0.25",
    "crlf.tsv": "Ada\tknows\tBob\t0.5\r\nBob\tknows\tCat\t0.25\r\n",
    "bom.tsv": "\ufeffAda\tknows\tBob\t0.5\nBob\tknows\tCat\t0.25\n",
    "header.tsv": "head\trelation\ttail\tconfidence\nAda\tknows\tBob\t.5\nBob\tknows\tCat\t.25\n",
    "bom-header.tsv": "\ufeffhead\trelation\ttail\tconfidence\n"
    "Ada\tknows\tBob\t.5\nBob\tknows\tCat\t.25",
    "order.tsv": "Weight\tTail\tPredicate\tSubject\n0.5\tBob\tknows\tAda\n0.25\tCat\tknows\tBob\n",
    "edges.tsv": "source\ttarget\trelation\tweight\nAda\tBob\tknows\t0.5\nBob\tCat\tknows\t0.25\n",
    "extra.tsv": "head\tnote\trelation\ttail\tconf\tx\n"
    "Ada\t1\tknows\tBob\t0.5\t\nBob\t2\tknows\tCat\t0.25\t9\n",
    "blank.tsv": "\n \nAda\tknows\tBob\t0.5\n\t\t\t\n\nBob\tknows\tCat\t0.25\n\n",
    "padded.tsv": ' Ada \tknows\t Bob\t 0.5 \n"Bob"\t"knows "\t" Cat"\t"0.25"\n',
    "twice.tsv": "head\trelation\ttail\tconfidence\nAda\tknows\tBob\t0.5\n"
    "head\trelation\ttail\tconfidence\nBob\tknows\tCat\t0.25\n",
    "twice-bom.csv": "\ufeffhead,relation,tail,confidence\nAda,knows,Bob,0.5\n"
    "\ufeffhead,relation,tail,confidence\nBob,knows,Cat,0.25\n",
    "ids.tsv": "head_id\trelation\ttail_id\tconfidence\n"
    "Ada\tknows\tBob\t0.5\nBob\tknows\tCat\t0.25",
    "plain.csv": "Ada,knows,Bob,0.5\nBob,knows,Cat,0.25\n",
    "crlf.csv": "Ada,knows,Bob,0.5\r\nBob,knows,Cat,0.25\r\n",
    "bom.csv": "\ufeffhead,relation,tail,confidence\r\nAda,knows,Bob,0.5\r\nBob,knows,Cat,0.25\r\n",
    "quoted.csv": '"Ada","knows","Bob","0.5"\n"Bob","knows","Cat","0.25"\n',
    "objects.jsonl": '{"head":"Ada","relation":"knows","tail":"Bob","confidence":0.5}\n'
    '\n{"c":"0.25","t":"Cat","r":"knows","h":"Bob","more":[1]}\n',
    "arrays.jsonl": '["Ada","knows","Bob",0.5]\r\n["Bob","knows","Cat","0.25"]\r\n',
    "bom.jsonl": '\ufeff["Ada","knows","Bob",0.5]\n["Bob","knows","Cat",0.25,null]',
    "by-content-tabs": "Ada\tknows\tBob\t0.5\nBob\tknows\tCat\t0.25\n",
    "by-content-commas.txt": "\n\nAda,knows,Bob,0.5\nBob,knows,Cat,0.25\n",
    "by-content-json.dump": '["Ada","knows","Bob",0.5]\n["Bob","knows","Cat",0.25]\n',
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_facts_in_every_format(bench: Bench, name: str) -> None:
    report = bench.ingest(SAME[name], name)
    assert bench.facts() == TWO
    assert (report.rows, report.loaded, report.skipped) == (2, 2, {})


@pytest.mark.parametrize("name", [*SAME][::3] + [name for name in SAME if "content" in name])
@pytest.mark.parametrize("suffix", ["", ".gz", ".GZ"])
def test_gzip_is_told_by_the_content(bench: Bench, name: str, suffix: str) -> None:
    bench.ingest(gzip.compress(SAME[name].encode()), name + suffix)
    assert bench.facts() == TWO


def test_a_plain_file_named_gz_is_read_as_plain(bench: Bench) -> None:
    bench.ingest(SAME["plain.csv"], "f.csv.gz")
    assert bench.facts() == TWO


def test_several_gzip_members_are_one_file(bench: Bench) -> None:
    lines = SAME["plain.tsv"].splitlines(keepends=True)
    bench.ingest(b"".join(gzip.compress(line.encode()) for line in lines), "f.tsv.gz")
    assert bench.facts() == TWO


def test_several_sources_have_each_its_own_format_and_header(bench: Bench) -> None:
    first = bench.file("a.csv", "tail,relation,head,confidence\nBob,knows,Ada,0.5\n")
    second = bench.file("b.jsonl", '["Bob","knows","Cat",0.25]\n')
    report = ingest([first, second], bench.store)
    assert bench.facts() == TWO
    assert report.rows == 2


def test_one_source_may_be_given_bare(bench: Bench) -> None:
    ingest(str(bench.file("f.tsv", SAME["plain.tsv"])), str(bench.store))
    assert bench.facts() == TWO


def test_a_row_of_short_names_with_a_number_is_no_header(bench: Bench) -> None:
    bench.ingest("h\tr\tt\t0.5\ns\tp\to\t0.5\n")
    assert bench.facts() == [("h", "r", "t", 0.5), ("s", "p", "o", 0.5)]


def test_provenance_validity_names_and_ids_have_columns(bench: Bench) -> None:
    bench.ingest(
        "subject_id,subject,predicate,object_id,object,score,provenance,validity\n"
        "Q1,Ada,knows,Q2,Bob,0.5,the register,1787\n",
        "f.csv",
    )
    (fact,) = open_store(bench.store).neighbors("Q1")
    assert fact.key == ("Q1", "knows", "Q2")
    assert (fact.head_name, fact.tail_name) == ("Ada", "Bob")
    assert (fact.provenance, fact.validity) == ("the register", "1787")


def test_a_table_in_json_keeps_names_beside_ids(bench: Bench) -> None:
    row = {"head_id": "Q1", "head_name": "Ada", "relation": "r", "tail_id": 7, "tail": "Bob"}
    bench.ingest(json.dumps({**row, "confidence": 1, "sources": ["a", "b"]}), "f.jsonl")
    (fact,) = open_store(bench.store).neighbors("Q1")
    assert (fact.head_name, fact.tail, fact.tail_name) == ("Ada", "7", "Bob")
    assert fact.provenance == '["a", "b"]'


ODD = {
    "case 2": ('"Roman Empire "\tin\tEurope\t0.5', "Roman Empire"),
    "quote inside": ('a"b\tin\tEurope\t0.5', 'a"b'),
    "two quoted words": ('"Heroes" and "Villains"\tin\tEurope\t0.5', '"Heroes" and "Villains"'),
    "doubled quotes": ('"say ""hi"" now"\tin\tEurope\t0.5', 'say "hi" now'),
    "apostrophe": ("sample's_table\tin\tEurope\t0.5", "sample's_table"),
    "percent": ("50% off\tin\tEurope\t0.5", "50% off"),
    "line separator": ("a\u2028b\tin\tEurope\t0.5", "a\u2028b"),
    "next line": ("a\x85b\x0bc\tin\tEurope\t0.5", "a\x85b\x0bc"),
    "huge": ("x" * 300_000 + "\tin\tEurope\t0.5", "x" * 300_000),
    "blank around": ("\u3000東京\u00a0\tin\tEurope\t0.5", "東京"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_names_in_tsv(bench: Bench, case: str) -> None:
    line, head = ODD[case]
    bench.ingest(line + "\n")
    assert bench.facts() == [(head, "in", "Europe", 0.5)]


def test_csv_quotes_commas_and_huge_fields(bench: Bench) -> None:
    huge = "y" * 300_000
    bench.ingest(f'"Smith, J.","says ""hi""","a""b",0.5\n"{huge}",r,"""Ada""",1\n', "f.csv")
    assert bench.facts() == [
        ("Smith, J.", 'says "hi"', 'a"b', 0.5),
        (huge, "r", "Ada", 1.0),
    ]


def test_csv_fields_over_several_lines_keep_line_numbers_right(bench: Bench) -> None:
    text = '"two\nlines",r,b,0.5\na,r,b,high\n\n"x\ny\nz",r,b,0\n'
    error = bench.refused(text, "f.csv")
    path = bench.folder / "f.csv"
    assert [fault.split(": ")[0] for fault in error.row_errors] == [f"{path}:3", f"{path}:5"]
    bench.ingest(text, "f.csv", on_error="skip")
    assert bench.facts() == [("two\nlines", "r", "b", 0.5)]


def test_an_unclosed_quote_names_the_line_where_it_opens(bench: Bench) -> None:
    error = bench.refused('a,r,b,0.5\n"c,r,d,0.5\ne,r,f,0.5\n', "f.csv")
    (fault,) = error.row_errors
    assert fault.startswith(f"{bench.folder / 'f.csv'}:2: malformed CSV: a quote opened here")


def test_a_csv_fault_costs_one_row(bench: Bench) -> None:
    report = bench.ingest('a,r,b,0.5\n"c"d,r,e,0.5\nf,r,g,0.5\n', "f.csv", on_error="skip")
    assert report.skipped == {"malformed CSV": 1}
    assert [fact[0] for fact in bench.facts()] == ["a", "f"]


# faulty rows

FAULTS = {
    "Ada\tknows": ("too few columns", "2 columns, at least 3 are needed"),
    "\tknows\tBob\t1": ("head empty", "the head is empty"),
    '""\tknows\tBob\t1': ("head empty", "the head is empty"),
    "Ada\t \tBob\t1": ("relation empty", "the relation is empty"),
    "Ada\tknows\t!?…\t1": ("tail only punctuation", "the tail '!?…' is only punctuation"),
    "Ada\tknows\t$\t1": ("tail only punctuation", "the tail '$' is only punctuation"),
    "A\x00b\tknows\tBob\t1": ("head unreadable", "the head holds a NUL character"),
    "Ada\tknows\tBob\t1\tp\x00": ("provenance unreadable", "the provenance holds a NUL character"),
    "Ada\tknows\tBob\t1\rEve\tr\tCat\t1": ("carriage return", "a carriage return inside the line"),
    "Ada\tknows\tBob": ("confidence missing", "no confidence (column `confidence`); --default"),
    "Ada\tknows\tBob\t": ("confidence missing", "--default-confidence sets one"),
    'Ada\tknows\tBob\t""': ("confidence missing", "--default-confidence sets one"),
    "Ada\tknows\tBob\thigh": ("confidence not a number", "the confidence 'high' is no number"),
    "Ada\tknows\tBob\t1,0": ("confidence not a number", "decimals follow a point, not a comma"),
    "Ada\tknows\tBob\t90%": ("confidence not a number", "--confidence-scale divide:100"),
    "Ada\tknows\tBob\t1_0": ("confidence not a number", "the confidence '1_0' is no number"),
    "Ada\tknows\tBob\t0x1": ("confidence not a number", "the confidence '0x1' is no number"),
    "Ada\tknows\tBob\tNaN": ("confidence not finite", "the confidence is NaN"),
    "Ada\tknows\tBob\tinf": ("confidence not finite", "the confidence is inf"),
    "Ada\tknows\tBob\t0": ("confidence not above 0", "the confidence 0 is not above 0"),
    "Ada\tknows\tBob\t-0.0": ("confidence not above 0", "the confidence -0 is not above 0"),
    "Ada\tknows\tBob\t-1": ("confidence not above 0", "the confidence -1 is not above 0"),
    "Ada\tknows\tBob\t1e-400": ("confidence not above 0", "the confidence 0 is not above 0"),
    "Ada\tknows\tBob\t2.0": ("confidence above 1", "--confidence-scale says how weights"),
}


@pytest.mark.parametrize("row", FAULTS)
def test_a_faulty_row_is_named_by_line_and_counted_by_kind(bench: Bench, row: str) -> None:
    kind, message = FAULTS[row]
    text = f"first\tr\tgood\t0.5\n\n{row}\nlast\tr\tgood\t0.5\n"
    error = bench.refused(text)
    assert error.total == 1
    assert error.row_errors[0].startswith(f"{bench.folder / 'f.tsv'}:3: ")
    assert message in error.row_errors[0]
    assert str(error).startswith("1 row cannot be taken; nothing was written")
    report = bench.ingest(text, on_error="skip")
    assert report.skipped == {kind: 1}
    assert report.row_errors == error.row_errors
    assert (report.rows, report.loaded, report.merged) == (3, 2, 0)
    assert [fact[0] for fact in bench.facts()] == ["first", "last"]


JSON_FAULTS = {
    "not json": ("malformed JSON", "not JSON (Expecting value): not json"),
    "{": ("malformed JSON", "each line is one whole object or array"),
    "[" * 100_000: ("malformed JSON", "not JSON ("),
    "[" + "9" * 5000 + ', "r", "b", 1]': ("malformed JSON", "not JSON (Exceeds the limit"),
    '"text"': ("not an object", "neither an object nor an array of 3 to 5"),
    '["a", "r"]': ("not an object", "neither an object nor an array of 3 to 5"),
    '[{"head": "a"}, {"head": "b"}, {"head": "c"}]': ("not an object", "one object a line"),
    '{"head": "a", "relation": "r", "confidence": 1}': ("tail missing", "no key 'tail'"),
    '{"h": null, "r": "r", "t": "b", "c": 1}': ("head missing", "the head is missing"),
    '{"h": true, "r": "r", "t": "b", "c": 1}': ("head missing", "the head is True, not a name"),
    '{"h": NaN, "r": "r", "t": "b", "c": 1}': ("head missing", "the head is nan, not a name"),
    '{"h": {"id": 1}, "r": "r", "t": "b", "c": 1}': ("head missing", "{'id': 1}, not a name"),
    '{"h": "a\\ud800", "r": "r", "t": "b", "c": 1}': ("head unreadable", "surrogate pair"),
    '{"h": "a\\u0000", "r": "r", "t": "b", "c": 1}': ("head unreadable", "NUL character"),
    '{"h": "a", "r": "r", "t": "b", "c": 1, "head_name": "\\ud800x"}': (
        "head's name unreadable",
        "the head's name holds half of a surrogate pair",
    ),
    '{"h": "a", "r": "r", "t": "b", "c": true}': ("confidence not a number", "'True' is no"),
    '{"h": "a", "r": "r", "t": "b", "c": [1]}': ("confidence not a number", "'[1]' is no"),
    '{"h": "a", "r": "r", "t": "b", "c": 1e999}': ("confidence not finite", "is inf"),
    '{"h": "a", "r": "r", "t": "b", "c": null}': ("confidence missing", "--default-confidence"),
}


@pytest.mark.parametrize("row", JSON_FAULTS, ids=lambda row: row[:40])
def test_a_faulty_json_row_is_named_by_line_and_counted_by_kind(bench: Bench, row: str) -> None:
    kind, message = JSON_FAULTS[row]
    text = f'["first","r","good",0.5]\n{row}\n["last","r","good",0.5]\n'
    (fault,) = bench.refused(text, "f.jsonl").row_errors
    assert fault.startswith(f"{bench.folder / 'f.jsonl'}:2: ")
    assert message in fault
    assert len(fault) < 300
    assert bench.ingest(text, "f.jsonl", on_error="skip").skipped == {kind: 1}
    assert [fact[0] for fact in bench.facts()] == ["first", "last"]


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("f.tsv", "a,r,b,0.5\n", "1 column, at least 3 are needed; fields seem to be separated"),
        ("f.csv", "a\tr\tb\t0.5\n", "separated by tabs: --format tsv"),
        ("f.csv", "a;r;b;0,5\n", "separated by semicolons"),
        ("f.tsv", "a|r|b|0.5\n", "separated by |"),
    ],
)  # fmt: skip
def test_another_separator_than_the_name_says_is_told(
    bench: Bench, name: str, text: str, hint: str
) -> None:
    assert hint in bench.refused(text, name).row_errors[0]


def test_columns_of_unknown_names_are_told_how_to_be_called(bench: Bench) -> None:
    text = "node_a\tedge_type\tnode_b\tcertainty\nAda\tknows\tBob\t0.5\n"
    (fault,) = bench.refused(text).row_errors
    assert "the confidence 'certainty' is no number; if this is a header, call its columns" in fault


def test_a_repeated_header_is_no_fact_even_with_a_default_confidence(bench: Bench) -> None:
    bench.ingest("head,relation,tail\na,r,b\nhead,relation,tail\n", "f.csv", default_confidence=1)
    assert bench.facts() == [("a", "r", "b", 1.0)]


def test_a_faulty_row_leaves_no_entity_behind(bench: Bench) -> None:
    text = '["a","r","b",1]\n{"h":"ghost","r":"spooks","t":"b","c":1,"tail_name":"\\u0000"}\n'
    report = bench.ingest(text, "f.jsonl", on_error="skip")
    assert (report.entities, report.relations) == (2, 1)


def test_only_the_first_faults_are_shown_and_all_are_counted(bench: Bench) -> None:
    error = bench.refused("a\tr\tb\tx\n" * 250)
    assert (len(error.row_errors), error.total) == (10, 250)
    assert str(error).startswith("250 rows cannot be taken")


def test_reading_stops_after_ten_thousand_faults(bench: Bench) -> None:
    error = bench.refused("a\tr\tb\tx\n" * 10_050)
    assert error.total == 10_000
    assert str(error).startswith("10,000+ rows cannot be taken")
    report = bench.ingest("a\tr\tb\tx\n" * 10_050 + "a\tr\tb\t1\n", on_error="skip")
    assert (report.rows, report.skipped) == (10_051, {"confidence not a number": 10_050})


# confidences


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.4", 0.4), ("1", 1.0), ("1e-3", 0.001), (".5", 0.5), ("+0.5", 0.5), ("0.1", 0.1)],
)
def test_numeric_text_is_a_number(bench: Bench, text: str, value: float) -> None:
    bench.ingest(f"a\tr\tb\t{text}\n")
    assert bench.facts() == [("a", "r", "b", value)]


WEIGHTS = "a\tr\tw1\t-3\nb\tr\tw2\t1\nc\tr\tw3\t5\n"


def test_minmax_maps_lowest_to_one_hundredth_and_highest_to_one(bench: Bench) -> None:
    bench.ingest(WEIGHTS, confidence_scale="minmax")
    assert [fact[3] for fact in bench.facts()] == [0.01, pytest.approx(0.505), 1.0]


def test_minmax_of_equal_weights_is_one(bench: Bench) -> None:
    bench.ingest("a\tr\tb\t7\nc\tr\td\t7\n", confidence_scale="minmax")
    assert [fact[3] for fact in bench.facts()] == [1.0, 1.0]


def test_minmax_of_the_widest_weights_stays_within_bounds(bench: Bench) -> None:
    rows = "".join(f"e{n}\tr\tx\t{w}\n" for n, w in enumerate(("-1.7e308", "0", "1.7e308")))
    bench.ingest(rows, confidence_scale="minmax")
    assert [fact[3] for fact in bench.facts()] == [0.01, pytest.approx(0.505), 1.0]


def test_minmax_leaves_the_default_confidence_alone(bench: Bench) -> None:
    bench.ingest(WEIGHTS + "d\tr\tw4\t\n", confidence_scale="minmax", default_confidence=0.3)
    assert bench.facts()[3] == ("d", "r", "w4", 0.3)
    assert bench.facts()[0][3] == 0.01


def test_logistic_maps_any_weight_into_bounds(bench: Bench) -> None:
    rows = "".join(f"e{n}\tr\tx\t{w}\n" for n, w in enumerate((-1e9, -1, 0, 1, 1e9)))
    bench.ingest(rows, confidence_scale="logistic")
    values = [fact[3] for fact in bench.facts()]
    assert values[1:] == pytest.approx([1 / (1 + math.e), 0.5, 1 / (1 + 1 / math.e), 1.0])
    assert 0 < values[0] < 1e-300


def test_divide_scales_and_rejects_what_stays_above_one(bench: Bench) -> None:
    text = "a\tr\tb\t10\nc\tr\td\t0.5\ne\tr\tf\t11\n"
    (fault,) = bench.refused(text, confidence_scale="divide:10").row_errors
    assert fault.endswith(":3: the confidence 11 is above 1 after divide:10")
    bench.ingest(text, confidence_scale="divide:10", on_error="skip")
    assert [fact[3] for fact in bench.facts()] == [1.0, 0.05]


@pytest.mark.parametrize(
    "scale", ["", "max", "divide", "divide:", "divide:0", "divide:-1", "divide:nan", "times:2"]
)
def test_an_unknown_scale_is_refused_with_the_allowed_ones(bench: Bench, scale: str) -> None:
    with pytest.raises(ValueError, match=r"not none, divide:X \(X > 0\), minmax or logistic"):
        bench.ingest("a\tr\tb\t1\n", confidence_scale=scale)


def test_the_default_confidence_is_for_rows_without_one(bench: Bench) -> None:
    bench.ingest('a\tr\tb\nc\tr\td\t""\ne\tr\tf\t0.9\n', default_confidence=0.25)
    assert [fact[3] for fact in bench.facts()] == [0.25, 0.25, 0.9]


@pytest.mark.parametrize("default", [0, -0.1, 1.1, math.nan, math.inf])
def test_a_default_confidence_out_of_bounds_is_refused(bench: Bench, default: float) -> None:
    with pytest.raises(ValueError, match=r"is not in \(0, 1\]"):
        bench.ingest("a\tr\tb\n", default_confidence=default)


def test_an_unknown_error_policy_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="not fail or skip"):
        bench.ingest("a\tr\tb\t1\n", on_error="ignore")


# duplicates and self-loops


def test_duplicates_merge_and_are_counted_the_highest_wins(bench: Bench) -> None:
    rows = ["a\tr\tb\t0.3", "a\tr\tb\t0.8", "b\tr\ta\t0.1", "a\tr\tb\t0.5", "a\tR\tb\t0.2"]
    report = bench.ingest("\n".join(rows))
    assert (report.rows, report.loaded, report.merged) == (5, 3, 2)
    assert ("a", "r", "b", 0.8) in bench.facts()


def test_self_loops_load_and_are_counted(bench: Bench) -> None:
    report = bench.ingest("a\tr\ta\t0.3\na\tr\tb\t0.3\na\tr\ta\t0.4\n")
    assert (report.loaded, report.self_loops, report.merged) == (2, 1, 1)


def test_more_rows_than_one_batch(bench: Bench) -> None:
    text = "".join(f"e{n % 500}\tr{n % 7}\te{n % 499}\t0.5\n" for n in range(25_000))
    report = bench.ingest(text)
    distinct = {(n % 500, n % 7, n % 499) for n in range(25_000)}
    assert (report.rows, report.loaded) == (25_000, len(distinct))
    assert report.merged == 25_000 - len(distinct)


# tables


def test_tables_give_names_aliases_and_relation_words(bench: Bench) -> None:
    report = bench.ingest(
        "Q1\tP1\tQ2\t0.5\n",
        names=bench.file("n.tsv", "\n\nid\tname\nQ1\tAda, Countess\nQ9\tNobody\nQ1\tSecond\n"),
        aliases=bench.file(
            "a.csv", '\ufeffentity,alias\n"Ada, Countess",Lovelace\nQ2,Bobby\nQ9,x\n'
        ),
        relations=bench.file("r.tsv", "P1\tis a friend of\textra\nP2\tno\nP3\tno\n"),
    )
    assert report.unmatched == {"names": 1, "aliases": 1, "relations": 2}
    assert report.aliases == 2
    store = open_store(bench.store)
    (fact,) = store.neighbors("Q1")
    assert fact.text == "Ada, Countess is a friend of Q2"
    assert store.entity("Q1").aliases == ("Lovelace",)
    assert store.link("bobby")[0].entity == "Q2"


def test_an_alias_of_a_name_that_two_entities_have_is_refused(bench: Bench) -> None:
    names = bench.file("n.tsv", "p1\tLi Wei\np2\tLi Wei\n")
    aliases = bench.file("a.tsv", "p1\tfine\nLi Wei\tLee\n")
    bench.file("f.tsv", "p1\tknows\tp2\t0.5\n")
    with pytest.raises(StoreError, match=r"a\.tsv:2: 2 entities are named 'Li Wei'; use the id"):
        ingest([bench.folder / "f.tsv"], bench.store, names=names, aliases=aliases)
    assert not bench.store.exists()
    assert not bench.temporary.exists()


def test_thousands_of_aliases_by_name(bench: Bench) -> None:
    count = 3000
    rows = "".join(f"Q{n}\tr\tQ{n + 1}\t0.5\n" for n in range(count))
    names = bench.file("n.tsv", "".join(f"Q{n}\tname {n}\n" for n in range(count)))
    aliases = bench.file("a.tsv", "".join(f"name {n}\talias {n}\n" for n in range(count)))
    report = bench.ingest(rows, names=names, aliases=aliases)
    assert (report.aliases, report.unmatched) == (count, {})
    assert open_store(bench.store).entity("Q77").aliases == ("alias 77",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Q1\n", r"t\.tsv:1: two columns are needed"),
        ("Q1\tx\n\nQ1\t\n", r"t\.tsv:3: the name is empty"),
        ('Q1,"x\n', r"t\.tsv:1: malformed CSV"),
        (b"Q1\tx\nQ1\t\xff\n", r"t\.tsv:2: not UTF-8"),
        (gzip.compress(b"Q1\tx\n" * 99)[:-9], r"t\.tsv: damaged gzip"),
    ],
)
@pytest.mark.parametrize("kind", ["names", "aliases", "relations"])
def test_a_faulty_table_is_one_clear_line(
    bench: Bench, kind: str, content: str | bytes, message: str
) -> None:
    table = bench.file("t.tsv", content)
    with pytest.raises(StoreError, match=message):
        bench.ingest("Q1\tr\tb\t0.5\n", **{kind: table})
    assert sorted(p.name for p in bench.folder.iterdir()) == ["f.tsv", "t.tsv"]


def test_a_missing_table_is_told_before_the_facts_are_read(bench: Bench) -> None:
    with pytest.raises(StoreError, match=r"gone\.tsv: no such file"):
        bench.ingest("faulty", names=bench.folder / "gone.tsv")


# unreadable sources


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.tsv", b"a\tr\tb\t1\nc\tr\td\xff\t1\n", r"f\.tsv:2: not UTF-8"),
        ("f.tsv", b"a\tr\tb\t1\n" * 9000 + b"\xe9\n", r"f\.tsv:9001: not UTF-8"),
        ("f.tsv", gzip.compress(b"a\tr\t\xff\t1\n"), r"f\.tsv:1: not UTF-8"),
        ("f.csv", "a,r,b,1\n".encode("utf-16"), r"f\.csv:1: not UTF-8"),
        ("f.tsv.gz", gzip.compress(b"a\tr\tb\t1\n" * 99)[:-9], r"f\.tsv\.gz: damaged gzip after"),
        ("f.tsv.gz", gzip.compress(b"a\tr\tb\t1\n") + b"junk", r"f\.tsv\.gz: damaged gzip"),
        ("f.txt", "no fields at all", r"f\.txt: format not recognised; --format says it"),
        ("f.txt", b"\xff\xfe", r"f\.txt: cannot be read"),
        ("f.txt", gzip.compress(b"a\tr\tb\t1\n" * 99)[:12], r"f\.txt: cannot be read"),
    ],
)
def test_an_unreadable_source_is_one_clear_line(
    bench: Bench, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        bench.ingest(content, name)
    assert "\n" not in str(caught.value)
    assert [path.name for path in bench.folder.iterdir()] == [name]


@pytest.mark.parametrize("content", ["", "\n\n", "head\trelation\ttail\tconfidence\n"])
def test_a_source_without_facts_is_refused(bench: Bench, content: str) -> None:
    assert str(bench.refused(content)).startswith("no facts in ")


def test_a_source_of_only_skipped_rows_is_refused_with_its_faults(bench: Bench) -> None:
    error = bench.refused("a\tr\tb\t7\n", on_error="skip")
    assert str(error).startswith("no facts in ")
    assert len(error.row_errors) == 1


def test_missing_sources_and_folders_are_refused(bench: Bench) -> None:
    with pytest.raises(StoreError, match=r"gone\.tsv: no such file"):
        ingest([bench.folder / "gone.tsv"], bench.store)
    with pytest.raises(StoreError, match="is a folder, not a file"):
        ingest([bench.folder], bench.store)
    with pytest.raises(StoreError, match="is a folder, not a file"):
        ingest([bench.folder], bench.store, source_format="tsv")
    with pytest.raises(StoreError, match="no source is given"):
        ingest([], bench.store)
    with pytest.raises(StoreError, match="format 'xml' is not one of auto, tsv, csv, jsonl"):
        bench.ingest("a\tr\tb\t1\n", source_format="xml")
    assert [path.name for path in bench.folder.iterdir()] == ["f.tsv"]


def test_a_pipe_needs_its_format_and_then_is_read_whole(bench: Bench) -> None:
    pipe = bench.folder / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match="is no plain file; --format says its format"):
        ingest([pipe], bench.store)
    writer = threading.Thread(target=pipe.write_text, args=(SAME["plain.tsv"],))
    writer.start()
    ingest([pipe], bench.store, source_format="tsv")
    writer.join()
    assert bench.facts() == TWO


# targets


def test_a_target_that_is_no_store_is_left_alone(bench: Bench) -> None:
    source = bench.file("f.tsv", "a\tr\tb\t1\n")
    for name, content in (("notes.txt", b"mine"), ("empty", b"")):
        mine = bench.file(name, content)
        with pytest.raises(StoreError, match="exists and is not a store of ours"):
            ingest([source], mine)
        assert mine.read_bytes() == content
    database = bench.folder / "other.db"
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = database.read_bytes()
    with pytest.raises(StoreError, match="exists and is not a store of ours"):
        ingest([source], database)
    assert database.read_bytes() == before
    with pytest.raises(StoreError, match="exists and is not a store of ours"):
        ingest([source], source)
    assert source.read_text() == "a\tr\tb\t1\n"


def test_a_target_that_is_a_folder_or_in_none_is_refused(bench: Bench) -> None:
    source = bench.file("f.tsv", "a\tr\tb\t1\n")
    with pytest.raises(StoreError, match="is a folder; name a file"):
        ingest([source], bench.folder)
    with pytest.raises(StoreError, match="no such folder; make it first"):
        ingest([source], bench.folder / "gone" / "store.gm")


def test_a_linked_target_keeps_the_link(bench: Bench) -> None:
    bench.ingest("a\tr\tb\t1\n")
    link = bench.folder / "current"
    link.symlink_to("store.gm")
    ingest([bench.file("g.tsv", "c\tr\td\t1\n")], link)
    assert link.is_symlink()
    assert bench.facts() == [("c", "r", "d", 1.0)]


def test_a_write_protected_store_is_read_and_replaced(bench: Bench) -> None:
    bench.ingest("a\tr\tb\t1\n")
    bench.store.chmod(0o444)
    assert bench.facts() == [("a", "r", "b", 1.0)]
    bench.ingest("c\tr\td\t1\n")
    assert bench.facts() == [("c", "r", "d", 1.0)]


# repeatable, atomic


def test_equal_input_gives_an_equal_file(bench: Bench) -> None:
    rows = "".join(f"é{n}\tr{n % 3}\te{n * 7 % 50}\t0.{n % 9 + 1}\tp{n % 4}\n" for n in range(3000))
    aliases = bench.file("a.tsv", "e1\tone\ne2\ttwo\n")
    bench.ingest(rows, aliases=aliases)
    first = content_hash(bench.store)
    bench.ingest("other\tr\tx\t1\n")
    assert content_hash(bench.store) != first
    program = (
        "import sys; from graph_store import ingest; ingest([sys.argv[1]], sys.argv[2], "
        "aliases=sys.argv[3])"
    )
    bench.file("f.tsv", rows)
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, bench.folder / "f.tsv", bench.store, aliases],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert content_hash(bench.store) == first


class Accident(BaseException):
    """Stands for whatever may end an ingest."""


@pytest.mark.parametrize("accident", [KeyboardInterrupt, Accident])
@pytest.mark.parametrize(
    "step", ["reading", "merging facts", "indexing names", "indexing facts", "saving"]
)
def test_an_accident_at_any_step_leaves_the_old_store_and_nothing_else(
    bench: Bench, step: str, accident: type[BaseException]
) -> None:
    bench.ingest("old\tr\tb\t1\n")
    old = bench.store.read_bytes()

    def fail(now: str, _done: int, _total: int) -> None:
        if now == step:
            raise accident

    with pytest.raises(accident):
        bench.ingest("new\tr\tb\t1\n" * 21_000, progress=fail)
    assert bench.store.read_bytes() == old
    assert sorted(path.name for path in bench.folder.iterdir()) == ["f.tsv", "store.gm"]
    bench.ingest("new\tr\tb\t1\n")
    assert bench.facts() == [("new", "r", "b", 1.0)]


def test_a_fault_in_the_last_row_leaves_the_old_store(bench: Bench) -> None:
    bench.ingest("old\tr\tb\t1\n")
    bench.refused("new\tr\tb\t1\n" * 30_000 + "new\tr\tb\t0\n")


PAUSED = """
import sys, time
from graph_store import ingest
def progress(step, done, total):
    if step == "indexing facts":
        print("there", flush=True)
        time.sleep(60)
ingest([sys.argv[1]], sys.argv[2], progress=progress)
"""


def test_a_living_ingest_is_not_disturbed_and_a_killed_one_leaves_one_file_that_the_next_removes(
    bench: Bench,
) -> None:
    bench.ingest("old\tr\tb\t1\n")
    old = bench.store.read_bytes()
    big = bench.file("big.tsv", "".join(f"new{n}\tr\tb\t1\n" for n in range(3_000)))
    with subprocess.Popen(
        [sys.executable, "-c", PAUSED, big, bench.store], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "there\n"
        for _ in range(2):
            with pytest.raises(StoreError, match=r"store\.gm: another ingest is writing") as caught:
                bench.ingest("mine\tr\tb\t1\n")
            assert "\n" not in str(caught.value)
            assert bench.temporary.exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert bench.store.read_bytes() == old
    assert bench.facts() == [("old", "r", "b", 1.0)]
    left = sorted(path.name for path in bench.folder.iterdir())
    assert left == ["big.tsv", "f.tsv", "store.gm", bench.temporary.name]
    bench.ingest("mine\tr\tb\t1\n")
    assert bench.facts() == [("mine", "r", "b", 1.0)]
    assert not bench.temporary.exists()


def test_what_a_killed_ingest_left_does_not_get_into_the_next_store(bench: Bench) -> None:
    bench.ingest("mine\tr\tb\t1\n")
    clean = content_hash(bench.store)
    for left in (b"half a database", bench.store.read_bytes()[:4096], b""):
        bench.temporary.write_bytes(left)
        bench.ingest("mine\tr\tb\t1\n")
        assert content_hash(bench.store) == clean
        assert not bench.temporary.exists()


def test_of_ingests_that_start_at_once_one_wins_and_none_spoils_the_store(bench: Bench) -> None:
    sources = [
        bench.file(f"s{n}.tsv", "".join(f"n{n}\tr\te{i}\t1\n" for i in range(200)))
        for n in range(4)
    ]

    def run(source: Path) -> str:
        start.wait()
        try:
            return f"loaded {ingest([source], bench.store).loaded}"
        except StoreError as error:
            return str(error)

    for _ in range(10):
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(run, sources))
        assert "loaded 200" in ends
        assert set(ends) <= {"loaded 200", f"{bench.store}: another ingest is writing this store"}
        facts = bench.facts()
        assert len(facts) == 200
        assert len({fact[0] for fact in facts}) == 1
        assert not bench.temporary.exists()


LIMITED = """
import resource, sys
from graph_store import StoreError, ingest
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    ingest([sys.argv[1]], sys.argv[2], confidence_scale=sys.argv[4])
except StoreError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize(
    ("limit", "scale"), [(0, "none"), (0, "minmax"), (100_000, "none"), (1_000_000, "none")]
)
def test_a_full_disk_is_one_clear_line_and_the_old_store_stays(
    bench: Bench, limit: int, scale: str
) -> None:
    bench.ingest("old\tr\tb\t1\n")
    old = bench.store.read_bytes()
    big = bench.file("big.tsv", "".join(f"new{n}\tr\tb{n}\t1\n" for n in range(10_000)))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, big, bench.store, str(limit), scale],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{bench.store}: cannot be written: ")
    assert line.endswith("; the store is as it was")
    assert bench.store.read_bytes() == old
    assert not bench.temporary.exists()


# readers while the store is replaced


def test_an_open_store_goes_on_reading_the_old_graph_whole(bench: Bench) -> None:
    old = [(f"old{n}", "r", "b", 0.5) for n in range(3000)]
    bench.ingest("".join(f"{h}\t{r}\t{t}\t{c}\n" for h, r, t, c in old))
    store = open_store(bench.store)
    here = iter(store.facts())
    begun = next(here)
    bench.ingest("new\tr\tb\t1\n" * 10)

    def read(_: int) -> list[Fact]:
        return sorted((f.head, f.relation, f.tail, f.confidence) for f in store.facts())

    assert len([begun, *here]) == 3000
    assert read(0) == sorted(old)
    with ThreadPoolExecutor(8) as pool:  # threads that first read after the replacement
        assert all(found == sorted(old) for found in pool.map(read, range(16)))
    bench.store.unlink()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(store.degree, "b", 5000).result() == 3000
    store.close()


def test_a_shared_store_is_opened_once_and_anew_after_an_ingest(bench: Bench) -> None:
    bench.ingest("old\tr\tb\t1\n")
    first = shared_store(bench.store)
    assert shared_store(str(bench.store)) is first
    bench.ingest("new\tr\tb\t1\n")
    second = shared_store(bench.store)
    assert second.entity("new").id == "new"
    assert first.entity("old").id == "old"
    first.close()
    second.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_thread_for_every_request_does_not_use_up_the_files(bench: Bench) -> None:
    bench.ingest("old\tr\tb\t1\n")
    store = open_store(bench.store)
    for _ in range(50):
        thread = threading.Thread(target=store.neighbors, args=("old",))
        thread.start()
        thread.join()
    here = bench.store.stat()
    opened = [link for link in Path("/proc/self/fd").iterdir() if _names(link, here)]
    assert 1 <= len(opened) < 5
    store.close()


def _names(link: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(link.stat(), file)
    except OSError:
        return False


def test_a_closed_store_says_so_in_every_thread(bench: Bench) -> None:
    bench.ingest("old\tr\tb\t1\n")
    store = open_store(bench.store)
    store.neighbors("old")
    store.close()
    with pytest.raises(StoreError, match="the store was closed"):
        store.neighbors("old")
    with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match="the store was closed"):
        pool.submit(store.neighbors, "old").result()


def test_a_store_cut_short_or_of_another_format_is_refused(bench: Bench) -> None:
    bench.ingest("".join(f"a{n}\tr\tb\t1\n" for n in range(500)))
    whole = bench.store.read_bytes()
    for size in (100, 4096, len(whole) // 2, len(whole) - 1):
        bench.store.write_bytes(whole[:size])
        with pytest.raises(StoreError, match="the file is cut short"):
            open_store(bench.store)
    bench.store.write_bytes(whole)
    with sqlite3.connect(bench.store) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    database.close()
    with pytest.raises(StoreError, match="store format 99, this version reads 1: ingest it again"):
        open_store(bench.store)


def test_paths_with_signs_of_urls_are_opened(bench: Bench) -> None:
    folder = bench.folder / "50% of a?b#c d"
    folder.mkdir()
    ingest([bench.file("f.tsv", "a\tr\tb\t1\n")], folder / "ü?.gm")
    assert open_store(folder / "ü?.gm").info().facts == 1


def test_progress_tells_bytes_read_of_all_sources(bench: Bench) -> None:
    first = bench.file("a.tsv", "a\tr\tb\t1\n" * 10)
    second = bench.file("b.tsv", "c\tr\td\t1\n" * 10)
    told: list[tuple[str, int, int]] = []
    ingest([first, second], bench.store, progress=lambda *now: told.append(now))
    read = [now for now in told if now[0] == "reading"]
    total = first.stat().st_size + second.stat().st_size
    assert read[-1] == ("reading", total, total)
    assert [now[1] for now in read] == sorted(now[1] for now in read)
