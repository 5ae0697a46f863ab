"""One row a configuration and question, for a spreadsheet or a statistics package."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from evals.report.cells import Answered
from evals.report.diagnosis import SIGNS, diagnose, gold_words
from evals.report.summary import CellSummary, Summary

COLUMNS = (
    "configuration", "method", "dataset", "model", "question_id", "question", "type", "outcome",
    "answer", "choice", "gold", "gold_choice", "confidence", "exact_match", "hits_at_1_substring",
    "precision", "recall", "f1", "calls", "live_calls", "input_tokens", "live_input_tokens",
    "output_tokens", "live_output_tokens", "prefix_cached_tokens", "sequential_steps", "seconds",
    "seconds_without_cache", "model_seconds", "dollars", "k", "round", "ended_by", "agreement",
    "linking", "evidence_facts", "supporting_facts", "signs", "error", "run",
)  # fmt: skip
"""Tokens and calls are those asked for, cached replies included; `live_` those really made."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(summary: Summary) -> str:
    """Return the file's text, in the order of the report's cells.

    Text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    for cell in summary.cells:
        for row in _rows(cell):
            writer.writerow({name: _safe(value) for name, value in row.items()})
    return out.getvalue()


def _rows(cell: CellSummary) -> Iterator[dict[str, Any]]:
    for number, row in cell.cell.rows.items():
        yield {
            "configuration": cell.cell.title,
            "method": row.line["method"],
            "dataset": cell.cell.dataset,
            "model": cell.cell.model,
            "question_id": number,
            **_answer(row),
            **_costs(cell, number, row),
            **_ending(row),
            "run": str(row.folder),
        }


def _answer(row: Answered) -> dict[str, Any]:
    result, values = row.line["result"], row.score.values
    return {
        "question": row.gold.question,
        "type": row.gold.type or row.gold.question_type,
        "outcome": row.score.outcome,
        "answer": "; ".join(str(answer) for answer in result.get("answers") or []),
        "choice": result.get("choice"),
        "gold": "; ".join(gold_words(row)),
        "gold_choice": "; ".join(row.gold.answers) if row.gold.choices else None,
        "confidence": result.get("confidence"),
        "exact_match": values.get("exact-match"),
        "hits_at_1_substring": values.get("hits@1-substring"),
        **{name: values.get(name) for name in ("precision", "recall", "f1")},
    }


def _costs(cell: CellSummary, number: str, row: Answered) -> dict[str, Any]:
    cost = cell.costs[number]
    return {
        "calls": cost.asked.calls,
        "live_calls": cost.live.calls,
        "input_tokens": cost.asked.input_tokens,
        "live_input_tokens": cost.live.input_tokens,
        "output_tokens": cost.asked.output_tokens,
        "live_output_tokens": cost.live.output_tokens,
        "prefix_cached_tokens": cost.asked.prefix_cached_tokens,
        "sequential_steps": cost.asked.sequential_steps,
        "seconds": row.line["seconds"],
        "seconds_without_cache": cost.seconds,
        "model_seconds": round(cost.asked_seconds, 3),
        "dollars": cost.dollars,
    }


def _ending(row: Answered) -> dict[str, Any]:
    result = row.line["result"]
    ended, error = result.get("ended") or {}, result.get("error") or {}
    evidence = result.get("evidence") or []
    return {
        "k": ended.get("k"),
        "round": ended.get("round"),
        "ended_by": ended.get("by"),
        "agreement": ended.get("agreement"),
        "linking": row.linking,
        "evidence_facts": len(evidence),
        "supporting_facts": sum(bool(fact.get("supports")) for fact in evidence),
        "signs": "; ".join(SIGNS[sign] for sign in diagnose(row).signs),
        "error": f"{error.get('type')}: {error.get('message')}" if error else None,
    }


def _safe(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)  # a negative number is no formula
    except ValueError:
        return f"'{value}"
    return value
