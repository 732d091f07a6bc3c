"""Sizes and certificates against second routes: closed forms, enumeration, and the mechanisms themselves."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import binom

from accord.couplings import ParameterRounding
from accord.distributions import PointMass
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.mechanisms import BestOfDraws, StableMode
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.theory.planning import (
    Certificate,
    agnostic_sizes,
    all_plans,
    boosted_sizes,
    orders,
    plan,
    sampler_sizes,
    theorem_sizes,
    yatracos_sizes,
)
from accord.theory.planning.certified import (
    RoundedAtoms,
    _shift_square,
    _worst,
    law,
    plan_rounded,
    tail_above,
    tail_below,
)
from accord.theory.planning.pivots import PivotDesign, lower_bound, simulate

ASKED: dict[str, Any] = {"alpha": "0.1", "beta": "0.1", "epsilon": 1, "delta": "1e-6"}


def quadratic(alpha: float, beta: float) -> int:
    return math.ceil((1 + math.log(1 / beta)) / alpha**2)


def test_L9_sizes_by_hand() -> None:
    sizes = theorem_sizes(quadratic, **ASKED)
    records = math.ceil((1 + math.log(40)) / 0.1**2)
    assert sizes.records == records == 469
    assert sizes.block_size == math.ceil((1 + math.log(16)) * (64 * records / 0.1) ** 2)
    assert sizes.blocks == math.ceil(128 * math.log(40)) == 473
    assert sizes.required_records == 473 * sizes.block_size
    assert sizes.delta == Fraction(1, 10**6)
    small = theorem_sizes(quadratic, **(ASKED | {"epsilon": "0.1"}))
    assert small.blocks == math.ceil(80 * math.log(4e7)) == 1401


def test_L10_sizes_by_hand() -> None:
    sizes = boosted_sizes(quadratic, **ASKED)
    inner = theorem_sizes(quadratic, alpha=Fraction(1, 30), beta=Fraction(1, 8), epsilon=1, delta="1e-6")
    assert sizes.parts == math.ceil(128 * math.log(10)) == 295
    assert sizes.required_records == 295 * inner.required_records
    assert boosted_sizes(quadratic, **(ASKED | {"delta": "0.2"})).delta == Fraction(1, 32)


def test_L11_sizes_by_hand() -> None:
    sizes = agnostic_sizes(quadratic, **ASKED, agnostic_factor=3)
    share = 0.1 / 6
    assert sizes.parts == math.ceil((1 + math.log(10)) / (2 * share) ** 2)
    assert sizes.block_size == pytest.approx((1 + math.log(16)) * (16 / share) ** 2, rel=1e-5)
    assert sizes.blocks == math.ceil(max(16 * math.log(1e6), 128 * math.log(4 / share))) == 702
    assert sizes.records == 1


def test_L8_L12_and_orders() -> None:
    sampler = sampler_sizes(quadratic, records=50, gamma="0.075", epsilon=1, delta="1e-6")
    assert sampler.block_size == math.ceil((1 + math.log(16)) * (64 * 50 / 0.1) ** 2 * (1 - 1e-12))
    assert sampler.blocks == 473
    yatracos = yatracos_sizes(vc=4, constant=2, **ASKED)
    assert yatracos.theorem == "C.5"
    assert yatracos.parts == math.ceil(2 * (4 + math.log(20)) / (0.1 / 3) ** 2)
    inner = quadratic(0.1 / 3, 1 / 32)
    expected = quadratic(1 / (512 * inner), 1 / 16) * math.log(4e6) * math.log(40)
    numbers: dict[str, Any] = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6}
    assert orders("1.3", **numbers, learner=quadratic) == pytest.approx(expected)
    assert orders("C.5", **numbers, vc=4) == pytest.approx(5 * (4 + math.log(20)) * 1e4 * math.log(2e7))


def test_S8_single_failure_by_the_mechanism() -> None:
    found = plan(GaussianLearner(dimension=1), **ASKED, method="certified").certificate
    single = all_plans(GaussianLearner(dimension=1), **ASKED)["A"].certificate.numbers
    assert found.method == "C"
    votes, rho = single["blocks"], 2 * single["variation"] / (1 + single["variation"])
    mode = StableMode(epsilon=1, delta="1e-6")
    chances = np.array([float(mode.acceptance(votes - missed, votes=votes)) for missed in range(votes + 1)])
    misses = np.linspace(0, 1, 777)
    silent = 1 - binom.pmf(np.arange(votes + 1), votes, misses[:, None]) @ chances
    assert (silent <= single["height"] + single["slope"] * misses + 1e-12).all()
    # The worst two-point law of U with mean rho comes close: the bound gives little away.
    worst = max(silent[i] * rho / misses[i] for i in range(1, 777) if misses[i] >= rho)
    assert worst <= single["height"] + single["slope"] * rho <= max(worst, np.interp(rho, misses, silent)) + 0.02
    total = single["relearning"] + single["height"] + single["slope"] * rho
    assert 0.09 < total <= 0.1


@pytest.mark.parametrize("sides", [1, 2])
def test_tails_hold_for_every_p_and_are_not_loose(sides: int) -> None:
    block, radius = 100, 0.0537
    bound = _worst(block, radius, sides=sides)
    values = np.linspace(1e-4, 1 - 1e-4, 20_011)
    outcomes = np.arange(block + 1)
    far = (outcomes / block - values[:, None]) > radius
    if sides == 2:
        far |= (values[:, None] - outcomes / block) > radius
    exact = float((binom.pmf(outcomes, block, values[:, None]) * far).sum(axis=1).max())
    assert exact <= bound <= exact + 0.01


def test_chernoff_of_the_shift_by_simulation() -> None:
    generator = SharedRandomness("planning: shift").stream("u")
    square = ((generator.uniform(size=(200_000, 16)) - 0.5) ** 2).sum(axis=1)
    for failure in (0.05, 0.01):
        bound = _shift_square(16, failure=failure)
        assert (square > bound).mean() < failure
        assert (square > 0.85 * bound).mean() > failure


def _rounded_run(found: RoundedAtoms, truth: np.ndarray, key: SharedRandomness) -> tuple[float, float]:
    """Return one release's total variation from the truth (1 for no answer), by the real coupling and mechanism."""
    source = key.stream("data")
    counts = source.multinomial(found.block_size, truth, size=found.blocks)
    frequencies = counts / found.block_size
    parameters = frequencies[:, :1] if found.labels == 2 else frequencies
    laws = [PointMass(row) for row in parameters]
    coupled = ParameterRounding(widths=[found.width] * parameters.shape[1]).couple(
        laws, records=1, draws=found.draws, shared=key
    )
    released = BestOfDraws(epsilon=1, delta="1e-6", draws=found.draws).release(list(map(list, coupled.keys))).value
    if isinstance(released, NoAnswerType):
        return 1.0, 0.0
    draw, key_of_cell = released
    centre = coupled.decode(draw, key_of_cell)[0]
    if found.labels == 2:
        return abs(float(np.clip(centre[0], 0, 1)) - float(truth[0])), 1.0
    return 0.5 * math.sqrt(found.labels) * float(np.linalg.norm(centre - truth)), 1.0


@pytest.mark.parametrize("p", [0.5, 0.3, 0.05])
def test_S9_rounded_frequencies_two_labels_keep_their_promise(p: float) -> None:
    found = plan_rounded(labels=2, alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6)
    assert found is not None
    assert found.records <= 20_000
    key = SharedRandomness(f"planning: two labels {p}")
    runs = 60
    hits = sum(_rounded_run(found, np.array([p, 1 - p]), key.child(run))[0] <= 0.1 for run in range(runs))
    # At success 0.9 fewer than 38 hits of 60 have chance below 1e-6.
    assert hits >= 38, (p, hits)


def test_S9_rounded_frequencies_sixteen_labels_keep_their_promise() -> None:
    found = plan_rounded(labels=16, alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6)
    assert found is not None
    assert found.records <= 20_000_000
    assert plan(EmpiricalLearner(range(16)), **ASKED, method="certified").records <= 400_000
    for name, truth in {"uniform": np.full(16, 1 / 16), "steep": 2.0 ** -np.minimum(np.arange(1, 17), 15)}.items():
        key = SharedRandomness(f"planning: sixteen labels {name}")
        hits = sum(_rounded_run(found, truth, key.child(run))[0] <= 0.1 for run in range(12))
        assert hits >= 4, (name, hits)  # at success 0.9 fewer than 4 of 12 have chance below 1e-6


def test_S9_too_small_blocks_miss() -> None:
    """The simulation has power: with a quarter of the records most releases miss alpha or give no answer."""
    found = plan_rounded(labels=2, alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6)
    assert found is not None
    fewer = RoundedAtoms(
        labels=2,
        blocks=found.blocks // 2,
        block_size=found.block_size // 2,
        draws=found.draws,
        width=found.width,
        good_votes=1,
        stray_votes=2,
        good_radius=found.good_radius,
        stray_radius=found.stray_radius,
        shift_square=0.25,
    )
    key = SharedRandomness("planning: power")
    hits = sum(_rounded_run(fewer, np.array([0.5, 0.5]), key.child(run))[0] <= 0.1 for run in range(60))
    assert hits < 38, hits


def test_S11_lower_bound_is_clopper_pearson() -> None:
    for successes in (1, 270, 285, 299):
        expected = beta_law.ppf(0.001, successes, 300 - successes + 1)
        assert lower_bound(successes, runs=300) == pytest.approx(expected, rel=1e-9)
        assert binom.sf(successes - 1, 300, lower_bound(successes, runs=300)) == pytest.approx(0.001, rel=1e-6)
    assert lower_bound(0, runs=300) == 0.0


def test_S11_simulation_is_a_function_of_its_seed_and_falls_with_n() -> None:
    sizes: dict[str, Any] = {
        "dimension": 1,
        "alpha": Fraction(1, 10),
        "epsilon": Fraction(1),
        "delta": Fraction(1, 10**6),
        "draws": 50,
        "step": 5.5,
    }
    enough = PivotDesign(blocks=60, block_size=16, records=40, **sizes)
    scarce = PivotDesign(blocks=60, block_size=5, records=13, **sizes)
    silent = PivotDesign(blocks=16, block_size=16, records=40, **sizes)
    hits = simulate(enough, runs=40, seed=5)
    assert hits == simulate(enough, runs=40, seed=5)
    assert hits >= 25
    assert simulate(scarce, runs=40, seed=5) < hits
    assert simulate(silent, runs=40, seed=5) == 0


@pytest.mark.parametrize(
    ("learner", "most"), [(EmpiricalLearner(["a", "b"]), 20_000), (GaussianLearner(dimension=1), 1500)]
)
def test_S12_numbers_to_reach(learner: object, most: int) -> None:
    found = plan(learner, **ASKED, method="certified")
    assert found.records == found.blocks * found.block_size <= most
    assert Certificate.from_json(found.certificate.to_json()) == found.certificate
    assert found.certificate.verify()


def test_sizes_fall_as_alpha_and_epsilon_rise() -> None:
    learner = EmpiricalLearner(range(3))
    by_alpha = [plan(learner, **(ASKED | {"alpha": a}), method="certified").records for a in ("0.05", "0.1", "0.2")]
    by_epsilon = [plan(learner, **(ASKED | {"epsilon": e}), method="certified").records for e in ("0.25", "1", "4")]
    for sizes in (by_alpha, by_epsilon):
        assert all(after < before for before, after in pairwise(sizes))


def test_binomial_chances_against_scipy() -> None:
    counts = np.arange(-2, 43)
    for chance in (0.0, 1e-9, 0.2, 0.5, 0.97, 1.0):
        assert tail_above(counts, size=40, chance=chance) == pytest.approx(
            binom.sf(counts - 1, 40, chance), rel=1e-9, abs=0
        )
        assert tail_below(counts, size=40, chance=chance) == pytest.approx(
            binom.cdf(counts, 40, chance), rel=1e-7, abs=1e-300
        )
        assert law(40, np.array([chance]))[0] == pytest.approx(
            binom.pmf(np.arange(41), 40, chance), rel=1e-9, abs=1e-300
        )
