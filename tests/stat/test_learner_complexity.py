"""Sample complexities (theory 6, S6): certified sizes keep their promise, and the bounds behind them are bounds.

Failures at the certified b are rarer than promised; the counts allowed leave a false alarm a probability below 1e-6.
Seeds are fixed.
"""

import json
import math
from importlib import resources

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaln
from scipy.stats import binom, chi2, norm

from accord.distributions import Categorical, Mixture, Normal
from accord.errors import InvalidParameter
from accord.laws import kl_divergence, total_variation
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learners.normal_sizes import (
    expected_kl,
    failure_chances,
    geometric_sizes,
    least_size,
    log_tail,
    records_for,
    stiffness,
    total_variations,
)
from accord.randomness import Generator
from accord.theory import MinimumDistanceLearner
from accord.theory.minimum_distance import records_for_deviation

SEED = 20261130


def divergences(*, dimension: int, records: int, runs: int) -> NDArray[np.float64]:
    """Return KL(fit || truth) of many fits."""
    generator = np.random.default_rng([SEED, dimension, records])
    truth = Normal(np.zeros(dimension), np.eye(dimension))
    learner = GaussianLearner()
    return np.array([kl_divergence(learner.fit(truth.sample(records, generator), seed=0), truth) for _ in range(runs)])


@pytest.mark.parametrize(("dimension", "records"), [(1, 12), (1, 200), (3, 30)])
def test_S6_mean_divergence_of_normal_fits_is_as_computed(dimension: int, records: int) -> None:
    sample = divergences(dimension=dimension, records=records, runs=4_000)
    mean, error = sample.mean(), sample.std() / math.sqrt(len(sample))
    claimed = expected_kl(records, dimension=dimension)
    assert abs(mean - claimed) < 5.5 * error
    assert abs(mean - 0.85 * claimed) > 5.5 * error
    assert abs(mean - 1.15 * claimed) > 5.5 * error


@pytest.mark.parametrize(("dimension", "records"), [(1, 12), (3, 30), (5, 1000)])
def test_tail_bound_holds_and_is_not_idle(dimension: int, records: int) -> None:
    sample = divergences(dimension=dimension, records=records, runs=1_500)
    for level in (0.5, 0.2, 0.05):
        place = float(np.quantile(sample, 1 - level))
        bound = math.exp(log_tail(place, records=records, dimension=dimension))
        assert bound >= level - 5.5 * math.sqrt(level / len(sample))
    assert log_tail(20 * float(sample.mean()), records=records, dimension=dimension) < math.log(1e-3)


def test_mean_divergence_agrees_on_both_branches() -> None:
    freedom = 2_000_001
    assert expected_kl(freedom, dimension=2) == pytest.approx(2.5 / freedom, rel=1e-5)
    assert expected_kl(200_000, dimension=2) == pytest.approx(2.5 / 200_000, rel=1e-4)
    assert expected_kl(2, dimension=2) == math.inf


def failures(records: int, *, dimension: int, alpha: float, runs: int) -> int:
    """Return how many fits to so many records of a normal law are alpha away or more."""
    generator = np.random.default_rng([SEED, dimension, records])
    factor = np.tril(np.ones((dimension, dimension)))
    truth = Normal(np.arange(dimension) * 1e3, factor @ factor.T)
    fits = (GaussianLearner().fit(truth.sample(records, generator), seed=0) for _ in range(runs))
    return sum(total_variation(fit, truth) >= alpha for fit in fits)


@pytest.mark.parametrize(
    ("dimension", "alpha", "runs"), [(1, 0.25, 1500), (2, 0.3, 160), (3, 0.35, 160), (5, 0.45, 160)]
)
def test_L9_normal_fits_keep_the_promise_and_fewer_records_do_not(dimension: int, alpha: float, runs: int) -> None:
    beta = 0.1
    records = GaussianLearner(dimension=dimension).sample_complexity(alpha, beta)
    most = int(binom.isf(1e-7, runs, beta))
    found = failures(records, dimension=dimension, alpha=alpha, runs=runs)
    fewer = failures(int(0.5 * records), dimension=dimension, alpha=alpha, runs=runs)
    assert found <= most < fewer, f"seed {SEED}"


@pytest.mark.parametrize("weights", [[1, 1], [1, 3], [1, 99], [5, 3, 1, 1]])
def test_L9_label_counts_keep_the_promise_exactly(weights: list[int]) -> None:
    labels = [f"level {i}" for i in range(len(weights))]
    truth = Categorical(labels, weights)
    learner = EmpiricalLearner(labels)
    alpha, beta = 0.2, 0.1
    records = learner.sample_complexity(alpha, beta)
    if len(weights) == 2:
        counts = np.arange(records + 1)
        error = np.abs((counts + 0.25) / (records + 0.5) - truth.probabilities[0])
        law = binom.pmf(counts, records, truth.probabilities[0])
        assert law[error >= alpha].sum() <= beta
        mean = float(law @ error)
        assert mean <= (0.5 * math.sqrt(records) + 0.25) / (records + 0.5)
    else:
        generator = np.random.default_rng(SEED)
        drawn = generator.multinomial(records, truth.probabilities, size=20_000)
        fitted = (drawn + 0.25) / (records + 0.25 * len(weights))
        error = 0.5 * np.abs(fitted - truth.probabilities).sum(axis=1)
        assert (error >= alpha).mean() <= beta


@pytest.mark.parametrize("block", [1, 5, 60])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.03, 0.5])
def test_S6_tuples_of_labels_stay_below_the_bound_exactly(block: int, share: float) -> None:
    records = 7
    learner = EmpiricalLearner(["no", "yes"])
    counts = np.arange(block + 1)
    fitted = (counts + 0.25) / (block + 0.5)
    law = binom.pmf(counts, block, share)
    tuples = np.arange(records + 1)
    apart = 0.5 * np.abs(
        binom.pmf(tuples[None, :], records, fitted[:, None]) - binom.pmf(tuples, records, share)[None, :]
    ).sum(axis=1)
    bound = learner.tuple_total_variation(records, block)
    assert float(law @ apart) <= bound
    affinity = np.sqrt(fitted * share) + np.sqrt((1 - fitted) * (1 - share))
    assert float(law @ (1 - affinity)) <= 1 - math.sqrt(block / (block + 0.5)) + 1 / (2 * block)


def test_S6_tuples_of_normals_stay_below_the_bound() -> None:
    records, block = 20, 100
    generator = np.random.default_rng(SEED)
    truth = Normal(np.zeros(1), np.eye(1))
    joint = Normal(np.zeros(records), np.eye(records))
    apart = []
    for _ in range(60):
        fit = GaussianLearner().fit(truth.sample(block, generator), seed=0)
        many = Normal(np.full(records, fit.mean[0]), np.eye(records) * fit.covariance[0][0])
        apart.append(total_variation(joint, many))
    bound = GaussianLearner(dimension=1).tuple_total_variation(records, block)
    assert np.mean(apart) < bound < 2 * np.mean(apart)


def test_complexities_are_monotone_and_refuse_what_they_cannot_state() -> None:
    learners: list[GaussianLearner | EmpiricalLearner] = [
        GaussianLearner(dimension=2),
        EmpiricalLearner(["a", "b", "c"]),
    ]
    for learner in learners:
        sizes = [learner.sample_complexity(alpha, 0.1) for alpha in (0.5, 0.1, 1e-3, 1e-6)]
        assert sizes == sorted(sizes)
        sizes = [learner.sample_complexity(0.1, beta) for beta in (0.5, 0.1, 1e-3, 1e-9)]
        assert sizes == sorted(sizes)
        for bad in (0, 1, -1, 2, math.nan):
            with pytest.raises(InvalidParameter):
                learner.sample_complexity(bad, 0.1)
    with pytest.raises(InvalidParameter, match="dimension"):
        GaussianLearner().sample_complexity(0.1, 0.1)
    assert records_for(0.999, 0.999, dimension=1) >= 2


# --- normal laws: chances on the line, and numbers of records in between ----------------------------------------------


@pytest.mark.parametrize("size", [1e-7, 1e-3, 0.1, 0.6])
def test_total_variations_on_the_line_agree_with_the_closed_form(size: float) -> None:
    generator = np.random.default_rng(SEED)
    shift = np.abs(generator.normal(size=50)) * size
    excess = np.maximum(generator.normal(size=50) * size, -0.95)
    excess[:3], shift[3:6] = 0.0, 0.0
    ours = total_variations(shift, excess)
    other = [total_variation(Normal(0, 1), Normal(m, (1 + e) ** 2)) for m, e in zip(shift, excess, strict=True)]
    np.testing.assert_allclose(ours, other, rtol=1e-8)  # the variance (1 + e)^2 is rounded


@pytest.mark.parametrize(("alpha", "records"), [(0.3, 8), (0.1, 62), (0.02, 1000)])
def test_S11_chances_on_the_line_by_a_second_route(alpha: float, records: int) -> None:
    def reach(spread: float) -> float:
        def over(shift: float) -> float:
            return total_variation(Normal(shift, spread**2), Normal(0, 1)) - alpha

        return 0.0 if over(0.0) >= 0 else float(brentq(over, 0.0, 10.0))

    edges = np.linspace(max(1 - 3 * alpha, 1e-3), 1 + 4 * alpha, 401)
    weights = np.diff(chi2.cdf((records - 1) * edges**2, records - 1))
    reaches = np.array([reach(spread) for spread in (edges[1:] + edges[:-1]) / 2])
    inside = float(weights @ (1 - 2 * norm.sf(math.sqrt(records) * reaches)))
    claimed = float(failure_chances(alpha, np.array([records]))[0])
    assert claimed == pytest.approx(1 - inside, abs=1e-3)
    for wrong in (0.9, 1.1):
        assert abs(float(failure_chances(wrong * alpha, np.array([records]))[0]) - (1 - inside)) > 1e-2


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.1), (0.2, 0.02), (0.05, 1 / 16)])
def test_L9_promise_holds_at_every_number_of_records_from_m_on(alpha: float, beta: float) -> None:
    """On the line the chance can be computed at each b: no b between those of the grid is worse than promised."""
    least = GaussianLearner(dimension=1).sample_complexity(alpha, beta)
    closed = records_for(alpha, beta, dimension=1)
    chances = failure_chances(alpha, np.arange(least, closed + 50))
    assert (chances <= beta).all()
    assert failure_chances(alpha, np.array([int(0.97 * least)]))[0] > beta


@pytest.mark.parametrize("dimension", [1, 3, 5])
@pytest.mark.parametrize(("first", "second"), [(9, 10), (40, 43), (43, 40), (900, 1000), (100_000, 90_000)])
def test_fits_to_nearby_numbers_of_records_are_as_close_as_stated(dimension: int, first: int, second: int) -> None:
    """KL(fit at first || fit at second) in closed form: Wishart laws by Gamma functions, means by variances."""
    f, g = (first - 1) / 2, (second - 1) / 2
    places = np.arange(dimension) / 2
    gammas = float(np.sum(gammaln(g - places) - gammaln(f - places) - (g - f) * digamma(f - places)))
    scatter = gammas + dimension * (f * (g / f - 1) - g * math.log(g / f))
    means = dimension / 2 * (second / first - 1 - math.log(second / first))
    bound = (first - second) ** 2 * stiffness(min(first, second), dimension=dimension)
    assert scatter + means <= bound * (1 + 1e-6)
    if abs(first - second) < 0.2 * first:
        assert bound < 2.2 * (scatter + means)


def test_least_size_needs_every_gap_to_be_bridged() -> None:
    sizes = np.array([10, 11, 12, 40, 41])
    low = np.full(5, 1e-4)
    assert least_size(sizes[:3], low[:3], 0.1, dimension=1) == 10
    assert least_size(sizes, np.full(5, 0.099), 0.1, dimension=1) == 40  # 12 to 40 is too far at such chances
    assert least_size(sizes, np.array([0.2, 0.01, 0.01, 0.2, 0.01]), 0.1, dimension=1) == 41
    assert least_size(sizes, np.array([0.0, 0.0, 0.0, 0.0, 0.1]), 0.1, dimension=1) is None


def test_least_size_is_right_for_a_chance_that_rises_in_between() -> None:
    """Coins as a model: between two grid points the chance may rise only as far as the divergence allows."""
    for beta, chance in ((0.1, 0.08), (0.05, 0.01)):
        step = stiffness(1000, dimension=1)
        room = chance_divergence(beta, chance)
        reach = math.floor(math.sqrt(room / step))
        wide = np.array([1000, 1000 + 2 * reach - 1])
        assert least_size(wide, np.array([chance, chance]), beta, dimension=1) == 1000
        wide[1] += 4
        assert least_size(wide, np.array([chance, chance]), beta, dimension=1) == wide[1]


def chance_divergence(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_stored_quantiles_are_a_whole_table() -> None:
    text = resources.files("accord.learners").joinpath("learner_pivots.json").read_text(encoding="utf-8")
    table = json.loads(text)
    assert table["confidence"] == 0.999
    assert [part["dimension"] for part in table["tables"]] == [2, 3, 4, 5]
    for part in table["tables"]:
        rows = np.array(part["bands"])
        grid = geometric_sizes(part["dimension"] + 2, int(rows[-1, 1]), ratio=table["ratio"])
        assert grid[-1] == rows[-1, 1]
        assert (rows[:, 0] <= rows[:, 1]).all()
        ends = np.searchsorted(grid, rows[:, :2])  # bands follow each other without a hole
        np.testing.assert_array_equal(grid[ends], rows[:, :2])
        np.testing.assert_array_equal(ends[1:, 0], ends[:-1, 1] + 1)
        assert (np.diff(rows[:, 2:], axis=1) >= 0).all()  # rarer is farther
        level = int(np.argmin(np.abs(np.array(table["levels"]) - 0.1)))
        stored = rows[rows[:, 0] > 1000, 2 + level] / table["unit"]
        assert stored.max() < 1.04 * stored.min()  # sqrt(b) TV has a limit law


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_sizes_fall_with_alpha_and_beta_step_by_step(dimension: int) -> None:
    learner = GaussianLearner(dimension=dimension)
    for beta in (0.3, 1 / 16):
        sizes = [learner.sample_complexity(alpha, beta) for alpha in np.geomspace(2e-3, 0.8, 15)]
        assert sizes == sorted(sizes, reverse=True)
    for alpha in (0.3, 0.02):
        sizes = [learner.sample_complexity(alpha, beta) for beta in np.geomspace(1e-7, 0.6, 10)]
        assert sizes == sorted(sizes, reverse=True)


# --- minimum distance -------------------------------------------------------------------------------------------------


def test_L12_a_contaminated_normal_is_met_within_3_opt_and_alpha() -> None:
    """A normal law with 5 % of something else, against 60 normal laws on a grid; the promise, and what happens."""
    laws = [Normal(mean, scale**2) for mean in np.linspace(-1.6, 1.7, 12) for scale in np.geomspace(0.6, 1.8, 5)]
    learner = MinimumDistanceLearner(laws)
    truth = Mixture([Normal(0.37, 1.1), Normal(9.0, 0.25)], [0.95, 0.05])
    distances = {law: total_variation(truth, law) for law in laws}
    opt = min(distances.values())
    assert 0.05 <= opt < 0.12
    alpha, beta, runs = 0.15, 0.1, 50
    records = learner.sample_complexity(alpha, beta)
    generator = np.random.default_rng(SEED)
    errors = np.array([distances[fit(learner, truth, records, generator)] for _ in range(runs)])
    assert (errors > 3 * opt + alpha).sum() <= int(binom.isf(1e-7, runs, beta)), f"seed {SEED}"
    assert errors.max() < opt + alpha  # far better than promised: the contamination is far away
    few = np.array([distances[fit(learner, truth, 8, generator)] for _ in range(runs)])
    assert np.median(few) > np.median(errors) + 0.05
    # Moments are led astray: the fitted normal law is worse than the worst choice.
    moments = [
        total_variation(truth, GaussianLearner().fit(truth.sample(records, generator), seed=0)) for _ in range(5)
    ]
    assert min(moments) > errors.max()


def fit(learner: MinimumDistanceLearner, truth: Mixture, records: int, generator: Generator) -> Normal:
    chosen = learner.fit(truth.sample(records, generator), seed=0)
    assert isinstance(chosen, Normal)
    return chosen


def test_L12_half_as_accurate_lists_are_told_from_the_truth() -> None:
    """Power: neighbours on a grid are told apart at the certified size, and hardly at a hundredth of it."""
    laws = [Normal(0.4 * place, 1) for place in range(-8, 9)]
    learner = MinimumDistanceLearner(laws)
    records = learner.sample_complexity(0.15, 0.05)
    generator = np.random.default_rng([SEED, 12])
    runs = 150
    hits = sum(learner.fit(laws[8].sample(records, generator), seed=0) == laws[8] for _ in range(runs))
    few = sum(learner.fit(laws[8].sample(records // 100, generator), seed=0) == laws[8] for _ in range(runs))
    assert hits >= int(binom.ppf(1e-7, runs, 0.95)) > few, f"seed {SEED}"


def test_deviation_bounds_hold_and_the_dimension_of_sets_can_win() -> None:
    plain = records_for_deviation(0.05, 0.1, sets=10)
    assert plain == math.ceil(math.log(200) / (2 * 0.05**2))
    assert records_for_deviation(0.05, 0.1, sets=10**9, ends=2) == math.ceil(4 * math.log(20) / (2 * 0.05**2))
    assert records_for_deviation(0.05, 0.1, sets=10**60, ends=40, vc=1) < records_for_deviation(0.05, 0.1, sets=10**60)
    assert records_for_deviation(0.05, 0.1, sets=10, vc=1) == plain
    # Intervals on the line have dimension 2: at the n of that bound the deviation is below, at a twentieth above.
    records = records_for_deviation(0.1, 0.05, sets=10**300, vc=2)
    generator = np.random.default_rng([SEED, 13])

    def deviation(count: int) -> float:
        walk = np.arange(count + 1) / count - np.concatenate((np.sort(generator.random(count)), [1.0]))
        return float(walk.max() - walk.min())

    assert sum(deviation(records) > 0.1 for _ in range(300)) <= int(binom.isf(1e-7, 300, 0.05))
    assert sum(deviation(records // 40) > 0.1 for _ in range(300)) > int(binom.isf(1e-7, 300, 0.05))
