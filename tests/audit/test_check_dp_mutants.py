"""Broken forms of the exact check, each of which the same few facts must catch."""

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from accord.laws import FiniteKernel, FiniteLaw, check_dp, hockey_stick, smallest_delta
from accord.laws import kernel as check
from accord.laws.finite import Event, Pair, best_event
from accord.laws.hockey_stick import Loss, loss

# A mechanism that blurts out a record with probability 1/100: only one direction of the pair shows it.
LEAKY = FiniteKernel({"with": FiniteLaw({"quiet": 99, "loud": 1}), "without": FiniteLaw({"quiet": 1})})
# The worst pair comes last, and its event has two outcomes.
THREE = FiniteKernel(
    {
        0: FiniteLaw({"a": 4, "b": 4, "c": 4}),
        1: FiniteLaw({"a": 5, "b": 4, "c": 3}),
        2: FiniteLaw({"a": 1, "b": 1, "c": 10}),
    }
)


def the_check_is_right() -> None:
    """Assert facts that were counted by hand."""
    for order in (("with", "without"), ("without", "with")):
        found = check_dp(LEAKY, neighbours=[order], exp_epsilon=2, delta=0)
        assert not found.holds
        assert found.delta == Fraction(1, 100)
        assert found.witness.pair == ("with", "without")
        assert found.witness.event == ("loud",)
    found = check_dp(THREE, neighbours=list(itertools.combinations(range(3), 2)), exp_epsilon=2, delta="1/10")
    assert not found.holds
    assert found.delta == Fraction(5 + 4 - 2 * 2, 12)
    assert found.witness.pair == (1, 2)
    assert found.witness.event == ("a", "b")
    assert check_dp(THREE, neighbours=[(0, 1)], epsilon="0.3", delta=0).holds
    assert not check_dp(THREE, neighbours=[(0, 2)], epsilon="0.9", delta="0.08").holds


def test_the_check_itself_passes() -> None:
    the_check_is_right()


def one_direction(pairs: Sequence[Any]) -> list[Any]:
    return list(pairs)


def backwards(pairs: Sequence[Any]) -> list[Any]:
    return [(other, one) for one, other in pairs]


def last_pair_missing(pairs: Sequence[Any]) -> list[Any]:
    return [way for one, other in pairs[: max(1, len(pairs) - 1)] for way in ((one, other), (other, one))]


def first_pair_only(pairs: Sequence[Any]) -> list[Any]:
    return [pairs[0], pairs[0][::-1]]


@pytest.mark.parametrize("mutant", [one_direction, backwards, last_pair_missing, first_pair_only])
def test_wrong_pairs_are_caught(mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_both_ways", mutant)
    with pytest.raises(AssertionError):
        the_check_is_right()


def some(pair: Pair, members: Sequence[bool]) -> Event:
    first, second = (
        sum(number for number, member in zip(numbers, members, strict=True) if member)
        for numbers in (pair.first, pair.second)
    )
    return Event(
        members=tuple(members),
        first=Fraction(first, pair.first_total),
        second=Fraction(second, pair.second_total),
    )


def event_without_its_last_outcome(pair: Pair, *, ratio: Fraction) -> Event:
    members = list(best_event(pair, ratio=ratio).members)
    if any(members):
        members[len(members) - 1 - members[::-1].index(True)] = False
    return some(pair, members)


def event_with_one_outcome_more(pair: Pair, *, ratio: Fraction) -> Event:
    members = list(best_event(pair, ratio=ratio).members)
    if not all(members):
        members[members.index(False)] = True
    return some(pair, members)


def single_outcomes_only(pair: Pair, *, ratio: Fraction) -> Event:
    singles = [some(pair, [place == chosen for place in range(len(pair.first))]) for chosen in range(len(pair.first))]
    return max(singles, key=lambda event: event.excess(ratio))


def complement(pair: Pair, *, ratio: Fraction) -> Event:
    return some(pair, [not member for member in best_event(pair, ratio=ratio).members])


@pytest.mark.parametrize(
    "mutant", [event_without_its_last_outcome, event_with_one_outcome_more, single_outcomes_only, complement]
)
def test_wrong_events_are_caught(mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "best_event", mutant)
    with pytest.raises(AssertionError):
        the_check_is_right()


def squared(epsilon: Any, exp_epsilon: Any) -> Loss:
    right = loss(epsilon, exp_epsilon)
    return Loss(epsilon=None, lower=right.lower**2, upper=right.upper**2)


def root(epsilon: Any, exp_epsilon: Any) -> Loss:
    right = loss(epsilon, exp_epsilon)
    half = (1 + right.lower) / 2
    return Loss(epsilon=None, lower=half, upper=half)


@pytest.mark.parametrize("mutant", [squared, root])
def test_a_wrong_power_of_e_is_caught(mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "loss", mutant)
    with pytest.raises(AssertionError):
        the_check_is_right()


def test_one_direction_can_miss_everything() -> None:
    p, q = LEAKY("without"), LEAKY("with")
    assert hockey_stick(p, q, exp_epsilon=2) == 0
    assert smallest_delta(p, q, exp_epsilon=2) == Fraction(1, 100)
