"""An evaluation that is killed at random moments and resumed: nothing is lost, nothing twice."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from evals.run_folder import key_of, read_lines
from tests.cli_helpers import ROOT
from tests.fake_openai import FakeOpenAI, says

pytestmark = pytest.mark.integration

QUESTIONS = 40
KILLS = 5
METHODS = (
    "one=debate-on-graph:use_graph=false,debate=false",
    "debate=debate-on-graph:use_graph=false",
)


def replies(asked):
    """Return what depends on the prompt alone, so that every run gets the same."""
    digest = hashlib.sha256(asked.user.encode()).digest()
    truth = "true" if digest[0] % 2 else "false"
    fields = {
        "direct_answer": {"reason": "so", "answer": truth, "confidence": digest[1] % 101},
        "judge": {"reason": "so", "answer": truth, "confidence": digest[1] % 101},
        "proponent": {"argument": "it is", "answer": truth},
        "challenger": {"argument": "it is not", "answer": "false"},
        "decision_maker": {"reason": "so", "action": "stop" if digest[2] % 3 else "continue"},
    }
    return says(fields[asked.role], delay=0.02)


def start(spec: str, questions: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    arguments = ["eval", "run", "--out", str(out), "--concurrency", "3", *more]
    if "--resume" not in more:
        arguments += ["--method", *METHODS, "--dataset", str(questions), "--model", spec]
    return subprocess.Popen(
        [sys.executable, "-m", "cli.main", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LANGSMITH_TRACING": "false"},
    )


def kill_after_lines(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Kill -9 as soon as so many lines are there, or a random moment later."""
    results = out / "results.jsonl"
    limit = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < limit:
        if results.exists() and results.read_bytes().count(b"\n") >= count:
            break
        time.sleep(0.002)
    time.sleep(random.random() * 0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def finish(process: subprocess.Popen[bytes]) -> None:
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()


def totals(out: Path) -> tuple[Counter[tuple[str, str]], int]:
    lines = read_lines(out)
    outcomes = Counter((line["label"], line["outcome"]) for line in lines)
    return outcomes, sum(len(line["calls"]) for line in lines)


def test_killed_five_times_and_resumed_it_equals_an_uninterrupted_run(tmp_path):
    questions = tmp_path / "questions.jsonl"
    rows = (
        {
            "id": f"q{n}",
            "question": f"Is {n} prime?",
            "question_type": "boolean",
            "answers": ["true"],
        }
        for n in range(QUESTIONS)
    )
    questions.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    all_lines = QUESTIONS * len(METHODS)
    with FakeOpenAI(replies) as server:
        finish(start(server.spec, questions, tmp_path / "whole"))
        killed = tmp_path / "killed"
        at = sorted(random.sample(range(2, all_lines - 4), KILLS))
        kill_after_lines(start(server.spec, questions, killed), killed, at[0])
        for count in at[1:]:
            kill_after_lines(start(server.spec, questions, killed, "--resume"), killed, count)
        had = (killed / "results.jsonl").read_bytes().count(b"\n")
        assert had < all_lines, "it was never killed in time"
        finish(start(server.spec, questions, killed, "--resume"))
    raw = [json.loads(line) for line in (killed / "results.jsonl").read_text().splitlines()]
    keys = [key_of(line) for line in raw]
    assert len(keys) == len(set(keys)) == all_lines
    assert totals(killed) == totals(tmp_path / "whole")
    assert len(json.loads((killed / "manifest.json").read_text())["sessions"]) >= 2
