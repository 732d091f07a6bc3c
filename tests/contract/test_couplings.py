"""Every public coupling passes the suite; a new one must be given a case here."""

import inspect
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

import accord.couplings
import accord.theory
from accord.couplings import (
    AtomRace,
    DyadicCoupling,
    HashedLattice,
    ModelReference,
    NormalLattice,
    NormalReference,
    ParameterRounding,
    ProductCoupling,
    RaceCoupling,
    RecordByRecord,
    ShiftRounding,
    StatisticCoupling,
    TwoStageCoupling,
    agreement,
    coupling_for,
)
from accord.distributions import (
    Atoms,
    Categorical,
    Exponential,
    Gamma,
    Mixture,
    Normal,
    PointMass,
    Poisson,
    Product,
    Uniform,
)
from accord.testing import CouplingCase, check_coupling
from accord.testing.coupling_checks import check_poison
from accord.theory import PoissonCoupling, TuplePoissonCoupling

Floats = NDArray[np.float64]

LINE = [Normal(0.0, 1.0), Normal(0.1, 1.1), Normal(-1.0, 0.5)]
PLANE = [
    Normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]),
    Normal([0.05, 0.0], [[1.0, 0.55], [0.55, 1.1]]),
    Normal([5.0, 0.0], np.eye(2)),
]
ABC = ["a", "b", "c"]
LABELS = [Categorical(ABC, weights) for weights in ([5, 3, 2], [6, 3, 2], [1, 1, 8])]
MIXED = [Mixture([Normal(-2.0, 1.0), Normal(2.0, 0.5)], weights) for weights in ([0.5, 0.5], [0.55, 0.45], [0.9, 0.1])]
COUNTS = [Poisson(3.0), Poisson(3.15), Poisson(30.0)]
WAITS = [Exponential(1.0), Exponential(1.04), Exponential(1e-6)]
SHAPES = [Gamma(2.0, 1.0), Gamma(2.1, 0.97), Gamma(2.5, 0.9)]
PAIRS = [Product([first, second]) for first, second in zip(COUNTS, LABELS, strict=True)]
FAR = [Normal(1e6, 1.0), Exponential(1e9), Poisson(1e6), Categorical(["x", "y", "z"], [1, 1, 1])]


def total_variation_of_shifted(shift: float) -> float:
    return math.erf(shift / math.sqrt(8.0))


def uniform_scores(values: Floats) -> Floats:
    return np.asarray(ndtri(values), dtype=np.float64)


def rounded_parameters(law: Any, tuples: Floats) -> Floats:
    """Log scale and mean of the votes of `ShiftRounding`, uniform around the law's own in cells of its widths."""
    width = math.sqrt(12.0) / math.sqrt(tuples.shape[1])
    mean, spread = tuples[:, :, 0].mean(axis=1), tuples[:, :, 0].std(axis=1, ddof=1)
    own = math.sqrt(law.covariance[0][0])
    levels = np.stack([np.log(spread / own) * math.sqrt(2.0) / width, (mean - law.mean[0]) / (width * spread)], axis=1)
    return uniform_scores(levels + 0.5)[:, None, :]


def rounded_vector(law: Any, tuples: Floats) -> Floats:
    return uniform_scores((tuples[:, :1, :] - np.array(law.vector)) / np.array([0.5, 0.2]) + 0.5)


def shift_agreement() -> float:
    """Two laws of one scale: only the means can part, in cells whose width is as random as the scale's cell."""
    width = math.sqrt(12.0) / math.sqrt(20)
    half = width / math.sqrt(8.0)
    return 1 - 0.1 / width * math.sinh(half) / half


def single_agreement() -> float:
    """Theory S1 for one record of the first two Poisson laws: a sum over the whole numbers that matter."""
    numbers = np.arange(60.0)
    return float(agreement(*(np.exp(law.log_density(numbers)).tolist() for law in COUNTS[:2])))


TV_SHIFT = total_variation_of_shifted(0.2)
SHIFTED = [Normal(0.0, 1.0), Normal(0.2, 1.0), Normal(1.0, 1.0)]

CASES: dict[str, CouplingCase] = {
    "race": CouplingCase(coupling=RaceCoupling(ABC), laws=LABELS, records=12, agreement="race", others=FAR),
    "race, one record": CouplingCase(
        coupling=RaceCoupling(ABC),
        laws=LABELS,
        agreement=float(agreement([5 / 10, 3 / 10, 2 / 10], [6 / 11, 3 / 11, 2 / 11])),
        total_variation=6 / 11 - 5 / 10,
    ),
    "normal lattice": CouplingCase(
        coupling=NormalLattice(dimension=1), laws=LINE, records=20, agreement="race", others=FAR
    ),
    "normal lattice, plane": CouplingCase(
        coupling=NormalLattice(dimension=2), laws=PLANE, records=30, agreement="race", others=FAR
    ),
    "Poisson process, race": CouplingCase(
        coupling=PoissonCoupling(Normal(0.0, 9.0)), laws=LINE, agreement="race", others=FAR
    ),
    "Poisson process, mixtures": CouplingCase(
        coupling=PoissonCoupling(Normal(0.0, 16.0)), laws=MIXED, agreement="race", others=FAR
    ),
    "Poisson process, earliest point": CouplingCase(
        coupling=PoissonCoupling(Normal(0.0, 9.0), rule="earliest"),
        laws=SHIFTED,
        total_variation=TV_SHIFT,
        agreement=(1 - TV_SHIFT) / (1 + TV_SHIFT),
        others=FAR,
    ),
    "atoms": CouplingCase(coupling=AtomRace(), laws=LABELS, agreement="race", others=FAR),
    "atoms, record by record": CouplingCase(
        coupling=AtomRace(record_by_record=True),
        laws=LABELS,
        records=3,
        least_agreement=0.0,
        agreement=float(agreement([5 / 10, 3 / 10, 2 / 10], [6 / 11, 3 / 11, 2 / 11])) ** 3,
        others=FAR,
    ),
    "tuple Poisson": CouplingCase(coupling=TuplePoissonCoupling(step=2.0**-10), laws=LINE, records=2),
    "tuple Poisson, atoms with densities": CouplingCase(
        coupling=TuplePoissonCoupling(step=2.0**-8),
        laws=[Atoms([0.0], [mass], rest=Normal(0.0, 1.0)) for mass in (0.5, 0.6, 0.1)],
    ),
    "shift rounding": CouplingCase(
        coupling=ShiftRounding(dimension=1),
        laws=[Normal(0.0, 1.0), Normal(0.1, 1.0), Normal(-3.0, 0.2)],
        records=20,
        total_variation=1 - shift_agreement(),
        agreement=shift_agreement(),
        scores=rounded_parameters,
        others=FAR,
    ),
    "parameter rounding": CouplingCase(
        coupling=ParameterRounding(widths=[0.5, 0.2]),
        laws=[PointMass([3.0, 0.1]), PointMass([3.05, 0.12]), PointMass([0.0, 9.0])],
        records=2,
        total_variation=1 - 0.9 * 0.9,
        agreement=0.9 * 0.9,
        scores=rounded_vector,
        others=FAR,
    ),
    "dyadic": CouplingCase(coupling=DyadicCoupling(), laws=LINE, others=FAR, least_agreement=0.7),
    "hashed lattice": CouplingCase(coupling=HashedLattice(dimension=1), laws=MIXED, agreement="race", others=FAR),
    "hashed lattice, plane": CouplingCase(
        coupling=HashedLattice(dimension=2), laws=PLANE, agreement="race", others=[Normal([1e6, 0.0], np.eye(2))]
    ),
    "two stages": CouplingCase(
        coupling=TwoStageCoupling(NormalReference(Normal(0.0, 1.0), strength=60), candidates=512),
        laws=[Normal(0.0, 1.0), Normal(0.05, 1.1), Normal(0.1, 0.95)],
        records=30,
        agreement="race",
        others=FAR,
    ),
    "statistics, Poisson": CouplingCase(
        coupling=StatisticCoupling(Poisson), laws=COUNTS, records=40, agreement="race", others=FAR
    ),
    "statistics, exponential": CouplingCase(
        coupling=StatisticCoupling(Exponential), laws=WAITS, records=40, agreement="race", others=FAR
    ),
    "statistics, gamma": CouplingCase(
        coupling=StatisticCoupling(Gamma), laws=SHAPES, records=60, agreement="race", others=[Gamma(0.3, 1e9)]
    ),
    "statistics, point masses": CouplingCase(
        coupling=StatisticCoupling(PointMass),
        laws=[PointMass(-0.0), PointMass("0"), PointMass(1.0), PointMass(value=True)],
        records=3,
        total_variation=1.0,
        agreement=0.0,
        others=FAR,
    ),
    "product": CouplingCase(
        coupling=ProductCoupling([StatisticCoupling(Poisson), RaceCoupling(ABC)]), laws=PAIRS, records=10, others=FAR
    ),
    "record by record": CouplingCase(
        coupling=RecordByRecord(StatisticCoupling(Poisson)),
        laws=COUNTS,
        records=4,
        least_agreement=0.0,
        agreement=single_agreement() ** 4,
        others=FAR,
    ),
}
SECOND = {"normal lattice, plane", "hashed lattice, plane", "Poisson process, mixtures", "statistics, gamma"}
"""Left to the long tests: their classes have another case."""


def is_coupling(value: object) -> bool:
    return inspect.isclass(value) and hasattr(value, "couple") and not getattr(value, "_is_protocol", False)


def test_every_public_coupling_has_a_case() -> None:
    rooms = (accord.couplings, accord.theory)
    offered: list[Any] = [getattr(room, name) for room in rooms for name in room.__all__]
    public = {found.__name__ for found in offered if is_coupling(found)}
    assert public == {type(case.coupling).__name__ for case in CASES.values()}


@pytest.mark.parametrize("name", [name for name in CASES if name not in SECOND])
def test_every_public_coupling_passes_the_suite(name: str) -> None:
    check_coupling(CASES[name], runs=1_000)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_every_public_coupling_passes_the_suite_with_many_draws(name: str) -> None:
    check_coupling(CASES[name], runs=20_000)


def test_coupling_for_gives_the_joint_coupling_of_a_family() -> None:
    assert coupling_for(LINE[0], records=20) == NormalLattice(dimension=1)
    assert coupling_for(LABELS[0], records=20) == RaceCoupling(ABC)
    assert coupling_for(PAIRS[0], records=20) == ProductCoupling([StatisticCoupling(Poisson), RaceCoupling(ABC)])
    assert coupling_for(Gamma, records=12) == coupling_for(SHAPES[0], records=20) == StatisticCoupling(Gamma)


HUMPS: list[Any] = [Mixture([Normal(0.0, 1.0), Normal(3.0 + shift, 1.0)], [0.5, 0.5]) for shift in (0.0, 0.1, 0.2)]
BOXES: list[Any] = [Uniform([0.0], [1.0 + shift]) for shift in (0.0, 0.1, 0.2)]


@pytest.mark.parametrize("models", [HUMPS, BOXES], ids=["mixtures", "boxes"])
def test_L3_a_law_that_answers_nothing_abstains_alone_among_models(models: list[Any]) -> None:
    reference = ModelReference(models)
    check_poison(TwoStageCoupling(reference, candidates=64), models, records=5)
    check_poison(PoissonCoupling(reference, most_points=128), models, records=5)
