"""One call that answers from the evidence, or from nothing: no debate (Table 3)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from nodes.context import settings_of
from nodes.debate import DebateContext, DebateState, current_k, shared_parts
from nodes.judgement import judge_from
from nodes.state import question_type_of
from prompts import debate_on_graph as texts


async def direct_answer(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Answer in a single call, with the evidence in the prompt where a graph is used."""
    settings = settings_of(runtime, DebateContext)
    cites = settings.use_graph and bool(state.get("evidence"))
    ask = texts.DIRECT_FROM_FACTS if cites else texts.DIRECT
    if question_type_of(state) == "open":
        ask += texts.OPEN_JUDGE
    parts = [*shared_parts(state, settings, facts=settings.use_graph), ask]
    where = {"k": current_k(state, settings)}
    return await judge_from("direct_answer", parts, state, settings, cites=cites, where=where)
