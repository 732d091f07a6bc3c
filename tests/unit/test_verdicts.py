"""Verdicts on a release: which public facts and released numbers give which."""

import warnings
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import pytest

from accord.core import Verdict, VerdictWarning, collected, tell
from accord.learners import GaussianLearner
from accord.marginals.verdicts import ColumnAccuracy, TableErrors, verdicts_of
from accord.privacy import ApproxDP
from accord.synthesis import synthesise
from accord.synthesis.learner import TableLearner
from accord.tables import Column, Schema, Table

PROMISE = ApproxDP(1, "1e-6")


def column(error: float, *shares: float, merged: float = 0.0) -> ColumnAccuracy:
    made = np.array(shares)
    return ColumnAccuracy(error=error, merged=merged, shares=made, low=made, high=made)


def codes(**facts: Any) -> list[str]:
    return [verdict.code for verdict in verdicts_of(**{"guarantee": PROMISE, "units": 1000, **facts})]


@pytest.mark.parametrize(
    ("units", "found", "choose"),
    [(99_999, False, ""), (100_001, True, "1e-08"), (2_000_000, True, "1e-09"), (10**12, True, "1e-14")],
)
def test_B5_a_delta_that_is_not_far_below_one_over_n(units: int, *, found: bool, choose: str) -> None:
    given = verdicts_of(PROMISE, units=units)
    assert [verdict.code for verdict in given] == ["delta-too-large"] * found
    assert all(f"choose {choose}." in verdict.text for verdict in given)
    assert ("as it is" in "".join(verdict.text for verdict in given)) == (units >= 10**6)


def test_B5_few_records_by_the_columns_own_errors() -> None:
    assert codes(errors={"a": 0.2, "b": 0.09}) == []
    assert codes(errors={"a": 0.2, "b": 0.11, "c": 0.01}) == ["too-few-records"]
    assert codes(typical_error=0.1) == []
    assert codes(typical_error=0.11) == ["too-few-records"]
    assert codes(weighted=True) == ["weighted-by-unit"]


def test_B5_noise_and_missing_cells_by_released_shares() -> None:
    columns = {
        "fine": column(0.05, 0.6, 0.3, 0.1),
        "even": column(0.05, 0.34, 0.33, 0.33),
        "rough": column(0.15, 0.9, 0.1, 0.0),
        "lost": column(0.15, 0.4, 0.3, 0.3),
        "rare": column(0.42, 0.9, 0.1, 0.0, merged=0.41),
        "gone": column(0.01, 0.2, 0.2, 0.6),
        "rightly": column(0.01, 0.2, 0.2, 0.6),
    }
    found = verdicts_of(PROMISE, units=1000, errors=TableErrors(columns=columns, pairs={}), mostly_missing=["rightly"])
    named = {(verdict.code, name) for verdict in found for name in columns if f'"{name}"' in verdict.text}
    assert named == {("column-is-noise", "lost"), ("column-is-noise", "rare"), ("mostly-missing", "gone")}
    assert len(found) == 3
    assert ["rare labels" in verdict.text for verdict in found] == [False, True, False]


SCHEMA = Schema(
    columns=(
        Column(name="sex", kind="category", categories=("f", "m")),
        Column(name="age", kind="integer", decimals=0, bounds=(0, 99)),
    )
)


def table(rows: int, *, missing: float = 0.0, schema: Schema = SCHEMA) -> Table:
    ages = np.arange(rows) * 7.0 % 90
    ages[: int(rows * missing)] = np.nan
    return Table(columns=((np.arange(rows) % 2).astype(np.int32), ages), units=None, schema=schema)


def test_B5_eight_rows_at_a_small_epsilon_warn_in_python() -> None:
    with pytest.warns(VerdictWarning) as caught:
        TableLearner(SCHEMA, epsilon="0.01", delta="1e-6").release(table(8))
    told = [one.message.verdict.code for one in caught if isinstance(one.message, VerdictWarning)]
    assert [code for code in told if code != "mostly-missing"] == ["too-few-records", *["column-is-noise"] * 2]
    assert all(one.filename == __file__ for one in caught)


def test_B5_a_column_almost_all_missing_warns_unless_the_schema_says_so() -> None:
    with collected() as verdicts:
        TableLearner(SCHEMA, epsilon=3, delta="1e-6").release(table(5000, missing=0.95))
    assert [verdict.code for verdict in verdicts] == ["mostly-missing"]
    known = replace(SCHEMA, columns=(SCHEMA.columns[0], replace(SCHEMA.columns[1], mostly_missing=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableLearner(known, epsilon=3, delta="1e-6").release(table(5000, missing=0.95, schema=known))


def test_B5_a_law_of_blocks_warns_too() -> None:
    numbers = np.random.default_rng(1).normal(size=(3000, 1))
    with collected() as verdicts:
        synthesise(numbers, learner=GaussianLearner(), epsilon=1, delta="1e-3", seed=1)
    assert "delta-too-large" in [verdict.code for verdict in verdicts]


def test_verdicts_are_collected_once_and_by_thread() -> None:
    verdict = Verdict("a-code", "do this.")
    with collected() as outer:
        tell(verdict)
        with collected() as inner:
            tell(verdict)
            tell(verdict)
        seen: list[Any] = []

        def other() -> None:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tell(verdict)
            seen.extend(one.category for one in caught)

        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert outer == inner == [verdict]
    assert seen == [VerdictWarning]
