"""Runs of an evaluation made up for tests: what is in them is said line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.metrics import score_question
from evals.records import prediction_of
from evals.run_folder import RunWriter
from nodes.question_file import question_of

MODEL = "openai:gpt-4o-mini"


def question(number: str, answers: list[str], **fields: Any) -> dict[str, Any]:
    """Return a line of `questions.jsonl`."""
    return {
        "id": number,
        "question": f"What about {number}?",
        "answers": answers,
        "dataset": "csqa",
        "topics": [],
        "linking": "question",
        **fields,
    }


def call(role: str = "answerer", step: int = 1, **fields: Any) -> dict[str, Any]:
    """Return the record of a model call: 100 tokens in, 40 of them prefix-cached, 10 out, 2 s."""
    seconds = fields.get("seconds", 2.0)
    return {
        "role": role,
        "step": step,
        "model": "m",
        "input_tokens": 100,
        "prefix_cached_tokens": 40,
        "output_tokens": 10,
        "seconds": seconds,
        "asked_seconds": seconds,
        "cached": False,
        "repair": False,
        "truncated": False,
        **fields,
    }


def cached(record: dict[str, Any]) -> dict[str, Any]:
    """Return a call whose reply came from the response cache."""
    return {**record, "cached": True, "seconds": 0.0}


def result(answer: str | None, **fields: Any) -> dict[str, Any]:
    """Return a result document; no answer is an abstention."""
    return {
        "status": "no_answer" if answer is None else "answered",
        "answer": answer,
        "answers": [] if answer is None else [answer],
        "choice": None,
        "confidence": None,
        "evidence": [],
        "method": "zero-shot",
        "topic_entities": [],
        "ended": {"by": "answer", "reason": ""},
        "trace": [],
        "usage": {},
        "seconds": 1.0,
        "warnings": [],
        "error": None,
        **fields,
    }


def failed(message: str = "the reply stayed unreadable") -> dict[str, Any]:
    """Return the result of a question that failed."""
    error = {"type": "UnusableAnswerError", "message": message}
    return result(None, status="failed", ended={"by": "failure"}, error=error)


def line(number: str, answer: str | None = None, label: str = "Zero-shot", **fields: Any) -> dict:
    """Return a result line; other parts may be given. `make_run` fills the outcome in."""
    document = fields.pop("result", None) or result(answer)
    return {
        "label": label,
        "method": "zero-shot",
        "dataset": "csqa",
        "model": MODEL,
        "question_id": number,
        "outcome": None,
        "thread": f"t/{label}/{number}",
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 3.0,
        "result": document,
        "calls": [call()],
        **fields,
    }


def cell(label: str = "Zero-shot", **fields: Any) -> dict[str, Any]:
    """Return a manifest's entry of a configuration."""
    return {
        "label": label,
        "method": "zero-shot",
        "dataset": "csqa",
        "model": MODEL,
        "settings": {},
        "context": {"temperature": 0.5, "seed": 0},
        "prompts": {"baselines": {"version": "1", "sha256": "aa" * 32}},
        **fields,
    }


def manifest(cells: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return a manifest; its data sets are those of the cells."""
    names = dict.fromkeys(entry["dataset"] for entry in cells)
    return {
        "format": 1,
        "created": "2026-01-02T03:04:05+00:00",
        "graphmoot": "0.1.0",
        "python": "3.11.7",
        "platform": "Linux",
        "packages": {"langgraph": "1.2.18"},
        "preset": None,
        "seed": 0,
        "graph": None,
        "cells": cells,
        "datasets": [
            {
                "name": name,
                "path": f"{name}.jsonl",
                "sha256": "cc" * 32,
                "reader": "jsonl",
                "questions": 4,
                "selection": {"limit": 4, "offset": 0, "shuffle": None},
                "linking": {},
            }
            for name in names
        ],
        "concurrency": 1,
        "budgets": {"calls": None},
        "prices": {MODEL: {"input": 0.15, "cached_input": 0.075, "output": 0.60}},
        **fields,
    }


def make_run(
    folder: Path,
    cells: list[dict[str, Any]],
    questions: list[dict[str, Any]],
    lines: list[dict[str, Any]],
    **fields: Any,
) -> Path:
    """Write a run's folder as the runner does, outcomes scored where none is given; returns it."""
    golds = {(row["dataset"], row["id"]): row for row in questions}
    with RunWriter(folder) as writer:
        writer.write_manifest(manifest(cells, **fields))
        writer.write_questions(questions)
        for one in lines:
            gold = golds.get((one["dataset"], one["question_id"]))
            writer.append({**one, "outcome": one["outcome"] or _outcome(one, gold)})  # type: ignore[typeddict-item]
    return folder


def _outcome(one: dict[str, Any], row: dict[str, Any] | None) -> str:
    if row is None:
        return "wrong"
    gold = question_of(row, "a test", fallback_id="")
    return score_question(gold, prediction_of(one["result"], gold.id)).outcome
