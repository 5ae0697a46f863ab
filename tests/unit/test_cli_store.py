"""`ingest`, `info`, `link`, `neighbors` as their users see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cli.output import visible
from tests.cli_helpers import ROOT, command_alone, command_in_process, error_lines

FACTS = [
    ("electrons", "part_of", "atoms", "0.9"),
    ("ELECTRONS", "member_of", "bands", "0.8"),
    ('"Roman Empire "', "located_in", "Europe", "0.95"),
    ("sample's_table", "definiert_icp-kriterien_für", 'a"b', "0.7"),
    ("50% off", "likes", "C++", "0.5"),
    ("São Paulo", "likes", "東京", "0.6"),
    ("O'Neil (actor)", "likes", "São Paulo", "0.4"),
    ("Zed", "parent", "Amy", "0.9"),
    ("A1", "knows", "B1", "0.9"),
    ("B1", "knows", "A1", "0.8"),
    ("A1", "likes", "B1", "0.3"),
    ("[bold]x[/]", "is \x1b[31mred\x1b[0m", "\u202eevil :smile:", "0.5"),
]


@pytest.fixture
def graphmoot(capsys):
    return command_in_process(capsys)


def lines(facts):
    return "".join("\t".join(fact) + "\n" for fact in facts)


@pytest.fixture
def store(tmp_path, graphmoot):
    source = tmp_path / "facts.tsv"
    source.write_text(lines(FACTS), encoding="utf-8")
    target = tmp_path / "facts.graphmoot"
    assert graphmoot("ingest", source, "--to", target).status == 0
    return target


@pytest.fixture
def namesakes(tmp_path, graphmoot):
    source, names = tmp_path / "wei.tsv", tmp_path / "names.tsv"
    source.write_text(
        "Q1\tborn_in\tBeijing\t0.9\nQ2\tborn_in\tShanghai\t0.8\nQ1\tplays\tGo\t0.5\n", "utf-8"
    )
    names.write_text("id\tname\nQ1\tLi Wei\nQ2\tLi Wei\n", encoding="utf-8")
    target = tmp_path / "wei.graphmoot"
    assert graphmoot("ingest", source, "--to", target, "--names", names).status == 0
    return target


def test_names_that_differ_in_case_only_are_both_found(store, graphmoot):
    found = graphmoot("link", store, "electrons", "--json").json
    assert [c["entity"] for c in found[:2]] == ["electrons", "ELECTRONS"]
    assert found[0]["score"] == 1.0
    assert set(found[0]) == {"entity", "name", "score", "how"}


def test_quotes_and_blanks_around_a_name_in_the_file_do_not_matter(store, graphmoot):
    facts = graphmoot("neighbors", store, "Roman Empire", "--json").json
    assert facts == [
        {"head": "Roman Empire", "relation": "located_in", "tail": "Europe", "confidence": 0.95}
    ]


def test_namesakes_are_listed_and_called_ambiguous(namesakes, graphmoot):
    ran = graphmoot("link", namesakes, "Li Wei")
    assert ran.status == 0
    assert "Q1" in ran.out
    assert "Q2" in ran.out
    assert "ambiguous" in ran.err


def test_an_ambiguous_entity_is_not_chosen_silently(namesakes, graphmoot):
    ran = graphmoot("neighbors", namesakes, "Li Wei")
    assert ran.status == 2
    assert ran.out == ""
    assert "ambiguous" in error_lines(ran)[0]
    assert "Q1" in ran.err
    assert "born in Beijing" in ran.err
    assert "Q2" in ran.err


def test_ids_stand_beside_names_where_they_differ(namesakes, graphmoot):
    fact = graphmoot("neighbors", namesakes, "Q2", "--json").json[0]
    assert (fact["head"], fact["head_id"]) == ("Li Wei", "Q2")
    assert "tail_id" not in fact
    assert "Q2" in graphmoot("neighbors", namesakes, "Q2").out


def test_a_name_of_ten_thousand_characters_is_shortened_on_screen_only(tmp_path, graphmoot):
    name = "long" * 2500
    source, target = tmp_path / "long.tsv", tmp_path / "long.graphmoot"
    source.write_text(f"{name}\tis\tlong\t0.5\n", encoding="utf-8")
    assert graphmoot("ingest", source, "--to", target).status == 0
    assert len(graphmoot("neighbors", target, "long").out) < 1500
    assert graphmoot("neighbors", target, "long", "--json").json[0]["head"] == name
    missing = graphmoot("neighbors", target, "lon" * 3000)
    assert missing.status == 3
    assert len(missing.err) < 1000


def test_a_relation_with_odd_letters_is_selected_and_printed_unchanged(store, graphmoot):
    relation = "definiert_icp-kriterien_für"
    ran = graphmoot("neighbors", store, "sample's_table", "--relation", relation)
    assert ran.status == 0
    assert relation in ran.out


@pytest.mark.parametrize(
    "name", ["sample's_table", 'a"b', "50% off", "C++", "São Paulo", "東京", "O'Neil (actor)"]
)
def test_odd_names_go_through_every_command(name, store, graphmoot):
    assert graphmoot("link", store, name, "--json").json[0]["entity"] == name
    facts = graphmoot("neighbors", store, name, "--json").json
    assert any(name in (fact["head"], fact["tail"]) for fact in facts)
    assert name in graphmoot("neighbors", store, name).out


@pytest.mark.parametrize("name", ["", '""', "...", " \t "])
def test_an_empty_name_is_an_error_of_its_line(name, tmp_path, graphmoot):
    source = tmp_path / "bad.jsonl"
    rows = [{"head": "a", "relation": "r", "tail": "b", "confidence": 1}]
    rows.append({**rows[0], "head": name})
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ran = graphmoot("ingest", source, "--to", tmp_path / "bad.graphmoot")
    assert ran.status == 2
    assert f"{source}:2: " in ran.err
    assert not (tmp_path / "bad.graphmoot").exists()


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_an_unknown_entity_gets_suggestions_and_status_3(as_json, store, graphmoot):
    ran = graphmoot("neighbors", store, "electrns", *as_json)
    assert ran.status == 3
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert "did you mean 'electrons'" in ran.err.replace("'ELECTRONS', ", "")


def test_link_ranks_similar_names_for_one_that_is_absent(store, graphmoot):
    ran = graphmoot("link", store, "electrns")
    assert ran.status == 0
    assert "electrons" in ran.out
    assert "nothing is named 'electrns'" in ran.err


def test_link_of_what_resembles_nothing_has_status_3(store, graphmoot):
    ran = graphmoot("link", store, "qqqqqq", "--json")
    assert (ran.status, ran.json) == (3, [])


def test_a_and_b_pointing_at_each_other_are_two_facts_each_once(store, graphmoot):
    facts = graphmoot("neighbors", store, "A1", "--json").json
    keys = [(f["head"], f["relation"], f["tail"]) for f in facts]
    assert keys == [("A1", "knows", "B1"), ("B1", "knows", "A1"), ("A1", "likes", "B1")]


def test_a_fact_keeps_its_direction_from_both_ends(store, graphmoot):
    wanted = {"head": "Zed", "relation": "parent", "tail": "Amy", "confidence": 0.9}
    assert graphmoot("neighbors", store, "Amy", "--json").json == [wanted]
    assert graphmoot("neighbors", store, "Zed", "--json").json == [wanted]
    assert graphmoot("neighbors", store, "Amy", "--direction", "out", "--json").json == []


def test_a_hub_prints_a_table_of_25_and_all_in_json(tmp_path, graphmoot):
    source, target = tmp_path / "hub.tsv", tmp_path / "hub.graphmoot"
    source.write_text(lines(("hub", "to", f"n{i}", "0.5") for i in range(60)), "utf-8")
    graphmoot("ingest", source, "--to", target)
    table = graphmoot("neighbors", target, "hub")
    assert table.out.count("hub") == 25
    assert "more" in table.err
    assert len(graphmoot("neighbors", target, "hub", "--json").json) == 60
    assert len(graphmoot("neighbors", target, "hub", "--json", "--limit", "7").json) == 7


@pytest.mark.parametrize(
    ("confidence", "mend"),
    [
        ("high", "not a number"),
        ("NaN", "NaN"),
        ("0", "not above 0"),
        ("-1", "not above 0"),
        ("", "--default-confidence"),
        ("2.0", "--confidence-scale"),
    ],
)
def test_a_confidence_that_cannot_be_taken_names_line_and_mend(
    confidence, mend, tmp_path, graphmoot
):
    source = tmp_path / "bad.tsv"
    source.write_text(f"a\tr\tb\t0.4\na\tr\tc\t{confidence}\n", encoding="utf-8")
    ran = graphmoot("ingest", source, "--to", tmp_path / "bad.graphmoot")
    assert ran.status == 2
    row = next(line for line in ran.err.splitlines() if line.startswith(f"{source}:2: "))
    assert mend.replace("not a number", "number") in row
    assert len(error_lines(ran)) == 1


def test_skipped_rows_are_counted_by_reason(tmp_path, graphmoot):
    source = tmp_path / "mixed.tsv"
    source.write_text("a\tr\tb\t0.4\na\tr\tc\thigh\na\tr\td\t7\na\tr\ta\t1\n", encoding="utf-8")
    target = tmp_path / "mixed.graphmoot"
    ran = graphmoot("ingest", source, "--to", target, "--on-error", "skip", "--json")
    assert ran.status == 0
    assert (ran.json["rows"], ran.json["loaded"], ran.json["self_loops"]) == (4, 2, 1)
    assert sum(ran.json["skipped"].values()) == 2
    table = graphmoot("ingest", source, "--to", target, "--on-error", "skip")
    assert "skipped: confidence above 1" in table.out
    assert f"{source}:3: " in table.err


def test_a_scale_makes_weights_confidences(tmp_path, graphmoot):
    source, target = tmp_path / "w.csv", tmp_path / "w.graphmoot"
    source.write_text("a,r,b,2.0\na,r,c,8\n", encoding="utf-8")
    assert (
        graphmoot("ingest", source, "--to", target, "--confidence-scale", "divide:10").status == 0
    )
    facts = graphmoot("neighbors", target, "a", "--json").json
    assert [fact["confidence"] for fact in facts] == [0.8, 0.2]


def test_info_counts_the_store(store, graphmoot):
    values = graphmoot("info", store, "--json").json
    assert values["facts"] == len(FACTS)
    assert set(values["confidence"]) == {"min", "mean", "max"}
    assert "facts" in graphmoot("info", store).out


def test_an_alias_links_and_says_so(graphmoot):
    ran = graphmoot("neighbors", "sample", "Tarrow", "--limit", "1")
    assert ran.status == 0
    assert "linked 'Tarrow' to Tarrowhithe (alias, 0.93)" in ran.err


@pytest.mark.parametrize("location", ["sample", "store"])
def test_an_unknown_relation_names_near_ones(location, store, graphmoot):
    place, entity, near = {
        "sample": ("sample", "Marrow_Light", "built_by"),
        "store": (store, "A1", "knows"),
    }[location]
    ran = graphmoot("neighbors", place, entity, "--relation", near[:-1])
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert f"'{near}'" in ran.err


def test_a_relation_known_elsewhere_only_gives_no_facts(store, graphmoot):
    ran = graphmoot("neighbors", store, "A1", "--relation", "part_of", "--json")
    assert (ran.status, ran.json) == (0, [])


def test_escapes_and_markup_in_names_are_shown_not_obeyed(store, graphmoot):
    ran = graphmoot("neighbors", store, "[bold]x[/]")
    assert "[bold]x[/]" in ran.out
    assert ":smile:" in ran.out
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "\\x1b[31mred" in ran.out


def test_visible_keeps_ordinary_text_of_every_script():
    for text in ("東京", "São Paulo", "नमस्ते", "👩\u200d🚀", "a — b"):
        assert visible(text) == text
    assert visible("a\nb") == "a\\nb"
    assert visible("a\nb", lines=True) == "a\nb"
    assert visible("\udcff") == "\\udcff"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["nonsense"], 2),
        (["link"], 2),
        (["link", "sample", "x", "--top", "many"], 2),
        (["info", "no-such.graphmoot"], 2),
        (["ingest", "no-such.tsv", "--to", "x.graphmoot"], 2),
        (["neighbors", "sample", "Nobody At All"], 3),
        (["--version"], 0),
        (["--help"], 0),
        ([], 0),
    ],
)
def test_exit_status_and_short_errors(arguments, status, graphmoot):
    ran = graphmoot(*arguments)
    assert ran.status == status
    assert "Traceback" not in ran.err
    if status:
        assert len(error_lines(ran)) == 1
        assert len(ran.err.splitlines()) <= 2


@pytest.mark.parametrize(
    "arguments",
    [["--debug", "info", "nowhere"], ["info", "nowhere", "--debug"]],
)
def test_debug_shows_the_traceback_before_and_after_the_command(arguments, graphmoot):
    ran = graphmoot(*arguments)
    assert ran.status == 2
    assert "Traceback" in ran.err
    assert "Traceback" not in graphmoot("info", "nowhere").err


@pytest.mark.parametrize(
    "command", ["ingest", "info", "link", "neighbors", "subgraph", "ask", "demo", "methods"]
)
def test_every_command_has_help_with_an_example(command, graphmoot):
    ran = graphmoot(command, "--help")
    assert ran.status == 0
    assert f"graphmoot {command}" in ran.out.split("Examples:")[1]


def test_a_process_of_its_own_keeps_stdout_for_json_in_utf8(store):
    ran = command_alone(
        "neighbors", store, "São Paulo", "--json", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert ran.status == 0
    assert {fact["tail"] for fact in ran.json} == {"東京", "São Paulo"}
    assert "東京" in ran.out


def test_a_reader_that_goes_away_is_no_error(store):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", "neighbors", str(store), "A1"],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == b""


def test_looking_things_up_loads_nothing_heavy(store):
    code = (
        "import sys; from cli.main import main\n"
        "for a in (['info', S], ['link', S, 'Zed'], ['neighbors', S, 'Zed'], ['--help']):\n"
        "    assert main(a) == 0\n"
        "heavy = {'numpy', 'networkx', 'langgraph', 'langchain_core', 'torch',\n"
        "         'onnxruntime', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    code = code.replace("S,", "sys.argv[1],").replace("S]", "sys.argv[1]]")
    done = subprocess.run(
        [sys.executable, "-c", code, str(store)],
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_a_stream_that_the_caller_closed_is_no_failure(closed):
    command = f'"$0" -m cli.main link sample "marow light" --json {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        capture_output=True, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"AttributeError" not in done.stderr
    assert "1>&-" in closed or json.loads(done.stdout)


def test_a_store_given_as_a_source_is_told_as_such(tmp_path, graphmoot):
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tr\tb\t0.9\n", encoding="utf-8")
    store = tmp_path / "facts.graphmoot"
    assert graphmoot("ingest", facts, "--to", store).status == 0
    ran = graphmoot("ingest", store, "--to", tmp_path / "again.graphmoot")
    assert ran.status == 2
    assert "is a store already" in error_lines(ran)[0]
