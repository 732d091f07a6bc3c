"""What public facts alone say against a release: its delta, its weights, and how few records it has."""

import math
from collections.abc import Mapping
from fractions import Fraction

from accord.core.guarantee import ApproxDP
from accord.core.verdict import Verdict

__all__ = ["FAIR", "WEIGHTED", "of_delta", "of_sizes", "too_few"]

FAIR = 0.1
"""A column with a larger expected error, in total variation, has rough shares at best."""

_REMEDY = "more records or a larger epsilon are needed"
WEIGHTED = Verdict(
    "weighted-by-unit",
    "every unit of privacy has the same weight, however many records it has: a row stands for a random record of a "
    "random unit, so do not read shares of rows as shares of records.",
)
_DELTA = Fraction(1, 10)


def of_delta(guarantee: ApproxDP, *, units: int) -> list[Verdict]:
    """Return ``delta-too-large`` if delta times the number of units is above 1/10: it is not far below 1 / n.

    Examples
    --------
    >>> [verdict.code for verdict in of_delta(ApproxDP(1, "1e-3"), units=1000)]
    ['delta-too-large']
    >>> of_delta(ApproxDP(1, "1e-6"), units=1000)
    []

    """
    if guarantee.delta * units <= _DELTA:
        return []
    noun = "record" if guarantee.unit == "record" else "unit"
    choose = 10.0 ** math.floor(math.log10(float(_DELTA) / 10 / units))
    product = f"{float(guarantee.delta * units):.2g}"
    weak = f"delta is not far below 1 / number of {noun}s"
    if guarantee.delta * units >= 1:
        weak = f"delta is not below 1 / number of {noun}s, so that it would even allow to publish one {noun} as it is"
    return [Verdict("delta-too-large", f"{weak} (delta times their number is {product}): choose {choose:.0e}.")]


def of_sizes(errors: Mapping[str, float], *, typical_error: float | None = None) -> list[Verdict]:
    """Return ``too-few-records`` if the expected errors of more than half of the columns, or of one law, are large."""
    if too_few(errors) if typical_error is None else typical_error > FAIR:
        return [Verdict("too-few-records", f"n is not enough: {_how_large(errors, typical_error)}; {_REMEDY}.")]
    return []


def too_few(errors: Mapping[str, float]) -> bool:
    """Return whether more than half of the columns have a large expected error."""
    return 2 * sum(error > FAIR for error in errors.values()) > len(errors)


def _how_large(errors: Mapping[str, float], typical: float | None) -> str:
    if typical is not None:
        return f"the typical error is {typical:.2g} in total variation"
    large = sum(error > FAIR for error in errors.values())
    return f"the expected error of {large} of {len(errors)} columns is above {FAIR:g} in total variation"
