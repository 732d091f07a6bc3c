"""Comparisons of real and synthetic tables, by two routes."""

import math
from typing import Any

import numpy as np
import pytest

from accord.errors import DataError, InvalidParameter
from accord.evaluation import evaluate, train_synthetic_test_real
from accord.randomness import SharedRandomness
from accord.tables import Column, Schema

LETTERS = Column(name="letter", kind="category", categories=("a", "b", "c"))
SIZE = Column(name="size", kind="number")
WEIGHT = Column(name="weight", kind="number")
SCHEMA = Schema(columns=(LETTERS, SIZE, Column(name="id", kind="id"), WEIGHT))


def made(rows: int, *, seed: int, noise: float = 0.5) -> list[Any]:
    generator = np.random.default_rng(seed)
    letter = generator.integers(0, 3, size=rows).astype(np.int32)
    size = generator.normal(letter, noise, size=rows)
    return [letter, size, 2 * size + generator.normal(0, noise, size=rows)]


def test_a_table_against_itself_is_at_distance_zero() -> None:
    table = made(500, seed=1)
    found = evaluate(table, table, schema=SCHEMA)
    assert [column.name for column in found.columns] == ["letter", "size", "weight"]
    assert [pair.names for pair in found.pairs] == [("letter", "size"), ("letter", "weight"), ("size", "weight")]
    assert found.one_way == 0
    assert found.two_way == 0
    assert found.correlation_error == 0
    assert (found.real, found.synthetic) == (500, 500)
    assert all(0 < column.floor < 0.2 for column in found.columns)


def test_distances_by_hand() -> None:
    schema = Schema(columns=(LETTERS, Column(name="x", kind="number", edges=(0.0, 1.0, 2.0))))
    real = [np.array([0, 0, 1, -1]), np.array([0.5, 1.5, np.nan, 0.5])]
    synthetic = [np.array([0, 1, 1, 1]), np.array([0.5, 0.5, 1.0, 9.0])]
    found = evaluate(real, synthetic, schema=schema)
    assert found.columns[0].distance == pytest.approx(0.5)  # (1/2, 1/4, 0, 1/4) against (1/4, 3/4, 0, 0)
    assert found.columns[1].distance == pytest.approx(0.25)  # (1/2, 1/4, 1/4) against (1/2, 1/2, 0)
    pairs_real = {(0, 0): 1, (0, 1): 1, (1, 2): 1, (3, 0): 1}
    pairs_made = {(0, 0): 1, (1, 0): 1, (1, 1): 2}
    both = set(pairs_real) | set(pairs_made)
    by_hand = sum(abs(pairs_real.get(cell, 0) - pairs_made.get(cell, 0)) for cell in both) / 8
    assert found.pairs[0].distance == pytest.approx(by_hand)
    assert found.correlation_error is None


def test_correlations_as_numpy_has_them() -> None:
    real, synthetic = made(1000, seed=1), made(800, seed=2, noise=1.5)
    expected = abs(np.corrcoef(real[1], real[2])[0, 1] - np.corrcoef(synthetic[1], synthetic[2])[0, 1])
    found = evaluate(real, synthetic, schema=SCHEMA).correlation_error
    assert found == pytest.approx(expected, abs=1e-12)
    huge = [real[0], real[1] * 1e300, real[2] * 1e-300]
    assert evaluate(huge, huge, schema=SCHEMA).correlation_error == 0
    constant = [real[0], np.zeros(1000), real[2]]
    assert evaluate(constant, constant, schema=SCHEMA).correlation_error is None


@pytest.mark.parametrize("seed", range(3))
def test_the_floor_is_what_a_second_sample_reaches_and_a_wrong_law_does_not(seed: int) -> None:
    """10,000 rows of 20 bins: floor near .016; a shift by .2 standard deviations is at .08."""
    real = made(10_000, seed=seed)
    good = evaluate(real, made(10_000, seed=seed + 100), schema=SCHEMA)
    wrong = evaluate(real, [real[0], real[1] + 0.2, real[2]], schema=SCHEMA)
    assert good.columns[1].distance < 2.5 * good.columns[1].floor
    assert wrong.columns[1].distance > 2.5 * wrong.columns[1].floor


def test_the_same_tables_give_the_same_numbers_unless_another_key_is_given() -> None:
    real, synthetic = made(200, seed=1), made(200, seed=2)
    assert evaluate(real, synthetic, schema=SCHEMA) == evaluate(real, synthetic, schema=SCHEMA)
    assert evaluate(real, synthetic, schema=SCHEMA) != evaluate(
        real, synthetic, schema=SCHEMA, shared=SharedRandomness(7)
    )


@pytest.mark.parametrize(("target", "measure"), [("letter", "accuracy"), ("weight", "R^2")])
def test_models_from_good_rows_predict_and_from_shuffled_ones_do_not(target: str, measure: str) -> None:
    real, synthetic = made(2000, seed=1), made(2000, seed=2)
    good = train_synthetic_test_real(real, synthetic, schema=SCHEMA, target=target)
    assert good.measure == measure
    assert good.from_real > good.baseline + 0.3
    assert good.from_synthetic > good.from_real - 0.1
    generator = np.random.default_rng(3)
    broken = [generator.permutation(values) for values in synthetic]
    assert train_synthetic_test_real(real, broken, schema=SCHEMA, target=target).from_synthetic < good.baseline + 0.15


def test_rows_without_the_target_are_left_out() -> None:
    real, synthetic = made(400, seed=1), made(400, seed=2)
    real[0][:300] = -1
    found = train_synthetic_test_real(real, synthetic, schema=SCHEMA, target="letter")
    assert math.isfinite(found.from_synthetic)
    real[0][:] = -1
    with pytest.raises(DataError, match="too few rows"):
        train_synthetic_test_real(real, synthetic, schema=SCHEMA, target="letter")


def test_a_single_synthetic_label_is_a_poor_prediction_not_an_error() -> None:
    real, synthetic = made(400, seed=1), made(400, seed=2)
    synthetic[0][:] = 1
    found = train_synthetic_test_real(real, synthetic, schema=SCHEMA, target="letter")
    assert found.from_synthetic < 0.5


def test_many_labels_are_no_error() -> None:
    many = Column(name="letter", kind="category", categories=tuple(map(str, range(400))))
    schema = Schema(columns=(many, SIZE, WEIGHT))
    real, synthetic = made(400, seed=1), made(400, seed=2)
    for table in (real, synthetic):
        table[0] = np.random.default_rng(4).integers(-1, 400, size=400).astype(np.int32)
    found = train_synthetic_test_real(real, synthetic, schema=schema, target="weight")
    assert found.from_real > 0.5


def test_refusals() -> None:
    table = made(50, seed=1)
    with pytest.raises(DataError, match="3 columns"):
        evaluate(table[:2], table, schema=SCHEMA)
    with pytest.raises(DataError, match="rows"):
        evaluate([values[:0] for values in table], table, schema=SCHEMA)
    with pytest.raises(InvalidParameter, match="bins"):
        evaluate(table, table, schema=SCHEMA, bins=1)
    with pytest.raises(InvalidParameter, match="target"):
        train_synthetic_test_real(table, table, schema=SCHEMA, target="id")
