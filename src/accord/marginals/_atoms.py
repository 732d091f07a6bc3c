"""Values that many records share exactly, such as zeros and round numbers: each gets a cell of its own."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accord.mechanisms import ThresholdedCounts
from accord.randomness import PrivateRandomness

__all__ = ["frequent_values", "stable_histogram", "with_atoms"]

Floats = NDArray[np.float64]


def frequent_values(
    values: Floats, *, epsilon: Fraction, delta: Fraction, most: int, least: float, source: PrivateRandomness
) -> list[float]:
    """Return values that occur often, (epsilon, delta)-DP under replacing one value, at most so many, increasing.

    Parameters
    ----------
    values
        One for each unit of privacy; NaN where a unit has none.
    epsilon, delta
        Of the stable histogram.
    most
        At most so many values, the most frequent ones by their noisy counts.
    least
        Values with a lower noisy count are left out.
    source
        Secret.

    """
    present = values[np.isfinite(values)] + 0.0  # no minus zero
    counts = stable_histogram(epsilon=epsilon, delta=delta)
    released = counts.release(present.tolist(), randomness=source).value
    found = [(float(level), int(times)) for level, times in released] if isinstance(released, tuple) else []
    kept = sorted((entry for entry in found if entry[1] >= least), key=lambda entry: (-entry[1], entry[0]))[:most]
    return sorted(value for value, _ in kept)


def stable_histogram(*, epsilon: Fraction, delta: Fraction) -> ThresholdedCounts:
    """Return the mechanism of `frequent_values`; what it would refuse is refused here."""
    return ThresholdedCounts(epsilon=epsilon, delta=delta)


def with_atoms(edges: Floats, atoms: list[float], *, step: float | None) -> Floats:
    """Return edges with a cell for each atom: half a step to each side, or the float alone if there is no step."""
    for atom in atoms:
        low, high = (atom, float(np.nextafter(atom, np.inf))) if step is None else (atom - step / 2, atom + step / 2)
        outside = edges[(edges <= low) | (edges >= high)]
        edges = np.union1d(outside, [low, high])
    return edges
