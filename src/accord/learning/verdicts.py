"""What a reader of a release must be told: from public facts and from what was released."""

import math
from collections.abc import Collection, Mapping
from fractions import Fraction

import numpy as np

from accord.core import Verdict
from accord.learning.declared.errors import ColumnAccuracy, TableErrors
from accord.privacy import ApproxDP
from accord.tables.names import shown

__all__ = ["FAIR", "NOISE", "WEIGHTED", "of_delta", "of_sizes", "too_few", "verdicts_of"]

FAIR = 0.1
"""A column with a larger expected error, in total variation, has rough shares at best."""

NOISE = 0.25
"""A column with at least this expected error is noise, whatever its shares."""

WEIGHTED = Verdict(
    "weighted-by-unit",
    "every unit of privacy has the same weight, however many records it has: a row stands for a random record of a "
    "random unit, so do not read shares of rows as shares of records.",
)

_MISSING = 0.5
_DELTA = Fraction(1, 10)


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


_REMEDY = "more records or a larger epsilon are needed"


def of_sizes(errors: Mapping[str, float], *, typical_error: float | None = None) -> list[Verdict]:
    """Return the verdict on too few records, if there are, by the expected errors of columns or of one law."""
    if too_few(errors) if typical_error is None else typical_error > FAIR:
        return [Verdict("too-few-records", f"n is not enough: {_how_large(errors, typical_error)}; {_REMEDY}.")]
    return []


def too_few(errors: Mapping[str, float]) -> bool:
    """Return whether more than half of the columns have a large expected error."""
    return 2 * sum(error > FAIR for error in errors.values()) > len(errors)


def _planned(errors: Mapping[str, float] | TableErrors | None) -> Mapping[str, float]:
    if errors is None:
        return {}
    if isinstance(errors, TableErrors):
        return {name: column.error for name, column in errors.columns.items()}
    return errors


def _how_large(errors: Mapping[str, float], typical: float | None) -> str:
    if typical is not None:
        return f"the typical error is {typical:.2g} in total variation"
    large = sum(error > FAIR for error in errors.values())
    return f"the expected error of {large} of {len(errors)} columns is above {FAIR:g} in total variation"


def of_delta(guarantee: ApproxDP, *, units: int) -> list[Verdict]:
    """Return the verdict on a delta that is not far below 1 / number of units, if it is not."""
    if guarantee.delta * units <= _DELTA:
        return []
    noun = "record" if guarantee.unit == "record" else "unit"
    choose = 10.0 ** math.floor(math.log10(float(_DELTA) / 10 / units))
    product = f"{float(guarantee.delta * units):.2g}"
    weak = f"delta is not far below 1 / number of {noun}s"
    if guarantee.delta * units >= 1:
        weak = f"delta is not below 1 / number of {noun}s, so that it would even allow to publish one {noun} as it is"
    return [Verdict("delta-too-large", f"{weak} (delta times their number is {product}): choose {choose:.0e}.")]


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
