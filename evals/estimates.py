"""Means with 95 % intervals, over questions.

- Values that are all 0 or 1 (accuracy, rates): Wilson's score interval (Wilson 1927), which holds
  for small n and at 0 % and 100 %, where a bootstrap has no width.
- Other values (precision, recall, F1, costs): bias-corrected and accelerated bootstrap of the mean
  (Efron 1987) with a fixed seed, so that the same values, in any order, have the same interval.
  Where that is not defined (all values are equal, n = 1) the interval is the value itself.
- n = 0: value and low are 0, high is the most that is possible (1 for rates, 0 for costs); `n` says
  that nothing is known.

Rates have all questions in the denominator, abstained and failed ones too; only
`accuracy-answered` is over the questions that were answered.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from evals.metrics import METRICS
from evals.records import Estimate, QuestionScore

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 9_999
SEED = 0
BATCH_VALUES = 5_000_000
"""Values that are resampled at once: bounds the memory to some 100 MB."""

RATES: Mapping[str, Callable[[QuestionScore], float | None]] = {
    "accuracy-answered": lambda s: s.values.get("accuracy") if answered(s) else None,
    "wrong-rate": lambda s: float(s.outcome == "wrong"),
    "abstention-rate": lambda s: float(s.outcome == "no_answer"),
    "failure-rate": lambda s: float(s.outcome == "failed"),
}
"""What is told from the outcome; None where a question does not count."""


def answered(score: QuestionScore) -> bool:
    """Return whether there was an answer, right or wrong."""
    return score.outcome in ("right", "wrong")


def value_of(score: QuestionScore, metric: str) -> float | None:
    """Return a question's value of a metric or rate; None where it does not apply."""
    return RATES[metric](score) if metric in RATES else score.values.get(metric)


def summarise(scores: Iterable[QuestionScore]) -> dict[str, Estimate]:
    """Return every metric's mean, then the rates, each over the questions it applies to."""
    scores = list(scores)
    further = dict.fromkeys(name for score in scores for name in score.values)
    names = dict.fromkeys([*METRICS, *further, *RATES])
    return {name: _share(value_of(score, name) for score in scores) for name in names}


def _share(values: Iterable[float | None]) -> Estimate:
    known = [value for value in values if value is not None]
    return mean_estimate(known) if known else Estimate(0.0, 0.0, 1.0, 0)


def mean_estimate(values: Iterable[float]) -> Estimate:
    """Return the mean of finite values, in their unit, with its interval."""
    ordered = sorted(float(value) for value in values)
    n = len(ordered)
    if not ordered:
        return Estimate(0.0, 0.0, 0.0, 0)
    mean = math.fsum(ordered) / n
    if set(ordered) <= {0.0, 1.0}:
        return Estimate(mean, *_wilson(round(mean * n), n), n)
    return Estimate(mean, *bootstrap_interval(ordered, mean), n)


def _wilson(right: int, n: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    interval = binomtest(right, n).proportion_ci(CONFIDENCE_LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_interval(values: Sequence[float], mean: float) -> tuple[float, float]:
    """Return the interval of the mean of `values`; (mean, mean) where they are all equal."""
    if min(values) == max(values):
        return mean, mean
    import numpy as np
    from scipy.stats import bootstrap

    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is degenerate is told by a bound of NaN
            interval = bootstrap(
                (np.asarray(values),),
                np.mean,
                confidence_level=CONFIDENCE_LEVEL,
                n_resamples=RESAMPLES,
                batch=max(1, BATCH_VALUES // len(values)),
                method=method,
                rng=np.random.default_rng(SEED),
            ).confidence_interval
        if math.isfinite(interval.low) and math.isfinite(interval.high):
            break
    # Rounding may put a bound a hair on the wrong side of a mean that nearly all values have.
    return min(float(interval.low), mean), max(float(interval.high), mean)
