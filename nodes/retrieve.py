"""The one retrieval node: it runs the retrieval tools and keeps evidence in the state."""

from __future__ import annotations

import time
from typing import Any

from langgraph.runtime import Runtime

from graph_store import StoreError
from nodes.context import GraphContext, settings_of
from nodes.role import emit, step_of
from nodes.state import MethodState
from nodes.tools import find_evidence, search_ahead


async def retrieve_evidence(
    state: MethodState, runtime: Runtime[Any], *, k: int, next_k: int | None = None
) -> dict[str, Any]:
    """Search evidence at level K and unite it with what is already there (§4.2, Eq. 14).

    Facts that are new come after the known ones: what a model has read stays a prefix. `next_k` is
    searched in the background, for the case that it is wanted.
    """
    settings = settings_of(runtime, GraphContext)
    started = time.perf_counter()
    entry: dict[str, Any] = {"node": "retrieve", "step": step_of(), "k": k}
    try:
        found = await find_evidence.ainvoke(_arguments(state, settings, k))
    except (StoreError, ValueError) as error:
        emit({"event": "failed", "role": "retrieve", "message": str(error)})
        failure = {"type": type(error).__name__, "message": str(error)}
        return {"error": failure, "trace": [{**entry, "fault": str(error)}]}
    if next_k is not None and settings.search_ahead:
        search_ahead(_arguments(state, settings, next_k))
    known = state.get("evidence") or []
    new = _new_facts(found, known, k)
    seconds = time.perf_counter() - started
    emit(
        {
            "event": "evidence",
            "k": k,
            "new_facts": new,
            "facts": len(known) + len(new),
            "milliseconds": round(seconds * 1000, 1),
        }
    )
    entry |= {"new_facts": len(new), "facts": len(known) + len(new), "stats": found["stats"]}
    out: dict[str, Any] = {
        "evidence": [*known, *new],
        "trace": [{**entry, "seconds": round(seconds, 3)}],
    }
    if found["stats"]["approximate"]:
        notes = "; ".join(found["stats"]["notes"])
        out["warnings"] = [f"the evidence is approximate: {notes}"]
    return out


def _arguments(state: MethodState, settings: GraphContext, k: int) -> dict[str, Any]:
    return {
        "question": state["question"],
        "topic_entities": [topic["entity"] for topic in state.get("topics") or []],
        "graph": settings.graph,
        "k": k,
        "width": settings.width,
        "max_distance": settings.max_distance,
        "alpha": settings.alpha,
        "direction": settings.direction,
        "ignore_confidence": settings.ignore_confidence,
        "similarity": settings.similarity,
        "max_candidates": settings.max_candidates,
        "max_texts": settings.max_texts,
    }


def fact_key(fact: dict[str, Any]) -> tuple[str, str, str]:
    """Return a fact's identity from its public JSON form."""
    return (
        fact.get("head_id", fact["head"]),
        fact["relation"],
        fact.get("tail_id", fact["tail"]),
    )


def _new_facts(found: dict[str, Any], known: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
    seen = {fact_key(fact) for fact in known}
    best: dict[tuple[str, str, str], float] = {}
    for path in found["paths"]:
        for fact in path["facts"]:
            best.setdefault(fact_key(fact), path["score"])
    return [
        {**fact, "score": best[fact_key(fact)], "level": k}
        for fact in found["evidence"]
        if fact_key(fact) not in seen
    ]
