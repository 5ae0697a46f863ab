"""The debate's state and what its roles share: statements, transcripts, agreement."""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator
from typing_extensions import TypedDict

from graph_store.errors import shorten
from nodes.context import GraphContext
from nodes.state import MethodState, choice_shown
from nodes.wording import facts_part, question_part, quoted
from prompts import debate_on_graph as texts

Debater = Literal["proponent", "challenger"]
Action = Literal["stop", "continue", "expand"]
NAMES = {"proponent": "Proponent", "challenger": "Challenger"}
ARGUMENT_SHOWN = 700


class Statement(TypedDict):
    """A debater's reply in one round; `answer` is None when it did not know or was unreadable."""

    role: Debater
    round: int
    k: int | None
    answer: str | None
    facts: list[int]
    argument: str
    fault: str | None


class Decision(TypedDict):
    """What the Decision-Maker chose after a round, and what was done.

    `chosen` is its own word, None when unreadable; `action` what the workflow does; `note` says
    why they differ; `agreement` is whether the debaters' answers are the same string.
    """

    round: int
    k: int | None
    chosen: Action | None
    action: Action
    reason: str
    note: str | None
    agreement: bool


class DebateContext(GraphContext):
    """Settings of Debate-on-Graph; defaults are the paper's (§5.1.3)."""

    ROLES: ClassVar[tuple[str, ...]] = (
        "proponent",
        "challenger",
        "decision_maker",
        "judge",
        "direct_answer",
    )

    max_tokens: int = Field(default=1024, ge=16, description="Tokens a reply may have (§5.1.3).")
    k_levels: tuple[int, ...] = Field(
        default=(1, 3, 5), description="Θ: the evidence levels K, ascending (§4.2)."
    )
    fixed_k: int | None = Field(
        default=None, ge=1, description="One K without expansion (Tables 3 and 4)."
    )
    max_rounds: int = Field(default=3, ge=1, le=10, description="r_max: debate rounds (§4.2).")
    information_asymmetry: bool = Field(
        default=True, description="Only the Proponent sees the evidence (Table 3)."
    )
    use_graph: bool = Field(default=True, description="Search evidence at all (Table 3).")
    debate: bool = Field(
        default=True, description="Debate; without it one call answers from the evidence (Table 3)."
    )

    @field_validator("k_levels")
    @classmethod
    def _ascending(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if not levels or levels[0] < 1 or list(levels) != sorted(set(levels)):
            raise ValueError("must be ascending numbers of at least 1, such as 1,3,5")
        return levels

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels that a run may go through: one when K is fixed."""
        return self.k_levels if self.fixed_k is None else (self.fixed_k,)

    @property
    def may_expand(self) -> bool:
        """Whether the Decision-Maker is offered to expand the evidence."""
        return self.use_graph and self.fixed_k is None and len(self.k_levels) > 1


class DebateState(MethodState, total=False):
    """State of a debate.

    Attributes:
        level: index of the current K in the settings' levels; None before the first search.
        round: the current round, from 1.
        statements: every debater's reply.
        decisions: every decision.
        verdict: the Judge's reply.
    """

    level: int | None
    round: int
    statements: Annotated[list[Statement], operator.add]
    decisions: Annotated[list[Decision], operator.add]
    verdict: dict[str, Any]


def current_k(state: DebateState, settings: DebateContext) -> int | None:
    """Return the K of the evidence at hand; None without evidence search."""
    level = state.get("level")
    return None if level is None else settings.levels[level]


def statements_of(state: DebateState, role: Debater) -> list[Statement]:
    """Return a debater's replies in order of rounds."""
    return [s for s in state.get("statements") or [] if s["role"] == role]


def last_statements(state: DebateState) -> list[Statement]:
    """Return each debater's last reply, the Proponent's first."""
    roles: tuple[Debater, ...] = ("proponent", "challenger")
    return [spoken[-1] for role in roles if (spoken := statements_of(state, role))]


def transcript(
    statements: Sequence[Statement], choices: Sequence[tuple[str, str]], *, cited: bool = False
) -> str:
    """Return statements as delimited prompt text, a choice's words beside its label."""
    return "\n".join(_shown(statement, choices, cited) for statement in statements)


def _shown(statement: Statement, choices: Sequence[tuple[str, str]], cited: bool) -> str:
    argument = quoted(shorten(statement["argument"], ARGUMENT_SHOWN)) or "(no argument)"
    if cited and statement["facts"]:
        argument += f" [facts {', '.join(map(str, statement['facts']))}]"
    answer = "unreadable" if statement["fault"] else (statement["answer"] or "not known")
    answer = choice_shown(answer, choices)
    name = NAMES[statement["role"]]
    return texts.REPLY.format(name=name, answer=quoted(answer), argument=argument)


def evidence_part(state: DebateState, settings: DebateContext) -> str:
    """Return the evidence block; '' when no graph is used."""
    if not settings.use_graph:
        return ""
    facts = facts_part(state.get("evidence") or [], settings.evidence_tokens)
    return texts.FACTS.format(facts=facts) if facts else texts.NO_FACTS


def shared_parts(state: DebateState, settings: DebateContext, *, facts: bool) -> list[str]:
    """Return the parts that roles have in common, the most shared first."""
    parts = [question_part(state)]
    return [*parts, evidence_part(state, settings)] if facts else parts


def agree(statements: Sequence[Statement]) -> bool:
    """Return whether all answers are the same string but for case, blanks and punctuation."""
    answers = {_normal(s["answer"]) for s in statements if s["answer"] and not s["fault"]}
    return len(statements) > 1 and len(answers) == 1 and all(s["answer"] for s in statements)


def _normal(answer: str | None) -> str:
    folded = unicodedata.normalize("NFKC", answer or "").casefold()
    return re.sub(r"[\W_]+", " ", folded).strip()
