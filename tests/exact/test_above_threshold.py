"""The sparse vector technique by exact laws: all small query vectors, all neighbours, all patterns of answers.

With x and y for the ratios of threshold and query noise, every probability is a rational function of x and y. The
promise, at sensitivity 1, is exp(epsilon) = 1 / (x y^(2 c)): so the enumeration is done in rationals for rational x and
y, and nothing is rounded. Another test shows that the program compares as the law does, with noise of these ratios.
"""

import copy
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accord.errors import InvalidParameter, WrongRandomness
from accord.mechanisms import AboveThreshold, RunStopped
from accord.noise import above_threshold
from accord.privacy import Neighbouring, PureDP, Sensitivity
from accord.randomness import PrivateRandomness
from accord.testing import ReplayRandomness

X, Y = Fraction(3, 5), Fraction(3, 4)
Pattern = tuple[bool, ...]


def at_least(z: int, y: Fraction) -> Fraction:
    """Return P[noise >= z] for two-sided geometric noise of ratio y."""
    return y**z / (1 + y) if z > 0 else 1 - y ** (1 - z) / (1 + y)


def side(
    pattern: Pattern, chances: list[Fraction], start: Fraction, *, x: Fraction, y: Fraction, far: bool
) -> Fraction:
    """Sum over j >= 0 of ``start x^j`` times the chance of the pattern.

    Query i is answered ``far`` with chance ``1 - chances[i] y^j``.
    """
    product_in_yj = [Fraction(1)]
    for above, chance in zip(pattern, chances, strict=True):
        terms = (Fraction(1), -chance) if above is far else (Fraction(0), chance)
        longer = [Fraction(0)] * (len(product_in_yj) + 1)
        for power, coefficient in enumerate(product_in_yj):
            longer[power] += coefficient * terms[0]
            longer[power + 1] += coefficient * terms[1]
        product_in_yj = longer
    return sum((start * c / (1 - x * y**power) for power, c in enumerate(product_in_yj)), Fraction(0))


def probability(pattern: Pattern, queries: tuple[int, ...], *, x: Fraction = X, y: Fraction = Y) -> Fraction:
    """Return the chance of these answers at threshold 0: the sum over all noise of the threshold, in closed form."""
    queries = queries[: len(pattern)]
    weight = (1 - x) / (1 + x)
    high, low = max(1, *(q + 1 for q in queries)), min(-1, *queries)
    total = Fraction(0)
    for noise in range(low + 1, high):
        term = weight * x ** abs(noise)
        for above, query in zip(pattern, queries, strict=True):
            chance = at_least(noise - query, y)
            term *= chance if above else 1 - chance
        total += term
    upper = [at_least(high - query, y) for query in queries]
    lower = [1 - at_least(low - query, y) for query in queries]
    total += side(pattern, upper, weight * x**high, x=x, y=y, far=False)
    return total + side(pattern, lower, weight * x**-low, x=x, y=y, far=True)


def patterns(queries: int, count: int) -> Iterator[Pattern]:
    """Yield every sequence of answers that a run can give."""
    for pattern in product([False, True], repeat=queries):
        seen = [sum(pattern[: place + 1]) for place in range(queries)]
        end = seen.index(count) + 1 if count in seen else queries
        if not any(pattern[end:]):
            yield pattern[:end]


def worst(queries: int, *, count: int, levels: range, x: Fraction = X, y: Fraction = Y) -> Fraction:
    """Return the largest ratio of probabilities of one sequence of answers between neighbours at distance 1."""
    runs = list(patterns(queries, count))
    known = {
        vector: [probability(run, vector, x=x, y=y) for run in runs]
        for vector in product(range(levels.start - 1, levels.stop + 1), repeat=queries)
    }
    return max(
        p / q
        for vector in product(levels, repeat=queries)
        for move in product([-1, 0, 1], repeat=queries)
        for p, q in zip(known[vector], known[tuple(a + b for a, b in zip(vector, move, strict=True))], strict=True)
    )


@pytest.mark.parametrize(("queries", "count"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (3, 3)])
def test_laws_add_up_to_one(queries: int, count: int) -> None:
    for vector in ((0, 0, 0), (2, -3, 1), (5, 5, -5)):
        assert sum(probability(run, vector[:queries]) for run in patterns(queries, count)) == 1


@pytest.mark.parametrize(("queries", "count"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("x", "y"), [(X, Y), (Fraction(9, 10), Fraction(1, 2)), (Fraction(1, 10), Fraction(9, 10))])
def test_all_neighbours_are_within_epsilon(queries: int, count: int, x: Fraction, y: Fraction) -> None:
    found = worst(queries, count=count, levels=range(-2, 3), x=x, y=y)
    assert 1 < found <= 1 / (x * y ** (2 * count))


def test_the_promise_is_nearly_used_up() -> None:
    """Queries far below the threshold, and one that comes down to it: most of epsilon is spent, and no more."""
    found = worst(3, count=1, levels=range(-3, 3))
    assert found >= Fraction(6, 10) / (X * Y**2)
    assert found <= 1 / (X * Y**2)


# --- mutants of the law: each breaks the promise ----------------------------------------------------------------------


def test_the_factor_2_of_the_query_noise_dropped_is_caught() -> None:
    assert worst(3, count=1, levels=range(-3, 3), y=Y**2) > 1 / (X * Y**2)


def test_the_number_of_answers_above_left_out_of_the_scale_is_caught() -> None:
    """Many answers "below" pin the threshold's noise; then each "above" costs a factor of its own."""
    pattern = (False,) * 20 + (True,) * 6
    here, there = ((3,) * 20 + (query,) * 6 for query in (-3, -2))
    found = probability(pattern, there) / probability(pattern, here)
    assert found > 1 / (X * Y**2)
    assert found <= 1 / (X * Y**12), "the honest price"


def test_a_threshold_without_noise_is_caught() -> None:
    """x = 0. Each answer costs up to 1 / y, without end."""
    pattern = (False,) * 12

    def chance(query: int) -> Fraction:
        return (1 - at_least(-query, Y)) ** len(pattern)

    assert chance(3) / chance(4) > 1 / (X * Y**2)
    honest = probability(pattern, (3,) * 12) / probability(pattern, (4,) * 12)
    assert honest <= 1 / (X * Y**2)


def test_threshold_noise_drawn_anew_for_each_query_is_caught() -> None:
    once = [probability((False,), (query,)) for query in (5, 6)]
    assert (once[0] / once[1]) ** 12 > 1 / (X * Y**2)
    assert probability((False,) * 12, (5,) * 12) / probability((False,) * 12, (6,) * 12) <= 1 / (X * Y**2)


def test_query_noise_reused_is_caught() -> None:
    """With one noise for all queries, equal queries are answered alike: "below, above" is impossible for (1, 1)."""

    def answers(queries: tuple[int, int], noise: int) -> Pattern:
        return tuple(query + noise >= 0 for query in queries)

    seen = {queries: {answers(queries, noise) for noise in range(-9, 9)} for queries in ((1, 1), (1, 2))}
    assert (False, True) in seen[1, 2] - seen[1, 1]
    assert probability((False, True), (1, 1)) > 0


# --- the program compares as the law does -----------------------------------------------------------------------------


class Noise:
    """Stands in for the sampler: gives a script of noises and records the scales."""

    def __init__(self, *script: int) -> None:
        self.script, self.scales = list(script), list[Fraction]()

    def __call__(self, scale: Fraction, *, size: int, randomness: Any) -> Any:
        assert size == 1
        self.scales.append(scale)
        return np.array([self.script.pop(0)])


def run_with(monkeypatch: pytest.MonkeyPatch, mechanism: AboveThreshold, queries: Any, script: Any) -> Any:
    noise = Noise(*script)
    monkeypatch.setattr(above_threshold, "discrete_laplace", noise)
    return mechanism.release(queries).value, noise


@pytest.mark.parametrize("count", [1, 2])
def test_every_noise_is_fresh_and_answers_are_those_of_the_law(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=2, count=count)
    for queries in ((0, 3), (2, 2), (4, 1)):
        for script in product(range(-3, 4), repeat=3):
            answers, noise = run_with(monkeypatch, mechanism, queries, script)
            expected = [query + own >= 2 + script[0] for query, own in zip(queries, script[1:], strict=True)]
            if count == 1 and expected[0]:
                expected = expected[:1]
            assert answers == tuple(expected)
            assert noise.scales == [2, *[4 * count] * len(expected)]


def test_an_off_by_one_comparison_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=2)
    assert run_with(monkeypatch, mechanism, [2], [0, 0])[0] == (True,), "at the threshold is above"
    assert run_with(monkeypatch, mechanism, [1], [0, 0])[0] == (False,)
    assert run_with(monkeypatch, mechanism, [1], [0, 1])[0] == (True,)
    assert run_with(monkeypatch, mechanism, [2], [1, 0])[0] == (False,)


def test_a_threshold_between_steps_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold="2.1", step="0.5")
    assert run_with(monkeypatch, mechanism, ["2.5"], [0, 0])[0] == (True,)
    answers, noise = run_with(monkeypatch, mechanism, [2], [0, 0])
    assert answers == (False,)
    assert noise.scales == [2 * 2, 4 * 2], "in steps of 0.5"


@pytest.mark.parametrize(
    ("fields", "threshold_scale", "query_scale"),
    [
        ({}, 2, 4),
        ({"sensitivity": 3, "epsilon": "0.5"}, 12, 24),
        ({"count": 5}, 2, 20),
        ({"threshold_share": "1/3"}, 3, 3),
        ({"sensitivity": "2.9"}, 4, 8),
        ({"sensitivity": "0.3", "step": "0.1"}, 6, 12),
    ],
)
def test_scales_are_those_of_dwork_and_roth(fields: dict[str, Any], threshold_scale: int, query_scale: int) -> None:
    mechanism = AboveThreshold(**({"sensitivity": 1, "epsilon": 1, "threshold": 0} | fields))
    assert mechanism.threshold_scale == threshold_scale
    assert mechanism.query_scale == query_scale
    steps = mechanism.sensitivity.bound // mechanism.step
    spent = steps / mechanism.threshold_scale + 2 * mechanism.count * steps / mechanism.query_scale
    assert spent == mechanism.guarantee.epsilon


# --- a run ------------------------------------------------------------------------------------------------------------


def far(**fields: Any) -> AboveThreshold:
    return AboveThreshold(**({"sensitivity": 1, "epsilon": 1, "threshold": 10_000} | fields))


def test_a_run_stops_and_then_refuses() -> None:
    run = far(count=2).start()
    assert [run.ask(query) for query in (0, 20_000, 1, 30_000)] == [False, True, False, True]
    assert run.stopped
    with pytest.raises(RunStopped, match="charged again"):
        run.ask(0)
    assert run.guarantee == PureDP(1)


def test_queries_after_the_stop_are_not_looked_at() -> None:
    def queries() -> Iterator[int]:
        yield from (0, 20_000)
        pytest.fail("asked for more")

    assert far().release(queries()).value == (False, True)
    assert far().release([]).value == ()


@pytest.mark.parametrize("share", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_cannot_be_copied(share: Callable[[Any], Any]) -> None:
    with pytest.raises(RunStopped, match="share"):
        share(far().start())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_run_does_not_go_on_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run = far().start()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RunStopped, match="another process"):
        run.ask(0)


def test_threads_together_get_one_answer_above() -> None:
    run = far().start()
    answers: list[bool | str] = []

    def work() -> None:
        for _ in range(20):
            try:
                answers.append(run.ask(50_000))
            except RunStopped:
                answers.append("stopped")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(True) == 1
    assert answers.count("stopped") == 159


def test_a_run_does_not_show_its_noise() -> None:
    run = far().start()
    assert repr(run) == "AboveThresholdRun(stopped=False)"
    assert not hasattr(run, "__dict__")


def test_a_refused_query_costs_nothing() -> None:
    run, twin = (far().start(randomness=ReplayRandomness("twin")) for _ in range(2))
    for query in ("0.5", float("nan"), float("inf"), None, True, "x"):
        with pytest.raises(InvalidParameter, match="query"):
            run.ask(query)  # type: ignore[arg-type]
    assert run._randomness.bits(64) == twin._randomness.bits(64)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": -1}, "sensitivity"),
        ({"sensitivity": None}, "sensitivity"),
        ({"sensitivity": float("nan")}, "sensitivity"),
        ({"sensitivity": "0.5"}, "sensitivity"),
        ({"epsilon": 0}, "epsilon"),
        ({"threshold": float("inf")}, "threshold"),
        ({"count": 0}, "count"),
        ({"step": 0}, "step"),
        ({"step": -1}, "step"),
        ({"threshold_share": 1}, "threshold_share"),
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        far(**fields)


def test_only_secret_randomness() -> None:
    seed: Any = 3
    with pytest.raises(WrongRandomness):
        far().start(randomness=seed)


def test_the_guarantee_carries_the_relation() -> None:
    relation = Neighbouring.ADD_OR_REMOVE_ONE
    assert far(sensitivity=Sensitivity(1, relation)).guarantee == PureDP(1, relation)


def test_accuracy_holds() -> None:
    """Union bound: 200 runs of 20 queries at the edge of what is promised, failure 1e-9 each."""
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0)
    reach = mechanism.accuracy(queries=20, failure="1e-9")
    assert reach < 8 * 2 * (np.log(20) + np.log(2e9)), "below the bound of Dwork and Roth, theorem 3.24, doubled"
    for _ in range(200):
        answers = mechanism.release([-reach] * 19 + [reach]).value
        assert answers == (*[False] * 19, True)
    assert mechanism.accuracy(queries=1, failure="0.5") < reach


def test_an_array_is_refused_before_noise_whatever_stands_first() -> None:
    class Untouched(PrivateRandomness):
        def bytes(self, count: int) -> bytes:
            raise AssertionError(count)

    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=5)
    for queries in (np.array([0.0, np.nan]), np.array([10.0, np.nan]), [0, 0.5], (0, None)):
        with pytest.raises(InvalidParameter):
            mechanism.release(queries, randomness=Untouched())  # type: ignore[arg-type] # that is the point
