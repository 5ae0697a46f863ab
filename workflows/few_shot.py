"""Few-shot prompting: some questions with their answers come before the question.

Brown et al. 2020, "Language Models are Few-Shot Learners". The examples are those of a file that
have the question's type, in the file's order, the same for every question (so that a prefix cache
reads them once), and never the question itself.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from nodes.context import settings_of
from nodes.plain_answer import (
    FewShotContext,
    PlainState,
    answer,
    begin,
    check_examples,
    choose_examples,
    plain_result,
)
from nodes.state import Question

NAME = "few-shot"
PAPER = "Brown et al. 2020: Language Models are Few-Shot Learners"
SUMMARY = "One call answers after some questions with their answers."
ROLES = FewShotContext.ROLES
READS_CONFIDENCE = False
PROMPTS = ("baselines", "debate_on_graph", "shared")
TYPICAL_CALLS = "1"

Context = FewShotContext
check_settings = check_examples
_RECURSION_LIMIT = 10


def report(state: PlainState, runtime: Runtime[FewShotContext]) -> dict[str, Any]:
    """Put the result together."""
    return plain_result(state, settings_of(runtime, FewShotContext), NAME)


def build_graph(
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[PlainState, FewShotContext, Question, PlainState]:
    """Compile the workflow: question → examples → answer."""
    builder = StateGraph(PlainState, context_schema=FewShotContext, input_schema=Question)
    builder.add_node("begin", begin)
    builder.add_node("choose_examples", choose_examples)
    builder.add_node("answer", answer)
    builder.add_node("report", report)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "choose_examples")
    builder.add_edge("choose_examples", "answer")
    builder.add_edge("answer", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer, name=NAME)
    return compiled.with_config(recursion_limit=_RECURSION_LIMIT)


graph = build_graph()
