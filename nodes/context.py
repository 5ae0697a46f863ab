"""The settings that every method shares; each method's context class adds its own.

A setting is declared once, here or in the method's class, with its default, bounds, unit and
source; the command line, the server's schema and the documentation are made from it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


class RoleSettings(BaseModel):
    """Sampling settings of one role, where they differ from the method's."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=16)
    seed: int | None = None


def default_model() -> str:
    """Return `GRAPHMOOT_MODEL`, else OpenAI's when its key is set, else the embedded model."""
    configured = os.environ.get("GRAPHMOOT_MODEL")
    if configured:
        return configured
    return "openai:gpt-4o-mini" if os.environ.get("OPENAI_API_KEY") else "local"


def default_graph() -> str:
    """Return `GRAPHMOOT_GRAPH`, else the bundled sample graph."""
    return os.environ.get("GRAPHMOOT_GRAPH") or "sample"


class MethodContext(BaseModel):
    """Settings of any method."""

    model_config = ConfigDict(extra="forbid", title="Settings")

    ROLES: ClassVar[tuple[str, ...]] = ()
    """The roles that a method has; a setting for any other is refused."""

    graph: str = Field(
        default_factory=default_graph,
        description="Store location. Default: GRAPHMOOT_GRAPH, else the bundled sample.",
    )
    model: str = Field(
        default_factory=default_model,
        description="Model of all roles: local, local:FILE.gguf, openai:NAME, vllm:NAME@URL, "
        "NAME@URL. Default: GRAPHMOOT_MODEL, else openai when OPENAI_API_KEY is set, else local.",
    )
    role_models: dict[str, str] = Field(
        default_factory=dict, description="Model of single roles, by role name."
    )
    temperature: float = Field(default=0.5, ge=0, le=2, description="Sampling temperature.")
    max_tokens: int = Field(default=1024, ge=16, description="Tokens a reply may have.")
    seed: int | None = Field(default=0, description="Sampling seed; empty for none.")
    reply_length: int = Field(
        default=240,
        ge=40,
        description="Characters that an argument may have: more for strong models, less for speed.",
    )
    role_settings: dict[str, RoleSettings] = Field(
        default_factory=dict,
        description="temperature, max_tokens and seed of single roles, by role name.",
    )
    timeout_seconds: float = Field(default=600, gt=0, description="Longest wait for one reply.")
    max_retries: int = Field(
        default=4, ge=0, le=20, description="Retries after 429, 5xx, timeouts and lost connections."
    )
    response_cache: str | None = Field(
        default=None, description="SQLite file that keeps replies by prompt, model and parameters."
    )
    max_llm_calls: int | None = Field(
        default=None, ge=1, description="Budget: model calls; then the method concludes."
    )
    max_total_tokens: int | None = Field(
        default=None, ge=1, description="Budget: tokens read and written; then it concludes."
    )
    max_seconds: float | None = Field(
        default=None, gt=0, description="Budget: seconds since the start; then it concludes."
    )

    @field_validator("role_models", "role_settings")
    @classmethod
    def _known_roles(cls, by_role: dict[str, Any]) -> dict[str, Any]:
        for role in by_role:
            if cls.ROLES and role not in cls.ROLES:
                raise ValueError(f"there is no role '{role}'; there are {', '.join(cls.ROLES)}")
        return by_role

    def model_of(self, role: str) -> str:
        """Return the model specification of a role."""
        return self.role_models.get(role, self.model)

    def sampling_of(self, role: str) -> tuple[float, int, int | None]:
        """Return (temperature, max_tokens, seed) of a role."""
        own = self.role_settings.get(role, RoleSettings())
        return (
            self.temperature if own.temperature is None else own.temperature,
            self.max_tokens if own.max_tokens is None else own.max_tokens,
            self.seed if own.seed is None else own.seed,
        )


class GraphContext(MethodContext):
    """Settings of a method that searches evidence (METHODS §1.1)."""

    width: int = Field(default=3, ge=1, description="W: neighbours kept in an expansion (Eq. 8).")
    max_distance: float = Field(
        default=3.0, ge=0, description="D_max: farthest entity distance Hop/Conf visited (Eq. 6)."
    )
    alpha: float = Field(
        default=1.0, ge=0, description="Weight of the confidence in a path's score (Eq. 5)."
    )
    direction: Literal["both", "out"] = Field(
        default="both", description="Walk facts both ways, or only from head to tail."
    )
    ignore_confidence: bool = Field(
        default=False, description="Take every confidence as 1.0 (the variant DoG-E)."
    )
    similarity: str = Field(
        default="all-MiniLM-L6-v2",
        description="Embedding model for semantic relevance: a sentence-transformers name.",
    )
    max_candidates: int = Field(
        default=4_000, ge=1, description="Paths scored in one expansion; more is approximate."
    )
    max_texts: int = Field(
        default=20_000, ge=1, description="Texts scored in one search; then it ends, approximate."
    )
    search_ahead: bool = Field(
        default=True, description="Search the next K in the background while debaters speak."
    )
    link_choices: bool = Field(
        default=False, description="Take the choices' entities as topic entities too."
    )
    max_topics: int = Field(
        default=3, ge=1, description="Topic entities looked for in a question that names none."
    )
    evidence_tokens: int = Field(
        default=800, ge=50, description="Tokens of evidence in a prompt; the best facts stay."
    )


C = TypeVar("C", bound=MethodContext)


def settings_of(runtime: Runtime[Any], kind: type[C]) -> C:
    """Return a run's settings; a caller that gives no context gets the defaults."""
    context = runtime.context
    if context is None:
        return kind()
    if isinstance(context, kind):
        return context
    if isinstance(context, dict):
        return kind(**context)
    raise TypeError(f"the context is a {type(context).__name__}, not a {kind.__name__}")
