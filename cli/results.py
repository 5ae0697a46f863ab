"""A result on paper: the answer, how sure, what it rests on, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli import output

OTHER_FACTS = 12
"""Facts shown that do not support the answer; JSON has them all."""


def print_result(result: Mapping[str, Any]) -> None:
    """Print a result document for people, on stdout."""
    answer = result.get("answer")
    choice = result.get("choice")
    label = f"{choice}: " if choice is not None else ""
    pairs: list[tuple[str, object]] = [
        ("Answer", f"{label}{answer}" if answer is not None else "none found")
    ]
    confidence = result.get("confidence")
    if answer is not None:
        pairs.append(("Confidence", "not stated" if confidence is None else f"{confidence:.2f}"))
    ended = result.get("ended") or {}
    if how := _how_it_ended(ended):
        pairs.append(("Ended by", how))
    if votes := ended.get("votes"):
        pairs.append(("Votes", _votes(votes, ended.get("samples"))))
    if reason := ended.get("reason"):
        pairs.append(("Reason", reason))
    output.print_pairs(pairs)
    print()
    _print_evidence(result.get("evidence") or [])
    _print_usage(result)
    for warning in result.get("warnings") or []:
        output.note(f"warning: {warning}")


def _how_it_ended(ended: Mapping[str, Any]) -> str:
    parts = [str(ended["by"])] if ended.get("by") else []
    if ended.get("round"):
        parts.append(f"round {ended['round']}")
    if ended.get("k"):
        parts.append(f"K = {ended['k']}")
    if ended.get("agreement") is not None:
        parts.append("the debaters agreed" if ended["agreement"] else "the debaters disagreed")
    return ", ".join(parts)


def _votes(votes: Mapping[str, int], samples: int | None) -> str:
    shown = ", ".join(f"{answer} {count}" for answer, count in votes.items())
    return shown if samples is None else f"{shown}, of {samples} samples"


def _print_evidence(evidence: list[dict[str, Any]]) -> None:
    if not evidence:
        print("No evidence was used.\n")
        return
    supporting = [fact for fact in evidence if fact.get("supports")]
    others = [fact for fact in evidence if not fact.get("supports")]
    shown = [*supporting, *others[:OTHER_FACTS]]
    columns = ["supports", "head", "relation", "tail", "confidence"]
    extra = [key for key in ("provenance", "validity") if any(fact.get(key) for fact in shown)]
    rows = [
        [
            "yes" if fact.get("supports") else "",
            _end(fact, "head"),
            fact["relation"],
            _end(fact, "tail"),
            float(fact["confidence"]),
            *(fact.get(key) for key in extra),
        ]
        for fact in shown
    ]
    title = f"Evidence: {len(evidence)} facts, {len(supporting)} support the answer"
    output.print_table([*columns, *extra], rows, title=title, numbers=("confidence",))
    if len(others) > OTHER_FACTS:
        print(f"… and {len(others) - OTHER_FACTS} more facts (--json prints all)")
    print()


def _end(fact: Mapping[str, Any], end: str) -> str:
    name, entity = fact[end], fact.get(f"{end}_id")
    return f"{name} ({entity})" if entity else str(name)


def _print_usage(result: Mapping[str, Any]) -> None:
    usage = result.get("usage") or {}
    by_role = usage.get("by_role") or {}
    columns = ["role", "calls", "cached", "tokens in", "tokens out", "seconds"]
    rows = [[role.replace("_", "-"), *_costs(cost)] for role, cost in by_role.items()]
    if len(rows) > 1:
        rows.append(["together", *_costs(usage)])
    if rows:
        output.print_table(columns, rows, title="Usage", numbers=columns[1:])
    print(f"{result.get('seconds') or 0:.1f} s in all")


def _costs(cost: Mapping[str, Any]) -> list[object]:
    seconds = cost.get("seconds")
    return [
        cost.get("llm_calls", 0),
        cost.get("cached_calls", 0),
        cost.get("input_tokens", 0),
        cost.get("output_tokens", 0),
        "" if seconds is None else f"{seconds:.1f}",
    ]


def spent(calls: list[Any]) -> str:
    """Return what a run that was broken off had cost so far, in words."""
    from nodes.usage import summarise

    usage = summarise(calls)
    return (
        f"{usage['llm_calls']} model calls finished, {usage['input_tokens']:,} tokens in, "
        f"{usage['output_tokens']:,} out"
    )
