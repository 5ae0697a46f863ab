"""Finding the topic entities of a question (Debate-on-Graph, Definition 3)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from langgraph.runtime import Runtime

from graph_store import StoreError, UnknownEntityError, shared_store
from graph_store.linking import RESOLVED, find_mentions, link_mention, resolve_entity
from nodes.context import GraphContext, settings_of
from nodes.role import emit, step_of
from nodes.state import MethodState, Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graph_store.protocol import Candidate, GraphStore

MEANINGS = 3
"""So many entities are taken for one ambiguous mention."""


async def link_topics(
    state: MethodState,
    runtime: Runtime[Any],
) -> dict[str, Any]:
    """Link the given topic entities, or find them in the question: longest names first."""
    settings = settings_of(runtime, GraphContext)
    started = time.perf_counter()
    entry: dict[str, Any] = {"node": "link_topics", "step": step_of()}
    try:
        topics, warnings = await asyncio.to_thread(_link, state, settings)
    except (StoreError, ValueError) as error:
        failure = {"type": type(error).__name__, "message": str(error)}
        emit({"event": "failed", "role": "link_topics", "message": str(error)})
        return {"error": failure, "topics": [], "trace": [{**entry, "fault": str(error)}]}
    mentions = [{k: topic[k] for k in ("mention", "entity", "score")} for topic in topics]
    emit({"event": "linked", "mentions": mentions, "warnings": warnings})
    seconds = round(time.perf_counter() - started, 3)
    return {
        "topics": topics,
        "warnings": warnings,
        "trace": [{**entry, "topics": mentions, "seconds": seconds}],
    }


def _link(state: MethodState, settings: GraphContext) -> tuple[list[Topic], list[str]]:
    store = shared_store(settings.graph)
    warnings: list[str] = []
    given = state.get("topic_entities") or []
    topics: list[Topic] = []
    for text in given:
        topics += _meanings(text, resolve_entity(store, text), warnings)
    if not given:
        for mention in find_mentions(store, state["question"], limit=settings.max_topics):
            topics += _meanings(mention.text, mention.best, warnings)
    if settings.link_choices:
        topics += _choice_topics(store, state.get("choices") or {})
    unique = {topic["entity"]: topic for topic in reversed(topics)}
    if not unique:
        warnings.append("no topic entity was found in the question: answered without evidence")
    return list(reversed(unique.values())), warnings


def _meanings(text: str, candidates: Sequence[Candidate], warnings: list[str]) -> list[Topic]:
    if len(candidates) > 1:
        ids = ", ".join(c.entity for c in candidates[:5])
        warnings.append(f"'{text}' is ambiguous: {ids}; all are searched, --topic ID picks one")
    return [
        Topic(mention=text, entity=c.entity, name=c.name, score=c.score)
        for c in candidates[:MEANINGS]
    ]


def _choice_topics(store: GraphStore, choices: dict[str, str]) -> list[Topic]:
    return [
        Topic(mention=text, entity=best.entity, name=best.name, score=best.score)
        for text in choices.values()
        for best in link_mention(store, text, top=1)
        if best.score >= RESOLVED
    ]


def unknown_topic(error: dict[str, Any] | None) -> bool:
    """Return whether a run ended because a given topic is not in the graph."""
    return bool(error) and error is not None and error["type"] == UnknownEntityError.__name__
