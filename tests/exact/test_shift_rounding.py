"""Shift rounding (theory S5): exact disagreement, exact centres, isolation, equivariance.

Acceptances use |z| < 5.5 (4e-8 each, under 30 of them); each comes with a 10 % wrong claim that the same line rejects.
"""

import math
from typing import Any

import numpy as np
import pytest

from accord.core.coupling import ABSTAIN, Abstain
from accord.couplings import ParameterRounding, SharedRandomness, ShiftRounding
from accord.distributions import Categorical, Distribution, Normal, PointMass
from accord.errors import InvalidParameter
from accord.laws import total_variation
from accord.learners import GaussianLearner
from accord.learning import PrivateSampler

LINE = 5.5
RECORDS, STEP = 50, 4.0
MEAN_WIDTH = STEP / math.sqrt(RECORDS)
SCALE_WIDTH = STEP / math.sqrt(2 * RECORDS)


def plane(seed: int) -> Normal:
    generator = np.random.default_rng(seed)
    factor = np.tril(generator.normal(size=(2, 2))) + 2 * np.eye(2)
    return Normal(generator.normal(size=2), factor @ factor.T)


def disagreement(first: Normal, second: Normal, *, draws: int, key: int) -> float:
    coupled = ShiftRounding(dimension=first.dimension, step=STEP).couple(
        [first, second], records=RECORDS, draws=draws, shared=SharedRandomness(key)
    )
    return float(np.mean(coupled.keys[:, 0] != coupled.keys[:, 1]))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_S5_two_scales_part_with_the_total_variation_of_their_cells(share: float) -> None:
    draws = 40_000
    second = Normal(0.0, math.exp(2 * share * SCALE_WIDTH))
    seen = disagreement(Normal(0.0, 1.0), second, draws=draws, key=1)
    error = math.sqrt(share * (1 - share) / draws)
    assert abs(seen - share) < LINE * error
    assert abs(seen - 0.9 * share) > LINE * error


def test_S5_two_means_part_with_the_total_variation_of_their_cells() -> None:
    draws, shift = 60_000, 0.6 * MEAN_WIDTH
    seen = disagreement(Normal(1e6, 1.0), Normal(1e6 + shift, 1.0), draws=draws, key=2)
    # The width of the mean's cell is that of the scale's cell centre, uniform within half a cell of the log scale 0.
    centres = np.linspace(-0.5, 0.5, 20_001) * SCALE_WIDTH
    share = float(np.mean(np.minimum(1.0, 0.6 / np.exp(centres))))
    error = math.sqrt(share * (1 - share) / draws)
    assert abs(seen - share) < LINE * error
    assert abs(seen - 1.1 * share) > LINE * error


def test_S5_far_apart_laws_never_agree_and_equal_ones_always() -> None:
    assert disagreement(Normal(0.0, 1.0), Normal(2 * MEAN_WIDTH, 1.0), draws=2_000, key=3) == 1.0
    assert disagreement(plane(1), plane(1), draws=500, key=3) == 0.0


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_records_stand_for_the_centre_of_a_cell_near_the_law(dimension: int) -> None:
    generator = np.random.default_rng(dimension)
    factor = np.tril(generator.normal(size=(dimension, dimension))) + 3 * np.eye(dimension)
    law = Normal(100 * generator.normal(size=dimension), factor @ factor.T)
    rounding = ShiftRounding(dimension=dimension, step=STEP)
    coupled = rounding.couple([law], records=RECORDS, draws=200, shared=SharedRandomness(4))
    errors = []
    for draw in range(200):
        records = coupled.decode(draw, coupled.keys[draw, 0])
        assert records.shape == (RECORDS, dimension)
        again = GaussianLearner().fit(records, seed=0)
        scale = np.log(np.diag(again.cholesky) / np.diag(law.cholesky)) / SCALE_WIDTH
        assert np.abs(scale).max() <= 0.5 + 1e-9
        errors.append(scale)
    spread = np.concatenate(errors)
    assert abs(spread.mean()) < LINE * math.sqrt(1 / 12 / len(spread))
    assert abs((spread**2).mean() - 1 / 12) < LINE * math.sqrt(1 / 180 / len(spread))


def test_S5_cells_are_uniform_around_the_mean() -> None:
    draws = 3_000
    coupled = ShiftRounding(dimension=1, step=STEP).couple(
        [Normal(-7.0, 4.0)], records=RECORDS, draws=draws, shared=SharedRandomness(5)
    )
    places = []
    for draw in range(draws):
        records = coupled.decode(draw, coupled.keys[draw, 0])
        width = MEAN_WIDTH * records.std(ddof=1)
        places.append((records.mean() + 7.0) / width)
    error = (np.array(places) ** 2).mean() - 1 / 12
    assert np.abs(places).max() <= 0.5 + 1e-9
    assert abs(error) < LINE * math.sqrt(1 / 180 / draws)
    assert abs(error + 0.19 / 12) > LINE * math.sqrt(1 / 180 / draws)


@pytest.mark.parametrize("other", [ABSTAIN, Normal(0.0, 1.0), Categorical(["a"], [1.0]), plane(9), None])
def test_L3_other_laws_and_their_number_move_nothing(other: Distribution | Abstain | None) -> None:
    laws: list[Distribution | Abstain] = [plane(1), plane(2), plane(3)]
    rounding = ShiftRounding(dimension=2)
    whole = rounding.couple(laws, records=20, draws=30, shared=SharedRandomness(6)).keys
    changed: list[Distribution | Abstain] = [laws[0], other, laws[2], laws[1]]  # type: ignore[list-item]
    replayed = rounding.couple(changed, records=20, draws=30, shared=SharedRandomness(6)).keys
    assert (replayed[:, [0, 2]] == whole[:, [0, 2]]).all()
    assert (replayed[:, 3] == whole[:, 1]).all()
    more = rounding.couple(laws, records=20, draws=45, shared=SharedRandomness(6)).keys
    assert (more[:30] == whole).all()


def test_draws_are_independent() -> None:
    draws = 20_000
    coupled = ShiftRounding(dimension=1, step=STEP).couple(
        [Normal(0.0, 1.0), Normal(0.0, math.exp(SCALE_WIDTH))], records=RECORDS, draws=draws, shared=SharedRandomness(7)
    )
    equal = (coupled.keys[:, 0] == coupled.keys[:, 1]).astype(float)
    assert abs(np.mean(equal[1:] * equal[:-1]) - equal.mean() ** 2) < LINE * 0.5 / math.sqrt(draws)


def test_S11_affine_maps_do_not_change_how_often_laws_agree() -> None:
    first, second = plane(11), Normal([0.1, 0.0], [[1.0, 0.2], [0.2, 1.0]])
    second = Normal(np.array(first.mean) + 0.05, np.array(first.covariance) * 1.05)
    matrix, shift = np.array([[1e3, 0.0], [-50.0, 0.02]]), np.array([4e4, -1.0])
    maps = [
        Normal(matrix @ np.array(law.mean) + shift, matrix @ np.array(law.covariance) @ matrix.T)
        for law in (first, second)
    ]
    draws = 40_000
    plain = disagreement(first, second, draws=draws, key=8)
    moved = disagreement(maps[0], maps[1], draws=draws, key=9)
    assert 0.1 < plain < 0.9
    error = math.sqrt(2 * plain * (1 - plain) / draws)
    assert abs(plain - moved) < LINE * error
    assert abs(plain - 1.1 * moved) > LINE * error


def test_hopeless_laws_abstain_alone() -> None:
    laws: list[Distribution | Abstain] = [Normal(1e17, 1e-4), Normal(0.0, 1.0)]
    keys = ShiftRounding(dimension=1).couple(laws, records=20, draws=3, shared=SharedRandomness(1)).keys
    assert [key is ABSTAIN for key in keys[0]] == [True, False]


@pytest.mark.parametrize("step", [0, -1.0, math.inf, math.nan, "wide", True, None])
def test_bad_widths_are_refused(step: Any) -> None:
    with pytest.raises(InvalidParameter):
        ShiftRounding(dimension=1, step=step)
    with pytest.raises(InvalidParameter):
        ParameterRounding(widths=[1.0, step])
    with pytest.raises(InvalidParameter):
        ParameterRounding(widths=[])


def test_S5_vectors_agree_with_the_product_over_coordinates_and_stand_for_a_uniform_cell() -> None:
    draws, widths = 40_000, np.array([0.5, 2e-3, 7e4])
    first = np.array([1e3, -0.1, 2e5])
    second = first + widths * [0.2, -0.35, 0.1]
    laws = [PointMass(first), PointMass(second), PointMass(first + np.array([0.0, 0.0, 7.1e4]))]
    coupled = ParameterRounding(widths=widths.tolist()).couple(
        laws, records=2, draws=draws, shared=SharedRandomness(14)
    )
    agree = 0.8 * 0.65 * 0.9
    seen = float((coupled.keys[:, 0] == coupled.keys[:, 1]).mean())
    error = math.sqrt(agree * (1 - agree) / draws)
    assert abs(seen - agree) < LINE * error
    assert abs(seen - 1.1 * agree) > LINE * error
    assert not (coupled.keys[:, 0] == coupled.keys[:, 2]).any()
    found = np.array([coupled.decode(draw, coupled.keys[draw, 0]) for draw in range(5_000)])
    assert found.shape == (5_000, 2, 3)
    assert (found[:, 0] == found[:, 1]).all()
    places = (found[:, 0] - first) / widths
    assert np.abs(places).max() <= 0.5 + 1e-6
    for place in places.T:
        error = (place**2).mean() - 1 / 12
        assert abs(error) < LINE * math.sqrt(1 / 180 / len(place))
        assert abs(error + 0.19 / 12) > LINE * math.sqrt(1 / 180 / len(place))
    correlation = np.corrcoef(places.T) - np.eye(3)
    assert np.abs(correlation).max() < LINE / math.sqrt(len(places))


@pytest.mark.parametrize("odd", [ABSTAIN, None, PointMass(1.0), PointMass("a"), PointMass([1e300, 0.0]), plane(1)])
def test_vectors_that_are_none_abstain_alone(odd: Any) -> None:
    laws: list[Any] = [PointMass([1.0, 2.0]), PointMass([1.1, 2.0]), PointMass([-3.0, 0.0])]
    rounding = ParameterRounding(widths=(1.0, 0.5))
    whole = rounding.couple(laws, records=1, draws=20, shared=SharedRandomness(15)).keys
    replayed = rounding.couple([laws[0], odd, laws[2]], records=1, draws=30, shared=SharedRandomness(15)).keys
    assert (replayed[:20, [0, 2]] == whole[:, [0, 2]]).all()
    assert all(vote is ABSTAIN for vote in replayed[:, 1])


@pytest.mark.parametrize(("dimension", "rows", "error"), [(1, 1_500, 0.25), (5, 80_000, 0.25)])
def test_S9_many_draws_find_a_cell_centred_on_the_fits(dimension: int, rows: int, error: float) -> None:
    generator = np.random.default_rng([12, dimension])
    factor = np.tril(generator.normal(size=(dimension, dimension))) + 3 * np.eye(dimension)
    truth = Normal(generator.normal(size=dimension) * 1e3, factor @ factor.T)
    records = 100 if dimension == 1 else 300
    sampler = PrivateSampler(
        GaussianLearner(),
        epsilon=1,
        delta="1e-6",
        blocks=100,
        records=records,
        draws=1_000,
        coupling=ShiftRounding(dimension=dimension, step=8.0 if dimension == 1 else 6.0),
    )
    release = sampler.release(truth.sample(rows, generator), shared=SharedRandomness(13))
    assert isinstance(release.value, np.ndarray)
    assert total_variation(GaussianLearner().fit(release.value, seed=0), truth) < error
