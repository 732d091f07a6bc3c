"""Yatracos sets of laws that can only be sampled and read: membership by densities, chances by public simulation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness
from accord.distributions import log_densities

__all__ = ["FAILURE", "SimulatedSets", "simulated_sets"]

_Floats = NDArray[np.float64]

FAILURE = 1e-6
"""Chance that some simulated measure is off by more than the stated error."""

_KEY = "minimum distance: measures of sets"
_ROWS = 1 << 12
_ROUNDING = 1e-9


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedSets:
    """The sets ``{q_i > q_j}``, i < j, decided record by record.

    Parameters
    ----------
    laws
        N candidates on R^d.
    measures, error, gap, ends
        See `PublicSets`; ends is None.

    """

    laws: tuple[Distribution, ...]
    measures: _Floats
    error: float
    gap: float
    ends: int | None = None

    def frequencies(self, records: NDArray[Any]) -> _Floats:
        """Return the share of the records in each set, shape (S,) from records of shape (n, d)."""
        counts = np.zeros(self.measures.shape[1])
        for start in range(0, len(records), _ROWS):
            counts += _members(self.laws, records[start : start + _ROWS])
        return counts / len(records)


def simulated_sets(laws: Sequence[Distribution], *, draws: int) -> SimulatedSets:
    """Return the sets, each law's measure of each simulated from ``draws`` records of that law.

    With N laws and S sets, Hoeffding's inequality makes every one of the N S shares right up to
    ``sqrt(log(2 N S / 1e-6) / (2 draws))`` together, but for chance 1e-6 over the public draws.

    Raises
    ------
    InvalidParameter
        If a law has no density at its own draws.

    """
    count = len(laws)
    pairs = count * (count - 1) // 2
    key = SharedRandomness(_KEY)
    measures = np.zeros((count, pairs))
    for row, law in enumerate(laws):
        stream = key.stream(row)
        for start in range(0, draws, _ROWS):
            drawn = law.sample(min(_ROWS, draws - start), stream)
            if not np.isfinite(log_densities([law], drawn)).all():
                raise InvalidParameter(f"candidates[{row}] has no density at its own draws.")
            measures[row] += _members(laws, drawn)
    measures /= draws
    measures.flags.writeable = False
    error = math.sqrt(math.log(2 * max(1, count * pairs) / FAILURE) / (2 * draws))
    return SimulatedSets(laws=tuple(laws), measures=measures, error=error, gap=_ROUNDING)


def _members(laws: Sequence[Distribution], records: NDArray[Any]) -> _Floats:
    """Return how many records are in the set of each pair i < j, in the order of pairs, shape (S,)."""
    logs = log_densities(laws, records)
    counts = [np.count_nonzero(logs[first] > logs[first + 1 :], axis=1) for first in range(len(laws) - 1)]
    return np.concatenate([np.zeros(0), *counts])
