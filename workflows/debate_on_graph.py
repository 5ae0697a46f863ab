"""Debate-on-Graph: agents debate over evidence of an uncertain knowledge graph.

Yu, Chen, Wu: "Debate-on-Graph: Reliable and Adaptive Reasoning of Large Language Model on
Uncertain Knowledge Graph" (2026), §4, Eq. 10–15. The Proponent sees the evidence, the Challenger
does not; after each round the Decision-Maker stops, continues, or expands the evidence to the next
K; the Judge answers from the last replies. A debate makes 4 to 3·r_max + 1 model calls, besides
repairs of unreadable replies.
"""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from nodes.budget import budget_reached
from nodes.challenger import challenger
from nodes.context import settings_of
from nodes.debate import DebateContext, DebateState, current_k, statements_of
from nodes.decision_maker import decision_maker
from nodes.direct_answer import direct_answer
from nodes.judge import judge
from nodes.link_topics import link_topics
from nodes.proponent import proponent
from nodes.report import build_result
from nodes.retrieve import retrieve_evidence
from nodes.role import step_of
from nodes.state import Question, check_question, end_of_run, fresh_run, question_type_of
from nodes.support import supporting_facts

NAME = "debate-on-graph"
PAPER = "Yu, Chen, Wu 2026: Debate-on-Graph"
SUMMARY = (
    "Proponent and Challenger debate over evidence that grows until they agree; a Judge rules."
)
ROLES = DebateContext.ROLES
READS_CONFIDENCE = True
PROMPTS = ("debate_on_graph", "shared")
TYPICAL_CALLS = "4 to 10 (3 a round and the Judge)"

Context = DebateContext
CALLS_AHEAD = 4
"""Model calls that another round and the Judge need."""
_RECURSION_LIMIT = 80


def begin(state: DebateState) -> dict[str, Any]:
    """Check the input and start afresh, also in a thread that has answered a question before.

    Raises:
        ValueError: the input is none that can be worked on; the message names its part.
    """
    check_question(state)
    own: dict[str, Any] = {"level": None, "round": 0, "verdict": {}}
    return {**fresh_run(state, "statements", "decisions"), **own}


async def retrieve(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Search evidence at the first K, or at the next one when the evidence is to be expanded."""
    settings = settings_of(runtime, DebateContext)
    level = state.get("level")
    level = 0 if level is None else level + 1
    if not state.get("topics"):
        return {"level": level, "evidence": []}
    following = settings.levels[level + 1 : level + 2] if settings.debate else ()
    update = await retrieve_evidence(
        state, runtime, k=settings.levels[level], next_k=next(iter(following), None)
    )
    return {"level": level, **update}


def open_round(state: DebateState) -> dict[str, Any]:
    """Count the next round."""
    number = (state.get("round") or 0) + 1
    return {
        "round": number,
        "trace": [{"node": "open_round", "step": step_of(), "round": number}],
    }


def report(
    state: DebateState,
    runtime: Runtime[DebateContext],
) -> dict[str, Any]:
    """Put the result together: the answer, the facts it rests on, how the debate ended."""
    settings = settings_of(runtime, DebateContext)
    verdict = state.get("verdict") or {}
    decisions = state.get("decisions") or []
    ended = {
        "by": _ended_by(state, settings),
        "round": state.get("round") or None,
        "k": current_k(state, settings),
        "agreement": decisions[-1]["agreement"] if decisions else None,
        "reason": verdict.get("reason", ""),
    }
    result = build_result(
        state,
        NAME,
        answer=verdict.get("answer"),
        confidence=verdict.get("confidence"),
        supporting=_supporting(state),
        ended=ended,
    )
    if str(ended["by"]).startswith("the budget"):
        result["warnings"].append(f"ended early by {ended['by']}")
    elif budget := budget_reached(state, settings):
        # The least that the method takes was more than it.
        result["warnings"].append(f"{budget} was passed")
    return {
        "result": result,
        "trace": [{"node": "report", "step": step_of()}],
        **end_of_run(),
    }


def _supporting(state: DebateState) -> set[int]:
    """Return the facts for the answer: those cited for it and those that name it.

    Cited by the direct answer, or by the Proponent when it last held the Judge's answer; none when
    it never held it, for then the answer does not come from the evidence.
    """
    verdict = state.get("verdict") or {}
    answer = verdict.get("answer")
    held = [s for s in statements_of(state, "proponent") if answer and s["answer"] == answer]
    if not held and state.get("statements"):
        return set()
    cited = held[-1]["facts"] if held else verdict.get("facts") or []
    words = None if question_type_of(state) == "boolean" else answer
    shown = (state.get("choices") or {}).get(str(words), words)
    return supporting_facts(state.get("evidence") or [], cited, shown)


def _ended_by(state: DebateState, settings: DebateContext) -> str:
    if state.get("error"):
        return "failure"
    if not settings.debate:
        return "direct answer"
    decisions = state.get("decisions") or []
    if decisions and decisions[-1]["action"] == "stop":
        return "stop"
    if (state.get("round") or 0) >= settings.max_rounds:
        return "round limit"
    return budget_reached(state, settings, calls_ahead=CALLS_AHEAD) or "round limit"


def after_begin(
    _state: DebateState, runtime: Runtime[DebateContext]
) -> Literal["with graph", "debate", "direct"]:
    """Route the start by the variant."""
    settings = settings_of(runtime, DebateContext)
    if settings.use_graph:
        return "with graph"
    return "debate" if settings.debate else "direct"


def after_linking(state: DebateState) -> Literal["linked", "failed"]:
    """Route on: a given topic that is not in the graph ends the run before any model call."""
    return "failed" if state.get("error") else "linked"


def after_retrieval(
    state: DebateState, runtime: Runtime[DebateContext]
) -> Literal["debate", "direct", "failed"]:
    """Route evidence to the debate, or to the one call of the variant without it."""
    if state.get("error"):
        return "failed"
    return "debate" if settings_of(runtime, DebateContext).debate else "direct"


def after_decision(
    state: DebateState, runtime: Runtime[DebateContext]
) -> Literal["expand K", "continue", "stop", "failed"]:
    """Route by the Decision-Maker's action, the round limit and the budgets."""
    settings = settings_of(runtime, DebateContext)
    if state.get("error"):
        return "failed"
    if state["round"] >= settings.max_rounds:
        return "stop"
    if budget_reached(state, settings, calls_ahead=CALLS_AHEAD):
        return "stop"
    action = state["decisions"][-1]["action"]
    return "expand K" if action == "expand" else action


def build_graph(
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[DebateState, DebateContext, Question, DebateState]:
    """Compile the workflow; its drawing reads as the paper's Fig. 1."""
    builder = StateGraph(DebateState, context_schema=DebateContext, input_schema=Question)
    builder.add_node("begin", begin)
    builder.add_node("link_topics", link_topics)
    builder.add_node("retrieve", retrieve)
    builder.add_node("open_round", open_round)
    builder.add_node("proponent", proponent)
    builder.add_node("challenger", challenger)
    builder.add_node("decision_maker", decision_maker)
    builder.add_node("judge", judge)
    builder.add_node("direct_answer", direct_answer)
    builder.add_node("report", report)

    builder.add_edge(START, "begin")
    builder.add_conditional_edges(
        "begin",
        after_begin,
        {"with graph": "link_topics", "debate": "open_round", "direct": "direct_answer"},
    )
    builder.add_conditional_edges(
        "link_topics", after_linking, {"linked": "retrieve", "failed": "report"}
    )
    builder.add_conditional_edges(
        "retrieve",
        after_retrieval,
        {"debate": "open_round", "direct": "direct_answer", "failed": "report"},
    )
    builder.add_edge("open_round", "proponent")
    builder.add_edge("open_round", "challenger")
    builder.add_edge(["proponent", "challenger"], "decision_maker")
    builder.add_conditional_edges(
        "decision_maker",
        after_decision,
        {"expand K": "retrieve", "continue": "open_round", "stop": "judge", "failed": "report"},
    )
    builder.add_edge("judge", "report")
    builder.add_edge("direct_answer", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer, name=NAME)
    return compiled.with_config(recursion_limit=_RECURSION_LIMIT)


graph = build_graph()
