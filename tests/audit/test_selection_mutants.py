"""Broken variants of the mechanisms that choose are caught, by the checks that the real ones pass."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from accord.core.exact import exp_lower
from accord.mechanisms import AboveThreshold, Exponential, PermuteAndFlip, ThresholdedCounts, TopK
from accord.noise import above_threshold, thresholded_counts
from accord.noise.scores import ScoreWeights, _table, score_weights, whole_weights
from accord.privacy import Neighbouring
from accord.testing import ReplayRandomness

Scores = tuple[Fraction, ...]
Law = dict[Any, Fraction]
Rule = Callable[[Scores], Law]
EPSILON = Fraction(1)


def breaks(law: Rule, pairs: Iterable[tuple[Scores, Scores]], *, epsilon: Fraction = EPSILON) -> bool:
    """Whether some outcome of some pair is more than exp(epsilon) times as likely on one side."""
    ratio = exp_lower(epsilon)
    for here, there in pairs:
        p, q = law(here), law(there)
        if any(p.get(r, 0) > ratio * q.get(r, 0) or q.get(r, 0) > ratio * p.get(r, 0) for r in {*p, *q}):
            return True
    return False


def crowd(here: Scores, there: Scores, *, size: int) -> tuple[Scores, Scores]:
    """One candidate moves against many: here the factor 2 is needed."""
    return (here[0], *here[1:] * size), (there[0], *there[1:] * size)


ONE, ZERO = Fraction(1), Fraction(0)
AGAINST = [crowd((ZERO, ONE), (ONE, ZERO), size=size) for size in (1, 3, 20)]
SMALL = [
    (here, there)
    for here, there in product(product([ZERO, ONE, 2 * ONE], repeat=3), repeat=2)
    if max(abs(a - b) for a, b in zip(here, there, strict=True)) <= 1
]


def law_by(rule: ScoreWeights, scores: Scores) -> Law:
    values = np.empty(len(scores), dtype=object)
    values[:] = scores
    whole = whole_weights(rule.weigh(values, among=np.ones(len(scores), dtype=np.bool_)))
    return {index: Fraction(weight, sum(whole)) for index, weight in enumerate(whole) if weight}


def test_the_real_ones_pass() -> None:
    for kind in (Exponential, PermuteAndFlip):
        assert not breaks(kind(sensitivity=1, epsilon=EPSILON).law, AGAINST)
    assert not breaks(TopK(count=2, sensitivity=1, epsilon=EPSILON).law, SMALL)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_factor_2_dropped(kind: Any) -> None:
    assert breaks(kind(sensitivity=1, epsilon=EPSILON, monotone=True).law, AGAINST)


def test_sensitivity_halved() -> None:
    assert breaks(Exponential(sensitivity="1/2", epsilon=EPSILON).law, AGAINST)


def test_E13_sensitivity_of_one_count_for_a_gap_of_two() -> None:
    """Scores are votes for a label less those for its strongest rival: one vote moves them by 2."""

    def gaps(votes: tuple[int, ...]) -> Scores:
        return tuple(Fraction(c - max(votes[:i] + votes[i + 1 :])) for i, c in enumerate(votes))

    pairs = [(gaps((3, 2) + (2,) * 9), gaps((2, 3) + (2,) * 9)), (gaps((4, 1, 1)), gaps((3, 2, 1)))]
    assert max(abs(a - b) for here, there in pairs for a, b in zip(here, there, strict=True)) == 2
    assert not breaks(Exponential(sensitivity=2, epsilon=EPSILON).law, pairs)
    assert breaks(Exponential(sensitivity=1, epsilon=EPSILON).law, pairs)


def test_monotone_scores_under_replace_one() -> None:
    """Each candidate is a set of values, its score the number of records in it: adding a record lowers none.

    A record in every set but the first is replaced by one in the first alone: with the factor 2 gone, epsilon is
    exceeded. So monotone=True is for "add or remove one".
    """
    sets = [{"new"}, *[{"old"}] * 20]
    here, there = (tuple(Fraction(record in members) for members in sets) for record in ("old", "new"))
    law = Exponential(sensitivity=1, epsilon=EPSILON, monotone=True).law
    assert breaks(law, [(here, there)])
    nobody = (ZERO,) * len(sets)
    assert not breaks(law, [(here, nobody), (nobody, there)])


def test_E12_argmin_instead_of_argmax() -> None:
    scores = (ZERO, ONE, 2 * ONE, 100 * ONE)
    law = Exponential(sensitivity=1, epsilon=100).law
    assert law(scores)[3] > 1 - Fraction(1, 10**9) > law(tuple(-score for score in scores))[3]


def test_far_candidates_cut_to_zero() -> None:
    """Without the floor a candidate is possible on one dataset and impossible on its neighbour."""

    def cut(scores: Scores) -> Law:
        law = Exponential(sensitivity=1, epsilon=EPSILON).law(scores)
        kept = {index: chance for index, chance in law.items() if chance > Fraction(1, 2**60)}
        return {index: chance / sum(kept.values()) for index, chance in kept.items()}

    pairs = [((ZERO, Fraction(score)), (ONE, Fraction(score))) for score in range(70, 100)]
    assert breaks(cut, pairs)
    assert not breaks(Exponential(sensitivity=1, epsilon=EPSILON).law, pairs)


def test_scores_rounded_to_the_grid_without_a_charge() -> None:
    """On a grid that does not divide S, a score can move by one step more than S / step, rounded down."""
    epsilon, bound = Fraction(1, 2**28), Fraction(1029, 1024)
    rule = score_weights(bound=bound, epsilon=epsilon, sides=2)
    step = Fraction(2) ** rule.exponent
    assert (step, bound / step) == (Fraction(1, 512), Fraction(1029, 2))
    rate = rule.rate * math.ceil(bound / step) / (bound / step)
    tables = np.array([_table(rate * (1 << 9 * digit)) for digit in range(5)])
    free = ScoreWeights(rule.exponent, rate, rule.deepest, tables)
    here, there = (step / 2, step / 2 + bound), (step / 2 + bound, step / 2)

    def moved(weights: ScoreWeights) -> Fraction:
        """How much the odds of two candidates change: against many, their probabilities do so too."""
        p, q = law_by(weights, here), law_by(weights, there)
        return (p[1] / p[0]) / (q[1] / q[0])

    assert moved(rule) <= exp_lower(epsilon) < moved(free)


def test_top_k_charged_once() -> None:
    """Each of two rounds at the whole epsilon."""
    twice = TopK(count=2, sensitivity=1, epsilon=2 * EPSILON)
    assert twice.round.epsilon == EPSILON
    far = [(here, there) for here, there in permutations(product([ZERO, ONE], repeat=4), 2)]
    assert breaks(twice.law, far)
    assert not breaks(TopK(count=2, sensitivity=1, epsilon=EPSILON).law, far)


# --- noise ------------------------------------------------------------------------------------------------------------


def reused(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """Make every noise after the first of a run the first again."""
    first: dict[Fraction, int] = {}

    def sampler(scale: Fraction, *, size: int, randomness: Any) -> Any:
        noise = first.setdefault(scale, randomness.bits(6) - 32)
        return np.full(size, noise, dtype=np.int64)

    monkeypatch.setattr(module, "discrete_laplace", sampler)


def both_answers(runs: int) -> bool:
    """Whether equal queries ever get different answers in one run."""
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0, count=30)
    released: list[Any] = [mechanism.release([0] * 30, randomness=ReplayRandomness(run)).value for run in range(runs)]
    return any(len(set(answers)) == 2 for answers in released)


def test_above_threshold_with_one_noise_for_all_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert both_answers(20)
    reused(monkeypatch, above_threshold)
    assert not both_answers(20)


def threshold_moves() -> bool:
    """Whether two runs whose query noise is the same can still answer differently."""
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0)
    answers = set()
    for key in range(40):
        run = mechanism.start(randomness=ReplayRandomness(key))
        run._randomness = ReplayRandomness("the same")
        answers.add(run.ask(0))
    return len(answers) == 2


def test_above_threshold_without_noise_of_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threshold_moves()
    real = above_threshold.discrete_laplace  # type: ignore[attr-defined] # imported there
    scale = AboveThreshold(sensitivity=1, epsilon=1, threshold=0).threshold_scale

    def sampler(wanted: Fraction, *, size: int, randomness: Any) -> Any:
        noise = real(wanted, size=size, randomness=randomness)
        return noise * 0 if wanted == scale else noise

    monkeypatch.setattr(above_threshold, "discrete_laplace", sampler)
    assert not threshold_moves()


def test_above_threshold_draws_noise_of_the_threshold_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[Fraction] = []

    def sampler(scale: Fraction, *, size: int, randomness: Any) -> Any:
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(above_threshold, "discrete_laplace", sampler)
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=5, count=2)
    mechanism.release([0, 9, 0, 9, 0])
    assert scales == [mechanism.threshold_scale, *[mechanism.query_scale] * 4]
    assert mechanism.threshold_scale != mechanism.query_scale


def test_thresholded_counts_with_one_noise_for_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ThresholdedCounts(epsilon="0.1", threshold=50)
    data = [level for level in range(6) for _ in range(500)]

    def noises() -> set[int]:
        released: Any = mechanism.release(data, randomness=ReplayRandomness("levels")).value
        return {count - 500 for _, count in released}

    assert len(noises()) > 1
    reused(monkeypatch, thresholded_counts)
    assert len(noises()) == 1


@pytest.mark.parametrize(("inclusive", "shift"), [(True, 0), (True, -1), (False, 0), (False, 1)])
def test_thresholded_counts_off_by_one(monkeypatch: pytest.MonkeyPatch, inclusive: bool, shift: int) -> None:  # noqa: FBT001
    """Release chances of singletons over all noises are delta; a threshold off by one, or swapped, is not."""
    mechanism = ThresholdedCounts(
        epsilon=1, threshold=4, inclusive=inclusive, neighbouring=Neighbouring.ADD_OR_REMOVE_ONE
    )
    q = math.exp(-1)
    rate = 0.0
    for noise in range(-60, 61):
        script = np.array([noise + shift], dtype=np.int64)
        monkeypatch.setattr(thresholded_counts, "discrete_laplace", lambda scale, script=script, **_: script)
        rate += bool(mechanism.release(["only"]).value) * (1 - q) / (1 + q) * q ** abs(noise)
    assert (rate == pytest.approx(float(mechanism.delta), rel=1e-9)) is (shift == 0)
