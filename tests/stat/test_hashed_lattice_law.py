"""`HashedLattice` against theory S1 and S4: marginals at all scales, agreement, independence of draws.

Every acceptance uses |z| < 5.5 (two-sided rate 4e-8) or a Kolmogorov distance that a true law exceeds with probability
below 1e-7; the same line rejects a law that is 10 % wrong.
"""

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from accord.couplings import HashedLattice
from accord.distributions import Distribution, Exponential, Gamma, Mixture, Normal, Piecewise, Product, Uniform
from accord.randomness import SharedRandomness

LINE = 5.5
Floats = NDArray[np.float64]


def sampled(law: Distribution, *, draws: int, key: int, units: ArrayLike | None = None) -> Floats:
    """Return the coupled record of one law in each draw, shape (draws, D)."""
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    lattice = HashedLattice(dimension=law.dimension, units=units)
    coupled = lattice.couple([law], records=1, draws=draws, shared=SharedRandomness(key))
    return np.concatenate([coupled.decode(draw, coupled.keys[draw, 0]) for draw in range(draws)])


def kolmogorov(levels: Floats) -> float:
    """Return sqrt(n) times the distance of n numbers from uniform; above 2.9 with probability below 1e-7."""
    ordered, n = np.sort(levels), len(levels)
    above, below = np.arange(1, n + 1) / n - ordered, ordered - np.arange(n) / n
    return float(max(above.max(), below.max()) * math.sqrt(n))


ON_A_LINE: dict[str, Normal | Uniform | Mixture | Piecewise | Exponential | Gamma] = {
    "standard": Normal(0.0, 1.0),
    "tiny, far": Normal(1e3, 1e-12),
    "huge": Normal(-1e7, 1e12),
    "box": Uniform(-3.0, 5e-3),
    "histogram": Piecewise([0.0, 1.0, 1.5, 40.0], [0.2, 0.5, 0.3]),
    "waits": Exponential(1e-9),
    "gamma, steep": Gamma(1.0, 3e5),
    "gamma, round": Gamma(40.0, 1e-3),
    "two scales": Mixture([Normal(0.0, 1e-12), Normal(50.0, 1e8)], [0.4, 0.6]),
}


@pytest.mark.parametrize("name", ON_A_LINE)
def test_S4_marginals_on_a_line_at_every_scale(name: str) -> None:
    law = ON_A_LINE[name]
    sample = sampled(law, draws=3_000, key=31)[:, 0]
    assert kolmogorov(law.cdf(sample)) < 2.9
    spread = np.subtract(*np.quantile(sample, [0.75, 0.25]))
    assert kolmogorov(law.cdf(sample + 0.1 * spread)) > 2.9 or kolmogorov(law.cdf(sample - 0.1 * spread)) > 2.9


IN_SPACE = {
    "plane, tiny": (Normal([1.0, -2.0], np.array([[2.0, 0.9], [0.9, 0.5]]) * 1e-12), 2_500),
    "plane, condition 4e3": (Normal([0.0, 0.0], np.array([[1.0, 0.9995], [0.9995, 1.0]]) * 1e12), 2_500),
    "five": (Normal(np.arange(5.0), np.eye(5) + 0.3), 800),
}


@pytest.mark.parametrize("name", IN_SPACE)
def test_S4_marginals_in_space(name: str) -> None:
    """White coordinates are uniform one by one and uncorrelated, and their squares sum to chi-squares."""
    law, draws = IN_SPACE[name]
    d = law.dimension
    white = np.linalg.solve(law.cholesky, (sampled(law, draws=draws, key=37) - np.array(law.mean)).T)
    assert max(kolmogorov(ndtr(row)) for row in white) < 2.9
    pairs = np.asarray(np.corrcoef(white))[np.triu_indices(d, 1)]
    assert np.abs(pairs).max() * math.sqrt(draws) < LINE

    def z_of_squares(factor: float) -> float:
        return float((np.square(factor * white).sum() - d * draws) / math.sqrt(2 * d * draws))

    assert abs(z_of_squares(1.0)) < LINE
    assert abs(z_of_squares(0.9)) > LINE
    assert abs(z_of_squares(1.1)) > LINE


@pytest.mark.nightly
def test_S4_marginals_in_nine_dimensions() -> None:
    law = Normal(np.arange(9.0), np.eye(9) + 0.1)
    white = np.linalg.solve(law.cholesky, (sampled(law, draws=1_500, key=41) - np.array(law.mean)).T)
    assert max(kolmogorov(ndtr(row)) for row in white) < 2.9
    z = (np.square(white).sum() - white.size) / math.sqrt(2 * white.size)
    assert abs(z) < LINE
    assert abs((0.81 * np.square(white).sum() - white.size) / math.sqrt(2 * white.size)) > LINE


def s1_of_a_shift(shift: float) -> float:
    """Theory S1 by quadrature for N(0, 1) and N(shift, 1): int dy / int max(p(x)/p(y), q(x)/q(y)) dx.

    For normal laws of one covariance in any dimension the ratio depends on one white coordinate, so J is this number at
    the distance of the means in standard deviations. With r = q/p, the inner integral is
    ``P(q/p < r(y)) / p(y) + Q(q/p >= r(y)) / q(y)``, and q/p rises in x.
    """
    y, weights = np.polynomial.legendre.leggauss(400)
    y, weights = 12 * y + shift / 2, 12 * weights
    p, q = np.exp(-(y**2) / 2), np.exp(-((y - shift) ** 2) / 2)
    inner = (ndtr(y) / p + ndtr(shift - y) / q) * math.sqrt(2 * math.pi)
    return float((weights / inner).sum())


def agreement_of(p: Distribution, q: Distribution, *, draws: int, key: int, units: ArrayLike | None = None) -> float:
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    lattice = HashedLattice(dimension=p.dimension, units=units)
    keys = lattice.couple([p, q], records=1, draws=draws, shared=SharedRandomness(key)).keys
    assert all(isinstance(vote, bytes) for vote in keys.flat)
    return float(np.mean(keys[:, 0] == keys[:, 1]))


SHIFTS = {
    "line": (Normal(5.0, 4.0), Normal(5.8, 4.0), 0.4, 8_000),
    "far and narrow line": (Normal(1e4, 1e-10), Normal(1e4 + 5e-6, 1e-10), 0.5, 8_000),
    "plane": (
        Normal([0.0, 1.0], [[1.0, 0.9], [0.9, 1.0]]),
        Normal([0.3, 1.27], [[1.0, 0.9], [0.9, 1.0]]),
        0.3,
        6_000,
    ),
    "five": (Normal(np.zeros(5), 1e8 * np.eye(5)), Normal([3e3, 4e3, 0, 0, 0], 1e8 * np.eye(5)), 0.5, 1_500),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_S1_agreement_of_normal_laws(name: str) -> None:
    p, q, shift, draws = SHIFTS[name]
    expected = s1_of_a_shift(shift)
    found = agreement_of(p, q, draws=draws, key=43)
    variation = 2 * float(ndtr(shift / 2)) - 1
    assert (1 - variation) / (1 + variation) < expected < 1 - variation
    error = LINE * math.sqrt(expected * (1 - expected) / draws)
    assert abs(found - expected) < error, (found, expected)
    assert abs(found - 0.9 * expected) > error


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (Uniform([0, 0], [2, 1]), Uniform([1, 0], [3, 1]), 1 / 3),
        (Uniform([0, 0], [4, 4]), Uniform([0, 1], [3, 4]), 9 / 16),
        (
            Product([Uniform(0, 1), Piecewise([0, 1, 2], [1, 1])]),
            Product([Uniform(0, 1), Piecewise([0, 1, 3], [1, 2])]),
            2 / 3,
        ),
    ],
)
def test_S1_agreement_of_boxes_is_intersection_over_union(p: Distribution, q: Distribution, expected: float) -> None:
    """Both laws take the earliest point of their own box, whatever its volume."""
    found = agreement_of(p, q, draws=4_000, key=47)
    error = LINE * math.sqrt(expected * (1 - expected) / 4_000)
    assert abs(found - expected) < error
    assert abs(found - 0.9 * expected) > error or expected < 0.4


def test_draws_are_independent() -> None:
    sample = sampled(Normal(0.0, 1.0), draws=5_001, key=53)[:, 0]
    assert abs(float((sample[1:] * sample[:-1]).mean()) * math.sqrt(5_000)) < LINE
    noise = np.random.default_rng(1).normal(size=5_001)
    echo = noise[1:] + 0.1 * noise[:-1]
    assert abs(float((echo[1:] * echo[:-1]).mean()) * math.sqrt(5_000)) > LINE


def test_record_by_record_is_a_sample_and_agrees_by_powers() -> None:
    p, q, records, draws = Normal(0.0, 1.0), Normal(0.2, 1.0), 3, 2_500
    lattice = HashedLattice(dimension=1, record_by_record=True)
    coupled = lattice.couple([p, q], records=records, draws=draws, shared=SharedRandomness(59))
    found = float(np.mean(coupled.keys[:, 0] == coupled.keys[:, 1]))
    expected = s1_of_a_shift(0.2) ** records
    error = LINE * math.sqrt(expected * (1 - expected) / draws)
    assert abs(found - expected) < error
    assert abs(found - 0.9 * expected) > error
    tuples = np.stack([coupled.decode(draw, coupled.keys[draw, 0])[:, 0] for draw in range(draws)])
    assert tuples.shape == (draws, records)
    assert kolmogorov(ndtr(tuples.ravel())) < 2.9
    assert kolmogorov(ndtr(tuples.sum(axis=1) / math.sqrt(3))) < 2.9
