"""Reports: the numbers are right, nothing unlike is mixed, untrusted text stays text."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import math
import re
from html.parser import HTMLParser

import pytest

from evals.published import FINDINGS, PUBLISHED, published
from evals.report.accuracy_plots import apart
from evals.report.csv_file import COLUMNS, csv_text
from evals.report.curve_plots import noise_curves, sweeps
from evals.report.merge import read_runs
from evals.report.page import page_text, plots
from evals.report.summary import ReportError, summarise_runs
from evals.report.tables import tables
from evals.run_folder import RESULTS, RunFolderError
from tests.cli_helpers import command_in_process, error_lines
from tests.eval_run_maker import (
    MODEL,
    cached,
    call,
    cell,
    failed,
    line,
    make_run,
    question,
    result,
)

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

QUESTIONS = [question(f"q{n}", ["yes"]) for n in range(4)]
TWO_CELLS = [cell("A"), cell("B")]
TWO_CELL_LINES = [
    line("q0", "yes", label="A"),
    line("q1", "yes", label="A"),
    line("q2", "no", label="A"),
    line("q3", None, label="A"),
    line("q0", "no", label="B"),
    line("q1", "no", label="B"),
    line("q2", "no", label="B"),
    line("q3", label="B", result=failed()),
]


@pytest.fixture
def graphmoot(capsys):
    return command_in_process(capsys)


@pytest.fixture
def two(tmp_path):
    return make_run(tmp_path / "two", TWO_CELLS, QUESTIONS, TWO_CELL_LINES)


def summary_of(*folders, against=None):
    return summarise_runs(read_runs(folders), against)


def by_title(summary):
    return {cell.cell.title: cell for cell in summary.cells}


def row_of(table, title):
    cells = next(row for row in table.rows if row[0] == title)
    return dict(zip(table.columns, cells, strict=True))


def table_of(summary, name):
    return next(table for table in tables(summary) if table.name == name)


# Numbers


def wilson(right, n):
    """Wilson's interval, Wilson 1927, written out."""
    z, share = 1.959963984540054, right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - reach, middle + reach


def test_accuracy_counts_abstentions_and_failures_as_not_right_and_keeps_them_apart(two):
    found = by_title(summary_of(two))
    accuracy = found["A"].metrics["accuracy"]
    assert (accuracy.value, accuracy.n) == (0.5, 4)
    assert (accuracy.low, accuracy.high) == pytest.approx(wilson(2, 4))
    assert found["A"].metrics["accuracy-answered"].value == pytest.approx(2 / 3)
    assert dict(found["A"].outcomes) == {"right": 2, "wrong": 1, "no_answer": 1, "failed": 0}
    assert dict(found["B"].outcomes) == {"right": 0, "wrong": 3, "no_answer": 0, "failed": 1}


def test_tables_print_percent_with_interval_and_outcomes_apart(two):
    summary = summary_of(two)
    row = row_of(table_of(summary, "accuracy"), "A")
    assert row["accuracy"] == "50.0 [15.0, 85.0]"
    assert row["of those answered"].startswith("66.7 [")
    outcomes = row_of(table_of(summary, "answers"), "B")
    names = ("right", "wrong", "no answer", "failed")
    assert [outcomes[name] for name in names] == ["0", "3", "0", "1"]


def test_cost_counts_what_a_method_asks_and_beside_it_what_was_really_asked(tmp_path):
    debaters = [call("proponent", 1, seconds=3.0), call("challenger", 1, seconds=5.0)]
    judge = call("judge", 2, seconds=1.0)
    lines = [
        line("q0", "yes", calls=[*debaters, judge], seconds=7.0),
        line("q1", "yes", calls=[cached(debaters[0]), debaters[1], judge], seconds=6.0),
        line("q2", "yes", calls=[judge], seconds=2.0),
        line("q3", "yes", calls=[judge], seconds=3.0),
    ]
    cost = summary_of(make_run(tmp_path / "r", [cell()], QUESTIONS, lines)).cells[0].cost
    assert (cost.asked.calls, cost.live.calls) == ((3 + 3 + 1 + 1) / 4, (3 + 2 + 1 + 1) / 4)
    assert (cost.asked.input_tokens, cost.live.input_tokens) == (800 / 4, 700 / 4)
    assert (cost.asked.output_tokens, cost.live.output_tokens) == (80 / 4, 70 / 4)
    assert cost.asked.prefix_cached_tokens == 320 / 4
    assert cost.asked.sequential_steps == (2 + 2 + 1 + 1) / 4
    assert (cost.seconds_n, cost.seconds_median) == (3, 3.0)
    assert cost.seconds_mean == pytest.approx((7 + 2 + 3) / 3)
    assert cost.asked_seconds == (9 + 9 + 1 + 1) / 4
    one_call = (60 * 0.15 + 40 * 0.075 + 10 * 0.60) / 1e6
    assert cost.dollars == pytest.approx(8 * one_call / 4)


def test_a_role_with_a_model_of_its_own_is_paid_by_its_own_price(tmp_path):
    entry = cell(context={"role_models": {"judge": "openai:dear"}})
    prices = {MODEL: {"input": 0, "output": 0}, "openai:dear": {"input": 0, "output": 100}}
    calls = [call("proponent"), call("judge", 2)]
    run = make_run(
        tmp_path / "r", [entry], QUESTIONS, [line("q0", "yes", calls=calls)], prices=prices
    )
    assert summary_of(run).cells[0].cost.dollars == pytest.approx(10 * 100 / 1e6)


def test_money_is_unknown_where_a_price_is(tmp_path):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [line("q0", "yes")], prices={})
    summary = summary_of(run)
    assert summary.cells[0].cost.dollars is None
    assert row_of(table_of(summary, "cost"), "Zero-shot")["$ per 1,000"] == "–"


def test_a_model_on_ones_own_machine_costs_nothing_and_is_named_as_its_server_names_it(tmp_path):
    one = line("q0", "yes", model="local", calls=[call(model="small-1b")])
    summary = summary_of(make_run(tmp_path / "r", [cell(model="local")], QUESTIONS, [one]))
    assert summary.cells[0].cost.dollars == 0
    assert summary.cells[0].cell.model_name == "local (small-1b)"


def test_calibration_is_of_the_stated_confidences(tmp_path):
    lines = [
        line("q0", result=result("yes", confidence=0.9)),
        line("q1", result=result("no", confidence=0.6)),
        line("q2", result=result("yes")),
    ]
    found = summary_of(make_run(tmp_path / "r", [cell()], QUESTIONS, lines)).cells[0].calibration
    assert (found.stated, found.answered) == (2, 3)
    assert found.brier == pytest.approx((0.1**2 + 0.6**2) / 2)
    assert found.ece == pytest.approx((0.1 + 0.6) / 2)


def test_linking_is_counted_over_the_reported_questions_by_how_it_was_done(tmp_path):
    ways = ["given", "mention", "mention", "none"]
    questions = [question(f"q{n}", ["yes"], linking=how) for n, how in enumerate(ways)]
    lines = [line(f"q{n}", "yes") for n in range(3)]
    run = make_run(tmp_path / "r", [cell()], questions, lines, graph={"location": "g"})
    assert summary_of(run).linking == {"csqa": {"given": 1, "mention": 2, "question": 0, "none": 0}}


# Comparisons


def test_pairs_are_compared_on_the_questions_in_common_with_discordant_counts(tmp_path):
    questions = [question(f"q{n}", ["yes"]) for n in range(8)]
    right = {"A": "11111100", "B": "0000010"}
    lines = [
        line(f"q{n}", "yes" if mark == "1" else "no", label=label)
        for label, marks in right.items()
        for n, mark in enumerate(marks)
    ]
    test = summary_of(make_run(tmp_path / "r", TWO_CELLS, questions, lines)).comparisons[0].test
    assert (test.n, test.higher_a, test.higher_b) == (7, 5, 0)
    assert test.p_value == pytest.approx(2 * 0.5**5)


def test_holms_correction_is_over_the_pairs_of_one_data_set_and_model(tmp_path):
    questions = [question(f"q{n}", ["yes"], dataset=d) for d in ("csqa", "obqa") for n in range(6)]
    labels = {"csqa": ("A", "B", "C"), "obqa": ("A", "B")}
    cells = [cell(label, dataset=d) for d, own in labels.items() for label in own]
    lines = [
        line(f"q{n}", "yes" if label == "A" else "no", label=label, dataset=d)
        for d, own in labels.items()
        for label in own
        for n in range(6)
    ]
    found = {
        (c.first.dataset, c.first.title, c.second.title): c.test.p_holm
        for c in summary_of(make_run(tmp_path / "r", cells, questions, lines)).comparisons
    }
    alone = 2 * 0.5**6
    assert found == {
        ("csqa", "A", "B"): pytest.approx(3 * alone),
        ("csqa", "A", "C"): pytest.approx(3 * alone),
        ("csqa", "B", "C"): 1.0,
        ("obqa", "A", "B"): pytest.approx(alone),
    }


def test_against_compares_with_one_configuration_and_refuses_an_unknown_one(two, graphmoot):
    assert len(summary_of(two, against="B").comparisons) == 1
    with pytest.raises(ReportError, match="--against 'C'"):
        summary_of(two, against="C")
    ran = graphmoot("eval", "report", two, "--against", "C")
    assert (ran.status, len(error_lines(ran))) == (2, 1)


# Merging


def test_of_two_answers_to_the_same_the_later_folder_counts_and_that_is_said(tmp_path):
    first = make_run(tmp_path / "1", [cell()], QUESTIONS, [line("q0", "no"), line("q1", "yes")])
    later = make_run(tmp_path / "2", [cell()], QUESTIONS, [line("q0", "yes"), line("q2", "yes")])
    merged = read_runs([first, later])
    assert len(merged.cells) == 1
    assert {n: row.score.outcome for n, row in merged.cells[0].rows.items()} == {
        "q0": "right", "q1": "right", "q2": "right",
    }  # fmt: skip
    assert merged.notes == [f"1 answers are in {first} and in {later}: those of {later} count"]
    assert read_runs([later, first]).cells[0].rows["q0"].score.outcome == "wrong"


@pytest.mark.parametrize(
    ("change", "titles"),
    [
        ({"context": {"temperature": 0.0, "seed": 0}}, ["temperature=0.5", "temperature=0"]),
        ({"method": "few-shot"}, ["zero-shot", "few-shot"]),
        (
            {"prompts": {"baselines": {"version": "1", "sha256": "bb" * 32}}},
            ["prompts aaaaaaa", "prompts bbbbbbb"],
        ),
    ],
)
def test_a_label_that_stands_for_two_things_is_never_mixed(tmp_path, change, titles):
    one = make_run(tmp_path / "1", [cell()], QUESTIONS, [line("q0", "yes")])
    two = make_run(tmp_path / "2", [cell(**change)], QUESTIONS, [line("q0", "no")])
    merged = read_runs([one, two])
    assert [c.title for c in merged.cells] == [f"Zero-shot [{title}]" for title in titles]
    assert "not the same configuration" in merged.notes[0]


def test_another_graph_sets_apart_only_methods_that_look_into_it(tmp_path):
    runs = [
        make_run(
            tmp_path / name,
            [cell("DoG", method="debate-on-graph"), cell("Zero-shot")],
            QUESTIONS,
            [line("q0", "yes", label="DoG"), line("q0", "yes")],
            graph={"location": f"{name}.graphmoot", "sha256": name},
        )
        for name in ("one", "two")
    ]
    titles = [c.title for c in read_runs(runs).cells]
    assert titles == ["DoG [graph one]", "Zero-shot", "DoG [graph two]"]


def test_other_data_under_the_same_name_is_another_cell(tmp_path):
    datasets = [{"name": "csqa", "sha256": letter * 64, "questions": 4} for letter in "xy"]
    runs = [
        make_run(tmp_path / d["sha256"][0], [cell()], QUESTIONS, [line("q0", "yes")], datasets=[d])
        for d in datasets
    ]
    assert [c.title for c in read_runs(runs).cells] == [
        "Zero-shot [data xxxxxxx]", "Zero-shot [data yyyyyyy]",
    ]  # fmt: skip


def test_a_line_of_an_unknown_question_is_left_out_and_told(tmp_path):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [line("q0", "yes"), line("q9", "yes")])
    merged = read_runs([run])
    assert list(merged.cells[0].rows) == ["q0"]
    assert "1 result lines are of questions" in merged.notes[0]


def test_outcomes_are_scored_afresh_and_a_difference_is_told(tmp_path):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [line("q0", "yes", outcome="wrong")])
    merged = read_runs([run])
    assert merged.cells[0].rows["q0"].score.outcome == "right"
    assert "1 outcomes differ" in merged.notes[0]


def test_the_same_folder_twice_is_refused(two):
    with pytest.raises(RunFolderError, match="given twice"):
        read_runs([two, two.parent / "two"])


def test_a_torn_last_line_is_left_out_and_n_says_of_how_many(tmp_path):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [line("q0", "yes"), line("q1", "no")])
    whole = (run / RESULTS).read_bytes()
    (run / RESULTS).write_bytes(whole[:-40])
    row = row_of(table_of(summary_of(run), "accuracy"), "Zero-shot")
    assert row["n"] == "1 of 4"


def test_a_run_without_answers_gives_one_line_and_status_2(tmp_path, graphmoot):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [])
    ran = graphmoot("eval", "report", run)
    assert (ran.status, len(error_lines(ran))) == (2, 1)
    assert "no question has been answered yet" in ran.err
    ran = graphmoot("eval", "report", tmp_path)
    assert (ran.status, len(error_lines(ran))) == (2, 1)


# JSON, the terminal, files


def test_json_has_the_public_metrics_of_the_only_cell(tmp_path, graphmoot):
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, [line("q0", "yes"), line("q1", "no")])
    document = graphmoot("eval", "report", run, "--json").json
    low, high = wilson(1, 2)
    for name in ("exact-match", "hits@1-substring", "f1", "accuracy"):
        assert document["metrics"][name] == {
            "value": 0.5, "low": pytest.approx(low), "high": pytest.approx(high), "n": 2,
        }  # fmt: skip
    assert document["cells"][0]["metrics"]["accuracy"]["value"] == 0.5
    assert document["cells"][0]["cost"]["asked"]["calls"] == 1
    assert document["comparisons"] == []


def test_json_pools_all_lines_of_several_cells(two, graphmoot):
    ran = graphmoot("eval", "report", two, "--json")
    assert ran.json["metrics"]["accuracy"]["value"] == 2 / 8
    assert ran.json["metrics"]["accuracy"]["n"] == 8
    comparison = ran.json["comparisons"][0]
    assert (comparison["a"], comparison["b"], comparison["p_value"]) == ("A", "B", 0.5)
    assert ran.json["cautions"]


def test_the_terminal_shows_our_numbers_beside_the_papers_with_the_model_named(two, graphmoot):
    cells, lines = [cell()], [line("q0", "yes"), line("q1", "no")]
    run = make_run(two.parent / "zero", cells, QUESTIONS, lines, preset="dog-table-2")
    ran = graphmoot("eval", "report", run)
    assert ran.status == 0
    assert "50.0 [9.5, 90.5]" in ran.out
    assert "Qwen3-8B 81.4, GPT-4o-mini 83.4" in ran.out
    assert "Debate-on-Graph, Table 2 (n = 500)" in ran.out
    assert "reaches up to 41 points to either side" in ran.out


def test_published_costs_stand_beside_ours(tmp_path):
    run = make_run(
        tmp_path / "r",
        [cell("DoG", dataset="obqa")],
        [question("q0", ["yes"], dataset="obqa")],
        [line("q0", "yes", label="DoG", dataset="obqa")],
        preset="dog-table-5",
    )
    row = row_of(table_of(summary_of(run), "cost"), "DoG")
    assert row["in the paper"] == (
        "seconds GPT-4o-mini 14.87; calls GPT-4o-mini 9.0; tokens GPT-4o-mini 3,542"
    )


def test_nothing_published_stands_beside_a_corrupted_graph(tmp_path):
    noisy = {"location": "g", "sha256": "g", "noise": {"share": 0.2}}
    run = make_run(tmp_path / "r", [cell("DoG")], QUESTIONS, [line("q0", "yes", label="DoG")])
    noised = make_run(
        tmp_path / "n", [cell("DoG")], QUESTIONS, [line("q0", "yes", label="DoG")], graph=noisy
    )
    assert summary_of(run).cells[0].published()
    assert not summary_of(noised).cells[0].published()


def test_many_pairs_are_cut_to_those_of_the_least_p(tmp_path, graphmoot):
    labels = [f"c{n}" for n in range(10)]
    lines = [line("q0", "yes", label=label) for label in labels]
    run = make_run(tmp_path / "r", [cell(label) for label in labels], QUESTIONS, lines)
    ran = graphmoot("eval", "report", run)
    assert "The 30 of 45 pairs with the least p" in ran.out
    assert len(graphmoot("eval", "report", run, "--json").json["comparisons"]) == 45


def test_files_are_written_whole_and_only_where_there_is_a_folder(two, graphmoot):
    page, rows = two.parent / "page.html", two.parent / "rows.csv"
    page.write_text("old", encoding="utf-8")
    ran = graphmoot("eval", "report", two, "--html", page, "--csv", rows)
    assert ran.status == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in two.parent.iterdir()) == ["page.html", "rows.csv", "two"]
    ran = graphmoot("eval", "report", two, "--html", two.parent / "no" / "page.html")
    assert (ran.status, len(error_lines(ran))) == (2, 1)
    assert graphmoot("eval", "report", two, "--csv", two).status == 2


def test_csv_has_a_row_for_each_configuration_and_question_and_reads_back(tmp_path):
    odd = 'a "quoted", text\nof two lines'
    debate = result(odd, confidence=0.7, ended={"by": "stop", "round": 2, "k": 3})
    lines = [
        line("q0", result=debate, calls=[cached(call()), call("judge", 2)], seconds=1.5),
        line("q1", "=1+1"),
        line("q2", "-5"),
        line("q3", result=failed("no reply, at all")),
    ]
    run = make_run(tmp_path / "r", [cell()], QUESTIONS, lines)
    rows = list(csv.DictReader(io.StringIO(csv_text(summary_of(run)))))
    assert list(rows[0]) == list(COLUMNS)
    first = rows[0]
    assert (first["answer"], first["gold"], first["outcome"]) == (odd, "yes", "wrong")
    assert (first["confidence"], first["k"], first["round"]) == ("0.7", "3", "2")
    assert first["ended_by"] == "stop"
    assert (first["calls"], first["live_calls"], first["input_tokens"]) == ("2", "1", "200")
    assert (first["seconds"], first["seconds_without_cache"]) == ("1.5", "")
    assert rows[1]["answer"] == "'=1+1"  # what a spreadsheet would work out is told to be text
    assert rows[2]["answer"] == "-5"
    assert rows[3]["outcome"] == "failed"
    assert rows[3]["error"] == "UnusableAnswerError: no reply, at all"


# The page


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.ids, self.texts = [], [], [], [], []
        self._inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append([dict(attrs), ""])
        self._inside = tag

    def handle_data(self, data):
        if self._inside == "script" and self.scripts:
            self.scripts[-1][1] += data
        else:
            self.texts.append(data)

    def handle_endtag(self, tag):
        self._inside = None

    @property
    def data(self):
        return json.loads(self.scripts[0][1])

    def details(self, number):
        return json.loads(gzip.decompress(base64.b64decode(self.data["details"][number])))


@pytest.fixture(scope="module")
def evil_page(tmp_path_factory):
    """A page of a run in which every text is an attempt to break out."""
    fact = {"head": EVIL, "relation": EVIL, "tail": EVIL, "confidence": 0.5, "supports": True}
    turn = {"round": 1, "k": 1, "answer": EVIL, "argument": EVIL, "facts": [1], "fault": None}
    trace = [
        {"node": "retrieve", "k": 1, "new_facts": 1, "facts": 1},
        {"node": "proponent", **turn},
        {"node": "challenger", **turn, "answer": "yes"},
        {"node": "decision_maker", "round": 1, "action": "stop", "reason": EVIL},
        {"node": "judge", "round": 1, "answer": EVIL, "reason": EVIL, "confidence": 0.4},
    ]
    document = result(
        EVIL,
        confidence=0.4,
        evidence=[fact],
        trace=trace,
        warnings=[EVIL],
        ended={"by": EVIL, "round": 1, "k": 1},
        topic_entities=[{"mention": EVIL, "entity": EVIL, "name": EVIL, "score": 1.0}],
    )
    label = f"{EVIL} $\\frac{{x}}$"
    entry = cell(label, model=EVIL, dataset=EVIL, context={"alpha": EVIL, "use_graph": True})
    own = {"label": label, "model": EVIL, "dataset": EVIL}
    lines = [
        line(EVIL, result=document, calls=[call(model=EVIL)], **own),
        line("q1", result=failed(EVIL), **own),
    ]
    questions = [
        question(EVIL, ["yes"], question=EVIL, dataset=EVIL),
        question("q1", [EVIL], dataset=EVIL, choices={"A": EVIL, "B": "no"}),
    ]
    folder = tmp_path_factory.mktemp("evil") / "run"
    graph = {"location": EVIL, "sha256": EVIL, "noise": {"share": 0.1, "settings": {"seed": EVIL}}}
    prices = {EVIL: {"input": 1, "output": 1}}
    run = make_run(folder, [entry], questions, lines, graph=graph, preset=EVIL, prices=prices)
    return Page(page_text(summary_of(run)))


def test_text_of_graphs_and_models_never_becomes_markup(evil_page):
    assert evil_page.tags.count("script") == 2
    assert "img" not in evil_page.tags
    assert not [name for _, name, _ in evil_page.attributes if name.startswith("on")]
    assert evil_page.data["questions"][0]["q"] == EVIL
    detail = evil_page.details(0)
    assert detail["facts"] == [[EVIL, EVIL, EVIL, 0.5]]
    assert detail["cells"]["0"]["trace"][1]["argument"] == EVIL


def test_the_page_fetches_nothing_and_runs_no_script_but_its_own(evil_page):
    fetching = ("src", "href", "xlink:href", "srcset", "action", "data", "poster")
    targets = [value for _, name, value in evil_page.attributes if name in fetching]
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert not set(evil_page.tags) & {"link", "iframe", "object", "embed", "base", "video"}
    policy = next(v for t, n, v in evil_page.attributes if t == "meta" and "default-src" in v)
    digest = hashlib.sha256(evil_page.scripts[1][1].encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "innerHTML" not in evil_page.scripts[1][1]


def test_every_reference_has_its_target_in_the_page(two):
    text = page_text(summary_of(two))
    drawn = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    wanted = set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', drawn))
    assert len(wanted) > 10
    assert {one or other for one, other in wanted} <= set(Page(text).ids)


def test_styles_load_nothing(evil_page):
    styles = [value for _, name, value in evil_page.attributes if name == "style"]
    urls = re.findall(r"url\(([^)]*)\)", " ".join([*styles, *evil_page.texts]))
    assert all(url.startswith("#") for url in urls)
    assert "@import" not in " ".join(evil_page.texts)


def test_the_page_is_sound_for_readers_without_eyes_or_mouse(evil_page):
    assert len(evil_page.ids) == len(set(evil_page.ids))
    heads = [n for t, n, _ in evil_page.attributes if t == "th" and n == "scope"]
    assert len(heads) == evil_page.tags.count("th")
    labelled = [n for t, n, _ in evil_page.attributes if t == "svg" and n == "aria-label"]
    assert len(labelled) == evil_page.tags.count("svg") >= 3
    assert ("html", "lang", "en") in evil_page.attributes


def test_opening_a_question_has_all_that_its_configurations_did(tmp_path):
    evidence = [
        {"head": "ann", "relation": "knows", "tail": "bo", "confidence": 0.9, "supports": False},
        {"head": "bo", "relation": "likes", "tail": "yes_men", "confidence": 1.0, "supports": True},
    ]
    trace = [
        {"node": "link_topics", "step": 1, "topics": [1]},
        {"node": "proponent", "step": 2, "role": "proponent", "round": 1, "k": 1, "answer": "yes",
         "facts": [2], "argument": "so it is", "fault": None, "seconds": 2.5, "llm_calls": 1},
        {"node": "challenger", "step": 2, "round": 1, "answer": "no", "argument": "not so"},
        {"node": "judge", "step": 3, "round": 1, "answer": "no", "confidence": 0.8, "reason": "r"},
    ]  # fmt: skip
    document = result(
        "no",
        confidence=0.8,
        evidence=evidence,
        trace=trace,
        ended={"by": "stop", "round": 1, "k": 1},
        topic_entities=[{"mention": "Ann", "entity": "ann", "name": "ann", "score": 0.97}],
        warnings=["a warning"],
    )
    lines = [
        line("q0", label="A", result=document, calls=[call(truncated=True)]),
        line("q0", label="B", result=result("yes", evidence=evidence[:1])),
    ]
    run = make_run(tmp_path / "r", TWO_CELLS, QUESTIONS, lines)
    page = Page(page_text(summary_of(run)))
    detail = page.details(0)
    first, second = detail["cells"]["0"], detail["cells"]["1"]
    assert detail["facts"] == [["ann", "knows", "bo", 0.9], ["bo", "likes", "yes_men", 1.0]]
    assert first["evidence"] == [[1, 0, 0, None], [2, 1, 1, None]]
    assert second["evidence"] == [[1, 0, 0, None]]
    assert first["naming"] == [2]
    assert first["held"] == {"proponent": [1]}
    signs = [page.data["signs"][number] for number in first["signs"]]
    assert signs == [
        "the evidence names the right answer",
        "somebody held the right answer, the final one is another",
        "a reply was cut at its token limit",
    ]
    assert first["trace"][1] == {
        "node": "proponent", "round": 1, "k": 1, "answer": "yes", "facts": [2],
        "argument": "so it is", "seconds": 2.5, "llm_calls": 1,
    }  # fmt: skip
    assert (first["warnings"], first["confidence"], first["seconds"]) == (["a warning"], 0.8, 3.0)
    assert first["why"]
    assert page.data["questions"][0]["c"] == {
        "0": [1, "no", first["signs"]],
        "1": [0, "yes", second["signs"]],
    }


def test_the_same_runs_give_the_same_page(two):
    assert page_text(summary_of(two)) == page_text(summary_of(two))


def test_the_head_tells_what_was_run(two):
    texts = " ".join(Page(page_text(summary_of(two))).texts)
    for told in ("csqa: 4 questions (limit 4, offset 0", MODEL, "baselines 1", "3.11.7"):
        assert told in texts


# Plots


def test_only_plots_that_have_data_are_drawn(two, tmp_path):
    assert [plot.name for plot in plots(summary_of(two))] == ["accuracy", "cost"]
    debate = result("yes", confidence=0.9, ended={"by": "stop", "round": 2, "k": 3})
    run = make_run(tmp_path / "d", [cell()], QUESTIONS, [line("q0", result=debate, calls=[])])
    assert [p.name for p in plots(summary_of(run))] == ["accuracy", "ending", "calibration"]


def test_labels_in_plots_are_text_whatever_signs_are_in_them(tmp_path):
    label = 'a < $b^{$ & "c"'
    run = make_run(tmp_path / "r", [cell(label)], QUESTIONS, [line("q0", "yes", label=label)])
    svg = plots(summary_of(run))[0].svg
    assert "a &lt; $b^{$ &amp;" in svg
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", svg)


def test_a_sweep_joins_cells_that_differ_in_one_number_alone(tmp_path):
    base = {"alpha": 1.0, "width": 3, "seed": 0, "debate": True}
    contexts = {
        "alpha=0": {**base, "alpha": 0.0},
        "alpha=1": base,
        "alpha=2": {**base, "alpha": 2.0},
        "W=3": base,
        "W=5": {**base, "width": 5},
        "both": {**base, "alpha": 3.0, "width": 7},
        "seeded": {**base, "seed": 1},
        "seeded again": {**base, "seed": 2},
    }
    cells = [cell(label, context=context) for label, context in contexts.items()]
    lines = [
        line(f"q{n}", "yes" if n < right else "no", label=label)
        for label, right in zip(contexts, (1, 4, 2, 4, 3, 0, 0, 0), strict=True)
        for n in range(4)
    ]
    found = sweeps(summary_of(make_run(tmp_path / "r", cells, QUESTIONS, lines)).cells)
    assert list(found) == ["alpha"]
    (curve,) = found["alpha"]
    assert [(x, e.value) for x, e in curve.points] == [(0.0, 0.25), (1.0, 1.0), (2.0, 0.5)]


def test_a_noise_curve_starts_at_the_graph_as_it_came(tmp_path):
    def run(name, right, **noise):
        lines = [line(f"q{n}", "yes" if n < right else "no", label="DoG") for n in range(4)]
        graph = {"location": name, "sha256": name, **({"noise": noise} if noise else {})}
        entry = cell("DoG", method="debate-on-graph")
        return make_run(tmp_path / name, [entry], QUESTIONS, lines, graph=graph)

    lowered = {"settings": {"confidence": "lower"}}
    runs = [
        run("clean", 4),
        run("n4", 1, share_asked=0.4, share_reached=0.4),
        run("n2", 3, share=0.2),
        run("l4", 2, share=0.4, **lowered),
    ]
    curves = {c.name: c.points for c in noise_curves(summary_of(*runs).cells)}
    values = {name: [(x, e.value) for x, e in points] for name, points in curves.items()}
    assert values == {
        "DoG": [(0.0, 1.0), (20.0, 0.75), (40.0, 0.25)],
        "DoG, confidence lower": [(0.0, 1.0), (40.0, 0.5)],
    }


def test_numbers_on_points_are_moved_apart_and_the_first_stays():
    crowded = [(10.0, 10.0)] * 5 + [(12.0, 11.0), (90.0, 90.0)]
    moves = apart(crowded, 15.0)
    places = [(x + a, y + b) for (x, y), (a, b) in zip(crowded, moves, strict=True)]
    nearest = min(math.dist(p, q) for i, p in enumerate(places) for q in places[:i])
    assert nearest >= 15.0 - 1e-9
    assert moves[0] == moves[-1] == (0.0, 0.0)


# Published numbers


@pytest.mark.parametrize(
    ("label", "dataset", "metric", "preset", "numbers"),
    [
        ("Zero-shot", "csqa", "accuracy", None, {"Qwen3-8B": 81.4, "GPT-4o-mini": 83.4}),
        ("ToG", "csqa2", "accuracy", None, {"Qwen3-8B": 47.2, "GPT-4o-mini": 77.0}),
        ("DoG-E", "medqa", "accuracy", None, {"Qwen3-8B": 79.0, "GPT-4o-mini": 78.0}),
        ("w/o MAD, w/ UKG (K=3)", "obqa", "accuracy", "dog-table-3", {"GPT-4o-mini": 88.2}),
        ("w/ MAD, w/ UKG (K=5)", "csqa2", "accuracy", "dog-table-4", {"GPT-4o-mini": 79.4}),
        ("DoG (full)", "medqa", "accuracy", "dog-table-4", {"GPT-4o-mini": 81.5}),
        ("MindMap", "obqa", "calls", "dog-table-5", {"GPT-4o-mini": 2.8}),
        ("ToG", "obqa", "seconds", "dog-table-5", {"GPT-4o-mini": 51.89}),
        ("DoG", "csqa", "tokens", "dog-table-5", {}),
    ],
)
def test_published_numbers_are_found_by_row_and_data_set(label, dataset, metric, preset, numbers):
    found = published(label, dataset, metric=metric, preset=preset)
    assert {number.model: number.value for number in found} == numbers


def test_published_tables_agree_with_what_the_papers_text_says_of_them():
    """§5.2: on MedQA DoG is ahead of the second best by 10.3 % and 7.2 %; §5.3: it is the best."""
    for model, ahead in (("Qwen3-8B", 10.3), ("GPT-4o-mini", 7.2)):
        column = {
            n.label: n.value
            for n in PUBLISHED
            if (n.preset, n.dataset, n.model) == ("dog-table-2", "medqa", model)
        }
        others = max(v for label, v in column.items() if not label.startswith("DoG"))
        assert round(100 * (column["DoG"] / others - 1), 1) == ahead
    for preset in ("dog-table-3", "dog-table-4"):
        for dataset in ("csqa", "csqa2", "obqa", "medqa"):
            rows = {
                n.label: n.value for n in PUBLISHED if (n.preset, n.dataset) == (preset, dataset)
            }
            assert max(rows, key=rows.__getitem__) == "DoG (full)"
            assert rows["DoG (full)"] == published("DoG", dataset)[1].value


def test_published_rows_are_the_presets_rows():
    from evals.presets import PRESETS

    for name in ("dog-table-2", "dog-table-3", "dog-table-4", "dog-table-5"):
        rows = {number.label for number in PUBLISHED if number.preset == name}
        assert rows == {configuration.label for configuration in PRESETS[name].configurations}
    assert set(FINDINGS) <= set(PRESETS)
