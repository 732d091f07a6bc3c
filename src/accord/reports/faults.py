"""Whether what a ``release.json`` says in several places is one thing: its promise, its tables, its errors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from accord.accounting.account import rows_stand_for, statement_of
from accord.accounting.verdicts import WEIGHTED, of_delta, of_sizes
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.unit_names import RECORD, unit_word
from accord.core.verdict import Verdict
from accord.marginals.verdicts import NOISE
from accord.tables.names import shown

__all__ = ["account_faults", "consistency_faults", "table_faults"]


def account_faults(content: Mapping[str, Any]) -> list[str]:
    """Return the contradictions between the numbers of a promise that can be made and all that is said about it."""
    guarantee = content["guarantee"]
    try:
        promise = ApproxDP(
            guarantee["epsilon"], guarantee["delta"], Neighbouring(guarantee["neighbouring"]), guarantee["unit"]
        )
    except InvalidParameter:
        return ["guarantee.unit is no word for a unit"]
    words = statement_of(guarantee["epsilon"], guarantee["delta"], neighbouring=promise.neighbouring, unit=promise.unit)
    contradictions = {
        "guarantee.statement says something else than the numbers": guarantee["statement"] != words,
        "rows_stand_for says another unit than guarantee.unit": content["rows_stand_for"]
        != rows_stand_for(promise.unit),
        "units and guarantee.units differ": content["units"] != guarantee["units"],
        "guarantee.unit and unit_column contradict each other": not _of_column(promise.unit, guarantee["unit_column"]),
    }
    found = [fault for fault, is_so in contradictions.items() if is_so]
    if (guarantee["units"] is None) != (promise.neighbouring is Neighbouring.ADD_OR_REMOVE_ONE):
        found.append("guarantee.units is secret under this relation, or public and missing")
    return found + _warning_faults(content, promise)


def _of_column(unit: str, column: str | None) -> bool:
    """Return whether a guarantee for units of this word can come from this column."""
    if column is None:
        return unit in {RECORD, "voter", unit_word(None, named=True)}
    return unit == unit_word(column, named=True)


def _warning_faults(content: Mapping[str, Any], promise: ApproxDP) -> list[str]:
    said = [(warning["code"], warning["text"]) for warning in content["warnings"]]
    found = []
    for place, (code, text) in enumerate(said):
        try:
            Verdict(code, text)
        except InvalidParameter:
            found.append(f"warnings.{place} is no verdict")
    of_code = {code: [text for one, text in said if one == code] for code, _ in said}
    due = [] if not content["units"] else of_delta(promise, units=content["units"])
    if of_code.get("delta-too-large", []) != [verdict.text for verdict in due]:
        found.append("warnings must say that delta is too large for so many units, exactly if it is")
    if not set(of_code.get(WEIGHTED.code, [])) <= ({WEIGHTED.text} if promise.unit != RECORD else set()):
        found.append("warnings say something else of how units weigh than the unit of the promise")
    return found + _error_warning_faults(content["expected_errors"], of_code)


def _error_warning_faults(errors: Mapping[str, float], said: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what the expected errors make due and no warning says."""
    if not all(isinstance(error, int | float) for error in errors.values()):
        return []  # found as errors that are not those of the columns
    few = [verdict.text for verdict in of_sizes(errors)]
    found = ["warnings do not say that n is not enough"] if not set(few) <= set(said.get("too-few-records", [])) else []
    noise = [name for name, error in errors.items() if error >= NOISE]
    told = said.get("column-is-noise", [])
    if not all(any(f"column {shown(name)} is mostly noise" in text for text in told) for name in noise):
        found.append("warnings do not name a column that is noise")
    return found


_NEAR = 1e-6
_ROUNDING = 1e-9


def table_faults(content: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the form of tables: one share a label, and shares that sum to 1."""
    faults = []
    for place, table in enumerate(content["columns"]):
        if len(table["labels"]) != len(table["shares"]):
            faults.append(f"columns.{place} has not one share a label")
        elif not _sums_to_one(table["shares"]):
            faults.append(f"the shares of columns.{place} do not sum to 1")
    for place, table in enumerate(content["pairs"]):
        rows, shape = table["shares"], [len(labels) for labels in table["labels"]]
        if (
            len(table["names"]) != 2
            or len(shape) != 2
            or [len(rows), *map(len, rows)] != [shape[0], *shape[1:] * shape[0]]
        ):
            faults.append(f"pairs.{place} has not one share a pair of labels")
        elif not _sums_to_one([share for row in rows for share in row]):
            faults.append(f"the shares of pairs.{place} do not sum to 1")
    return faults


def _sums_to_one(shares: Sequence[float]) -> bool:
    return all(share >= 0 for share in shares) and abs(math.fsum(shares) - 1) <= _NEAR


def consistency_faults(content: Mapping[str, Any]) -> list[str]:
    """Return the contradictions between tables that have their form."""
    columns = {table["name"]: table for table in content["columns"]}
    if len(columns) != len(content["columns"]):
        return ["two columns have one name"]
    rows = content["rows"]
    faults = []
    for place, table in enumerate(content["columns"]):
        faults += [f"columns.{place} {fault}" for fault in _column_faults(table, rows=rows)]
    for place, table in enumerate(content["pairs"]):
        faults += [f"pairs.{place} {fault}" for fault in _pair_faults(table, columns=columns, rows=rows)]
    return faults + _error_faults(content, columns=columns)


def _column_faults(table: Mapping[str, Any], *, rows: int) -> list[str]:
    shares, low, high = table["shares"], table["low"], table["high"]
    faults = [] if _of_rows(shares, rows=rows) else ["has shares that are not those of so many rows"]
    if not _part_of_error(table["expected_error"], table["merged_error"]):
        faults.append("has an expected error and a part of it that contradict each other")
    if (low is None) != (high is None) or (low is not None and not len(low) == len(high) == len(shares)):
        faults.append("has not one interval a label")
    elif low is not None and not all(
        0 <= least <= share + _ROUNDING and share - _ROUNDING <= most <= 1
        for least, share, most in zip(low, shares, high, strict=True)
    ):
        faults.append("has an interval that does not hold its share, or is not from 0 to 1")
    if (low is None) != (table["expected_error"] is None):
        faults.append("has intervals without an expected error, or the other way round")
    return faults


def _pair_faults(table: Mapping[str, Any], *, columns: Mapping[str, Mapping[str, Any]], rows: int) -> list[str]:
    shares, names = table["shares"], table["names"]
    if names[0] == names[1] or not columns.keys() >= set(names):
        return ["is not of two columns of the release"]
    faults = []
    if not _of_rows([share for row in shares for share in row], rows=rows):
        faults.append("has shares that are not those of so many rows")
    sums = [[math.fsum(row) for row in shares], [math.fsum(row) for row in zip(*shares, strict=True)]]
    for name, labels, margin in zip(names, table["labels"], sums, strict=True):
        column = columns[name]
        here, there = (
            dict(zip(*both, strict=True)) for both in ((labels, margin), (column["labels"], column["shares"]))
        )
        alike = len(here) == len(labels) == len(column["labels"]) and here.keys() == there.keys()
        if alike and not all(math.isclose(share, there[label], abs_tol=_ROUNDING) for label, share in here.items()):
            faults.append("has other shares of a column than the column's own table")
    return faults


def _of_rows(shares: Sequence[float], *, rows: int) -> bool:
    """Return whether each share is a whole number of the rows."""
    return rows > 0 and all(abs(round(share * rows) - share * rows) <= _ROUNDING * rows for share in shares)


def _part_of_error(error: float | None, merged: float | None) -> bool:
    if error is None or merged is None:
        return error is None and merged is None
    return 0 <= merged <= error + _ROUNDING and error <= 1


def _error_faults(content: Mapping[str, Any], *, columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return where errors of the account and of the tables differ."""
    faults = []
    known = {name: table["expected_error"] for name, table in columns.items() if table["expected_error"] is not None}
    if content["expected_errors"] != known:
        faults.append("expected_errors are not those of the columns")
    pairs: dict[tuple[str, ...], tuple[float, float]] = {}
    for place, entry in enumerate(content["expected_pair_errors"]):
        names, error, merged = tuple(entry["names"]), entry["expected_error"], entry["merged_share"]
        if len(set(names)) != 2 or len(names) != 2 or not columns.keys() >= set(names) or names in pairs:
            faults.append(f"expected_pair_errors.{place} is not of two columns of the release, once")
        elif not 0 <= error <= 1 or not 0 <= merged <= 1 + _ROUNDING:
            faults.append(f"expected_pair_errors.{place} has numbers that are not from 0 to 1")
        else:
            pairs[names] = error, merged
    for place, table in enumerate(content["pairs"]):
        stated = table["expected_error"], table["merged_share"]
        if stated != pairs.get(tuple(table["names"]), (None, None)):
            faults.append(f"pairs.{place} has another expected error than expected_pair_errors")
    return faults
