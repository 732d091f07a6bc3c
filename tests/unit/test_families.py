"""Families of laws: samplers against intervals, densities against intervals, mixed measures, bounds, refusals."""

import math
import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from accord.core.coupling import ABSTAIN
from accord.distributions import (
    Atoms,
    Bounded,
    Categorical,
    Distribution,
    Measure,
    Mixture,
    Normal,
    OnALine,
    Piecewise,
    PointMass,
    Product,
    ScipyLaw,
    Uniform,
    WithAtoms,
    bounded,
    log_densities,
    on_a_line,
)
from accord.errors import InvalidParameter

SEED = 20_260
PLANE = Normal([1.0, -1.0], [[2.0, 0.9], [0.9, 1.0]])
LINES: list[Any] = [
    Normal(1e6, 1e-6),
    Mixture([Normal(-2, 1), Normal(3, 0.25)], [0.3, 0.7]),
    Mixture([Uniform(0, 1), Mixture([Normal(0, 1), Piecewise([0, 1, 4], [1, 2])], [1, 1])], [1, 3]),
    Uniform(-3, 5),
    Piecewise([-1, 0, 0.5, 7], [1, 5, 2]),
    Atoms([0, 2], [0.2, 0.3], rest=Normal(1, 2)),
    ScipyLaw("lognorm", 0.7, scale=3),
    ScipyLaw("cauchy", loc=2),
    Product([Mixture([Normal(0, 1), PointMass(0)], [0.5, 0.5])]),
]
DENSITIES = [law for law in LINES if law.measure is Measure.LEBESGUE]


def rng(extra: int = 0) -> np.random.Generator:
    print("seed", SEED + extra)  # noqa: T201 - shown where a test fails
    return np.random.default_rng(SEED + extra)


def spoiled(law: Any, factor: float) -> Any:
    """The law of ``median + factor (X - median)`` as a sampler: a spread that is 10 % wrong."""
    middle = float(np.median(law.sample(200_001, rng(1))))
    return lambda size, generator: middle + factor * (law.sample(size, generator)[:, 0] - middle)


def bin_test(law: Any, draws: np.ndarray) -> float:
    """P value of the counts in intervals at the quantiles of a sample, atoms with a bin of their own."""
    other = np.sort(law.sample(100_000, rng(2))[:, 0])
    ends = np.unique(other[:: len(other) // 24])
    ends = np.concatenate([[-np.inf], ends, [np.inf]])
    expected = law.interval(ends[:-1], ends[1:]) * len(draws)
    assert expected.sum() == pytest.approx(len(draws), rel=1e-12)
    found = np.bincount(np.searchsorted(ends[1:-1], draws, side="left"), minlength=len(expected))
    kept = expected > 5
    pooled = np.append(expected[kept], expected[~kept].sum()), np.append(found[kept], found[~kept].sum())
    if pooled[0][-1] < 5:
        pooled = pooled[0][:-1] * (len(draws) / pooled[0][:-1].sum()), pooled[1][:-1]
    return float(stats.chi2.sf(((pooled[1] - pooled[0]) ** 2 / pooled[0]).sum(), len(pooled[0]) - 1))


@pytest.mark.parametrize("law", LINES, ids=repr)
def test_samples_follow_the_intervals_and_ten_per_cent_off_is_seen(law: Any) -> None:
    draws = law.sample(60_000, rng())
    assert draws.shape == (60_000, 1)
    assert bin_test(law, draws[:, 0]) > 1e-7
    for factor in (0.9, 1.1):
        assert bin_test(law, spoiled(law, factor)(60_000, rng(3))) < 1e-7


@pytest.mark.parametrize("law", DENSITIES, ids=repr)
def test_densities_integrate_to_the_intervals(law: Any) -> None:
    ends = np.unique(np.quantile(law.sample(20_000, rng()), np.linspace(0.001, 0.999, 30)))
    knots = [0.0, 0.5, 1.0, 4.0, -1.0, 7.0, -3.0, 5.0]
    ends = np.unique(np.concatenate([ends, [knot for knot in knots if ends[0] < knot < ends[-1]]]))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    width = np.diff(ends)
    points = ends[:-1, None] + width[:, None] * (nodes + 1) / 2
    rounding = 1e-8 + float((np.spacing(np.abs(points).max()) / width).max())  # of the points themselves
    mass = (np.exp(law.log_density(points.ravel())).reshape(points.shape) @ weights) * width / 2
    assert mass == pytest.approx(law.interval(ends[:-1], ends[1:]), rel=rounding, abs=1e-13)
    assert law.cdf(ends) == pytest.approx(law.interval(np.full(len(ends), -np.inf), ends), abs=1e-14)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-np.inf, -37.0), (37.0, np.inf), (30.0, 30.0 + 1e-9), (-30.0 - 1e-9, -30.0), (1.0, 1.0 + 1e-12), (-1.0, 9.0)],
)
def test_intervals_of_a_normal_law_keep_their_digits(low: float, high: float) -> None:
    with mpmath.workdps(700):
        tails = [mpmath.erfc(mpmath.mpf(end) / mpmath.sqrt(2)) / 2 for end in (low, high)]
        truth = tails[0] - tails[1]
        found = Normal(0, 1).interval([low], [high])[0]
        assert abs(found / truth - 1) < 1e-12


def test_intervals_of_histograms_keep_their_digits_in_both_tails() -> None:
    law = Piecewise([0, 1, 2, 3], [1e-30, 1, 1e-30])
    assert law.interval([0.5, 2.5], [1.0, 3.0]) == pytest.approx([0.5e-30, 0.5e-30], rel=1e-12)
    assert law.interval([-9.0, 3.0], [9.0, 4.0]).tolist() == [1.0, 0.0]


# --- E41, E42, E46, E47, E48 ------------------------------------------------------------------------------------------


def test_E41_draws_are_not_grouped_by_component() -> None:
    law = Mixture([PointMass(0), PointMass(1)], [0.5, 0.5])
    draws = law.sample(4000, rng())[:, 0]
    turns = int((draws[1:] != draws[:-1]).sum())
    assert abs(turns - 2000) < 200  # six standard deviations; grouped draws have one turn


def test_E42_exactly_as_many_draws_as_asked_for() -> None:
    law = Mixture([Normal(place, 1) for place in range(10)], [0.1] * 10)
    generator = rng()
    for size in (0, 1, 7, 100):
        for _ in range(50):
            assert law.sample(size, generator).shape == (size, 1)


def test_E46_E48_far_points_are_minus_infinity_and_never_nan() -> None:
    far = np.array([1e200, -1e308, np.inf, np.nan])
    for law in LINES:
        values = law.log_density(far)
        assert not np.isnan(values).any()
        assert (values[2:] == -np.inf).all()
    mixture = Mixture([Normal(0, 1), Normal(1, 1)], [1, 1])
    assert mixture.log_density([40.0])[0] == pytest.approx(stats.norm.logpdf(39) - math.log(2), rel=1e-12)
    both = log_densities([Uniform(0, 1), Uniform(0, 1)], [9.0])
    assert (both == -np.inf).all()


def test_E47_densities_above_one() -> None:
    narrow = Mixture([Normal(1e6, 1e-6), Uniform(1e6, 1e6 + 2.0**-10)], [1, 1])
    truth = math.log(0.5 / math.sqrt(2 * math.pi) * 1e3 + 512)
    assert narrow.log_density([1e6])[0] == pytest.approx(truth, rel=1e-9)


def test_a_component_of_weight_zero_is_never_asked() -> None:
    law = Mixture([Normal(0, 1), Broken()], [1, 0])
    assert law.log_density([0.0])[0] == Normal(0, 1).log_density([0.0])[0]
    assert law.sample(5, rng()).shape == (5, 1)
    assert law.measure is Measure.LEBESGUE
    assert on_a_line(law) is law
    assert Atoms([1], [1.0], rest=Broken()).log_density([1.0]).tolist() == [0.0]


# --- atoms and densities together -------------------------------------------------------------------------------------


def test_at_an_atom_the_density_counts_as_zero() -> None:
    law = Mixture([Normal(0, 1), Atoms([0, 1], [0.5, 0.2], rest=Normal(5, 1))], [0.5, 0.5])
    assert law.log_density([0.0, 1.0]) == pytest.approx(np.log([0.25, 0.1]), rel=1e-14)
    density = 0.5 * stats.norm.pdf(0.5) + 0.15 * stats.norm.pdf(0.5, 5)
    assert np.exp(law.log_density([0.5]))[0] == pytest.approx(density, rel=1e-13)
    assert law.log_mass([0.0, 0.5]).tolist() == [math.log(0.25), -math.inf]
    assert law.measure is Measure.BOTH
    assert law.interval([-1e-300], [0.0])[0] == pytest.approx(0.25, rel=1e-12)


PAIRS: list[tuple[Any, Any]] = [
    (Atoms([0, 2], [0.2, 0.3], rest=Normal(1, 2)), Atoms([0, 2], [0.4, 0.1], rest=Normal(0, 1))),
    (
        Product([Atoms([0], [0.5], rest=Normal(0, 1)), Normal(0, 1)]),
        Mixture([Product([PointMass(0), Normal(0, 1)]), Normal([0, 0], [[1, 0], [0, 1]])], [0.2, 0.8]),
    ),
    (
        Mixture([PointMass([0, 0]), PLANE, Product([PointMass(0), Uniform(-1, 1)])], [1, 2, 1]),
        Mixture([PointMass([0, 0]), PLANE, Product([PointMass(0), Piecewise([-1, 0, 1], [1, 4])])], [2, 5, 3]),
    ),
    (
        Product([Categorical(["a", "b"], [1, 3]), Mixture([PointMass(1), Uniform(0, 2)], [1, 1])]),
        Product([Categorical(["b", "a"], [1, 1]), Mixture([Uniform(0, 2), PointMass(1)], [1, 5])]),
    ),
]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_the_ratio_of_densities_integrates_events(p: Any, q: Any) -> None:
    # E_P[1_B q/p] = Q(B) for every event B, if and only if both rows are densities for one measure.
    size = 100_000
    draws, others = p.sample(size, rng()), q.sample(size, rng(1))
    logs = log_densities([p, q], draws)
    assert (logs[0] > -np.inf).all()
    ratio = np.exp(logs[1] - logs[0])
    last_own, last_other = draws[:, -1].astype(float), others[:, -1].astype(float)
    for low, high in ((-np.inf, np.inf), (0, 0), (0.5, np.inf), (1, 1)):
        terms = np.where((last_own >= low) & (last_own <= high), ratio, 0.0)
        target = (last_other >= low) & (last_other <= high)
        error = math.sqrt((terms.var() + target.var()) / size)
        assert abs(terms.mean() - target.mean()) <= 5.5 * error + 1e-12
    assert abs((ratio * 1.1).mean() - 1) > 5.5 * ratio.std() / math.sqrt(size)


def test_with_a_reference_only_its_atoms_count() -> None:
    laws = [Normal(0, 1), Atoms([0, 1], [0.25, 0.25], rest=Normal(0, 1))]
    rows = log_densities(laws, [0.0, 1.0, 2.0], reference=PointMass(1))
    density = np.asarray(stats.norm.logpdf([0, 1, 2]))
    assert rows[0] == pytest.approx([density[0], -np.inf, density[2]])
    assert rows[1] == pytest.approx([density[0] - math.log(2), math.log(0.25), density[2] - math.log(2)])


# --- one law's failure is its own -------------------------------------------------------------------------------------


class Broken:
    """Fails in one of several ways."""

    def __init__(self, answer: Any = None, *, dimension: int = 1) -> None:
        self.answer = answer
        self.dimension = dimension

    measure = Measure.LEBESGUE

    def sample(self, size: int, generator: Any) -> Any:
        raise RuntimeError

    def log_density(self, x: Any) -> Any:
        if self.answer is None:
            raise RuntimeError
        if self.answer == "write":
            np.asarray(x)[...] = 0.0
        return np.full(len(x), self.answer, dtype=float) if not isinstance(self.answer, list) else self.answer


BROKEN: list[Any] = [
    Broken(),
    Broken(math.nan),
    Broken([0.0]),
    Broken("write"),
    Broken(0.0, dimension=2),
    ABSTAIN,
    None,
]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("law", LINES, ids=repr)
def test_rows_are_isolated_to_the_last_bit(law: Any, broken: Any) -> None:
    generator = rng()
    points = np.concatenate([law.sample(3000, generator), Normal(0, 9).sample(2001, generator), [[0.0], [np.nan]]])
    reference = Atoms([0], [0.5], rest=Normal(0, 1))
    alone = log_densities([law], points, reference=reference)
    others = [Normal(3, 2), broken, law, Atoms([1e6], [1.0]), Mixture([Normal(0, 1), Uniform(0, 1)], [1, 1])]
    together = log_densities(others, points, reference=reference)
    assert np.array_equal(together[2], alone[0])
    assert (together[1] == -np.inf).all()
    assert not np.isnan(together).any()
    assert np.array_equal(points[:3000], law.sample(3000, rng()))  # nobody wrote to them


def test_a_pole_is_one_point_only() -> None:
    rows = log_densities([Broken(math.inf), ScipyLaw("gamma", 0.5)], [0.0, 1.0])
    assert (rows[0] == -np.inf).all()
    assert rows[1].tolist() == [-math.inf, stats.gamma(0.5).logpdf(1.0)]


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_stacks_of_normal_laws_against_scipy(dimension: int) -> None:
    generator = rng(dimension)
    points = generator.normal(size=(9001, dimension)) * 3
    laws, truth = [], []
    for _ in range(5):
        factor = generator.normal(size=(dimension, dimension)) + np.eye(dimension)
        mean, covariance = generator.normal(size=dimension), factor @ factor.T + 0.1 * np.eye(dimension)
        laws.append(Normal(mean, covariance))
        truth.append(stats.multivariate_normal(mean, covariance).logpdf(points))
    assert log_densities(laws, points) == pytest.approx(np.array(truth), rel=1e-9, abs=1e-9)
    mixtures = [Mixture(laws, weights) for weights in (np.ones(5), np.arange(5.0))]
    for weights, row in zip((np.ones(5) / 5, np.arange(5.0) / 10), log_densities(mixtures, points), strict=True):
        assert np.exp(row) == pytest.approx((weights[:, None] * np.exp(truth)).sum(axis=0), rel=1e-9)


# --- bounds -----------------------------------------------------------------------------------------------------------

BOUNDED: list[Any] = [
    *[law for law in LINES if bounded(law) is not None and law.measure is Measure.LEBESGUE],
    PLANE,
    Normal([1e3, 0, 0], [[1, 0.99, 0], [0.99, 1, 0.1], [0, 0.1, 4]]),
    Mixture([PLANE, Uniform([-1, -1], [2, 3])], [1, 1]),
    Product([Normal(0, 1), Piecewise([0, 1, 2, 5], [1, 0, 3])]),
]


@pytest.mark.parametrize("law", BOUNDED, ids=repr)
def test_bounds_hold_on_boxes(law: Any) -> None:
    generator = rng()
    centre = law.sample(400, generator).astype(float)
    spread = np.median(np.abs(centre - np.median(centre, axis=0)), axis=0) + 1e-9
    sides = spread * generator.exponential(size=centre.shape) * generator.choice([1e-6, 1, 5], size=(400, 1))
    shift = spread * generator.normal(size=centre.shape) * 2
    low, high = centre + shift - sides, centre + shift + sides
    bound = law.log_density_bound(low, high)
    for _ in range(60):
        share = generator.random(low.shape) if _ % 2 else generator.integers(0, 2, size=low.shape)
        assert (law.log_density(np.clip(low + (high - low) * share, low, high)) <= bound).all()
    whole = np.full((1, law.dimension), np.inf)
    assert law.log_density_bound(-whole, whole)[0] >= law.log_density(centre).max()


def test_the_bound_of_a_normal_law_is_attained_where_columns_are_independent() -> None:
    law = Normal([0, 0], [[1, 0], [0, 4]])
    low, high = np.array([[1.0, -1.0], [-2.0, 3.0]]), np.array([[2.0, 5.0], [-1.0, 4.0]])
    nearest = np.array([[1.0, 0.0], [-1.0, 3.0]])
    assert law.log_density_bound(low, high) == pytest.approx(law.log_density(nearest), rel=1e-10)


def test_laws_are_asked_what_they_offer() -> None:
    for law in LINES:
        assert on_a_line(law) is law
        assert isinstance(law, OnALine)
    for law in (PLANE, Uniform([0, 0], [1, 1]), PointMass("a"), PointMass([0, 1]), Product([PLANE]), Broken(), 7):
        assert on_a_line(law) is None
    assert on_a_line(Mixture([Normal(0, 1), Broken(0.0)], [1, 1])) is None
    assert bounded(ScipyLaw("norm")) is None
    assert bounded(Mixture([Normal(0, 1), ScipyLaw("norm")], [1, 1])) is None
    assert isinstance(PLANE, Bounded)
    assert isinstance(Categorical(["a"], [1]), WithAtoms)
    with pytest.raises(InvalidParameter, match="line"):
        PLANE.cdf([0.0])
    with pytest.raises(InvalidParameter, match="bound"):
        Mixture([Normal(0, 1), ScipyLaw("norm")], [1, 1]).log_density_bound(np.zeros((1, 1)), np.ones((1, 1)))


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [*LINES, PLANE, PointMass("a"), PointMass([1, 2]), PAIRS[3][0]], ids=repr)
def test_laws_are_values(law: Any) -> None:
    copy = pickle.loads(pickle.dumps(law))  # noqa: S301 - our own
    assert copy == law
    assert hash(copy) == hash(law)
    assert isinstance(law, Distribution)
    assert law.sample(0, rng()).shape == (0, law.dimension)
    assert law.log_density(law.sample(4, rng())).shape == (4,)
    with pytest.raises(InvalidParameter, match="size"):
        law.sample(-1, rng())
    with pytest.raises(InvalidParameter, match="shape"):
        law.log_density(np.zeros((3, 9)))


def test_equality_of_point_masses_and_atoms() -> None:
    assert PointMass(True) != PointMass(1)
    assert PointMass(-0.0) == PointMass(0)
    assert math.copysign(1, PointMass(-0.0).sample(1, rng())[0, 0]) == 1
    assert Atoms([2, 1], [0.25, 0.75]) == Atoms([1, 2], [0.75, 0.25])
    assert ScipyLaw.of(stats.lognorm(0.5, scale=2)) == ScipyLaw(stats.lognorm, 0.5, scale=2)
    assert PointMass("a").log_density(np.array([["a"], ["b"]], dtype=object)).tolist() == [0.0, -math.inf]
    labels = Mixture([PointMass("a"), PointMass(True)], [1, 1]).sample(50, rng())[:, 0].tolist()
    assert {type(label) for label in labels} == {str, bool}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Mixture([], []), "components"),
        (lambda: Mixture([Normal(0, 1)], [0]), "weights"),
        (lambda: Mixture([Normal(0, 1)], [math.nan]), "weights"),
        (lambda: Mixture([Normal(0, 1), PLANE], [1, 1]), "dimension"),
        (lambda: Mixture(["no law"], [1]), "components"),  # type: ignore[list-item]
        (lambda: Product([]), "factors"),
        (lambda: Product([3]), "factors"),  # type: ignore[list-item]
        (lambda: PointMass(math.nan), "value"),
        (lambda: PointMass(None), "None"),
        (lambda: Uniform(1, 1), "low"),
        (lambda: Uniform(0, math.inf), "high"),
        (lambda: Piecewise([0, math.inf], [1]), "edges"),
        (lambda: Piecewise([0, 0], [1]), "edges"),
        (lambda: Piecewise([0, 1], [1, 2]), "masses"),
        (lambda: Atoms([0], [0.5]), "sum to 1"),
        (lambda: Atoms([0, 0.0], [0.5, 0.5]), "distinct"),
        (lambda: Atoms([0], [1.5], rest=Normal(0, 1)), "at most 1"),
        (lambda: Atoms([0], [0.5], rest=PointMass(1)), "rest"),
        (lambda: ScipyLaw("poisson", 3), "family"),
        (lambda: ScipyLaw("gamma", -1), "shapes"),
        (lambda: ScipyLaw("gamma"), "shape"),
        (lambda: ScipyLaw("norm", scale=0), "scale"),
        (lambda: log_densities([], np.zeros((2, 2, 2))), "shape"),
        (lambda: log_densities([], [0.0], reference=PLANE), "reference"),
    ],
)
def test_refusals(build: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        build()
