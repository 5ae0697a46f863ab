"""Asking for a verdict: what the Judge and the direct answer share."""

from __future__ import annotations

from typing import Any

from nodes.context import MethodContext
from nodes.llm import Prompt
from nodes.replies import verdict as verdict_form
from nodes.role import consult, emit, step_of
from nodes.state import Question, choices_of, question_type_of
from nodes.wording import language_part
from prompts.debate_on_graph import SYSTEM


async def judge_from(
    role: str,
    parts: list[str],
    state: Question,
    settings: MethodContext,
    *,
    cites: bool,
    where: dict[str, Any],
) -> dict[str, Any]:
    """Return the state update with `verdict`, or with `error` when there is none."""
    form = verdict_form(
        question_type_of(state), choices_of(state), cites=cites, length=settings.reply_length
    )
    reply = await consult(
        role, Prompt(SYSTEM, [*parts, language_part(state)]), form, settings, **where
    )
    percent = getattr(reply.value, "confidence", None)
    found = {
        "answer": getattr(reply.value, "answer", None),
        "facts": getattr(reply.value, "facts", []),
        "confidence": None if percent is None else percent / 100,
        "reason": getattr(reply.value, "reason", ""),
    }
    update = reply.update({"node": role, "step": step_of(), **where, **found})
    if reply.value is not None:
        update["verdict"] = found
        answer = found["answer"]
        choice = answer if question_type_of(state) == "choice" else None
        emit({"event": "judged", **found, "choice": choice})
    elif reply.failure is None:
        update["error"] = {"type": "UnusableAnswerError", "message": str(reply.fault)}
    return update
