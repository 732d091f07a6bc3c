"""What the user passes becomes an array without one record deciding how another is read."""

import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from accord import PrivateDensity
from accord.core import Records, cells_read_by
from accord.core.blocks import fit_blocks
from accord.core.cells import as_number
from accord.couplings import NormalLattice, RaceCoupling
from accord.distributions import Categorical, Distribution
from accord.errors import InvalidParameter, SchemaMismatch
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner, Learner, traits
from accord.learners.traits import read_for
from accord.learning import PrivateLearner, PrivateSampler, partition
from accord.ledger import Ledger
from accord.randomness import SharedRandomness
from accord.synthesis import synthesise
from accord.synthesis.discovery import discover

BLOCKS = 10
FLOATS = np.random.default_rng(0).normal(size=200).tolist()
LABELS = np.random.default_rng(0).choice(list("abc"), size=200).tolist()
ODD: list[Any] = [
    *("x", b"\xffsecret", 1j, None, True, [1.0], [1.0, 2.0], ("a",), {}, object(), float("nan"), 10**400),
    *(Decimal("NaN"), np.ma.masked, np.array([1.0, 2.0]), "A" * 100_000),
]


def votes(data: list[Any], learner: Learner, coupling: Any) -> np.ndarray:
    records = Records.of(data, cells=cells_read_by(learner))
    shared = SharedRandomness(4)
    rows = partition(records, blocks=BLOCKS, in_place_key=shared)
    laws = fit_blocks(learner, records.rows, blocks=rows, shared=shared)
    keys: np.ndarray = coupling.couple(laws, records=20, draws=3, shared=shared).keys
    return keys


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__ + str(len(repr(odd))))
@pytest.mark.parametrize("kind", ["numbers", "labels", "rows of one"])
def test_one_odd_record_of_a_list_moves_one_block(kind: str, odd: Any) -> None:
    data: list[Any] = {"numbers": FLOATS, "labels": LABELS, "rows of one": [(x,) for x in FLOATS]}[kind]
    learner: Learner = EmpiricalLearner(list("abc")) if kind == "labels" else GaussianLearner()
    coupling = RaceCoupling(list("abc")) if kind == "labels" else NormalLattice(dimension=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = votes(data, learner, coupling)
        after = votes([*data[:17], odd, *data[18:]], learner, coupling)
    assert (before != after).any(axis=0).sum() <= 1
    assert all(isinstance(vote, bytes) for vote in before.flat)


class ReadsType:
    """Gives another law where the array is not one of ints or objects: it reads what the container was."""

    def __init__(self, cells: str) -> None:
        self.cells = cells

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        kinds = {type(cell).__name__ for cell in records.ravel() if cell is not None and cell == cell}  # noqa: PLR0124
        seen = f"{records.dtype} {sorted(kinds)}"
        return Categorical([seen, "other"], [1.0, 0.0])


WHOLE = np.arange(200)
GAPS: list[tuple[str, Any, Any]] = [
    ("int array and one NaN", WHOLE, np.where(WHOLE == 17, np.nan, WHOLE)),
    ("int array and one half", WHOLE, np.where(WHOLE == 17, 0.5, WHOLE)),
    ("int array and one text", WHOLE.astype(object), np.array([*range(17), "x", *range(18, 200)], dtype=object)),
    ("masked", WHOLE, np.ma.array(WHOLE, mask=WHOLE == 17)),
    ("masked objects", WHOLE, np.ma.array(WHOLE.astype(object), mask=WHOLE == 17)),
    ("arrow", pa.array(WHOLE), pa.array([None if cell == 17 else cell for cell in WHOLE.tolist()])),
    ("list", WHOLE.tolist(), [*range(17), None, *range(18, 200)]),
    ("small ints and a large one", WHOLE.astype(np.int8), np.where(WHOLE.astype(np.int8) == 17, 1000, WHOLE)),
]


@pytest.mark.parametrize("cells", ["numbers", "labels"])
@pytest.mark.parametrize(("before", "after"), [gap[1:] for gap in GAPS], ids=[gap[0] for gap in GAPS])
def test_A15_one_cell_that_changes_the_container_moves_one_block(before: Any, after: Any, cells: str) -> None:
    seen = []
    for data in (before, after):
        learner = ReadsType(cells)
        given = Records.of(data, cells=cells_read_by(learner))
        rows = partition(given, blocks=40, in_place_key=SharedRandomness(4))
        laws = fit_blocks(learner, given.rows, blocks=rows, shared=SharedRandomness(4))
        seen.append([repr(law) for law in laws])
    assert sum(one != other for one, other in zip(*seen, strict=True)) <= 1


class Blocks:
    """Keeps what each block was given."""

    cells = "numbers"

    def __init__(self, seen: list[NDArray[Any]]) -> None:
        self.seen = seen

    def __deepcopy__(self, memo: object) -> "Blocks":
        return self

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        self.seen.append(records.copy())
        return Categorical(["no", "yes"], [1.0, 0.0])


def test_A15_the_trait_of_the_learner_decides_what_blocks_are() -> None:
    for cells, kind in (("numbers", np.float64), ("labels", object)):
        for data in (WHOLE, WHOLE.astype(float), WHOLE.tolist(), np.where(WHOLE == 3, np.nan, WHOLE)):
            seen: list[NDArray[Any]] = []
            learner = Blocks(seen)
            learner.cells = cells
            coupling = RaceCoupling(["no", "yes"])
            PrivateSampler(learner, epsilon=1, delta="1e-3", blocks=40, records=3, coupling=coupling).release(data)
            assert {records.dtype for records in seen} == {np.dtype(kind)}


@pytest.mark.parametrize("units", [150, 2000, np.int64(150), np.array(150), "a" * 400])
def test_A5_a_number_is_never_taken_for_units(units: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=9, delta=".5")
    data = np.random.default_rng(0).normal(size=400)
    learner = GaussianLearner()
    sampler = PrivateSampler(learner, epsilon=2, delta="1e-3", blocks=20, records=20, draws=8)
    private = PrivateLearner(learner, epsilon=2, delta="1e-3", blocks=20, records=20, draws=8)
    texts = [pa.array(["1"] * 400)]
    releases: list[Callable[[], Any]] = [
        lambda: sampler.release(data, units=units, unit="person", ledger=ledger),
        lambda: private.release(data, units=units, unit="person", ledger=ledger),
        lambda: synthesise(data, learner=learner, epsilon=2, delta="1e-3", units=units, unit="person", ledger=ledger),
        lambda: discover(texts, names=["a"], epsilon=1, delta="1e-3", units=units, unit="person", ledger=ledger),
        lambda: PrivateDensity(learner, epsilon=1, delta="1e-3", unit="person").fit(
            data[:, None], groups=units, ledger=ledger
        ),
    ]
    for release in releases:
        with pytest.raises(InvalidParameter, match="one unit a record"):
            release()
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("data", [np.array(["1", "2"] * 200), [{"a": 1.0}] * 400, pa.array(["1"] * 400)])
def test_B7_what_holds_no_numbers_is_refused_before_spending(data: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=9, delta=".5")
    with pytest.raises((InvalidParameter, SchemaMismatch), match="Nothing was spent"):
        synthesise(data, learner=GaussianLearner(), epsilon=2, delta="1e-3", ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_word_for_the_unit_needs_the_units() -> None:
    """A release that protects single records must not be labelled, or charged, as one that protects persons."""
    sampler = PrivateSampler(GaussianLearner(), epsilon=2, delta="1e-3", blocks=20, records=20, draws=8)
    data = np.random.default_rng(0).normal(size=400)
    with pytest.raises(InvalidParameter, match="needs units="):
        sampler.release(data, unit="person")
    assert sampler.release(data, unit="record").guarantee.unit == "record"
    assert sampler.release(data, units=np.repeat(np.arange(200), 2), unit="person").guarantee.unit == "person"


OF_ONE_COLUMN: list[Learner] = [EmpiricalLearner([1, 2]), HistogramLearner([0, 1, 2]), GaussianLearner(dimension=1)]


@pytest.mark.parametrize("learner", OF_ONE_COLUMN, ids=lambda learner: type(learner).__name__)
def test_A15_a_learner_of_one_column_declares_it_and_no_row_decides_otherwise(learner: Any) -> None:
    rows = [[1], [2], [1, 2], None, 2, [1, 2], [1, 2], [1, 2]]  # most are of two cells
    read = read_for(learner, rows, units=None, unit=None).rows[:, 0].tolist()
    assert list(map(repr, map(as_number, read))) == "1.0 2.0 nan nan 2.0 nan nan nan".split()  # noqa: SIM905 - short
    for data in (np.ones((4, 2)), Records.of(np.ones((4, 2)))):
        with pytest.raises(InvalidParameter, match="must have 1 columns, as declared"):
            read_for(learner, data, units=None, unit=None)


def test_A15_a_release_of_a_list_is_of_the_columns_that_the_learner_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rows are too long: they are missing for a learner of one column, and refused where none is known."""
    rows = [[float(number % 7)] if number % 2 else [1.0, 2.0] for number in range(400)]
    sampler: dict[str, Any] = {"epsilon": 2, "delta": "1e-3", "blocks": 20, "records": 20, "draws": 8}
    assert PrivateSampler(GaussianLearner(dimension=1), **sampler).release(rows).guarantee.epsilon == 2
    with pytest.raises(InvalidParameter, match=r"columns=d\).*Nothing was spent"):
        PrivateSampler(GaussianLearner(), **sampler).release(rows)
    monkeypatch.setattr(traits, "columns_of", lambda _: None)  # a broken variant that asks the rows
    with pytest.raises(InvalidParameter, match="Nothing was spent"):
        PrivateSampler(GaussianLearner(dimension=1), **sampler).release(rows)
