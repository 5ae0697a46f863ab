"""What the baselines without a graph share: settings, state, one call, the result."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from langgraph.runtime import Runtime
from pydantic import Field

from nodes.budget import budget_reached
from nodes.context import MethodContext, default_graph, settings_of
from nodes.few_shot_examples import examples_part, load_examples
from nodes.judgement import judge_from
from nodes.llm import Prompt
from nodes.report import build_result
from nodes.role import step_of
from nodes.state import MethodState, check_question, end_of_run, fresh_run, question_type_of
from nodes.wording import language_part, question_part
from prompts import baselines as texts


class PlainContext(MethodContext):
    """Settings of a method that answers from what the model knows."""

    ROLES: ClassVar[tuple[str, ...]] = ("answerer",)
    use_graph: ClassVar[bool] = False

    graph: str = Field(
        default_factory=default_graph,
        description="Not looked into: the method answers from what the model knows.",
    )
    reply_length: int = Field(
        default=240, ge=40, description="Not used: the method's replies hold no argument."
    )


class FewShotContext(PlainContext):
    """Settings of few-shot prompting."""

    examples: str | None = Field(
        default=None,
        description="File of questions with answers (JSON lines, docs/evaluation.md); default: "
        "examples of general knowledge that come with the package.",
    )
    shots: int = Field(default=4, ge=0, le=50, description="Examples shown.")


class ReasoningContext(FewShotContext):
    """Settings of chain-of-thought prompting; without examples by default."""

    ROLES: ClassVar[tuple[str, ...]] = ("reasoner",)

    shots: int = Field(
        default=0, ge=0, le=50, description="Examples shown, with their reasoning; 0 for none."
    )
    reasoning_length: int = Field(
        default=600, ge=40, description="Characters that the reasoning may have."
    )


def check_examples(settings: FewShotContext) -> None:
    """Raise `QuestionFileError` when the file of examples is wanted and cannot be used."""
    if settings.shots:
        load_examples(settings.examples)


class PlainState(MethodState, total=False):
    """State of a baseline.

    Attributes:
        verdict: answer, confidence, reason.
        shown_examples: the examples' part of the prompt; '' without examples.
    """

    verdict: dict[str, Any]
    shown_examples: str


def begin(state: PlainState) -> dict[str, Any]:
    """Check the input and start afresh, also in a thread that has answered a question before.

    Raises:
        ValueError: the input is none that can be worked on; the message names its part.
    """
    check_question(state)
    return {**fresh_run(state), "verdict": {}, "shown_examples": ""}


async def choose_examples(state: PlainState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Choose the examples: the first of the question's type, never the question itself.

    Raises:
        QuestionFileError: the file of examples cannot be used.
    """
    settings = settings_of(runtime, FewShotContext)
    entry = {"node": "choose_examples", "step": step_of()}
    if not settings.shots:
        return {"shown_examples": "", "trace": [{**entry, "examples": []}]}
    known = await asyncio.to_thread(load_examples, settings.examples)
    reasons = isinstance(settings, ReasoningContext)
    part, ids = examples_part(known, state, settings.shots, reasons=reasons)
    update: dict[str, Any] = {"shown_examples": part, "trace": [{**entry, "examples": ids}]}
    if len(ids) < settings.shots:
        kind = f"'{question_type_of(state)}'" + (" with a reasoning" if reasons else "")
        update["warnings"] = [
            f"only {len(ids)} of {settings.shots} examples: the file has no more of type {kind}"
        ]
    return update


def reasoning_prompt(state: PlainState) -> Prompt:
    """Return the whole prompt of a chain of thought."""
    return Prompt(texts.SYSTEM, [*_parts(state, texts.REASON), language_part(state)])


def _parts(state: PlainState, ask: str) -> list[str]:
    """Return the parts before the language's: examples first, which all questions share."""
    if question_type_of(state) == "open":
        ask += texts.OPEN
    examples = state.get("shown_examples") or ""
    return [examples, texts.YOURS if examples else "", question_part(state), ask]


async def answer(state: PlainState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Answer in one call, without reasoning."""
    settings = settings_of(runtime, PlainContext)
    parts = _parts(state, texts.ANSWER)
    return await judge_from("answerer", parts, state, settings, system=texts.SYSTEM, length=0)


async def reason(state: PlainState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Answer in one call, after reasoning."""
    settings = settings_of(runtime, ReasoningContext)
    parts, length = _parts(state, texts.REASON), settings.reasoning_length
    return await judge_from("reasoner", parts, state, settings, system=texts.SYSTEM, length=length)


def plain_result(
    state: PlainState, settings: MethodContext, method: str, **ended: Any
) -> dict[str, Any]:
    """Return the last node's update: the result document, and the input's end."""
    verdict = state.get("verdict") or {}
    how = {"by": "failure" if state.get("error") else "answer", **ended}
    result = build_result(
        state,
        method,
        answer=verdict.get("answer"),
        confidence=verdict.get("confidence"),
        supporting=set(),
        ended={**how, "reason": verdict.get("reason", "")},
    )
    if passed := budget_reached(state, settings):
        result["warnings"].append(f"{passed} was passed")
    return {
        "result": result,
        "trace": [{"node": "report", "step": step_of()}],
        **end_of_run(),
    }
