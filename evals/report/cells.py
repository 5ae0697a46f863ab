"""A cell of a report: one configuration on one data set with one model, and its scored answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.records import Outcome, ResultLine

if TYPE_CHECKING:
    from evals.records import QuestionScore
    from nodes.question_file import GoldQuestion

Identity = dict[str, str]
"""All that a configuration's answers depend on besides its label, data set and model."""

ORDER: tuple[Outcome, ...] = ("right", "wrong", "no_answer", "failed")


@dataclass(frozen=True)
class Answered:
    """A question's result line, with what it is held against and how it fared."""

    line: ResultLine
    gold: GoldQuestion
    linking: str
    score: QuestionScore
    folder: Path


@dataclass
class ReportCell:
    """One configuration on one data set with one model, merged over runs.

    Attributes:
        label: as the run calls it.
        title: the label, and what sets it apart from others of that label.
        dataset: name.
        model: specification.
        manifest: of the run that it was first met in.
        described: the cell's entry in that manifest.
        identity: see `Identity`.
        asked: ids of the questions that the runs were to ask.
        rows: by question id, in the order of work.
    """

    label: str
    title: str
    dataset: str
    model: str
    manifest: Mapping[str, Any]
    described: Mapping[str, Any]
    identity: Identity
    asked: set[str] = field(default_factory=set)
    rows: dict[str, Answered] = field(default_factory=dict)

    @property
    def scores(self) -> list[QuestionScore]:
        """The scores in the order of work."""
        return [row.score for row in self.rows.values()]

    @property
    def context(self) -> Mapping[str, Any]:
        """All settings."""
        return self.described.get("context") or {}

    @property
    def model_name(self) -> str:
        """The model's specification, with the name that its server gave where that tells more."""
        own_roles = self.context.get("role_models") or {}
        names = {
            str(call["model"])
            for row in self.rows.values()
            for call in row.line["calls"]
            if call["role"] not in own_roles
        }
        told = sorted(name for name in names if name and name not in self.model)
        return f"{self.model} ({', '.join(told)})" if told else self.model

    @property
    def noise(self) -> Mapping[str, Any] | None:
        """How the graph was corrupted; None for a graph as it came."""
        return (self.manifest.get("graph") or {}).get("noise") or None

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many questions ended how."""
        return Counter(row.score.outcome for row in self.rows.values())
