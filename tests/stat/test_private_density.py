"""Laws behind a private density: cells and their agreement, noise, answers, accuracy.

Each test passes for the true law but with a probability below 1e-6, and would catch one that is 10 % off.
"""

import math

import numpy as np
import pytest
import scipy.stats as st
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.mixture import GaussianMixture

from accord.core.budget import Budget
from accord.density.refine.statistics import noise_for
from accord.density.sketch import LineSketch
from accord.distributions import Distribution, Normal, PointMass
from accord.errors import NothingReleased
from accord.learning import PrivateDensity
from accord.location.locate import locate, location_plan
from accord.location.rounding import CELL, LocationRounding
from accord.testing import CouplingCase, check_coupling

Floats = NDArray[np.float64]

SEED = 30
SCALE_WIDTH, LOCATION_WIDTH = 0.8, 0.5
SIGMAS = 4.9  # two-sided: 1e-6


def location_scores(law: Distribution, tuples: Floats) -> Floats:
    """Log scale and place of a released cell, uniform around the law's own in cells of its widths."""
    assert isinstance(law, PointMass)
    assert law.vector is not None
    _, log_scale, place = tuples[:, 0, :].T
    levels = np.stack(
        [
            (log_scale - law.vector[1]) / SCALE_WIDTH,
            (place - law.vector[2]) / (LOCATION_WIDTH * np.exp(log_scale)),
        ],
        axis=1,
    )
    return np.asarray(ndtri(levels + 0.5))[:, None, :]


def location_agreement(log_scale_gap: float, gap: float) -> float:
    """Theory S5: both in one cell of the scale, whose centre is uniform where it can be; then in one of the place."""
    reach = SCALE_WIDTH - log_scale_gap
    centre = log_scale_gap / 2  # middle of both log scales, 0 and the gap
    low, high = centre - reach / 2, centre + reach / 2
    mean = (math.exp(-low) - math.exp(-high)) / reach  # of exp(-centre)
    return (1 - log_scale_gap / SCALE_WIDTH) * (1 - gap / LOCATION_WIDTH * mean)


def test_S5_cells_are_uniform_and_part_as_often_as_their_widths_say() -> None:
    expected = location_agreement(0.1, 0.06)
    laws = [PointMass([CELL, 0.0, 5.0]), PointMass([CELL, 0.1, 5.06]), PointMass([CELL, -3.0, 9.0])]
    case = CouplingCase(
        coupling=LocationRounding(columns=1, scale_width=SCALE_WIDTH, location_width=LOCATION_WIDTH),
        laws=laws,
        total_variation=1 - expected,
        agreement=expected,
        scores=location_scores,
        others=[PointMass([CELL, 300.0, 1e9]), Normal(0, 1), PointMass([1.0, 0.0, 5.0])],
    )
    check_coupling(case)


def test_S9_least_sizes_have_an_answer() -> None:
    # 0.99 promised in the plan: fewer than 6 of 10 has a probability below 1e-7.
    plan = location_plan(units=5000, columns=1, budget=Budget("0.3", "5e-7"))
    found = 0
    for run in range(10):
        table = np.random.default_rng([SEED, run]).exponential(size=(5000, 1))
        found += not locate(table, plan, numbers=5000, word="record").without_answer
    assert found >= 6, f"seed {SEED}"


@pytest.mark.nightly
@pytest.mark.parametrize("law", ["normal", "exponential", "standard_cauchy", "whole"])
@pytest.mark.parametrize(("columns", "records"), [(1, 5000), (5, 20_000)])
def test_S9_answers_at_the_sizes_of_the_documentation(law: str, columns: int, records: int) -> None:
    # 0.95 is stated: fewer than 20 of 30 has a probability below 2e-7.
    found = 0
    for run in range(30):
        draw = np.random.default_rng([SEED, columns, run])
        size = (records, columns)
        table = np.round(draw.exponential(3.0, size=size)) if law == "whole" else getattr(draw, law)(size=size)
        plan = location_plan(units=records, columns=columns, budget=Budget("0.3", "5e-7"))
        found += not locate(table, plan, numbers=records, word="record").without_answer
    assert found >= 20, f"seed {SEED}"


def counts_of_nothing(releases: int) -> tuple[Floats, float]:
    """Released counts of tables without numbers, which are noise alone, and the deviation it should have."""
    sketch = LineSketch(epsilon=1, delta="1e-6")
    (sigma,) = noise_for(sketch.sensitivity, epsilon=sketch.epsilon, delta=sketch.delta, shares=[1])  # type: ignore[list-item]
    nothing = np.full((100, 1), np.nan)
    drawn = np.concatenate([sketch.release(nothing, units=100).counts for _ in range(releases)])
    return drawn, float(sigma) / 2**16


def variance_is(drawn: Floats, deviation: float) -> bool:
    return bool(abs(drawn.var() / deviation**2 - 1) < SIGMAS * math.sqrt(2 / len(drawn)))


def test_noise_of_the_sketch_has_the_deviation_that_was_planned() -> None:
    drawn, deviation = counts_of_nothing(30)
    assert variance_is(drawn, deviation)
    assert not variance_is(drawn, 0.9 * deviation)
    assert not variance_is(drawn, 1.1 * deviation)
    assert st.kstest(drawn / deviation, "norm").pvalue > 1e-6
    assert abs(drawn.mean()) < SIGMAS * deviation / math.sqrt(len(drawn))


def gaussian_delta(epsilon: float, *, sigma: float, sensitivity: float) -> float:
    """Balle and Wang (2018), Theorem 8, in scipy's words."""
    ratio = sensitivity / sigma
    return float(st.norm.sf(epsilon / ratio - ratio / 2) - math.exp(epsilon) * st.norm.sf(epsilon / ratio + ratio / 2))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-5)])
def test_the_planned_deviation_is_what_the_budget_needs_and_little_more(epsilon: float, delta: float) -> None:
    sketch = LineSketch(epsilon=epsilon, delta=delta)
    (sigma,) = noise_for(sketch.sensitivity, epsilon=sketch.epsilon, delta=sketch.delta, shares=[1])  # type: ignore[list-item]
    moved = math.sqrt(2) * 2**16
    assert gaussian_delta(epsilon, sigma=float(sigma), sensitivity=moved) <= delta
    assert gaussian_delta(epsilon, sigma=0.99 * float(sigma), sensitivity=moved) > delta


def test_a_normal_law_is_found_and_one_ten_percent_wider_is_told_apart() -> None:
    # At 20,000 records the total variation was at most 0.007 in 100 runs, and 0.039 to 0.052 from one 10 % wider.
    grid = np.linspace(20, 80, 6001)
    true, wider = st.norm.pdf(grid, 50, 3), st.norm.pdf(grid, 50, 3.3)
    right, wrong = [], []
    for run in range(3):
        table = np.random.default_rng([SEED, run]).normal(50, 3, size=(20_000, 1))
        density = np.exp(
            PrivateDensity(GaussianMixture(1), epsilon=1, delta="1e-6").fit(table).score_samples(grid[:, None])
        )
        right.append(0.005 * float(np.abs(density - true).sum()))
        wrong.append(0.005 * float(np.abs(density - wider).sum()))
    assert np.median(right) < 0.02, f"seed {SEED}"
    assert np.median(wrong) > 0.02, f"seed {SEED}"


def test_a_mixture_is_found_from_five_thousand_records() -> None:
    draw = np.random.default_rng(SEED)
    table = np.where(draw.random((5000, 1)) < 0.4, draw.normal(-20, 1, (5000, 1)), draw.normal(20, 3, (5000, 1)))
    try:
        model = PrivateDensity(GaussianMixture(2), epsilon=2, delta="1e-6").fit(table)
    except NothingReleased:
        pytest.fail("no answer, which has a probability below 1e-6 here")
    drawn = model.sample(20_000)
    assert abs((drawn < 0).mean() - 0.4) < 0.05
    assert abs(drawn[drawn < 0].mean() + 20) < 0.5
    assert abs(drawn[drawn > 0].mean() - 20) < 0.5
