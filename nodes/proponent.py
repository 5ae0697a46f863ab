"""The Proponent: argues from the evidence (Debate-on-Graph §4.2, Eq. 10 and 12)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from nodes.context import settings_of
from nodes.debate import DebateContext, DebateState
from nodes.debaters import speak
from prompts import debate_on_graph as texts


async def proponent(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Give the Proponent's reply of this round; it sees the evidence."""
    settings = settings_of(runtime, DebateContext)
    has_facts = settings.use_graph and bool(state.get("evidence"))
    instruction = texts.PROPONENT if has_facts else texts.PROPONENT_WITHOUT_FACTS
    return await speak("proponent", "challenger", instruction, state, settings, sees_facts=True)
