"""The sum of clamped numbers, exactly, with the sensitivity that it really has."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring, Sensitivity
from accord.core.records import Records

__all__ = ["ClampedSum"]

_STEPS = 40
_AT_ONCE = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClampedSum:
    """A query: the sum of numbers, each clamped to public bounds. A mechanism must add the noise.

    Every number is clamped, rounded to a public grid and added as an integer, so the sum depends neither on the order
    of records nor on floating point, never overflows, and its sensitivity is exact.

    Formal guarantees
    -----------------
    - A unit has from m0 = ``fewest`` to m = ``contributions`` records. Replacing all of one unit's records by those of
      another unit, which may have another number of them and may stand elsewhere, moves `value` by at most
      ``max(m0 upper, m upper) - min(m0 lower, m lower)``; adding or removing a unit by at most ``m max(|lower|,
      |upper|)``: `sensitivity`. Each is attained, up to the grid.
    - Not promised: any privacy without noise; that bounds found by looking at the data protect anybody.

    Parameters
    ----------
    lower, upper
        Public bounds, lower < upper; not to be taken from the data.
    contributions
        How many records a unit may contribute, at least 1. With ``units`` given to `value`, further ones are left out;
        without, it is the caller's claim.
    fewest
        How few records a unit may have, from 0 to ``contributions``: of importance under "replace one". 1, the default,
        is true of every unit that the data name. 0 if a unit may have no record at all, as where units are the people
        of a public list. More than 1 is the caller's claim, also with ``units``.
    missing
        What a NaN counts as, from lower to upper: a public number. None refuses NaN.
    neighbouring
        The relation for the sensitivity.

    Source
    ------
    Proof page docs/proofs/clamped-sum.md. Casacuberta et al. (2022) for what goes wrong in floats.

    Examples
    --------
    >>> query = ClampedSum(lower=0, upper=5)
    >>> query.value([1, 7, -2, 3.5]), query.sensitivity.bound
    (Fraction(19, 2), Fraction(5, 1))
    >>> stays = ClampedSum(lower=100, upper=101, contributions=10)  # ten of 101 may become one of 100
    >>> float(stays.sensitivity.bound)
    910.0

    """

    lower: Fraction
    upper: Fraction
    contributions: int = 1
    missing: Fraction | None = None
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    fewest: int = 1

    def __init__(
        self,
        *,
        lower: Number,
        upper: Number,
        contributions: int = 1,
        missing: Number | None = None,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        fewest: int = 1,
    ) -> None:
        low, high = _check.exact("lower", lower), _check.exact("upper", upper)
        if not low < high:
            raise InvalidParameter("lower must be below upper: with equal bounds the sum says nothing.")
        if max(abs(low), abs(high)) > Fraction(10) ** 300 or high - low < Fraction(10) ** -280:
            raise InvalidParameter("lower and upper must be within 1e300 of zero and at least 1e-280 apart.")
        stand_in = None if missing is None else _check.exact("missing", missing)
        if stand_in is not None and not low <= stand_in <= high:
            raise InvalidParameter("missing must lie between lower and upper.")
        if not isinstance(neighbouring, Neighbouring):
            raise InvalidParameter("neighbouring must be a Neighbouring, such as Neighbouring.REPLACE_ONE.")
        _check.store(self, lower=low, upper=high, contributions=_check.integer("contributions", contributions, least=1))
        _check.store(
            self,
            fewest=_check.integer("fewest", fewest, least=0, most=self.contributions),
            missing=stand_in,
            neighbouring=neighbouring,
        )

    @property
    def step(self) -> Fraction:
        """The grid: a power of two, between 2^-41 and 2^-40 of ``upper - lower``."""
        width = (self.upper - self.lower) / 2**_STEPS
        exponent = width.numerator.bit_length() - width.denominator.bit_length()
        step = Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)
        return step if step <= width else step / 2

    def _ends(self) -> tuple[int, int]:
        """Return the bounds in steps, rounded inward."""
        return ceil(self.lower / self.step), floor(self.upper / self.step)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far `value` moves between neighbours, exactly."""
        low, high = self._ends()
        if self.neighbouring is Neighbouring.ADD_OR_REMOVE_ONE:
            moved = self.contributions * max(abs(low), abs(high))
        else:
            largest = max(self.fewest * high, self.contributions * high)  # of what one unit's records add up to
            moved = largest - min(self.fewest * low, self.contributions * low)
        return Sensitivity(moved * self.step, self.neighbouring)

    def value(self, values: ArrayLike, *, units: ArrayLike | None = None) -> Fraction:
        """Return the exact sum.

        Parameters
        ----------
        values
            Finite or infinite reals, shape (n,); an infinity counts as the bound on its side.
        units
            The unit of each record, shape (n,), as in `accord.core.Records` (1 and "1" are two units): of
            each unit the first ``contributions`` records count.

        Raises
        ------
        InvalidParameter
            If a value is no real number, or is NaN and ``missing`` is None; if ``units`` has another length. The text
            holds no value.

        """
        numbers = self._numbers(values)
        if units is not None:
            numbers = numbers[_first_of_each(units, self.contributions, count=len(numbers))]
        return self._total(numbers) * self.step

    def _numbers(self, values: ArrayLike) -> NDArray[np.float64]:
        if isinstance(values, np.ma.MaskedArray):
            raise InvalidParameter("values must not be masked: give NaN, and say what it counts as by missing=.")
        array = np.asarray(values)
        if array.ndim != 1 or (array.dtype.kind not in "iuf" and array.size > 0) or array.dtype.itemsize > 8:
            raise InvalidParameter("values must be real numbers in one dimension, floats or ints of at most 64 bits.")
        numbers = array.astype(np.float64)
        if self.missing is None and np.isnan(numbers).any():
            raise InvalidParameter("values hold NaN: say what it counts as by missing=, a public number.")
        return numbers

    def _total(self, numbers: NDArray[np.float64]) -> int:
        """Return the sum in steps: each number is clamped, rounded and then added as an integer."""
        low, high = self._ends()
        offset = float(self.lower)
        stand_in = low if self.missing is None else min(max(round(self.missing / self.step), low), high)
        total = 0
        for start in range(0, len(numbers), _AT_ONCE):
            part = numbers[start : start + _AT_ONCE]
            with np.errstate(over="ignore", invalid="ignore"):
                scaled = np.clip((part - offset) / float(self.step), 0.0, float(high - low))
            steps = np.where(np.isnan(part), stand_in - low, np.rint(np.nan_to_num(scaled))).astype(np.int64)
            total += int(steps.sum()) + low * len(part)  # below 2^41 * 2^20: no int64 overflows
        return total


def _first_of_each(units: ArrayLike, most: int, *, count: int) -> NDArray[np.bool_]:
    """Return which records are among the first ``most`` of their unit; each name is read by itself."""
    owners = Records.of(np.zeros(count), units=units).owners if count else None
    if owners is None:
        return np.ones(count, dtype=np.bool_)
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners)
    kept = np.empty(count, dtype=np.bool_)
    kept[order] = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts) < most
    return kept
