"""What a reader of a release must be told: from public facts and from what was released."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.verdicts import FAIR, WEIGHTED, of_delta, of_sizes, too_few
from accord.core.guarantee import ApproxDP
from accord.core.verdict import Verdict
from accord.marginals.errors import PairError
from accord.tables.names import shown

__all__ = [
    "FAIR",
    "NOISE",
    "WEIGHTED",
    "ColumnAccuracy",
    "TableErrors",
    "of_delta",
    "of_sizes",
    "too_few",
    "verdicts_of",
]


Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnAccuracy:
    """What was released of one column, and how far it is expected to be from the records.

    Parameters
    ----------
    error
        Mean total variation; of records, or of units where all records of a unit weigh 1 together.
    merged
        The part of it that putting rare labels, or neighbouring cells, together loses.
    shares
        Of each label or cell of numbers, the last one of missing cells, in the model.
    low, high
        Between these each true share lies, with a probability of at least 95 % for each.
    edges
        Of the cells of numbers; empty for labels.

    """

    error: float
    merged: float
    shares: Floats
    low: Floats
    high: Floats
    edges: tuple[float, ...] = ()

    @property
    def missing(self) -> float:
        """The released share of missing cells."""
        return float(self.shares[-1])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableErrors:
    """Expected errors by names of columns; a pair that no measured table holds is not there: it is not known."""

    columns: Mapping[str, ColumnAccuracy]
    pairs: Mapping[tuple[str, str], PairError]


NOISE = 0.25
"""A column with at least this expected error is noise, whatever its shares."""

_MISSING = 0.5


def verdicts_of(
    guarantee: ApproxDP,
    *,
    units: int,
    weighted: bool = False,
    errors: Mapping[str, float] | TableErrors | None = None,
    typical_error: float | None = None,
    mostly_missing: Collection[str] = (),
) -> tuple[Verdict, ...]:
    """Return all verdicts on a release, in an order that stays.

    ``delta-too-large``: delta times the number of units is above 1/10. ``weighted-by-unit``: rows stand for units.
    ``too-few-records``: more than half of the columns have an expected error above .1, or the one law of all columns
    has. ``column-is-noise``: a column's expected error is at least 1/4, or above .1 and no smaller than its released
    shares' distance from equal ones. ``mostly-missing``: more than half of a column is missing by its released share.

    Formal guarantees
    -----------------
    - Silence: a function of public facts, among them n, and of released numbers.

    Parameters
    ----------
    guarantee
        The promise.
    units
        n, the number of units of privacy, public.
    weighted
        Whether records of one unit share its weight.
    errors
        Expected error of each column as planned, or what is known of it after the release.
    typical_error
        Of one law for all columns.
    mostly_missing
        Columns of which the schema says that most cells are missing.

    """
    found = [*of_delta(guarantee, units=units)]
    if weighted:
        found.append(WEIGHTED)
    found += of_sizes(_planned(errors), typical_error=typical_error)
    if isinstance(errors, TableErrors):
        for name, column in errors.columns.items():
            found.extend(_of_column(name, column, expected=name in mostly_missing))
    return tuple(found)


def _planned(errors: Mapping[str, float] | TableErrors | None) -> Mapping[str, float]:
    if errors is None:
        return {}
    if isinstance(errors, TableErrors):
        return {name: column.error for name, column in errors.columns.items()}
    return errors


def _of_column(name: str, column: ColumnAccuracy, *, expected: bool) -> list[Verdict]:
    found = []
    even = float(np.abs(column.shares - 1 / len(column.shares)).sum() / 2)
    if column.error >= NOISE or (column.error > FAIR and column.error >= even):
        part = ""
        if 2 * column.merged > column.error:
            part = ", most of it because rare labels or cells were put together: declare fewer, or"
        found.append(
            Verdict(
                "column-is-noise",
                f"column {shown(name)} is mostly noise: its expected error is {column.error:.2g} in total variation"
                f"{part or ';'} use more records or a larger epsilon, or do not use its shares.",
            )
        )
    if column.missing > _MISSING and not expected:
        found.append(
            Verdict(
                "mostly-missing",
                f"column {shown(name)} is mostly missing ({100 * column.missing:.0f} % by its released share): look "
                f"whether the schema reads its cells as they are written, or say mostly_missing = true there.",
            )
        )
    return found
