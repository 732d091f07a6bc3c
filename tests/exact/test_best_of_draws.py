"""S9: best of draws by enumeration, all votes of one voter moving at once."""

import math
from fractions import Fraction

import pytest

from accord.errors import InvalidParameter
from accord.mechanisms import ABSTAIN, BestOfDraws
from accord.privacy import ApproxDP, NoAnswer
from accord.testing import worst_delta

SHAPES = [(1, 1), (1, 2), (1, 5), (1, 6), (2, 1), (2, 2), (2, 3), (3, 1), (4, 1)]
PAIRS = [("1", "1e-6"), ("0.5", "0.1"), ("0.1", "0.05"), ("3", "0.6"), ("6", "0.9")]


@pytest.mark.parametrize(("draws", "voters"), SHAPES)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_S9_smallest_delta_over_all_neighbours_is_at_most_delta(
    draws: int, voters: int, epsilon: str, delta: str
) -> None:
    law = BestOfDraws(epsilon=epsilon, delta=delta, draws=draws).law
    found = worst_delta(law, voters=voters, epsilon=epsilon, draws=draws)
    assert found <= Fraction(delta)
    assert found >= Fraction(delta) / (1 + Fraction(delta)) * Fraction(999, 1000), "not loose"


def test_S9_smallest_delta_with_three_draws_and_two_voters() -> None:
    law = BestOfDraws(epsilon=1, delta="0.1", draws=3).law
    assert worst_delta(law, voters=2, epsilon=1, draws=3) <= Fraction(1, 10)


@pytest.mark.parametrize(("draws", "votes"), [(1, 35), (4, 38), (16, 41), (64, 43), (256, 46)])
def test_S9_votes_needed(draws: int, votes: int) -> None:
    best = BestOfDraws(epsilon=1, delta="1e-6", draws=draws)
    assert best.votes_needed(failure="0.05") == votes
    real = 1 + 2 * math.log(draws * 0.95 / (1e-6 * 0.05))
    assert votes == math.ceil(real)


def test_S9_votes_needed_is_the_least_by_the_law() -> None:
    best = BestOfDraws(epsilon=2, delta="1e-3", draws=2)
    votes = best.votes_needed(failure="0.1")

    def failure(count: int) -> Fraction:
        return best.law([["a"] * count, [ABSTAIN] * count])[NoAnswer]

    assert failure(votes) <= Fraction(1, 10) < failure(votes - 1)


def test_S9_weights_grow_by_the_lower_bound_and_never_more() -> None:
    best = BestOfDraws(epsilon=1, delta="1e-6", draws=4)
    weights = [weight for _, weight in zip(range(60), best._weights(), strict=False)]
    assert weights[0] == 0
    assert weights[1] == int(Fraction("1e-6") / 4 * 2**256)
    for count in range(1, 59):
        assert (
            weights[count] <= weights[count + 1] <= Fraction(math.exp(0.5)) * (1 + Fraction(1, 2**50)) * weights[count]
        )
        assert weights[count] / 2**256 == pytest.approx(2.5e-7 * math.exp((count - 1) / 2), rel=1e-12)


def test_S9_law_is_proportional_to_weights() -> None:
    best = BestOfDraws(epsilon=1, delta="0.1", draws=2)
    weights = [weight for _, weight in zip(range(4), best._weights(), strict=False)]
    law = best.law([["a", "a", "b"], ["a", ABSTAIN, "c"]])
    total = 2**256 + weights[2] + 3 * weights[1]
    assert law == {
        (0, "a"): Fraction(weights[2], total),
        (0, "b"): Fraction(weights[1], total),
        (1, "a"): Fraction(weights[1], total),
        (1, "c"): Fraction(weights[1], total),
        NoAnswer: Fraction(2**256, total),
    }


def test_S9_equal_values_of_different_draws_are_different_cells() -> None:
    best = BestOfDraws(epsilon=1, delta="0.1", draws=2)
    assert set(best.law([["a"], ["a"]])) == {(0, "a"), (1, "a"), NoAnswer}


def test_nobody_wins_when_all_abstain() -> None:
    best = BestOfDraws(epsilon=5, delta="0.5", draws=2)
    assert best.law([[ABSTAIN] * 3] * 2) == {NoAnswer: 1}
    assert best.release([[ABSTAIN] * 3] * 2).value is NoAnswer


def test_guarantee_and_fields_are_exact() -> None:
    best = BestOfDraws(epsilon="0.1", delta="1e-6", draws=3)
    assert best.guarantee == ApproxDP("0.1", "1e-6", unit="voter")
    assert best == BestOfDraws(epsilon=Fraction(1, 10), delta=Fraction(1, 10**6), draws=3)


def test_S9_a_delta_too_large_for_epsilon_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"exp\(epsilon / 2\) - 1"):
        BestOfDraws(epsilon="0.1", delta="0.06", draws=1)
    BestOfDraws(epsilon="0.1", delta="0.05", draws=1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0, "delta": "0.1", "draws": 1},
        {"epsilon": math.nan, "delta": "0.1", "draws": 1},
        {"epsilon": 1, "delta": 0, "draws": 1},
        {"epsilon": 1, "delta": 1, "draws": 1},
        {"epsilon": 1, "delta": "0.1", "draws": 0},
        {"epsilon": 1, "delta": "0.1", "draws": 1.5},
        {"epsilon": 1, "delta": "0.1", "draws": True},
        {"epsilon": 1, "delta": "0.1", "draws": 10**7},
    ],
)
def test_refusals_at_construction(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        BestOfDraws(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "votes",
    [
        [["a"]],
        [["a"], ["a"], ["a"]],
        [["a"], ["a", "b"]],
        [[], []],
        ["ab", "cd"],
        {0: ["a"], 1: ["b"]},
        [["a"], [["b"]]],
    ],
)
def test_refusals_of_shapes(votes: object) -> None:
    with pytest.raises(InvalidParameter):
        BestOfDraws(epsilon=1, delta="0.1", draws=2).law(votes)  # type: ignore[arg-type]


@pytest.mark.parametrize("failure", [0, 1, -1, math.nan])
def test_refusals_of_failure(failure: float) -> None:
    with pytest.raises(InvalidParameter):
        BestOfDraws(epsilon=1, delta="0.1", draws=2).votes_needed(failure=failure)


def test_absurd_demands_are_refused_not_searched_for_ever() -> None:
    with pytest.raises(InvalidParameter, match="1000000"):
        BestOfDraws(epsilon="1e-7", delta="1e-9", draws=2).votes_needed(failure="0.1")
