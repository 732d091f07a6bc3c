"""MinimumDistanceLearner on finite spaces: every outcome of a sample, against rational arithmetic."""

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accord.distributions import Categorical, Gamma, Mixture, Normal, Piecewise, Poisson, Uniform
from accord.errors import FitFailed, InvalidParameter
from accord.laws import FiniteLaw, total_variation
from accord.learners import Learner
from accord.theory import MinimumDistanceLearner
from accord.theory.planning import agnostic_sizes

Law = tuple[Fraction, ...]


def law(*weights: int) -> Law:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def apart(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def yatracos(laws: Sequence[Law]) -> list[frozenset[int]]:
    return [
        frozenset(k for k, (a, b) in enumerate(zip(p, q, strict=True)) if a > b)
        for p, q in itertools.combinations(laws, 2)
    ]


def deviation(p: Sequence[Fraction], q: Sequence[Fraction], cells: frozenset[int]) -> Fraction:
    return abs(sum((p[k] - q[k] for k in cells), Fraction(0)))


def scores(laws: Sequence[Law], frequencies: Sequence[Fraction]) -> list[Fraction]:
    return [max(deviation(q, frequencies, s) for s in yatracos(laws)) for q in laws]


def counts(records: int, cells: int) -> Iterator[tuple[int, ...]]:
    if cells == 1:
        yield (records,)
        return
    for first in range(records + 1):
        for rest in counts(records - first, cells - 1):
            yield (first, *rest)


LISTS: list[list[Law]] = [
    [law(1, 1, 2), law(2, 1, 1), law(1, 5, 2)],
    [law(1, 1, 1, 1), law(1, 1, 1, 1), law(8, 1, 1, 1), law(1, 1, 1, 0), law(0, 0, 1, 2)],
    [law(1, 3), law(3, 1), law(1, 1), law(1, 15), law(5, 3)],
]
TRUTHS: dict[int, list[Law]] = {
    2: [law(1, 3), law(1, 1), law(0, 1)],
    3: [law(1, 1, 2), law(1, 1, 1), law(0, 0, 1)],
    4: [law(1, 1, 1, 1), law(3, 3, 1, 1), law(0, 1, 0, 1)],
}


@pytest.mark.parametrize("laws", LISTS)
def test_L12_choice_is_the_rational_minimum_and_within_3_opt_for_every_sample(laws: list[Law]) -> None:
    cells = len(laws[0])
    learner = MinimumDistanceLearner([FiniteLaw(dict(enumerate(q))) for q in laws])
    sets = yatracos(laws)
    samples = 0
    for count in counts(9 if cells < 4 else 6, cells):
        total = sum(count)
        frequencies = [Fraction(c, total) for c in count]
        chosen = learner.fit(np.repeat(np.arange(cells), count), seed=0)
        values = scores(laws, frequencies)
        assert chosen == learner.candidates[values.index(min(values))]  # the first among equals
        q = laws[values.index(min(values))]
        for p in TRUTHS[cells]:
            most = max(deviation(p, frequencies, s) for s in sets)
            assert apart(q, p) <= 3 * min(apart(r, p) for r in laws) + 2 * most
        samples += 1
    assert samples == math.comb((9 if cells < 4 else 6) + cells - 1, cells - 1)


def test_L12_promise_kept_exactly_over_all_samples() -> None:
    laws = [law(1, 1, 2), law(2, 1, 1), law(1, 5, 2)]
    learner = MinimumDistanceLearner([Categorical(list("abc"), [float(x) for x in q]) for q in laws])
    alpha, beta = Fraction(3, 5), Fraction(1, 2)
    records = learner.sample_complexity(alpha, beta)
    truth = law(2, 1, 1)
    failure = Fraction(0)
    for count in counts(records, 3):
        chosen = learner.fit(np.repeat(list("abc"), count), seed=0)
        q = laws[learner.candidates.index(chosen)]
        if apart(q, truth) > 3 * min(apart(r, truth) for r in laws) + alpha:
            ways = math.factorial(records)
            for c in count:
                ways //= math.factorial(c)
            chance = Fraction(ways)
            for t, c in zip(truth, count, strict=True):
                chance *= t**c
            failure += chance
    assert failure <= beta


def test_factor_3_is_nearly_needed() -> None:
    """Even with exact frequencies the choice can be almost 3 OPT away: the constant is no slack."""
    near, far, truth = law(1400, 1001, 600, 999), law(1000, 1000, 1000, 1000), law(1400, 800, 600, 1200)
    learner = MinimumDistanceLearner([FiniteLaw(dict(enumerate(q))) for q in (near, far)])
    chosen = learner.fit(np.repeat(np.arange(4), [14, 8, 6, 12]), seed=0)
    assert chosen == learner.candidates[1]
    assert Fraction(29, 10) < apart(far, truth) / apart(near, truth) <= 3


def test_foreign_labels_count_as_mass_that_no_law_has() -> None:
    learner = MinimumDistanceLearner([Categorical(list("ab"), [9, 1]), Categorical(list("ab"), [4, 6])])
    # 40 % of all records are "a": of the listed ones all are.
    records = np.array(["a"] * 4 + ["?", None, float("nan"), 7, True, []], dtype=object)
    assert learner.fit(records, seed=0) == learner.candidates[1]
    assert learner.fit(records[:4], seed=0) == learner.candidates[0]


def test_labels_in_another_order_or_missing_are_the_same_space() -> None:
    first = Categorical(["a", "b", "c"], [1, 2, 3])
    second = Categorical(["c", "a"], [1, 1])
    learner = MinimumDistanceLearner([first, second])
    assert learner.fit(np.array(["c", "a"] * 5), seed=0) is second
    assert learner.fit(np.array(["b", "c", "c", "b", "a"]), seed=0) is first
    assert MinimumDistanceLearner([Categorical([True, 1], [1, 3]), Categorical([True, 1], [3, 1])]).fit(
        np.array([True, True, 1], dtype=object), seed=0
    ) == Categorical([True, 1], [3, 1])


# --- on the line ------------------------------------------------------------------------------------------------------

LINES: list[list[Any]] = [
    [Normal(mean, scale**2) for mean in (-2, 0, 0.3, 1e3) for scale in (0.01, 0.5, 1, 3)],
    [Gamma(shape, 1) for shape in (0.5, 1, 2, 7)],
    [Uniform(0, 1), Uniform(0.5, 2), Piecewise([0, 1, 2], [1, 3]), Normal(1, 1)],
    [Mixture([Normal(m, 1), Normal(-m, 1)], [1, 3]) for m in (0.0, 1.0, 2.0)],
]


@pytest.mark.parametrize("gap", [0.05, 0.003, 0.001])
@pytest.mark.parametrize("laws", LINES)
def test_L12_gap_covers_what_cells_lose(laws: list[Any], gap: float) -> None:
    learner = MinimumDistanceLearner(laws, gap=gap)
    sets = learner._sets
    for column, (i, j) in enumerate(itertools.combinations(range(len(laws)), 2)):
        seen = float(sets.measures[i, column] - sets.measures[j, column])
        true = total_variation(laws[i], laws[j])
        assert seen - 1e-9 <= true <= seen + sets.gap + 1e-9
    assert learner.resolution < max(0.02, 1.01 * gap)


def test_L11_a_finer_gap_brings_a_list_of_normal_laws_to_an_alpha_of_a_tenth() -> None:
    laws = [Normal(mean, scale**2) for mean in (-1, 0, 1) for scale in (0.5, 1, 2)]
    learner = MinimumDistanceLearner(laws, gap="0.0003")
    assert learner.resolution < 3.1e-4
    sizes = agnostic_sizes(learner, alpha="0.1", beta="0.1", epsilon=1, delta="1e-6", agnostic_factor=3)
    accuracy, failure, records = sizes.calls[1]
    assert math.isclose(accuracy, 0.1 / 96)
    assert failure == 1 / 16
    # All bounds on deviations ask for at least what a single set does.
    assert records > math.log(2 / failure) / (2 * ((accuracy - learner.resolution) / 2) ** 2)
    assert learner.sample_complexity(0.1 / 96, 1 / 16) == records


@pytest.mark.parametrize("laws", LINES)
def test_frequencies_are_shares_of_the_sets(laws: list[Any]) -> None:
    """Records at the quantiles of a law have the shares that the law gives the sets."""
    learner = MinimumDistanceLearner(laws)
    share = (np.arange(4000) + 0.5) / 4000
    for k in (0, len(laws) - 1):
        low, high = np.full(4000, -1e4), np.full(4000, 1e4)
        for _ in range(80):
            middle = (low + high) / 2
            below = laws[k].cdf(middle) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found = learner._sets.frequencies(high)
        assert np.abs(found - learner._sets.measures[k]).max() <= (learner._sets.ends or 0) / 4000 + 1e-9
        assert learner.fit(high, seed=0) == laws[k]


def test_simulated_measures_are_as_near_as_stated() -> None:
    """On the line both ways are open: the simulated chances against the proved ones."""
    laws = [Normal([m, 0], np.diag([s * s, 1])) for m, s in ((0, 1), (0.5, 1), (0, 2), (3, 0.5))]
    plane = MinimumDistanceLearner(laws, draws=20_000)
    for column, (i, j) in enumerate(itertools.combinations(range(4), 2)):
        seen = float(plane._sets.measures[i, column] - plane._sets.measures[j, column])
        assert abs(seen - total_variation(laws[i], laws[j])) <= 2 * plane._sets.error
    assert plane._sets.error < 0.03


def test_other_laws_are_told_apart_by_their_densities() -> None:
    laws = [Poisson(rate) for rate in (1, 2, 5)]
    learner = MinimumDistanceLearner(laws, draws=5000)
    assert learner.fit(np.array([4.0, 6, 5, 5, np.nan, 3]), seed=0) == laws[2]
    assert learner.fit(np.array([[0], [2], [1], [1]]), seed=0) == laws[0]


def test_choice_does_not_read_the_seed_and_survives_copies() -> None:
    learner = MinimumDistanceLearner(LINES[0])
    x = np.linspace(-1, 2, 50)
    before = x.copy()
    assert learner.fit(x, seed=1) == copy.deepcopy(learner).fit(x[:, None], seed=2)
    np.testing.assert_array_equal(x, before)
    assert isinstance(learner, Learner)
    assert learner.agnostic_factor == 3
    assert learner == MinimumDistanceLearner(LINES[0]) != MinimumDistanceLearner(LINES[0], vc=3)
    assert not learner._sets.measures.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        learner.vc = 3  # type: ignore[misc]


# --- sizes and refusals -----------------------------------------------------------------------------------------------


def test_L12_sizes_by_hand() -> None:
    one = MinimumDistanceLearner([Normal(0, 1)])
    assert one.sample_complexity(0.1, 0.1) == 1
    assert one.fit([3.0], seed=0) == Normal(0, 1)  # type: ignore[arg-type]
    same = MinimumDistanceLearner([Categorical(list("ab"), [1, 1])] * 2)
    assert same.sample_complexity(0.1, 0.1) == 1
    generator = np.random.default_rng(5)
    laws = [Categorical(range(50), generator.random(50)) for _ in range(40)]
    learner = MinimumDistanceLearner(laws)
    sets = 40 * 39 // 2
    assert learner.sample_complexity(0.1, 0.05) == math.ceil(math.log(2 * sets / 0.05) / (2 * 0.05**2))
    shift = MinimumDistanceLearner([Normal(m, 1) for m in range(40)])
    room = (0.1 - shift.resolution) / 2
    assert shift.sample_complexity(0.1, 0.05) == math.ceil(math.log(2 / 0.05) / (2 * room**2))  # half-lines
    sizes = [shift.sample_complexity(alpha, 0.1) for alpha in (0.9, 0.5, 0.1, 0.05)]
    assert sizes == sorted(sizes)


def test_refusals() -> None:
    for bad in ([], "ab", 3, [Normal(0, 1)] * 501, [Normal(0, 1), Normal([0, 0], np.eye(2))], [1, 2]):
        with pytest.raises(InvalidParameter, match="candidates"):
            MinimumDistanceLearner(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="candidates must be laws on labels all"):
        MinimumDistanceLearner([Normal(0, 1), Categorical(list("ab"), [1, 1])])
    pair = [Normal(0, 1), Normal(1, 1)]
    refused: list[dict[str, Any]] = [
        {"vc": 0},
        {"draws": 10},
        {"vc": 1.5},
        {"gap": 1e-5},
        {"gap": 0.2},
        {"gap": math.nan},
    ]
    for options in refused:
        with pytest.raises(InvalidParameter):
            MinimumDistanceLearner(pair, **options)
    learner = MinimumDistanceLearner(pair)
    for alpha, beta in ((0, 0.1), (0.1, 1), (math.nan, 0.1)):
        with pytest.raises(InvalidParameter):
            learner.sample_complexity(alpha, beta)
    with pytest.raises(InvalidParameter, match="error of integration; give a smaller gap"):
        learner.sample_complexity(0.001, 0.1)
    plane = MinimumDistanceLearner([Normal([m, 0], np.eye(2)) for m in (0, 1)], draws=1000)
    with pytest.raises(InvalidParameter, match="more draws"):
        plane.sample_complexity(0.1, 0.1)
    with pytest.raises(InvalidParameter, match="beta"):
        plane.sample_complexity(0.9, 1e-6)


@pytest.mark.parametrize("records", [[], np.zeros((3, 2)), np.zeros((0, 1)), ["secret"], np.zeros((1, 1, 1))])
def test_fit_fails_without_a_word_of_data(records: Any) -> None:
    with pytest.raises(FitFailed) as caught:
        MinimumDistanceLearner([Normal(0, 1), Normal(1, 1)]).fit(records, seed=0)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
