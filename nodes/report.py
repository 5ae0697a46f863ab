"""The last node of every method: the public result document."""

from __future__ import annotations

from typing import Any

from nodes.budget import elapsed_seconds
from nodes.link_topics import unknown_topic
from nodes.state import MethodState, question_type_of
from nodes.usage import summarise


def empty_result(method: str, status: str, error: Exception) -> dict[str, Any]:
    """Return the result document of a question that a method did not get to work on."""
    message = " ".join(str(error).split()) or type(error).__name__
    return {
        "status": status,
        "answer": None,
        "answers": [],
        "choice": None,
        "confidence": None,
        "evidence": [],
        "method": method,
        "topic_entities": [],
        "ended": {"by": "failure"},
        "trace": [],
        "usage": summarise([]),
        "seconds": 0.0,
        "warnings": [],
        "error": {"type": type(error).__name__, "message": message},
    }


def build_result(
    state: MethodState,
    method: str,
    *,
    answer: str | None,
    confidence: float | None,
    supporting: set[int],
    ended: dict[str, Any],
) -> dict[str, Any]:
    """Return the result document that `graphmoot ask --json` prints.

    Args:
        state: the final state.
        method: the method's name.
        answer: a choice's label, true/false, or text; None when it is not known.
        confidence: stated confidence in the answer, 0 to 1.
        supporting: numbers (from 1) of the evidence's facts that the answer rests on.
        ended: how the run ended, in the method's own terms.
    """
    error = state.get("error")
    choices = state.get("choices") or {}
    choice = answer if question_type_of(state) == "choice" and answer in choices else None
    shown = choices[choice] if choice is not None else answer
    status = "answered" if shown is not None else "no_answer"
    if error and not unknown_topic(dict(error)):
        status, shown, choice, confidence = "failed", None, None, None
    return {
        "status": status,
        "answer": shown,
        "answers": [shown] if shown is not None else [],
        "choice": choice,
        "confidence": confidence if shown is not None else None,
        "evidence": [
            {**fact, "supports": number in supporting}
            for number, fact in enumerate(state.get("evidence") or [], 1)
        ],
        "method": method,
        "topic_entities": [
            {"mention": t["mention"], "entity": t["entity"], "name": t["name"], "score": t["score"]}
            for t in state.get("topics") or []
        ],
        "ended": ended,
        "trace": state.get("trace") or [],
        "usage": summarise(state.get("calls") or []),
        "seconds": round(elapsed_seconds(state.get("trace") or []), 3),
        "warnings": list(dict.fromkeys(state.get("warnings") or [])),
        "error": dict(error) if error else None,
    }
