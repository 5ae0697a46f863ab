"""Whether a stated confidence can be believed: Brier score, calibration error, reliability.

Over the answered questions that state a confidence; right means `accuracy` 1.

- Brier score: mean of (confidence − right)² (Brier 1950); 0 is best, 0.25 is what 50 % always gets.
- Expected calibration error: mean over bins of |accuracy − mean confidence|, weighted by the
  questions in each (Guo et al. 2017, Eq. 3). Bins are of equal width, (low, high], the first with
  0; empty ones weigh nothing. Few questions bias it upwards, the more so the more bins there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evals.estimates import answered
from evals.records import QuestionScore

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """The questions whose confidence lies in (low, high]; means are None when there are none."""

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Calibration:
    """How well stated confidence fits.

    Attributes:
        answered: questions with an answer.
        stated: those of them with a confidence; everything else is over these.
        brier: Brier score; None when no confidence was stated.
        ece: expected calibration error; None when no confidence was stated.
        bins: reliability, by rising confidence.
    """

    answered: int
    stated: int
    brier: float | None
    ece: float | None
    bins: tuple[ReliabilityBin, ...]

    @property
    def coverage(self) -> float | None:
        """The share of answers that state a confidence; None without answers."""
        return self.stated / self.answered if self.answered else None

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return {**asdict(self), "bins": [asdict(b) for b in self.bins], "coverage": self.coverage}


def calibrate(scores: Iterable[QuestionScore], bins: int = BINS) -> Calibration:
    """Return the calibration of stated confidences.

    Args:
        scores: of one method.
        bins: number of bins, at least 1.

    Raises:
        ValueError: `bins` is below 1.
    """
    if bins < 1:
        raise ValueError(f"a calibration needs at least 1 bin, not {bins}")
    given = [score for score in scores if answered(score)]
    pairs = [(s.confidence, s.values["accuracy"]) for s in given if s.confidence is not None]
    parts: list[list[tuple[float, float]]] = [[] for _ in range(bins)]
    for confidence, right in pairs:
        parts[_bin_of(confidence, bins)].append((confidence, right))
    reliability = tuple(_reliability(part, index, bins) for index, part in enumerate(parts))
    n = len(pairs)
    return Calibration(
        answered=len(given),
        stated=n,
        brier=math.fsum((c - right) ** 2 for c, right in pairs) / n if n else None,
        ece=_expected_error(reliability, n) if n else None,
        bins=reliability,
    )


def _bin_of(confidence: float, bins: int) -> int:
    # 0.7 · 10 is 7.000000000000001 in floats, which must not fall into the next bin.
    return min(bins - 1, max(0, math.ceil(round(confidence * bins, 9)) - 1))


def _reliability(part: Sequence[tuple[float, float]], index: int, bins: int) -> ReliabilityBin:
    low, high, n = index / bins, (index + 1) / bins, len(part)
    if not n:
        return ReliabilityBin(low, high, 0, None, None)
    confidence = math.fsum(c for c, _ in part) / n
    return ReliabilityBin(low, high, n, confidence, math.fsum(r for _, r in part) / n)


def _expected_error(reliability: Sequence[ReliabilityBin], n: int) -> float:
    return math.fsum(
        b.n / n * abs(b.accuracy - b.confidence)
        for b in reliability
        if b.accuracy is not None and b.confidence is not None
    )
