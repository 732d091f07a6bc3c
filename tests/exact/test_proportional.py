"""Proportional selection (S13): exact in every move of a vote, by all vote vectors; its law is the voters' mean."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core import proportional
from accord.core.curve import CHANCE_BITS, UnsafeCurve, scaled
from accord.core.proportional import proportional_curve, verify_proportional
from accord.errors import InvalidParameter
from accord.mechanisms import ABSTAIN, StableMode
from accord.privacy import NoAnswer
from accord.testing import worst_delta

SETTINGS = [
    ("1", "1e-6"),
    ("1", "0.01"),
    ("0.5", "0.05"),
    ("2", "0.1"),
    ("0.1", "0.2"),
    ("3", "0.001"),
    ("0.3", "1e-3"),
]
ONE = 1 << CHANCE_BITS


def spare_votes(epsilon: Any, delta: Any, *, votes: int) -> int:
    """Return the s of the curve."""
    return proportional._least_curve(Fraction(epsilon), Fraction(delta), votes)[0]


def law_with(curve: tuple[int, ...]) -> Any:
    """The law of a curve on votes, as `StableMode.law` gives it."""

    def law(votes: tuple[Any, ...]) -> dict[Any, Fraction]:
        counts = Counter(vote for vote in votes if vote is not ABSTAIN)
        chances = {vote: Fraction(curve[count], ONE) for vote, count in counts.items() if curve[count]}
        return {**chances, NoAnswer: 1 - sum(chances.values(), Fraction(0))}

    return law


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
@pytest.mark.parametrize("voters", [1, 2, 3, 5, 8])
def test_S13_every_move_of_a_vote_is_private(epsilon: str, delta: str, voters: int) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta, rule="proportional")
    assert worst_delta(mode.law, voters=voters, epsilon=epsilon) <= Fraction(delta)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
@pytest.mark.parametrize("voters", [2, 3, 5, 8])
def test_S13_the_check_is_what_all_vote_vectors_say(epsilon: str, delta: str, voters: int) -> None:
    """Also for curves that are not private: fewer spare votes, a steeper ramp."""
    seen = set()
    ratio, slack = scaled(Fraction(epsilon), Fraction(delta))
    for spare in range(1, spare_votes(epsilon, delta, votes=voters) + 2):
        for ramp in (slack, slack * 11 // 10):
            curve = proportional._curve(voters, spare, ratio=ratio, slack=ramp)
            private = worst_delta(law_with(curve), voters=voters, epsilon=epsilon) <= Fraction(delta)
            passes = proportional._fault(curve, spare, ratio=ratio, slack=slack) is None
            assert private or not passes
            seen.add((private, passes))
    assert (True, True) in seen


def test_S13_the_check_refuses_what_breaks_a_promise() -> None:
    for epsilon, delta, votes in (("1", "1e-6", 50), ("0.5", "1e-6", 100), ("1", "1e-6", 400)):
        spare = spare_votes(epsilon, delta, votes=votes)
        ratio, slack = scaled(Fraction(epsilon), Fraction(delta))
        curve = proportional._curve(votes, spare - 1, ratio=ratio, slack=slack)
        with pytest.raises(UnsafeCurve):
            verify_proportional(curve, spare - 1, epsilon=epsilon, delta=delta)


def test_S13_mutant_a_check_without_what_no_answer_loses_is_caught() -> None:
    """With one spare vote the ramp is still right and "no answer" loses too much: all vote vectors show it."""
    epsilon, delta, voters = "0.5", "0.05", 8
    ratio, slack = scaled(Fraction(epsilon), Fraction(delta))
    curve = proportional._curve(voters, 1, ratio=ratio, slack=slack)
    gains = [(after << CHANCE_BITS) - ratio * before for before, after in pairwise(curve)]
    assert max(gains) <= slack  # all that the broken check looks at
    assert worst_delta(law_with(curve), voters=voters, epsilon=epsilon) > Fraction(delta)


def test_S13_the_spare_votes_are_those_of_the_theory() -> None:
    assert [spare_votes(1, "1e-6", votes=votes) for votes in (50, 100, 200, 400, 1000, 4000)] == [5, 2, 3, 4, 4, 2]
    assert all(8 <= spare_votes("0.5", "1e-6", votes=votes) <= 11 for votes in (100, 200, 400, 1000))
    assert all(60 <= spare_votes("0.1", "1e-6", votes=votes) <= 83 for votes in (400, 1000, 4000))
    assert spare_votes(3, "1e-6", votes=100) == 1


@given(st.lists(st.sampled_from("aaabbcdeff"), min_size=30, max_size=60))
def test_S13_the_released_law_is_the_law_of_a_random_voter(votes: list[str]) -> None:
    mode = StableMode(epsilon=1, delta="1e-3", rule="proportional")
    law, total = mode.law(votes), len(votes)
    spare = spare_votes(1, "1e-3", votes=total)
    counts = Counter(votes)
    lost = sum((Fraction(count, total + spare) - law.get(value, 0) for value, count in counts.items()), Fraction(0))
    distance = sum((max(Fraction(0), Fraction(n, total) - law.get(z, 0)) for z, n in counts.items()), Fraction(0))
    assert distance <= Fraction(spare, total + spare) + lost
    assert law[NoAnswer] == distance  # what the values lack, no answer has


def test_S13_an_acceptance_is_nearly_the_share_of_the_votes() -> None:
    mode = StableMode(epsilon=1, delta="1e-6", rule="proportional")
    assert mode.acceptance(400, votes=1000) == Fraction(proportional_curve(1, "1e-6", votes=1000)[400], ONE)
    assert abs(float(mode.acceptance(400, votes=1000)) - 0.4) < 0.003
    assert mode.acceptance(mode.votes_needed(failure="0.05"), votes=mode.votes_needed(failure="0.05")) >= Fraction(
        95, 100
    )
    with pytest.raises(InvalidParameter, match="about as often"):
        mode.votes_needed(failure="0.1", agreement="0.8")
