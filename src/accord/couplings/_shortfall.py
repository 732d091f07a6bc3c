"""How far a race among finitely many candidates is from the law itself."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["shortfall", "usual_candidates"]

_FEWEST, _MOST = 1 << 10, 1 << 18
_TARGET = 0.05

_Floats = NDArray[np.float64]


def shortfall(log_ratios: _Floats, *, candidates: int) -> float:
    """Return the mean of ``(f - 1)_+ / (f + N - 1)`` over ratios ``f = dq/dnu`` seen at tuples of q.

    The total variation between q and the law of the winner of a race among N independent candidates from nu is at most
    its expectation (docs/proofs/two-stage.md).
    """
    logs = np.asarray(log_ratios, dtype=np.float64)
    with np.errstate(over="ignore"):
        small = np.exp(np.minimum(logs, 0.0))
        large = np.exp(-np.maximum(logs, 0.0))
    # For f > 1, divided through by f, so that nothing overflows.
    above = (1.0 - large) / (1.0 + (candidates - 1) * large)
    return float(np.where(small < 1.0, 0.0, above).mean())


def usual_candidates(log_ratios: _Floats) -> int:
    """Return the least power of 2, from 2^10 to 2^18, whose mean shortfall over these ratios is at most a twentieth."""
    number = _FEWEST
    while number < _MOST and shortfall(log_ratios, candidates=number) > _TARGET:
        number *= 2
    return number
