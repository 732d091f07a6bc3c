"""S7, S8, L6: the stable mode by enumeration and by a second, plain form of the curve check. Rationals, no luck."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import Literal

import pytest

from accord.core import curve as curves
from accord.core.curve import UnsafeCurve, exclusive_curve, offset_of, verify_curve, yes_no_test
from accord.core.exact import exp_lower
from accord.core.stable_mode import noise_ratio, safe_threshold, tail
from accord.errors import InvalidParameter
from accord.mechanisms import ABSTAIN, StableMode
from accord.privacy import ApproxDP, NoAnswer
from accord.testing import worst_delta

Rule = Literal["exclusive", "distance"]
PAIRS = [("1", "1e-6"), ("0.1", "0.1"), ("0.5", "0.01"), ("3", "0.1"), ("0.1", "1e-3"), ("0.01", "0.3"), ("10", "1e-9")]
ONE = 2**128


# --- privacy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5, 6])
def test_S8_L6_smallest_delta_over_all_neighbours_is_at_most_delta(
    rule: Rule, epsilon: str, delta: str, voters: int
) -> None:
    found = worst_delta(StableMode(epsilon=epsilon, delta=delta, rule=rule).law, voters=voters, epsilon=epsilon)
    assert found <= Fraction(delta)
    if rule == "exclusive":
        assert found > Fraction(delta) * Fraction(999, 1000), "not loose"
    else:  # the threshold is the least: one below it would spend more than delta
        assert found > Fraction(delta) * noise_ratio(Fraction(epsilon)) * Fraction(999, 1000)


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_S8_L6_smallest_delta_with_seven_voters(rule: Rule) -> None:
    for epsilon, delta in [("1", "1e-6"), ("3", "0.1")]:
        law = StableMode(epsilon=epsilon, delta=delta, rule=rule).law
        assert worst_delta(law, voters=7, epsilon=epsilon) <= Fraction(delta)


def growth_strings(voters: int) -> Iterator[tuple[object, ...]]:
    """Every vector of votes by position, abstentions included, up to relabelling."""
    for letters in product([ABSTAIN, *"abcde"[:voters]], repeat=voters):
        cast = [letter for letter in letters if letter is not ABSTAIN]
        first_seen = list(dict.fromkeys(cast))
        if first_seen == sorted(first_seen) == list("abcde"[: len(first_seen)]):
            yield letters


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_laws_do_not_depend_on_the_order_of_voters(rule: Rule) -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule=rule)
    strings = list(growth_strings(5))
    assert len(strings) == 203  # the Bell number of 6: abstaining is one class more
    for votes in strings:
        assert mode.law(votes) == mode.law(sorted(votes, key=str)), "E44"


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_E44_a_tie_does_not_look_at_rows(rule: Rule) -> None:
    mode = StableMode(epsilon=3, delta="0.1", rule=rule)
    assert mode.law(["A", "B", "A", "B"]) == mode.law(["B", "B", "A", "A"])


# --- the check of the curve -------------------------------------------------------------------------------------------


def positive(number: Fraction) -> Fraction:
    return max(number, Fraction(0))


def plain_check(curve: tuple[int, ...], *, epsilon: str, delta: str) -> bool:
    """S8 as it is written in the theory: all moves, nothing left out, nothing rearranged."""
    a, slack, k = exp_lower(Fraction(epsilon)), Fraction(delta), len(curve) - 1
    c = [Fraction(chance, ONE) for chance in curve]
    most = [Fraction(0)]
    for total in range(1, k + 1):
        most.append(max(c[part] + most[total - part] for part in range(1, total + 1)))

    def spent(n: int, m: int, rest: Fraction, *, gain: bool) -> Fraction:
        fewer, more = c[n - 1] if n else Fraction(0), c[m + 1] if gain else Fraction(0)
        before = c[n] + (c[m] if gain else 0)
        bottom, after = 1 - before - rest, 1 - fewer - more - rest
        added = positive(more - a * c[m]) if gain else Fraction(0)
        return added + positive(fewer - a * c[n]) + positive(after - a * bottom)

    moves = [spent(n, m, most[k - n - m], gain=True) for n in range(1, k + 1) for m in range(k - n + 1)]
    to_abstain = [spent(n, 0, most[k - n], gain=False) for n in range(1, k + 1)]
    from_abstain = [spent(0, m, most[k - 1 - m], gain=True) for m in range(k)]
    return most[k] <= 1 and max(moves + to_abstain + from_abstain) <= slack


def accepted(curve: tuple[int, ...], *, epsilon: str, delta: str) -> bool:
    try:
        verify_curve(curve, epsilon=epsilon, delta=delta)
    except UnsafeCurve:
        return False
    return True


def curve_at(offset: int, *, epsilon: str, delta: str, votes: int) -> tuple[int, ...]:
    ratio, slack = curves.scaled(Fraction(epsilon), Fraction(delta))
    return curves._curve(offset, votes=votes, ratio=ratio, slack=slack)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01", "0.1", "0.5"])
def test_S8_the_check_agrees_with_the_plain_one_at_every_offset(epsilon: str, delta: str) -> None:
    answers = set()
    for votes in [1, 2, 3, 5, 8, 13, 20]:
        for offset in range((votes + 1) // 2 + 1):
            curve = curve_at(offset, epsilon=epsilon, delta=delta, votes=votes)
            plain = plain_check(curve, epsilon=epsilon, delta=delta)
            assert accepted(curve, epsilon=epsilon, delta=delta) == plain, (votes, offset)
            answers.add(plain)
    assert True in answers


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "0.1"), ("3", "0.1")])
@pytest.mark.parametrize("votes", [4, 9, 16, 25])
def test_S8_a_tampered_curve_is_refused(epsilon: str, delta: str, votes: int) -> None:
    """Every entry is as large as it can be where the curve is tight; where both checks differ from that they agree."""
    curve = exclusive_curve(epsilon, delta, votes=votes)
    step = int(Fraction(delta) * ONE) // 100
    refused = 0
    for count in range(votes + 1):
        tampered = (*curve[:count], curve[count] + step, *curve[count + 1 :])
        rising = all(left <= right for left, right in pairwise(tampered)) and tampered[0] == 0
        verdict = accepted(tampered, epsilon=epsilon, delta=delta)
        assert verdict == (rising and plain_check(tampered, epsilon=epsilon, delta=delta))
        refused += not verdict
    assert refused >= votes // 2


@pytest.mark.parametrize("curve", [(), (0,), (1, 1), (0, 2, 1), (-1, 0, 0), (0, ONE + 1)])
def test_S8_a_malformed_curve_is_refused(curve: tuple[int, ...]) -> None:
    with pytest.raises(UnsafeCurve):
        verify_curve(curve, epsilon=1, delta="0.9")


def test_S8_chances_that_add_up_to_more_than_one_are_refused() -> None:
    with pytest.raises(UnsafeCurve, match="more than 1"):
        verify_curve((0, ONE * 6 // 10, ONE * 9 // 10), epsilon=1, delta="0.9")


def test_S8_the_check_runs_whenever_a_curve_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(curves, "verify_curve", lambda curve, **_: calls.append(curve))
    curves._least_curve.cache_clear()
    curve = exclusive_curve("1.25", "1e-5", votes=9)
    curves._least_curve.cache_clear()
    assert calls == [curve]


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "2", "5", "10"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "1e-4", "0.01", "0.1", "0.5"])
def test_S8_the_offset_is_the_least_that_passes(epsilon: str, delta: str) -> None:
    for votes in range(1, 41):
        scan = next(
            offset
            for offset in range(votes + 1)
            if accepted(
                curve_at(offset, epsilon=epsilon, delta=delta, votes=votes),
                epsilon=epsilon,
                delta=delta,
            )
        )
        assert offset_of(exclusive_curve(epsilon, delta, votes=votes)) == scan


def test_S8_offsets_occur() -> None:
    """The test above and the mutant "one less" would be empty otherwise."""
    assert [offset_of(exclusive_curve(1, "1e-6", votes=votes)) for votes in (16, 24, 28, 32, 100)] == [0, 0, 1, 3, 37]


def test_S8_most_taken_is_the_largest_sum_over_all_splits() -> None:
    def splits(total: int, largest: int) -> Iterator[tuple[int, ...]]:
        if total == 0:
            yield ()
        for first in range(min(total, largest), 0, -1):
            for rest in splits(total - first, first):
                yield (first, *rest)

    for curve in [
        exclusive_curve(1, "0.1", votes=18),
        (0, 0, 0, 5, 6, 7, 7, 11, 12, 30, 30, 31),
        (0, 3, 4, 9, 9, 9, 9, 9),
    ]:
        best = [
            max(sum(curve[part] for part in split) for split in splits(total, total)) for total in range(len(curve))
        ]
        assert curves.most_taken(curve) == best


# --- the least number of votes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "unanimous", "most_agree"),
    [
        ("0.1", "1e-6", 132, 147),
        ("0.1", "1e-9", 201, 224),
        ("0.5", "1e-6", 30, 34),
        ("0.5", "1e-9", 44, 49),
        ("1", "1e-6", 16, 18),
        ("1", "1e-9", 23, 26),
        ("3", "1e-6", 6, 7),
        ("3", "1e-9", 8, 9),
    ],
)
def test_S8_votes_needed_meets_the_bound(epsilon: str, delta: str, unanimous: int, most_agree: int) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta)
    assert mode.votes_needed(failure="0.05") == unanimous
    assert mode.votes_needed(failure="0.05", agreement="0.9") == most_agree
    bound = next(n for n, chance in enumerate(yes_no_test(epsilon, delta)) if chance >= Fraction(95, 100))
    assert bound == unanimous
    assert most_agree == math.ceil(bound / Fraction(9, 10))


@pytest.mark.parametrize(
    ("epsilon", "delta", "unanimous", "most_agree"),
    [("0.1", "1e-6", 311, 347), ("0.5", "1e-9", 93, 105), ("1", "1e-6", 33, 38), ("3", "1e-6", 11, 14)],
)
def test_L6_votes_needed_by_the_distance_rule(epsilon: str, delta: str, unanimous: int, most_agree: int) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta, rule="distance")
    assert mode.votes_needed(failure="0.05") == unanimous
    assert mode.votes_needed(failure="0.05", agreement="0.9") == most_agree


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
@pytest.mark.parametrize("agreement", ["1", "0.9", "0.75", "0.6"])
@pytest.mark.parametrize("failure", ["0.3", "0.05", "0.001"])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-4"), ("3", "0.01"), ("0.5", "0.2")])
def test_votes_needed_is_the_least(rule: Rule, agreement: str, failure: str, epsilon: str, delta: str) -> None:
    mode = StableMode(epsilon=epsilon, delta=delta, rule=rule)
    found = mode.votes_needed(failure=failure, agreement=agreement)

    def enough(votes: int) -> bool:
        return mode.acceptance(math.floor(Fraction(agreement) * votes), votes=votes) >= 1 - Fraction(failure)

    assert enough(found)
    assert not any(enough(votes) for votes in range(1, found))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_S7_no_chance_exceeds_the_bound_and_small_cases_attain_it(epsilon: str, delta: str) -> None:
    bounds = list(islice(yes_no_test(epsilon, delta), 31))
    for votes in (1, 2, 7, 16, 30):
        curve = exclusive_curve(epsilon, delta, votes=votes)
        assert all(Fraction(chance, ONE) <= bound for chance, bound in zip(curve, bounds, strict=False))
        if offset_of(curve) == 0:
            half = votes // 2 + 1
            assert all(
                bound - Fraction(chance, ONE) < Fraction(1, 2**90)
                for chance, bound in zip(curve[:half], bounds, strict=False)
            )


def test_S7_follows_the_recursion_in_reals() -> None:
    epsilon, delta, a, bound = 0.7, 1e-3, math.exp(0.7), 0.0
    for exact in islice(yes_no_test(epsilon, "1e-3"), 40):
        assert float(exact) == pytest.approx(bound, abs=1e-12)
        bound = min(a * bound + delta, 1 - (1 - bound - delta) / a, 1)
    assert bound == 1


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "10"])
def test_S8_a_curve_of_a_thousand_votes_takes_work_in_proportion(
    work: Callable[[Callable[[], object]], int], epsilon: str
) -> None:
    """Measured: 17 to 67 calls a vote. The ceiling is far above that, so that only a change of order can break it."""
    curves._least_curve.cache_clear()
    assert work(lambda: exclusive_curve(epsilon, "1e-6", votes=1000)) < 300_000
    assert len(exclusive_curve(epsilon, "1e-6", votes=1000)) == 1001


# --- laws, acceptance, edges ------------------------------------------------------------------------------------------


def test_S8_law_is_the_curve() -> None:
    mode = StableMode(epsilon=1, delta="0.1")
    curve = exclusive_curve(1, "0.1", votes=6)
    law = mode.law(["a", "a", "a", "b", "b", ABSTAIN])
    assert law["a"] == Fraction(curve[3], ONE) == mode.acceptance(3, votes=6)
    assert law["b"] == Fraction(curve[2], ONE)
    assert sum(law.values()) == 1
    assert set(law) == {"a", "b", NoAnswer}


def test_L6_law_is_the_tail_of_the_noise() -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule="distance")
    ratio, threshold = noise_ratio(Fraction(1)), safe_threshold(Fraction(1), Fraction(1, 10))
    law = mode.law([*"aaaaaaa", "b", "b"])
    assert law == {"a": tail(ratio, threshold - 3), NoAnswer: 1 - tail(ratio, threshold - 3)}
    assert mode.acceptance(7, votes=8) == mode.law([*"aaaaaaa", "b"])["a"]
    assert mode.acceptance(7, votes=7) == mode.law([*"aaaaaaa"])["a"]
    assert mode.acceptance(0, votes=7) == 0


def test_L6_ties_go_to_the_least_bytes() -> None:
    mode = StableMode(epsilon=1, delta="0.1", rule="distance")
    assert set(mode.law(["b", "a", "b", "a"])) == {"a", NoAnswer}


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("delta", ["1e-6", "0.1", "0.6"])
def test_L6_threshold_is_the_least_safe_one(epsilon: str, delta: str) -> None:
    ratio, threshold = noise_ratio(Fraction(epsilon)), safe_threshold(Fraction(epsilon), Fraction(delta))
    assert tail(ratio, threshold - 1) <= Fraction(delta)
    assert threshold == 2 or tail(ratio, threshold - 2) > Fraction(delta)


def test_L6_tail_is_a_law() -> None:
    ratio = Fraction(1, 3)
    masses = {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-40, 41)}
    for least in range(-5, 6):
        assert tail(ratio, least) == pytest.approx(
            float(sum(mass for z, mass in masses.items() if z >= least)), abs=1e-15
        )


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_nobody_wins_when_all_abstain(rule: Rule) -> None:
    mode = StableMode(epsilon=5, delta="0.5", rule=rule)
    assert mode.law([ABSTAIN] * 9) == {NoAnswer: 1}
    assert mode.release([ABSTAIN] * 9).value is NoAnswer


def test_E21_guarantee_and_fields_are_exact() -> None:
    mode = StableMode(epsilon="0.1", delta="1e-6")
    assert mode.guarantee == ApproxDP("0.1", "1e-6", unit="voter")
    assert (mode.epsilon, mode.delta, mode.rule) == (Fraction(1, 10), Fraction(1, 10**6), "exclusive")
    assert mode == StableMode(epsilon=Fraction(1, 10), delta="0.000001")
    assert hash(mode) == hash(StableMode(epsilon=Fraction(1, 10), delta="0.000001"))


@pytest.mark.parametrize("rule", ["exclusive", "distance"])
def test_E21_equal_results_at_two_epsilons_are_explained_by_the_chances(rule: Rule) -> None:
    votes = ["A"] * 48 + ["B"] * 2
    low, high = (StableMode(epsilon=epsilon, delta="1e-6", rule=rule) for epsilon in (1, 30))
    chances = [mode.law(votes)["A"] for mode in (low, high)]
    assert 1 - chances[0] < Fraction(1, 1000), "the votes agree well enough for both: equal results are right"
    assert chances[0] <= chances[1] <= 1
    if rule == "exclusive":
        assert chances == [low.acceptance(48, votes=50), high.acceptance(48, votes=50)]
        offsets = [offset_of(exclusive_curve(mode.epsilon, mode.delta, votes=50)) for mode in (low, high)]
        assert offsets[0] != offsets[1], "the rule itself is another one"
    else:
        assert safe_threshold(low.epsilon, low.delta) > safe_threshold(high.epsilon, high.delta)
    assert low.votes_needed(failure="0.05") > high.votes_needed(failure="0.05")
    few = [mode.acceptance(8, votes=8) for mode in (low, high)]
    assert few[0] < Fraction(1, 10)
    assert few[1] > Fraction(9, 10), "the difference shows where it matters"


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0, "delta": "0.1"},
        {"epsilon": -1, "delta": "0.1"},
        {"epsilon": math.nan, "delta": "0.1"},
        {"epsilon": math.inf, "delta": "0.1"},
        {"epsilon": True, "delta": "0.1"},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": math.nan},
        {"epsilon": 1, "delta": "0.1", "rule": "majority"},
        {"epsilon": "0.0001", "delta": "0.1", "rule": "distance"},
    ],
)
def test_refusals_at_construction(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        StableMode(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"failure": 0},
        {"failure": 1},
        {"failure": math.nan},
        {"failure": "0.1", "agreement": 0},
        {"failure": "0.1", "agreement": "0.5"},
        {"failure": "0.1", "agreement": "1.1"},
        {"failure": "0.1", "agreement": math.nan},
    ],
)
def test_refusals_of_votes_needed(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        StableMode(epsilon=1, delta="1e-6").votes_needed(**arguments)  # type: ignore[arg-type]


def test_absurd_demands_are_refused_not_searched_for_ever() -> None:
    with pytest.raises(InvalidParameter, match="20000"):
        StableMode(epsilon="1e-9", delta="1e-9").votes_needed(failure="0.1")


@pytest.mark.parametrize(("count", "votes"), [(-1, 3), (4, 3), (0, 0), (1.5, 3)])
def test_refusals_of_acceptance(count: int, votes: int) -> None:
    with pytest.raises(InvalidParameter):
        StableMode(epsilon=1, delta="1e-6").acceptance(count, votes=votes)


def test_a_low_agreement_is_fine_for_the_distance_rule() -> None:
    mode = StableMode(epsilon=1, delta="1e-3", rule="distance")
    votes = mode.votes_needed(failure="0.05", agreement="0.3")
    assert mode.acceptance(votes * 3 // 10, votes=votes) >= Fraction(95, 100)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**100), Fraction(1, 10**60), Fraction(1, 10**300), 1000])
def test_S8_extreme_epsilons_give_a_curve_that_passes(epsilon: Fraction) -> None:
    curve = exclusive_curve(epsilon, "0.01", votes=5)
    assert curve[1] >= int(Fraction("0.01") * ONE) or offset_of(curve) > 0
    assert curves.scaled(epsilon, Fraction(1, 2))[0] >= ONE
