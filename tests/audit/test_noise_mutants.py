"""Broken variants of the noise mechanisms are caught, by exact enumeration.

Discrete Laplace noise has P[z] proportional to exp(-|z| / scale), so the privacy loss of an outcome is a rational
number: the difference of two L1 norms over the scale. No float decides whether a variant keeps its promise.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.mechanisms import DiscreteLaplace, Laplace
from accord.noise import laplace
from accord.noise.numbers import to_steps
from accord.testing import ReplayRandomness

Point = tuple[int, ...]
REACH = 12


def outcomes(dimension: int) -> Iterable[Point]:
    return itertools.product(range(-REACH, REACH + 1), repeat=dimension)


def loss(outcome: Point, here: Point, there: Point, scale: Fraction) -> Fraction:
    """Return log(P[here + noise = outcome] / P[there + noise = outcome]), exactly."""
    return sum(abs(o - b) - abs(o - a) for o, a, b in zip(outcome, here, there, strict=True)) / scale


def worst_loss(here: Point, there: Point, scale: Fraction) -> Fraction:
    return max(loss(outcome, here, there, scale) for outcome in outcomes(len(here)))


def hockey_stick(here: Point, there: Point, *, scale: Fraction, epsilon: Fraction) -> float:
    """Return the smallest delta at epsilon; it is 0 exactly if no outcome's loss is above epsilon."""
    q = math.exp(-1 / scale)
    top = ((1 - q) / (1 + q)) ** len(here)
    return sum(
        top
        * q ** sum(abs(o - a) for o, a in zip(outcome, here, strict=True))
        * -math.expm1(float(epsilon - loss(outcome, here, there, scale)))
        for outcome in outcomes(len(here))
        if loss(outcome, here, there, scale) > epsilon
    )


# --- scale / 2 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(7, 3)])
def test_half_the_scale_is_caught(scale: Fraction) -> None:
    promised = DiscreteLaplace(sensitivity=1, scale=scale).guarantee.epsilon
    assert worst_loss((0,), (1,), scale) == promised
    assert hockey_stick((0,), (1,), scale=scale, epsilon=promised) == 0
    assert worst_loss((0,), (1,), scale / 2) == 2 * promised
    assert hockey_stick((0,), (1,), scale=scale / 2, epsilon=promised) > 0.01


# --- the charge for rounding ------------------------------------------------------------------------------------------


def rounded(values: list[float], exponent: int) -> Point:
    return tuple(int(step) for step in to_steps(np.array(values), exponent=exponent))


def test_rounding_without_its_charge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "_GRID_BITS", 0)  # a grid as coarse as the noise
    mechanism = Laplace(sensitivity=1, epsilon=1)
    assert mechanism.step == 1
    here, there = rounded([0.4, 0.4, -0.6], 0), rounded([0.6, 0.6, -0.4], 0)  # 0.6 apart in L1
    assert (here, there) == ((0, 0, -1), (1, 1, 0))
    charged = mechanism.noise_scale(3) / mechanism.step
    assert worst_loss(here, there, charged) == 1
    assert hockey_stick(here, there, scale=charged, epsilon=Fraction(1)) == 0
    uncharged = mechanism.scale / mechanism.step
    assert worst_loss(here, there, uncharged) == 3
    assert hockey_stick(here, there, scale=uncharged, epsilon=Fraction(1)) > 0.1


def test_half_to_even_rounding_would_need_more_than_is_charged() -> None:
    """1 apart, but 2 steps apart under numpy's rint; the mechanism's rounding keeps 1."""
    assert int(np.rint(1.5) - np.rint(0.5)) == 2
    assert rounded([0.5], 0) == (1,)
    assert rounded([1.5], 0) == (2,)


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e-12, 0.25, 0.5, 1.0, 3.7])), min_size=1, max_size=6
    ),
    st.integers(min_value=-12, max_value=3),
    st.sampled_from(["1/3", "1", "2", "10"]),
)
def test_neighbours_are_never_further_apart_than_charged(
    pairs: list[tuple[float, float]], bits: int, epsilon: str
) -> None:
    here, there = [a for a, _ in pairs], [a + move for a, move in pairs]
    apart = sum((abs(Fraction(a) - Fraction(b)) for a, b in zip(here, there, strict=True)), Fraction(0))
    if apart == 0:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "_GRID_BITS", bits)
        mechanism = Laplace(sensitivity=apart, epsilon=epsilon)
        exponent = mechanism._exponent
        steps = sum(abs(a - b) for a, b in zip(rounded(here, exponent), rounded(there, exponent), strict=True))
        assert steps / (mechanism.noise_scale(len(here)) / mechanism.step) <= mechanism.epsilon


# --- noise reused -----------------------------------------------------------------------------------------------------


def reuses_noise(release: Callable[[Any, ReplayRandomness], Any]) -> bool:
    """Whether two entries of one call, or two calls on one source, share their noise."""
    source = ReplayRandomness("reuse")
    first, second = release(np.zeros(64, dtype=np.int64), source), release(np.zeros(64, dtype=np.int64), source)
    return len(set(first.tolist())) == 1 or first.tolist() == second.tolist()


def test_noise_that_is_reused_is_caught() -> None:
    mechanism = DiscreteLaplace(sensitivity=1, scale=50)

    def one_for_all(value: Any, source: ReplayRandomness) -> Any:
        return value + mechanism.release(0, randomness=source).value

    def same_again(value: Any, source: ReplayRandomness) -> Any:
        return mechanism.release(value, randomness=ReplayRandomness("again")).value

    assert not reuses_noise(lambda value, source: mechanism.release(value, randomness=source).value)
    assert not reuses_noise(
        lambda value, source: Laplace(sensitivity=1, epsilon=1).release(value, randomness=source).value
    )
    assert reuses_noise(one_for_all)
    assert reuses_noise(same_again)


def test_noise_shared_by_two_entries_breaks_the_promise() -> None:
    """With one noise for both entries, the difference of the outputs is the query itself, without noise."""
    shared = {(0 + z, 0 + z) for z in range(-REACH, REACH)}
    assert shared.isdisjoint({(1 + z, 0 + z) for z in range(-REACH, REACH)})


# --- the sensitivity of replace-one halved ----------------------------------------------------------------------------


def histogram(records: Point) -> Point:
    return tuple(records.count(level) for level in range(3))


def test_E13_half_the_sensitivity_of_replace_one_is_caught() -> None:
    """Replacing one record moves a histogram by 2 in L1, not by 1: all neighbours of three records of three levels."""
    records = list(itertools.product(range(3), repeat=3))
    neighbours = [(a, b) for a in records for b in records if sum(x != y for x, y in zip(a, b, strict=True)) == 1]
    apart = max(sum(abs(x - y) for x, y in zip(histogram(a), histogram(b), strict=True)) for a, b in neighbours)
    assert apart == 2
    epsilon = Fraction(1)
    right, halved = (DiscreteLaplace(sensitivity=s, scale=s / epsilon) for s in (apart, apart // 2))
    assert right.guarantee.epsilon == halved.guarantee.epsilon == epsilon
    here, there = (3, 0, 0), (2, 1, 0)
    assert worst_loss(here, there, right.scale) == epsilon
    assert hockey_stick(here, there, scale=right.scale, epsilon=epsilon) == 0
    assert worst_loss(here, there, halved.scale) == 2 * epsilon
    assert hockey_stick(here, there, scale=halved.scale, epsilon=epsilon) > 0.1
