"""Public fine grids of numbers: every cell becomes a whole code once, and cells are cut later by codes alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.records import table_of_numbers

__all__ = ["WAYS", "Grid"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

_LARGEST = 1e100
"""Without bounds numbers are clipped here, so that their squares are numbers."""
_SMALLEST = 2.0**-332
"""Without bounds, what is nearer to zero than 1e-100 has one cell on each side of it."""
_MOST_CODES = 1 << 31
_EVEN = 1 << 24
_NEARLY_EQUAL = 2.0**-10
_ONE_BY_ONE = 64
_FEW_WAYS = 16
_EQUAL_CELLS = 32
_BINADES = 30
_PER_BINADE = 2
_WIDE_BINADES = 4
WAYS = 256
"""Into so many parts a cell is cut at most."""
_NARROW = 2.0**-9
_SHIFT = np.uint64(32)
_SIGN = np.uint64(1 << 63)
_ZERO = 1 << 31


@final
@dataclass(frozen=True, slots=True, init=False)
class Grid:
    """A public map of numbers to codes ``0 .. size - 1``, in their order, with more codes than will be counted.

    With decimals and bounds a code is one multiple that may occur. Without decimals it is the sign, the exponent and
    the first 20 binary digits of the number: a relative width of a millionth, and zero has a code of its own; or, where
    bounds are close together beside their size, one of 2^24 equal parts. Without bounds the same over all numbers.

    Formal guarantees
    -----------------
    - Reading: a function of each cell alone; what is no finite number is the code ``size`` where ``missing``, and
      code 0 otherwise. Numbers outside the bounds become the nearest bound.
    - Order: ``x <= y`` gives ``code(x) <= code(y)``.
    - Not promised: that numbers of one code are equal.

    Parameters
    ----------
    bounds
        Public, both inside; None for all numbers up to 1e100 in size.
    decimals
        Public number of decimals; negative ones for tens and hundreds. None for any number.
    missing
        Whether there is a code for missing cells.

    Raises
    ------
    InvalidParameter
        If no number is within the bounds.

    Examples
    --------
    >>> grid = Grid(bounds=(0, 2), decimals=1)
    >>> grid.size, grid.encode([0.0, 0.14, 1.0, 7.0, None]).tolist()
    (21, [0, 1, 10, 20, 21])
    >>> Grid(bounds=(0, 1e12)).first_cells().tolist()[:3]
    [0, 1, ...]

    """

    low: float
    high: float
    decimals: int | None
    missing: bool
    kind: Literal["multiples", "even", "digits"]
    size: int
    bounded: bool

    def __init__(
        self, *, bounds: tuple[float, float] | None = None, decimals: int | None = None, missing: bool = True
    ) -> None:
        if decimals is not None:
            decimals = _check.integer("decimals", decimals, least=-9, most=12)
        low, high = (-_LARGEST, _LARGEST) if bounds is None else (float(bounds[0]), float(bounds[1]))
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise InvalidParameter("bounds must be two finite numbers, the lower one first.")
        kind: Literal["multiples", "even", "digits"] = "digits"
        if bounds is not None and decimals is not None:
            first, last = _multiple(low, decimals, up=True), _multiple(high, decimals, up=False)
            if last < first:
                raise InvalidParameter("bounds must have a number of so many decimals between them.")
            if last - first < _MOST_CODES:
                kind, low, high = "multiples", first * 10.0**-decimals, last * 10.0**-decimals
        if kind == "digits" and bounds is not None and high - low <= _NEARLY_EQUAL * max(abs(low), abs(high)):
            kind = "even"
        _check.store(self, low=low, high=high, decimals=decimals, missing=bool(missing))
        _check.store(self, kind=kind, bounded=bounds is not None, size=1 << 32)  # until the last code is known
        _check.store(self, size=int(self._codes(np.array([high]))[0]) + 1)

    def encode(self, values: ArrayLike) -> Codes:
        """Return the code of each cell, shape (n,)."""
        table = table_of_numbers(values, columns=1)
        if table.shape[1] != 1:
            raise InvalidParameter("values must have shape (n,).")
        numbers = table[:, 0]
        absent = ~np.isfinite(numbers)
        codes = self._codes(np.clip(np.where(absent, self.low, numbers), self.low, self.high))
        codes[absent] = self.size if self.missing else 0
        return codes

    def _codes(self, numbers: Floats) -> Codes:
        if self.kind == "multiples":
            step = 10.0 ** (self.decimals or 0)
            found = np.rint(numbers * step) - round(self.low * step)
        elif self.kind == "even":
            width = (self.high - self.low) or 1.0
            found = np.minimum(np.floor((numbers - self.low) / width * _EVEN), _EVEN - 1)
        else:
            return np.asarray(_digits(numbers) - _digits(np.array([self.low]))[0], dtype=np.uint32)
        return np.asarray(np.clip(found, 0, self.size - 1), dtype=np.uint32)

    def ends(self, codes: ArrayLike) -> Floats:
        """Return the number at which each code begins; for ``size``, where the last one ends."""
        given = np.asarray(codes, dtype=np.int64)
        if self.kind == "multiples":
            step = 10.0 ** -(self.decimals or 0)
            return np.asarray((given + round(self.low / step)) * step - step / 2)
        if self.kind == "even":
            found = self.low + given / _EVEN * (self.high - self.low)
            return np.where(given >= self.size, np.nextafter(self.high, np.inf), found)
        first = int(_digits(np.array([self.low]))[0])
        found = _numbers((given + first).astype(np.uint64))
        found = np.where(
            given + first == _ZERO + 1, np.nextafter(0.0, 1.0), found
        )  # the cell of zero holds nothing else
        return np.asarray(np.clip(found, self.low, np.nextafter(self.high, np.inf)))

    @property
    def codes(self) -> int:
        """Number of codes with that of missing cells."""
        return self.size + self.missing

    @property
    def rounds(self) -> int:
        """How often cells are counted, each time cut finer where records are: public."""
        if self.size <= _ONE_BY_ONE:
            return 1
        if self.kind == "multiples" and self.size <= _ONE_BY_ONE * _FEW_WAYS:
            return 2
        return 3 if self.bounded else 4

    def first_cells(self) -> Ints:
        """Return the first codes of the cells that are counted first, increasing from 0."""
        if self.size <= _ONE_BY_ONE:
            return np.arange(self.size, dtype=np.int64)
        cuts = [self._signed_powers()]
        if self.bounded:
            cuts.append(np.linspace(self.low, self.high, _EQUAL_CELLS + 1)[1:-1])
        starts = self._codes(np.clip(np.concatenate(cuts), self.low, self.high)).astype(np.int64)
        if self.low <= 0 <= self.high:
            zero = int(self._codes(np.zeros(1))[0])
            starts = np.concatenate([starts, [zero, zero + 1]])
        return self.told_apart(np.unique(np.concatenate([[0], starts[starts < self.size]])))

    def told_apart(self, starts: Ints) -> Ints:
        """Return the first codes without those whose cell no number can be in, because of its decimals."""
        kept = starts[np.diff(self.ends(np.append(starts, self.size))) > 0]
        return np.concatenate([[0], kept[1:]]).astype(np.int64)

    def _signed_powers(self) -> Floats:
        """Return powers of two on either side of zero, down to what is small beside the bounds."""
        if not self.bounded:
            exponents = np.arange(math.log2(_SMALLEST), math.log2(_LARGEST), _WIDE_BINADES)
        else:
            most = max(abs(self.low), abs(self.high)) or 1.0
            exponents = math.log2(most) - np.arange(1, _BINADES * _PER_BINADE) / _PER_BINADE
        powers = 2.0**exponents
        return np.concatenate([-powers, powers])

    def shared_value(self, low: int, high: int) -> float | None:
        """Return the number of fewest digits from code ``low`` up to but without ``high``, None where they span many.

        Where records share one value, cells become narrow: a thousandth of the value, or much less.
        """
        first, last = self.ends([low, high]).tolist()
        if self.kind == "multiples" or last - first > _NARROW * max(abs(first), abs(last)):
            return None
        if low <= (zero := int(self._codes(np.zeros(1))[0])) < high and self.kind == "digits":
            return 0.0 if (low, high) == (zero, zero + 1) else None
        if last <= 0:
            first, last = -last, -first
        if first <= 0:
            return None
        for digits in range(1, 18):
            value = float(f"{last:.{digits - 1}e}")
            if value >= last:
                value = float(f"{value - 10.0 ** (math.floor(math.log10(last)) - digits + 1):.{digits - 1}e}")
            if first <= value < last:
                return -value if self.ends([low]).item() < 0 else value
        return None

    def split(self, low: int, high: int, *, ways: int = WAYS) -> Sequence[int]:
        """Return the first codes of about ``ways`` parts of the codes from ``low`` up to but without ``high``.

        Parts are of equal width; of equal ratio where the cell spans more than a factor of two on one side of zero.
        """
        if high - low <= ways:
            return range(low, high)
        first, last = self.ends([low, high]).tolist()
        if first * last > 0 and max(abs(first), abs(last)) > 2 * min(abs(first), abs(last)):
            size = np.geomspace(abs(first), abs(last), ways + 1)[1:-1]
            cuts = math.copysign(1, first) * size
        else:
            cuts = np.linspace(first, last, ways + 1)[1:-1]
        if self.kind == "multiples":  # a cut lies half-way between two multiples
            cuts = cuts + 0.5 * 10.0 ** -(self.decimals or 0)
        inside = self._codes(np.clip(cuts, self.low, self.high)).astype(np.int64)
        found: list[int] = np.unique(np.concatenate([[low], inside[(inside > low) & (inside < high)]])).tolist()
        return found


def _multiple(bound: float, decimals: int, *, up: bool) -> int:
    """Return the first multiple inside a bound; one that floats miss by a hair is inside."""
    scaled = round(bound * 10.0**decimals, 6)
    return math.ceil(scaled) if up else math.floor(scaled)


def _digits(numbers: Floats) -> NDArray[np.uint64]:
    """Return sign, exponent and first digits as whole numbers in the order of the numbers."""
    bits = (numbers + 0.0).view(np.uint64)  # minus zero is zero
    return np.where(bits & _SIGN, ~bits, bits | _SIGN) >> _SHIFT


def _numbers(digits: NDArray[np.uint64]) -> NDArray[Any]:
    """Return the least number of these first digits."""
    bits = digits << _SHIFT
    return np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float64)
