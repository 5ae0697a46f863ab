"""The Judge: the answer, from the question and the final replies only (§4.2, Eq. 15)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from nodes.context import settings_of
from nodes.debate import (
    DebateContext,
    DebateState,
    current_k,
    last_statements,
    shared_parts,
    transcript,
)
from nodes.judgement import judge_from
from nodes.state import choices_of, question_type_of
from prompts import debate_on_graph as texts


async def judge(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Give the verdict: answer, confidence, reason. The evidence is not shown to the Judge."""
    settings = settings_of(runtime, DebateContext)
    replies = transcript(last_statements(state), choices_of(state))
    # Who could read facts is not evidence, but without it a confident guess weighs like a source.
    one_sided = settings.information_asymmetry and bool(state.get("evidence"))
    ask = texts.JUDGE.format(replies=replies, sources=texts.SOURCES if one_sided else "")
    if question_type_of(state) == "open":
        ask += texts.OPEN_JUDGE
    parts = [*shared_parts(state, settings, facts=False), ask]
    where = {"round": state.get("round"), "k": current_k(state, settings)}
    return await judge_from("judge", parts, state, settings, cites=False, where=where)
