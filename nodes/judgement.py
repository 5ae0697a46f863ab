"""Asking for a verdict: what the Judge, the direct answer and the baselines share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodes.context import MethodContext
from nodes.llm import Prompt
from nodes.replies import verdict as verdict_form
from nodes.role import Consultation, consult, emit, step_of
from nodes.state import Question, choices_of, question_type_of
from nodes.wording import language_part
from prompts.debate_on_graph import SYSTEM


@dataclass(frozen=True)
class Verdict:
    """An answer with its confidence (0 to 1), reason and cited facts, and how it was had."""

    reply: Consultation[Any]
    answer: str | None
    facts: list[int]
    confidence: float | None
    reason: str

    def found(self) -> dict[str, Any]:
        """Return the verdict as state and trace have it."""
        return {
            "answer": self.answer,
            "facts": self.facts,
            "confidence": self.confidence,
            "reason": self.reason,
        }


async def ask_for_verdict(
    role: str,
    prompt: Prompt,
    state: Question,
    settings: MethodContext,
    *,
    cites: bool = False,
    length: int | None = None,
    sample: int = 0,
    **where: Any,
) -> Verdict:
    """Ask a role for an answer.

    Args:
        role: names the role.
        prompt: what it is asked.
        state: the question.
        settings: the run's settings.
        cites: whether numbers of facts are asked for.
        length: characters of the reason, 0 for none; default the setting `reply_length`.
        sample: number of this draw among several of the same prompt.
        where: goes with the `started` event.
    """
    form = verdict_form(
        question_type_of(state),
        choices_of(state),
        cites=cites,
        length=settings.reply_length if length is None else length,
    )
    reply = await consult(role, prompt, form, settings, sample=sample, **where)
    percent = getattr(reply.value, "confidence", None)
    return Verdict(
        reply,
        answer=getattr(reply.value, "answer", None),
        facts=getattr(reply.value, "facts", []),
        confidence=None if percent is None else percent / 100,
        reason=getattr(reply.value, "reason", ""),
    )


async def judge_from(
    role: str,
    parts: list[str],
    state: Question,
    settings: MethodContext,
    *,
    cites: bool = False,
    where: dict[str, Any] | None = None,
    system: str = SYSTEM,
    length: int | None = None,
) -> dict[str, Any]:
    """Return the state update with `verdict`, or with `error` when there is none."""
    where = where or {}
    prompt = Prompt(system, [*parts, language_part(state)])
    verdict = await ask_for_verdict(
        role, prompt, state, settings, cites=cites, length=length, **where
    )
    found, reply = verdict.found(), verdict.reply
    update = reply.update({"node": role, "step": step_of(), **where, **found})
    if reply.value is not None:
        update["verdict"] = found
        announce(role, verdict, state)
    elif reply.failure is None:
        update["error"] = {"type": "UnusableAnswerError", "message": str(reply.fault)}
    return update


def announce(role: str, verdict: Verdict, state: Question) -> None:
    """Send the `judged` event."""
    choice = verdict.answer if question_type_of(state) == "choice" else None
    emit({"event": "judged", "role": role, **verdict.found(), "choice": choice})
