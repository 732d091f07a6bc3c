"""M8 in rationals: closeness both ways, distance, both mass cases and the edges."""

from fractions import Fraction

from hypothesis import event, given, settings
from hypothesis import strategies as st

from accord.core.exact import exp_lower
from accord.laws import (
    FiniteLaw,
    pure_approximation,
    smallest_delta,
    smallest_exp_epsilon,
    total_variation,
)

rows = st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any)
laws = rows.map(lambda row: FiniteLaw(dict(enumerate(row))))
ratios = st.fractions(min_value=1, max_value=6, max_denominator=8)
exact = settings(max_examples=300)


def as_written(p: FiniteLaw, q: FiniteLaw, a: Fraction) -> dict[object, Fraction]:
    """The construction of theory M8, line by line."""
    outcomes = dict.fromkeys([*p, *q])
    p0 = {y: min(max(p[y], q[y] / a), a * q[y]) for y in outcomes}
    m = sum(p0.values(), Fraction(0))
    if m < 1:
        share = (1 - m) / sum((a * q[y] - p0[y] for y in outcomes), Fraction(0))
        return {y: p0[y] + share * (a * q[y] - p0[y]) for y in outcomes}
    if m > 1:
        share = (m - 1) / sum((p0[y] - q[y] / a for y in outcomes), Fraction(0))
        return {y: p0[y] - share * (p0[y] - q[y] / a) for y in outcomes}
    return dict(p0)


@exact
@given(laws, laws, ratios)
def test_M8_closeness_and_distance(p: FiniteLaw, q: FiniteLaw, a: Fraction) -> None:
    near = pure_approximation(p, q, exp_epsilon=a)
    delta = smallest_delta(p, q, exp_epsilon=a)
    event("m < 1" if near.alpha > near.beta else "m > 1" if near.alpha < near.beta else "m = 1")
    assert smallest_delta(near.law, q, exp_epsilon=a) == 0
    assert total_variation(p, near.law) == near.total_variation == max(near.alpha, near.beta)
    assert near.alpha <= delta
    assert a * near.beta <= delta
    assert near.total_variation <= delta


@exact
@given(laws, laws, ratios)
def test_M8_is_the_construction_as_written(p: FiniteLaw, q: FiniteLaw, a: Fraction) -> None:
    found = pure_approximation(p, q, exp_epsilon=a).law
    assert {y: found[y] for y in found} == as_written(p, q, a)


@exact
@given(laws, laws, st.fractions(min_value=0, max_value=3, max_denominator=30))
def test_M8_with_an_irrational_ratio(p: FiniteLaw, q: FiniteLaw, epsilon: Fraction) -> None:
    near = pure_approximation(p, q, epsilon=epsilon)
    ratio = smallest_exp_epsilon(near.law, q, delta=0)
    assert ratio is not None
    assert ratio <= exp_lower(epsilon)
    assert total_variation(p, near.law) == near.total_variation <= smallest_delta(p, q, epsilon=epsilon)


def test_M8_mass_below_one() -> None:
    near = pure_approximation(FiniteLaw({"a": 6, "b": 3, "c": 3}), FiniteLaw({"a": 1, "b": 1, "c": 1}), exp_epsilon=1)
    assert near.law == FiniteLaw({"a": 1, "b": 1, "c": 1})
    near = pure_approximation(FiniteLaw({"a": 4, "b": 2}), FiniteLaw({"a": 1, "b": 1}), exp_epsilon="6/5")
    assert near.alpha == Fraction(2, 3) - Fraction(3, 5) < near.beta == Fraction(5, 12) - Fraction(1, 3)
    near = pure_approximation(FiniteLaw({"a": 1}), FiniteLaw({"a": 1, "b": 3}), exp_epsilon=2)
    assert (near.alpha, near.beta) == (Fraction(1, 2), Fraction(3, 8))
    assert near.law == FiniteLaw({"a": 1, "b": 1})


def test_M8_mass_above_one() -> None:
    near = pure_approximation(FiniteLaw({"a": 3, "b": 1, "c": 0}), FiniteLaw({"a": 3, "b": 1, "c": 4}), exp_epsilon=2)
    assert (near.alpha, near.beta) == (Fraction(0), Fraction(1, 4))
    assert near.law["c"] == Fraction(1, 4)


def test_M8_mass_one_without_and_with_a_move() -> None:
    p = FiniteLaw({"a": 1, "b": 2})
    assert pure_approximation(p, FiniteLaw({"a": 1, "b": 1}), exp_epsilon=2).law == p
    p, q = FiniteLaw({"a": 10, "b": 1, "c": 7}), FiniteLaw({"a": 4, "b": 4, "c": 10})
    near = pure_approximation(p, q, exp_epsilon=2)
    assert near.alpha == Fraction(2, 18)
    assert near.beta == Fraction(1, 18)
    p, q = FiniteLaw({"a": 10, "b": 1, "c": 7}), FiniteLaw({"a": 4, "b": 6, "c": 8})
    near = pure_approximation(p, q, exp_epsilon=2)
    assert near.alpha == near.beta == Fraction(2, 18)
    assert near.law == FiniteLaw({"a": 8, "b": 3, "c": 7})


def test_M8_at_epsilon_zero_is_the_other_law() -> None:
    p, q = FiniteLaw({"a": 9, "b": 1}), FiniteLaw({"b": 2, "c": 3})
    near = pure_approximation(p, q, epsilon=0)
    assert near.law == q
    assert near.alpha == near.beta == total_variation(p, q)


def test_M8_tiny_epsilon_stays_certain() -> None:
    p, q = FiniteLaw({"a": 9, "b": 1}), FiniteLaw({"a": 1, "b": 1})
    near = pure_approximation(p, q, epsilon="1e-300")
    assert smallest_exp_epsilon(near.law, q, delta=0) == 1
