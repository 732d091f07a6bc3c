"""Totals against a second route: 60-digit sums, and laws enumerated outcome by outcome."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest

from accord.accounting import composition as up
from accord.privacy import (
    ApproxDP,
    PureDP,
    advanced_composition,
    heterogeneous_composition,
    optimal_composition,
)

DIGITS = 120


def exact(value: Fraction | float) -> mp.mpf:
    fraction = Fraction(value)
    return mp.mpf(fraction.numerator) / fraction.denominator


def delta_of_equal_rounds(epsilon: Fraction, *, delta: Fraction, rounds: int, total: Fraction) -> mp.mpf:
    """Theorem 3.3 of Kairouz, Oh and Viswanath at any epsilon: a sum over the number of flips, term by term."""
    a, bound = mp.exp(exact(epsilon)), mp.exp(exact(total))
    pure = (
        mp.fsum(
            term
            for flips in range(rounds + 1)
            if (term := mp.binomial(rounds, flips) * (a ** (rounds - flips) - bound * a**flips)) > 0
        )
        / (1 + a) ** rounds
    )
    return 1 - (1 - exact(delta)) ** rounds * (1 - pure)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds", "allowed"),
    [
        ("0.1", "1e-10", 1000, "1e-6"),
        ("0.1", "0", 1000, "1e-6"),
        ("0.1", "0", 1000, "1e-12"),  # where dp-accounting 0.6 understates
        ("0.1", "0", 1000, "1e-30"),
        ("0.1", "1e-33", 400, "1e-30"),
        ("1", "0", 10, "1e-6"),
        ("0.1", "0", 30, "1e-6"),
        ("3", "1e-3", 7, "0.1"),
        ("0.001", "1e-9", 50, "1e-6"),
        ("20", "0", 5, "1e-9"),
    ],
)
def test_C4_optimal_composition_is_above_the_optimum_by_one_rounding(
    epsilon: str, delta: str, rounds: int, allowed: str
) -> None:
    each = PureDP(epsilon) if delta == "0" else ApproxDP(epsilon, delta)
    total = optimal_composition(each, rounds=rounds, delta=allowed)
    assert isinstance(total, ApproxDP)
    below = Fraction(math.nextafter(math.nextafter(float(total.epsilon), 0), 0))
    with mp.workdps(DIGITS):
        spent = [
            delta_of_equal_rounds(Fraction(epsilon), delta=Fraction(delta), rounds=rounds, total=value)
            for value in (total.epsilon, below)
        ]
        assert spent[0] <= exact(Fraction(allowed)) < spent[1] or (spent[0] <= exact(Fraction(allowed)) and below == 0)


def delta_by_enumeration(rounds: list[tuple[Fraction, Fraction]], total: Fraction) -> mp.mpf:
    """Each round gives its input away with chance delta, or answers truthfully with odds e^epsilon : 1."""
    kept, spent = mp.mpf(1), mp.mpf(0)
    for _, delta in rounds:
        kept *= 1 - exact(delta)
    for truths in itertools.product((1, -1), repeat=len(rounds)):
        here, there = mp.mpf(1), mp.mpf(1)
        for (epsilon, _), truth in zip(rounds, truths, strict=True):
            here *= 1 / (1 + mp.exp(-truth * exact(epsilon)))
            there *= 1 / (1 + mp.exp(truth * exact(epsilon)))
        spent += max(mp.mpf(0), here - mp.exp(exact(total)) * there)
    return 1 - kept * (1 - spent)


@pytest.mark.parametrize(
    "rounds",
    [
        [("0.1", "0"), ("0.2", "0"), ("0.5", "1e-4"), ("1", "0")],
        [("0.3", "1e-3")] * 3 + [("0.7", "0")] * 4,
        [("1/3", "0"), ("1/7", "0"), ("1/11", "0"), ("3/13", "0"), ("2/17", "0"), ("0.123456789", "0")],
        [("2", "0"), ("0", "0.01"), ("5", "0")],
    ],
)
@pytest.mark.parametrize("allowed", ["0.02", "0.2"])
def test_C4_different_rounds_against_enumeration(rounds: list[tuple[str, str]], allowed: str) -> None:
    total = heterogeneous_composition([ApproxDP(e, d) for e, d in rounds], delta=allowed)
    read = [(Fraction(e), Fraction(d)) for e, d in rounds]
    with mp.workdps(50):
        assert isinstance(total, ApproxDP)
        assert delta_by_enumeration(read, total.epsilon) <= exact(Fraction(allowed))
        if total.epsilon:
            assert delta_by_enumeration(read, total.epsilon * Fraction("0.9999")) > exact(Fraction(allowed))


@pytest.mark.parametrize(("epsilon", "rounds", "chance"), [("0.1", 1000, "9e-7"), ("0.5", 10, "0.1"), ("30", 3, "0.5")])
@pytest.mark.parametrize("kl_bound", ["seed", "tight"])
def test_C3_M7_the_closed_form_is_above_its_value_by_one_rounding(
    epsilon: str, rounds: int, chance: str, kl_bound: str
) -> None:
    total = advanced_composition(PureDP(epsilon), rounds=rounds, delta_prime=chance, kl_bound=kl_bound)  # type: ignore[arg-type]
    with mp.workdps(60):
        e = exact(Fraction(epsilon))
        mean = e * (mp.expm1(e) if kl_bound == "seed" else mp.tanh(e / 2))
        value = rounds * mean + e * mp.sqrt(2 * rounds * mp.log(1 / exact(Fraction(chance))))
        assert isinstance(total, ApproxDP)
        assert 0 <= exact(total.epsilon) / value - 1 < mp.mpf(2) ** -52


def test_M7_the_tight_mean_is_attained_by_randomised_response() -> None:
    with mp.workdps(60):
        for e in (mp.mpf("0.01"), mp.mpf(1), mp.mpf(7)):
            p = 1 / (1 + mp.exp(-e))
            assert mp.almosteq(p * e - (1 - p) * e, e * mp.tanh(e / 2), rel_eps=mp.mpf(10) ** -50)


@pytest.mark.parametrize("value", ["1e-300", "0.1", "1", "1.0000000000000000000000001", "2", "1000"])
def test_bounds_enclose_their_values_closely(value: str) -> None:
    x = Fraction(value)
    with mp.workdps(90):
        for above, below, true in [
            (up.exp_above(up.upper(x)), up.exp_below(up.lower(x)), mp.exp(exact(x))),
            (up.log_above(up.upper(x)), None, mp.log(exact(x))),
            (up.root_above(up.upper(x)), None, mp.sqrt(exact(x))),
            (up.upper(x), up.lower(x), exact(x)),
        ]:
            assert mp.mpf(str(above)) >= true
            assert mp.mpf(str(above)) - true <= abs(true) * mp.mpf(10) ** -55 + mp.mpf(10) ** -58
            if below is not None:
                assert mp.mpf(str(below)) <= true
                assert true - mp.mpf(str(below)) <= abs(true) * mp.mpf(10) ** -55 + mp.mpf(10) ** -58
        power = up.power_below(up.lower(x), 37, context=up.DOWN)
        assert Fraction(power) <= x**37
        assert abs(1 - mp.mpf(str(power)) / exact(x) ** 37) < mp.mpf(10) ** -55
    rounded = up.rounded_up(x)
    assert rounded >= x
    assert Fraction(math.nextafter(float(rounded), 0)) < x
    assert up.rounded_up(Decimal(10) ** 400) == 10**400
