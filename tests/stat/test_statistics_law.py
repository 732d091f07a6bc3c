"""Couplings by statistics against the laws of their tuples, and joint coupling against record by record.

Every acceptance uses |z| < 5.5 or the suite's own lines (each wrong with at most 1e-9); every rejection shows that a
tenth off lies beyond the same line. Shared keys are printed.
"""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.couplings import NormalLattice, RecordByRecord, StatisticCoupling
from accord.distributions import Exponential, Gamma, Normal, Poisson
from accord.randomness import SharedRandomness
from accord.testing import CouplingFault
from accord.testing.coupling_statements import check_marginal, standard_scores
from accord.theory import PoissonCoupling

LINE = 5.5
Floats = NDArray[np.float64]

MARGINALS: list[tuple[Any, Any, int]] = [
    (Poisson(0.05), Poisson(0.055), 400),
    (Poisson(2e8), Poisson(2.2e8), 30),
    (Exponential(1e-300), Exponential(1.1e-300), 1),
    (Exponential(5.0), Exponential(5.5), 200),
    (Gamma(0.5, 1.0), Gamma(0.5, 1.1), 60),
    (Gamma(0.05, 1.0), Gamma(0.055, 1.0), 60),
    (Gamma(2_000.0, 1e-3), Gamma(2_000.0, 1.1e-3), 60),
]


@pytest.mark.parametrize("case", MARGINALS, ids=lambda case: f"{case[1]}-{case[2]}")
def test_S3_tuples_follow_their_law_and_not_one_a_tenth_off(case: tuple[Any, Any, int]) -> None:
    law, wrong, records = case
    key, draws = 41, (30_000 if records == 1 else 1_200)
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    coupled = StatisticCoupling(type(law)).couple([law], records=records, draws=draws, shared=SharedRandomness(key))
    tuples = np.concatenate([coupled.decode(draw, vote) for draw, vote in enumerate(coupled.keys[:, 0])])
    stream = SharedRandomness(key).stream("ties")
    check_marginal(standard_scores(law, tuples, stream), draws=draws, records=records)
    with pytest.raises(CouplingFault):
        check_marginal(standard_scores(wrong, tuples, stream), draws=draws, records=records)


def s1_by_sampling(p: Any, q: Any, *, records: int, size: int, seed: int) -> float:
    """Theory S1 from tuples of p and the densities of their records: E_p[1 / E_p max(1, r(X) / r(y))], r = dq/dp."""
    generator = np.random.default_rng(seed)
    x = p.sample(size * records, generator)
    log_ratio = (q.log_density(x) - p.log_density(x)).reshape(size, records).sum(axis=1)
    log_ratio.sort()
    ratio = np.exp(log_ratio)
    below = np.arange(1, size + 1) / size
    above = (ratio[::-1].cumsum()[::-1] - ratio) / size
    return float((1 / (below + above / ratio)).mean())


PAIRS: list[tuple[Any, Any, int]] = [
    (Poisson(4.0), Poisson(4.1), 100),
    (Poisson(0.01), Poisson(0.02), 30),
    (Exponential(1.0), Exponential(1.3), 1),
    (Exponential(1e9), Exponential(1.03e9), 100),
    (Gamma(3.0, 1.0), Gamma(3.1, 0.98), 100),
    (Gamma(0.1, 1.0), Gamma(0.105, 0.99), 60),
]


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: f"{case[0]}-{case[2]}")
def test_S1_agreement_is_that_of_a_race_on_the_tuples(case: tuple[Any, Any, int]) -> None:
    p, q, records = case
    key, draws = 6, (1_500 if isinstance(p, Gamma) else 8_000)
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    keys = StatisticCoupling(type(p)).couple([p, q], records=records, draws=draws, shared=SharedRandomness(key)).keys
    found = float(np.mean(keys[:, 0] == keys[:, 1]))
    expected = s1_by_sampling(p, q, records=records, size=20_000, seed=9)
    error = math.sqrt(expected * (1 - expected) / draws) + 1.5e-3  # the sampled expectation is good to 1.5e-3
    assert abs(found - expected) < LINE * error, (found, expected)
    assert abs(found - 0.9 * expected) > LINE * error, "a tenth less would not be noticed"


def test_S11_a_common_factor_does_not_change_the_law_of_the_votes() -> None:
    found = []
    for key, factor in enumerate([1.0, 3.7, 1e100]):
        laws = [Exponential(factor * scale) for scale in (1.0, 1.05, 0.97)]
        keys = StatisticCoupling(Exponential).couple(laws, records=60, draws=8_000, shared=SharedRandomness(key)).keys
        found.append(float(np.mean([len(set(row)) == 1 for row in keys])))
    error = math.sqrt(2 * found[0] * (1 - found[0]) / 8_000)
    assert max(found) - min(found) < LINE * error
    assert 0.1 * found[0] > LINE * error


# --- joint against record by record -----------------------------------------------------------------------------------

P, Q, RECORDS = Normal(0.0, 1.0), Normal(0.02, 1.01**2), 100


def s1_on_a_grid(p: Floats, q: Floats) -> float:
    """Theory S1 for two laws on one list: the race's agreement, by an order of the ratios instead of all pairs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(q / p)
    p, q = p[order] / p.sum(), q[order] / q.sum()
    below, above = np.cumsum(p), 1 - np.cumsum(q)
    kept = (p > 1e-280) & (q > 1e-280)
    return float((1 / (below[kept] / p[kept] + np.maximum(above[kept], 0.0) / q[kept])).sum())


def joint_agreement(size: int) -> float:
    """S1 for the laws of mean and sample variance of 100 records, on a grid of size x size cells."""
    edges = np.linspace(-9.0, 9.0, size)[:, None] / math.sqrt(RECORDS)
    spread = (RECORDS - 1) * np.exp(np.linspace(-1.0, 0.9, size))[None, :]
    tables = []
    for law in (P, Q):
        variance = law.covariance[0][0]
        mean = -((edges - law.mean[0]) ** 2) * RECORDS / (2 * variance) - 0.5 * math.log(variance)
        chi = 0.5 * (RECORDS - 1) * np.log(spread / variance) - spread / (2 * variance)
        tables.append((mean + chi).ravel())
    return s1_on_a_grid(*(np.exp(table - tables[0].max()) for table in tables))


def single_agreement(size: int) -> float:
    grid = np.linspace(-9.0, 9.0, size)
    return s1_on_a_grid(np.exp(P.log_density(grid)), np.exp(Q.log_density(grid)))


def test_S1_L5_a_joint_coupling_of_100_records_agrees_as_the_statistic_does_and_record_by_record_much_less() -> None:
    key, draws, few = 12, 10_000, 200
    joint, single = joint_agreement(700), single_agreement(20_000)
    print(f"shared key {key}: joint {joint}, record by record {single**RECORDS}")  # noqa: T201 - as above
    assert abs(joint - joint_agreement(500)) < 1e-3
    assert abs(joint - s1_by_sampling(P, Q, records=RECORDS, size=20_000, seed=4)) < 4e-3
    shared = SharedRandomness(key)
    keys = NormalLattice(dimension=1).couple([P, Q], records=RECORDS, draws=draws, shared=shared).keys
    found = float(np.mean(keys[:, 0] == keys[:, 1]))
    error = math.sqrt(joint * (1 - joint) / draws) + 2e-4
    assert abs(found - joint) < LINE * error, (found, joint)
    assert abs(found - 0.9 * joint) > LINE * error
    apart = RecordByRecord(PoissonCoupling(Normal(0.0, 2.0)))
    keys = apart.couple([P, Q], records=RECORDS, draws=few, shared=shared).keys
    found = float(np.mean(keys[:, 0] == keys[:, 1]))
    error = math.sqrt(single**RECORDS * (1 - single**RECORDS) / few)
    assert abs(found - single**RECORDS) < LINE * error, (found, single**RECORDS)
    assert found + LINE * error < joint - 0.1, "the joint coupling would not be seen to agree more"


def test_L5_record_by_record_is_the_power_of_one_record() -> None:
    key, draws, records = 3, 8_000, 4
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    p, q = Exponential(1.0), Exponential(1.1)
    keys = (
        RecordByRecord(StatisticCoupling(Exponential))
        .couple([p, q], records=records, draws=draws, shared=SharedRandomness(key))
        .keys
    )
    grid = np.linspace(1e-6, 60.0, 400_000)
    one = s1_on_a_grid(np.exp(p.log_density(grid)), np.exp(q.log_density(grid)))
    found, expected = float(np.mean(keys[:, 0] == keys[:, 1])), one**records
    error = math.sqrt(expected * (1 - expected) / draws) + 1e-4
    assert abs(found - expected) < LINE * error, (found, expected)
    assert abs(found - 0.9 * expected) > LINE * error
