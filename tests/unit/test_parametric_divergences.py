"""Divergences of normal laws: closed forms against integrals, integrals against closed forms, extremes, refusals."""

import math
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

from accord.distributions import Categorical, Normal
from accord.errors import InvalidParameter
from accord.laws import FiniteLaw, hellinger, kl_divergence, total_variation
from accord.laws.normal import standardised, total_variation_by_quadrature

LINES = [
    (0.0, 1.0, 1.0, 1.0),
    (0.0, 1.0, 0.0, 4.0),
    (0.3, 2.0, -1.0, 0.5),
    (0.0, 1.0, 0.01, 1.001),
    (1e6, 1e-6, 1e6 + 1e-3, 4e-6),
    (-5.0, 1.0, 5.0, 1.0),
]


def on_a_line(case: tuple[float, ...]) -> tuple[Normal, Normal]:
    return Normal(case[0], case[1]), Normal(case[2], case[3])


def integrals(case: tuple[float, ...]) -> tuple[float, float, float]:
    """Total variation, squared Hellinger distance and divergence by adaptive quadrature, in units of the first law."""
    scale = math.sqrt(case[1])
    p, q = norm(0, 1), norm((case[2] - case[0]) / scale, math.sqrt(case[3] / case[1]))
    middle, width = (q.mean() + p.mean()) / 2, abs(q.mean()) + 12 * max(1.0, q.std())
    kinks = np.linspace(middle - width, middle + width, 81)

    def integral(function: Any) -> float:
        pieces = pairwise(kinks)
        return math.fsum(quad(function, a, b, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for a, b in pieces)

    return (
        integral(lambda x: abs(p.pdf(x) - q.pdf(x)) / 2),
        integral(lambda x: (math.sqrt(p.pdf(x)) - math.sqrt(q.pdf(x))) ** 2 / 2),
        integral(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x))),
    )


@pytest.mark.parametrize("case", LINES)
def test_closed_forms_on_a_line_against_quadrature(case: tuple[float, ...]) -> None:
    p, q = on_a_line(case)
    distance, square, log = integrals(case)
    assert total_variation(p, q) == pytest.approx(distance, rel=1e-7, abs=1e-10)
    assert hellinger(p, q) ** 2 == pytest.approx(square, rel=1e-7, abs=1e-10)
    assert kl_divergence(p, q) == pytest.approx(log, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("case", LINES)
def test_the_integral_over_u_against_the_closed_form_on_a_line(case: tuple[float, ...]) -> None:
    p, q = on_a_line(case)
    pair = standardised(p, q)
    assert total_variation_by_quadrature(pair) == pytest.approx(total_variation(p, q), abs=1e-8)


@pytest.mark.parametrize("dimension", [2, 3, 9])
@pytest.mark.parametrize("variance", [1e-6, 0.5, 0.999, 1.000001, 3.0, 1e5])
def test_the_integral_against_the_chi_squared_law(dimension: int, variance: float) -> None:
    # N(0, I) and N(0, v I) differ by the radius alone; the densities meet where r^2 (1 - 1/v) = d log v.
    p, q = Normal(np.zeros(dimension), np.eye(dimension)), Normal(np.zeros(dimension), variance * np.eye(dimension))
    square = dimension * math.log(variance) / (1 - 1 / variance)
    truth = abs(chi2.cdf(square, dimension) - chi2.cdf(square / variance, dimension))
    assert total_variation(p, q) == pytest.approx(truth, rel=1e-8, abs=1e-13)
    assert total_variation(q, p) == pytest.approx(truth, rel=1e-8, abs=1e-13)


def test_the_integral_against_a_grid_in_the_plane() -> None:
    p = Normal([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
    q = Normal([0.7, -0.4], [[0.6, -0.2], [-0.2, 1.5]])
    axis = np.linspace(-9, 9, 1201)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    cell = (axis[1] - axis[0]) ** 2
    first, second = np.exp(p.log_density(points)), np.exp(q.log_density(points))
    assert total_variation(p, q) == pytest.approx(np.abs(first - second).sum() * cell / 2, abs=1e-5)
    assert hellinger(p, q) ** 2 == pytest.approx(1 - np.sqrt(first * second).sum() * cell, abs=1e-10)
    log = first * (p.log_density(points) - q.log_density(points))
    assert kl_divergence(p, q) == pytest.approx(log.sum() * cell, abs=1e-10)


def random_pair(dimension: int, *, closeness: float, seed: int) -> tuple[Normal, Normal]:
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(dimension, dimension))
    other = factor + closeness * generator.normal(size=(dimension, dimension))
    mean = generator.normal(size=dimension)
    floor = 0.1 * np.eye(dimension)
    moved = mean + closeness * generator.normal(size=dimension)
    return Normal(mean, factor @ factor.T + floor), Normal(moved, other @ other.T + floor)


@pytest.mark.parametrize("dimension", [2, 4, 8])
@pytest.mark.parametrize("closeness", [0.01, 0.3, 1.0])
def test_the_integral_against_simulation(dimension: int, closeness: float) -> None:
    p, q = random_pair(dimension, closeness=closeness, seed=dimension)
    sample = p.sample(100_000, np.random.default_rng(7))
    gain = np.maximum(0, -np.expm1(q.log_density(sample) - p.log_density(sample)))
    error = gain.std() / math.sqrt(len(gain))
    assert abs(total_variation(p, q) - gain.mean()) < 5 * error
    assert total_variation(p, q) == pytest.approx(total_variation(q, p), rel=1e-7)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_closed_forms_in_matrices(dimension: int) -> None:
    p, q = random_pair(dimension, closeness=0.5, seed=11)
    first, second, apart = np.array(p.covariance), np.array(q.covariance), np.array(q.mean) - np.array(p.mean)
    inverse = np.linalg.inv(second)
    ratio = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    log = (np.trace(inverse @ first) - dimension + apart @ inverse @ apart + ratio) / 2
    assert kl_divergence(p, q) == pytest.approx(log, rel=1e-10)
    middle = (first + second) / 2
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (first, second, middle)]
    affinity = math.exp(logs[0] / 4 + logs[1] / 4 - logs[2] / 2 - apart @ np.linalg.inv(middle) @ apart / 8)
    assert hellinger(p, q) == pytest.approx(math.sqrt(1 - affinity), rel=1e-10)


def test_equal_covariances_need_no_integral() -> None:
    covariance = [[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 3.0]]
    p, q = Normal([0, 0, 0], covariance), Normal([1, -1, 2], covariance)
    length = math.sqrt(np.array([1, -1, 2]) @ np.linalg.inv(np.array(covariance)) @ np.array([1, -1, 2]))
    assert total_variation(p, q) == pytest.approx(2 * norm.cdf(length / 2) - 1, rel=1e-12)
    pair = standardised(p, q)
    assert total_variation_by_quadrature(pair) == pytest.approx(total_variation(p, q), rel=1e-8)


def test_laws_that_differ_along_one_axis_are_laws_on_a_line() -> None:
    p = Normal([0, 5], [[1, 0], [0, 3]])
    q = Normal([1, 5], [[4, 0], [0, 3]])
    assert total_variation(p, q) == pytest.approx(total_variation(Normal(0, 1), Normal(1, 4)), rel=1e-12)
    pair = standardised(p, q)
    assert total_variation_by_quadrature(pair) == pytest.approx(total_variation(p, q), abs=1e-8)


# --- nearly equal laws, against 60 digits on the covariances as they are stored ---------------------------------------


def digits_on_a_line(p: Normal, q: Normal) -> tuple[Any, Any, Any]:
    """Total variation, Hellinger distance and divergence of two laws on a line of other variances."""
    with mpmath.workdps(60):
        a, b = mpmath.mpf(p.covariance[0][0]), mpmath.mpf(q.covariance[0][0])
        m = mpmath.mpf(q.mean[0]) - mpmath.mpf(p.mean[0])
        lead, slope = 1 / a - 1 / b, 2 * m / b
        root = mpmath.sqrt(slope**2 + 4 * lead * (m**2 / b + mpmath.log(b / a)))
        ends = [(-slope - root) / (2 * lead), (-slope + root) / (2 * lead)]
        own, other = ([mpmath.ncdf((end - c) / mpmath.sqrt(v)) for end in ends] for c, v in ((0, a), (m, b)))
        affinity = mpmath.sqrt(2 * mpmath.sqrt(a * b) / (a + b)) * mpmath.exp(-(m**2) / (4 * (a + b)))
        log = (a / b - 1 - mpmath.log(a / b) + m**2 / b) / 2
        return abs((own[1] - own[0]) - (other[1] - other[0])), mpmath.sqrt(1 - affinity), log


def digits(p: Normal, q: Normal) -> tuple[Any, Any]:
    """Hellinger distance and divergence of two centred laws."""
    with mpmath.workdps(60):
        first, second = mpmath.matrix(p.covariance), mpmath.matrix(q.covariance)
        ratio = mpmath.inverse(second) * first
        trace = mpmath.fsum(ratio[axis, axis] for axis in range(p.dimension))
        square = 1 - mpmath.root(mpmath.det(first) * mpmath.det(second), 4) / mpmath.sqrt(
            mpmath.det((first + second) / 2)
        )
        return mpmath.sqrt(square), (trace - p.dimension - mpmath.log(mpmath.det(ratio))) / 2


@pytest.mark.parametrize("apart", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("shift", [0.0, 1e-9, -1e-6, 1e-3])
def test_nearly_equal_laws_on_a_line(apart: float, shift: float) -> None:
    deviation = 0.4863301209512126
    wide = (deviation * (1 + apart)) ** 2
    for p, q in (
        (Normal(0, deviation**2), Normal(shift, wide)),
        (Normal(shift, wide), Normal(0, deviation**2)),
    ):
        assert p.covariance != q.covariance
        found = total_variation(p, q), hellinger(p, q), kl_divergence(p, q)
        for value, truth in zip(found, digits_on_a_line(p, q), strict=True):
            assert abs(value / truth - 1) < 2e-15


@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.parametrize("apart", [1e-12, 1e-9, 1e-6, 1e-3, 0.5])
def test_nearly_equal_laws_in_several_dimensions(dimension: int, apart: float) -> None:
    generator = np.random.default_rng(dimension)
    factor = generator.normal(size=(dimension, dimension))
    other = factor @ (np.eye(dimension) + apart * generator.normal(size=(dimension, dimension)))
    centre = np.zeros(dimension)
    p, q = Normal(centre, factor @ factor.T), Normal(centre, other @ other.T)
    allowed = 1e-14 + 1e-15 * max(np.linalg.cond(np.array(law.covariance)) for law in (p, q))
    for value, truth in zip((hellinger(p, q), kl_divergence(p, q)), digits(p, q), strict=True):
        assert abs(value / truth - 1) < allowed
    assert hellinger(p, q) ** 2 <= total_variation(p, q) <= math.sqrt(2) * hellinger(p, q)


# --- extremes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_equal_laws_are_exactly_zero_apart(dimension: int) -> None:
    p, _ = random_pair(dimension, closeness=1.0, seed=3)
    for distance in (total_variation, hellinger, kl_divergence):
        assert distance(p, Normal(p.mean, p.covariance)) == 0.0


def test_a_large_mean_and_a_small_spread() -> None:
    p, q = Normal(1e6, 1e-6), Normal(1e6 + 2.0**-10, 1e-6)
    shift = 2.0**-10 / 1e-3
    assert total_variation(p, q) == pytest.approx(math.erf(shift / math.sqrt(8)), rel=1e-12)
    assert kl_divergence(p, q) == pytest.approx(shift**2 / 2, rel=1e-12)


def test_laws_far_apart() -> None:
    for p, q in [
        (Normal(0, 1), Normal(1e6, 1)),
        (Normal(-1e308, 1), Normal(1e308, 1)),
        (Normal([0, 0], np.eye(2)), Normal([1e200, 1e200], 2 * np.eye(2))),
        (Normal([-1e308, 0], np.eye(2)), Normal([1e308, 0], [[2, 1], [1, 2]])),
    ]:
        assert total_variation(p, q) == 1.0
        assert hellinger(p, q) == 1.0
        assert kl_divergence(p, q) >= 0.5e12


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-8])
def test_laws_close_together(scale: float) -> None:
    # To first order in the scale: KL = shift^2 / 2 + stretch^2 / 4 an axis, h^2 = KL / 4.
    p, q = Normal([0, 0], np.eye(2)), Normal([scale, 0], np.diag([1 + scale, 1 - scale]))
    log = scale**2 / 2 + 2 * scale**2 / 4
    assert kl_divergence(p, q) == pytest.approx(log, rel=10 * scale + 1e-7)
    assert hellinger(p, q) ** 2 == pytest.approx(log / 4, rel=10 * scale + 1e-7)
    points = np.random.default_rng(5).normal(size=(400_000, 2))
    slope = np.abs(points[:, 0] + (points[:, 0] ** 2 - points[:, 1] ** 2) / 2).mean() / 2
    assert total_variation(p, q) == pytest.approx(scale * slope, rel=0.01)


def test_spreads_of_other_sizes() -> None:
    p, q = Normal(0, 1), Normal(0, 1e12)
    meet = math.sqrt(math.log(1e12))
    assert total_variation(p, q) == pytest.approx(math.erf(meet / math.sqrt(2)) - math.erf(meet / math.sqrt(2e12)))
    wide, narrow = Normal([0, 0], 1e12 * np.eye(2)), Normal([3, 1e3], np.diag([1e-4, 1]))
    assert 0.999999 < total_variation(wide, narrow) <= 1.0


def test_scales_at_the_ends_of_the_floats_never_give_nonsense() -> None:
    generator = np.random.default_rng(5)
    for _ in range(300):
        dimension = int(generator.integers(1, 4))
        p, q = (
            Normal(
                generator.normal(size=dimension) * 10 ** generator.uniform(-5, 200),
                np.diag(10 ** generator.uniform(-150, 150, size=dimension)),
            )
            for _ in range(2)
        )
        assert 0 <= total_variation(p, q) <= 1
        assert 0 <= hellinger(p, q) <= 1
        assert kl_divergence(p, q) >= 0


# --- refusals ---------------------------------------------------------------------------------------------------------

ODD: list[tuple[Any, Any, str]] = [
    (Normal(0, 1), Normal([0, 0], np.eye(2)), "dimension"),
    (Normal(0, 1), FiniteLaw({0: 1}), "one kind"),
    (Categorical(["a"], [1]), Normal(0, 1), "one kind"),
    (FiniteLaw({0: 1}), {0: 1}, "p and q"),
    (None, None, "p and q"),
    (0.5, Normal(0, 1), "one kind"),
]


@pytest.mark.parametrize(("p", "q", "words"), ODD)
def test_laws_of_other_kinds_are_refused(p: Any, q: Any, words: str) -> None:
    for distance in (total_variation, hellinger, kl_divergence):
        with pytest.raises(InvalidParameter, match=words):
            distance(p, q)
