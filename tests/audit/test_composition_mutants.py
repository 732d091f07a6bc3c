"""Broken totals are caught: each mutant breaks a check that the real rule passes."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from accord.accounting import best, composition, optimal
from accord.accounting import composition as up
from accord.accounting import optimal as heterogeneous
from accord.errors import InvalidParameter
from accord.privacy import (
    ApproxDP,
    NoGuarantee,
    PureDP,
    advanced_composition,
    basic_composition,
    best_composition,
    heterogeneous_composition,
    optimal_composition,
)

Total = PureDP | ApproxDP | NoGuarantee


def true_delta(epsilon: Fraction, *, delta: Fraction, rounds: int, total: Fraction | float) -> mp.mpf:
    """The delta that randomised responses spend, by Theorem 3.3 of Kairouz, Oh and Viswanath."""
    a, bound = mp.exp(mp.mpf(epsilon.numerator) / epsilon.denominator), mp.exp(mp.mpf(float(total)))
    pure = (
        mp.fsum(max(mp.mpf(0), mp.binomial(rounds, i) * (a ** (rounds - i) - bound * a**i)) for i in range(rounds + 1))
        / (1 + a) ** rounds
    )
    return 1 - (1 - mp.mpf(delta.numerator) / delta.denominator) ** rounds * (1 - pure)


def keeps(rule: Callable[..., Total], *, epsilon: str, delta: str, rounds: int, allowed: str) -> bool:
    """Say whether what the rule promises for randomised responses is true, within the allowed delta."""
    each = ApproxDP(epsilon, delta) if Fraction(delta) else PureDP(epsilon)
    total = rule(each, rounds, Fraction(allowed))
    if isinstance(total, NoGuarantee):
        return True
    with mp.workdps(80):
        spent = true_delta(Fraction(epsilon), delta=Fraction(delta), rounds=rounds, total=total.epsilon)
        return bool(
            total.delta <= Fraction(allowed) and spent <= mp.mpf(total.delta.numerator) / total.delta.denominator
        )


CASES = [
    {"epsilon": "0.1", "delta": "0", "rounds": 200, "allowed": "1e-6"},
    {"epsilon": "0.1", "delta": "1e-8", "rounds": 100, "allowed": "1.1e-6"},
    {"epsilon": "1", "delta": "1e-3", "rounds": 5, "allowed": "0.02"},
    {"epsilon": "0.5", "delta": "0", "rounds": 60, "allowed": "1e-12"},
]


def advanced(each: PureDP | ApproxDP, rounds: int, allowed: Fraction) -> Total:
    return advanced_composition(each, rounds=rounds, delta_prime=allowed - rounds * each.delta, kl_bound="tight")


def optimum(each: PureDP | ApproxDP, rounds: int, allowed: Fraction) -> Total:
    return optimal_composition(each, rounds=rounds, delta=allowed)


def on_grid(each: PureDP | ApproxDP, rounds: int, allowed: Fraction) -> Total:
    """The route for several epsilons: one of them is a hair larger."""
    other = ApproxDP(each.epsilon * (1 + Fraction(1, 10**9)), each.delta)
    return heterogeneous_composition([each] * (rounds - 1) + [other], delta=allowed)


def least(each: PureDP | ApproxDP, rounds: int, allowed: Fraction) -> Total:
    return best_composition([each] * rounds, delta=allowed)


RULES = [advanced, optimum, on_grid, least]


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_keep_their_promises(rule: Callable[..., Total]) -> None:
    for case in CASES:
        assert keeps(rule, **case)  # type: ignore[arg-type]


def broken(rule: Callable[..., Total]) -> bool:
    return not all(keeps(rule, **case) for case in CASES)  # type: ignore[arg-type]


def test_a_missing_logarithm_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "log_above", lambda _: Decimal(1))
    assert broken(advanced)


def test_E22_a_logarithm_of_the_wrong_side_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "log_above", lambda x: x)  # 1 / delta itself: useless, and seen by the minimum
    each = PureDP("0.1")
    useless = advanced_composition(each, rounds=100, delta_prime="1e-6")
    assert useless.epsilon > basic_composition([each] * 100).epsilon
    assert best_composition([each] * 100, delta="1e-6").epsilon <= Fraction("5.7562")


def test_a_sum_reported_for_the_minimum_is_caught() -> None:
    table = best.composition_table([PureDP("0.1")] * 100, delta="1e-6")
    assert table.bounds[0].total.epsilon == 10
    assert table.best.total.epsilon < 10


def test_a_minimum_over_deltas_that_do_not_fit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "_basic", lambda rounds, _: basic_composition(rounds.elements()))
    total = best_composition([ApproxDP("0.1", "1e-8")] * 1000, delta="1e-6")
    assert total.delta > Fraction("1e-6") or isinstance(total, NoGuarantee)
    monkeypatch.undo()
    assert isinstance(best_composition([ApproxDP("0.1", "1e-8")] * 1000, delta="1e-6"), NoGuarantee)


@pytest.mark.parametrize("rule", [optimum, on_grid])
def test_deltas_that_are_forgotten_are_caught(rule: Callable[..., Total], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (optimal, heterogeneous):
        monkeypatch.setattr(module, "left_over", lambda _, *, allowed: up.lower(allowed))
    assert broken(rule)


def test_delta_prime_that_is_not_added_is_caught() -> None:
    def mutant(each: PureDP | ApproxDP, rounds: int, allowed: Fraction) -> Total:
        total = advanced(each, rounds, allowed)
        delta = min(total.delta - (allowed - rounds * each.delta), Fraction(99, 100))
        return ApproxDP(total.epsilon, delta)

    assert broken(mutant)


def test_rounding_inward_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = optimum
    assert not broken(true)
    monkeypatch.setattr(optimal, "rounded_up", lambda x: Fraction(math.nextafter(float(x), 0)))
    assert broken(optimum)


@pytest.mark.parametrize("name", ["UP", "DOWN"])
def test_exchanged_directions_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 8 digits a step in the wrong direction shows; with 60 it hides behind the last rounding."""
    few = dict(zip(("UP", "DOWN"), up.contexts(8), strict=True))
    monkeypatch.setattr(optimal, name, few[name])
    assert not broken(optimum)
    monkeypatch.setattr(optimal, name, few["DOWN" if name == "UP" else "UP"])
    assert broken(optimum)


def test_M7_the_mean_bound_misused_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the mean, or the mean of the symmetric divergence shared out: false for randomised response."""
    real = composition.mean_factor

    def halved(epsilon: Fraction, *, kl_bound: Any) -> Decimal:
        return real(epsilon, kl_bound=kl_bound) / 4

    case = {"epsilon": "1", "delta": "0", "rounds": 2000, "allowed": "0.3"}
    assert keeps(advanced, **case)  # type: ignore[arg-type]
    monkeypatch.setattr(composition, "mean_factor", halved)
    assert not keeps(advanced, **case)  # type: ignore[arg-type]


def test_epsilons_rounded_down_to_the_grid_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = math.ceil
    monkeypatch.setattr(math, "ceil", lambda x: max(1, real(x) - 1))
    assert broken(on_grid)


def test_a_loop_that_ends_too_soon_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = optimal._worst_ratio
    monkeypatch.setattr(optimal, "_worst_ratio", lambda base, *, rounds, left: real(base, rounds=rounds, left=left * 2))
    assert broken(optimum)


def test_more_than_all_is_refused_by_the_real_rule() -> None:
    with pytest.raises(InvalidParameter, match="at most 1"):
        advanced_composition(ApproxDP("0.1", "0.01"), rounds=100, delta_prime="0.01")
