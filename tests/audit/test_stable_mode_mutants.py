"""Broken variants of the vote mechanisms must be caught by the enumeration that the real ones pass."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest

from accord.core import curve as curves
from accord.core import stable_mode
from accord.core.exact import exp_lower
from accord.mechanisms import ABSTAIN, BestOfDraws, StableMode
from accord.privacy import NoAnswer
from accord.testing import worst_delta

Law = Mapping[Any, Fraction]
ONE = 2**128
real_curve = curves.exclusive_curve


def is_private(mechanism: StableMode | BestOfDraws, *, voters: int, draws: int | None = None) -> bool:
    found = worst_delta(mechanism.law, voters=voters, epsilon=mechanism.epsilon, draws=draws)
    return found <= mechanism.delta


# --- the distance rule ------------------------------------------------------------------------------------------------

DISTANCE = [("1", "1e-6", 3), ("0.5", "0.05", 4), ("3", "0.1", 6)]


@pytest.mark.parametrize(("epsilon", "delta", "voters"), DISTANCE)
def test_distance_threshold_one_too_low(epsilon: str, delta: str, voters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta, rule="distance")
    assert is_private(mode, voters=voters)
    threshold = stable_mode.safe_threshold(mode.epsilon, mode.delta)
    monkeypatch.setattr(stable_mode, "safe_threshold", lambda *_: threshold - 1)
    assert not is_private(mode, voters=voters)


@pytest.mark.parametrize(("epsilon", "delta", "voters"), DISTANCE)
def test_E13_gap_noised_as_if_it_moved_by_one(
    epsilon: str, delta: str, voters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta, rule="distance")
    monkeypatch.setattr(stable_mode, "half_gap", lambda first, second: first - second)
    assert not is_private(mode, voters=voters)


def test_E13_half_gap_moves_by_one_and_gap_by_two() -> None:
    for first in range(12):
        for second in range(first + 1):
            moved = [
                (first + up, second + down)
                for up in (-1, 0, 1)
                for down in (-1, 0, 1)
                if first + up >= second + down >= 0
            ]
            here = stable_mode.half_gap(first, second)
            assert max(abs(stable_mode.half_gap(*pair) - here) for pair in moved) <= 1


def test_distance_noise_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule="distance")
    threshold = stable_mode.safe_threshold(mode.epsilon, mode.delta)
    monkeypatch.setattr(stable_mode, "safe_threshold", lambda *_: threshold)
    assert is_private(mode, voters=6)
    monkeypatch.setattr(stable_mode, "noise_ratio", lambda _: Fraction(1, 8))  # exp(-2.08)
    assert not is_private(mode, voters=6)


def test_E14_noise_does_not_depend_on_the_number_of_voters() -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule="distance")
    laws = [mode.law(["a"] * (many + 4) + ["b"] * many)["a"] for many in (1, 5, 50, 500)]
    assert len(set(laws)) == 1


# --- exclusive selection ----------------------------------------------------------------------------------------------


FACTORS = {"2 epsilon": ("2", "1"), "2 delta": ("1", "2"), "1.1 epsilon": ("1.1", "1"), "1.1 delta": ("1", "1.1")}


@pytest.mark.parametrize(("epsilon", "delta", "voters"), [("1", "1e-6", 4), ("0.5", "0.05", 4), ("3", "0.1", 6)])
@pytest.mark.parametrize("mutant", FACTORS)
def test_curve_of_another_guarantee(
    epsilon: str, delta: str, voters: int, mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta)
    assert is_private(mode, voters=voters)
    on_epsilon, on_delta = FACTORS[mutant]
    other = real_curve(mode.epsilon * Fraction(on_epsilon), mode.delta * Fraction(on_delta), votes=voters)
    monkeypatch.setattr(stable_mode, "exclusive_curve", lambda *_, votes: other)
    assert not is_private(mode, voters=voters)


@pytest.mark.parametrize(("epsilon", "delta", "voters"), [("3", "0.1", 5), ("3", "0.1", 7), ("2", "0.3", 6)])
def test_offset_one_too_low(epsilon: str, delta: str, voters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta)
    offset = curves.offset_of(real_curve(epsilon, delta, votes=voters))
    assert offset > 0
    ratio, slack = curves.scaled(mode.epsilon, mode.delta)
    lower = curves._curve(offset - 1, votes=voters, ratio=ratio, slack=slack)
    monkeypatch.setattr(stable_mode, "exclusive_curve", lambda *_, votes: lower)
    assert not is_private(mode, voters=voters)


def test_yes_no_test_is_no_exclusive_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chances of the optimal yes/no test, taken for each value as if it were alone."""
    mode = StableMode(epsilon=3, delta="0.1")
    alone = tuple(int(bound * ONE) for bound in islice(curves.yes_no_test(3, "0.1"), 8))
    monkeypatch.setattr(stable_mode, "exclusive_curve", lambda *_, votes: alone)
    assert not is_private(mode, voters=7)


def test_mode_that_is_nearly_always_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stable_mode, "safe_threshold", lambda *_: -30)
    assert not is_private(StableMode(epsilon=1, delta="0.1", rule="distance"), voters=3)


# --- best of draws ----------------------------------------------------------------------------------------------------


def test_best_of_draws_with_the_whole_epsilon_per_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    best = BestOfDraws(epsilon=3, delta="0.2", draws=1)
    assert is_private(best, voters=6, draws=1)
    monkeypatch.setattr(BestOfDraws, "_growth", lambda self: int(exp_lower(self.epsilon) * ONE))
    assert not is_private(best, voters=6, draws=1)


def test_best_of_draws_with_the_whole_delta_in_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    best = BestOfDraws(epsilon=1, delta="1e-3", draws=2)
    assert is_private(best, voters=2, draws=2)

    def heavier(self: BestOfDraws) -> Iterator[int]:
        yield from BestOfDraws(epsilon=self.epsilon, delta=self.delta, draws=1)._weights()

    alone = list(islice(heavier(best), 8))
    monkeypatch.setattr(BestOfDraws, "_weights", lambda _: iter(alone))
    assert not is_private(best, voters=2, draws=2)


@pytest.mark.parametrize(("draws", "voters"), [(1, 1), (1, 3), (2, 2)])
def test_best_of_draws_that_always_answers(draws: int, voters: int) -> None:
    best = BestOfDraws(epsilon=1, delta="1e-3", draws=draws)

    def without_rest(votes: object) -> Law:
        law = best.law(votes)  # type: ignore[arg-type]
        rest = law.pop(NoAnswer)
        return {cell: chance / (1 - rest) for cell, chance in law.items()}

    assert is_private(best, voters=voters, draws=draws)
    assert worst_delta(without_rest, voters=voters, epsilon=1, draws=draws) > best.delta


# --- abstentions ------------------------------------------------------------------------------------------------------


def winners(law: Callable[[Any], Law]) -> set[Any]:
    return set(law(["a", "a", ABSTAIN, ABSTAIN, ABSTAIN]))


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_electable_abstention(rule: Any) -> None:
    mode = StableMode(epsilon=3, delta="0.1", rule=rule)
    stands_for_election = "nobody"

    def electable(votes: list[Any]) -> Law:
        law = mode.law([stands_for_election if vote is ABSTAIN else vote for vote in votes])
        return {ABSTAIN if value == stands_for_election else value: chance for value, chance in law.items()}

    assert winners(mode.law) == {"a", NoAnswer}
    assert ABSTAIN in winners(electable)


def test_electable_abstention_in_best_of_draws() -> None:
    best = BestOfDraws(epsilon=3, delta="0.1", draws=1)
    assert set(best.law([["a", "a", ABSTAIN, ABSTAIN, ABSTAIN]])) == {(0, "a"), NoAnswer}


# --- noise used twice -------------------------------------------------------------------------------------------------


def test_E17_two_releases_do_not_share_noise() -> None:
    """At a chance near one half, 200 equal answers in a row would have probability below 2^-100."""
    mode = StableMode(epsilon="0.5", delta="0.05")
    votes = ["a"] * 4
    assert Fraction(35, 100) < mode.acceptance(4, votes=4) < Fraction(65, 100)
    assert len({mode.release(votes).value for _ in range(200)}) == 2
    best = BestOfDraws(epsilon=1, delta="0.1", draws=1)
    assert Fraction(35, 100) < best.law([["a"] * 6])[NoAnswer] < Fraction(65, 100)
    assert len({best.release([["a"] * 6]).value for _ in range(200)}) == 2
