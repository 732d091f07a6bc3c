"""Values that many records share exactly, such as zeros and round numbers: each gets a cell of its own."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accord.core.secret import PrivateRandomness
from accord.mechanisms import DiscreteLaplace, ThresholdedCounts

__all__ = ["epsilon_to_find", "frequent_values", "stable_histogram", "whole_histogram", "with_atoms"]

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
