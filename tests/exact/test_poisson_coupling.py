"""Couple I and the race on labels by replay, enumeration of points and dense grids: nothing here depends on luck."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import AtomRace
from accord.couplings.ratio_bounds import log_ratio_bound
from accord.couplings.reference import BATCH, IidReference
from accord.distributions import (
    Atoms,
    Categorical,
    Distribution,
    Mixture,
    Normal,
    Piecewise,
    PointMass,
    Product,
    Uniform,
)
from accord.randomness import SharedRandomness
from accord.theory import PoissonCoupling
from accord.theory.couplings.poisson import LAYER_BITS, _Layer, stages

SHARED = SharedRandomness("replay")
RULES = ["race", "earliest"]


class Broken:
    """A law whose density raises, whatever else it says."""

    dimension = 1
    measure = Normal(0, 1).measure

    def sample(self, size: int, generator: Any) -> Any:
        raise ArithmeticError

    def log_density(self, x: Any) -> NDArray[np.float64]:
        raise ArithmeticError


# --- isolation --------------------------------------------------------------------------------------------------------

NORMALS: list[Any] = [Normal(0.1 * i, 1 + 0.02 * i) for i in range(6)]
OTHERS: list[Any] = [
    ABSTAIN,
    None,
    Broken(),
    Normal(0, 30),
    Normal(3, 0.01),
    Uniform(50, 51),
    Normal([0, 0], np.eye(2)),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("records", [1, 3])
def test_L3_replacing_one_law_moves_no_other_key(rule: Any, records: int) -> None:
    coupling = PoissonCoupling(Normal(0, 4), rule=rule, most_points=3000)
    whole = coupling.couple(NORMALS, records=records, draws=7, shared=SHARED).keys
    assert sum(isinstance(key, bytes) for key in whole.flat) >= whole.size - 2
    for place, other in enumerate(OTHERS):
        place %= len(NORMALS)  # noqa: PLW2901
        changed: list[Any] = [*NORMALS[:place], other, *NORMALS[place + 1 :]]
        keys = coupling.couple(changed, records=records, draws=7, shared=SHARED).keys
        assert (np.delete(keys, place, axis=1) == np.delete(whole, place, axis=1)).all()


@pytest.mark.parametrize("rule", RULES)
def test_L3_a_law_alone_and_fewer_draws_give_the_same_keys(rule: Any) -> None:
    coupling = PoissonCoupling(Normal(0, 4), rule=rule)
    whole = coupling.couple(NORMALS, records=2, draws=40, shared=SHARED).keys
    alone = coupling.couple(NORMALS[3:4], records=2, draws=9, shared=SHARED).keys
    assert (alone[:, 0] == whole[:9, 3]).all()


def test_L3_labels_replacing_one_law_moves_no_other_key() -> None:
    laws: list[Any] = [Categorical(["a", "b", i], [3, 2, 1]) for i in range(5)]
    whole = AtomRace().couple(laws, records=1, draws=50, shared=SHARED).keys
    others: list[Any] = [ABSTAIN, Normal(0, 1), Broken(), PointMass("z")]
    for other in others:
        keys = AtomRace().couple([other, *laws[1:]], records=1, draws=50, shared=SHARED).keys
        assert (keys[:, 1:] == whole[:, 1:]).all()


# --- the rules by full enumeration of the points ---------------------------------------------------------------------

LAW = Normal([0.4, -0.2], [[0.8, 0.2], [0.2, 0.6]])
NU = Normal([0, 0], [[2, 0], [0, 2]])


def all_points(draw: int, *, records: int, batches: range) -> NDArray[np.float64]:
    reference = IidReference(NU)
    points = [reference.points(draw, batch, records=records, shared=SHARED) for batch in batches]
    return np.concatenate(points)


def log_ratio(points: NDArray[np.float64]) -> NDArray[np.float64]:
    flat = points.reshape(-1, 2)
    ratios: NDArray[np.float64] = (LAW.log_density(flat) - NU.log_density(flat)).reshape(len(points), -1).sum(axis=1)
    return ratios


def arrival_gaps(draw: int, batch: int) -> NDArray[np.float64]:
    return SHARED.stream("poisson", "arrivals", draw, batch).standard_exponential(BATCH)


@pytest.mark.parametrize("records", [1, 2])
def test_L4_S2_the_race_is_the_least_of_all_arrivals_over_densities(records: int) -> None:
    draws, batches = 30, range(60)
    coupling = PoissonCoupling(NU)
    keys = coupling.couple([LAW], records=records, draws=draws, shared=SHARED).keys[:, 0]
    read = coupling.points_read([LAW], records=records, draws=draws, shared=SHARED)[:, 0]
    bound = np.exp(records * log_ratio_bound(LAW, NU).seen)
    for draw in range(draws):
        scores = np.cumsum(np.concatenate([arrival_gaps(draw, batch) for batch in batches]))
        ratios = scores / np.exp(log_ratio(all_points(draw, records=records, batches=batches)))
        assert int.from_bytes(keys[draw], "little") == ratios.argmin()
        best = np.minimum.accumulate(np.append(np.inf, ratios))[:-1]
        assert read[draw] == np.argmax(scores >= bound * best)


@pytest.mark.parametrize("records", [1, 2])
def test_L1_the_earliest_point_is_the_first_below_the_density_in_any_envelope(records: int) -> None:
    draws, layers = 20, 8  # an envelope of 128, far above what the law needs
    keys = PoissonCoupling(NU, rule="earliest").couple([LAW], records=records, draws=draws, shared=SHARED).keys[:, 0]
    reference = IidReference(NU)
    for draw in range(draws):
        found = []
        for layer in range(layers):
            window = _Layer(draw, layer, reference=reference, records=records, shared=SHARED).window(25.0)
            below = window.log_heights <= log_ratio(window.points)
            found += list(zip(window.times[below], window.numbers[below], strict=True))
            lowest = (layer - 1) * np.log(2) if layer else -np.inf
            assert ((window.log_heights <= layer * np.log(2)) & (window.log_heights >= lowest)).all()
            assert (window.numbers >> LAYER_BITS == layer).all()
        assert int.from_bytes(keys[draw], "little") == min(found)[1]


@pytest.mark.parametrize("rule", RULES)
def test_a_key_decodes_to_its_point(rule: Any) -> None:
    coupled = PoissonCoupling(NU, rule=rule).couple([LAW, NU], records=3, draws=5, shared=SHARED)
    for draw in range(5):
        number = int.from_bytes(coupled.keys[draw, 0], "little")
        batch = IidReference(NU).points(draw, number // BATCH, records=3, shared=SHARED)
        assert (coupled.decode(draw, coupled.keys[draw, 0]) == batch[number % BATCH]).all()
        assert len(coupled.keys[draw, 0]) == 8
    if rule == "race":  # the reference itself takes the first point
        assert all(key == bytes(8) for key in coupled.keys[:, 1])


@pytest.mark.parametrize("most", [1, 7, 8, 64, 65, 1000, 16384])
def test_the_stages_cover_every_point_once(most: int) -> None:
    cut = stages(most)
    assert cut[0][0] == 0
    assert cut[-1][1] == most
    assert all(a[1] == b[0] and a[0] < a[1] for a, b in zip(cut, [*cut[1:], (most, most + 1)], strict=True))


# --- bounds of ratios -------------------------------------------------------------------------------------------------

GRID = np.linspace(-40, 40, 160_001)
DENSITIES: list[tuple[Distribution, Distribution, bool]] = [
    (Normal(0, 1), Normal(0, 4), True),
    (Normal(0.5, 0.7), Normal(-1, 4), True),
    (Uniform(0, 2), Normal(0, 4), True),
    (Piecewise([0, 1, 3], [3, 1]), Normal(1, 2), True),
    (Piecewise([0, 1, 3], [3, 1]), Piecewise([-1, 0.5, 2, 4], [1, 2, 3]), True),
    (Piecewise([0, 1, 3], [3, 1]), Piecewise([0.5, 2, 4], [1, 3]), True),
    (Piecewise([0, 1, 2], [1, 9]), Uniform(0, 1), True),
    (Normal(0, 1), Uniform(-4, 4), True),
    (Normal(4.5, 1), Piecewise([-4, 0, 4], [1, 2]), True),
    (Mixture([Normal(-1, 1), Normal(2, 1)], [1, 2]), Normal(0, 9), False),
    (Normal(1, 1), Mixture([Normal(-1, 1), Normal(2, 4)], [1, 2]), False),
    (Uniform(0, 1), Mixture([Uniform(5, 6), Uniform(-1, 2)], [1, 2]), True),
    (Uniform(0, 6), Mixture([Uniform(5, 6), Uniform(-1, 2)], [1, 2]), True),
    (Mixture([Normal(0, 1), Uniform(3, 4)], [1, 1]), Mixture([Normal(0, 2), Uniform(2, 5)], [1, 1]), False),
]


@pytest.mark.parametrize(("law", "reference", "least"), DENSITIES)
def test_S2_bounds_hold_on_a_dense_grid_and_closed_forms_are_met(
    *, law: Distribution, reference: Distribution, least: bool
) -> None:
    own = reference.log_density(GRID)
    ratios = law.log_density(GRID[own > -np.inf]) - own[own > -np.inf]
    bound = log_ratio_bound(law, reference).seen
    inner = np.sort(ratios)[-5]  # ends of closed boxes, which have no mass, set aside
    assert inner <= bound
    if least:
        assert bound == pytest.approx(inner, abs=2e-3)
    else:
        assert bound <= inner + np.log(4)


def test_S2_bounds_of_normal_laws_on_the_plane() -> None:
    law, reference = Normal([1, -1], [[0.9, 0.3], [0.3, 0.5]]), Normal([0, 0.5], [[2, -0.4], [-0.4, 1.5]])
    side = np.linspace(-9, 9, 901)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    top = (law.log_density(grid) - reference.log_density(grid)).max()
    assert top <= log_ratio_bound(law, reference).seen == pytest.approx(top, abs=1e-3)


ATOMS = Atoms([0, 1], [0.3, 0.2], rest=Normal(0, 1))
WIDE = Atoms([0, 1], [0.2, 0.3], rest=Normal(0, 4))
MASSES: list[tuple[Any, Distribution, float, bool]] = [
    (ATOMS, WIDE, np.log(2), True),  # the rests' ratio, which is above that of the atoms
    (Categorical([0, 1], [0.5, 0.5]), WIDE, np.log(2.5), True),
    (PointMass(0), WIDE, np.log(5), True),
    (PointMass(5), WIDE, -np.inf, False),
    (ATOMS, Normal(0, 4), 0.0, False),  # half of its mass, at a ratio of 2
    (Normal(0, 1), WIDE, np.log(4), True),
    (Normal(0, 1), PointMass(0), -np.inf, False),
    (PointMass(1), Categorical([1, 2], [1, 3]), np.log(4), True),
    (PointMass(True), Categorical([1, 2], [1, 3]), -np.inf, False),
    (Categorical(["a", "b"], [0.9, 0.1]), Categorical(["b", "a", "c"], [1, 2, 1]), np.log(1.8), True),
    (Categorical(["a", "z"], [0.9, 0.1]), Categorical(["b", "a", "c"], [1, 2, 1]), np.log(1.8), False),
    (PointMass([1, 2]), PointMass([1, 2]), 0.0, True),
    (PointMass([1, 2]), PointMass([2, 1]), -np.inf, False),
    (Normal(0, 1), Normal(0, 1), 0.0, True),
    (Normal(0, 2), Normal(0, 1), np.inf, False),
    (Normal([0, 0], np.diag([1.0, 1.0])), Normal([0, 0], np.diag([1.0, 4.0])), np.log(2), True),
    (
        Product([Normal(0, 1), Categorical(["a", "b"], [0.9, 0.1])]),
        Product([Normal(0, 4), Categorical(["a", "b"], [1, 1])]),
        np.log(3.6),
        True,
    ),
    (Product([Normal(0, 2), PointMass("b")]), Product([Normal(0, 1), PointMass("a")]), -np.inf, False),
    (None, Normal(0, 1), -np.inf, False),
    (Normal([0, 0], np.eye(2)), Normal(0, 1), -np.inf, False),
]


@pytest.mark.parametrize(("law", "reference", "seen", "dominated"), MASSES)
def test_S2_bounds_with_atoms_count_masses_at_the_atoms_of_the_reference(
    *, law: Any, reference: Distribution, seen: float, dominated: bool
) -> None:
    bound = log_ratio_bound(law, reference)
    assert bound.seen == pytest.approx(seen, abs=1e-9)
    assert (bound.everywhere < np.inf) == dominated


def test_S2_a_law_with_a_density_of_its_own_beside_atoms_has_no_known_bound() -> None:
    hidden = Product([ATOMS])  # both measures, and not on any list
    assert log_ratio_bound(hidden, WIDE).seen == np.inf


@pytest.mark.parametrize("records", [1, 4])
def test_ratios_of_tuples_are_sums_over_records(records: int) -> None:
    reference: IidReference = IidReference(WIDE)
    points = reference.points(3, 2, records=records, shared=SHARED)
    laws: Sequence[Any] = [ATOMS, ABSTAIN, Normal(0, 1), PointMass(0)]
    rows = reference.log_ratios(laws, points, records=records)
    for row, law in zip(rows, laws, strict=True):
        for value, point in zip(row, points, strict=True):
            total = 0.0
            for (x,) in point:
                at_atom = float(x) in {0.0, 1.0}
                below = WIDE.log_density([x])[0]
                above = -np.inf
                if law is ATOMS or (law is not ABSTAIN and at_atom == (type(law) is PointMass)):
                    above = law.log_density([x])[0]
                total += above - below
            assert value == pytest.approx(total)
    bounds = reference.log_bounds(laws, records=records)
    assert (rows <= bounds[:, None] + 1e-9).all()
