"""Laws of the privacy loss on a grid that dominate the true ones.

A mass p at loss t between two grid points is shared out so that both p and ``p e^-t`` are kept. The expectation of a
function that is convex in ``e^-t`` does not fall, and every hockey-stick divergence is one: the grid law dominates, by
itself and in every composition (docs/proofs/privacy-loss.md). No differences of nearly equal numbers occur, so each
mass has a small relative error.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["GridLaw", "share_out", "share_out_smooth"]

Floats = NDArray[np.float64]
_SHARING = 64  # units of rounding that sharing out costs, generously


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridLaw:
    """Masses at losses ``(first + j) * step``.

    Parameters
    ----------
    first
        Index of the first mass.
    masses
        Not negative.
    error
        Relative error of every mass, in units of rounding.
    shift
        How far a loss may have been placed too low, in units of rounding.

    """

    first: int
    masses: Floats
    error: float
    shift: float


def _finished(indices: NDArray[np.int64], masses: Floats, *, error: float, shift: float) -> GridLaw:
    first = int(indices.min())
    summed = np.zeros(int(indices.max()) - first + 1)
    np.add.at(summed, indices - first, masses)
    return GridLaw(first=first, masses=summed, error=error + _SHARING + 2, shift=shift)


def share_out(losses: Floats, masses: Floats, *, step: float, error: float) -> GridLaw:
    """Return the grid law of atoms whose losses are correct to 8 units of rounding of the largest."""
    below = np.floor(losses / step)
    beyond = np.clip(losses - below * step, 0.0, step)
    scale = -np.expm1(-step)
    up = masses * (-np.expm1(-beyond) / scale)
    down = masses * (np.exp(-beyond) * -np.expm1(beyond - step) / scale)
    indices = below.astype(np.int64)
    shift = 16 * float(np.abs(losses).max() + step)
    return _finished(np.concatenate([indices, indices + 1]), np.concatenate([down, up]), error=error, shift=shift)


def share_out_smooth(
    largest: float, *, step: float, atoms: tuple[float, float], weight: float, error: float
) -> GridLaw:
    """Return the grid law of density ``weight e^(t / 2)`` on [-largest, largest] and atoms at its two ends.

    In a cell that starts at ``j step``, from a to b: the upper end gets ``weight e^(j step / 2) 8 sinh((a + b) / 4)
    sinh((b - a) / 4) / (1 - e^-step)``; the lower end the same with ``step - b`` and ``step - a``, and
    ``e^(-step / 2)`` times that.
    """
    low = int(np.floor(-largest / step))
    cells = np.arange(low, int(np.ceil(largest / step)) + 1)
    a = np.clip(-largest - cells * step, 0.0, step)
    b = np.clip(largest - cells * step, 0.0, step)
    scale = weight * np.exp(cells * step / 2) * 8 / -np.expm1(-step)
    up = scale * np.sinh((a + b) / 4) * np.sinh((b - a) / 4)
    down = scale * np.exp(-step / 2) * np.sinh((2 * step - a - b) / 4) * np.sinh((b - a) / 4)
    ends = share_out(np.array([-largest, largest]), np.array(atoms), step=step, error=error)
    ends_at = np.arange(ends.first, ends.first + ends.masses.size)
    return _finished(
        np.concatenate([cells, cells + 1, ends_at]),
        np.concatenate([down, up, ends.masses]),
        error=error + 4 * largest,
        shift=16 * (largest + step),
    )
