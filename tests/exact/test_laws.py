"""Finite laws, kernels and checks against enumeration, in rationals."""

import copy
import itertools
import math
import pickle
from collections import UserDict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.exact import exp_lower, exp_upper
from accord.errors import InvalidParameter
from accord.laws import (
    FiniteKernel,
    FiniteLaw,
    check_dp,
    hockey_stick,
    smallest_delta,
    smallest_epsilon,
    smallest_exp_epsilon,
    total_variation,
)
from accord.laws.finite import whole_numbers
from accord.laws.hockey_stick import loss
from accord.privacy import Neighbouring

weights = st.integers(0, 12)
rows = st.lists(weights, min_size=1, max_size=6).filter(any)
laws = rows.map(lambda row: FiniteLaw(dict(enumerate(row))))
ratios = st.fractions(min_value=1, max_value=8, max_denominator=6)
slacks = st.fractions(min_value=0, max_value=1, max_denominator=20)
exact = settings(max_examples=120)


def events(*given: FiniteLaw) -> list[tuple[Any, ...]]:
    outcomes = list(dict.fromkeys(outcome for law in given for outcome in law))
    return [event for size in range(len(outcomes) + 1) for event in itertools.combinations(outcomes, size)]


def by_enumeration(p: FiniteLaw, q: FiniteLaw, ratio: Fraction) -> Fraction:
    return max(p.mass(event) - ratio * q.mass(event) for event in events(p, q))


# --- laws -------------------------------------------------------------------------------------------------------------


def test_weights_of_every_kind_are_exact() -> None:
    law = FiniteLaw({"a": 1, "b": "0.1", "c": Decimal("0.2"), "d": Fraction(1, 3), "e": 0.5})
    total = 1 + Fraction(1, 10) + Fraction(1, 5) + Fraction(1, 3) + Fraction(1, 2)
    assert law.probabilities == tuple(
        weight / total for weight in (Fraction(1), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2))
    )
    assert sum(law.probabilities) == 1
    assert math.gcd(*law.numerators) == 1


@exact
@given(st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=1, max_size=8).filter(any))
def test_floats_are_taken_at_their_binary_value(row: list[float]) -> None:
    total = sum(map(Fraction, row))
    assert FiniteLaw(dict(enumerate(row))).probabilities == tuple(Fraction(weight) / total for weight in row)


@pytest.mark.parametrize("row", [[5e-324, 1.0], [5e-324, 1.7e308], [1e300, 2e300], [0.0, 3.5], [-0.0, 1.0]])
def test_floats_at_the_ends_of_their_range(row: list[float]) -> None:
    total = sum(map(Fraction, row))
    assert [Fraction(number, sum(whole_numbers(row))) for number in whole_numbers(row)] == [
        Fraction(weight) / total for weight in row
    ]


def test_numpy_numbers_are_numbers_and_numpy_labels_are_labels() -> None:
    given: dict[Any, Any] = {np.int64(1): np.float64(0.25), np.str_("x"): np.int32(1), "y": np.float32(0.5)}
    law = FiniteLaw(given)
    assert law[1] == Fraction(1, 7)
    assert law.outcomes == (1, "x", "y")
    assert {type(outcome) for outcome in law} == {int, str}


def test_order_is_kept_and_means_nothing() -> None:
    law, other = FiniteLaw({"b": 1, "a": 2, "z": 0}), FiniteLaw({"a": 4, "b": 2})
    assert law.outcomes == ("b", "a", "z")
    assert law == other
    assert hash(law) == hash(other)
    assert law != FiniteLaw({"a": 1, "b": 2})
    assert law != "no law"


def test_true_and_one_are_two_outcomes_and_one_and_one_point_zero_are_one() -> None:
    law = FiniteLaw.of([True, 1], weights=[1, 3])
    assert (law[True], law[1], law[1.0]) == (Fraction(1, 4), Fraction(3, 4), Fraction(3, 4))
    assert total_variation(FiniteLaw({True: 1}), FiniteLaw({1: 1})) == 1
    assert total_variation(FiniteLaw({(True, "x"): 1}), FiniteLaw({(1, "x"): 1})) == 1
    assert total_variation(FiniteLaw({frozenset({True}): 1}), FiniteLaw({frozenset({1}): 1})) == 1
    assert total_variation(FiniteLaw({1: 1}), FiniteLaw({1.0: 1})) == 0


def test_mass_expectation_and_membership() -> None:
    law = FiniteLaw({"a": 1, "b": 2, "c": 1})
    assert law.mass(["a", "a", "b", "foreign"]) == Fraction(3, 4)
    assert law.mass([]) == 0
    assert law.expectation(lambda outcome: "0.5" if outcome == "b" else 0) == Fraction(1, 4)
    assert "a" in law
    assert "z" not in law
    assert len(law) == 3


def test_values_survive_copying() -> None:
    law = FiniteLaw.of([True, 1, None, ("x", 2)], weights=[1, 2, 3, 0])
    kernel = FiniteKernel({0: law, 1: FiniteLaw({1: 1})})
    for copied in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):  # noqa: S301
        assert copied == kernel
        assert hash(copied) == hash(kernel)
        assert copied(0).outcomes == law.outcomes
    with pytest.raises(AttributeError):
        law.denominator = 1  # type: ignore[misc]


BAD_WEIGHTS: list[Any] = [
    {},
    {"a": -1, "b": 2},
    {"a": -0.5, "b": 2.0},
    {"a": float("nan"), "b": 1.0},
    {"a": float("inf")},
    {"a": Decimal("NaN")},
    {"a": 0, "b": 0},
    {"a": 0.0},
    {"a": "many"},
    {"a": None},
    {"a": True},
    {"a": 1j},
    {"a": [1]},
    [1, 2],
    "ab",
    None,
]


@pytest.mark.parametrize("given", BAD_WEIGHTS)
def test_bad_weights_are_refused_by_name(given: Any) -> None:
    with pytest.raises(InvalidParameter, match="weights"):
        FiniteLaw(given)


class Odd(UserDict[Any, Any]):
    """A mapping that claims to have keys no dict can hold."""

    def __init__(self, keys: list[Any]) -> None:
        super().__init__()
        self.odd = keys

    def keys(self) -> Any:
        return self.odd

    def values(self) -> Any:
        return [1] * len(self.odd)


@pytest.mark.parametrize(
    "keys",
    [[[1], 2], [float("nan")], [("x", float("nan"))], [np.float64("nan")], [Decimal("NaN")], ["a", "a"], [1, 1.0]],
)
def test_bad_outcomes_are_refused_by_name(keys: list[Any]) -> None:
    with pytest.raises(InvalidParameter, match="outcomes"):
        FiniteLaw(Odd(keys))


def test_outcomes_and_weights_must_fit() -> None:
    with pytest.raises(InvalidParameter, match="one for each outcome"):
        FiniteLaw.of(["a", "b"], weights=[1])
    with pytest.raises(InvalidParameter, match="weights"):
        FiniteLaw.of(["a"], weights="1")
    with pytest.raises(InvalidParameter, match="weights"):
        FiniteLaw.of(["a"], weights=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="outcomes"):
        FiniteLaw.of("ab", weights=[1, 2])


def test_denominators_of_absurd_size_are_refused_before_memory_is_full() -> None:
    with pytest.raises(InvalidParameter, match="denominators"):
        FiniteLaw({atom: Fraction(1, 2**40000 + atom) for atom in range(2000)})


# --- hockey stick -----------------------------------------------------------------------------------------------------


@exact
@given(laws, laws, ratios)
def test_M9_hockey_stick_is_the_maximum_over_events(p: FiniteLaw, q: FiniteLaw, ratio: Fraction) -> None:
    assert hockey_stick(p, q, exp_epsilon=ratio) == by_enumeration(p, q, ratio)
    both = max(by_enumeration(p, q, ratio), by_enumeration(q, p, ratio))
    assert smallest_delta(p, q, exp_epsilon=ratio) == both == smallest_delta(q, p, exp_epsilon=ratio)


@exact
@given(laws, laws, st.fractions(min_value=0, max_value=3, max_denominator=50))
def test_M9_irrational_ratio_gives_a_narrow_upper_bound(p: FiniteLaw, q: FiniteLaw, epsilon: Fraction) -> None:
    found = hockey_stick(p, q, epsilon=epsilon)
    least, most = (by_enumeration(p, q, bound) for bound in (exp_upper(epsilon), exp_lower(epsilon)))
    assert least <= found
    assert found <= least + Fraction(1, 10**50)
    assert abs(found - most) <= Fraction(1, 10**50)


def test_epsilon_zero_is_total_variation() -> None:
    p, q = FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "c": 1})
    assert hockey_stick(p, q, epsilon=0) == total_variation(p, q) == Fraction(1, 2)


@pytest.mark.parametrize("epsilon", [1000, "1e-200", 1e-300])
def test_extreme_epsilons(epsilon: Any) -> None:
    p, q = FiniteLaw({"a": 1, "b": 1}), FiniteLaw({"a": 1})
    assert hockey_stick(p, q, epsilon=epsilon) == Fraction(1, 2)
    assert smallest_delta(p, p, epsilon=epsilon) == 0


@pytest.mark.parametrize("weights", [(10**30, 1), (1, 10**30), (7, 7)])
def test_order_and_padding_of_outcomes_do_not_matter(weights: tuple[int, int]) -> None:
    p, q = FiniteLaw({"a": weights[0], "b": weights[1]}), FiniteLaw({"b": 1, "a": 2})
    padded = FiniteLaw({"z": 0, "a": 2, "y": 0, "b": 1})
    assert hockey_stick(p, q, exp_epsilon=2) == hockey_stick(p, padded, exp_epsilon=2)
    assert hockey_stick(q, p, exp_epsilon=2) == hockey_stick(padded, p, exp_epsilon=2)


# --- smallest epsilon -------------------------------------------------------------------------------------------------


@exact
@given(laws, laws, slacks)
def test_smallest_exp_epsilon_is_tight(p: FiniteLaw, q: FiniteLaw, delta: Fraction) -> None:
    ratio = smallest_exp_epsilon(p, q, delta=delta)
    if ratio is None:
        lost = max(p.mass(set(p) - {x for x in q if q[x]}), q.mass(set(q) - {x for x in p if p[x]}))
        assert lost > delta
        assert smallest_epsilon(p, q, delta=delta) == math.inf
        return
    assert smallest_delta(p, q, exp_epsilon=ratio) <= delta
    if ratio > 1:
        assert smallest_delta(p, q, exp_epsilon=ratio) == delta
        assert smallest_delta(p, q, exp_epsilon=max(Fraction(1), ratio - Fraction(1, 10**9))) > delta


@exact
@given(laws, laws, slacks)
def test_smallest_epsilon_is_rounded_up_and_passes_the_check(p: FiniteLaw, q: FiniteLaw, delta: Fraction) -> None:
    epsilon, ratio = smallest_epsilon(p, q, delta=delta), smallest_exp_epsilon(p, q, delta=delta)
    if ratio is None:
        return
    kernel = FiniteKernel({0: p, 1: q})
    assert exp_upper(Fraction(epsilon)) >= ratio
    assert check_dp(kernel, neighbours=[(0, 1)], epsilon=epsilon, delta=delta).holds
    assert epsilon == pytest.approx(math.log(ratio), rel=1e-15, abs=1e-15)
    if epsilon > 0:
        below = epsilon * (1 - 2.0**-50)
        assert not check_dp(kernel, neighbours=[(0, 1)], epsilon=below, delta=delta).holds


def test_smallest_epsilon_of_laws_that_are_nearly_equal() -> None:
    p, q = FiniteLaw({"a": 10**40 + 1, "b": 10**40}), FiniteLaw({"a": 1, "b": 1})
    epsilon = smallest_epsilon(p, q, delta=0)
    assert epsilon == pytest.approx(0.5e-40, rel=1e-12)
    assert check_dp(FiniteKernel({0: p, 1: q}), neighbours=[(0, 1)], epsilon=epsilon, delta=0).holds


@pytest.mark.parametrize("delta", [-1, "1.1", float("nan"), None, "x"])
def test_delta_is_checked(delta: Any) -> None:
    p = FiniteLaw({"a": 1})
    with pytest.raises(InvalidParameter, match="delta"):
        smallest_epsilon(p, p, delta=delta)
    with pytest.raises(InvalidParameter, match="delta"):
        check_dp(FiniteKernel({0: p}), neighbours=[(0, 0)], epsilon=1, delta=delta)


BAD_LOSS: list[dict[str, Any]] = [
    {},
    {"epsilon": 1, "exp_epsilon": 3},
    {"epsilon": -1},
    {"epsilon": 1001},
    {"epsilon": float("nan")},
    {"epsilon": True},
    {"exp_epsilon": "0.9"},
    {"exp_epsilon": float("inf")},
]


@pytest.mark.parametrize("given", BAD_LOSS)
def test_epsilon_is_checked(given: dict[str, Any]) -> None:
    p = FiniteLaw({"a": 1})
    for call in (hockey_stick, smallest_delta):
        with pytest.raises(InvalidParameter, match="epsilon"):
            call(p, p, **given)
    with pytest.raises(InvalidParameter, match="epsilon"):
        check_dp(FiniteKernel({0: p}), neighbours=[(0, 0)], delta=0, **given)


@pytest.mark.parametrize("other", [{"a": 1}, None, 0.5])
def test_other_things_are_no_laws(other: Any) -> None:
    p = FiniteLaw({"a": 1})
    with pytest.raises(InvalidParameter, match="p and q"):
        hockey_stick(p, other, epsilon=1)
    with pytest.raises(InvalidParameter, match="p and q"):
        smallest_epsilon(other, p, delta=0)


# --- the number e^epsilon ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10**9), Fraction(2000, 3), Fraction(1000)])
def test_bounds_of_the_exponential_are_nested(epsilon: Fraction) -> None:
    wide = loss(epsilon, None)
    narrow = wide.refined()
    assert 1 <= wide.lower <= narrow.lower < narrow.upper <= wide.upper
    assert narrow.upper - narrow.lower <= narrow.lower / 10**110
    assert loss(None, 3).refined() == loss(None, 3)


@pytest.mark.parametrize("digits", [70, 130, 400])
def test_a_verdict_beyond_the_first_digits_is_refined(digits: int) -> None:
    # delta is Q(b) - sqrt(e) P(b) but for 10^-digits, so sixty digits of sqrt(e) cannot tell which is larger.
    p, q = FiniteLaw({"a": 9, "b": 1}), FiniteLaw({"a": 1, "b": 1})
    kernel = FiniteKernel({0: p, 1: q})
    bounds = loss("0.5", None)
    for _ in range(4):
        bounds = bounds.refined()
    close = Fraction(1, 2) - bounds.lower / 10
    above, below = (close + sign * Fraction(1, 10**digits) for sign in (1, -1))
    assert check_dp(kernel, neighbours=[(0, 1)], epsilon="0.5", delta=above).holds
    failed = check_dp(kernel, neighbours=[(0, 1)], epsilon="0.5", delta=below)
    assert not failed.holds
    assert failed.witness.pair == (1, 0)
    assert failed.witness.event == ("b",)
    assert q["b"] - bounds.upper * p["b"] > below


# --- kernels and checks -----------------------------------------------------------------------------------------------

SIZE = 3
square_rows = st.lists(st.lists(weights, min_size=SIZE, max_size=SIZE).filter(any), min_size=SIZE, max_size=SIZE)
kernels = square_rows.map(lambda rows: FiniteKernel({x: FiniteLaw(dict(enumerate(row))) for x, row in enumerate(rows)}))
all_pairs = list(itertools.combinations(range(SIZE), 2))


def matrix(kernel: FiniteKernel) -> list[list[Fraction]]:
    return [[kernel(x)[y] for y in range(SIZE)] for x in range(SIZE)]


@exact
@given(kernels, kernels, kernels)
def test_composition_is_the_product_of_matrices_and_associative(
    first: FiniteKernel, second: FiniteKernel, third: FiniteKernel
) -> None:
    a, b = matrix(first), matrix(second)
    product = [[sum(a[x][y] * b[y][z] for y in range(SIZE)) for z in range(SIZE)] for x in range(SIZE)]
    assert matrix(first.then(second)) == product
    assert first.then(second).then(third) == first.then(second.then(third))


@exact
@given(kernels, kernels, ratios)
def test_M6_post_processing_never_costs(first: FiniteKernel, second: FiniteKernel, ratio: Fraction) -> None:
    before = check_dp(first, neighbours=all_pairs, exp_epsilon=ratio, delta=0)
    after = check_dp(first.then(second), neighbours=all_pairs, exp_epsilon=ratio, delta=before.delta)
    assert after.holds
    assert after.delta <= before.delta


@exact
@given(laws, laws, ratios, st.lists(st.fractions(0, 1, max_denominator=9), min_size=6, max_size=6))
def test_M5_holds_for_test_functions(p: FiniteLaw, q: FiniteLaw, ratio: Fraction, values: list[Fraction]) -> None:
    delta = hockey_stick(p, q, exp_epsilon=ratio)
    assert p.expectation(values.__getitem__) <= ratio * q.expectation(values.__getitem__) + delta


@exact
@given(kernels, ratios, slacks)
def test_M9_check_is_the_maximum_over_ordered_pairs_and_events(
    kernel: FiniteKernel, ratio: Fraction, delta: Fraction
) -> None:
    found = check_dp(kernel, neighbours=all_pairs, exp_epsilon=ratio, delta=delta)
    worst = max(by_enumeration(kernel(x), kernel(y), ratio) for x, y in itertools.permutations(range(SIZE), 2))
    assert found.delta == worst
    assert found.holds == (worst <= delta)
    one, other = (kernel(given) for given in found.witness.pair)
    assert one.mass(found.witness.event) - ratio * other.mass(found.witness.event) == worst


@exact
@given(kernels, st.fractions(0, 3, max_denominator=20), slacks)
def test_a_failed_check_has_a_certain_witness(kernel: FiniteKernel, epsilon: Fraction, delta: Fraction) -> None:
    found = check_dp(kernel, neighbours=all_pairs, epsilon=epsilon, delta=delta)
    one, other = (kernel(given).mass(found.witness.event) for given in found.witness.pair)
    if found.holds:
        assert found.delta <= delta
    else:
        assert one - exp_upper(epsilon) * other > delta


def test_randomised_response_is_exactly_as_private_as_it_says() -> None:
    response = FiniteKernel({0: FiniteLaw({0: 3, 1: 1}), 1: FiniteLaw({0: 1, 1: 3})})
    assert check_dp(response, neighbours=[(0, 1)], exp_epsilon=3, delta=0).holds
    assert not check_dp(response, neighbours=[(0, 1)], exp_epsilon="2.999999", delta=0).holds
    twice = response.then(response)
    assert check_dp(twice, neighbours=[(0, 1)], exp_epsilon="5/3", delta=0).holds
    assert check_dp(twice, neighbours=[(0, 1)], exp_epsilon=1, delta=0).delta == Fraction(1, 4)


def test_relations_list_the_pairs_of_datasets() -> None:
    inputs = [rows for size in (1, 2) for rows in itertools.product("ab", repeat=size)]
    kernel = FiniteKernel({rows: FiniteLaw({rows.count("a"): 1}) for rows in inputs})
    same = FiniteKernel({rows: FiniteLaw({len(rows): 1}) for rows in inputs})
    assert check_dp(same, neighbours=Neighbouring.REPLACE_ONE, epsilon=0, delta=0).holds
    assert check_dp(same, neighbours=Neighbouring.ADD_OR_REMOVE_ONE, epsilon=0, delta=0).delta == 1
    assert check_dp(kernel, neighbours=Neighbouring.REPLACE_ONE, epsilon=0, delta=0).witness.pair == (("a",), ("b",))


def test_relations_agree_with_enumeration() -> None:
    inputs = [rows for size in range(4) for rows in itertools.product([True, 1], repeat=size)]
    kernel = FiniteKernel.of(inputs, laws=[FiniteLaw.of([tuple(map(str, rows))], weights=[1]) for rows in inputs])
    moved = {
        frozenset({(*rest[:i], a, *rest[i:]), (*rest[:j], b, *rest[j:])})
        for size in range(3)
        for rest in itertools.product("ab", repeat=size)
        for i, j, a, b in itertools.product(range(size + 1), range(size + 1), "ab", "ab")
    }
    counts = {
        Neighbouring.REPLACE_ONE: sum(len(pair) == 2 for pair in moved),
        Neighbouring.REPLACE_ONE_IN_PLACE: 1 + 4 + 12,
        Neighbouring.ADD_OR_REMOVE_ONE: 2 + 6 + 16,
    }
    from accord.laws.kernel import _listed

    for relation, count in counts.items():
        assert len(_listed(kernel, relation)) == count


BAD_NEIGHBOURS: list[Any] = [[], [(0, 7)], [(0,)], [0], "01", None, 5, Neighbouring.REPLACE_ONE]


@pytest.mark.parametrize("neighbours", BAD_NEIGHBOURS)
def test_bad_neighbours_are_refused_by_name(neighbours: Any) -> None:
    kernel = FiniteKernel({0: FiniteLaw({"a": 1}), 1: FiniteLaw({"a": 1})})
    with pytest.raises(InvalidParameter, match="neighbours"):
        check_dp(kernel, neighbours=neighbours, epsilon=1, delta=0)


@pytest.mark.parametrize("given", [{}, [], None, {0: {"a": 1}}, {0: None}])
def test_bad_rows_are_refused_by_name(given: Any) -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        FiniteKernel(given)


def test_kernels_are_checked_where_they_are_used() -> None:
    kernel = FiniteKernel({0: FiniteLaw({"a": 1, "b": 0})})
    assert kernel.then(FiniteKernel({"a": FiniteLaw({"z": 1})}))(0)["z"] == 1
    assert list(kernel) == [0]
    assert len(kernel) == 1
    assert kernel != "no kernel"
    with pytest.raises(InvalidParameter, match="every outcome of positive probability"):
        kernel.then(FiniteKernel({"b": FiniteLaw({"z": 1})}))
    with pytest.raises(InvalidParameter, match="kernel"):
        kernel.then(FiniteLaw({"a": 1}))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no row"):
        kernel(1)
    with pytest.raises(InvalidParameter, match="distinct"):
        FiniteKernel.of([0, 0], laws=[kernel(0), kernel(0)])
    with pytest.raises(InvalidParameter, match="kernel"):
        check_dp({0: kernel(0)}, neighbours=[(0, 0)], epsilon=1, delta=0)  # type: ignore[arg-type]
