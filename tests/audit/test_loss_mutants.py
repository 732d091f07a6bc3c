"""A loss, a sensitivity or a number that is not the one of what runs is caught: each check, and what it catches."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from accord.accounting import ConcentratedLoss, GaussianLoss, PrivacyAccountant, PrivacyLoss, loss_of
from accord.core.exact import to_binary_fraction, to_fraction
from accord.core.release import Composed, leaves
from accord.marginals import Column, Domain, MarginalLearner
from accord.marginals.engine import WHOLE
from accord.mechanisms import (
    AboveThreshold,
    BestOfDraws,
    ClampedSum,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Laplace,
    LevelSelection,
    PermuteAndFlip,
    StableMode,
    ThresholdedCounts,
    TopK,
)
from accord.privacy import ApproxDP, PrivacyFilter, PureDP, Sensitivity

DELTA = 1e-6


def spent_delta(moves: tuple[int, ...], *, sigma: int, releases: int, epsilon: float) -> float:
    """The delta of vectors whose cells move by ``moves``, by convolution: the loss is linear in the sum of the noises.

    A cell that moves by m has loss ``(m^2 - 2 m z) / (2 sigma^2)``, so all together it is ``(R - 2 s) / (2 sigma^2)``
    with R the sum of the squares and s that of the products ``m z``. No number is shared with accord.
    """
    total = np.ones(1)
    reach = 12 * sigma
    for move in moves * releases:
        weights = np.zeros(2 * reach * move + 1)
        z = np.arange(-reach, reach + 1)
        weights[::move] = np.exp(-(z**2) / (2 * sigma**2))
        total = np.convolve(total, weights / weights.sum())
    sums = np.arange(len(total)) - len(total) // 2
    losses = (releases * sum(move**2 for move in moves) - 2 * sums) / (2 * sigma**2)
    return float(np.sum(total * -np.expm1(np.minimum(epsilon - losses, 0.0))))


def worst_delta(losses: list[tuple[PrivacyLoss, int]], *, square: int, sigma: int) -> float:
    """The largest delta, over all ways in which up to 4 integers move by this squared distance, at the stated total."""
    accountant = PrivacyAccountant()
    for loss, times in losses:
        accountant.charge(loss, times=times)
    total: Any = accountant.total(delta="1e-6")
    releases = sum(times for _, times in losses)
    shapes = [
        moves
        for cells in range(1, 5)
        for moves in combinations_with_replacement(range(1, 3), cells)
        if sum(move**2 for move in moves) <= square
    ]
    return max(spent_delta(s, sigma=sigma, releases=releases, epsilon=float(total.epsilon)) for s in shapes)


HISTOGRAM = DiscreteGaussian(sensitivity="1.4143", sigma=20)
FOUR = DiscreteGaussian(sensitivity=2, sigma=20)


@pytest.mark.parametrize("releases", [1, 20])
def test_A2_the_total_of_a_gaussian_holds_however_many_cells_move(releases: int) -> None:
    assert 1e-8 < worst_delta([(loss_of(HISTOGRAM), releases)], square=2, sigma=20) <= DELTA
    assert 1e-8 < worst_delta([(loss_of(FOUR), releases)], square=4, sigma=20) <= DELTA


@pytest.mark.parametrize("releases", [1, 20])
def test_A2_the_loss_of_one_integer_for_a_histogram_is_caught(releases: int) -> None:
    """What 0.1.0 looked up: sqrt(2) rounded down to a shift of 1, and no second cell."""
    mutant = loss_of(HISTOGRAM, dimension=1)
    assert worst_delta([(mutant, releases)], square=2, sigma=20) > 50 * DELTA


def test_A2_the_accountant_charges_no_less_than_the_mechanism_states() -> None:
    """0.189 was charged where the mechanism's own release of an array says 0.2975."""
    accountant = PrivacyAccountant()
    accountant.charge(HISTOGRAM)
    stated = HISTOGRAM.release([5, 7, 9], delta="1e-6").guarantee
    assert stated == HISTOGRAM.guarantee_at("1e-6")
    for total in (accountant.total(delta="1e-6"), accountant.bound(delta="1e-6")):
        assert Fraction("0.297") < stated.epsilon <= total.epsilon * Fraction(1001, 1000)
        assert spent_delta((1, 1), sigma=20, releases=1, epsilon=float(total.epsilon)) <= DELTA
    single = PrivacyAccountant()
    single.charge(HISTOGRAM, dimension=1)
    assert Fraction("0.188") < single.total(delta="1e-6").epsilon < Fraction("0.190")


def tenths_add_up(read: Callable[[Any], Fraction]) -> bool:
    """Say whether ten rounds of the float 0.1 spend 1, and mechanism and guarantee work with the same number."""
    guarantee, scale = read(0.1), 1 / read(0.1)
    return sum([guarantee] * 10) <= read(1.0) and 1 / scale == Fraction(guarantee) == read("0.1") == read(
        np.float32(0.1)
    )


def test_A14_floats_are_read_once_and_as_written() -> None:
    assert tenths_add_up(to_fraction)
    assert not tenths_add_up(to_binary_fraction)  # the mutant: what 0.1.0 did


FLOATS_AND_TEXTS: list[tuple[Callable[[Any], Any], Any]] = [
    (PureDP, 0.1),
    (lambda x: ApproxDP(x, x), 0.1),
    (Sensitivity, 0.1),
    (lambda x: Laplace(sensitivity=x, epsilon=x), 0.3),
    (lambda x: DiscreteLaplace(sensitivity=x, scale=x), 1.1),
    (lambda x: DiscreteGaussian(sensitivity=x, sigma=x), 1.1),
    (lambda x: Exponential(sensitivity=x, epsilon=x), 0.3),
    (lambda x: PermuteAndFlip(sensitivity=x, epsilon=x), 0.3),
    (lambda x: TopK(count=2, sensitivity=x, epsilon=x), 0.3),
    (lambda x: AboveThreshold(sensitivity=x, step=x, epsilon=x, threshold=x, threshold_share=x), 0.3),
    (lambda x: ThresholdedCounts(epsilon=x, delta=x), 0.1),
    (lambda x: LevelSelection(epsilon=x, delta=x), 0.1),
    (lambda x: StableMode(epsilon=x, delta=x), 0.1),
    (lambda x: BestOfDraws(epsilon=x, delta="0.01", draws=2), 0.1),
    (lambda x: ClampedSum(lower=x, upper=1), 0.1),
    (lambda x: GaussianLoss(sigma=x, sensitivity=0.3), 0.7),
    (ConcentratedLoss, 0.1),
    (lambda x: PrivacyFilter(ApproxDP(1, 0.5), slack=x).remaining, 0.1),
]


@pytest.mark.parametrize(("make", "number"), FLOATS_AND_TEXTS)
def test_A14_a_float_makes_what_its_text_makes(make: Callable[[Any], Any], number: float) -> None:
    assert make(number) == make(str(number)) == make(Fraction(str(number))) == make(np.float64(number))
    assert make(number) != make(Fraction(number)), "the case shows nothing: its float is exact"


def test_A14_what_is_data_keeps_its_binary_value() -> None:
    """Scores of one list are read alike, whether an array of floats or a list with a Fraction among them holds them."""
    mechanism = Exponential(sensitivity=1, epsilon=1)
    scores = [0.1, 0.2, 3.0]
    assert mechanism.law(scores) == mechanism.law([Fraction(score) for score in scores])
    mixed: list[Any] = [0.1, 0.2, Fraction(3)]
    assert mechanism.law(mixed) == mechanism.law(scores)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 1000), Fraction(1, 1 << 29)])
def test_A11_a_choice_loses_at_most_its_epsilon_however_coarse_its_scores_are(epsilon: Fraction) -> None:
    """At tiny budgets scores are rounded to multiples of 16: one choice pays for that itself, many at once did not."""
    mechanism = Exponential(sensitivity=2 * WHOLE, epsilon=epsilon)
    generator = np.random.default_rng(1)
    for _ in range(50):
        scores = generator.integers(-(10**6), 10**6, size=4)
        moved = scores + generator.choice([-2 * WHOLE, 2 * WHOLE, 7], size=4)
        p, q = mechanism.law(scores.tolist()), mechanism.law(moved.tolist())
        assert max(abs(math.log(float(p[at] / q[at]))) for at in p) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("units", [None, np.arange(3000) // 2])
def test_A11_no_choice_of_a_table_runs_in_parallel_with_others(units: Any) -> None:
    """In 0.1.0 thousands of choices of quantiles shared one epsilon: now each choice is charged alone."""
    columns = [Column(f"c{place}", 4) for place in range(12)]
    codes = np.random.default_rng(1).integers(0, 4, size=(3000, 12))
    release = MarginalLearner(Domain(columns), epsilon=1, delta="1e-6").release(codes, units=units)
    groups = [stage for stage in release.stages if isinstance(stage, Composed)]
    assert {group.how for group in groups} == {"numeric"}
    chosen = [stage for group in groups for stage in leaves(group) if stage.mechanism == "Exponential"]
    assert len(chosen) == 11 + 24


def holds_for_all_units(bound_of: Callable[[ClampedSum], Fraction], *, lower: int, upper: int) -> bool:
    """Say whether a sensitivity covers every pair of units with one to three records at the bounds or beyond."""
    query = ClampedSum(lower=lower, upper=upper, contributions=3)
    units = [unit for size in (1, 2, 3) for unit in product((lower - 1.0, upper + 1.0), repeat=size)]
    sums = [query.value([*unit, 0.0], units=[*("a" * len(unit)), "b"]) for unit in units]
    return max(sums) - min(sums) <= bound_of(query)


@pytest.mark.parametrize("ends", [(100, 101), (-101, -100), (-3, 2)])
def test_A1_a_sensitivity_holds_for_units_with_other_numbers_of_records(ends: tuple[int, int]) -> None:
    lower, upper = ends
    assert holds_for_all_units(lambda query: query.sensitivity.bound, lower=lower, upper=upper)


@pytest.mark.parametrize("ends", [(100, 101), (-101, -100)])
def test_A1_the_moves_of_single_records_added_up_are_caught(ends: tuple[int, int]) -> None:
    """The mutant of 0.1.0: m times the move of one record, for units that all have m."""
    lower, upper = ends
    assert not holds_for_all_units(lambda query: 3 * (query.upper - query.lower), lower=lower, upper=upper)
