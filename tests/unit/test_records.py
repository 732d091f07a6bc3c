"""What the user passes becomes an array without one record deciding how another is read."""

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from accord.couplings import NormalLattice, RaceCoupling
from accord.errors import DataError, InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner, Learner
from accord.learning import PrivateSampler, partition
from accord.learning.blocks import count_units, fit_blocks
from accord.learning.records import as_records
from accord.randomness import SharedRandomness

BLOCKS = 10
FLOATS = np.random.default_rng(0).normal(size=200).tolist()
LABELS = np.random.default_rng(0).choice(list("abc"), size=200).tolist()
ODD: list[Any] = [
    *("x", b"\xffsecret", 1j, None, True, [1.0], [1.0, 2.0], ("a",), {}, object(), float("nan"), 10**400),
    *(Decimal("NaN"), np.ma.masked, np.array([1.0, 2.0]), "A" * 100_000),
]


def votes(data: list[Any], learner: Learner, coupling: Any) -> np.ndarray:
    records = as_records(data)
    shared = SharedRandomness(4)
    rows = partition(len(records), blocks=BLOCKS, in_place_key=shared)
    laws = fit_blocks(learner, records, blocks=rows, shared=shared)
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


def test_arrays_keep_their_type_and_shape() -> None:
    table = np.ones((5, 2), dtype=np.float32)
    assert as_records(table) is table
    assert as_records(np.arange(4)).shape == (4, 1)
    assert as_records(np.arange(4)).dtype == np.arange(4).dtype


@pytest.mark.parametrize("data", [np.zeros((2, 2, 2)), np.zeros((3, 0)), np.float64(3.0), "text", b"text"])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(InvalidParameter):
        as_records(data)


def test_empty_and_masked_data_are_refused() -> None:
    with pytest.raises(DataError, match="no records"):
        as_records([])
    with pytest.raises(InvalidParameter, match="masked"):
        as_records(np.ma.array([1.0, 2.0]))


MISSING: list[Any] = [None, float("nan"), np.float32("nan"), Decimal("NaN"), complex("nan"), np.datetime64("NaT", "s")]


@pytest.mark.parametrize("missing", [*MISSING, Decimal("sNaN"), np.ma.masked])
def test_every_kind_of_missing_unit_is_refused(missing: Any) -> None:
    with pytest.raises(DataError, match="no unit of privacy"):
        partition(["a", missing, "b"], blocks=2)


def test_masked_and_unhashable_units_are_refused() -> None:
    with pytest.raises(DataError, match="no unit of privacy"):
        partition(np.ma.array(["a", "b"], mask=[False, True]), blocks=1)
    with pytest.raises(DataError, match="no unit of privacy"):
        partition(np.array(["2020-01-01", "NaT"], dtype="M8[D]"), blocks=1)
    with pytest.raises(DataError, match="plain name"):
        partition(["a", ["b"]], blocks=1)


def test_tuples_are_names() -> None:
    assert count_units([("a", 1), ("a", 2), ("a", 1), ("b",)]) == 3


def test_a_word_for_the_unit_needs_the_units() -> None:
    """A release that protects single records must not be labelled, or charged, as one that protects persons."""
    sampler = PrivateSampler(GaussianLearner(), epsilon=2, delta="1e-3", blocks=20, records=20, draws=8)
    data = np.random.default_rng(0).normal(size=400)
    with pytest.raises(InvalidParameter, match="needs units="):
        sampler.release(data, unit="person")
    assert sampler.release(data, unit="record").guarantee.unit == "record"
    assert sampler.release(data, units=np.repeat(np.arange(200), 2), unit="person").guarantee.unit == "person"
