"""Two stages, without luck: isolation bit for bit, the race by hand, nu by another route, a bound by enumeration."""

import itertools
import math
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_t

from accord.core.coupling import ABSTAIN, Abstain
from accord.couplings import ModelReference, NormalReference, TwoStageCoupling
from accord.couplings.reference import shortfall
from accord.distributions import Categorical, Distribution, Measure, Mixture, Normal, PointMass, Uniform
from accord.randomness import Generator, SharedRandomness

CHUNK = 2048


def spread_normal(d: int, *, shift: float, scale: float) -> Normal:
    matrix = np.random.default_rng(7 + d).normal(size=(d, d)) / 4 + np.eye(d)
    return Normal(np.full(d, shift), scale * matrix @ matrix.T)


class Moody:
    """A law that draws, and whose density goes wrong in a way of its own."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    dimension = 1
    measure = Measure.LEBESGUE

    def sample(self, size: int, generator: Generator) -> NDArray[Any]:
        return generator.normal(size=(size, 1))

    def log_density(self, x: Any) -> Any:
        if self.kind == "raises":
            raise ZeroDivisionError("a record said so")
        values = np.asarray(x, dtype=float)[:, 0]
        return {"nan": np.full(len(values), np.nan), "shape": values[:3], "inf": np.full(len(values), np.inf)}[
            self.kind
        ]


class Sub(float):
    """No law at all."""


def mixture(shift: float) -> Mixture:
    return Mixture([Normal(-3 + shift, 1), Normal(0, 0.5 + shift), Normal(4, 2)], [0.3, 0.3 + shift, 0.4 - shift])


def normal_case(d: int) -> tuple[TwoStageCoupling, list[Any], list[Any], int]:
    coarse = spread_normal(d, shift=1.0, scale=2.0)
    laws = [spread_normal(d, shift=1.0 + 0.02 * i, scale=2.0 + 0.05 * i) for i in range(5)]
    far = Normal(np.full(d, 1e200), 1e-9 * np.eye(d))
    odd: list[Any] = [ABSTAIN, far, Normal(0, 1) if d > 1 else Normal([0, 0], np.eye(2)), Moody("nan"), None, Sub(3)]
    return TwoStageCoupling(NormalReference(coarse, strength=60), candidates=5000), laws, odd, 30


def model_case(*, compiled: bool) -> tuple[TwoStageCoupling, list[Any], list[Any], int]:
    models: list[Any] = [mixture(0.02 * i) for i in range(8)]
    if not compiled:
        models.append(Uniform(-8.0, 8.0))
    laws = [mixture(0.015 * i + 0.01) for i in range(5)]
    odd: list[Any] = [ABSTAIN, Normal(1e200, 1e-9), Categorical(["a"], [1.0]), PointMass(0.0), None, Sub(3)]
    odd += [Moody(kind) for kind in ("raises", "nan", "shape", "inf")]
    return TwoStageCoupling(ModelReference(models), candidates=3000), laws, odd, 12


CASES = {
    "normal, 1 column": lambda: normal_case(1),
    "normal, 3 columns": lambda: normal_case(3),
    "normal, 5 columns": lambda: normal_case(5),
    "mixtures, compiled": lambda: model_case(compiled=True),
    "mixtures, plain": lambda: model_case(compiled=False),
}


@pytest.mark.parametrize("name", CASES)
def test_L3_whatever_one_law_is_no_other_vote_moves(name: str) -> None:
    coupling, laws, odd, records = CASES[name]()
    shared = SharedRandomness("replay")
    before = coupling.couple(laws, records=records, draws=3, shared=shared).keys
    assert all(isinstance(key, bytes) for key in before.flat)
    for place, other in itertools.product((0, 2, 4), [*odd, laws[1]]):
        changed = [*laws[:place], other, *laws[place + 1 :]]
        after = coupling.couple(changed, records=records, draws=3, shared=shared).keys
        kept = [block for block in range(5) if block != place]
        assert (after[:, kept] == before[:, kept]).all(), (place, other)
        if not isinstance(other, Distribution) or isinstance(other, Moody):
            assert all(key is ABSTAIN for key in after[:, place]), other
    assert coupling.isolated is True


@pytest.mark.parametrize("name", CASES)
def test_L3_a_row_of_numbers_is_the_same_bits_beside_any_other_law(name: str) -> None:
    coupling, laws, odd, records = CASES[name]()
    points = coupling.reference.drawn(700, SharedRandomness(2).stream("points"), records=records)
    rows = coupling.reference.log_ratios(laws, points, records=records)
    for other in odd:
        beside = coupling.reference.log_ratios([laws[0], other, laws[2], other, laws[4]], points, records=records)
        assert (beside[[0, 2, 4]] == rows[[0, 2, 4]]).all()


@pytest.mark.parametrize("name", ["normal, 3 columns", "mixtures, plain"])
def test_S1_the_winner_is_the_least_arrival_over_density_of_all_candidates(name: str) -> None:
    """By hand: all candidates at once, ratios one law at a time, candidates cut at N in the middle of a chunk."""
    coupling, laws, _, records = CASES[name]()
    shared = SharedRandomness("by hand")
    coupled = coupling.couple(laws, records=records, draws=2, shared=shared)
    number = coupling.candidates_for(records)
    assert number % CHUNK != 0
    for draw, (block, law) in itertools.product(range(2), enumerate(laws)):
        streams = [shared.stream("two stage", "candidates", draw, part) for part in range(-(-number // CHUNK))]
        times = [shared.stream("two stage", "arrivals", draw, part) for part in range(len(streams))]
        points = np.concatenate([coupling.reference.drawn(CHUNK, s, records=records) for s in streams])[:number]
        arrivals = np.concatenate([s.standard_exponential(CHUNK) for s in times])[:number]
        logs = coupling.reference.log_ratios([law], points, records=records)[0]
        winner = int(np.argmin(np.log(arrivals) - logs))
        assert coupled.keys[draw, block] == struct.pack("<q", winner)
        found = coupled.decode(draw, coupled.keys[draw, block])
        assert found.shape == (records, coupling.reference.dimension)  # type: ignore[attr-defined]
        assert (found == coupled.decode(draw, coupled.keys[draw, block])).all()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_S3_nu_is_the_chain_of_predictive_laws_on_the_decoded_records(d: int) -> None:
    """Another route to nu: multivariate t laws, one record after the other; and q^l record by record."""
    coarse = spread_normal(d, shift=-3.0, scale=5.0)
    law = spread_normal(d, shift=-2.5, scale=4.0)
    strength, records = Fraction(25, 2), d + 6
    reference = NormalReference(coarse, strength=strength)
    shared = SharedRandomness("chain")
    points = reference.points(0, 3, records=records, shared=shared)[:8]
    for number, point in enumerate(points):
        x = reference.decode(point, draw=0, number=number, records=records, shared=shared)
        total = float(law.log_density(x).sum())
        mean, count = np.array(coarse.mean), float(strength)
        freedom, scale = count - 1, (count - 1) * np.array(coarse.covariance)
        for record in x:
            df = freedom - d + 1
            shape = scale * (count + 1) / (count * df)
            total -= float(multivariate_t(loc=mean, shape=shape, df=df).logpdf(record))  # type: ignore[arg-type]
            step = record - mean
            scale = scale + np.outer(step, step) * count / (count + 1)
            mean, count, freedom = mean + step / (count + 1), count + 1, freedom + 1
        assert reference.log_ratios([law], points, records=records)[0, number] == pytest.approx(total, abs=1e-8)


def test_S2_the_bound_is_reached_and_never_passed() -> None:
    d, s, records = 3, 40.0, 30
    reference = NormalReference(Normal(np.zeros(d), np.eye(d)), strength=40)
    law = Normal([0.1, -0.05, 0.0], 1.05 * np.eye(d) + 0.02)
    (bound,) = reference.log_bounds([law], records=records)
    mean = np.array(law.mean) * (s + records) / records
    scatter = (s - 1 + records) * np.array(law.covariance) - (s - 1) * np.eye(d)
    scatter -= s * records / (s + records) * np.outer(mean, mean)
    factor = np.linalg.cholesky(scatter)
    best = np.concatenate([mean, factor[np.tril_indices(d)]])
    assert reference.log_ratios([law], best[None], records=records)[0, 0] == pytest.approx(bound, abs=1e-9)
    stream = SharedRandomness(3).stream("bound")
    own = reference.log_ratios([law], reference.points_of(law, 5000, stream, records=records), records=records)
    assert own.max() <= bound
    for other in (Normal(np.full(d, 9.0), 0.1 * np.eye(d)), Normal(np.zeros(d), 30 * np.eye(d))):
        seen = reference.log_ratios([other], reference.points_of(other, 5000, stream, records=records), records=records)
        assert seen.max() <= reference.log_bounds([other], records=records)[0] < math.inf
    assert reference.log_bounds([ABSTAIN, Normal(0, 1)], records=records).tolist() == [-math.inf] * 2


@pytest.mark.parametrize("candidates", [1, 2, 4])
def test_S1_what_the_winner_misses_of_its_law_is_within_the_bound(candidates: int) -> None:
    """All lists of candidates from a law on three values, in rationals."""
    nu = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    q = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    ratios = [a / b for a, b in zip(q, nu, strict=True)]
    winner = [Fraction(0)] * 3
    for values in itertools.product(range(3), repeat=candidates):
        chance = math.prod((nu[v] for v in values), start=Fraction(1))
        total = sum((ratios[v] for v in values), start=Fraction(0))
        for v in values:
            winner[v] += chance * ratios[v] / total
    assert sum(winner) == 1
    missed = sum((max(a - b, Fraction(0)) for a, b in zip(q, winner, strict=True)), start=Fraction(0))
    bound = sum(
        (a * max(f - 1, Fraction(0)) / (f + candidates - 1) for a, f in zip(q, ratios, strict=True)), start=Fraction(0)
    )
    square = sum((a * f for a, f in zip(q, ratios, strict=True)), start=Fraction(0)) / candidates
    assert 0 < missed <= bound <= square
    if candidates == 1:
        assert missed == bound  # the candidate itself, and the bound is sharp
    tenths = np.repeat(np.log(np.array(ratios, dtype=float)), [1, 2, 7])
    assert shortfall(tenths, candidates=candidates) == pytest.approx(float(bound), rel=1e-12)


def test_shortfall_of_enormous_ratios_is_1_and_of_tiny_ones_0() -> None:
    assert shortfall(np.array([1e5, 800.0]), candidates=1 << 20) == pytest.approx(1.0)
    assert shortfall(np.array([-1e5, -np.inf, 0.0]), candidates=1) == 0.0


def test_a_model_that_is_in_the_list_has_ratios_of_at_most_the_number_of_models() -> None:
    """f <= M, at atoms of labels as well, where masses count."""
    labels = ["a", "b", "c"]
    models: Sequence[Distribution] = [Categorical(labels, w) for w in ([1, 1, 2], [5, 1, 1], [1, 1, 0])]
    reference = ModelReference(models)
    points = reference.drawn(400, SharedRandomness(5).stream("labels"), records=6)
    laws: list[Distribution | Abstain] = [*models, ABSTAIN]
    rows = reference.log_ratios(laws, points, records=6)
    total = np.exp(rows[:3]).sum(axis=0)
    assert total == pytest.approx(np.full(400, 3.0), rel=1e-12)
    assert (rows[3] == -np.inf).all()
    has_c = (points[:, :, 0] == "c").any(axis=1)
    assert (rows[2, has_c] == -np.inf).all()
    assert (rows[2, ~has_c] > -np.inf).all()
