"""A budget is split exactly, and its parts never add up to more."""

from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.budget import NOTHING, Budget
from accord.errors import InvalidParameter

WEIGHTS = st.fractions(min_value=0, max_value=50, max_denominator=1000)


@given(
    epsilon=st.fractions(min_value=Fraction(1, 1000), max_value=1000),
    delta=st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 2)),
    weights=st.lists(st.tuples(WEIGHTS, WEIGHTS), min_size=1, max_size=8).filter(
        lambda pairs: all(sum(pair[place] for pair in pairs) > 0 for place in (0, 1))
    ),
)
def test_C2_parts_add_up_exactly(epsilon: Fraction, delta: Fraction, weights: list[tuple[Fraction, Fraction]]) -> None:
    total = Budget(epsilon, delta)
    parts = total.split(dict(enumerate(weights)))
    assert list(parts) == list(range(len(weights)))
    assert sum(parts.values(), NOTHING) == total
    left = total
    for part in parts.values():
        left -= part
    assert left == NOTHING


def test_equal_weights_give_equal_parts_and_a_part_without_weight_is_nothing() -> None:
    total = Budget(1, "1e-6")
    assert len(set(total.split(dict.fromkeys("abc", 1)).values())) == 1
    assert total.split({"a": 0, "b": 5}) == {"a": NOTHING, "b": total}
    assert NOTHING.split({"a": 0, "b": 0}) == {"a": NOTHING, "b": NOTHING}


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": -1, "b": 2}, {"a": (1, 0)}, {"a": float("nan")}, {"a": "x"}])
def test_weights_that_do_not_add_up_are_refused(weights: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter, match="weights"):
        Budget(1, "1e-6").split(weights)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (1001, 0), (1, 1), (1, -1), (float("nan"), 0), (1, "x")])
def test_numbers_out_of_range_are_refused(epsilon: float, delta: float | str) -> None:
    with pytest.raises(InvalidParameter):
        Budget(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, "1e-6"), (1, 0), (1, Fraction(1, 2**101))])
def test_what_somebody_asks_for_is_not_nothing(epsilon: int, delta: Fraction | str) -> None:
    Budget(epsilon, delta)
    with pytest.raises(InvalidParameter):
        Budget.asked(epsilon, delta)


@pytest.mark.parametrize("part", [Budget(2, 0), Budget(0, "1e-5")])
def test_no_more_is_taken_than_there_is(part: Budget) -> None:
    with pytest.raises(InvalidParameter, match="larger"):
        Budget(1, "1e-6") - part


def test_a_budget_is_frozen_exact_and_may_be_a_key() -> None:
    budget = Budget(0.1, "1e-6")
    assert (budget.epsilon, budget.delta) == (Fraction(1, 10), Fraction(1, 10**6))
    assert {budget: 1}[Budget("0.1", Fraction(1, 10**6))] == 1
    with pytest.raises(FrozenInstanceError):
        budget.epsilon = Fraction(1)  # type: ignore[misc]
    assert budget.at_most(20) == budget
    assert Budget(30, 0).at_most(20) == Budget(20, 0)
