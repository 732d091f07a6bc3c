"""Thresholded counts by enumeration: the program is run on every noise, in rationals, for all small neighbours.

The noise of scale s has ratio q = exp(-1/s). The program only adds and compares whole numbers, so its law is a rational
function of q, and the promise at a rational q is exp(epsilon) = q^-moves and delta = q^(t-1) / (1 + q). Noise is cut to
[-B, B], each end standing for all beyond it, where nothing changes: no probability is lost.
"""

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accord.core.curve import yes_no_test
from accord.core.exact import exp_lower, exp_upper
from accord.errors import InvalidParameter, WrongRandomness
from accord.mechanisms import ABSTAIN, LevelSelection, ThresholdedCounts
from accord.noise import thresholded_counts
from accord.noise.thresholded_counts import level_curve
from accord.privacy import ApproxDP, Neighbouring
from accord.testing import ReplayRandomness, hockey_stick

REPLACE, ADD = Neighbouring.REPLACE_ONE, Neighbouring.ADD_OR_REMOVE_ONE
REACH = 8
Data = tuple[Any, ...]
Law = dict[Any, Fraction]


def noise_law(q: Fraction) -> dict[int, Fraction]:
    one = (1 - q) / (1 + q)
    law = {z: one * q ** abs(z) for z in range(1 - REACH, REACH)}
    return law | {-REACH: q**REACH / (1 + q), REACH: q**REACH / (1 + q)}


def law_of(mechanism: ThresholdedCounts, data: Data, q: Fraction, monkeypatch: pytest.MonkeyPatch) -> Law:
    """Run the program on every noise vector. Counts that no threshold can tell apart are joined."""
    levels = len(set(data) - {ABSTAIN})
    law: Law = {}
    for noises in product(noise_law(q).items(), repeat=levels):
        script = np.array([noise for noise, _ in noises], dtype=np.int64)

        def sampler(scale: Fraction, *, size: int, randomness: Any, script: Any = script) -> Any:
            assert scale == mechanism.scale
            assert size == len(script)
            return script

        monkeypatch.setattr(thresholded_counts, "discrete_laplace", sampler)
        shown: Any = mechanism.release(data).value
        # Released counts from REACH - 1 on cannot be told apart by less than the whole tail: ratios are constant there.
        outcome = tuple((level, min(count, REACH - 1)) for level, count in shown)
        chance = math.prod((chance for _, chance in noises), start=Fraction(1))
        law[outcome] = law.get(outcome, Fraction(0)) + chance
    assert sum(law.values()) == 1
    return law


def datasets(units: int) -> Iterator[Data]:
    yield from product(("a", "b", "c", ABSTAIN), repeat=units)


def replaced(data: Data) -> Iterator[Data]:
    for place in range(len(data)):
        for value in ("a", "b", "c", "new", ABSTAIN):
            yield (*data[:place], value, *data[place + 1 :])


def removed(data: Data) -> Iterator[Data]:
    for place in range(len(data)):
        yield (*data[:place], *data[place + 1 :])


def worst_delta(
    mechanism: ThresholdedCounts, q: Fraction, monkeypatch: pytest.MonkeyPatch, *, ratio: Fraction
) -> Fraction:
    known: dict[Data, Law] = {}

    def law(data: Data) -> Law:
        canonical = tuple(sorted(data, key=str))
        if canonical not in known:
            known[canonical] = law_of(mechanism, canonical, q, monkeypatch)
        return known[canonical]

    neighbours = replaced if mechanism.neighbouring is REPLACE else removed
    worst = Fraction(0)
    for data in {tuple(sorted(data, key=str)) for units in (1, 2) for data in datasets(units)}:
        for other in neighbours(data):
            for p, r in ((data, other), (other, data)):
                worst = max(worst, hockey_stick(law(p), law(r), ratio=ratio))
    return worst


@pytest.mark.parametrize("neighbouring", [REPLACE, ADD])
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("threshold", [2, 3, 4])
def test_smallest_delta_over_all_neighbours_is_delta(
    neighbouring: Neighbouring,
    inclusive: bool,  # noqa: FBT001
    threshold: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    q = Fraction(2, 3)
    moves = 2 if neighbouring is REPLACE else 1
    mechanism = ThresholdedCounts(epsilon=1, threshold=threshold, inclusive=inclusive, neighbouring=neighbouring)
    least = threshold if inclusive else threshold + 1
    found = worst_delta(mechanism, q, monkeypatch, ratio=1 / q**moves)
    assert found == q ** (least - 1) / (1 + q), "this, neither more nor less"
    assert mechanism.scale == moves, "q stands for exp(-1 / scale), so the ratio stands for exp(epsilon)"


def test_half_the_sensitivity_of_replace_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise for one moving count where two move, the ratio 1 / q needs a delta far above the promised one."""
    q = Fraction(1, 3)
    mechanism = ThresholdedCounts(epsilon=1, threshold=3, neighbouring=REPLACE)
    laws = [law_of(mechanism, ("a",) * a + ("b",) * (9 - a), q, monkeypatch) for a in (5, 4)]
    promised = q**2 / (1 + q)
    assert hockey_stick(laws[0], laws[1], ratio=1 / q**2) == 0
    assert hockey_stick(laws[0], laws[1], ratio=1 / q) > Fraction(3, 2) * promised


@pytest.mark.parametrize("said_inclusive", [True, False])
def test_comparison_swapped_is_caught(
    said_inclusive: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The delta of the other comparison is wrong by the factor 1 / q: too small, or needlessly large."""
    q = Fraction(2, 3)
    runs = ThresholdedCounts(epsilon=1, threshold=3, inclusive=not said_inclusive, neighbouring=ADD)
    said = q ** ((3 if said_inclusive else 4) - 1) / (1 + q)
    found = worst_delta(runs, q, monkeypatch, ratio=1 / q)
    assert found == (said * q if said_inclusive else said / q)


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "threshold", "inclusive", "strict"),
    [(1, 5, 0.0133898, 0.0049258), (2, 10, 0.00691, 0.00419), (Fraction(1, 2), 3, 0.01613, 0.00218)],
)
def test_delta_of_both_comparisons(scale: Fraction, threshold: int, inclusive: float, strict: float) -> None:
    """Measured release rates of singletons agree with the first; they differ by exp(1 / scale)."""
    deltas = [
        ThresholdedCounts(epsilon=1 / Fraction(scale), threshold=threshold, inclusive=kind, neighbouring=ADD).delta
        for kind in (True, False)
    ]
    assert [float(delta) for delta in deltas] == pytest.approx([inclusive, strict], rel=2e-3)
    ratio = deltas[0] / deltas[1]
    assert abs(ratio - exp_lower(1 / Fraction(scale))) < Fraction(1, 10**50)


@pytest.mark.parametrize("neighbouring", [REPLACE, ADD])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "1", "4"])
@pytest.mark.parametrize("threshold", [2, 3, 17, 1000])
def test_delta_is_an_upper_bound_of_the_closed_form(neighbouring: Neighbouring, epsilon: str, threshold: int) -> None:
    mechanism = ThresholdedCounts(epsilon=epsilon, threshold=threshold, neighbouring=neighbouring)
    rate = Fraction(epsilon) / (2 if neighbouring is REPLACE else 1)
    low = exp_lower(-rate * (threshold - 1)) / (1 + exp_upper(-rate))
    assert low <= mechanism.delta <= low * (1 + Fraction(1, 10**55))
    assert mechanism.guarantee == ApproxDP(epsilon, mechanism.delta, neighbouring)


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("neighbouring", [REPLACE, ADD])
@pytest.mark.parametrize("delta", ["0.2", "1e-2", "1e-6", "1e-20"])
def test_threshold_for_is_the_least(inclusive: bool, neighbouring: Neighbouring, delta: str) -> None:  # noqa: FBT001
    fields: dict[str, Any] = {"epsilon": "0.7", "inclusive": inclusive, "neighbouring": neighbouring}
    mechanism = ThresholdedCounts(delta=delta, **fields)
    assert mechanism.delta <= Fraction(delta)
    assert mechanism.threshold == mechanism.threshold_for(delta)
    assert mechanism.threshold == ThresholdedCounts(threshold=9, **fields).threshold_for(delta)
    lower = mechanism.threshold - 1
    if lower >= (2 if inclusive else 1):
        assert ThresholdedCounts(threshold=lower, **fields).delta > Fraction(delta)


def test_acceptance_is_the_tail_and_at_one_it_is_delta() -> None:
    mechanism = ThresholdedCounts(epsilon=1, threshold=5)
    assert mechanism.acceptance(1) == pytest.approx(float(mechanism.delta))
    assert mechanism.acceptance(0) == 0
    q = math.exp(-0.5)
    for count in range(1, 12):
        truth = sum((1 - q) / (1 + q) * q ** abs(z) for z in range(5 - count, 400))
        assert mechanism.acceptance(count) == pytest.approx(truth, rel=1e-9)


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_order_is_that_of_canonical_bytes_not_of_the_data() -> None:
    mechanism = ThresholdedCounts(epsilon=1, threshold=20)
    data = ["pear"] * 200 + ["fig"] * 300 + ["apple"] * 250 + [ABSTAIN] * 40 + [7] * 200 + [7.0] * 200
    orders = set()
    for seed in range(5):
        shuffled = [data[i] for i in np.random.default_rng(seed).permutation(len(data))]
        release: Any = mechanism.release(shuffled, randomness=ReplayRandomness(seed))
        orders.add(tuple(level for level, _ in release.value))
    assert len(orders) == 1
    assert Counter(next(iter(orders))) == Counter([7, 7.0, "apple", "fig", "pear"])


def test_equal_noise_on_neighbours_in_another_order_gives_equal_output() -> None:
    mechanism = ThresholdedCounts(epsilon=1, threshold=5)
    one, two = ["a"] * 10 + ["b"] * 12, ["b"] * 12 + ["a"] * 10
    outputs = [mechanism.release(data, randomness=ReplayRandomness(4)).value for data in (one, two)]
    assert outputs[0] == outputs[1]


def test_levels_do_not_share_noise() -> None:
    mechanism = ThresholdedCounts(epsilon="0.05", threshold=100)
    release: Any = mechanism.release([level for level in range(8) for _ in range(2000)])
    assert len({count for _, count in release.value}) > 1


@pytest.mark.parametrize("kind", [ThresholdedCounts(epsilon=1, threshold=5), LevelSelection(epsilon=1, delta="0.1")])
@pytest.mark.parametrize("empty", [[], (), np.array([]), np.zeros((0, 3)), [ABSTAIN]])
def test_nothing_is_answered_by_nothing(kind: Any, empty: Any) -> None:
    """Under "add or remove one" an error would tell the empty dataset from its neighbours."""
    assert kind.release(empty).value == ()


def test_rows_of_arrays_are_levels() -> None:
    release: Any = ThresholdedCounts(epsilon=10, threshold=10).release(np.array([[1, 2]] * 100 + [[3, 4]] * 100))
    assert [level.tolist() for level, _ in release.value] == [[1, 2], [3, 4]]


# --- levels alone -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "0.01"), ("5", "0.3"), ("1/10000", "0.5")])
def test_S7_level_curve_is_private_and_optimal(epsilon: str, delta: str) -> None:
    curve = [Fraction(chance, 2**128) for chance in level_curve(Fraction(epsilon), Fraction(delta))]
    low = exp_lower(Fraction(epsilon))
    assert curve[0] == 0
    assert curve[-1] == 1
    for before, after in zip(curve, [*curve[1:], Fraction(1)], strict=True):
        for p, q in ((before, after), (after, before)):
            assert p <= low * q + Fraction(delta)
            assert 1 - p <= low * (1 - q) + Fraction(delta)
    for chance, bound in zip(curve, yes_no_test(epsilon, delta), strict=False):
        assert chance <= bound <= chance + Fraction(1, 2**90)


@pytest.mark.parametrize("neighbouring", [REPLACE, ADD])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.05"), ("3", "0.2")])
def test_S7_level_selection_over_all_neighbours(neighbouring: Neighbouring, epsilon: str, delta: str) -> None:
    selection = LevelSelection(epsilon=epsilon, delta=delta, neighbouring=neighbouring)
    ratio = exp_lower(Fraction(epsilon))
    laws: dict[Data, Law] = {}
    worst = Fraction(0)
    for units in range(1, 6):
        for data in {tuple(sorted(data, key=str)) for data in datasets(units)}:
            for other in replaced(data) if neighbouring is REPLACE else removed(data):
                p, q = (laws.setdefault(d, selection.law(d)) for d in (data, tuple(sorted(other, key=str))))
                worst = max(worst, hockey_stick(p, q, ratio=ratio), hockey_stick(q, p, ratio=ratio))
    assert Fraction(delta) / 3 < worst <= Fraction(delta)
    if neighbouring is ADD:
        assert worst >= Fraction(delta) * (1 - Fraction(1, 2**90))


def test_level_selection_needs_fewer_units_than_a_noisy_threshold() -> None:
    selection = LevelSelection(epsilon=1, delta="1e-6", neighbouring=ADD)
    counts = ThresholdedCounts(epsilon=1, delta="1e-6", neighbouring=ADD)
    for count in range(1, 30):
        assert selection.acceptance(count) >= Fraction(counts.acceptance(count)) * (1 - Fraction(1, 2**40))
    assert selection.acceptance(10**9) == 1


def test_level_selection_coins_follow_the_curve() -> None:
    class Fixed(ReplayRandomness):  # type: ignore[misc] # a stand-in for one coin
        draw = 0

        def bits(self, count: int) -> int:
            assert count == 128
            return self.draw

    selection = LevelSelection(epsilon=1, delta="0.01", neighbouring=ADD)
    cut = int(selection.acceptance(3) * 2**128)
    source = Fixed("coin")
    for source.draw, shown in ((cut - 1, ("a",)), (cut, ())):
        assert selection.release(["a"] * 3, randomness=source).value == shown


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "threshold or delta"),
        ({"threshold": 5, "delta": "1e-6"}, "threshold or delta"),
        ({"threshold": 1}, "threshold"),
        ({"threshold": 0, "inclusive": False}, "threshold"),
        ({"threshold": 2.5}, "threshold"),
        ({"threshold": 5, "epsilon": 0}, "epsilon"),
        ({"threshold": 5, "epsilon": float("nan")}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"threshold": 5, "inclusive": 1}, "inclusive"),
        ({"threshold": 5, "neighbouring": "replace one"}, "neighbouring"),
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        ThresholdedCounts(**({"epsilon": 1} | fields))


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"epsilon": "1e-4"}, "epsilon"), ({"delta": 0}, "delta"), ({"neighbouring": None}, "neighbouring")],
)
def test_bad_arguments_of_level_selection_are_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        LevelSelection(**(dict[str, Any](epsilon=1, delta="0.1") | fields))


@pytest.mark.parametrize("kind", [ThresholdedCounts(epsilon=1, threshold=5), LevelSelection(epsilon=1, delta="0.1")])
def test_bad_data_and_bad_randomness_are_refused(kind: Any) -> None:
    for values in (3, "text", {"a": 1}, [object()], [["a"]]):
        with pytest.raises(InvalidParameter):
            kind.release(values)
    with pytest.raises(WrongRandomness):
        kind.release(["a"], randomness=0)
