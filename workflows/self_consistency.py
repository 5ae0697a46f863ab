"""Self-consistency: several chains of thought are drawn, the majority's answer is taken.

Wang et al. 2023, "Self-Consistency Improves Chain of Thought Reasoning in Language Models". The
samples differ by their seeds only and are asked for at once; without a temperature they would be
the same.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from nodes.context import settings_of
from nodes.plain_answer import begin, check_examples, choose_examples, plain_result
from nodes.state import Question
from nodes.vote import VotingContext, VotingState, draw_samples, vote

NAME = "self-consistency"
PAPER = "Wang et al. 2023: Self-Consistency"
SUMMARY = "Several chains of thought are drawn; the answer that most give is taken."
ROLES = VotingContext.ROLES
READS_CONFIDENCE = False
PROMPTS = ("baselines", "debate_on_graph", "shared")
TYPICAL_CALLS = "5 (the number of samples)"

Context = VotingContext
check_settings = check_examples
_RECURSION_LIMIT = 10


def report(state: VotingState, runtime: Runtime[VotingContext]) -> dict[str, Any]:
    """Put the result together, with the votes."""
    settings = settings_of(runtime, VotingContext)
    trace = state.get("trace") or []
    votes: dict[str, int] = next((entry["votes"] for entry in trace if entry["node"] == "vote"), {})
    by = "failure" if state.get("error") else "vote"
    return plain_result(
        state, settings, NAME, by=by, votes=votes, samples=len(state.get("samples") or [])
    )


def build_graph(
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[VotingState, VotingContext, Question, VotingState]:
    """Compile the workflow: question → examples, if any → samples → vote."""
    builder = StateGraph(VotingState, context_schema=VotingContext, input_schema=Question)
    builder.add_node("begin", begin)
    builder.add_node("choose_examples", choose_examples)
    builder.add_node("draw_samples", draw_samples)
    builder.add_node("vote", vote)
    builder.add_node("report", report)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "choose_examples")
    builder.add_edge("choose_examples", "draw_samples")
    builder.add_edge("draw_samples", "vote")
    builder.add_edge("vote", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer, name=NAME)
    return compiled.with_config(recursion_limit=_RECURSION_LIMIT)


graph = build_graph()
