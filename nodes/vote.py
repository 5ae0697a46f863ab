"""Majority vote over independent samples (Wang et al. 2023, self-consistency)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import Field

from graph_store.linking import name_key
from nodes.context import settings_of
from nodes.judgement import Verdict, ask_for_verdict
from nodes.llm import Prompt
from nodes.plain_answer import PlainState, ReasoningContext, reasoning_prompt
from nodes.role import emit, step_of
from nodes.state import question_type_of

_BEFORE, _AFTER = "\"'`“”‘’«»「」『』([{¿¡", "\"'`“”‘’«»「」『』)]}.,;:!?。、"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+(?=\S)")


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
    count = min(settings.samples, settings.max_llm_calls or settings.samples)
    prompt = reasoning_prompt(state)
    verdicts = await asyncio.gather(
        *(_draw(number, count, prompt, state, settings) for number in range(count))
    )
    updates = [_update(number, verdict) for number, verdict in enumerate(verdicts)]
    update: dict[str, Any] = {
        key: [item for one in updates for item in one[key]] for key in ("calls", "trace")
    }
    update["samples"] = [{**v.found(), "fault": v.reply.fault} for v in verdicts]
    update["warnings"] = _warnings(count, settings)
    if failures := [one["error"] for one in updates if "error" in one]:
        update["error"] = failures[0]
    elif all(verdict.reply.fault for verdict in verdicts):
        update["error"] = {"type": "UnusableAnswerError", "message": str(verdicts[0].reply.fault)}
    return update


async def _draw(
    number: int, count: int, prompt: Prompt, state: VotingState, settings: VotingContext
) -> Verdict:
    """Ask for a sample, and tell who streams the run what it says."""
    verdict = await ask_for_verdict(
        "reasoner",
        prompt,
        state,
        settings,
        length=settings.reasoning_length,
        sample=number,
        draw=number + 1,
        draws=count,
    )
    if verdict.reply.value is not None:
        said = {**verdict.found(), "text": verdict.reason, "seconds": verdict.reply.seconds}
        emit({"event": "said", "role": "reasoner", "draw": number + 1, "draws": count, **said})
    return verdict


def _warnings(count: int, settings: VotingContext) -> list[str]:
    warnings = []
    if count < settings.samples:
        warnings.append(
            f"only {count} of {settings.samples} samples: the budget allows no more calls"
        )
    if count > 1 and settings.sampling_of("reasoner")[0] == 0:
        warnings.append("at temperature 0 all samples are one draw: their votes say nothing")
    return warnings


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
            key = answer_key(answer) if question_type == "open" else answer
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


def answer_key(text: str) -> str:
    """Return what two open answers share that vote for the same.

    Case, quotes and brackets around the whole, a full stop at its end and an English article at its
    start do not count; a sign, a decimal point and a unit do. Answers that it makes equal are equal
    to exact match too, which knows more (numbers by value).
    """
    folded = name_key(text)
    bare = folded.lstrip(_BEFORE + " ").rstrip(_AFTER + " ")
    return _ARTICLE.sub("", bare) or folded or text


def _sureness(group: Sequence[dict[str, Any]]) -> float:
    # Rounded, for 0.7 + 0.1 is less than 0.4 + 0.4 otherwise, and no tie.
    return round(sum(sample["confidence"] or 0 for sample in group), 6)
