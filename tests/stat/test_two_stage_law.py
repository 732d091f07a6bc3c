"""Laws of the two-stage coupling: the winner's statistic, agreement by S1 and beside the lattice, records of mixtures.

Keys are fixed and printed by a failing assertion; each comparison fails with probability below 1e-7 if the claim is
true, and wrong laws (10 % off, no division by nu, too few candidates) are rejected by the same comparison.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2, kstwobign

from accord.core.coupling import Abstain
from accord.couplings import ModelReference, NormalLattice, NormalReference, TwoStageCoupling, agreement
from accord.distributions import Distribution, Mixture, Normal
from accord.randomness import Generator, SharedRandomness
from accord.theory import PoissonCoupling

CHANCE = 1e-8
Floats = NDArray[np.float64]


def fits(values: Floats, *, freedom: float, slack: float | None = None) -> bool:
    """Whether independent values have the chi-squared law that they should have.

    The cdf may be off by ``slack`` in total variation. Without it the sum is held to its law as well: the bias of these
    races is far smaller than what so many draws can see.
    """
    count = len(values)
    grid = np.sort(chi2.cdf(values, freedom))
    steps = np.arange(count) / count
    distance = max(float((grid - steps).max()), float((steps + 1 / count - grid).max()))
    close = distance < float(kstwobign.isf(CHANCE)) / math.sqrt(count) + (slack or 0.0)
    total = float(values.sum())
    tail = min(chi2.cdf(total, freedom * count), chi2.sf(total, freedom * count))
    return close and (slack is not None or tail > CHANCE)


def standardised(law: Normal, records: Floats) -> tuple[Floats, Floats]:
    """Return l (m - mu)' P (m - mu) and tr(P S) of tuples, shape (n, l, d): chi-squared, independent."""
    inverse = np.linalg.inv(law.cholesky)
    units = (records - np.array(law.mean)) @ inverse.T
    mean = units.mean(axis=1)
    length = records.shape[1]
    return length * np.square(mean).sum(axis=1), np.square(units - mean[:, None]).sum(axis=(1, 2))


def tuples_of(coupling: Any, law: Distribution, *, records: int, draws: int, key: str) -> Floats:
    coupled = coupling.couple([law], records=records, draws=draws, shared=SharedRandomness(key))
    found: Floats = coupled.values[:, 0]
    return found


@dataclass(frozen=True)
class Broken:
    """A reference that forgets to divide by nu."""

    inner: NormalReference

    def least_records(self) -> int:
        return self.inner.least_records()

    def drawn(self, size: int, stream: Generator, *, records: int) -> Any:
        return self.inner.drawn(size, stream, records=records)

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> Any:
        return self.inner.points(draw, batch, records=records, shared=shared)

    def points_of(self, law: Normal, size: int, stream: Generator, *, records: int) -> Any:
        return self.inner.points_of(law, size, stream, records=records)

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> Floats:
        return np.full(len(laws), np.inf)

    def usual_candidates(self, records: int) -> int:
        return self.inner.usual_candidates(records)

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: Any, *, records: int) -> Floats:
        return self.evaluator(laws, records=records)(points)

    def evaluator(self, laws: Sequence[Distribution | Abstain], *, records: int) -> Callable[[Any], Floats]:
        def evaluate(points: Any) -> Floats:
            reference = Normal(np.zeros(1), np.eye(1))  # the coarse law is standard in these tests
            own = self.inner.log_ratios([*laws, reference], points, records=records)
            mean, scatter = points[:, 0], np.square(points[:, 1])
            plain = -0.5 * (scatter + records * mean**2)
            rows: Floats = own[:-1] - own[-1] + plain
            return rows

        return evaluate

    def decode(self, point: Any, **rest: Any) -> Any:
        return self.inner.decode(point, **rest)


LINE = Normal(0.05, 1.1)


def line_coupling(*, candidates: int) -> TwoStageCoupling:
    return TwoStageCoupling(NormalReference(Normal(0, 1), strength=60), candidates=candidates)


def test_S1_a_tuple_on_the_line_has_the_law_of_its_records() -> None:
    coupling = line_coupling(candidates=2048)
    assert coupling.diagnose(LINE, records=40).shortfall < 0.001
    records = tuples_of(coupling, LINE, records=40, draws=2500, key="line, 2048")
    mean, scatter = standardised(LINE, records)
    assert fits(mean, freedom=1), "key: line, 2048"
    assert fits(scatter, freedom=39), "key: line, 2048"
    for wrong in (0.9, 1.1):
        assert not fits(mean * wrong**2, freedom=1)
        assert not fits(scatter * wrong**2, freedom=39)


def test_S1_too_few_candidates_or_no_division_by_nu_are_noticed() -> None:
    few = tuples_of(line_coupling(candidates=3), LINE, records=40, draws=2500, key="line, 3")
    assert not all(fits(v, freedom=f) for v, f in zip(standardised(LINE, few), (1, 39), strict=True))
    broken = TwoStageCoupling(Broken(NormalReference(Normal(0, 1), strength=60)), candidates=1024)
    wrong = tuples_of(broken, LINE, records=40, draws=2500, key="line, broken")
    assert not all(fits(v, freedom=f) for v, f in zip(standardised(LINE, wrong), (1, 39), strict=True))


def test_S1_a_tuple_in_five_columns_has_the_law_of_its_records() -> None:
    matrix = np.random.default_rng(4).normal(size=(5, 5)) / 5 + np.eye(5)
    coarse = Normal(np.arange(5.0), matrix @ matrix.T)
    law = Normal(np.arange(5.0) + 0.05, 0.95 * matrix @ matrix.T)
    coupling = TwoStageCoupling(NormalReference(coarse, strength=150), candidates=16384)
    missed = coupling.diagnose(law, records=60).shortfall
    assert missed < 0.01
    records = tuples_of(coupling, law, records=60, draws=300, key="five columns")
    mean, scatter = standardised(law, records)
    assert fits(mean, freedom=5, slack=missed), "key: five columns"
    assert fits(scatter, freedom=295, slack=missed), "key: five columns"
    for wrong in (0.9, 1.1):
        assert not fits(scatter * wrong**2, freedom=295, slack=missed)
    moved, _ = standardised(law, records + 0.15)
    assert not fits(moved, freedom=5, slack=missed)


def test_S2_the_poisson_race_on_the_same_reference_is_exact_by_its_bound() -> None:
    coupling = PoissonCoupling(NormalReference(Normal(0, 1), strength=60), most_points=4096)
    records = tuples_of(coupling, LINE, records=40, draws=1200, key="poisson")
    mean, scatter = standardised(LINE, records)
    assert fits(mean, freedom=1), "key: poisson"
    assert fits(scatter, freedom=39), "key: poisson"
    assert not fits(scatter * 1.1**2, freedom=39)


def test_S1_agreement_given_the_candidates_is_that_of_one_race_on_their_list() -> None:
    """Pairs and all three laws; a tenth less or more would be noticed."""
    laws = [Normal(0, 1), Normal(0.03, 1.05), Normal(-0.02, 1.02)]
    reference, shared, draws, number = NormalReference(Normal(0, 1), strength=80), SharedRandomness("S1"), 2000, 256
    keys = TwoStageCoupling(reference, candidates=number).couple(laws, records=40, draws=draws, shared=shared).keys
    groups = [(0, 1), (1, 2), (0, 1, 2)]
    chances = np.empty((draws, len(groups)))
    for draw in range(draws):
        stream = shared.stream("two stage", "candidates", draw, 0)
        points = reference.drawn(2048, stream, records=40)[:number]
        weights = np.exp(reference.log_ratios(laws, points, records=40))
        ratios = weights[:, :, None] / weights[:, None, :]
        for place, group in enumerate(groups):
            chances[draw, place] = (1 / ratios[list(group)].max(axis=0).sum(axis=0)).sum()
        if draw == 0:
            assert chances[0, 2] == pytest.approx(agreement(*weights.tolist()), rel=1e-9)
    for place, group in enumerate(groups):
        equal = np.array([len({row[law] for law in group}) == 1 for row in keys])
        spread = math.sqrt(float((chances[:, place] * (1 - chances[:, place])).sum()))
        expected = float(chances[:, place].sum())
        assert abs(equal.sum() - expected) < 5.8 * spread, f"key: S1, {group}"
        for wrong in (0.9, 1.1):
            assert abs(equal.sum() - wrong * expected) > 5.8 * spread


def test_S1_pairs_agree_as_on_the_lattice_which_has_no_reference() -> None:
    laws, draws = [Normal(0, 1), Normal(0.06, 1.08)], 3000
    lattice = NormalLattice(dimension=1).couple(laws, records=40, draws=draws, shared=SharedRandomness("lattice")).keys
    two = line_coupling(candidates=2048).couple(laws, records=40, draws=draws, shared=SharedRandomness("two")).keys
    shares = [float((keys[:, 0] == keys[:, 1]).mean()) for keys in (lattice, two)]
    spread = math.sqrt(sum(share * (1 - share) for share in shares) / draws)
    assert abs(shares[0] - shares[1]) < 5.5 * spread, shares
    assert 0.3 < shares[0] < 0.9  # neither all nor none, so that a difference would be seen


def mixture(shift: float, scale: float = 1.0) -> Mixture:
    return Mixture([Normal(-4 + shift, scale), Normal(0, 0.5 * scale), Normal(5 - shift, 2 * scale)], [0.3, 0.3, 0.4])


@pytest.mark.parametrize("compiled", [True, False])
def test_S1_records_of_a_mixture_have_its_law(*, compiled: bool) -> None:
    models: list[Distribution] = [mixture(s, c) for s in (-0.3, -0.1, 0.1, 0.3) for c in (0.8, 0.93, 1.07, 1.25)]
    if not compiled:
        models.append(Mixture([Normal(0, 20), mixture(0.0)], [0.05, 0.95]))
    law = mixture(0.04, 1.04)
    coupling = TwoStageCoupling(ModelReference(models), candidates=2048)
    assert coupling.diagnose(law, records=8).shortfall < 0.01
    draws = 700 if compiled else 150
    found = tuples_of(coupling, law, records=8, draws=draws, key="mixture")
    normal = ndtri(law.cdf(found.reshape(-1)))
    assert fits(np.square(normal), freedom=1), "key: mixture"
    sums = np.square(normal.reshape(draws, 8).sum(axis=1)) / 8
    assert fits(sums, freedom=1), "key: mixture: independence within a tuple"
    if compiled:
        for wrong in (0.9, 1.1):
            assert not fits(np.square(ndtri(law.cdf(found.reshape(-1) * wrong))), freedom=1)
    else:
        assert not fits(np.square(1.25 * normal), freedom=1)
