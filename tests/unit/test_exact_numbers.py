"""Exact numbers and rational bounds of the exponential function; the checks of public arguments."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core import check as _check
from accord.core.exact import exp_lower, exp_upper, to_binary_fraction, to_fraction
from accord.errors import InvalidParameter


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (2 / 3, Fraction(6666666666666666, 10**16)),
        ("0.1", Fraction(1, 10)),
        (" 1e-6 ", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        ("-0.5 / 0.25", Fraction(-2)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(2, 6), Fraction(1, 3)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float16(0.1), Fraction(1, 10)),
        (np.float32(1 / 3), Fraction(33333334, 10**8)),
        (np.longdouble("0.1"), Fraction(1, 10)),
        (-0.0, Fraction(0)),
        (5e-324, Fraction(5, 10**324)),
        (1e22, Fraction(10**22)),
        (10**400, Fraction(10**400)),
    ],
)
def test_to_fraction_is_exact(value: Any, exact: Fraction) -> None:
    assert to_fraction(value) == exact


@given(st.decimals(min_value="1e-12", max_value="1e12", places=12))
def test_A14_a_float_is_the_decimal_that_was_written(written: Decimal) -> None:
    shortest = Decimal(repr(float(written)))
    assert to_fraction(float(written)) == to_fraction(np.float64(written)) == Fraction(shortest)
    assert float(to_fraction(float(written))) == float(written)
    assert to_binary_fraction(float(written)) == Fraction(float(written))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_A14_a_float_of_another_width_is_the_shortest_decimal_of_its_own(value: float) -> None:
    single: Any = np.float32(value)
    assert to_fraction(single) == Fraction(str(single))
    assert np.float32(float(to_fraction(single))) == single
    assert to_binary_fraction(single) == Fraction(value)


@pytest.mark.parametrize(
    "value", [True, False, np.True_, None, 1j, b"1", [1], object()], ids=lambda value: type(value).__name__
)
def test_to_fraction_refuses_other_types(value: Any) -> None:
    with pytest.raises(TypeError):
        to_fraction(value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "",
        "one",
        "1/0",
        "1//2",
        "1e99999",
        Decimal("sNaN"),
        Decimal("1e-99999"),
    ],
)
def test_to_fraction_refuses_what_is_no_finite_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"finite|absurd|written"):
        to_fraction(value)


# --- exp --------------------------------------------------------------------------------------------------------------


def taylor_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of exp(x) by another route: halve x until it is small, sum a series with its remainder, square back."""
    halvings = 0
    while abs(x) > Fraction(1, 2):
        x, halvings = x / 2, halvings + 1
    term = total = Fraction(1)
    for order in range(1, 60):
        term = term * x / order
        total += term
    low, high = total - 2 * abs(term), total + 2 * abs(term)
    for _ in range(halvings):
        low, high = low * low, high * high
        low = Fraction(int(low * 2**600), 2**600)
        high = Fraction(int(high * 2**600) + 1, 2**600)
    return low, high


@pytest.mark.parametrize(
    "x", ["1e-30", "1e-9", "0.01", "0.1", "0.5", "1", "3", "10", "-1", "-0.01", "-30", "1/3", "-2/7"]
)
def test_bounds_enclose_the_exponential_tightly(x: str) -> None:
    value = Fraction(x)
    low, high = taylor_bounds(value)
    assert exp_lower(value) < high
    assert exp_upper(value) > low
    assert exp_lower(value) < exp_upper(value) <= exp_lower(value) * (1 + Fraction(1, 10**56))
    assert exp_lower(value) <= low * (1 + Fraction(1, 10**56))
    assert exp_lower(value) >= low * (1 - Fraction(1, 10**56))


def test_exponential_of_zero_is_one() -> None:
    assert exp_lower(Fraction(0)) == exp_upper(Fraction(0)) == 1


@given(st.fractions(min_value=-50, max_value=50, max_denominator=10**6), st.fractions(min_value=0, max_value=3))
def test_bounds_respect_order_and_addition(x: Fraction, step: Fraction) -> None:
    assert exp_lower(x) <= exp_upper(x)
    assert exp_lower(x) <= exp_upper(x + step)
    assert exp_lower(x) * exp_lower(step) <= exp_upper(x + step)
    assert exp_lower(x + step) <= exp_upper(x) * exp_upper(step)
    assert exp_lower(x) >= 1 + x if abs(x) > Fraction(1, 10**20) and x < 50 else True


def test_bounds_do_not_depend_on_the_ambient_decimal_context() -> None:
    value = Fraction(1, 3)
    usual = exp_lower(value), exp_upper(value)
    with localcontext() as context:
        context.prec = 3
        context.rounding = "ROUND_UP"
        assert (exp_lower(value), exp_upper(value)) == usual
        assert to_fraction("0.123456789") == Fraction(123456789, 10**9)


def test_bounds_hold_at_the_extremes_that_are_let_in() -> None:
    assert 0 < exp_lower(Fraction(-1000)) < exp_upper(Fraction(-1000)) < Fraction(1, 10**434)
    assert exp_lower(Fraction(1000)) > 10**434
    assert exp_lower(Fraction(1, 2**100)) >= 1
    assert exp_lower(Fraction(1, 10**200)) <= 1 + Fraction(1, 10**199)


# --- checks -----------------------------------------------------------------------------------------------------------

BAD: list[Any] = [math.nan, math.inf, -math.inf, "nan", "x", None, True, 1j, [1], np.array([1, 2])]


@pytest.mark.parametrize("bad", [*BAD, 0, -1, "1000.1", 10**6], ids=repr)
def test_epsilon_refusals(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        _check.epsilon(bad)


@pytest.mark.parametrize("bad", [*BAD, 0, -1, 1, 2, Fraction(1, 2**101)], ids=repr)
def test_delta_refusals(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        _check.delta(bad)


@pytest.mark.parametrize("bad", [*BAD, 0, 1, -1, 2], ids=repr)
def test_probability_refusals(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="failure"):
        _check.probability("failure", bad)


@pytest.mark.parametrize("bad", [*BAD, 0, 11, 1.5, "x"], ids=repr)
def test_integer_refusals(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"blocks must be a whole number, from 1 to 10\."):
        _check.integer("blocks", bad, least=1, most=10)


@pytest.mark.parametrize(
    ("check", "value", "exact"),
    [
        (_check.epsilon, "0.1", Fraction(1, 10)),
        (_check.epsilon, 1000, Fraction(1000)),
        (_check.delta, Fraction(1, 2**100), Fraction(1, 2**100)),
        (lambda value: _check.probability("p", value), 0.5, Fraction(1, 2)),
        (lambda value: _check.integer("n", value, least=0), 3.0, 3),
        (lambda value: _check.integer("n", value, least=0), np.int64(3), 3),
        (lambda value: _check.exact("x", value), "-1/3", Fraction(-1, 3)),
    ],
)
def test_checks_return_exact_values(check: Callable[[Any], Any], value: Any, exact: Any) -> None:
    assert check(value) == exact
    assert type(check(value)) is type(exact)


def test_an_empty_collection_is_refused_by_name() -> None:
    _check.at_least_one("votes", [0])
    with pytest.raises(InvalidParameter, match="votes must not be empty"):
        _check.at_least_one("votes", [])
