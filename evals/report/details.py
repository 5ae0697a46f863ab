"""Every question in full for the page: a small index, and packed details that are opened on demand.

A debate's result is about 15 kB; 13 configurations on 500 questions would be 100 MB. So a fact is
written once a question, and the details of a question (all configurations together, whose texts
have much in common) are one gzip, in base64, which the browser unpacks when the question is opened.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evals.report.cells import ORDER, Answered, ReportCell
from evals.report.costs import QuestionCost
from evals.report.diagnosis import SIGNS, diagnose, gold_words

MOST_FACTS = 150
"""Evidence facts kept of a result, besides all that support the answer; the run has the others."""

LONGEST_TEXT = 4_000
"""Characters kept of one text; the run has the whole."""

SHORT_TEXT = 80
_SIGN_NUMBERS = {sign: number for number, sign in enumerate(SIGNS)}
_LEFT_OUT = frozenset({"step", "topics", "stats", "role"})
"""Keys of trace entries that say what is said elsewhere."""


def page_data(
    cells: Sequence[ReportCell], costs: Sequence[Mapping[str, QuestionCost]]
) -> dict[str, Any]:
    """Return what the page's script reads.

    Args:
        cells: the report's cells.
        costs: for every cell the costs by question id.

    Returns:
        `cells`, `signs`, `outcomes` (names), `questions` (index: `id`, `d` data set, `q` text, `g`
        gold answers, `c` by cell number [outcome, answer, signs]) and `details` (one packed text a
        question; unpacked see `_question_detail`).
    """
    keys = dict.fromkeys((cell.dataset, number) for cell in cells for number in cell.rows)
    index, details = [], []
    for key in keys:
        rows = {n: cell.rows[key[1]] for n, cell in enumerate(cells) if _has(cell, key)}
        spent = {number: costs[number][key[1]] for number in rows}
        detail = _question_detail(rows, spent)
        index.append(_index_entry(key, rows, detail))
        details.append(_packed(detail))
    return {
        "cells": [{"t": cell.title, "d": cell.dataset, "m": cell.model} for cell in cells],
        "signs": list(SIGNS.values()),
        "outcomes": list(ORDER),
        "questions": index,
        "details": details,
    }


def _has(cell: ReportCell, key: tuple[str, str]) -> bool:
    return cell.dataset == key[0] and key[1] in cell.rows


def _index_entry(
    key: tuple[str, str], rows: Mapping[int, Answered], detail: Mapping[str, Any]
) -> dict[str, Any]:
    row = next(iter(rows.values()))
    return {
        "id": key[1],
        "d": key[0],
        "q": _cut(row.gold.question, 400),
        "g": _cut("; ".join(gold_words(row)), SHORT_TEXT * 2),
        "c": {
            number: [
                ORDER.index(one.score.outcome),
                _cut(str(one.line["result"].get("answer") or ""), SHORT_TEXT),
                detail["cells"][number]["signs"],
            ]
            for number, one in rows.items()
        },
    }


def _question_detail(
    rows: Mapping[int, Answered], costs: Mapping[int, QuestionCost]
) -> dict[str, Any]:
    """Return a question's gold, its facts, and by cell number what was answered and how."""
    facts: dict[str, int] = {}
    row = next(iter(rows.values()))
    cells = {number: _cell_detail(one, costs[number], facts) for number, one in rows.items()}
    gold = row.gold.to_json()
    gold["words"] = gold_words(row)
    return {
        "gold": gold,
        "linking": sorted({one.linking for one in rows.values()}),
        "facts": [json.loads(fact) for fact in facts],
        "cells": cells,
    }


def _cell_detail(row: Answered, cost: QuestionCost, facts: dict[str, int]) -> dict[str, Any]:
    result, found = row.line["result"], diagnose(row)
    evidence = result.get("evidence") or []
    kept = [
        (number, fact)
        for number, fact in enumerate(evidence, 1)
        if number <= MOST_FACTS or fact.get("supports") or number in found.naming
    ]
    detail = {
        "outcome": ORDER.index(row.score.outcome),
        "why": row.score.why,
        "signs": [_SIGN_NUMBERS[sign] for sign in found.signs],
        "held": found.held_right,
        "status": result.get("status"),
        "answers": [_cut(str(answer)) for answer in result.get("answers") or []],
        "choice": result.get("choice"),
        "confidence": result.get("confidence"),
        "ended": result.get("ended"),
        "topics": result.get("topic_entities"),
        "evidence": [
            [number, _fact_number(fact, facts), int(bool(fact.get("supports"))), fact.get("level")]
            for number, fact in kept
        ],
        "of": len(evidence),
        "naming": found.naming,
        "trace": [_entry(entry) for entry in result.get("trace") or []],
        "calls": [_call(call) for call in row.line["calls"]],
        "cost": [cost.asked.calls, cost.live.calls, cost.asked.tokens, cost.asked_seconds],
        "seconds": row.line["seconds"],
        "warnings": result.get("warnings"),
        "error": result.get("error"),
        "thread": row.line.get("thread"),
        "run": row.folder.name,
    }
    kept_anyway = ("signs", "evidence", "outcome")
    return {k: v for k, v in detail.items() if k in kept_anyway or v not in (None, "", [], {})}


def _fact_number(fact: Mapping[str, Any], facts: dict[str, int]) -> int:
    """Return a fact's number in the question's table, where it stands once."""
    ids = [fact.get("head_id"), fact.get("tail_id"), fact.get("provenance")]
    row = [fact["head"], fact["relation"], fact["tail"], round(float(fact["confidence"]), 4)]
    text = json.dumps([*row, *ids] if any(ids) else row, ensure_ascii=False)
    return facts.setdefault(text, len(facts))


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace entry without what is empty or told elsewhere, long texts cut."""
    kept = {
        name: value
        for name, value in entry.items()
        if name not in _LEFT_OUT and value not in (None, "", [], {})
    }
    return {name: _cut(v) if isinstance(v, str) else _small(v) for name, v in kept.items()}


def _small(value: Any) -> Any:
    if not isinstance(value, list | dict):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= LONGEST_TEXT else _cut(text)


def _call(call: Mapping[str, Any]) -> list[Any]:
    """Return a call as a row; the page's script has the columns' names."""
    return [
        call["role"],
        call["model"],
        call["input_tokens"],
        call["prefix_cached_tokens"],
        call["output_tokens"],
        round(float(call.get("asked_seconds", call["seconds"])), 1),
        int(call["cached"]),
        int(call["repair"]),
        int(call["truncated"]),
    ]


def _cut(text: str, limit: int = LONGEST_TEXT) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _packed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # Without a time in it, the same results give the same page.
    packed = gzip.compress(text.encode("utf-8", "backslashreplace"), 9, mtime=0)
    return base64.b64encode(packed).decode("ascii")
