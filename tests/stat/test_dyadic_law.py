"""The dyadic coupling (theory L4, S1): marginals, agreement, isolation, odd laws.

Kolmogorov-Smirnov tests reject below p = 1e-8, frequencies beyond 5.5 standard errors: under 1e-6 in all. Quick runs
reject a law whose spread is 40 % wrong, the nightly ones 10 %.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kstest

from accord.core.coupling import ABSTAIN, Abstain
from accord.couplings import DyadicCoupling, SharedRandomness
from accord.distributions import Atoms, Distribution, Exponential, Mixture, Normal, ScipyLaw, Uniform
from accord.errors import InvalidParameter
from accord.laws import total_variation

LEAST = 1e-8
LINE = 5.5
DRAWS = 3_000
Floats = NDArray[np.float64]


def values(laws: list[Any], *, draws: int = DRAWS, key: int = 5) -> Floats:
    coupled = DyadicCoupling().couple(laws, records=1, draws=draws, shared=SharedRandomness(key))
    return np.array([[np.frombuffer(vote, dtype="<f8")[0] for vote in row] for row in coupled.keys])


LAWS: dict[str, Any] = {
    "standard": Normal(0.0, 1.0),
    "far and narrow": Normal(1e6, 1e-6),
    "tiny": Exponential(1e-300),
    "huge": Exponential(1e300),
    "heavy tail": ScipyLaw("cauchy", loc=3.0, scale=1e-5),
    "box": Uniform([-1.0], [2.0]),
    "two humps": Mixture([Normal(-5.0, 1.0), Normal(1e9, 1.0)], [0.5, 0.5]),
}


def check_marginal(law: Any, *, draws: int, wrong: float) -> None:
    found = values([law], draws=draws)[:, 0]
    cdf: Any = law.cdf
    assert kstest(found, cdf).pvalue > LEAST
    assert kstest(np.median(found) + wrong * (found - np.median(found)), cdf).pvalue < LEAST


@pytest.mark.parametrize("name", LAWS)
def test_L4_marginals_are_those_of_the_law(name: str) -> None:
    check_marginal(LAWS[name], draws=DRAWS, wrong=1.4)


@pytest.mark.nightly
@pytest.mark.parametrize("name", LAWS)
def test_L4_marginals_are_those_of_the_law_within_a_tenth(name: str) -> None:
    check_marginal(LAWS[name], draws=60_000, wrong=1.1)


def test_atoms_keep_their_weight_and_are_hit_exactly() -> None:
    law = Atoms([0.0, 7.0], [0.4, 0.1], Normal(3.0, 1.0))
    found = values([law])[:, 0]
    for atom, weight in ((0.0, 0.4), (7.0, 0.1)):
        error = math.sqrt(weight * (1 - weight) / DRAWS)
        assert abs((found == atom).mean() - weight) < LINE * error
    rest = found[(found != 0.0) & (found != 7.0)]
    cdf: Any = Normal(3.0, 1.0).cdf
    assert kstest(rest, cdf).pvalue > LEAST
    assert not np.signbit(found[found == 0.0]).any()


@pytest.mark.parametrize("shift", [0.05, 0.5, 2.0])
def test_S1_agreement_lies_between_one_race_and_the_sum_down_the_tree(shift: float) -> None:
    laws = [Normal(0.0, 1.0), Normal(shift, 1.0)]
    found = values(laws, draws=2_000)
    apart = float((found[:, 0] != found[:, 1]).mean())
    distance = float(total_variation(*laws))
    error = math.sqrt(apart * (1 - apart) / len(found))
    assert distance - LINE * error < apart < 2 * distance / (1 + distance) + LINE * error


def test_S1_equal_laws_agree_always_and_apart_never() -> None:
    found = values([Normal(0.0, 1.0), Normal(0.0, 1.0), Uniform([100.0], [101.0])], draws=500)
    assert (found[:, 0] == found[:, 1]).all()
    assert (found[:, 0] != found[:, 2]).all()


@dataclass(frozen=True)
class Odd:
    """A law whose intervals are whatever the test wants."""

    answer: float

    dimension: int = 1

    def interval(self, low: ArrayLike, high: ArrayLike) -> Floats:
        if self.answer == 7.0:
            raise RuntimeError
        return np.full(np.shape(low), self.answer)


@pytest.mark.parametrize(
    "odd", [ABSTAIN, None, Odd(math.nan), Odd(2.0), Odd(-1.0), Odd(0.0), Odd(7.0), Normal([0, 0], np.eye(2))]
)
def test_L3_whatever_a_law_does_moves_no_other_vote(odd: Any) -> None:
    laws: list[Distribution | Abstain] = [Normal(0.0, 1.0), Normal(1.0, 1.0), Normal(0.1, 1.0)]
    whole = DyadicCoupling().couple(laws, records=1, draws=20, shared=SharedRandomness(2)).keys
    replayed = (
        DyadicCoupling().couple([laws[0], odd, laws[2], laws[1]], records=1, draws=30, shared=SharedRandomness(2)).keys
    )
    assert (replayed[:20, [0, 2, 3]] == whole[:, [0, 2, 1]]).all()
    assert all(vote is ABSTAIN for vote in replayed[:, 1])


def test_draws_are_independent() -> None:
    found = values([Normal(0.0, 1.0)])[:, 0]
    for lag in (1, 2, 1024):
        assert abs(np.corrcoef(found[lag:], found[:-lag])[0, 1]) < LINE / math.sqrt(len(found) - lag)


def test_tuples_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="records must be 1"):
        DyadicCoupling().couple([Normal(0.0, 1.0)], records=2, draws=1, shared=SharedRandomness(0))
