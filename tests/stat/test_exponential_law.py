"""Choices with true noise have the stated law: accepted when it is true, rejected when epsilon is 10 % off.

A frequency of n independent runs is off by more than c with a chance of at most 2 exp(-2 n c^2) (Hoeffding): with n =
6000 and c = 0.042 below 2e-9. Each case is one event, with many candidates against one, whose probability moves by more
than 2 c if epsilon is 10 % off; so a wrong law is accepted with a chance below 2e-9 as well. There are 7 cases with 3
comparisons each: the file fails by chance with less than 5e-8.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accord.mechanisms import AboveThreshold, Exponential, LevelSelection, PermuteAndFlip, ThresholdedCounts, TopK
from accord.privacy import Neighbouring
from accord.randomness import PrivateRandomness

N = 6000
CRITICAL = 0.042
MANY = 90
SCORES = np.array([1.0] + [0.0] * MANY)
FEW = 20
ADD = Neighbouring.ADD_OR_REMOVE_ONE
Event = Callable[[PrivateRandomness], bool]
Truth = Callable[[float], float]


def at_least(z: int, rate: float) -> float:
    q = math.exp(-rate)
    return q**z / (1 + q) if z > 0 else 1 - q ** (1 - z) / (1 + q)


def best(rate: float) -> float:
    return 1 / (1 + MANY * math.exp(-rate))


def flip_best(rate: float) -> float:
    weight = math.exp(-rate)
    return float(-math.expm1((MANY + 1) * math.log1p(-weight))) / ((MANY + 1) * weight)


def some_above(epsilon: float) -> float:
    """Return the chance that one of a few queries, 2 below the threshold, is called above."""
    q = math.exp(-epsilon / 2)
    noise = ((z, (1 - q) / (1 + q) * q ** abs(z)) for z in range(-100, 101))
    return sum(weight * (1 - (1 - at_least(2 + z, epsilon / 4)) ** FEW) for z, weight in noise)


def choice(mechanism: Any, first: Any) -> Event:
    return lambda source: mechanism.select(SCORES, randomness=source).value == first


def shown(mechanism: Any, values: list[Any]) -> Event:
    return lambda source: any(mechanism.release(values, randomness=source).value)


TOP = TopK(count=2, sensitivity=1, epsilon=18)
CASES: dict[str, tuple[Event, float, Truth]] = {
    "exponential": (choice(Exponential(sensitivity=1, epsilon=9), 0), 9, lambda e: best(e / 2)),
    "monotone": (choice(Exponential(sensitivity=2, epsilon=9, monotone=True), 0), 9, lambda e: best(e / 2)),
    "permute and flip": (choice(PermuteAndFlip(sensitivity=1, epsilon=9), 0), 9, lambda e: flip_best(e / 2)),
    "top-k": (lambda source: TOP.select(SCORES, randomness=source).value[0] == 0, 18, lambda e: best(e / 4)),  # type: ignore[index]
    "above threshold": (
        shown(AboveThreshold(sensitivity=1, epsilon=6, threshold=2), [0] * FEW),
        6,
        some_above,
    ),
    "thresholded counts": (
        shown(ThresholdedCounts(epsilon=1, threshold=4, neighbouring=ADD), list(range(FEW))),
        1,
        lambda e: 1 - (1 - at_least(3, e)) ** FEW,
    ),
    "level selection": (
        shown(LevelSelection(epsilon=5, delta="1e-6", neighbouring=ADD), list(range(FEW)) * 3),
        5,
        lambda e: 1 - (1 - 1e-6 * (1 + math.exp(e) + math.exp(2 * e))) ** FEW,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_frequency_is_the_probability(name: str) -> None:
    event, epsilon, truth = CASES[name]
    source = PrivateRandomness()
    frequency = sum(event(source) for _ in range(N)) / N
    assert abs(frequency - truth(epsilon)) <= CRITICAL
    for wrong in (0.9 * epsilon, 1.1 * epsilon):
        assert abs(frequency - truth(wrong)) > CRITICAL


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_epsilon_is_far_enough_away(name: str) -> None:
    _, epsilon, truth = CASES[name]
    for wrong in (0.9 * epsilon, 1.1 * epsilon):
        assert abs(truth(wrong) - truth(epsilon)) > 2 * CRITICAL
    assert 2 * math.exp(-2 * N * CRITICAL**2) < 2e-9
