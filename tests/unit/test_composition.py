"""Totals: check values, refusals with their reasons."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accord.accounting import PrivacyAccountant
from accord.errors import InvalidParameter
from accord.laws import FiniteKernel, FiniteLaw, check_dp
from accord.privacy import (
    ApproxDP,
    Neighbouring,
    NoGuarantee,
    PrivacyFilter,
    PureDP,
    advanced_composition,
    basic_composition,
    best_composition,
    composition_table,
    heterogeneous_composition,
    optimal_composition,
    parallel_composition,
)

ADD, IN_PLACE = Neighbouring.ADD_OR_REMOVE_ONE, Neighbouring.REPLACE_ONE_IN_PLACE


def test_C2_a_thousand_add_up() -> None:
    assert basic_composition([ApproxDP("0.1", "1e-10")] * 1000) == ApproxDP(100, "1e-7")


def test_C3_check_value() -> None:
    total = advanced_composition(ApproxDP("0.1", "1e-10"), rounds=1000, delta_prime="9e-7")
    assert float(total.epsilon) == pytest.approx(27.2029, abs=5e-5)
    assert total.delta == Fraction("1e-6")


@pytest.mark.parametrize(
    ("each", "rounds", "delta", "epsilon"),
    [
        (ApproxDP("0.1", "1e-10"), 1000, "1e-6", 19.4018523365),
        (PureDP("0.1"), 1000, "1e-6", 19.3446714480),
        (ApproxDP("0.1", "1e-8"), 1000, "1.1e-5", 19.3446366310),
        (PureDP("0.05"), 1000, "1e-6", 8.2835733460),
    ],
)
def test_C4_check_values(each: PureDP | ApproxDP, rounds: int, delta: str, epsilon: float) -> None:
    total = optimal_composition(each, rounds=rounds, delta=delta)
    assert float(total.epsilon) == pytest.approx(epsilon, abs=1e-9)
    assert total.delta == Fraction(delta)


def test_E26_an_infinite_total_says_why() -> None:
    each = ApproxDP("0.1", "1e-8")
    for total in (
        optimal_composition(each, rounds=1000, delta="1e-6"),
        best_composition([each] * 1000, delta="1e-6"),
        best_composition([PureDP(1), ApproxDP("0.5", "1e-6")], delta="1e-9"),
    ):
        assert isinstance(total, NoGuarantee)
        assert total.epsilon == total.at("0.1") == math.inf
        assert not total
        assert "more than the" in total.reason
    assert best_composition([PureDP(1), ApproxDP("0.5", "1e-6")], delta="1e-5").epsilon < Fraction(3, 2)


def test_E22_the_least_valid_bound_is_reported() -> None:
    assert best_composition([PureDP("0.1")] * 100, delta="1e-6").epsilon <= Fraction("5.7562")
    assert best_composition([PureDP("0.1")] * 30, delta="1e-6").epsilon <= 3
    assert float(best_composition([PureDP(1)] * 10, delta="1e-6").epsilon) == pytest.approx(10, abs=1e-4)
    assert best_composition([PureDP(1)] * 10, delta=0) == PureDP(10)
    table = composition_table([PureDP(1)] * 10, delta="1e-6")
    assert {bound.rule for bound in table.bounds} == {"basic", "advanced", "advanced, tight mean", "optimal"}
    assert float(table.bounds[1].total.epsilon) == pytest.approx(33.8, abs=0.05)  # far above the sum
    assert table.best.total.epsilon == min(bound.total.epsilon for bound in table.bounds)


@pytest.mark.parametrize(("rounds", "epsilon", "delta"), [(10, 5, "1e-5"), (1000, "0.8", "1e-5"), (3, 1000, "1e-5")])
def test_E27_large_losses_have_a_total(rounds: int, epsilon: Any, delta: str) -> None:
    total = best_composition([PureDP(epsilon)] * rounds, delta=delta)
    assert 0 < total.epsilon <= rounds * Fraction(epsilon)


@pytest.mark.parametrize(
    "compose",
    [
        basic_composition,
        lambda both: best_composition(both, delta="1e-6"),
        lambda both: heterogeneous_composition(both, delta="1e-6"),
        lambda both: parallel_composition(both, claimed_disjoint=True),
    ],
)
def test_E30_mixtures_are_refused_with_the_reason(compose: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidParameter, match="replacing a record is removing one and adding one"):
        compose([PureDP(1), PureDP(1, ADD)])
    with pytest.raises(InvalidParameter, match="different units of privacy \\(person, record\\)"):
        compose([PureDP(1), PureDP(1, unit="person")])
    with pytest.raises(InvalidParameter, match="must not be empty"):
        compose([])
    with pytest.raises(InvalidParameter, match="PureDP and ApproxDP values only"):
        compose([1.0])
    with pytest.raises(InvalidParameter, match="must be a collection"):
        compose(PureDP(1))
    with pytest.raises(InvalidParameter, match="holds one that is infinite: nothing"):
        compose([NoGuarantee(delta=Fraction(0), reason="nothing")])


def test_what_one_relation_says_of_the_other_is_told_correctly() -> None:
    with pytest.raises(InvalidParameter) as caught:
        basic_composition([PureDP(1), PureDP(1, ADD)])
    told = "(epsilon, delta) under 'add or remove one' gives (2 epsilon, (1 + e^epsilon) delta) under 'replace one'"
    assert told in str(caught.value)
    assert "the other way nothing follows" in str(caught.value)


def test_relation_and_unit_are_kept() -> None:
    each = ApproxDP("0.1", "1e-9", ADD, "person")
    totals = [
        basic_composition([each]),
        advanced_composition(each, rounds=2, delta_prime="1e-6"),
        optimal_composition(each, rounds=2, delta="1e-6"),
        best_composition([each, PureDP(1, ADD, "person")], delta="1e-6"),
        best_composition([each], delta=0),
    ]
    assert {(total.neighbouring, total.unit) for total in totals} == {(ADD, "person")}


def test_numbers_out_of_range_are_refused() -> None:
    each = ApproxDP("0.1", "0.1")
    with pytest.raises(InvalidParameter, match="at most 1"):
        advanced_composition(each, rounds=10, delta_prime="0.01")
    with pytest.raises(InvalidParameter, match="above 0"):
        advanced_composition(each, rounds=1, delta_prime=0)
    with pytest.raises(InvalidParameter, match="kl_bound"):
        advanced_composition(each, rounds=1, delta_prime="0.1", kl_bound="Seed")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="at most 1000"):
        advanced_composition(PureDP(1001), rounds=1, delta_prime="0.1")
    for rounds in (0, -1, 1.5, True, math.nan):
        with pytest.raises(InvalidParameter, match="rounds must be a whole number"):
            optimal_composition(each, rounds=rounds, delta="0.5")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="at most 100000"):
        optimal_composition(each, rounds=10**6, delta="0.5")
    for delta in (1, -1, math.nan, math.inf, None):
        with pytest.raises(InvalidParameter, match="delta"):
            best_composition([each], delta=delta)  # type: ignore[arg-type]


def test_C3_with_no_loss_and_at_the_end_of_its_range() -> None:
    assert advanced_composition(PureDP(0), rounds=5, delta_prime="0.1") == PureDP(0)
    assert advanced_composition(ApproxDP(0, "0.1"), rounds=5, delta_prime="0.1") == ApproxDP(0, "0.5")
    full = advanced_composition(ApproxDP(1, "0.1"), rounds=5, delta_prime="0.5")
    assert isinstance(full, NoGuarantee)
    assert "add up to 1" in full.reason
    assert isinstance(basic_composition([ApproxDP(1, "0.5")] * 2), NoGuarantee)


def test_optimal_composition_at_its_ends() -> None:
    assert optimal_composition(PureDP(0), rounds=9, delta="0.1") == ApproxDP(0, "0.1")
    assert optimal_composition(PureDP("0.1"), rounds=9, delta=0) == PureDP("0.9")
    assert optimal_composition(ApproxDP(2, "0.25"), rounds=1, delta="0.25").epsilon == 2  # all slack is spent
    assert optimal_composition(PureDP("0.1"), rounds=9, delta="0.999").epsilon == 0
    assert optimal_composition(PureDP(10**9), rounds=9, delta="0.1").epsilon == 9 * 10**9
    assert optimal_composition(PureDP("1e-300"), rounds=9, delta="1e-20").epsilon <= Fraction("9e-300")


def test_rounds_of_loss_0_cost_their_deltas_only() -> None:
    rounds: list[PureDP | ApproxDP] = [PureDP(1), ApproxDP(0, "1e-7"), ApproxDP(0, "2e-7")]
    assert best_composition(rounds, delta="1e-6").epsilon <= 1
    assert isinstance(best_composition(rounds, delta="1e-7"), NoGuarantee)
    assert best_composition([PureDP(0), PureDP(0)], delta="1e-6").epsilon == 0


def test_E25_numbers_that_could_be_swapped_have_names() -> None:
    each: Any = PureDP("0.1")
    swapped: list[Callable[[], Any]] = [
        lambda: optimal_composition(each, 10, "1e-6"),  # type: ignore[call-arg]
        lambda: advanced_composition(each, 10, "1e-6"),  # type: ignore[call-arg]
        lambda: best_composition([each], "1e-6"),  # type: ignore[call-arg]
        lambda: heterogeneous_composition([each], "1e-6"),  # type: ignore[call-arg]
        lambda: composition_table([each], "1e-6"),  # type: ignore[call-arg]
        lambda: parallel_composition([each], [[0]]),  # type: ignore[call-arg]
    ]
    for call in swapped:
        with pytest.raises(TypeError, match="positional argument"):
            call()


# E34 for levels that are public or not is a matter of the tables and jobs: tests/contract there. Here: of the totals.
def test_E34_a_delta_that_is_not_needed_is_not_spent_and_one_that_is_missing_is_named() -> None:
    table = composition_table([PureDP(1)] * 2, delta="1e-6")
    assert table.bounds[0].total == PureDP(2)
    needed = best_composition([ApproxDP(1, "1e-6")] * 2, delta=0)
    assert isinstance(needed, NoGuarantee)
    assert "spend a delta of 2e-06, more than the 0" in needed.reason or "add up to 2e-06" in needed.reason


# --- parallel composition ---------------------------------------------------------------------------------------------


def test_C1_disjoint_blocks_cost_the_maximum() -> None:
    four: list[PureDP | ApproxDP] = [PureDP(1), ApproxDP(2, "1e-7"), ApproxDP("0.5", "1e-6"), PureDP(1)]
    blocks: list[Any] = [range(10), np.arange(10, 20), [25, 21], {30}]
    assert parallel_composition(four, blocks=blocks) == ApproxDP(2, "1e-6", IN_PLACE)
    assert parallel_composition(four, claimed_disjoint=True) == ApproxDP(2, "1e-6")
    assert parallel_composition([PureDP(1, ADD)] * 2, claimed_disjoint=True) == PureDP(1, ADD)


def test_A6_C1_blocks_of_positions_hold_in_place_only() -> None:
    """Two records, each counted by a mechanism that says it aloud: a record that moves is seen by both."""
    bits = list(product((0, 1), repeat=2))
    kernel = FiniteKernel(
        {
            table: FiniteLaw({said: 9 ** sum(a == b for a, b in zip(table, said, strict=True)) for said in bits})
            for table in bits
        }
    )
    claimed = parallel_composition([PureDP("2.2")] * 2, blocks=[[0], [1]])
    assert claimed == PureDP("2.2", IN_PLACE)
    assert check_dp(kernel, epsilon=claimed.epsilon, delta=0, neighbours=claimed.neighbouring).holds
    moved = check_dp(kernel, epsilon=claimed.epsilon, delta=0, neighbours=Neighbouring.REPLACE_ONE)
    assert not moved.holds
    assert moved.delta > Fraction(1, 4)


def test_A6_replacing_anywhere_implies_in_place_and_a_mixture_is_in_place() -> None:
    mixed: list[PureDP | ApproxDP] = [PureDP(1), ApproxDP(2, "1e-6", IN_PLACE)]
    assert basic_composition(mixed) == ApproxDP(3, "1e-6", IN_PLACE)
    assert basic_composition(mixed[:1] * 2) == PureDP(2)
    assert parallel_composition(mixed, claimed_disjoint=True) == ApproxDP(2, "1e-6", IN_PLACE)
    with pytest.raises(InvalidParameter, match="mix the relations"):
        basic_composition([PureDP(1, ADD), PureDP(1, IN_PLACE)])
    accountant = PrivacyAccountant()
    for guarantee in (mixed[1], mixed[0]):
        accountant.charge(guarantee)
    assert accountant.total(delta="1e-5").neighbouring is IN_PLACE
    for cap, taken in ((PureDP(5), False), (PureDP(5, IN_PLACE), True)):
        budget = PrivacyFilter(cap)
        budget.admit(PureDP(1, cap.neighbouring))
        if taken:
            budget.admit(PureDP(1))
            assert budget.spent == PureDP(2, IN_PLACE)
        else:
            with pytest.raises(InvalidParameter, match="says nothing of records that stand elsewhere"):
                budget.admit(PureDP(1, IN_PLACE))
            assert budget.spent == PureDP(1)


def test_C1_E31_anything_but_disjoint_fixed_blocks_is_refused() -> None:
    two: list[PureDP | ApproxDP] = [PureDP(1), PureDP(1)]
    with pytest.raises(InvalidParameter, match="needs disjoint parts"):
        parallel_composition(two)
    with pytest.raises(InvalidParameter, match="needs disjoint parts"):
        parallel_composition(two, blocks=[[0], [1]], claimed_disjoint=True)
    with pytest.raises(InvalidParameter, match="needs disjoint parts"):
        parallel_composition(two, claimed_disjoint="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="stands in two of them"):
        parallel_composition(two, blocks=[range(5), range(4, 9)])
    with pytest.raises(InvalidParameter, match="one entry for each of the 2"):
        parallel_composition(two, blocks=[range(5)])
    for mask in ([True, False], np.array([False, True])):
        with pytest.raises(InvalidParameter, match="mask of truth values is made from the data"):
            parallel_composition(two, blocks=[mask, [7]])
    for entry in (-1, 0.5, "0"):
        with pytest.raises(InvalidParameter, match="positions"):
            parallel_composition(two, blocks=[[entry], [7]])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="removing one record moves all later ones"):
        parallel_composition([PureDP(1, ADD)] * 2, blocks=[[0], [1]])


def test_C1_blocks_that_are_empty_at_a_second_reading_are_refused() -> None:
    two: list[PureDP | ApproxDP] = [PureDP(1), PureDP(1)]
    once = iter(range(5))
    for block in (once, (i for i in range(5)), map(int, "01"), 3, None, {0: 1}, "01", np.array(3)):
        with pytest.raises(InvalidParameter, match="blocks must hold collections of positions"):
            parallel_composition(two, blocks=[block, block])  # type: ignore[list-item]
    assert list(once) == [0, 1, 2, 3, 4]  # refused before it was read
    blocks: Any
    for blocks in ({0: [0], 1: [1]}, ([i] for i in range(2)), iter([[0], [1]]), {(0,), (1,)}, "01", 7, np.array(7)):
        with pytest.raises(InvalidParameter, match="blocks must be a list or tuple"):
            parallel_composition(two, blocks=blocks)
    blocks = np.arange(6).reshape(2, 3)
    assert parallel_composition(two, blocks=blocks) == PureDP(1, IN_PLACE)


# --- how much work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["1e-6", "1e-30"])
def test_a_thousand_rounds_take_a_few_calls_each(work: Callable[[Callable[[], object]], int], delta: str) -> None:
    """Measured: 4.0 and 2.4 calls a round."""
    each = ApproxDP("0.1", "1e-33")
    assert work(lambda: optimal_composition(each, rounds=1000, delta=delta)) < 8000
