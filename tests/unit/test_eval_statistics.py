"""Intervals, paired tests and calibration, against formulas and brute force written out here."""

from __future__ import annotations

import itertools
import math
import random
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.calibration import calibrate
from evals.comparison import (
    ComparisonError,
    compare,
    holm,
    mcnemar_exact,
    permutation_test,
    with_holm,
)
from evals.estimates import mean_estimate, summarise
from evals.records import QuestionScore


def score(number, accuracy=1.0, outcome=None, confidence=None, **values):
    outcome = outcome or ("right" if accuracy else "wrong")
    return QuestionScore(f"q{number}", outcome, {"accuracy": accuracy, **values}, confidence)


def of(*accuracies, **more):
    return [score(number, value, **more) for number, value in enumerate(accuracies)]


def wilson(right, n, z=1.959963984540054):
    """Wilson 1927, as in textbooks."""
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return middle - half, middle + half


# Estimates


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (13, 20), (500, 1000)])
def test_rates_have_wilson_intervals(right, n):
    estimate = mean_estimate([1.0] * right + [0.0] * (n - right))
    low, high = wilson(right, n)
    assert estimate.value == pytest.approx(right / n)
    assert estimate.low == pytest.approx(low, abs=1e-9)
    assert estimate.high == pytest.approx(high, abs=1e-9)
    assert estimate.n == n


def test_large_samples_have_the_normal_interval():
    source = random.Random(7)
    values = [source.gauss(5, 2) for _ in range(2000)]
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values) ** 2)
    estimate = mean_estimate(values)
    assert estimate.low == pytest.approx(mean - 1.96 * spread, abs=0.06 * spread)
    assert estimate.high == pytest.approx(mean + 1.96 * spread, abs=0.06 * spread)


def test_skewed_values_have_a_skewed_interval():
    estimate = mean_estimate([1.0] * 18 + [2.0, 30.0])
    assert estimate.high - estimate.value > 2 * (estimate.value - estimate.low) > 0


def test_same_values_in_any_order_have_the_same_interval():
    values = [0.33, 0.1, 0.7, 0.9, 0.25, 0.5]
    assert mean_estimate(values) == mean_estimate(reversed(values)) == mean_estimate(values)


@given(st.lists(st.floats(0, 1), max_size=12))
@settings(max_examples=40, deadline=None)
def test_intervals_are_finite_and_hold_the_mean_without_a_warning(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = mean_estimate(values)
    assert estimate.n == len(values)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@pytest.mark.parametrize("values", [[0.4], [0.4] * 9, [3.5, 3.5]])
def test_equal_values_are_their_own_interval(values):
    estimate = mean_estimate(values)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((values[0],) * 3)


def test_nothing_is_an_estimate_over_no_questions():
    assert mean_estimate([]).n == 0
    metrics = summarise([])
    assert metrics["accuracy"].n == 0
    assert (metrics["accuracy"].low, metrics["accuracy"].high) == (0, 1)


def test_rates_tell_abstained_and_failed_from_wrong():
    scores = [
        *of(1.0, 1.0, 1.0, 0.0),
        score(4, 0.0, "no_answer"),
        score(5, 0.0, "no_answer"),
        score(6, 0.0, "failed"),
        score(7, 0.0, "failed"),
    ]
    metrics = summarise(scores)
    found = {name: (round(e.value, 6), e.n) for name, e in metrics.items() if e.n}
    assert found == {
        "accuracy": (3 / 8, 8),
        "wrong-rate": (1 / 8, 8),
        "abstention-rate": (2 / 8, 8),
        "failure-rate": (2 / 8, 8),
        "accuracy-answered": (3 / 4, 4),
    }


def test_a_metric_is_over_the_questions_that_have_it():
    metrics = summarise([score(0, f1=0.5), score(1), score(2, f1=1.0)])
    assert (metrics["f1"].value, metrics["f1"].n) == (0.75, 2)


# Comparisons


@pytest.mark.parametrize(("b", "c"), [(6, 16), (0, 5), (1, 1), (10, 9), (30, 12)])
def test_mcnemar_is_the_exact_binomial_test(b, c):
    tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c)
    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, 2 * tail))
    assert mcnemar_exact(c, b) == pytest.approx(mcnemar_exact(b, c))


def signs_by_hand(differences):
    """All sign changes; twice the smaller tail, in whole thousandths."""
    whole = [round(1000 * d) for d in differences]
    sums = [
        sum(sign * value for sign, value in zip(signs, whole, strict=True))
        for signs in itertools.product((1, -1), repeat=len(whole))
    ]
    seen = sum(whole)
    above = sum(s >= seen for s in sums) / len(sums)
    below = sum(s <= seen for s in sums) / len(sums)
    return min(1.0, 2 * min(above, below))


@given(st.lists(st.integers(-10, 10).map(lambda tenths: tenths / 10), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_the_permutation_test_of_few_questions_is_exact(differences):
    assert permutation_test(differences) == pytest.approx(signs_by_hand(differences))


def test_the_permutation_test_of_many_questions_is_near_the_normal_one():
    source = random.Random(5)
    differences = [source.gauss(0.1, 1) for _ in range(150)]
    z = sum(differences) / math.sqrt(sum(d * d for d in differences))
    normal = math.erfc(abs(z) / math.sqrt(2))
    found = permutation_test(differences)
    assert found == pytest.approx(normal, abs=0.02)
    assert found == permutation_test(differences[::-1])


def test_methods_that_never_differ_differ_by_nothing():
    same = compare(of(1.0, 0.0, 1.0), of(1.0, 0.0, 1.0), "accuracy")
    assert same.p_value == 1
    assert (same.higher_a, same.higher_b) == (0, 0)
    assert (same.difference.value, same.difference.low, same.difference.high) == (0, 0, 0)
    assert permutation_test([0.0, 0.0]) == 1


def test_right_and_wrong_are_compared_by_their_discordant_pairs():
    a, b = of(*[1.0] * 9, 0.0, 1.0, 0.0), of(*[0.0] * 9, 1.0, 1.0, 0.0)
    compared = compare(a, b, "accuracy")
    assert compared.test == "mcnemar-exact"
    assert (compared.higher_a, compared.higher_b, compared.n) == (9, 1, 12)
    assert compared.p_value == pytest.approx(2 * 11 / 2**10)
    assert compared.difference.value == pytest.approx(8 / 12)
    assert 0 < compared.difference.low < 8 / 12 < compared.difference.high <= 1


def test_fractions_are_compared_by_permutation():
    a = [score(n, f1=value) for n, value in enumerate([0.5, 1.0, 0.7, 0.2])]
    b = [score(n, f1=value) for n, value in enumerate([0.4, 0.5, 0.7, 0.1])]
    compared = compare(a, b, "f1")
    assert compared.test == "permutation"
    assert compared.p_value == pytest.approx(2 / 8)
    assert compared.mean_a - compared.mean_b == pytest.approx(compared.difference.value)


def test_only_common_questions_are_compared_and_the_others_counted():
    a = [score(n, 1.0) for n in range(5)]
    b = [score(n, 0.0) for n in range(3, 10)]
    compared = compare(a, b, "accuracy")
    assert (compared.n, compared.left_out_a, compared.left_out_b) == (2, 3, 5)
    assert (compared.mean_a, compared.mean_b) == (1, 0)


def test_pairing_is_by_question_not_by_place():
    a = of(1.0, 0.0, 1.0, 0.0)
    assert compare(a, a[::-1], "accuracy").difference.value == 0
    assert compare(a, a[::-1], "accuracy").higher_a == 0


def test_rates_can_be_compared():
    a = [score(0, 0.0, "no_answer"), score(1, 0.0)]
    b = [score(0, 0.0), score(1, 0.0)]
    assert compare(a, b, "abstention-rate").difference.value == 0.5


def test_nothing_in_common_is_refused():
    with pytest.raises(ComparisonError, match="1 and 2 questions, none in common"):
        compare([score(1)], [score(2), score(3)], "accuracy")
    with pytest.raises(ComparisonError, match="no question has 'f2'"):
        compare(of(1.0), of(1.0), "f2")


def test_a_question_scored_twice_is_refused():
    with pytest.raises(ComparisonError, match="'q1' has two scores"):
        compare([score(1), score(1)], [score(1)], "accuracy")


def test_holm_gives_the_values_of_r():
    # p.adjust(c(.01, .04, .03, .005), "holm")
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_is_put_into_comparisons():
    one = compare(of(1.0, 1.0, 1.0), of(0.0, 0.0, 0.0), "accuracy")
    other = compare(of(1.0, 1.0), of(0.0, 1.0), "accuracy")
    corrected = with_holm([other, one])
    assert [c.p_value for c in corrected] == [other.p_value, one.p_value] == [1.0, 0.25]
    assert [c.p_holm for c in corrected] == [1.0, 0.5]
    assert corrected[1].to_json()["difference"] == {"value": 1.0, "low": 1.0, "high": 1.0, "n": 3}


# Calibration


def calibration_by_hand(pairs, bins):
    """Brier score and expected calibration error with one loop a bin."""
    brier = sum((c - r) ** 2 for c, r in pairs) / len(pairs)
    error = 0.0
    for k in range(bins):
        inside = [
            (c, r) for c, r in pairs if k < round(c * bins, 9) <= k + 1 or (k == 0 and c == 0)
        ]
        if inside:
            stated = sum(c for c, _ in inside) / len(inside)
            right = sum(r for _, r in inside) / len(inside)
            error += abs(stated - right) * len(inside) / len(pairs)
    return brier, error


@given(
    st.lists(
        st.tuples(st.integers(0, 100).map(lambda p: p / 100), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 15),
)
def test_calibration_is_that_of_the_definition(pairs, bins):
    fit = calibrate([score(n, r, confidence=c) for n, (c, r) in enumerate(pairs)], bins)
    brier, error = calibration_by_hand(pairs, bins)
    assert fit.brier == pytest.approx(brier)
    assert fit.ece == pytest.approx(error)
    assert sum(b.n for b in fit.bins) == fit.stated == len(pairs)


def test_confidences_on_an_edge_belong_to_the_bin_below():
    scores = [score(n, confidence=n / 10) for n in range(11)]
    counts = [b.n for b in calibrate(scores).bins]
    assert counts == [2, *[1] * 9]


def test_only_answers_with_a_confidence_are_calibrated():
    scores = [
        score(0, 1.0, confidence=0.8),
        score(1, 0.0, confidence=0.8),
        score(2, 1.0),
        score(3, 0.0, "no_answer"),
    ]
    fit = calibrate(scores)
    assert (fit.answered, fit.stated, fit.coverage) == (3, 2, pytest.approx(2 / 3))
    assert fit.brier == pytest.approx((0.04 + 0.64) / 2)
    assert fit.ece == pytest.approx(0.3)
    full = [b for b in fit.bins if b.n]
    assert [(b.low, b.high, b.confidence, b.accuracy) for b in full] == [
        (0.7, 0.8, pytest.approx(0.8), 0.5)
    ]


def test_nothing_stated_is_not_calibrated():
    fit = calibrate(of(1.0))
    assert (fit.brier, fit.ece, fit.coverage) == (None, None, 0)
    assert calibrate([]).coverage is None
    with pytest.raises(ValueError, match="at least 1 bin"):
        calibrate([], bins=0)
