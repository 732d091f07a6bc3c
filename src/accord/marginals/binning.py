"""Numbers as codes of cells, and back: declared edges, equal cells, or cells at private quantiles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.records import Records, table_of_numbers
from accord.core.release import Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import Generator
from accord.marginals.domain import Column, ColumnKind
from accord.marginals.engine import WHOLE, unit_weights
from accord.marginals.quantiles import Sorted, check_quantiles, choose_point, dyadic_grid, quantile_edges
from accord.noise.above_threshold import AboveThreshold
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.thresholded_counts import ThresholdedCounts

__all__ = [
    "NumericBinning",
    "check_ends",
    "ends_around",
    "epsilon_to_find",
    "frequent_values",
    "private_ends",
    "stable_histogram",
    "units_for_ends",
    "whole_histogram",
    "with_atoms",
]


Floats = NDArray[np.float64]


def frequent_values(
    values: Floats,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int,
    least: float,
    among: tuple[range, int] | None = None,
    source: PrivateRandomness,
) -> list[float]:
    """Return values that occur often, (epsilon, delta)-DP under replacing one value, at most so many, increasing.

    Parameters
    ----------
    values
        One for each unit of privacy; NaN where a unit has none.
    epsilon, delta
        Of the histogram; with ``among``, where noise shows less than a stable histogram would hide, delta is not spent.
    most
        At most so many values, the most frequent ones by their noisy counts.
    least
        Values with a lower noisy count are left out.
    among
        All values that there may be, public: whole numbers, and d if they stand for multiples of ``10^-d``.
    source
        Secret.

    """
    present = values[np.isfinite(values)] + 0.0  # no minus zero
    if among is None or _reach(among[0]) >= -math.log(delta):
        counts = stable_histogram(epsilon=epsilon, delta=delta)
        released = counts.release(present.tolist(), randomness=source).value
        found = [(float(level), int(times)) for level, times in released] if isinstance(released, tuple) else []
    else:
        whole, decimals = among
        places = np.clip(np.rint(present * 10.0**decimals), whole[0], whole[-1]).astype(np.int64) - whole[0]
        mechanism = whole_histogram(epsilon=epsilon)
        released = mechanism.release(np.bincount(places, minlength=len(whole)), randomness=source).value
        noisy = np.asarray(released, dtype=np.float64)
        least = max(least, float(mechanism.scale) * _reach(whole))
        found = [(_number(whole[place], decimals), int(noisy[place])) for place in np.flatnonzero(noisy >= least)]
    kept = sorted((entry for entry in found if entry[1] >= least), key=lambda entry: (-entry[1], entry[0]))[:most]
    return sorted(value for value, _ in kept)


def _reach(values: range) -> float:
    """Return how many scales of Laplace noise are reached by that of fewer than one of five such histograms."""
    return math.log(len(values)) + 1


def epsilon_to_find(count: Fraction, values: range) -> Fraction:
    """Return the epsilon at which a noisy count of this size is enough for a value, among so many public ones."""
    return 2 * Fraction(_reach(values)) / count


def _number(whole: int, decimals: int) -> float:
    return float(round(Fraction(whole) / Fraction(10) ** decimals, max(decimals, 0)))


def whole_histogram(*, epsilon: Fraction) -> DiscreteLaplace:
    """Return the mechanism of `frequent_values` among public values: a replaced value leaves one cell for another."""
    return DiscreteLaplace(sensitivity=2, scale=2 / epsilon)


def stable_histogram(*, epsilon: Fraction, delta: Fraction) -> ThresholdedCounts:
    """Return the mechanism of `frequent_values` among all numbers; what it would refuse is refused here."""
    return ThresholdedCounts(epsilon=epsilon, delta=delta)


def with_atoms(edges: Floats, atoms: list[float], *, step: float | None) -> Floats:
    """Return edges with a cell for each atom: half a step to each side, or the float alone if there is no step."""
    for atom in atoms:
        low, high = (atom, float(np.nextafter(atom, np.inf))) if step is None else (atom - step / 2, atom + step / 2)
        outside = edges[(edges <= low) | (edges >= high)]
        edges = np.union1d(outside, [low, high])
    return edges


_REACHES = 64
_LEAST_WIDTH, _FINEST = 2.0**-60, 2.0**-40
_RARE = 100
_LARGEST_SHARE = Fraction(1, 4)
_FURTHER = 2


def private_ends(numbers: Sorted, *, units: int, epsilon: Fraction, source: PrivateRandomness) -> tuple[float, float]:
    """Return ends between which nearly all numbers lie, epsilon-DP: quartiles on all scales, then outward from them.

    A quarter of epsilon for each quartile, by the exponential mechanism on a grid of all scales, the rest for
    `ends_around` them. Where nearly all numbers are equal, or closer together than a 4096th of their size, no point of
    the grid separates them and the quartiles are anywhere: locate such columns otherwise, or state bounds.

    Parameters
    ----------
    numbers
        What is cut.
    units
        Number of units of privacy, public; at least `units_for_ends` for ends that are any good.
    epsilon
        For all four.
    source
        Secret.

    """
    each = epsilon / 4
    grid = dyadic_grid()
    low, high = sorted(
        choose_point(numbers, grid, part=(-np.inf, np.inf), share=share, epsilon=each, source=source)
        for share in (Fraction(1, 4), Fraction(3, 4))
    )
    middle = low / 2 + high / 2
    width = max(high / 2 - low / 2, abs(middle) / 64)
    return ends_around(numbers, middle=middle, width=width, units=units, epsilon=2 * each, source=source)


def ends_around(
    numbers: Sorted, *, middle: float, width: float, units: int, epsilon: Fraction, source: PrivateRandomness
) -> tuple[float, float]:
    """Return ends beyond which few numbers are, found outward from a place that is public, epsilon-DP.

    Half of epsilon for each end, by the sparse vector technique, whose queries move by at most a unit's whole weight,
    however many records share it. Reaches grow by the square root of 2 until few numbers are beyond, so that an end is
    not far beyond the numbers: the search stops as soon as next to nothing is left.

    Parameters
    ----------
    numbers
        What is cut.
    middle, width
        About where the numbers are and how far they spread.
    units
        Number of units of privacy, public.
    epsilon
        For both ends.
    source
        Secret.

    """
    each = epsilon / 2
    reaches = max(width, abs(middle) * _FINEST, _LEAST_WIDTH) * 2.0 ** (np.arange(_REACHES) / 2)
    allowed = _allowed(units, each) * numbers.whole
    below = numbers.weight_below(middle - reaches)
    above = int(numbers.below[-1]) - numbers.weight_below(np.nextafter(middle + reaches, np.inf))
    first, last = (
        _first_with_few(outside, allowed=allowed, whole=numbers.whole, epsilon=each, source=source)
        for outside in (below, above)
    )
    return float(middle - reaches[first]), float(middle + reaches[last])


def units_for_ends(epsilon: Fraction) -> int:
    """Return the least number of units with which `private_ends` is any good, but for a chance of 1 in 100 a choice."""
    quartile = 4 * 2 * math.log(_RARE * len(dyadic_grid())) / float(epsilon / 4)
    return math.ceil(max(quartile, float(_error(epsilon / 4) / _LARGEST_SHARE)))


def _error(epsilon: Fraction) -> Fraction:
    """Return how far, in units, noise of a run of the sparse vector technique reaches but for a chance of 1 in 100."""
    return Fraction(math.ceil(8 * math.log(_REACHES * _RARE))) / epsilon


def _allowed(units: int, epsilon: Fraction) -> int:
    """Return how many units may be beyond an end: a 256th, or what noise hides if that is more."""
    return math.floor(max(Fraction(units, 256), min(_error(epsilon), units * _LARGEST_SHARE)))


def check_ends(*, units: int, whole: int, epsilon: Fraction) -> None:
    """Make the searches of `ends_around`, and draw nothing; reads no record.

    Raises
    ------
    InvalidParameter
        If they would be refused.

    """
    _search(allowed=_allowed(units, epsilon / 2) * whole, whole=whole, epsilon=epsilon / 2)


def _search(*, allowed: int, whole: int, epsilon: Fraction) -> AboveThreshold:
    return AboveThreshold(sensitivity=whole, epsilon=epsilon, threshold=-allowed)


def _first_with_few(
    outside: np.ndarray[tuple[int], np.dtype[np.int64]],
    *,
    allowed: int,
    whole: int,
    epsilon: Fraction,
    source: PrivateRandomness,
) -> int:
    """Return the place of the first reach beyond which few numbers are, and a little further."""
    mechanism = _search(allowed=allowed, whole=whole, epsilon=epsilon)
    answers = mechanism.release((-int(beyond) for beyond in outside), randomness=source).value
    found = len(answers) - 1 if isinstance(answers, tuple) else len(outside) - 1
    return min(found + _FURTHER, len(outside) - 1)


Ints = NDArray[np.int64]
_MOST_CELLS = 1 << 15
_MOST_STEPS = 1 << 20
_AROUND_SHARE = Fraction(1, 4)
RANGE_SHARE = Fraction(1, 2)
"""Of a private binning's epsilon, what goes to its ends where there are no bounds."""


@final
@dataclass(frozen=True, slots=True, init=False)
class NumericBinning:
    """Cells ``[edges[i], edges[i + 1])`` of a column of numbers, the last one with its upper end.

    Formal guarantees
    -----------------
    - Each cell of the table alone decides what it becomes: a number outside goes to the nearest cell, what is no finite
      number to the code for missing cells, or to the last cell if there is none.
    - `private` is epsilon-DP, exactly, under replacing one unit.
    - Decoded numbers lie in their cell, and are multiples of ``10^-decimals`` where the cell has some.
    - Not promised: that records lie inside a cell as the data do. They follow a density that is linear in each cell.

    Parameters
    ----------
    edges
        Shape (m + 1,), finite, increasing; public.
    decimals
        Numbers are multiples of ``10^-decimals``, from -9 to 12; None for real numbers.
    missing
        Whether there is a code, the last, for missing cells.

    Raises
    ------
    InvalidParameter
        If they are not as above.

    Examples
    --------
    >>> binning = NumericBinning.equal(0, 100, cells=4, decimals=0, missing=True)
    >>> binning.encode([3, 99, 1000, float("nan"), "?"]).tolist()
    [0, 3, 3, 4, 4]
    >>> binning.column("age").size
    5

    """

    edges: tuple[float, ...]
    decimals: int | None
    missing: bool

    def __init__(
        self, edges: Sequence[float] | ArrayLike, *, decimals: int | None = None, missing: bool = False
    ) -> None:
        ends = np.asarray(edges, dtype=np.float64)
        if ends.ndim != 1 or not 2 <= len(ends) <= _MOST_CELLS + 1:
            raise InvalidParameter("edges must be two or more increasing numbers, at most 32769.")
        if not np.isfinite(ends).all() or not (ends[:-1] < ends[1:]).all():
            raise InvalidParameter("edges must be finite and increasing.")
        _check.store(self, edges=tuple(ends.tolist()), decimals=_decimals(decimals), missing=bool(missing))

    @classmethod
    def equal(
        cls, low: float, high: float, *, cells: int, decimals: int | None = None, missing: bool = False
    ) -> "NumericBinning":
        """Return cells of equal width between public bounds."""
        count = _check.integer("cells", cells, least=1, most=_MOST_CELLS)
        if not -np.inf < low < high < np.inf:
            raise InvalidParameter("low must be below high, both finite.")
        return cls(np.linspace(low, high, count + 1), decimals=decimals, missing=missing)

    @classmethod
    def private(
        cls,
        values: ArrayLike,
        *,
        epsilon: Number,
        cells: int = 32,
        bounds: tuple[float, float] | None = None,
        around: tuple[float, float] | None = None,
        decimals: int | None = None,
        missing: bool = False,
        units: ArrayLike | None = None,
        unit: str | None = None,
        randomness: PrivateRandomness | None = None,
    ) -> "Release[NumericBinning]":
        """Cut at private quantiles, halves of halves, into cells with about the same number of records.

        Parameters
        ----------
        values
            Shape (n,).
        epsilon
            For the edges, and half of it for the ends if there are no bounds.
        cells
            A power of two; there are fewer where many numbers are equal.
        bounds
            Public ends.
        around
            Without bounds: a place and a width that were released or are public; a quarter of epsilon finds ends around
            them. Without either, quartiles are found on a grid of all scales from 2^-66 to 2^66, then ends
            around them.
        decimals, missing
            As in the class.
        units, unit
            As in `MarginalLearner.release`.
        randomness
            Leave it out.

        """
        source = require_private(randomness)
        total = _check.epsilon(epsilon)
        count = _check.integer("cells", cells, least=2, most=1 << 12)
        if count & (count - 1):
            raise InvalidParameter("cells must be a power of two: cells are halved.")
        records = Records.of(_numbers(values), units=units, unit=unit)
        whole = 1 if records.owners is None else WHOLE
        numbers = Sorted.of(records.rows[:, 0], unit_weights(records), whole)
        places, levels = _decimals(decimals), count.bit_length() - 1
        for_ends = Fraction(0) if bounds is not None else total * (RANGE_SHARE if around is None else _AROUND_SHARE)
        left = total - for_ends
        check_quantiles(levels=levels, whole=whole, epsilon=left)  # before the ends spend anything
        with composing("basic", what="where to cut numbers into cells") as run:
            if bounds is None and around is not None:
                middle, width = around
                ends = ends_around(
                    numbers, middle=middle, width=width, units=records.units, epsilon=for_ends, source=source
                )
            elif bounds is None:
                ends = private_ends(numbers, units=records.units, epsilon=for_ends, source=source)
            elif -np.inf < bounds[0] < bounds[1] < np.inf:
                ends = (float(bounds[0]), float(bounds[1]))
            else:
                raise InvalidParameter("bounds must be two finite numbers, the lower first.")
            edges = quantile_edges(
                numbers,
                ends=ends,
                levels=levels,
                step=None if places is None else 10.0**-places,
                epsilon=left,
                source=source,
            )
        guarantee = PureDP(total, Neighbouring.REPLACE_ONE, records.word)
        return Release(cls(edges, decimals=places, missing=missing), guarantee, settled(run, guarantee))

    def with_frequent(
        self,
        values: ArrayLike,
        *,
        epsilon: Number,
        delta: Number,
        most: int,
        among: range | None = None,
        units: ArrayLike | None = None,
        unit: str | None = None,
        randomness: PrivateRandomness | None = None,
    ) -> "Release[NumericBinning]":
        """Give values that many records share exactly, zeros and round numbers say, a cell of their own.

        ``(epsilon, delta)``-DP under replacing one unit, by the stable histogram, or by noisy counts of all values that
        there may be. Of a unit its first record counts.

        Parameters
        ----------
        values
            Shape (n,).
        epsilon, delta
            Of the histogram.
        most
            So many values at most, each with at least half as many records as a cell has on average.
        among
            With ``decimals`` d: numbers are these multiples of ``10^-d`` alone, public. Then values of fewer records
            are found, as long as there are fewer than about 1 / delta multiples.
        units, unit, randomness
            As in `private`.

        """
        source = require_private(randomness)
        records = Records.of(_numbers(values), units=units, unit=unit)
        one = records.rows[records.first_rows, 0]
        one = one if self.decimals is None else np.round(one, self.decimals)
        with composing("basic", what="values that many records share") as run:
            atoms = frequent_values(
                one,
                epsilon=_check.epsilon(epsilon),
                delta=_check.delta(delta),
                most=_check.integer("most", most, least=1, most=_MOST_CELLS // 4),
                least=len(one) / (2 * self.cells),
                among=None if among is None or self.decimals is None else (among, self.decimals),
                source=source,
            )
        step = None if self.decimals is None else 10.0**-self.decimals
        edges = with_atoms(np.array(self.edges), atoms, step=step)
        guarantee = ApproxDP(epsilon, delta, Neighbouring.REPLACE_ONE, records.word)
        binning = NumericBinning(edges, decimals=self.decimals, missing=self.missing)
        return Release(binning, guarantee, settled(run, guarantee))

    @staticmethod
    def check_around(*, epsilon: Number, cells: int, bounded: bool, units: int, several_records: bool = False) -> None:
        """Make every mechanism of `private` with ``bounds``, or with ``around``, and draw nothing; reads no record.

        Parameters
        ----------
        epsilon, cells
            As in `private`.
        bounded
            Whether there are public ends.
        units
            Number of units of privacy.
        several_records
            Whether a unit may have several records.

        Raises
        ------
        InvalidParameter
            If one of them would be refused.

        """
        total, whole = _check.epsilon(epsilon), WHOLE if several_records else 1
        for_ends = Fraction(0) if bounded else total * _AROUND_SHARE
        if for_ends:
            check_ends(units=units, whole=whole, epsilon=for_ends)
        check_quantiles(levels=cells.bit_length() - 1, whole=whole, epsilon=total - for_ends)

    @staticmethod
    def check_frequent(*, epsilon: Number, delta: Number) -> None:
        """Make the mechanism of `with_frequent`, and draw nothing; raises InvalidParameter if it would be refused."""
        stable_histogram(epsilon=_check.epsilon(epsilon), delta=_check.delta(delta))

    @staticmethod
    def epsilon_of_frequent(count: Fraction, *, among: range) -> Fraction:
        """Return the epsilon at which `with_frequent` finds a value of so many units among public ones."""
        return epsilon_to_find(count, among)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1

    def column(self, name: str) -> Column:
        """Return the column of a `Domain` that these codes make."""
        ends = np.array(self.edges)
        return Column(
            name,
            self.cells + self.missing,
            kind=ColumnKind.NUMBER,
            positions=ends[:-1] + np.diff(ends) / 2,
            missing=self.missing,
        )

    def encode(self, values: ArrayLike) -> Ints:
        """Return the code of each number, shape (n,)."""
        numbers = _numbers(values)
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals)
        codes = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), self.cells - (not self.missing), codes).astype(np.int64)

    def decode(self, codes: ArrayLike, generator: Generator, *, masses: ArrayLike | None = None) -> Floats:
        """Return a number for each code, NaN for missing ones, shape (n,).

        Parameters
        ----------
        codes
            Shape (n,), as from `encode` or a model.
        generator
            Where the places inside cells come from.
        masses
            Probability of each code, to draw from a density that is linear in each cell and leans as the neighbours
            do; constant in each cell by default.

        """
        places = np.asarray(codes, dtype=np.int64)
        if ((places < 0) | (places >= self.cells + self.missing)).any():
            raise InvalidParameter(f"codes must be from 0 to {self.cells + self.missing - 1}.")
        absent = places >= self.cells
        cell = np.where(absent, 0, places)
        slopes = np.zeros(self.cells) if masses is None else self._slopes(np.asarray(masses, dtype=np.float64))
        level = _leaning(generator.random(len(cell)), slopes[cell])
        ends = np.array(self.edges)
        low, high = ends[cell], ends[cell + 1]
        found = np.where(np.nextafter(low, np.inf) >= high, low, low + level * (high - low))  # a cell of one float
        if self.decimals is not None:
            found = _snapped(found, low, high, step=10.0**-self.decimals, decimals=self.decimals)
        return np.where(absent, np.nan, np.clip(found, low, high))

    def _slopes(self, masses: Floats) -> Floats:
        """Return how much the density rises across each cell, over its mean: as towards the gentler neighbour."""
        if masses.shape[0] < self.cells:
            raise InvalidParameter("masses must be one probability a code.")
        if self.cells == 1:
            return np.zeros(1)
        ends = np.array(self.edges)
        ends = ends / (float(np.abs(ends).max()) or 1.0)  # no width or height overflows, and slopes have no unit
        widths = np.maximum(np.diff(ends), (ends[-1] - ends[0]) * 1e-9)  # a cell may be a single float
        heights = masses[: self.cells] / widths
        middles = ends[:-1] + widths / 2
        rises = np.diff(heights) / np.diff(middles)
        before, after = np.concatenate([[0.0], rises]), np.concatenate([rises, [0.0]])
        gentle = np.where(before * after > 0, np.sign(before) * np.minimum(np.abs(before), np.abs(after)), 0.0)
        relative = np.divide(gentle * widths, heights, out=np.zeros(self.cells), where=heights > 0)
        return np.asarray(np.clip(relative, -2.0, 2.0))


def _decimals(decimals: int | None) -> int | None:
    if decimals is None:
        return None
    return _check.integer("decimals", decimals, least=-9, most=12)


def _numbers(values: ArrayLike) -> Floats:
    """Return a column as floats, each cell read on its own: NaN for what is no finite number."""
    table = table_of_numbers(values, columns=1)
    if table.shape[1] != 1:
        raise InvalidParameter("values must have shape (n,).")
    return np.where(np.isfinite(table[:, 0]), table[:, 0], np.nan)


def _leaning(level: Floats, slope: Floats) -> Floats:
    """Return where the law with density ``1 + slope (u - 1/2)`` on (0, 1) reaches a level."""
    straight = np.abs(slope) < 1e-9
    bend = np.where(straight, 1.0, slope)
    base = 1 - bend / 2
    root = (np.sqrt(np.maximum(base**2 + 2 * bend * level, 0.0)) - base) / bend
    return np.where(straight, level, np.clip(root, 0.0, 1.0))


def _snapped(found: Floats, low: Floats, high: Floats, *, step: float, decimals: int) -> Floats:
    """Return the multiple of a step in each cell that stands for the stretch of the cell a number lies in."""
    first = np.ceil(np.round(low / step, 6))
    last = np.ceil(np.round(high / step, 6)) - 1
    count = np.minimum(last - first + 1, _MOST_STEPS * 1024.0)
    level = (found - low) / (high - low)
    rank = np.floor(np.clip(level, 0.0, 1 - 1e-12) * count)
    return np.where(count >= 1, np.round((first + rank) * step, decimals), found)
