"""The Decision-Maker: stop, continue, or expand the evidence (Debate-on-Graph §4.2, Eq. 14)."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from nodes.context import settings_of
from nodes.debate import (
    Action,
    DebateContext,
    DebateState,
    Decision,
    agree,
    current_k,
    last_statements,
    shared_parts,
    transcript,
)
from nodes.llm import Prompt
from nodes.replies import Decision as DecisionForm
from nodes.replies import DecisionWithoutExpansion
from nodes.role import consult, emit, step_of
from nodes.state import choices_of
from nodes.wording import language_part
from prompts import debate_on_graph as texts


async def decision_maker(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Decide how the debate goes on, from the question, the evidence and this round's replies."""
    settings = settings_of(runtime, DebateContext)
    number, k = state["round"], current_k(state, settings)
    statements = last_statements(state)
    if state.get("error"):
        return {}
    if all(statement["fault"] for statement in statements):
        return _nothing_to_decide(state, settings)
    form = DecisionForm if settings.may_expand else DecisionWithoutExpansion
    reply = await consult(
        "decision_maker",
        Prompt(texts.SYSTEM, [*_parts(state, settings), language_part(state)]),
        form,
        settings,
        round=number,
        k=k,
    )
    chosen: Action | None = getattr(reply.value, "action", None)
    action, note = _effective(chosen, state, settings)
    decision = Decision(
        round=number,
        k=k,
        chosen=chosen,
        action=action,
        reason=getattr(reply.value, "reason", ""),
        note=note,
        agreement=agree(statements),
    )
    update = reply.update({"node": "decision_maker", "step": step_of(), **decision})
    if reply.failure is None:
        update["decisions"] = [decision]
        emit({"event": "decided", **decision, "seconds": reply.seconds})
    return update


def _parts(state: DebateState, settings: DebateContext) -> list[str]:
    has_facts = settings.use_graph and bool(state.get("evidence"))
    go_on = texts.ACTION_CONTINUE if has_facts else texts.ACTION_CONTINUE_WITHOUT_FACTS
    actions = [texts.ACTION_STOP, go_on]
    if settings.may_expand:
        actions.append(texts.ACTION_EXPAND)
    statements = last_statements(state)
    ask = texts.DECISION_MAKER.format(
        replies=transcript(statements, choices_of(state), cited=True),
        agreement=texts.AGREE if agree(statements) else texts.DIFFER,
        actions="\n".join(f"- {action}" for action in actions),
    )
    return [*shared_parts(state, settings, facts=True), ask]


def _nothing_to_decide(
    state: DebateState,
    settings: DebateContext,
) -> dict[str, Any]:
    """Go on without a call when neither debater could be read; at last that is failure."""
    note = "neither debater's reply could be read"
    decision = Decision(
        round=state["round"],
        k=current_k(state, settings),
        chosen=None,
        action="continue",
        reason="",
        note=f"{note}: continue",
        agreement=False,
    )
    emit({"event": "decided", **decision, "seconds": 0.0})
    entry = {"node": "decision_maker", "step": step_of(), **decision}
    update: dict[str, Any] = {"decisions": [decision], "trace": [entry]}
    if state["round"] >= settings.max_rounds:
        fault = last_statements(state)[0]["fault"]
        update["error"] = {"type": "UnusableAnswerError", "message": f"{note}: {fault}"}
    return update


def _effective(
    chosen: Action | None, state: DebateState, settings: DebateContext
) -> tuple[Action, str | None]:
    """Return what is done: `continue` if unreadable, or if `expand` comes at the highest K."""
    if chosen is None:
        return "continue", "the choice could not be read: continue"
    if chosen == "expand" and (state.get("level") or 0) + 1 >= len(settings.levels):
        return "continue", "expand at the highest K: continue"
    return chosen, None
