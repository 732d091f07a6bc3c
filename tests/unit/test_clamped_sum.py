"""Sums with the sensitivity they have: the public bug reports on bounds, clamping, order and overflow."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import DataError, InvalidParameter
from accord.mechanisms import ClampedSum, DiscreteLaplace, Laplace
from accord.privacy import Neighbouring
from accord.testing import ReplayRandomness

BOTH = [Neighbouring.REPLACE_ONE, Neighbouring.ADD_OR_REMOVE_ONE]


def test_E07_the_sum_does_not_depend_on_the_order() -> None:
    column = np.array([1e16, 1.0, -1e16, 1.0])
    query = ClampedSum(lower=-2, upper=2)
    assert {query.value(np.random.default_rng(seed).permutation(column)) for seed in range(20)} == {Fraction(2)}
    near = np.full(1024, 2.0**50) + np.arange(1024) % 2
    narrow = ClampedSum(lower=2**50, upper=2**50 + 1)
    assert narrow.value(near) == 1024 * 2**50 + 512 == narrow.value(near[::-1])


@given(
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    other=st.floats(allow_nan=False),
    place=st.integers(0, 29),
    ends=st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)),
)
def test_E07_neighbours_never_move_it_by_more_than_the_sensitivity(
    values: list[float], other: float, place: int, ends: tuple[float, float]
) -> None:
    lower, upper = ends[0], ends[0] + ends[1]
    place %= len(values)
    replace = ClampedSum(lower=lower, upper=upper)
    changed = [*values[:place], other, *values[place + 1 :]]
    assert abs(replace.value(values) - replace.value(changed)) <= replace.sensitivity.bound
    remove = ClampedSum(lower=lower, upper=upper, neighbouring=Neighbouring.ADD_OR_REMOVE_ONE)
    fewer = values[:place] + values[place + 1 :]
    assert abs(remove.value(values) - remove.value(fewer)) <= remove.sensitivity.bound
    assert abs(float(replace.value(values)) - float(np.clip(values, lower, upper).sum())) <= 1e-6 * (
        abs(lower) + upper + 1
    )


@pytest.mark.parametrize(
    ("bounds", "replace", "remove"),
    [((0, 5), 5, 5), ((0, 100), 100, 100), ((-3, 100), 103, 100), ((-100, 0), 100, 100)],
)
def test_E08_E09_sensitivities_are_neither_floored_nor_zero(bounds: tuple[int, int], replace: int, remove: int) -> None:
    found = [ClampedSum(lower=bounds[0], upper=bounds[1], neighbouring=relation).sensitivity for relation in BOTH]
    assert [sensitivity.bound for sensitivity in found] == [replace, remove]
    assert [sensitivity.neighbouring for sensitivity in found] == BOTH


def test_E08_E09_sensitivity_is_the_largest_move_by_enumeration() -> None:
    for relation in BOTH:
        query = ClampedSum(lower=-3, upper=2, neighbouring=relation)
        worlds = list(product([-9, -3, 0, 1, 2, 50], repeat=2))
        moves = [
            abs(query.value([a, b]) - (query.value([a, c]) if relation is BOTH[0] else query.value([a])))
            for a, b in worlds
            for c in (-9, 0, 50)
        ]
        assert max(moves) == query.sensitivity.bound


def test_E10_the_release_is_that_of_the_clamped_column() -> None:
    query = ClampedSum(lower=0, upper=120)
    mechanism = Laplace(sensitivity=query.sensitivity, epsilon=1)
    outcomes = [
        mechanism.release(query.value(ages), randomness=ReplayRandomness(3)).value
        for ages in ([34, 230, -4, 51], [34, 120, 0, 51])
    ]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("lower", "upper"), [(1, 1), (2, 1), (float("nan"), 1), (0, float("inf")), (None, 1), (0, "1e400")]
)
def test_E11_silly_bounds_are_refused(lower: Any, upper: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"lower|upper"):
        ClampedSum(lower=lower, upper=upper)


def test_E04_infinities_are_clamped_and_nan_follows_the_stated_policy() -> None:
    assert ClampedSum(lower=0, upper=10).value([np.inf, -np.inf, 3.0]) == 13
    with pytest.raises(InvalidParameter, match=r"missing="):
        ClampedSum(lower=0, upper=10).value([1.0, np.nan])
    assert ClampedSum(lower=0, upper=10, missing=4).value([1.0, np.nan]) == 5
    with pytest.raises(InvalidParameter, match="between"):
        ClampedSum(lower=0, upper=10, missing=11)


def test_E06_large_integers_do_not_wrap() -> None:
    query = ClampedSum(lower=-(2**63), upper=2**63 - 1)
    top = np.iinfo(np.int64).max
    total = query.value(np.full(100, top))
    assert abs(total - 100 * (2**63 - 1)) <= 100 * query.step
    assert abs(query.value([top, 0]) - query.value([top, 1])) <= query.sensitivity.bound


@pytest.mark.parametrize("contributions", [1, 3, 20])
def test_E15_a_person_with_several_rows_is_charged_for_all_of_them(contributions: int) -> None:
    query = ClampedSum(lower=-10, upper=10, contributions=contributions)
    names = np.array(["ann"] * 20 + ["bob"] * 2)
    high, low = np.array([10.0] * 20 + [1.0] * 2), np.array([-10.0] * 20 + [1.0] * 2)
    move = query.value(high, units=names) - query.value(low, units=names)
    assert move == 20 * contributions == query.sensitivity.bound
    unbounded = query.value(high) - query.value(low)
    assert (unbounded > query.sensitivity.bound) == (contributions < 20)


def test_which_records_of_a_unit_count() -> None:
    query = ClampedSum(lower=0, upper=100, contributions=2)
    assert query.value([1, 10, 2, 4, 20], units=["a", "b", "a", "a", "b"]) == 33


@pytest.mark.parametrize("odd", [0.5, -1, "x", b"x", 2.0**70, True, "a\0", ("a",)])
def test_one_units_name_does_not_change_how_others_are_read(odd: Any) -> None:
    ids = [2**60 + i for i in range(100)]
    query = ClampedSum(lower=0, upper=1, neighbouring=Neighbouring.ADD_OR_REMOVE_ONE)
    assert query.value([1.0] * 100, units=ids) == 100
    assert query.value([1.0] * 101, units=[*ids, odd]) == 101
    wide = ClampedSum(lower=-10, upper=10, neighbouring=Neighbouring.ADD_OR_REMOVE_ONE)
    assert abs(wide.value([10.0, -10.0], units=[odd, "a"]) - wide.value([-10.0], units=["a"])) <= 10
    assert query.value([1.0] * 100, units=np.array(ids)) == 100


@pytest.mark.parametrize("units", [np.ma.array(["a"], mask=[True]), [None], [float("nan")], [("a", None)]])
def test_A7_missing_units_are_refused(units: Any) -> None:
    with pytest.raises(DataError, match="no unit of privacy"):
        ClampedSum(lower=0, upper=1).value([1.0], units=units)


def test_integers_stay_exact_with_discrete_noise() -> None:
    query = ClampedSum(lower=0, upper=5)
    value = query.value([1, 2, 9])
    assert value == 8
    release = DiscreteLaplace(sensitivity=query.sensitivity, scale=5).release(int(value))
    assert release.guarantee.epsilon == 1


@pytest.mark.parametrize(
    "values", ["abc", [["a"]], [1j], [None, 1.0], np.zeros((2, 2)), np.ma.array([1.0], mask=[True])]
)
def test_what_is_no_column_of_numbers_is_refused(values: Any) -> None:
    with pytest.raises(InvalidParameter):
        ClampedSum(lower=0, upper=1).value(values)


def test_lengths_must_match() -> None:
    with pytest.raises(InvalidParameter, match="one unit a record"):
        ClampedSum(lower=0, upper=1).value([1, 2], units=["a"])


ENDS = [(100, 101), (-101, -100), (-3, 2), (0, 5), (-5, 0)]


def worlds(values: list[float], *, fewest: int, most: int) -> list[list[float]]:
    """All records that one unit may have."""
    return [list(records) for size in range(fewest, most + 1) for records in product(values, repeat=size)]


def largest_move(query: ClampedSum, *, lower: int, upper: int, fewest: int) -> Fraction:
    """The largest difference over all pairs of units, the second one standing in another place of the file."""
    others = [lower + 0.25, upper - 0.25, upper + 7.0]
    values = [lower - 9.0, lower + 0.5, upper + 9.0]
    units = worlds(values, fewest=fewest, most=query.contributions)
    absent = [[]] if query.neighbouring is Neighbouring.ADD_OR_REMOVE_ONE else units
    first = {query.value([*unit, *others], units=["a"] * len(unit) + ["b", "b", "c"]) for unit in units}
    second = {query.value([*others, *unit], units=["b", "b", "c"] + ["z"] * len(unit)) for unit in absent}
    return max(abs(one - other) for one in first for other in second)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (0, 1), (1, 3), (0, 3), (2, 3), (3, 3)])
@pytest.mark.parametrize("relation", BOTH)
def test_A1_a_replaced_unit_may_have_another_number_of_records(
    ends: tuple[int, int], fewest: int, most: int, relation: Neighbouring
) -> None:
    lower, upper = ends
    query = ClampedSum(lower=lower, upper=upper, contributions=most, fewest=fewest, neighbouring=relation)
    assert largest_move(query, lower=lower, upper=upper, fewest=fewest) == query.sensitivity.bound


def test_A1_ten_records_become_one() -> None:
    query = ClampedSum(lower=100, upper=101, contributions=10)
    before, after = query.value([101] * 10, units=["a"] * 10), query.value([100], units=["b"])
    assert before - after == 910 == query.sensitivity.bound
    assert ClampedSum(lower=100, upper=101, contributions=10, fewest=0).sensitivity.bound == 1010
    assert ClampedSum(lower=100, upper=101, contributions=10, fewest=10).sensitivity.bound == 10
    bad: Any
    for bad in (-1, 11, 0.5, True):
        with pytest.raises(InvalidParameter, match="fewest"):
            ClampedSum(lower=100, upper=101, contributions=10, fewest=bad)
