"""Lower bounds on epsilon: true, tight where laws are known, and with power where they are not."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.audit import Evidence, audit_laws, audit_runs
from accord.audit import sampled as module
from accord.errors import InvalidParameter
from accord.laws import FiniteLaw, hockey_stick, smallest_epsilon

ERRORS = 1e-7
CONFIDENCE = 1 - ERRORS


def response(truth: Fraction) -> dict[int, FiniteLaw]:
    return {0: FiniteLaw({0: truth, 1: 1 - truth}), 1: FiniteLaw({0: 1 - truth, 1: truth})}


def runner(truth: float, seed: int) -> Callable[[int], int]:
    generator = np.random.default_rng(seed)
    return lambda bit: int(bit ^ (generator.random() > truth))


def test_M9_enumeration_finds_the_epsilon_of_randomised_response() -> None:
    laws = response(Fraction(3, 4))
    found = audit_laws(lambda bit: laws[bit], pairs=[(0, 1)])
    assert math.isclose(found.epsilon, math.log(3), rel_tol=1e-11)
    assert found.epsilon <= math.log(3)
    assert (found.likelier, found.rarer, found.confidence, found.runs) == (0.75, 0.25, 1.0, 0)
    assert found.contradicts("1.09")
    assert not found.contradicts("1.0987")
    with_slack = audit_laws(lambda bit: laws[bit], pairs=[(0, 1)], delta="1/4")
    assert math.isclose(with_slack.epsilon, math.log(2), rel_tol=1e-11)  # (3/4 - 1/4) / (1/4)


@pytest.mark.parametrize("seed", range(20))
def test_M9_enumeration_is_a_tight_lower_bound(seed: int) -> None:
    generator = np.random.default_rng(seed)
    laws = [FiniteLaw(dict(enumerate(map(int, generator.integers(1, 50, size=6))))) for _ in range(2)]
    delta = Fraction(int(generator.integers(0, 10)), 100)
    found = audit_laws(lambda place: laws[place], pairs=[(0, 1)], delta=delta)
    ways = [(laws[0], laws[1]), (laws[1], laws[0])]
    upper = max(smallest_epsilon(p, q, delta=delta) for p, q in ways)
    assert upper * (1 - 1e-10) - 1e-300 <= found.epsilon <= upper
    if found.epsilon > 0:
        assert max(hockey_stick(p, q, epsilon=found.epsilon) for p, q in ways) > delta


def test_an_event_that_only_one_neighbour_can_cause_refutes_every_epsilon() -> None:
    laws = {0: {"a": Fraction(9, 10), "b": Fraction(1, 10)}, 1: {"a": Fraction(1)}}
    found = audit_laws(lambda bit: laws[bit], pairs=[(0, 1)], delta="0.05")
    assert found.epsilon == math.inf
    assert found.contradicts(10**6)
    assert audit_laws(lambda bit: laws[bit], pairs=[(0, 1)], delta="0.1").epsilon == 0.0


def test_equal_laws_prove_nothing() -> None:
    assert audit_laws(lambda _: {0: Fraction(1), 1: Fraction(1)}, pairs=[(0, 1)]) == Evidence(
        epsilon=0.0, delta=Fraction(0), confidence=1.0
    )
    assert audit_runs(lambda _: 0, pair=(0, 1), runs=100).epsilon == 0.0


@pytest.mark.parametrize("seed", [7])
@pytest.mark.parametrize("score", [None, float])
def test_runs_accept_the_truth_and_refute_a_tenth_less(score: Callable[[Any], float] | None, seed: int) -> None:
    truth = 0.75  # epsilon log 3 = 1.0986
    found = audit_runs(runner(truth, seed), pair=(0, 1), runs=60_000, confidence=CONFIDENCE, score=score)
    assert not found.contradicts(math.log(3))
    assert found.contradicts(0.9 * math.log(3))
    assert found.runs == 120_000


@pytest.mark.parametrize("seed", [11])
def test_runs_are_wrong_no_more_often_than_stated(seed: int) -> None:
    confidence, repetitions = 0.8, 400
    run = runner(0.75, seed)
    wrong = sum(
        audit_runs(run, pair=(0, 1), runs=200, confidence=confidence).contradicts(math.log(3))
        for _ in range(repetitions)
    )
    # at most 20 % on average; binomial(400, .2) is above 125 with probability 1e-8
    assert wrong <= 125


@pytest.mark.parametrize("seed", [5])
def test_judging_on_the_choosing_runs_would_be_wrong_too_often(seed: int) -> None:
    """The mutant: with many outcomes a lucky event is always found when it is judged by the runs that chose it."""
    generator = np.random.default_rng(seed)
    outcomes = ([int(x) for x in generator.integers(0, 2000, size=2000)] for _ in range(2))
    first, second = outcomes
    typical = module._typical(first, second)
    marks = [module._scores(lambda x: typical.get(x, 0.0), side) for side in (first, second)]
    event = module._best_event(*marks, delta=0.0)
    low, high = event.bounds(*(marks if event.forward else marks[::-1]), doubt=1e-6)
    assert module._epsilon(low, high, delta=0.0) > 0.5  # equal laws, "refuted"
    honest = audit_runs(lambda _: int(generator.integers(0, 2000)), pair=(0, 1), runs=4000, confidence=CONFIDENCE)
    assert honest.epsilon == 0.0


@pytest.mark.parametrize("seed", [3])
def test_the_worst_direction_is_found_whichever_neighbour_comes_first(seed: int) -> None:
    generator = np.random.default_rng(seed)
    chances = {"low": 0.01, "high": 0.2}
    for pair in (("low", "high"), ("high", "low")):
        found = audit_runs(lambda who: bool(generator.random() < chances[who]), pair=pair, runs=20_000)
        assert found.epsilon > 2.3


def test_progress_is_told_and_the_event_named() -> None:
    seen: list[tuple[int, int]] = []
    found = audit_runs(
        lambda given: f"saw {given}", pair=(0, 1), runs=200, progress=lambda done, of: seen.append((done, of))
    )
    assert seen[-1] == (200, 200)
    assert found.event in {"the output is 'saw 0'", "the output is 'saw 1'"}


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="pairs"):
        audit_laws(lambda _: {0: Fraction(1)}, pairs=[])
    for delta in (-0.1, 1, "nan"):
        with pytest.raises(InvalidParameter, match="delta"):
            audit_laws(lambda _: {0: Fraction(1)}, pairs=[(0, 1)], delta=delta)
        with pytest.raises(InvalidParameter, match="delta"):
            audit_runs(lambda _: 0, pair=(0, 1), runs=100, delta=delta)
    with pytest.raises(InvalidParameter, match="runs"):
        audit_runs(lambda _: 0, pair=(0, 1), runs=99)
    with pytest.raises(InvalidParameter, match="confidence"):
        audit_runs(lambda _: 0, pair=(0, 1), runs=100, confidence=1)
    with pytest.raises(InvalidParameter, match="score"):
        audit_runs(lambda _: 0, pair=(0, 1), runs=100, score=lambda _: math.nan)
