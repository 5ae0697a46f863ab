"""The state of one evidence search: walks, expansions that were put off, the queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from graph_store.model import Triple


@dataclass(frozen=True, slots=True)
class Walk:
    """A path while it is searched for: what scoring needs, without the public wrapping."""

    facts: tuple[Triple, ...]
    end: str
    confidence: float
    text: str
    score: float = 0.0

    @property
    def distance(self) -> float:
        """Hop / Conf (Eq. 6)."""
        return len(self.facts) / self.confidence

    @property
    def rank(self) -> tuple[object, ...]:
        """Sort key, best first; the same order as `Path.rank`."""
        return (
            -self.score,
            -self.confidence,
            len(self.facts),
            tuple(fact.text for fact in self.facts),
            tuple(fact.key for fact in self.facts),
        )


@dataclass(frozen=True, slots=True)
class Expansion:
    """A popped entity whose children are not scored yet: its path set and who was visited then."""

    entity: str
    walks: tuple[Walk, ...]
    step: int


@dataclass
class Search:
    """The state of one search from one topic entity."""

    k: int
    names: dict[str, str]
    queue: list[tuple[float, str, str]] = field(default_factory=list)
    priority: dict[str, float] = field(default_factory=dict)
    paths: dict[str, list[Walk]] = field(default_factory=dict)
    visited: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, list[Expansion]] = field(default_factory=dict)
    put_off: dict[str, int] = field(default_factory=dict)
    scored: set[str] = field(default_factory=set)
    pruned: int = 0
    notes: dict[str, None] = field(default_factory=dict)
