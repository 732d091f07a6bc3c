"""Couple I and the race on labels: refusals, odd laws, odd numbers, odd labels."""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import AtomRace, Coupling, ListsAtoms, RaceCoupling, TupleReference
from accord.couplings.reference import BATCH, IidReference
from accord.distributions import Atoms, Categorical, Measure, Mixture, Normal, Piecewise, PointMass, Uniform
from accord.errors import InvalidParameter, WrongRandomness
from accord.randomness import SharedRandomness
from accord.theory import PoissonCoupling

SHARED = SharedRandomness("unit")
RULES = ["race", "earliest"]


def keys_of(coupling: Any, laws: Sequence[Any], *, draws: int = 6, records: int = 1) -> NDArray[Any]:
    keys: NDArray[Any] = coupling.couple(laws, records=records, draws=draws, shared=SHARED).keys
    assert all(key is ABSTAIN or type(key) is bytes for key in keys.flat)
    return keys


def abstains(keys: NDArray[Any], column: int) -> bool:
    return all(key is ABSTAIN for key in keys[:, column])


def votes(keys: NDArray[Any], column: int) -> bool:
    return all(key is not ABSTAIN for key in keys[:, column])


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((None,), {}),
        ((ABSTAIN,), {}),
        (("normal",), {}),
        ((Normal(0, 1),), {"rule": "latest"}),
        ((Normal(0, 1),), {"rule": ["race"]}),
        ((Normal(0, 1),), {"most_points": 0}),
        ((Normal(0, 1),), {"most_points": 1.5}),
        ((Normal(0, 1),), {"most_points": 2**41}),
    ],
)
def test_impossible_parameters_are_refused(arguments: tuple[Any], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        PoissonCoupling(*arguments, **options)


@pytest.mark.parametrize("coupling", [PoissonCoupling(Normal(0, 1)), AtomRace()])
def test_impossible_numbers_and_secret_sources_are_refused(coupling: Any) -> None:
    for wrong in ({"records": 0}, {"draws": 0}, {"draws": 1.5}):
        with pytest.raises(InvalidParameter):
            coupling.couple([], **{"records": 1, "draws": 1, "shared": SHARED, **wrong})
    with pytest.raises(WrongRandomness):
        coupling.couple([], records=1, draws=1, shared=3)
    assert coupling.couple([], records=1, draws=4, shared=SHARED).keys.shape == (4, 0)
    assert coupling.isolated is True
    checked: Coupling = coupling
    assert checked is coupling


def test_references_are_plain_values() -> None:
    coupling = PoissonCoupling(Uniform([0, 0], [1, 2]), rule="earliest", most_points=99)
    assert coupling == PoissonCoupling(Uniform([0, 0], [1, 2]), rule="earliest", most_points=99)
    assert PoissonCoupling.counting(["a", "b"]) == PoissonCoupling(Categorical(["a", "b"], [1, 1]))
    assert pickle.loads(pickle.dumps(coupling)) == coupling  # noqa: S301
    assert isinstance(IidReference(Normal(0, 1)), TupleReference)


# --- laws that fail, and those that the reference hardly sees ---------------------------------------------------------


class Odd:
    """A foreign law with a density of one's choice; it says Lebesgue."""

    dimension = 1
    measure = Measure.LEBESGUE

    def __init__(self, density: Any) -> None:
        self._density = density

    def sample(self, size: int, generator: Any) -> Any:
        return generator.standard_normal((size, 1))

    def log_density(self, x: Any) -> Any:
        return self._density(np.asarray(x, dtype=float).ravel())


def nothing(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(len(x), -np.inf)


def compact(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Triangles around 0 and 1, as a kernel of compact support gives them."""
    with np.errstate(divide="ignore"):
        bumps = [np.maximum(1 - np.abs(x - centre) / 0.1, 0) / 0.1 for centre in (0, 1)]
        return np.asarray(np.log(sum(bumps) / 2))


@pytest.mark.parametrize("rule", RULES)
def test_E46_two_densities_that_are_zero_at_one_point_reject_it_and_give_no_nan(rule: Any) -> None:
    law = Odd(compact)
    reference = Mixture([Uniform(-0.5, 1.5), Uniform(8, 10)], [1, 1])  # at 9 the law has nothing
    rows = IidReference(reference).log_ratios([law, Odd(nothing)], np.full((BATCH, 1, 1), 9.0), records=1)
    assert (rows == -np.inf).all()
    outside = IidReference(reference).log_ratios([law, Normal(0, 1)], np.full((BATCH, 1, 1), 5.0), records=1)
    assert (outside == -np.inf).all()  # where the reference itself has nothing
    coupled = PoissonCoupling(reference, rule=rule, most_points=200).couple([law], records=1, draws=20, shared=SHARED)
    if rule == "race":
        assert votes(coupled.keys, 0)
        values = coupled.values[:, 0, 0, 0].astype(float)
        assert (np.minimum(np.abs(values), np.abs(values - 1)) < 0.1).all()
    else:
        assert abstains(coupled.keys, 0)  # no bound is known


@pytest.mark.parametrize("rule", RULES)
def test_E46_supports_that_do_not_meet_end_and_abstain(rule: Any) -> None:
    pairs: list[tuple[Any, Any]] = [
        (Uniform(5, 6), Uniform(0, 1)),
        (Uniform(1, 2), Uniform(0, 1)),  # they touch
        (Piecewise([0, 1, 2, 3], [1, 0, 1]), Uniform(1.2, 1.8)),
        (PointMass(5), Uniform(0, 9)),
        (Normal(0, 1), PointMass(0)),
        (Categorical(["z"], [1]), Categorical(["a", "b"], [1, 1])),
        (Normal(0, 1), Categorical(["a", "b"], [1, 1])),
        (Odd(nothing), Normal(0, 1)),
        (Normal([0, 0], np.eye(2)), Normal(0, 1)),
    ]
    for law, reference in pairs:
        keys = keys_of(PoissonCoupling(reference, rule=rule, most_points=300), [law, reference], records=2)
        assert abstains(keys, 0), law
        assert votes(keys, 1)


@pytest.mark.parametrize("rule", RULES)
def test_E47_a_density_far_above_one_is_nothing_special(rule: Any) -> None:
    narrow = [Normal(1e-4 * i, 1e-8) for i in range(2)]
    coupling = PoissonCoupling(Normal(0, 4e-8), rule=rule)
    assert narrow[0].log_density([0.0])[0] > 5
    coupled = coupling.couple([*narrow, Normal(0, 4e-8)], records=1, draws=40, shared=SHARED)
    assert all(votes(coupled.keys, column) for column in range(3))
    assert np.abs(coupled.values.astype(float)).max() < 2e-3
    equal = (coupled.keys[:, 0] == coupled.keys[:, 1]).mean()
    assert 0.1 < equal < 0.95  # N(0, 1) and N(1, 1), scaled


@pytest.mark.parametrize("rule", RULES)
def test_E48_far_away_laws_and_long_tuples_work_in_logs(rule: Any) -> None:
    coupling = PoissonCoupling(Normal(1e200, 1e-300), rule=rule, most_points=500)
    keys = keys_of(coupling, [Normal(0, 1), Normal(1e200, 1e-300), Mixture([Normal(-1e200, 1), Normal(0, 1)], [1, 1])])
    assert abstains(keys, 0)
    assert votes(keys, 1)
    assert abstains(keys, 2)
    dimension, records = 25, 40  # log densities near -1400 at every point
    reference = Normal(np.zeros(dimension), np.eye(dimension) * 1.0005)
    laws = [Normal(np.zeros(dimension), np.eye(dimension)), Normal(np.full(dimension, 1e-4), np.eye(dimension))]
    keys = keys_of(PoissonCoupling(reference, rule=rule), laws, records=records)
    assert votes(keys, 0)
    assert votes(keys, 1)


@pytest.mark.parametrize("rule", RULES)
def test_a_law_that_fails_in_any_way_is_its_own_abstention(rule: Any) -> None:
    def broken(x: NDArray[np.float64]) -> Any:
        raise ZeroDivisionError

    odd: list[Any] = [Odd(broken), Odd(lambda x: x[:3]), Odd(lambda x: x * np.nan), object(), None, 3, ABSTAIN, Normal]
    keys = keys_of(PoissonCoupling(Normal(0, 4), rule=rule, most_points=200), [*odd, Normal(0, 1)])
    assert all(abstains(keys, column) for column in range(len(odd)))
    assert (
        keys[:, -1] == keys_of(PoissonCoupling(Normal(0, 4), rule=rule, most_points=200), [Normal(0, 1)])[:, 0]
    ).all()


def test_a_cap_ends_in_the_abstention_of_that_law_alone() -> None:
    laws: list[Any] = [Normal(0, 1e-8), Normal(0, 1)]
    for rule in RULES:
        keys = keys_of(PoissonCoupling(Normal(0, 2), rule=rule, most_points=100), laws, draws=30)  # type: ignore[arg-type]
        assert abstains(keys, 0)
        assert votes(keys, 1)
    read = PoissonCoupling(Normal(0, 2), most_points=100).points_read(laws, records=1, draws=30, shared=SHARED)
    assert (read[:, 0] == 100).all()


def test_without_a_bound_the_race_reads_exactly_the_most_points() -> None:
    coupling = PoissonCoupling(Normal(0, 1), most_points=150)
    read = coupling.points_read([Normal(0, 2), Normal(0, 0.5)], records=1, draws=9, shared=SHARED)
    assert (read[:, 0] == 150).all()
    assert read[:, 1].mean() < 10


class Unkind:
    """A reference on tuples that raises for all where one law is bad, and says NaN for a bound."""

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> NDArray[Any]:
        return shared.stream("unkind", draw, batch).random((BATCH, 1))

    def log_ratios(self, laws: Sequence[Any], points: NDArray[Any], *, records: int) -> NDArray[Any]:
        if "bad" in laws:
            raise RuntimeError
        rows = {"flat": np.zeros(len(points)), "endless": np.full(len(points), np.inf), "nan": points[:, 0] * np.nan}
        return np.array([rows.get(law, np.full(len(points), -np.inf)) for law in laws])

    def log_bounds(self, laws: Sequence[Any], *, records: int) -> NDArray[Any]:
        return np.array([np.nan if law == "no bound" else 0.0 for law in laws])

    def decode(self, point: Any, *, draw: int, number: int, records: int, shared: SharedRandomness) -> NDArray[Any]:
        return np.full((records, 1), point[0])


@pytest.mark.parametrize("rule", RULES)
def test_a_reference_of_ones_own_cannot_let_one_law_break_another(rule: Any) -> None:
    coupling = PoissonCoupling(Unkind(), rule=rule, most_points=64)
    laws = ["bad", "flat", "endless", "nan", "no bound", "other"]
    coupled = coupling.couple(laws, records=3, draws=8, shared=SHARED)
    assert votes(coupled.keys, 1)
    assert all(abstains(coupled.keys, column) for column in (0, 2, 3, 4, 5))
    alone = coupling.couple([ABSTAIN, "flat"], records=3, draws=8, shared=SHARED)
    assert (coupled.keys[:, 1] == alone.keys[:, 1]).all()
    assert coupled.decode(0, coupled.keys[0, 1]).shape == (3, 1)


# --- labels that nobody lists -----------------------------------------------------------------------------------------


def test_E43_labels_that_are_equal_meet_and_others_do_not() -> None:
    laws = [PointMass(value) for value in (0.0, -0.0, True, 1, 1.0, 0.3, 0.1 + 0.2, "1", (1, "a"), (True, "a"))]
    keys = keys_of(AtomRace(), laws)
    names = [keys[0, column] for column in range(len(laws))]
    assert (keys == names).all()  # a constant is taken in every draw
    assert names[0] == names[1]
    assert names[3] == names[4]
    assert len(set(names)) == 8
    coupled = AtomRace().couple(laws, records=1, draws=1, shared=SHARED)
    back = [coupled.decode(0, key)[0, 0] for key in coupled.keys[0]]
    assert back == [0, 0, True, 1, 1, 0.3, 0.1 + 0.2, "1", (1, "a"), (True, "a")]
    assert [type(value) is bool or type(value) is np.bool_ for value in back].count(True) == 1


class Listed:
    """A law of countable support; what it lists is given."""

    dimension = 1
    measure = Measure.COUNTING

    def __init__(self, labels: Any, masses: Any) -> None:
        self._lists = labels, masses

    def sample(self, size: int, generator: Any) -> Any:
        raise NotImplementedError

    def log_density(self, x: Any) -> Any:
        raise NotImplementedError

    def support_atoms(self, mass: float) -> Any:
        assert 1 - 1e-9 < mass < 1
        return self._lists


def test_E43_labels_without_canonical_bytes_are_the_abstention_of_their_law() -> None:
    nan = float("nan")
    odd: list[Any] = [
        Listed([1, nan], [0.5, 0.5]),
        Listed([1, None], [0.5, 0.5]),
        Listed([Fraction(1, 2)], [1.0]),
        Listed([1, 2], [0.5, nan]),
        Listed([1, 2], [1.5, -0.5]),
        Listed([1, 2], [1.0]),
        Listed([], []),
        Listed([1], [np.inf]),
        Listed(5, 5),
        Atoms([0], [0.5], rest=Normal(0, 1)),
        Normal(0, 1),
        PointMass([1, 2]),
        object(),
        ABSTAIN,
    ]
    assert isinstance(odd[0], ListsAtoms)
    keys = keys_of(AtomRace(), [*odd, Listed([3], [1.0])])
    assert all(abstains(keys, column) for column in range(len(odd)))
    assert votes(keys, len(odd))
    assert abstains(keys_of(AtomRace(most_atoms=2), [Categorical([1, 2, 3], [1, 1, 1])]), 0)


def test_E44_neither_the_order_of_labels_nor_how_a_law_is_written_matters() -> None:
    labels, weights = ["a", 2, (3, "c"), True], [0.1, 0.2, 0.3, 0.4]
    laws: list[Any] = [
        Categorical(labels, weights),
        Categorical(labels[::-1], weights[::-1]),
        Listed([*labels, "none"], [*weights, 0.0]),
        Mixture([Categorical(labels[:2], [1, 2]), Categorical(labels[2:], [3, 4])], [0.3, 0.7]),
    ]
    keys = keys_of(AtomRace(), laws, draws=200)
    assert (keys == keys[:, :1]).all()
    assert len(set(keys[:, 0])) == 4
    numbers = keys_of(AtomRace(), [Atoms([1, 2.5], [0.5, 0.5]), Categorical([2.5, 1], [1, 1])], draws=50)
    assert (numbers[:, 0] == numbers[:, 1]).all()


def test_E44_votes_do_not_depend_on_the_hash_seed_or_on_who_came_first() -> None:
    code = (
        "from accord.couplings import AtomRace\nfrom accord.distributions import Categorical\n"
        "from accord.randomness import SharedRandomness\n"
        "laws = [Categorical(list({'a', 'b', 'c'}), [1, 1, 1]), Categorical(list({'c', 'd', 'x'}), [1, 1, 1])]\n"
        "keys = AtomRace().couple(laws, records=1, draws=20, shared=SharedRandomness(1)).keys\n"
        "print(keys.tolist())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    laws = [Categorical(["a", "b"], [1, 1]), Categorical(["b", "c"], [1, 1])]
    assert (keys_of(AtomRace(), laws) == keys_of(AtomRace(), laws[::-1])[:, ::-1]).all()


def test_a_label_of_no_weight_is_never_taken() -> None:
    law = Categorical(["a", "b", "c"], [0.5, 0.0, 0.5])
    coupled = AtomRace().couple([law], records=1, draws=300, shared=SHARED)
    assert set(coupled.values[:, 0, 0, 0]) == {"a", "c"}


def test_several_records_must_be_asked_for() -> None:
    law = Categorical(["a", "b"], [1, 1])
    with pytest.raises(InvalidParameter, match="record_by_record"):
        AtomRace().couple([law], records=2, draws=1, shared=SHARED)
    with pytest.raises(InvalidParameter):
        AtomRace(record_by_record=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        AtomRace(most_atoms=0)
    coupled = AtomRace(record_by_record=True).couple([law, law], records=5, draws=40, shared=SHARED)
    assert (coupled.keys[:, 0] == coupled.keys[:, 1]).all()
    tuples = coupled.values[:, 0, :, 0]
    assert tuples.shape == (40, 5)
    assert len({tuple(row) for row in tuples}) > 10  # records of a tuple are not all one


def test_many_draws_are_the_same_as_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = [Categorical(range(50), range(1, 51)), Categorical(range(20, 70), range(1, 51))]
    whole = keys_of(AtomRace(), laws, draws=30)
    monkeypatch.setattr("accord.couplings.atom_race._CELLS_AT_ONCE", 120)
    assert (keys_of(AtomRace(), laws, draws=30) == whole).all()


def test_listed_categories_and_unlisted_ones_have_one_law_of_agreement_but_other_keys() -> None:
    """The two races are different objects: nobody may mix their keys."""
    law = Categorical(["a", "b"], [1, 1])
    listed = RaceCoupling(["a", "b"]).couple([law], records=1, draws=3, shared=SHARED).keys
    assert not set(listed.flat) & set(keys_of(AtomRace(), [law]).flat)
