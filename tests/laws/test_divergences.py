"""Divergences of finite laws: against a second route, and the laws they obey."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.exact import exp_lower, exp_upper, to_fraction
from accord.distributions import Categorical
from accord.errors import InvalidParameter
from accord.laws import (
    FiniteKernel,
    FiniteLaw,
    hellinger,
    kl_divergence,
    pure_approximation,
    pure_kl_bound,
    pure_symmetric_kl_bound,
    pure_total_variation_bound,
    smallest_delta,
    smallest_exp_epsilon,
    total_variation,
)
from accord.laws.hockey_stick import float_above, log_above, root_above

SIZE = 4
weights = st.integers(0, 40)
full_rows = st.lists(st.integers(1, 40), min_size=SIZE, max_size=SIZE)
rows = st.lists(weights, min_size=SIZE, max_size=SIZE).filter(any)
laws = rows.map(lambda row: FiniteLaw(dict(enumerate(row))))
full_laws = full_rows.map(lambda row: FiniteLaw(dict(enumerate(row))))
kernels = st.lists(rows, min_size=SIZE, max_size=SIZE).map(
    lambda table: FiniteKernel({x: FiniteLaw(dict(enumerate(row))) for x, row in enumerate(table)})
)
ratios = st.fractions(min_value=1, max_value=8, max_denominator=10)
quick = settings(max_examples=100)


def precise(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def by_decimals(p: FiniteLaw, q: FiniteLaw) -> tuple[Decimal, Decimal]:
    """Squared Hellinger distance and Kullback-Leibler divergence with 80 digits, in the forms without cancellation."""
    with localcontext() as context:
        context.prec = 80
        pairs = [(precise(p[y]), precise(q[y])) for y in dict.fromkeys([*p, *q])]
        square = sum(((a.sqrt() - b.sqrt()) ** 2 for a, b in pairs), Decimal(0)) / 2
        log = sum((a * (a / b).ln() - a + b for a, b in pairs if a and b), Decimal(0))
        return square, log + sum(b for a, b in pairs if not a)


def is_just_above(value: float, truth: Decimal) -> bool:
    """Whether a float is at least the truth, and within two units in its last place."""
    return Decimal(value) >= truth * (1 - Decimal(10) ** -70) and Decimal(value - 2 * math.ulp(value)) <= truth


@quick
@given(laws, laws)
def test_total_variation_by_half_the_sum_of_differences(p: FiniteLaw, q: FiniteLaw) -> None:
    assert total_variation(p, q) == sum((abs(p[y] - q[y]) for y in range(SIZE)), Fraction(0)) / 2


@quick
@given(laws, laws)
def test_hellinger_is_just_above_the_truth(p: FiniteLaw, q: FiniteLaw) -> None:
    square, _ = by_decimals(p, q)
    with localcontext() as context:
        context.prec = 80
        assert is_just_above(hellinger(p, q), square.sqrt()) or p == q
    assert hellinger(p, q) == hellinger(q, p)


@quick
@given(laws, laws)
def test_kl_divergence_is_just_above_the_truth(p: FiniteLaw, q: FiniteLaw) -> None:
    if any(p[y] and not q[y] for y in range(SIZE)):
        assert kl_divergence(p, q) == math.inf
    elif p != q:
        assert is_just_above(kl_divergence(p, q), by_decimals(p, q)[1])


@pytest.mark.parametrize("exponent", [3, 12, 30, 60])
def test_nearly_equal_laws_lose_no_digit(exponent: int) -> None:
    n = 10**exponent
    p, q = FiniteLaw({"a": n + 1, "b": n}), FiniteLaw({"a": n, "b": n + 1})
    with localcontext() as context:
        context.prec = 250
        square, log = (precise_value for precise_value in _two_points(n))
        assert is_just_above(hellinger(p, q), square.sqrt())
        assert is_just_above(kl_divergence(p, q), log)


def _two_points(n: int) -> tuple[Decimal, Decimal]:
    a, b, total = Decimal(n + 1), Decimal(n), Decimal(2 * n + 1)
    return (a.sqrt() - b.sqrt()) ** 2 / total, (a / b).ln() / total


def test_equal_laws_are_exactly_zero_apart_and_disjoint_laws_exactly_one() -> None:
    p, again, other = FiniteLaw({"a": 0.1, "b": 0.2}), FiniteLaw({"b": 0.2, "a": 0.1, "c": 0}), FiniteLaw({"z": 1})
    for distance in (total_variation, hellinger, kl_divergence):
        assert distance(p, again) == 0
    assert total_variation(p, other) == 1
    assert hellinger(p, other) == 1.0
    assert kl_divergence(p, other) == math.inf


def test_rational_values_come_out_as_such() -> None:
    p, q = FiniteLaw({"a": 1}), FiniteLaw({"a": 1, "b": 3})
    assert hellinger(p, q) == math.sqrt(0.5) or hellinger(p, q) == math.nextafter(math.sqrt(0.5), 1)
    assert kl_divergence(p, q) == pytest.approx(math.log(4), rel=1e-15)


@quick
@given(laws, laws)
def test_inequalities_between_distances(p: FiniteLaw, q: FiniteLaw) -> None:
    distance, h = float(total_variation(p, q)), hellinger(p, q)
    assert h**2 <= distance + 1e-12
    assert distance <= h * math.sqrt(2 - h**2) + 1e-12
    assert 2 * distance**2 <= kl_divergence(p, q) + 1e-12
    assert -2 * math.log1p(-(h**2) + 1e-12) <= kl_divergence(p, q) + 1e-9


@quick
@given(laws, laws, laws)
def test_triangle_inequality(p: FiniteLaw, q: FiniteLaw, r: FiniteLaw) -> None:
    assert total_variation(p, r) <= total_variation(p, q) + total_variation(q, r)
    assert hellinger(p, r) <= hellinger(p, q) + hellinger(q, r) + 1e-12


@quick
@given(laws, laws, kernels)
def test_processing_brings_laws_closer(p: FiniteLaw, q: FiniteLaw, kernel: FiniteKernel) -> None:
    both = FiniteKernel({0: p, 1: q}).then(kernel)
    assert total_variation(both(0), both(1)) <= total_variation(p, q)
    assert hellinger(both(0), both(1)) <= hellinger(p, q) * (1 + 1e-12)
    assert kl_divergence(both(0), both(1)) <= kl_divergence(p, q) * (1 + 1e-12)


@quick
@given(laws, laws, ratios, ratios)
def test_smallest_delta_falls_in_epsilon(p: FiniteLaw, q: FiniteLaw, a: Fraction, b: Fraction) -> None:
    low, high = sorted((a, b))
    assert smallest_delta(p, q, exp_epsilon=low) >= smallest_delta(p, q, exp_epsilon=high)


# --- M7 ---------------------------------------------------------------------------------------------------------------


@quick
@given(full_laws, full_laws)
def test_M7_bounds_at_the_exact_epsilon_of_random_pairs(p: FiniteLaw, q: FiniteLaw) -> None:
    ratio = smallest_exp_epsilon(p, q, delta=0)
    assert ratio is not None
    assert total_variation(p, q) <= (ratio - 1) / (ratio + 1)
    epsilon = log_above(ratio)
    _holds(p, q, epsilon)


@quick
@given(laws, full_laws, st.floats(0.01, 3))
def test_M7_bounds_for_pairs_made_close(p: FiniteLaw, q: FiniteLaw, epsilon: float) -> None:
    _holds(pure_approximation(p, q, epsilon=epsilon).law, q, epsilon)


def _holds(p: FiniteLaw, q: FiniteLaw, epsilon: float) -> None:
    """Everything that M7 says of a pair at its epsilon; the floats of both sides are rounded up, hence the leeway."""
    leeway = 1 + 2**-51
    there, back = kl_divergence(p, q), kl_divergence(q, p)
    assert total_variation(p, q) <= Fraction(pure_total_variation_bound(epsilon))
    assert there + back <= pure_symmetric_kl_bound(epsilon) * leeway
    assert max(there, back) <= pure_kl_bound(epsilon) * leeway
    assert max(there, back) <= pure_kl_bound(epsilon, form="seed") * leeway


@pytest.mark.parametrize("ratio", [2, 3, Fraction(101, 100), 10**6])
def test_M7_bounds_are_attained_by_two_points(ratio: Fraction) -> None:
    p, q = FiniteLaw({"a": ratio, "b": 1}), FiniteLaw({"a": 1, "b": ratio})
    epsilon = math.log(ratio)
    assert pure_total_variation_bound(epsilon) == pytest.approx(float(total_variation(p, q)), rel=1e-12)
    assert pure_kl_bound(epsilon) == pytest.approx(kl_divergence(p, q), rel=1e-12)
    assert pure_symmetric_kl_bound(epsilon) == pytest.approx(kl_divergence(p, q) + kl_divergence(q, p), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 0.7, 1.0, 5.0, 30.0])
def test_M7_bounds_against_the_formulas(epsilon: float) -> None:
    assert pure_total_variation_bound(epsilon) == pytest.approx(math.tanh(epsilon / 2), rel=1e-14)
    assert pure_symmetric_kl_bound(epsilon) == pytest.approx(2 * epsilon * math.tanh(epsilon / 2), rel=1e-14)
    assert pure_kl_bound(epsilon) == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-14)
    assert pure_kl_bound(epsilon, form="seed") == pytest.approx(epsilon * math.expm1(epsilon), rel=1e-14)


def test_M7_bounds_at_the_ends_and_beyond() -> None:
    assert pure_total_variation_bound(0) == pure_symmetric_kl_bound(0) == pure_kl_bound(0) == 0.0
    assert pure_total_variation_bound(1000) == 1.0
    assert pure_kl_bound(1000, form="seed") == math.inf
    for bound in (pure_total_variation_bound, pure_symmetric_kl_bound, pure_kl_bound):
        with pytest.raises(InvalidParameter, match="epsilon"):
            bound(-1)
    with pytest.raises(InvalidParameter, match="form"):
        pure_kl_bound(1, form="loose")  # type: ignore[arg-type]


# --- rounding ---------------------------------------------------------------------------------------------------------


@quick
@given(st.fractions(min_value=0))
def test_floats_are_rounded_up(value: Fraction) -> None:
    above = float_above(value)
    assert Fraction(above) >= value
    assert to_fraction(above) >= value  # that is how it is read again
    below = math.nextafter(above, -1)
    assert above == 0 or min(Fraction(below), to_fraction(below)) < value
    root = Fraction(root_above(value))
    assert root**2 >= value
    third = math.nextafter(math.nextafter(math.nextafter(root_above(value), 0), 0), 0)
    assert value == 0 or Fraction(third) ** 2 < value


@pytest.mark.parametrize("value", [Fraction(10) ** 400, Fraction(1, 10**400), Fraction(1, 3), Fraction(4, 9)])
def test_floats_at_the_ends_of_their_range(value: Fraction) -> None:
    assert float_above(value) == math.inf or Fraction(float_above(value)) >= value
    assert Fraction(root_above(value)) ** 2 >= value
    assert root_above(value) == pytest.approx(
        float(Decimal(value.numerator).sqrt() / Decimal(value.denominator).sqrt())
    )


def test_logarithms_are_rounded_up() -> None:
    assert log_above(Fraction(1)) == 0.0
    assert log_above(Fraction(10) ** 400) == pytest.approx(400 * math.log(10), rel=1e-15)
    assert log_above(1 + Fraction(1, 10**90)) == pytest.approx(1e-90, rel=1e-15)
    for value in (Fraction(3), Fraction(10**20 + 1, 10**20), Fraction(22, 7)):
        assert exp_upper(Fraction(log_above(value))) >= value
        assert exp_lower(Fraction(log_above(value)) * (1 - Fraction(1, 2**50))) < value


# --- categorical laws -------------------------------------------------------------------------------------------------


@quick
@given(full_rows, full_rows)
def test_categorical_laws_by_two_routes(row: list[int], other: list[int]) -> None:
    p, q = Categorical(list("abcd"), row), Categorical(list("abcd"), other)
    pairs = list(zip(p.probabilities, q.probabilities, strict=True))
    assert float(total_variation(p, q)) == pytest.approx(sum(abs(a - b) for a, b in pairs) / 2, abs=1e-15)
    square = sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in pairs) / 2
    assert hellinger(p, q) == pytest.approx(math.sqrt(square), rel=1e-9, abs=1e-15)
    log = sum(b * ((a / b - 1) * math.log(a / b)) for a, b in pairs)
    assert kl_divergence(p, q) + kl_divergence(q, p) == pytest.approx(log, rel=1e-9, abs=1e-15)


def test_categorical_laws_on_other_lists_and_with_finite_ones() -> None:
    p, q = Categorical(["a", "b"], [0.25, 0.75]), Categorical(["b", "c"], [0.5, 0.5])
    assert total_variation(p, q) == Fraction(1, 2)
    assert total_variation(p, FiniteLaw({"b": 3, "a": 1})) == 0
    assert total_variation(Categorical([True, 1], [0.5, 0.5]), FiniteLaw({1: 1})) == Fraction(1, 2)
