"""Algebra of totals: monotone, the same in any order, never above the sum, n copies as n values."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.privacy import (
    ApproxDP,
    PureDP,
    advanced_composition,
    basic_composition,
    best_composition,
    composition_table,
    heterogeneous_composition,
    optimal_composition,
)

Guarantee = PureDP | ApproxDP

epsilons = st.fractions(min_value=0, max_value=4, max_denominator=1000)
small_deltas = st.integers(0, 100).map(lambda n: Fraction(n, 10**6))
guarantees = st.builds(lambda e, d: ApproxDP(e, d) if d else PureDP(e), epsilons, small_deltas)
several = st.lists(guarantees, min_size=1, max_size=8)
totals = st.integers(2000, 500_000).map(lambda n: Fraction(n, 10**6))


@given(several, totals, st.randoms())
@settings(max_examples=60)
def test_order_does_not_matter(rounds: list[Guarantee], delta: Fraction, shuffle: object) -> None:
    other = list(rounds)
    shuffle.shuffle(other)  # type: ignore[attr-defined]
    for rule in (best_composition, heterogeneous_composition):
        assert rule(other, delta=delta) == rule(rounds, delta=delta)
    assert basic_composition(other) == basic_composition(rounds)


@given(several, totals, st.integers(0, 7), epsilons, small_deltas)
@settings(max_examples=60)
def test_a_weaker_round_never_lowers_the_total(
    rounds: list[Guarantee], delta: Fraction, which: int, more: Fraction, slack: Fraction
) -> None:
    old = rounds[which % len(rounds)]
    weaker = [*rounds]
    weaker[which % len(rounds)] = ApproxDP(old.epsilon + more, old.delta + slack)
    near = Fraction(1, 10**4)  # the grid of different epsilons moves with them
    assert best_composition(weaker, delta=delta).epsilon >= best_composition(rounds, delta=delta).epsilon * (1 - near)


@given(several, guarantees, totals)
@settings(max_examples=60)
def test_one_round_more_never_lowers_the_total_and_more_delta_never_raises_it(
    rounds: list[Guarantee], another: Guarantee, delta: Fraction
) -> None:
    near = 1 - Fraction(1, 10**4)
    total = best_composition(rounds, delta=delta).epsilon
    assert best_composition([*rounds, another], delta=delta).epsilon >= total * near
    assert best_composition(rounds, delta=delta + Fraction(1, 100)).epsilon * near <= total


@given(several, totals)
@settings(max_examples=60)
def test_the_best_is_one_of_the_rules_and_never_above_the_sum(rounds: list[Guarantee], delta: Fraction) -> None:
    table = composition_table(rounds, delta=delta)
    best = best_composition(rounds, delta=delta)
    assert best == table.best.total
    assert best.delta <= delta
    assert all(best.epsilon <= bound.total.epsilon for bound in table.bounds)
    assert best.epsilon <= sum(guarantee.epsilon for guarantee in rounds)


@given(guarantees, st.integers(1, 60), totals)
@settings(max_examples=60)
def test_n_copies_are_n_rounds(each: Guarantee, rounds: int, delta: Fraction) -> None:
    copies = [each] * rounds
    assert heterogeneous_composition(copies, delta=delta) == optimal_composition(each, rounds=rounds, delta=delta)
    total: Guarantee = each
    for _ in range(rounds - 1):
        total = basic_composition([total, each])  # type: ignore[assignment]
    assert basic_composition(copies) == total
    bounds = {bound.rule: bound.total for bound in composition_table(copies, delta=delta).bounds}
    left = delta - rounds * each.delta
    if left > 0:
        assert bounds["advanced"] == advanced_composition(each, rounds=rounds, delta_prime=left)
    else:
        assert bounds["advanced"].epsilon == float("inf")


@given(st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=500), st.integers(2, 40), totals)
@settings(max_examples=40)
def test_the_grid_agrees_with_the_optimum(epsilon: Fraction, rounds: int, delta: Fraction) -> None:
    """Two epsilons that differ by a hair take the other route, to nearly the same total."""
    optimum = optimal_composition(PureDP(epsilon), rounds=rounds, delta=delta).epsilon
    hair = Fraction(1, 10**12)
    total = heterogeneous_composition([PureDP(epsilon)] * (rounds - 1) + [PureDP(epsilon + hair)], delta=delta).epsilon
    assert optimum <= total <= optimum * (1 + Fraction(1, 100)) + Fraction(1, 10**3)


@pytest.mark.parametrize("split", [lambda each: [each] * 12, lambda each: [each, PureDP(0), *([each] * 11)]])
def test_a_round_without_loss_changes_nothing(split: Callable[[Guarantee], list[Guarantee]]) -> None:
    each = PureDP("0.25")
    assert best_composition(split(each), delta="1e-5") == optimal_composition(each, rounds=12, delta="1e-5")


@given(st.integers(5, 100), st.integers(5, 100))
@settings(max_examples=50)
def test_E29_more_noise_is_cheaper(first: int, second: int) -> None:
    """Laplace noise of scale b costs 1/b a round: the total falls as the scale grows."""
    small, large = sorted((first, second))
    cost = [optimal_composition(PureDP(Fraction(1, b)), rounds=20, delta="1e-6").epsilon for b in (small, large)]
    assert cost[0] > cost[1] or small == large
