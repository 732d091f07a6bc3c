"""The laws of Couple II by simulation.

Every test accepts the truth at p-values above 1e-7 each, of which it has at most ten, and rejects what is 10 % wrong
below: a correct library fails one with probability below 1e-6 over the choice of the shared key. Keys are fixed; an
assertion shows the one it used.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from accord.couplings import joint_law
from accord.distributions import Atoms, Categorical, Distribution, Mixture, Normal, Product, Uniform
from accord.laws import FiniteLaw
from accord.randomness import SharedRandomness
from accord.theory import TuplePoissonCoupling
from accord.theory.couplings.grid import WHOLE, Reader

RARE = 1e-7


def votes(laws: Sequence[Any], *, step: Any = None, records: int, draws: int, key: int) -> Any:
    shared = SharedRandomness(key)
    return TuplePoissonCoupling(step=step).couple(laws, records=records, draws=draws, shared=shared)


def fit(seen: Counter[Any], expected: dict[Any, float]) -> float:
    """p-value of the chi-square, cells below 10 pooled; 0 if something impossible was seen."""
    if set(seen) - {cell for cell, number in expected.items() if number > 0}:
        return 0.0
    large = [cell for cell, number in expected.items() if number >= 10]
    pairs = [(float(seen[cell]), expected[cell]) for cell in large]
    rest = sum(expected.values()) - sum(number for _, number in pairs)
    if rest > 5:
        pairs.append((float(sum(seen.values()) - sum(seen[cell] for cell in large)), rest))
    return float(chi2.sf(sum((got - right) ** 2 / right for got, right in pairs), len(pairs) - 1))


def rate(hits: int, trials: int, probability: float) -> float:
    """Two-sided p-value of a binomial count."""
    return float(min(1.0, 2 * min(binom.cdf(hits, trials, probability), binom.sf(hits - 1, trials, probability))))


# --- against the exact joint law --------------------------------------------------------------------------------------

TABLE = [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.0, 0.125, 0.875]]  # multiples of 2^-62: nothing is rounded


@pytest.mark.parametrize("key", [21, 22])
def test_L2_votes_have_the_exact_joint_law(key: int) -> None:
    draws, labels = 30_000, ["a", "b", "c"]
    coupled = votes([Categorical(labels, row) for row in TABLE], records=1, draws=draws, key=key)
    seen = Counter(map(tuple, coupled.values[:, :, 0, 0].tolist()))
    laws = [FiniteLaw(dict(zip(labels, map(Fraction, row), strict=True))) for row in TABLE]
    expected = {z: float(p) * draws for z, p in zip(*_items(joint_law(laws)), strict=True)}
    assert fit(seen, expected) > RARE, key
    wrong = [[0.275, 0.475, 0.25], *TABLE[1:]]  # a tenth more of one label in one law
    laws = [FiniteLaw(dict(zip(labels, row, strict=True))) for row in wrong]
    expected = {z: float(p) * draws for z, p in zip(*_items(joint_law(laws)), strict=True)}
    assert fit(seen, expected) < RARE, key


def _items(law: FiniteLaw) -> tuple[tuple[Any, ...], tuple[Fraction, ...]]:
    return law.outcomes, law.probabilities


@pytest.mark.parametrize("key", [23])
def test_L2_pairs_of_records_have_the_exact_joint_law(key: int) -> None:
    draws, rows = 25_000, [[0.25, 0.75], [0.5, 0.5], [0.625, 0.375]]
    coupled = votes([Categorical(["a", "b"], row) for row in rows], records=2, draws=draws, key=key)
    seen = Counter(tuple("".join(pair) for pair in row) for row in coupled.values[:, :, :, 0].tolist())

    def tuples(row: Sequence[float]) -> FiniteLaw:
        single = dict(zip("ab", map(Fraction, row), strict=True))
        return FiniteLaw({x + y: single[x] * single[y] for x in "ab" for y in "ab"})

    expected = {z: float(p) * draws for z, p in zip(*_items(joint_law([tuples(row) for row in rows])), strict=True)}
    assert fit(seen, expected) > RARE, key
    other = joint_law([tuples([0.275, 0.725]), *map(tuples, rows[1:])])
    assert fit(seen, {z: float(p) * draws for z, p in zip(*_items(other), strict=True)}) < RARE, key


def test_draws_are_independent_and_other_blocks_do_not_see_a_change_of_law() -> None:
    draws, labels = 30_000, ["a", "b", "c"]
    rows = [Categorical(labels, row) for row in TABLE]
    first = votes(rows, records=1, draws=draws, key=24).values[:, :, 0, 0]
    neighbour = [Categorical(labels, [0.0, 0.0, 1.0]), *rows[1:]]
    second = votes(neighbour, records=1, draws=draws, key=25).values[:, :, 0, 0]
    laws = [FiniteLaw(dict(zip(labels, map(Fraction, row), strict=True))) for row in TABLE[1:]]
    expected = {z: float(p) * draws for z, p in zip(*_items(joint_law(laws)), strict=True)}
    for array in (first, second):
        assert fit(Counter(map(tuple, array[:, 1:].tolist())), expected) > RARE
    for lag in (1, 2, 16):
        pairs = Counter(zip(first[:-lag, 0].tolist(), first[lag:, 1].tolist(), strict=True))
        right = {(x, y): p * q * (draws - lag) for x, p in zip(labels, TABLE[0], strict=True)
                 for y, q in zip(labels, TABLE[1], strict=True)}  # fmt: skip
        assert fit(pairs, right) > RARE, lag


# --- numbers ----------------------------------------------------------------------------------------------------------


def z_scores(records: NDArray[np.float64], mean: float, deviation: float) -> tuple[float, float]:
    """Standardised errors of the mean and of the mean square, for independent normal records."""
    flat = (records.ravel() - mean) / deviation
    return float(flat.mean() * sqrt(flat.size)), float(((flat**2).mean() - 1) * sqrt(flat.size / 2))


@pytest.mark.parametrize("key", [26])
def test_G1_normal_records_of_every_block(key: int) -> None:
    laws = [(0.0, 1.0), (0.3, 1.0), (0.0, 1.5)]
    step, records, draws = 0.05, 20, 600
    given = [Normal(mean, deviation**2) for mean, deviation in laws]
    values = votes(given, step=step, records=records, draws=draws, key=key).values
    for block, (mean, deviation) in enumerate(laws):
        rounded = sqrt(deviation**2 + step**2 / 12)  # Sheppard: rounding adds the variance of a cell
        tuples = values[:, block, :, 0]
        assert max(map(abs, z_scores(tuples, mean, rounded))) < 5.6, key
        for factor in (0.9, 1.1):
            assert abs(z_scores(tuples, mean, factor * rounded)[1]) > 5.6, (key, factor)
        lagged = (tuples[:, 1:] - mean) * (tuples[:, :-1] - mean) / rounded**2
        assert abs(lagged.mean() * sqrt(lagged.size)) < 5.6, key


@pytest.mark.parametrize("key", [27])
def test_G1_columns_of_a_normal_law_keep_their_correlation(key: int) -> None:
    covariance = np.array([[1.0, 0.8, -0.3], [0.8, 2.0, 0.1], [-0.3, 0.1, 0.5]])
    law = Normal([1.0, -2.0, 30.0], covariance)
    records = votes([law], step=[0.05, 0.1, 0.02], records=40, draws=400, key=key).values[:, 0].reshape(-1, 3)
    centred = np.linalg.solve(law.cholesky, (records - np.array(law.mean)).T)
    products = centred @ centred.T / centred.shape[1]
    errors = (products - np.eye(3)) * np.sqrt(centred.shape[1] / (1 + np.eye(3)))
    assert np.abs(errors).max() < 6.2  # grid errors of some 0.1 % come on top
    independent = np.linalg.solve(np.diag(np.sqrt(np.diag(covariance))), (records - np.array(law.mean)).T)
    assert abs((independent[0] * independent[1]).mean()) * sqrt(len(records)) > 6.2


@pytest.mark.parametrize("key", [28])
def test_atoms_mixtures_and_mixed_columns_keep_their_marginals(key: int) -> None:
    law = Product([Atoms([0.0, 3.0], [0.25, 0.25], rest=Uniform(0.0, 1.0)), Categorical(["x", "y"], [1, 3])])
    mixture = Mixture([Product([Normal(0, 1), Normal(0, 1)]), Product([Normal(9, 1), Normal(-9, 1)])], [1, 3])
    coupled = votes([law, mixture], step=0.125, records=10, draws=1200, key=key)
    rows = np.array([coupled.decode(0, vote) for vote in coupled.keys[:, 0]], dtype=object).reshape(-1, 2)
    cells = Counter((float(a) if a in {0.0, 3.0} else "rest", b) for a, b in rows.tolist())
    # cell 0 also holds the left 16th of the density; its right end belongs to cell 1.0
    first = {0.0: 0.25 + 0.5 / 16, 3.0: 0.25, "rest": 0.5 - 0.5 / 16}
    right = {(a, b): p * q * len(rows) for a, p in first.items() for b, q in (("x", 0.25), ("y", 0.75))}
    assert fit(cells, right) > RARE, key
    first = {0.0: 0.225 + 0.5 / 16, 3.0: 0.275, "rest": 0.5 - 0.5 / 16}
    wrong = {(a, b): p * q * len(rows) for a, p in first.items() for b, q in (("x", 0.25), ("y", 0.75))}
    assert fit(cells, wrong) < RARE, key
    pairs = np.array([coupled.decode(0, vote) for vote in coupled.keys[:, 1]]).reshape(-1, 2)
    far = pairs[:, 0] > 4.5
    assert (far == (pairs[:, 1] < -4.5)).all()  # one component a record, not one a column
    assert rate(int(far.sum()), len(far), 0.75) > RARE, key
    assert rate(int(far.sum()), len(far), 0.75 * 0.9) < RARE, key


# --- agreement --------------------------------------------------------------------------------------------------------


def grid_agreement(laws: Sequence[Distribution], *, step: float) -> float:
    """Theory S1 for one record, from the weights of the cells."""
    reader, cells = Reader((step,), 1 << 18), np.arange(-5000, 5001)[None, :]
    p, q = (reader.read(law).components[0].columns[0].weights(0, cells) / WHOLE for law in laws)
    tv = 0.5 * float(np.abs(p - q).sum())
    return (1 - tv + float((np.abs(p - q) * np.minimum(p, q)).sum())) / (1 + tv)


@pytest.mark.parametrize("key", [29])
@pytest.mark.parametrize("step", [0.05, 1.0])
def test_S1_records_agree_as_often_as_the_formula_says(step: float, key: int) -> None:
    laws, draws = [Normal(0.0, 1.0), Normal(0.5, 1.0)], 8000
    keys = votes(laws, step=step, records=1, draws=draws, key=key).keys
    hits = int((keys[:, 0] == keys[:, 1]).sum())
    right = grid_agreement(laws, step=step)
    assert rate(hits, draws, right) > RARE, key
    assert rate(hits, draws, 0.9 * right) < RARE, key
    assert rate(hits, draws, 1.1 * right) < RARE, key


@pytest.mark.parametrize("key", [30])
def test_G2_tuples_are_coupled_jointly(key: int) -> None:
    """TV of l shifted records is that of one at sqrt(l) the shift; record by record would lose far more."""
    shift, records, draws = 0.1, 25, 6000
    laws = [Normal(0.0, 1.0), Normal(shift, 1.0)]
    keys = votes(laws, step=0.02, records=records, draws=draws, key=key).keys
    hits = int((keys[:, 0] == keys[:, 1]).sum())
    tv = 2 * norm.cdf(shift * sqrt(records) / 2) - 1
    right = (1 - tv) / (1 + tv)
    single = 2 * norm.cdf(shift / 2) - 1
    assert rate(hits, draws, right) > RARE, key  # the grid moves the rate by less than 1e-3
    assert rate(hits, draws, 0.9 * right) < RARE, key
    assert rate(hits, draws, 1.1 * right) < RARE, key
    assert rate(hits, draws, ((1 - single) / (1 + single)) ** records) < RARE, key


@pytest.mark.nightly
def test_G2_one_hundred_blocks_of_one_hundred_records_disagree_within_the_bound() -> None:
    generator = SharedRandomness(31).stream("means")
    means = generator.normal(0, 0.02, size=100)
    keys = votes([Normal(float(mean), 1.0) for mean in means], step=0.05, records=100, draws=300, key=31).keys
    agree = np.mean([keys[:, 2 * pair] == keys[:, 2 * pair + 1] for pair in range(50)], axis=0)
    tv = 2 * norm.cdf(np.abs(means[::2] - means[1::2]) * sqrt(100) / 2) - 1
    right = float(((1 - tv) / (1 + tv)).mean())
    assert abs(agree.mean() - right) < 6 * agree.std() / sqrt(len(agree))
