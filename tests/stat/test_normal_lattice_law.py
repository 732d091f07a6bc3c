"""The hashed lattice against theory S1 and S3: marginals, agreement, independence, equivariance.

Every acceptance uses |z| < 5.5 (two-sided rate 4e-8 a statement, about 30 statements: below 2e-6 for the whole file
by a union; each single one below 1e-6), and every rejection shows that a law 10 % wrong lies beyond the same line.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN, Abstain
from accord.couplings import NormalLattice
from accord.couplings.lattice.cells import MOST_CELLS, Chart, NormalCells, SeenLaw
from accord.couplings.lattice.loops import listed
from accord.couplings.lattice.normal import _Points
from accord.distributions import Distribution, Normal
from accord.errors import FitFailed
from accord.randomness import SharedRandomness

LINE = 5.5
Floats = NDArray[np.float64]


def tuples(law: Normal, *, records: int, draws: int, key: int) -> Floats:
    """Return the coupled tuples of one law, shape (draws, records, d)."""
    coupled = NormalLattice(dimension=law.dimension).couple(
        [law], records=records, draws=draws, shared=SharedRandomness(key)
    )
    return np.stack([coupled.decode(draw, coupled.keys[draw, 0]) for draw in range(draws)])


def residuals(sample: Floats, law: Normal) -> dict[str, Floats]:
    """Return independent coordinates of mean and scatter with known laws: normal z's and chi-square c's."""
    _, records, d = sample.shape
    inverse = np.linalg.inv(law.cholesky)
    white = np.einsum("ij,nlj->nli", inverse, sample - np.asarray(law.mean))
    mean = white.mean(axis=1)
    centred = white - mean[:, None, :]
    factor = np.linalg.cholesky(np.einsum("nli,nlj->nij", centred, centred))
    found = {f"mean {i}": mean[:, i] * math.sqrt(records) for i in range(d)}
    found |= {f"below {i}{j}": factor[:, i, j] for i in range(d) for j in range(i)}
    found |= {f"diagonal {i}": factor[:, i, i] ** 2 for i in range(d)}
    found |= {f"first record {i}": white[:, 0, i] for i in range(d)}
    return found


def z_of_mean_and_variance(values: Floats, *, mean: float, variance: float) -> tuple[float, float]:
    """Return z of the sample mean, and of the sample variance with its own standard error."""
    n = len(values)
    squares = (values - mean) ** 2
    return (
        float((values.mean() - mean) / math.sqrt(variance / n)),
        float((squares.mean() - variance) / (squares.std() / math.sqrt(n))),
    )


SPACE = Normal([1e3, 0.0, -2e-3], [[4.0, 1.9, 1e-3], [1.9, 1.0, 3e-4], [1e-3, 3e-4, 1e-6]])

LAWS = {
    "standard": (Normal(0.0, 1.0), 20, 5_000),
    "far and narrow": (Normal(1e6, 1e-6), 20, 5_000),
    "wide, small tuple": (Normal(-3.0, 1e10), 12, 5_000),
    "large tuple": (Normal(0.5, 2.0), 2_000, 3_000),
    "plane": (Normal([1.0, -2.0], [[2.0, 0.9], [0.9, 0.5]]), 40, 4_000),
    "far and skew plane": (Normal([1e5, 1e-3], [[1e6, 999.0], [999.0, 1.0]]), 40, 4_000),
}


@pytest.mark.parametrize("name", LAWS)
def test_S3_S4_marginals_are_those_of_a_tuple_of_the_law(name: str) -> None:
    law, records, draws = LAWS[name]
    key = 77
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    for what, values in residuals(tuples(law, records=records, draws=draws, key=key), law).items():
        freedom = records - 1 - int(what[-1])
        expected = {"mean": freedom, "variance": 2 * freedom} if what.startswith("d") else {"mean": 0, "variance": 1}
        z = z_of_mean_and_variance(values, **expected)
        assert max(map(abs, z)) < LINE, (what, z)
        wrong = z_of_mean_and_variance(values * 1.1, **expected), z_of_mean_and_variance(values * 0.9, **expected)
        assert min(max(map(abs, z)) for z in wrong) > LINE, what


def s1_agreement(p: Normal, q: Normal, *, records: int, size: int, seed: int) -> float:
    """Theory S1 for the tuples of two laws, J = E_p[1 / E_p max(1, r(X) / r(y))] with r = dq/dp, by sampling.

    An independent route: the tuples are drawn directly and their densities are products over records.
    """
    generator = np.random.default_rng(seed)
    log_ratio = np.empty(size)
    for start in range(0, size, 20_000):
        stop = min(start + 20_000, size)
        x = p.sample((stop - start) * records, generator)
        log_ratio[start:stop] = (q.log_density(x) - p.log_density(x)).reshape(-1, records).sum(axis=1)
    log_ratio.sort()
    ratio = np.exp(log_ratio)
    below = np.arange(1, size + 1) / size
    above = (ratio[::-1].cumsum()[::-1] - ratio) / size
    return float((1 / (below + above / ratio)).mean())


@pytest.mark.nightly
def test_S3_S4_marginals_in_space() -> None:
    """The same at d = 3 with each coordinate tested alone, at the smallest tuple and in a large one."""
    for records, draws in ((40, 3_000), (400, 5_000)):
        for what, values in residuals(tuples(SPACE, records=records, draws=draws, key=21), SPACE).items():
            freedom = records - 1 - int(what[-1])
            chi = what.startswith("d")
            expected = {"mean": freedom, "variance": 2 * freedom} if chi else {"mean": 0, "variance": 1}
            z = z_of_mean_and_variance(values, **expected)
            assert max(map(abs, z)) < LINE, (what, z)
            wrong = z_of_mean_and_variance(values * 1.1, **expected)
            assert max(map(abs, wrong)) > LINE, what


def test_S3_S4_marginals_in_space_together() -> None:
    """At d = 3 in fewer draws: means one by one, squares of all normal coordinates together, and of the diagonal."""
    records, key = 2_000, 23
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    found = residuals(tuples(SPACE, records=records, draws=600, key=key), SPACE)
    normal = np.stack([values for what, values in found.items() if what[0] in "mb"])
    freedom = records - 1 - np.arange(3)[:, None]
    chi = np.stack([found[f"diagonal {i}"] for i in range(3)])
    assert normal.shape == (6, 600)
    assert np.abs(normal.mean(axis=1) * math.sqrt(600)).max() < LINE
    assert np.abs(((chi - freedom) / np.sqrt(2 * freedom)).mean(axis=1) * math.sqrt(600)).max() < LINE
    pairs = np.asarray(np.corrcoef(normal))[np.triu_indices(6, 1)]
    assert np.abs(pairs).max() * math.sqrt(600) < LINE
    assert abs(z_of_mean_and_variance(normal.ravel(), mean=0, variance=1)[1]) < LINE
    for factor in (0.9, 1.1):
        assert abs(z_of_mean_and_variance(factor * normal.ravel(), mean=0, variance=1)[1]) > LINE
        assert np.abs(((factor * chi - freedom) / np.sqrt(2 * freedom)).mean(axis=1) * math.sqrt(600)).min() > LINE


@pytest.mark.parametrize(("dimension", "records", "draws"), [(1, 20, 200), (2, 40, 100), (3, 400, 3)])
def test_compiled_loops_take_the_points_that_whole_arrays_take(dimension: int, records: int, draws: int) -> None:
    """Two routes to one vote: `NormalCells` in numpy and its compiled twin, at every dimension."""
    chart = Chart(dimension=dimension, records=records)
    points = _Points(SharedRandomness(3), chart, draws)
    generator = np.random.default_rng(dimension)
    for _ in range(3):
        mean = np.asarray(generator.normal(size=dimension) * 10, dtype=np.float64)
        lower = np.eye(dimension) * (0.1 + generator.random(dimension))
        lower += np.tril(generator.normal(size=(dimension, dimension)), -1)
        reach = NormalCells.search(chart, mean=mean, cholesky=lower)
        law = SeenLaw.of(chart, mean=mean, cholesky=lower)
        cells, bounds, hashes = listed(law, root=SharedRandomness(3).word("normal lattice", "cell"))
        here, there = np.lexsort(cells.T), np.lexsort(reach.cells.T)
        assert (cells[here] == reach.cells[there]).all()
        assert np.abs(bounds[here] - reach.log_bound[there]).max() < 1e-8
        assert (hashes == SharedRandomness(3).hash_rows(cells, "normal lattice", "cell")).all()
        assert points._compiled_race(law) == points._race(reach)


PAIRS = {
    "shift": (Normal(0.0, 1.0), Normal(0.1, 1.0), 30),
    "scale": (Normal(0.0, 1.0), Normal(0.0, 1.4), 30),
    "both, far away": (Normal(1e6, 1e-6), Normal(1e6 + 2e-4, 1.3e-6), 20),
    "plane": (
        Normal([1.0, -2.0], [[2.0, 0.9], [0.9, 0.5]]),
        Normal([1.02, -2.0], [[2.05, 0.92], [0.92, 0.515]]),
        40,
    ),
}


@pytest.mark.nightly
def test_S1_agreement_in_space() -> None:
    q = Normal(np.add(SPACE.mean, [0.02, 0.0, 2e-5]), np.asarray(SPACE.covariance) * 1.02)
    coupled = NormalLattice(dimension=3).couple([SPACE, q], records=60, draws=3_000, shared=SharedRandomness(6))
    found = float(np.mean(coupled.keys[:, 0] == coupled.keys[:, 1]))
    expected = s1_agreement(SPACE, q, records=60, size=60_000, seed=9)
    assert 0.6 < expected < 0.95
    error = math.sqrt(expected * (1 - expected) / 3_000) + 1e-3
    assert abs(found - expected) < LINE * error, (found, expected)
    assert abs(found - 0.9 * expected) > LINE * error, "a tenth less would not be noticed"


@pytest.mark.parametrize("name", PAIRS)
def test_S1_agreement_of_two_laws(name: str) -> None:
    p, q, records = PAIRS[name]
    draws, key = (20_000 if p.dimension == 1 else 4_000), 5
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    coupled = NormalLattice(dimension=p.dimension).couple(
        [p, q], records=records, draws=draws, shared=SharedRandomness(key)
    )
    found = float(np.mean(coupled.keys[:, 0] == coupled.keys[:, 1]))
    expected = s1_agreement(p, q, records=records, size=60_000, seed=9)
    assert 0.4 < expected < 0.95
    error = math.sqrt(expected * (1 - expected) / draws) + 1e-3  # the sampled expectation is good to 1e-3
    assert abs(found - expected) < LINE * error, (found, expected)
    assert abs(found - 0.9 * expected) > LINE * error, "a tenth less would not be noticed"


def test_draws_are_independent() -> None:
    sample = tuples(Normal(0.0, 1.0), records=20, draws=20_001, key=13)
    means = sample.mean(axis=1)[:, 0] * math.sqrt(20)
    z = float((means[1:] * means[:-1]).mean() * math.sqrt(len(means) - 1))
    assert abs(z) < LINE
    noise = np.random.default_rng(1).normal(size=len(means))
    echo = noise[1:] + 0.1 * noise[:-1]
    assert abs(float((echo[1:] * echo[:-1]).mean() * math.sqrt(len(echo) - 1))) > LINE


def test_affine_maps_do_not_change_the_law_of_the_votes() -> None:
    """Theory S11: agreement of three laws at N(0,1) scale and far away, with different keys, is one number."""
    generator = np.random.default_rng(2)
    place, spread = generator.normal(size=3) * 0.1, 1 + 0.1 * generator.random(3)
    found = []
    for key, (shift, scale) in enumerate([(0.0, 1.0), (-3.0, 1e5), (1e6, 1e-3)]):
        laws = [Normal(shift + scale * m, (scale * s) ** 2) for m, s in zip(place, spread, strict=True)]
        keys = NormalLattice(dimension=1).couple(laws, records=30, draws=10_000, shared=SharedRandomness(key)).keys
        found.append(float(np.mean([len(set(row)) == 1 for row in keys])))
    error = math.sqrt(2 * found[0] * (1 - found[0]) / 10_000)
    assert max(found) - min(found) < LINE * error
    assert 0.1 * found[0] > LINE * error


@pytest.mark.parametrize(("dimension", "records"), [(1, 12), (1, 90), (2, 20), (2, 200), (3, 400)])
def test_bounds_hold_and_the_density_integrates_to_one(dimension: int, records: int) -> None:
    generator = np.random.default_rng(4)
    lower = np.tril(generator.normal(size=(dimension, dimension)), -1) + np.diag(0.5 + generator.random(dimension))
    chart = Chart(dimension=dimension, records=records)
    cells = NormalCells.search(
        chart, mean=np.array(5 * generator.normal(size=dimension), dtype=np.float64), cholesky=lower.astype(np.float64)
    )
    bound = np.exp(cells.log_bound)
    which = generator.choice(len(bound), size=400_000, p=bound / bound.sum())
    log_density = cells.log_density(which, generator.random((len(which), chart.size)))
    assert (log_density <= cells.log_bound[which] + 1e-9).all()
    share = bound.sum() * np.exp(log_density - cells.log_bound[which])
    error = float(share.std() / math.sqrt(len(which)))
    assert abs(float(share.mean()) - 1) < LINE * error
    assert LINE * error < 0.12, "a mass 12 % wrong would not be noticed"


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_place_and_cells_are_one_chart(dimension: int) -> None:
    """The statistic of a point, written again as a law's mean and factor, has residual 0 at that very point."""
    chart = Chart(dimension=dimension, records=50)
    generator = np.random.default_rng(8)
    cells = NormalCells.search(chart, mean=np.full(dimension, 3.5), cholesky=np.eye(dimension) * 2.0)
    row = int(np.argmax(cells.log_bound))
    offsets = generator.random((1, chart.size))
    mean, factor = chart.place(cells.cells[[row]], offsets)
    again = NormalCells.search(chart, mean=mean[0], cholesky=factor[0])
    place = int(np.nonzero((again.cells == cells.cells[row]).all(axis=1))[0][0])
    for vector in again.vectors:
        entries = vector.width.shape[1]
        local = slice(vector.first, vector.first + entries)
        found = (again.cells[place, local] + offsets[0, local]) * vector.width[place] - vector.target[place]
        assert np.abs(found / vector.width[place]).max() < 1e-6


def test_degenerate_laws_abstain_alone() -> None:
    laws: list[Distribution | Abstain] = [
        Normal(0.0, 1.0),
        ABSTAIN,
        Normal(1e300, 1e-10),
        Normal(0.0, 1.0),
        Normal([0.0, 0.0], np.eye(2)),
    ]
    keys = NormalLattice(dimension=1).couple(laws, records=20, draws=4, shared=SharedRandomness(1)).keys
    assert [all(vote is ABSTAIN for vote in keys[:, block]) for block in range(5)] == [False, True, True, False, True]
    assert (keys[:, 0] == keys[:, 3]).all()
    with pytest.raises(FitFailed):
        NormalCells.search(Chart(dimension=1, records=20), mean=np.array([1e300]), cholesky=np.array([[1e-5]]))


def test_a_law_that_hits_the_cap_abstains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theory 9: a cap is a function of the law and the seed, and ends in that block's abstention."""
    plain, skew = Normal([0.0, 0.0], np.eye(2)), Normal([0.0, 0.0], [[1.0, 0.999], [0.999, 1.0]])
    chart = Chart(dimension=2, records=40)
    sizes = [
        len(NormalCells.search(chart, mean=np.zeros(2), cholesky=np.linalg.cholesky(np.asarray(law.covariance))).cells)
        for law in (plain, skew)
    ]
    free = NormalLattice(dimension=2).couple([plain, skew], records=40, draws=3, shared=SharedRandomness(2)).keys
    monkeypatch.setitem(MOST_CELLS, 2, 1)
    capped = NormalLattice(dimension=2).couple([plain, skew], records=40, draws=3, shared=SharedRandomness(2)).keys
    assert not any(isinstance(vote, bytes) for vote in capped.flat)
    monkeypatch.setitem(MOST_CELLS, 2, max(sizes) - 1)
    mixed = NormalLattice(dimension=2).couple([plain, skew], records=40, draws=3, shared=SharedRandomness(2)).keys
    larger = sizes.index(max(sizes))
    assert sizes[0] != sizes[1]
    assert (mixed[:, 1 - larger] == free[:, 1 - larger]).all()
