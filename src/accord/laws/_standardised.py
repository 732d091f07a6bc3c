"""Two normal laws in coordinates where the first is standard and the second has independent entries."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from accord.distributions import Normal

__all__ = ["Standardised", "standardised"]

_Floats = NDArray[np.float64]
_SAME_SCALE = 1e-13
_NEAR = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """P = N(0, I) against Q = N(shift, diag(v)): ``stretch = v - 1`` and ``log_variance = log v``, each of shape (d,).

    Both are kept, since ``v - 1`` has lost the digits of a small v.
    """

    shift: _Floats
    stretch: _Floats
    log_variance: _Floats

    @property
    def merged(self) -> "Standardised":
        """The same pair with the axes of equal scale turned, so that one of them, the last, has all of their shift."""
        alike = np.abs(self.stretch) <= _SAME_SCALE
        return Standardised(
            shift=np.append(self.shift[~alike], math.hypot(*self.shift[alike].tolist())),
            stretch=np.append(self.stretch[~alike], 0.0),
            log_variance=np.append(self.log_variance[~alike], 0.0),
        )


def standardised(p: Normal, q: Normal) -> Standardised:
    """Return ``p`` and ``q`` in such coordinates; a shift beyond the floats is infinite in every entry."""
    own, other = p.cholesky, q.cholesky
    with np.errstate(all="ignore"):
        shift = solve_triangular(own, np.array(q.mean) - np.array(p.mean), lower=True, check_finite=False)
        apart = _relative_difference(p, q, own)
        if np.isfinite(apart).all() and np.linalg.norm(apart) < _NEAR:
            stretch, axes = np.linalg.eigh(apart)
            log_variance = np.log1p(stretch)
        else:
            axes, scales, _ = np.linalg.svd(solve_triangular(own, other, lower=True, check_finite=False))
            stretch = (scales - 1) * (scales + 1)
            small = np.abs(stretch) < _NEAR
            log_variance = np.where(small, np.log1p(np.where(small, stretch, 0.0)), 2 * np.log(scales))
        shift = axes.T @ shift if np.isfinite(shift).all() else np.full(p.dimension, math.inf)
    return Standardised(shift=shift, stretch=stretch, log_variance=log_variance)


def _relative_difference(p: Normal, q: Normal, own: _Floats) -> _Floats:
    """Return ``L^-1 (Q - P) L^-T`` for covariances P = L L^T and Q; near ones are subtracted without rounding.

    On a line it is ``(q - p) / p``, without the rounding of two square roots.
    """
    first, second = np.array(p.covariance), np.array(q.covariance)
    if p.dimension == 1:
        return np.asarray((second - first) / first)
    half = solve_triangular(own, second - first, lower=True, check_finite=False)
    whole = solve_triangular(own, half.T, lower=True, check_finite=False)
    return np.asarray((whole + whole.T) / 2)
