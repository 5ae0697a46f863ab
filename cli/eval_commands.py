"""The command group `graphmoot eval`: each command lives in a file of its own."""

from __future__ import annotations

import typer

from cli import (
    eval_dataset_commands,
    eval_noise_command,
    eval_report_command,
    eval_run_command,
    eval_score_command,
    eval_upload_command,
)
from cli.options import examples

eval_app = typer.Typer(
    help="Compare methods on the same questions: run, score, report.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    epilog=examples(
        "graphmoot eval run --method zero-shot debate-on-graph --dataset sample --out first",
        "graphmoot eval report first --html first.html",
        "graphmoot eval score --questions webqsp --predictions answers.jsonl",
    ),
)

for command in (
    eval_run_command,
    eval_report_command,
    eval_score_command,
    eval_dataset_commands,
    eval_noise_command,
    eval_upload_command,
):
    command.register(eval_app)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(eval_app, name="eval")
