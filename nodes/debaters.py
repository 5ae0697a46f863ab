"""What the two debaters have in common: one reply a round, rebutting the opponent's last one."""

from __future__ import annotations

from typing import Any

from nodes.debate import (
    NAMES,
    DebateContext,
    Debater,
    DebateState,
    Statement,
    current_k,
    shared_parts,
    statements_of,
    transcript,
)
from nodes.llm import Prompt
from nodes.replies import statement as statement_form
from nodes.role import consult, emit, step_of
from nodes.state import choices_of, question_type_of
from nodes.wording import language_part
from prompts import debate_on_graph as texts


async def speak(
    role: Debater,
    opponent: Debater,
    instruction: str,
    state: DebateState,
    settings: DebateContext,
    *,
    sees_facts: bool,
) -> dict[str, Any]:
    """Ask a debater for this round's reply (Eq. 10–13).

    From round 2 on it gets its own earlier replies and the opponent's last one. A reply that stays
    unreadable is recorded as such; the debate goes on with the other side.
    """
    number, k = state["round"], current_k(state, settings)
    choices = choices_of(state)
    own, other = statements_of(state, role), statements_of(state, opponent)
    parts = [*shared_parts(state, settings, facts=sees_facts), instruction]
    if own and other:
        parts += [
            texts.EARLIER.format(replies=transcript(own, choices, cited=sees_facts)),
            texts.OPPONENT.format(opponent=NAMES[opponent], reply=transcript(other[-1:], choices)),
            texts.REBUT.format(opponent=NAMES[opponent]),
        ]
    has_facts = sees_facts and settings.use_graph and bool(state.get("evidence"))
    form = statement_form(
        question_type_of(state), choices_of(state), cites=has_facts, length=settings.reply_length
    )
    reply = await consult(
        role,
        Prompt(texts.SYSTEM, [*parts, language_part(state)]),
        form,
        settings,
        round=number,
        k=k,
    )
    said = Statement(
        role=role,
        round=number,
        k=k,
        answer=getattr(reply.value, "answer", None),
        facts=getattr(reply.value, "facts", []),
        argument=getattr(reply.value, "argument", ""),
        fault=reply.fault,
    )
    update = reply.update({"node": role, "step": step_of(), **said})
    if reply.failure is None:
        update["statements"] = [said]
        emit({"event": "said", **said, "text": said["argument"], "seconds": reply.seconds})
    return update
