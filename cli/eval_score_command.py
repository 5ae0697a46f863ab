"""`graphmoot eval score`: any system's answers against gold answers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import output
from cli.options import BAD_INPUT, Command, CommandError, Debug, Json, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evals.records import Estimate
    from evals.scoring import ScoreReport, Verdict

NAMED = 5
"""Ids that a note names; JSON has them all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "score",
        cls=Command,
        epilog=examples(
            "graphmoot eval score --questions webqsp --predictions answers.jsonl",
            "graphmoot eval score --questions q.jsonl --predictions a.jsonl --aliases names.tsv "
            "--verdicts verdicts.csv",
        ),
    )(score)


def score(
    questions: Annotated[
        str,
        typer.Option(
            "--questions", metavar="FILE|NAME", help="Questions with gold answers: a data set."
        ),
    ],
    predictions: Annotated[
        Path,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="JSON lines of id (or question) and answer; a run's results.jsonl; or a "
            "Plan-on-Graph output file.",
        ),
    ],
    aliases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other names of answers: JSON, JSON lines or TSV."),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a line for each question, .jsonl or .csv."),
    ] = None,
    only_predicted: Annotated[
        bool,
        typer.Option(
            "--only-predicted",
            help="Leave out questions without a prediction, which else count as failed.",
        ),
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Score a file of answers by every metric, with 95 % intervals."""
    from evals.datasets.registry import load_dataset
    from evals.scoring import read_aliases, score_file

    if verdicts and verdicts.suffix.lower() not in (".jsonl", ".csv"):
        raise CommandError(f"--verdicts {verdicts}: the name must end in .jsonl or .csv", BAD_INPUT)
    for name, given in (("--predictions", predictions), ("--questions", questions)):
        if verdicts and verdicts.exists() and Path(given).exists() and verdicts.samefile(given):
            raise CommandError(f"--verdicts {verdicts}: is the file of {name}", BAD_INPUT)
    names = read_aliases(aliases) if aliases else None
    golds = load_dataset(questions).questions
    report = score_file(golds, predictions, names, only_predicted=only_predicted)
    if verdicts:
        _write_verdicts(report.verdicts, verdicts)
    if as_json:
        output.print_json(report.to_json())
    else:
        _print_metrics(report)
    _tell(report, only_predicted=only_predicted)


def _print_metrics(report: ScoreReport) -> None:
    rows = [[name, *_percents(estimate)] for name, estimate in report.metrics.items()]
    rows += [
        [f"{name.replace('_', ' ')} a question", *_numbers(estimate)]
        for name, estimate in report.cost.items()
    ]
    fit = report.calibration
    for name, value in (("Brier score", fit.brier), ("expected calibration error", fit.ece)):
        if value is not None:
            rows.append([name, f"{value:.3f}", "", fit.stated])
    columns = ["metric", "value", "95 % interval", "n"]
    output.print_table(columns, rows, numbers=columns[1:])


def _percents(estimate: Estimate) -> list[object]:
    if not estimate.n:
        return ["", "", 0]
    low, high = 100 * estimate.low, 100 * estimate.high
    return [f"{100 * estimate.value:.1f} %", f"{low:.1f} to {high:.1f}", estimate.n]


def _numbers(estimate: Estimate) -> list[object]:
    between = f"{estimate.low:,.1f} to {estimate.high:,.1f}"
    return [f"{estimate.value:,.1f}", between, estimate.n]


def _tell(report: ScoreReport, *, only_predicted: bool) -> None:
    """Say on stderr what a reader of the numbers has to know."""
    if report.missing:
        counted = (
            "they are left out"
            if only_predicted
            else "they COUNT AS FAILED in every rate (--only-predicted leaves them out)"
        )
        output.note(
            f"{len(report.missing):,} questions have no prediction: {counted}: "
            f"{_first(report.missing)}"
        )
    if report.unknown:
        output.note(
            f"{len(report.unknown):,} predictions are of none of the questions and are not "
            f"scored: {_first(report.unknown)}"
        )
    if report.other_words:
        output.note(
            f"{len(report.other_words):,} predictions state another text than the question of "
            f"that id has; are these the same questions? {_first(report.other_words)}"
        )
    covered, hits = report.alias_coverage, report.substring
    output.note(
        f"aliases: {covered['with_aliases']:,} of {covered['gold_answers']:,} gold answers have "
        f"some; they decided {covered['decided_by_alias']:,} questions"
    )
    output.note(
        f"hits@1-substring: {hits['hits']:,} hits, of which {hits['exact']:,} are exact and "
        f"{hits['by_blank_answer']:,} come from a blank answer"
    )


def _first(names: Sequence[str]) -> str:
    from graph_store.errors import shorten

    shown = ", ".join(f"'{shorten(name, 60)}'" for name in names[:NAMED])
    return f"{shown}, …" if len(names) > NAMED else shown


def _write_verdicts(verdicts: Sequence[Verdict], path: Path) -> None:
    """Write one line a question, as JSON lines or CSV; the file is there as a whole or not."""
    from graph_store.whole_file import write_whole

    rows = [verdict.to_json() for verdict in verdicts]
    text = _csv(rows) if path.suffix.lower() == ".csv" else _json_lines(rows)
    write_whole(path, text)


def _json_lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    from evals.metrics import METRICS

    plain = ("id", "outcome", "by_alias", "confidence", "question", "choice")
    out = io.StringIO()
    writer = csv.writer(out)  # CRLF, so that a carriage return in a text is quoted
    writer.writerow([*plain, "answers", "gold", *METRICS, "why"])
    for row in rows:
        lists = [" | ".join(row["answers"]), " | ".join(row["gold"])]
        values = [row["values"].get(name, "") for name in METRICS]
        writer.writerow([*(row[name] for name in plain), *lists, *values, row["why"]])
    return out.getvalue()
