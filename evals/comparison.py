"""Two methods on the same questions: how much they differ, and whether chance explains it.

- 0/1 metrics: McNemar's exact test (McNemar 1947): of the questions that only one method has right,
  those of one method are binomial with 1/2 if the methods are equally good.
- Other metrics: paired permutation test of the mean difference; each question's difference keeps or
  changes its sign, in all ways while at most 13 questions differ, else in 9,999 random ways.
- The difference's 95 % interval resamples questions, not methods (paired bootstrap, BCa).
- Many comparisons: Holm's step-down correction (Holm 1979).

All p-values are two-sided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evals.estimates import BATCH_VALUES, RESAMPLES, SEED, bootstrap_interval, value_of
from evals.records import Estimate, QuestionScore

_UNITS = 10**9
"""Differences are compared in whole billionths, so that rounding never breaks a tie."""


class ComparisonError(ValueError):
    """Two sets of scores cannot be compared; the message says why."""


@dataclass(frozen=True)
class PairedComparison:
    """Method a held against method b.

    Attributes:
        metric: what is compared.
        n: questions that both have; all numbers are over these.
        left_out_a: questions of a that b has not.
        left_out_b: questions of b that a has not.
        mean_a: mean of a.
        mean_b: mean of b.
        difference: mean of a − b, with its interval.
        higher_a: questions where a has more; for 0/1 metrics the discordant pairs of one kind.
        higher_b: questions where b has more.
        test: the test that gave the p-value.
        p_value: how likely a difference at least as large is if the methods are equally good.
        p_holm: the same, corrected for all comparisons made together (see `with_holm`).
    """

    metric: str
    n: int
    left_out_a: int
    left_out_b: int
    mean_a: float
    mean_b: float
    difference: Estimate
    higher_a: int
    higher_b: int
    test: Literal["mcnemar-exact", "permutation"]
    p_value: float
    p_holm: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the public JSON form."""
        return {**self.__dict__, "difference": self.difference.to_json()}


def compare(
    scores_a: Iterable[QuestionScore], scores_b: Iterable[QuestionScore], metric: str
) -> PairedComparison:
    """Compare two methods on the questions that both have.

    Args:
        scores_a: one score a question.
        scores_b: the same of the other method.
        metric: a key of `QuestionScore.values`, or a rate of `evals.estimates`.

    Raises:
        ComparisonError: no question is common, or one comes twice.
    """
    a, b = _by_question(scores_a, metric), _by_question(scores_b, metric)
    common = sorted(a.keys() & b.keys())
    if not common:
        raise ComparisonError(
            f"no question has '{metric}' in both: {len(a)} and {len(b)} questions, none in common"
        )
    differences = [a[key] - b[key] for key in common]
    higher_a, higher_b = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    binary = all(value in (0, 1) for key in common for value in (a[key], b[key]))
    return PairedComparison(
        metric=metric,
        n=len(common),
        left_out_a=len(a) - len(common),
        left_out_b=len(b) - len(common),
        mean_a=sum(a[key] for key in common) / len(common),
        mean_b=sum(b[key] for key in common) / len(common),
        difference=_difference(differences),
        higher_a=higher_a,
        higher_b=higher_b,
        test="mcnemar-exact" if binary else "permutation",
        p_value=mcnemar_exact(higher_a, higher_b) if binary else permutation_test(differences),
    )


def _by_question(scores: Iterable[QuestionScore], metric: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for score in scores:
        value = value_of(score, metric)
        if score.id in values:
            raise ComparisonError(f"the question '{score.id}' has two scores of one method")
        if value is not None:
            values[score.id] = value
    return values


def _difference(differences: Sequence[float]) -> Estimate:
    mean = sum(differences) / len(differences)
    return Estimate(mean, *bootstrap_interval(sorted(differences), mean), len(differences))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the p-value of McNemar's exact test; 1 when the methods never differ.

    Args:
        only_a: questions that only method a has right.
        only_b: questions that only method b has right.
    """
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)


def permutation_test(differences: Sequence[float]) -> float:
    """Return the p-value of the paired permutation test of a mean difference of 0."""
    import numpy as np

    units = np.rint(np.asarray(differences, dtype=float) * _UNITS).astype(np.int64)
    units = np.sort(units[units != 0])  # equal pairs change no sum
    if units.size < 2:
        return 1.0  # the sign of one difference tells nothing
    from scipy.stats import permutation_test as permute

    tested = permute(
        (units,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, BATCH_VALUES // units.size),
        rng=np.random.default_rng(SEED),
    )
    return float(min(tested.pvalue, 1.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's corrected p-values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected


def with_holm(comparisons: Sequence[PairedComparison]) -> list[PairedComparison]:
    """Return the comparisons with `p_holm` set: corrected for all of them together."""
    corrected = holm([comparison.p_value for comparison in comparisons])
    return [
        replace(comparison, p_holm=p) for comparison, p in zip(comparisons, corrected, strict=True)
    ]
