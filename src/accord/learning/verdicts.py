"""What a reader of a release must be told: from public facts and from what was released."""

from collections.abc import Collection, Mapping

import numpy as np

from accord.core.coupling import Learner
from accord.core.guarantee import ApproxDP
from accord.core.verdict import Verdict
from accord.learning.declared.errors import ColumnAccuracy, TableErrors
from accord.learning.families import family_of
from accord.privacy.verdicts import FAIR, WEIGHTED, of_delta, of_sizes, too_few
from accord.tables.names import shown

__all__ = ["FAIR", "NOISE", "WEIGHTED", "of_blocks", "of_delta", "of_sizes", "too_few", "verdicts_of"]

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


def of_blocks(learner: Learner, *, dimension: int, blocks: int, units: int) -> tuple[Verdict, ...]:
    """Return ``too-few-records`` if blocks are so small that they rarely agree, where simulations say how small.

    They do for the learners that have a coupling of their own, and say nothing of one that was passed.
    """
    usual = family_of(learner, dimension=dimension).usual_block
    size = units // blocks
    if size >= usual:
        return ()
    how = f"blocks of {size} rarely agree on a law of {type(learner).__name__}"
    most = units // usual
    do = f"about {usual * blocks} are needed for {blocks} blocks" + (f", or use at most {most} blocks" if most else "")
    return (Verdict("too-few-records", f"n is not enough: {how}; {do}."),)


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
