"""Zero-shot prompting: the model answers from what it knows, in one call, without reasoning.

Brown et al. 2020, "Language Models are Few-Shot Learners", name the setting; it is the plainest
baseline of Debate-on-Graph's Table 2.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from nodes.context import settings_of
from nodes.plain_answer import PlainContext, PlainState, answer, begin, plain_result
from nodes.state import Question

NAME = "zero-shot"
PAPER = "Brown et al. 2020: Language Models are Few-Shot Learners (zero-shot)"
SUMMARY = "One call answers from what the model knows."
ROLES = PlainContext.ROLES
READS_CONFIDENCE = False
PROMPTS = ("baselines", "debate_on_graph", "shared")
TYPICAL_CALLS = "1"

Context = PlainContext
_RECURSION_LIMIT = 10


def report(state: PlainState, runtime: Runtime[PlainContext]) -> dict[str, Any]:
    """Put the result together."""
    return plain_result(state, settings_of(runtime, PlainContext), NAME)


def build_graph(
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[PlainState, PlainContext, Question, PlainState]:
    """Compile the workflow: question → answer."""
    builder = StateGraph(PlainState, context_schema=PlainContext, input_schema=Question)
    builder.add_node("begin", begin)
    builder.add_node("answer", answer)
    builder.add_node("report", report)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "answer")
    builder.add_edge("answer", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer, name=NAME)
    return compiled.with_config(recursion_limit=_RECURSION_LIMIT)


graph = build_graph()
