"""Majority vote over independent samples (Wang et al. 2023, self-consistency)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import Field

from graph_store.linking import name_key
from nodes.context import settings_of
from nodes.judgement import Verdict, ask_for_verdict
from nodes.plain_answer import PlainState, ReasoningContext, answer_prompt
from nodes.role import emit, step_of
from nodes.state import question_type_of


class VotingContext(ReasoningContext):
    """Settings of self-consistency."""

    samples: int = Field(
        default=5, ge=1, le=50, description="Chains of thought drawn; they are asked for at once."
    )


def _replaced(_known: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return new


class VotingState(PlainState, total=False):
    """State of self-consistency.

    Attributes:
        samples: each sample's answer, confidence, reason and fault, in the order of their seeds.
    """

    samples: Annotated[list[dict[str, Any]], _replaced]


async def draw_samples(state: VotingState, runtime: Runtime[VotingContext]) -> dict[str, Any]:
    """Draw the samples at once, each with a seed of its own; fewer where the budget allows fewer.

    A sample that cannot be read does not vote; when none can, the run fails.
    """
    settings = settings_of(runtime, VotingContext)
    wanted = settings.samples
    count = min(wanted, settings.max_llm_calls or wanted)
    prompt = answer_prompt(state, reasons=True)
    verdicts = await asyncio.gather(
        *(
            ask_for_verdict(
                "reasoner",
                prompt,
                state,
                settings,
                length=settings.reasoning_length,
                sample=number,
            )
            for number in range(count)
        )
    )
    updates = [_update(number, verdict) for number, verdict in enumerate(verdicts)]
    update: dict[str, Any] = {
        key: [item for one in updates for item in one[key]] for key in ("calls", "trace")
    }
    update["samples"] = [{**v.found(), "fault": v.reply.fault} for v in verdicts]
    if failures := [one["error"] for one in updates if "error" in one]:
        update["error"] = failures[0]
    elif all(verdict.reply.fault for verdict in verdicts):
        update["error"] = {"type": "UnusableAnswerError", "message": str(verdicts[0].reply.fault)}
    if count < wanted:
        update["warnings"] = [f"only {count} of {wanted} samples: the budget allows no more calls"]
    return update


def _update(number: int, verdict: Verdict) -> dict[str, Any]:
    entry = {"node": "reasoner", "step": step_of(), "sample": number, **verdict.found()}
    return verdict.reply.update(entry)


def vote(state: VotingState) -> dict[str, Any]:
    """Choose the answer that most samples give; its confidence is its share of all samples.

    Samples without an answer do not vote. Ties go to the higher sum of stated confidences, then to
    the answer that came first.
    """
    if state.get("error"):
        return {}
    samples = state.get("samples") or []
    verdict, votes = majority(samples, question_type_of(state))
    entry = {"node": "vote", "step": step_of(), "votes": votes, **verdict}
    choice = verdict["answer"] if question_type_of(state) == "choice" else None
    emit({"event": "judged", "role": "vote", **verdict, "choice": choice})
    return {"verdict": verdict, "trace": [entry]}


def majority(
    samples: Sequence[dict[str, Any]], question_type: str
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the winning verdict and the votes by answer, most votes first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        if (answer := sample["answer"]) is not None and not sample["fault"]:
            key = name_key(answer) or answer if question_type == "open" else answer
            groups.setdefault(key, []).append(sample)
    ranked = sorted(groups.values(), key=lambda group: (-len(group), -_sureness(group)))
    votes = {group[0]["answer"]: len(group) for group in ranked}
    if not ranked:
        return {"answer": None, "facts": [], "confidence": None, "reason": ""}, votes
    best = ranked[0]
    first = best[0]
    share = len(best) / len(samples)
    return {
        "answer": first["answer"],
        "facts": [],
        "confidence": round(share, 4),
        "reason": first["reason"],
    }, votes


def _sureness(group: Sequence[dict[str, Any]]) -> float:
    return float(sum(sample["confidence"] or 0 for sample in group))
