"""Couplings by statistics, piece by piece: densities, bounds, what is left out, and the search itself."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import (
    NormalLattice,
    ProductCoupling,
    RaceCoupling,
    RecordByRecord,
    StatisticCoupling,
    coupling_for,
)
from accord.couplings.lattice.cells import CellRace, Points
from accord.couplings.statistics.gamma import GammaStatistic
from accord.couplings.statistics.sums import ExponentialSum, LogSum, PoissonSum
from accord.distributions import Categorical, Exponential, Gamma, Mixture, Normal, PointMass, Poisson, Product, Uniform
from accord.errors import FitFailed, InvalidParameter
from accord.randomness import SharedRandomness

CASES: list[tuple[Any, Any, Any]] = [
    (PoissonSum(20), Poisson(0.02), Poisson(0.03)),
    (PoissonSum(20), Poisson(7.0), Poisson(7.5)),
    (PoissonSum(3), Poisson(1e9), Poisson(1.00001e9)),
    (ExponentialSum(1), Exponential(1.0), Exponential(2.0)),
    (ExponentialSum(80), Exponential(1e200), Exponential(1.1e200)),
    (GammaStatistic(60), Gamma(0.4, 1.0), Gamma(0.42, 1.0)),
    (GammaStatistic(80), Gamma(0.05, 1e-5), Gamma(0.055, 1e-5)),
    (GammaStatistic(80), Gamma(300.0, 2.0), Gamma(330.0, 1.9)),
]


def points_in(reach: Any, which: NDArray[np.int64], *, uniforms: int, seed: int) -> Points:
    """Points with arbitrary streams in the given cells."""
    streams = np.random.default_rng(seed).integers(2**63, size=len(which)).astype(np.uint64)
    return Points(reach.cells[which], streams, np.zeros(len(which), dtype=np.int64), uniforms + 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[0].records}")
def test_S4_bounds_hold_and_densities_add_up_to_one(case: tuple[Any, Any, Any]) -> None:
    """The mass of all cells, estimated with cells drawn by their bounds: accepted within 5.5 errors."""
    statistic, law, _ = case
    seed = 3
    reach = statistic.reach(law)
    bound = np.exp(reach.log_bound - reach.log_bound.max())
    which = np.random.default_rng(seed).choice(len(bound), size=60_000, p=bound / bound.sum())
    log_density = reach.log_density(which, points_in(reach, which, uniforms=statistic.uniforms, seed=seed))
    assert (log_density <= reach.log_bound[which]).all()
    share = np.exp(log_density - reach.log_bound[which])
    total = math.exp(reach.log_bound.max()) * bound.sum()
    error = 5.5 * total * share.std() / math.sqrt(len(share))
    assert abs(total * share.mean() - 1) < error, seed
    assert error < 0.1, "a mass a tenth wrong would not be noticed"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[0].records}")
def test_S3_ratios_of_densities_are_those_of_the_records_themselves(case: tuple[Any, Any, Any]) -> None:
    statistic, p, q = case
    coupled = StatisticCoupling(type(p)).couple([p], records=statistic.records, draws=50, shared=SharedRandomness(4))
    race = CellRace(SharedRandomness(4).child("statistic", statistic.name), draws=50, uniforms=statistic.uniforms)
    for draw, key in enumerate(coupled.keys[:, 0]):
        records = coupled.decode(draw, key)
        expected = float((q.log_density(records) - p.log_density(records)).sum())
        if isinstance(statistic, PoissonSum):
            total = records.sum()
            found = [float(Poisson(statistic.records * law.rate).log_density([total])[0]) for law in (p, q)]
        else:
            *cell, number = np.frombuffer(key, dtype="<i8").tolist()
            point = race.point(draw, np.array(cell), number)
            found = [float(statistic.reach(law).log_density(np.zeros(1, dtype=np.int64), point)[0]) for law in (p, q)]
        assert found[1] - found[0] == pytest.approx(expected, abs=1e-5 * (1 + abs(expected)))


@pytest.mark.parametrize("rate", [1e-6, 0.3, 5.0, 400.0, 1e6, 1e13])
def test_tails_of_poisson_sums_that_are_left_out_are_below_the_claim(rate: float) -> None:
    cells = PoissonSum(1).reach(Poisson(rate)).cells[:, 0]
    law = scipy.stats.poisson(rate)
    assert law.cdf(cells[0] ** 2 - 1) < 5e-13
    assert law.sf((cells[-1] + 1) ** 2 - 1) < 5e-13
    assert len(cells) < 40


@pytest.mark.parametrize("freedom", [0.02, 0.5, 1.0, 12.0, 84.0, 90.0, 1e4, 1e9])
def test_tails_of_sums_that_are_left_out_are_below_the_claim(freedom: float) -> None:
    low, high = LogSum(freedom, 0.0).ends()
    law = scipy.stats.gamma(freedom)
    assert law.cdf(math.exp(low)) < 5e-13
    assert law.sf(math.exp(high)) < 5e-13
    middle = np.linspace(max(low, -600.0), high, 200)
    density = law.logpdf(np.exp(middle)) + middle
    np.testing.assert_allclose(LogSum(freedom, 0.0).log_density(middle), density, atol=1e-6 + 1e-9 * freedom)


@pytest.mark.parametrize(("records", "shape"), [(12, 1.0), (12, 0.01), (40, 20.0), (200, 1e5)])
def test_shapes_that_are_left_out_have_less_than_the_claim(records: int, shape: float) -> None:
    """Given proportions of the law itself, the point's shape has a known law: its mass on what is left out."""
    statistic = GammaStatistic(records)
    kept, _, _ = statistic._shapes(shape)
    generator = np.random.default_rng(6)
    logs = np.log(generator.standard_gamma(shape + 1, (4_000, records)))
    logs += np.log(generator.random((4_000, records))) / shape
    logs -= np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + logs.max(
        axis=1, keepdims=True
    )
    spread = (logs + math.log(records)).sum(axis=1)
    wide = np.arange(kept[0] - 60, kept[-1] + 61)
    shapes = statistic.shape(wide)
    terms = statistic.log_constant(shapes) + (shapes - 1) * spread[:, None] - np.log(statistic.width(wide))
    terms = np.exp(terms - terms.max(axis=1, keepdims=True))
    left_out = terms[:, (wide < kept[0]) | (wide > kept[-1])].sum(axis=1) / terms.sum(axis=1)
    assert left_out.mean() < 1e-9
    near = np.full(len(spread), (kept[0] + kept[-1]) // 2)
    whole = np.log(
        np.exp(
            statistic.log_constant(shapes)
            + (shapes - 1) * spread[:, None]
            - np.log(statistic.width(wide))
            - statistic.log_reference(near, spread)[:, None]
        ).sum(axis=1)
    )
    assert np.abs(whole).max() < 1e-9


@pytest.mark.parametrize(
    ("family", "law", "records"),
    [(Poisson, Poisson(0.5), 10), (Exponential, Exponential(3.0), 5), (Gamma, Gamma(1.5, 2.0), 40)],
)
def test_L4_the_search_finds_the_least_score_of_all_points(family: Any, law: Any, records: int) -> None:
    """Against all points of all cells up to an arrival of 4, with neither bounds nor an order of search."""
    shared = SharedRandomness(8)
    coupled = StatisticCoupling(family).couple([law], records=records, draws=3, shared=shared)
    statistic: Any = {Poisson: PoissonSum, Exponential: ExponentialSum, Gamma: GammaStatistic}[family](records)
    race = CellRace(shared.child("statistic", statistic.name), draws=3, uniforms=statistic.uniforms)
    reach = statistic.reach(law)
    for draw in range(3):
        best, winner = math.inf, b""
        for which, cell in enumerate(reach.cells):
            arrival = 0.0
            for number in range(30):
                point = race.point(draw, cell, number)
                arrival -= math.log(float(point.uniforms(-1, 1)[0, 0]))
                if arrival > 4.0:
                    break
                score = math.log(arrival) - float(reach.log_density(np.array([which]), point)[0])
                if score < best:
                    best, winner = score, reach.key(point)
        assert coupled.keys[draw, 0] == winner


def test_a_memory_of_points_changes_no_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = [Gamma(2.0, 1.0), Gamma(2.2, 1.0), Gamma(2.0, 1.0)]
    options: dict[str, Any] = {"records": 30, "draws": 5, "shared": SharedRandomness(2)}
    free = StatisticCoupling(Gamma).couple(laws, **options).keys
    monkeypatch.setattr("accord.couplings.statistics.gamma._MOST_KNOWN", 5)
    assert (StatisticCoupling(Gamma).couple(laws, **options).keys == free).all()
    assert (StatisticCoupling(Gamma).couple(laws[1:2], **options).keys == free[:, 1:2]).all()


def test_laws_at_their_limits_abstain_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"records": 12, "draws": 2, "shared": SharedRandomness(1)}
    cases: list[tuple[Any, Any, list[Any]]] = [
        (Poisson, Poisson(1.0), [Poisson(2.0**49), Exponential(1.0), PointMass(1.0)]),
        (Exponential, Exponential(1.0), [Gamma(1.0, 1.0), Poisson(1.0)]),
        (Gamma, Gamma(1.0, 1.0), [Gamma(1e-4, 1.0), Gamma(1e7, 1.0), Exponential(1.0)]),
        (PointMass, PointMass(1.0), [Normal(0.0, 1.0), PointMass(frozenset({1}))]),
    ]
    for family, good, bad in cases:
        keys = StatisticCoupling(family).couple([*bad, good, ABSTAIN], **options).keys
        assert set(keys[:, [*range(len(bad)), -1]].ravel().tolist()) == {ABSTAIN}, family
        assert all(isinstance(key, bytes) for key in keys[:, -2]), family
    monkeypatch.setattr("accord.couplings.statistics.gamma._MOST_CELLS", 500)
    wide, narrow = Gamma(0.01, 1.0), Gamma(100.0, 1.0)
    with pytest.raises(FitFailed, match="cells"):
        GammaStatistic(12).reach(wide)
    mixed = StatisticCoupling(Gamma).couple([narrow, wide], records=60, draws=2, shared=SharedRandomness(1)).keys
    alone = StatisticCoupling(Gamma).couple([narrow], records=60, draws=2, shared=SharedRandomness(1)).keys
    assert (mixed[:, :1] == alone).all()


def test_point_masses_agree_exactly_when_they_are_equal() -> None:
    laws = [PointMass(value) for value in (0.0, -0.0, "0", 1.0, True, 1)]
    keys = StatisticCoupling(PointMass).couple(laws, records=2, draws=1, shared=SharedRandomness(0)).keys[0]
    assert len({bytes(key) for key in keys}) == 4
    assert keys[0] == keys[1]
    assert keys[3] == keys[5]


def test_products_are_their_factors_side_by_side() -> None:
    laws = [Product([Poisson(2.0), Categorical(["a", "b"], [p, 1 - p]), PointMass("x")]) for p in (0.5, 0.6)]
    coupling = coupling_for(laws[0], records=5)
    coupled = coupling.couple([*laws, Poisson(1.0), ABSTAIN], records=5, draws=20, shared=SharedRandomness(7))
    assert set(coupled.keys[:, 2:].ravel().tolist()) == {ABSTAIN}
    table = coupled.decode(3, coupled.keys[3, 0])
    assert table.shape == (5, 3)
    assert {type(value) for value in table[:, 0]} == {float}
    assert set(table[:, 1]) <= {"a", "b"}
    assert set(table[:, 2]) == {"x"}
    assert coupling_for(Product([Normal(0, 1), Gamma(1.0, 1.0)]), records=20) == ProductCoupling(
        [NormalLattice(dimension=1), StatisticCoupling(Gamma)]
    )


def test_what_has_no_joint_coupling_is_refused() -> None:
    cases: list[tuple[Any, int]] = [
        (Uniform(0, 1), 5),
        (Normal, 20),
        (Categorical, 20),
        (Product, 20),
        (Normal(0, 1), 11),
        (Gamma, 11),
        (Normal(np.zeros(3), np.eye(3)), 50),
        (Mixture([Normal(0, 1), Normal(1, 1)], [1, 1]), 50),
        (Product([Normal(0, 1), Uniform(0, 1)]), 50),
        (Poisson, 0),
    ]
    for law, records in cases:
        with pytest.raises(InvalidParameter, match=r"law|records"):
            coupling_for(law, records=records)
    bad: list[Any] = [Normal, Poisson(1.0), "Poisson", None]
    for family in bad:
        with pytest.raises(InvalidParameter, match="family"):
            StatisticCoupling(family)
    with pytest.raises(InvalidParameter, match="records"):
        StatisticCoupling(Gamma).couple([], records=11, draws=1, shared=SharedRandomness(1))
    parts: list[Any] = [[], [None], [RecordByRecord(RaceCoupling(["a"])), object()]]
    for part in parts:
        with pytest.raises(InvalidParameter, match="parts"):
            ProductCoupling(part)
    with pytest.raises(InvalidParameter, match="single"):
        RecordByRecord(bad[1])


@dataclass
class Changeable:
    """A part that is isolated for as long as somebody says so."""

    inner: RaceCoupling
    isolated: Any = True

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Any:
        return self.inner.couple(laws, records=records, draws=draws, shared=shared)


def test_L3_a_product_is_isolated_only_while_its_parts_are() -> None:
    part = Changeable(RaceCoupling(["a", "b"]))
    coupling = ProductCoupling([part, RaceCoupling(["a", "b"])])
    assert coupling.isolated is True
    for other in (False, 1, None):
        part.isolated = other
        assert coupling.isolated is False


@pytest.mark.parametrize("law", [Exponential(1.7e308), Gamma(2.0, 1e308)], ids=["exponential", "gamma"])
def test_records_beyond_the_largest_double_are_that_double(law: Any) -> None:
    coupled = StatisticCoupling(type(law)).couple([law], records=20, draws=5, shared=SharedRandomness(1))
    records = np.stack([coupled.decode(draw, key) for draw, key in enumerate(coupled.keys[:, 0])])
    assert np.isfinite(records).all()
    assert (records == np.finfo(np.float64).max).any()
