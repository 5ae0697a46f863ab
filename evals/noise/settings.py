"""How a graph is corrupted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Corrupted = Literal["tail", "relation", "both"]
Tails = Literal["same-relation", "uniform"]
Confidence = Literal["keep", "lower", "remove"]


class NoiseError(ValueError):
    """A graph cannot be corrupted as it was asked for; the message names the option or share."""


@dataclass(frozen=True)
class NoiseSettings:
    """How facts are corrupted.

    Attributes:
        corrupt: what of a fact is replaced: its `tail`, its `relation`, or with `both` the one or
            the other by the toss of a coin (the other one where only that leaves a false fact).
        tails: where replacement tails come from. `same-relation`: the tails that the relation has
            elsewhere, each as likely; such facts look plausible, so that neither their types nor
            their words give them away. `uniform`: all entities.
        confidence: `keep`: a corrupted fact is believed as much as the one that it replaces, so
            confidences are of no help. `lower`: the confidence times a factor drawn evenly from
            `factor`, so they are. `remove`: 1.0 for every fact of the graph.
        factor: (lowest, highest), both in (0, 1]; of `lower`.
        floor: confidences are not lowered further than this, in (0, 1]; of `lower`.
        seed: of everything that is drawn.

    Raises:
        NoiseError: a value is not one of these.
    """

    corrupt: Corrupted = "tail"
    tails: Tails = "same-relation"
    confidence: Confidence = "keep"
    factor: tuple[float, float] = (0.2, 0.6)
    floor: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        allowed = {"corrupt": Corrupted, "tails": Tails, "confidence": Confidence}
        for name, values in allowed.items():
            if getattr(self, name) not in get_args(values):
                told = ", ".join(get_args(values))
                raise NoiseError(f"{name} is '{getattr(self, name)}', not one of {told}")
        low, high = self.factor
        if not 0 < low <= high <= 1:
            raise NoiseError(f"factor is {low:g}:{high:g}, not LOW:HIGH in (0, 1]")
        if not 0 < self.floor <= 1:
            raise NoiseError(f"floor is {self.floor:g}, not in (0, 1]")

    def to_json(self) -> dict[str, Any]:
        """Return the settings for a record; those of `lower` only where they were used."""
        values = {**asdict(self), "factor": list(self.factor)}
        unused = () if self.confidence == "lower" else ("factor", "floor")
        return {name: value for name, value in values.items() if name not in unused}
