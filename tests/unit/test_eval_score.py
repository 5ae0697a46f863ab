"""Other systems' answers: read, matched with questions, scored, and shown by the command."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from pathlib import Path

import pytest

from evals.metrics import score_question
from evals.predictions import PredictionFileError, read_predictions
from evals.records import Prediction
from evals.scoring import AliasFileError, read_aliases, score_file
from nodes.question_file import GoldQuestion, QuestionFileError, read_question_file
from tests.cli_helpers import command_in_process, error_lines

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / os.environ.get("GRAPHMOOT_DATA", "../shared/data")

QUESTIONS = [
    {"id": "q1", "question": "Who built Marrow Light?", "answers": ["Edith Venn"]},
    {"id": "q2", "question": "When?", "answers": ["1903"]},
    {
        "id": "q3",
        "question": "Where?",
        "answers": ["B"],
        "choices": {"A": "in the sea", "B": "on a cliff"},
    },
    {"id": "q4", "question": "Is it lit?", "question_type": "boolean", "answers": [True]},
]


def lines(path, *rows):
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "answers.jsonl"


@pytest.fixture
def question_file(tmp_path):
    return lines(tmp_path / "questions.jsonl", *QUESTIONS)


@pytest.fixture
def questions(question_file):
    return read_question_file(question_file)


@pytest.fixture
def read(file, questions):
    def read_rows(*rows):
        return read_predictions(lines(file, *rows), questions)

    return read_rows


@pytest.fixture
def run(capsys):
    return command_in_process(capsys)


# Readers


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"answer": "Edith Venn"}, ("Edith Venn",)),
        ({"answers": ["Edith Venn", "J. Marrow"]}, ("Edith Venn", "J. Marrow")),
        ({"answers": [["Edith Venn"], None, [["x"]]]}, ("Edith Venn", "x")),
        ({"prediction": 1903}, ("1903",)),
        ({"prediction": 1.50}, ("1.5",)),
        ({"answer": True}, ("true",)),
        ({"answers": [], "answer": "Edith Venn"}, ("Edith Venn",)),
        ({"answers": "Edith Venn", "answer": "another"}, ("Edith Venn",)),
    ],
)
def test_answers_are_read_from_any_of_their_fields(read, row, answers):
    prediction = read({"id": "q1", **row}).predictions["q1"]
    assert prediction == Prediction("q1", answers)


def test_confidence_costs_and_status_are_read(read):
    row = {"id": "q1", "answer": "x", "confidence": "0.25", "seconds": 2, "llm_calls": 3}
    prediction = read(row).predictions["q1"]
    assert prediction.confidence == 0.25
    assert prediction.seconds == 2
    assert prediction.usage == {"llm_calls": 3}
    nested = read({"id": "q1", "answer": "x", "usage": {"input_tokens": 7, "by_role": {}}})
    assert nested.predictions["q1"].usage == {"input_tokens": 7}


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"answer": None}, "no_answer"),
        ({"answers": []}, "no_answer"),
        ({"answer": "x", "status": "no_answer"}, "no_answer"),
        ({"answer": "x", "status": "failed"}, "failed"),
        ({"status": "failed"}, "failed"),
        ({"choice": "B"}, "answered"),
        ({"answer": ""}, "answered"),
    ],
)
def test_abstaining_and_failing_are_read(read, row, status):
    prediction = read({"id": "q1", **row}).predictions["q1"]
    assert prediction.status == status
    if status != "answered":
        assert prediction.answers == ()


def test_lines_without_ids_are_matched_by_the_question(read):
    found = read({"question": "  who built\tMarrow light? ", "answer": "x"})
    assert found.predictions["q1"].answers == ("x",)


def test_numbers_are_ids_too(file):
    gold = [GoldQuestion("7", "?", ("x",))]
    assert "7" in read_predictions(lines(file, {"id": 7, "answer": "x"}), gold).predictions


def test_predictions_of_other_questions_are_named_not_scored(read):
    found = read({"id": "q1", "answer": "x"}, {"id": "q9", "answer": "x"})
    assert list(found.predictions) == ["q1"]
    assert found.unknown == ["q9"]


def test_an_id_whose_question_reads_otherwise_is_named(read):
    found = read({"id": "q1", "question": "Who is the mayor?", "answer": "x"})
    assert found.other_words == ["q1"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "q1", "answer": "x"}, {"id": "q1", "answer": "x"}], r":2: 'q1' is answered twice"),
        ([{"id": "q1", "answer": "x"}, {"question": "Who built Marrow Light?", "answer": "x"}],
         r":2: 'q1' is answered twice, first in line 1"),
        ([{"id": "q9", "answer": 1}, {"id": "q9", "answer": 1}], r":2: 'q9' is answered twice"),
        ([{"answer": "x"}], r":1: has neither 'id' nor"),
        ([{"id": "q1", "reply": "x"}], r":1: has no answer: none of 'answers', 'answer'"),
        ([{"id": "q1", "answer": {"a": 1}}], r":1: an answer must be a text"),
        ([{"id": "q1", "answer": "x", "status": "ok"}], r":1: 'status' is 'ok', not one of"),
        ([{"id": "q1", "answer": "x", "confidence": 85}], r":1: 'confidence' is '85'"),
        ([{"id": "q1", "answer": "x", "confidence": "high"}], r":1: 'confidence' is 'high'"),
        ([{"id": "q1", "answer": "x", "confidence": float("nan")}], r":1: 'confidence' is 'nan'"),
        ([{"id": "q8", "answer": "x"}], r"none of the 1 predictions .*'q8', questions like 'q1'"),
        ([], r"there is no prediction in it"),
    ],
)  # fmt: skip
def test_a_line_at_fault_is_named(read, rows, message):
    with pytest.raises(PredictionFileError, match=message):
        read(*rows)


def test_a_line_that_is_no_json_is_named(read):
    with pytest.raises(QuestionFileError, match=r"answers\.jsonl:2: is not JSON"):
        read({"id": "q1", "answer": "x"}, "{")


def test_questions_of_one_text_need_ids(file):
    gold = [GoldQuestion("a", "Where?", ("x",)), GoldQuestion("b", "where?", ("y",))]
    with pytest.raises(PredictionFileError, match="several questions read 'where"):
        read_predictions(lines(file, {"question": "Where?", "answer": "x"}), gold)


# Runs of our own


def result_line(question_id="q3", label="DoG", cached=False, **result):
    call = {"input_tokens": 10, "output_tokens": 2, "cached": cached}
    return {
        "label": label,
        "question_id": question_id,
        "seconds": 4.0,
        "result": {"status": "answered", "answers": ["on a cliff"], "choice": "B",
                   "confidence": 0.9, "usage": {"llm_calls": 0, "sequential_llm_steps": 1},
                   "seconds": 3.5, **result},
        "calls": [call, call],
    }  # fmt: skip


def test_a_run_is_read_with_what_its_questions_take(read):
    prediction = read(result_line()).predictions["q3"]
    assert (prediction.choice, prediction.confidence, prediction.seconds) == ("B", 0.9, 4.0)
    assert prediction.usage["llm_calls"] == 2
    assert prediction.usage["input_tokens"] == 20


def test_seconds_of_cached_replies_do_not_count(read):
    prediction = read(result_line(cached=True)).predictions["q3"]
    assert prediction.usage["llm_calls"] == 2
    assert prediction.seconds is None
    assert "sequential_llm_steps" not in prediction.usage


def test_a_run_with_several_configurations_is_refused(read):
    with pytest.raises(PredictionFileError, match="several configurations, keep the lines of one"):
        read(result_line(), result_line(label="DoG-E"))


# Released Plan-on-Graph outputs


def pog(results, **more):
    return {"RawQuestion": "Who built Marrow Light?", "results": results, **more}


def stated(answer):
    return json.dumps({"A": {"Sufficient": "Yes", "Answer": answer}, "R": "because"})


@pytest.mark.parametrize(
    ("results", "answers"),
    [
        (stated("Edith Venn"), ("Edith Venn",)),
        (stated(["Edith Venn", "J. Marrow"]), ("Edith Venn", "J. Marrow")),
        (stated([{"name": "Edith Venn"}, [1903]]), ("Edith Venn", "1903")),
        (stated(1903), ("1903",)),
        (stated(""), ("",)),
        ('{"Answer": "Edith Venn"}', ("Edith Venn",)),
        (f"Here it is: {stated('Edith Venn')}", ("Edith Venn",)),
        ('{"A": {"Sufficient": "Yes", "Answer": "Edith Venn"', ("Edith Venn",)),
        ('{"A": {"Answer": "J. Marrow"}} {"A": {"Answer": "Edith Venn"}}', ("Edith Venn",)),
        ("It was Edith Venn.", ("It was Edith Venn.",)),
        ('{"A": {"Known": "Yes", "Builder": "x"}}', ('{"A": {"Known": "Yes", "Builder": "x"}}',)),
        ("__import__('os').abort()", ("__import__('os').abort()",)),
    ],
)
def test_the_answer_of_plan_on_graph_is_taken_out(read, results, answers):
    prediction = read(pog(results)).predictions["q1"]
    assert prediction.answers == answers
    assert prediction.status == "answered"


@pytest.mark.parametrize("answer", ["Null", None, "None", [], ["null"]])
def test_null_of_plan_on_graph_is_an_abstention(read, answer):
    prediction = read(pog(stated(answer))).predictions["q1"]
    assert (prediction.status, prediction.answers) == ("no_answer", ())


def test_costs_of_plan_on_graph_are_read(read):
    row = pog(stated("x"), call_num=4, total_token=12, input_token=10, output_token=2, time=6.5)
    prediction = read(row).predictions["q1"]
    assert prediction.usage == {"llm_calls": 4, "input_tokens": 10, "output_tokens": 2}
    assert prediction.seconds == 6.5


# Aliases


@pytest.mark.parametrize(
    "text",
    [
        '{"Edith Venn": ["Mistress Venn", "E. V."]}',
        '{\n "Edith Venn": ["Mistress Venn",\n "E. V."]\n}',
        '{"answer": "Edith Venn", "aliases": ["Mistress Venn", "E. V."]}',
        """{"answer": "Edith Venn", "aliases": ["Mistress Venn"]}

        {"answer": "edith venn", "aliases": "E. V."}""",
        "Edith Venn\tMistress Venn\n\nEDITH VENN\tE. V.\n",
    ],
)
def test_aliases_are_read_from_each_form(tmp_path, text):
    path = tmp_path / "aliases"
    path.write_text(text, encoding="utf-8")
    aliases = read_aliases(path)
    assert aliases == {"edith venn": ["Mistress Venn", "E. V."]}
    gold = GoldQuestion("q", "?", ("Edith Venn",))
    assert score_question(gold, Prediction("q", ("mistress venn",)), aliases).outcome == "right"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Edith Venn", r"aliases:1: must be an answer, a tab and an alias"),
        ("a\tb\nEdith\t\n", r"aliases:2: must be"),
        ('{"a": 3}', r"aliases: 'a': the aliases of an answer must be a list"),
        ('{"answer": "a", "aliases": ["b"]}\n{"aliases": ["b"]}', r"aliases:2: 'answer' must be"),
        ('{"answer": "a", "aliases": ["b"]}\n{"answer', r"aliases:2: is not JSON"),
        ("", r"there is no alias in it"),
    ],
)
def test_an_alias_at_fault_is_named(tmp_path, text, message):
    path = tmp_path / "aliases"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AliasFileError, match=message):
        read_aliases(path)


# Scores of a file


def test_questions_without_a_prediction_count_as_failed_unless_told_otherwise(file, questions):
    lines(file, {"id": "q1", "answer": "Edith Venn"}, {"id": "q2", "answer": "1904"})
    strict = score_file(questions, file)
    assert strict.missing == ["q3", "q4"]
    assert (strict.metrics["accuracy"].value, strict.metrics["accuracy"].n) == (0.25, 4)
    assert strict.metrics["failure-rate"].value == 0.5
    assert strict.verdicts[2].score.why == "there is no prediction"
    lenient = score_file(questions, file, only_predicted=True)
    assert lenient.missing == ["q3", "q4"]
    assert (lenient.metrics["accuracy"].value, lenient.metrics["accuracy"].n) == (0.5, 2)
    assert lenient.metrics["failure-rate"].value == 0


def test_alias_coverage_tells_what_aliases_decided(file, questions):
    lines(file, {"id": "q1", "answer": "Mistress Venn"}, {"id": "q2", "answer": "1903"})
    report = score_file(questions, file, {"Edith Venn": ["Mistress Venn"]})
    assert report.alias_coverage == {"gold_answers": 4, "with_aliases": 1, "decided_by_alias": 1}
    assert [verdict.by_alias for verdict in report.verdicts[:2]] == [True, False]


def test_hits_by_a_blank_answer_are_counted(file, questions):
    lines(file, {"id": "q1", "answer": ""}, {"id": "q2", "answer": "in 1903"})
    report = score_file(questions, file, only_predicted=True)
    assert report.substring == {"hits": 2, "exact": 0, "by_blank_answer": 1}
    assert report.metrics["hits@1-substring"].value == 1
    assert report.metrics["exact-match"].value == 0


def test_costs_are_means_over_those_that_state_them(file, questions):
    lines(
        file,
        {"id": "q1", "answer": "x", "llm_calls": 2, "input_tokens": 8, "output_tokens": 2},
        {"id": "q2", "answer": "x", "llm_calls": 4, "seconds": 3},
    )
    cost = score_file(questions, file).cost
    assert {name: (e.value, e.n) for name, e in cost.items()} == {
        "llm_calls": (3, 2),
        "input_tokens": (8, 1),
        "output_tokens": (2, 1),
        "total_tokens": (10, 1),
        "seconds": (3, 1),
    }


# The command


def test_the_command_prints_every_metric_with_its_interval(run, file, question_file):
    lines(
        file,
        {"id": "q1", "answer": "edith venn", "confidence": 0.9},
        {"id": "q2", "answers": ["1904", "1903"], "confidence": 0.4},
        {"id": "q3", "choice": "B"},
        {"id": "q4", "answer": None},
    )
    ran = run("eval", "score", "--questions", question_file, "--predictions", file)
    assert ran.status == 0
    rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", r) for r in ran.out.splitlines())}
    assert rows["accuracy"] == ["50.0 %", "15.0 to 85.0", "4"]
    assert rows["accuracy-answered"][0] == "66.7 %"
    assert rows["abstention-rate"][0] == "25.0 %"
    assert rows["Brier score"] == ["0.085", "2"]
    assert "aliases: 0 of 4 gold answers" in ran.err


def test_json_has_metrics_and_verdicts_on_stdout_alone(run, file, question_file):
    lines(file, {"id": "q1", "answer": "Edith Venn"}, {"id": "elsewhere", "answer": "x"})
    ran = run("eval", "score", "--questions", question_file, "--predictions", file, "--json")
    assert ran.status == 0
    document = ran.json
    exact = document["metrics"]["exact-match"]
    assert (exact["value"], exact["n"]) == (0.25, 4)
    assert 0 < exact["low"] < 0.25 < exact["high"] < 1
    assert document["missing"] == ["q2", "q3", "q4"]
    assert document["unknown"] == ["elsewhere"]
    assert [verdict["outcome"] for verdict in document["verdicts"]] == ["right", *["failed"] * 3]
    assert document["calibration"]["brier"] is None
    assert "3 questions have no prediction: they COUNT AS FAILED" in ran.err
    assert "1 predictions are of none of the questions" in ran.err
    lenient = run(
        "eval", "score", "--questions", question_file, "--predictions", file, "--only-predicted",
        "--json",
    )  # fmt: skip
    assert lenient.json["metrics"]["exact-match"]["value"] == 1
    assert "left out" in lenient.err


def test_rates_over_no_question_have_no_value(run, file, question_file):
    lines(file, {"id": "q1", "answer": None})
    ran = run("eval", "score", "--questions", question_file, "--predictions", file, "--json")
    assert ran.json["metrics"]["accuracy-answered"] == {
        "value": None, "low": None, "high": None, "n": 0,
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_verdicts_are_written_one_a_question(run, tmp_path, file, question_file, ending):
    lines(file, {"id": "q1", "answer": 'Venn, "Edith"'}, {"id": "q3", "choice": "b"})
    out = tmp_path / f"verdicts.{ending}"
    out.write_text("old")
    ran = run(
        "eval", "score", "--questions", question_file, "--predictions", file, "--verdicts", out
    )
    assert ran.status == 0
    text = out.read_text(encoding="utf-8")
    rows = (
        list(csv.DictReader(text.splitlines()))
        if ending == "csv"
        else [json.loads(line) for line in text.splitlines()]
    )
    assert [row["id"] for row in rows] == ["q1", "q2", "q3", "q4"]
    assert [row["outcome"] for row in rows] == ["wrong", "failed", "right", "failed"]
    answers = rows[0]["answers"]
    assert answers in ('Venn, "Edith"', ['Venn, "Edith"'])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["answers.jsonl", "questions.jsonl", out.name]
    )


def test_aliases_of_a_file_decide(run, tmp_path, file, question_file):
    lines(file, {"id": "q1", "answer": "Mistress Venn"})
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text("Edith Venn\tMistress Venn\n", encoding="utf-8")
    ran = run(
        "eval", "score", "--questions", question_file, "--predictions", file,
        "--aliases", aliases, "--only-predicted", "--json",
    )  # fmt: skip
    assert ran.json["metrics"]["exact-match"]["value"] == 1
    assert ran.json["alias_coverage"]["decided_by_alias"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--verdicts", "verdicts.txt"], "--verdicts verdicts.txt: the name must end in"),
        (["--predictions", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--aliases", "nowhere.tsv"], "nowhere.tsv: No such file"),
        (["--questions", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_used_is_one_line(run, file, question_file, options, message):
    lines(file, {"id": "q1", "answer": "x"})
    given = {"--questions": question_file, "--predictions": file}
    given.update(zip(options[::2], options[1::2], strict=True))
    ran = run("eval", "score", *(word for pair in given.items() for word in pair))
    assert ran.status in (1, 2)
    assert ran.out == ""
    assert len(error_lines(ran)) == 1
    assert message in error_lines(ran)[0]


def test_a_line_at_fault_ends_the_command_with_its_place(run, file, question_file):
    lines(file, {"id": "q1", "answer": "x"}, {"id": "q2", "confidence": 3, "answer": "x"})
    ran = run("eval", "score", "--questions", question_file, "--predictions", file)
    assert ran.status == 2
    assert error_lines(ran) == [
        f"error: {file}:2: 'confidence' is '3'; it must be a number from 0 to 1"
    ]


# The released outputs of Plan-on-Graph (gpt-3.5-turbo-0125), on the questions whose gold is at hand


def authors_hits(name, golds):
    """Count hits by the authors' rule, written out: an oracle that shares nothing with ours."""
    hits = 0
    path = DATA / f"oracle/pog_{name}_gpt-3.5-turbo-0125.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            gold = golds.get(row.get("question") or row.get("RawQuestion"))
            if gold is None:
                continue
            try:
                said = str(json.loads(row["results"])["A"]["Answer"])
            except (ValueError, KeyError):
                quoted = re.findall(r'"Answer":\s*["\']([^"\']+)["\']', row["results"])
                said = quoted[-1] if quoted else row["results"]
            said = said.strip().replace(" ", "").lower()
            names = [answer.strip().replace(" ", "").lower() for answer in gold]
            hits += any(said in right or right in said for right in names)
    return hits


@pytest.fixture(scope="module", params=["grailqa", "webqsp"])
def released(request):
    path = DATA / f"oracle/pog_{request.param}_gpt-3.5-turbo-0125.jsonl.gz"
    question_path = DATA / "freebase_mini/questions.jsonl.gz"
    if not (path.exists() and question_path.exists()):
        pytest.skip(f"no released Plan-on-Graph outputs in {DATA} (set GRAPHMOOT_DATA)")
    from evals.datasets.registry import load_dataset

    golds = load_dataset(request.param, data_folder=DATA).questions
    return request.param, golds, score_file(golds, path)


def test_released_plan_on_graph_outputs_score_as_published(released):
    name, golds, report = released
    n = {"grailqa": 529, "webqsp": 777}[name]
    hits = {"grailqa": 403, "webqsp": 638}[name]
    exact = {"grailqa": 358, "webqsp": 471}[name]
    assert report.missing == []
    assert report.substring["hits"] == hits
    assert hits == authors_hits(name, {gold.question: gold.answers for gold in golds})
    metrics = report.metrics
    assert metrics["hits@1-substring"].n == n
    assert metrics["exact-match"].value == pytest.approx(exact / n)
    assert round(metrics["f1"].value, 3) == {"grailqa": 0.572, "webqsp": 0.481}[name]
    published = {"grailqa": 0.765, "webqsp": 0.7895}[name]
    assert metrics["hits@1-substring"].value == pytest.approx(published, abs=0.035)


def test_blank_answers_and_null_golds_of_the_released_outputs(released):
    name, golds, report = released
    blank = [v.gold.id for v in report.verdicts if v.prediction.answers == ("",)]
    assert len(blank) == report.substring["by_blank_answer"] == {"grailqa": 0, "webqsp": 1}[name]
    null = [gold for gold in golds if "null" in map(str.casefold, gold.answers)]
    assert len(null) == {"grailqa": 9, "webqsp": 0}[name]
    scored = {verdict.gold.id: verdict for verdict in report.verdicts}
    for gold in null:
        named = tuple(answer for answer in gold.answers if answer.casefold() != "null")
        hit = scored[gold.id].score.values["hits@1-substring"]
        bare = GoldQuestion(gold.id, gold.question, named) if named else None
        without = score_question(bare, scored[gold.id].prediction) if bare else None
        assert hit == (without.values["hits@1-substring"] if without else 0)


def test_costs_of_the_released_outputs_are_near_those_published(released):
    # METHODS §2, over all of the released questions; here about half of them.
    name, _, report = released
    calls, tokens, seconds = {"grailqa": (6.5, 3595, 11.6), "webqsp": (9.0, 5518, 16.8)}[name]
    assert report.cost["llm_calls"].value == pytest.approx(calls, rel=0.1)
    assert report.cost["total_tokens"].value == pytest.approx(tokens, rel=0.1)
    assert report.cost["seconds"].value == pytest.approx(seconds, rel=0.1)
