"""Chain-of-thought prompting: the model reasons before it answers, in one call.

Wei et al. 2022, "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models"; without
examples (Kojima et al. 2022) unless `shots` asks for some.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from nodes.context import settings_of
from nodes.plain_answer import (
    PlainState,
    ReasoningContext,
    begin,
    check_examples,
    choose_examples,
    plain_result,
    reason,
)
from nodes.state import Question

NAME = "chain-of-thought"
PAPER = "Wei et al. 2022: Chain-of-Thought Prompting"
SUMMARY = "One call reasons step by step, then answers."
ROLES = ReasoningContext.ROLES
READS_CONFIDENCE = False
PROMPTS = ("baselines", "debate_on_graph", "shared")
TYPICAL_CALLS = "1"

Context = ReasoningContext
check_settings = check_examples
_RECURSION_LIMIT = 10


def report(state: PlainState, runtime: Runtime[ReasoningContext]) -> dict[str, Any]:
    """Put the result together."""
    return plain_result(state, settings_of(runtime, ReasoningContext), NAME)


def build_graph(
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[PlainState, ReasoningContext, Question, PlainState]:
    """Compile the workflow: question → examples, if any → reasoning and answer."""
    builder = StateGraph(PlainState, context_schema=ReasoningContext, input_schema=Question)
    builder.add_node("begin", begin)
    builder.add_node("choose_examples", choose_examples)
    builder.add_node("reason", reason)
    builder.add_node("report", report)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "choose_examples")
    builder.add_edge("choose_examples", "reason")
    builder.add_edge("reason", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer, name=NAME)
    return compiled.with_config(recursion_limit=_RECURSION_LIMIT)


graph = build_graph()
