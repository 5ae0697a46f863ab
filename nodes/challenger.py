"""The Challenger: argues from its own knowledge (Debate-on-Graph §4.2, Eq. 11 and 13)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from nodes.context import settings_of
from nodes.debate import DebateContext, DebateState
from nodes.debaters import speak
from prompts import debate_on_graph as texts


async def challenger(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Give the Challenger's reply of this round; without asymmetry it sees the evidence too."""
    settings = settings_of(runtime, DebateContext)
    sees_facts = not settings.information_asymmetry and settings.use_graph
    instruction = texts.CHALLENGER_WITH_FACTS if sees_facts else texts.CHALLENGER
    return await speak(
        "challenger", "proponent", instruction, state, settings, sees_facts=sees_facts
    )
