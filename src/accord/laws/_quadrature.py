"""Integrals over a line that is cut at known places."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["integrals"]

_Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(15)
_RELATIVE = 1e-11
_SHARE = 1e-13
_FLOOR = 1e-27
_MOST_ROUNDS = 60
_MOST_PANELS = 200_000


def integrals(function: Callable[[_Floats], _Floats], cuts: _Floats) -> _Floats:
    """Return the integral of a function that is at least 0 between each two neighbouring cuts, shape (m - 1,).

    Gauss-Legendre panels are halved until a panel and its halves agree to 1e-11 of their own, 1e-13 of the total or
    1e-27, which is what squares of rounding errors are worth. A function that is infinite at a
    node makes its panel infinite.
    """
    low, high, owner = cuts[:-1], cuts[1:], np.arange(len(cuts) - 1)
    rough = _panels(function, low, high)
    done = np.zeros(len(low))
    seen = len(low)
    for _ in range(_MOST_ROUNDS):
        middle = low / 2 + high / 2
        left, right = _panels(function, low, middle), _panels(function, middle, high)
        fine = left + right
        with np.errstate(invalid="ignore"):
            total = float(done.sum() + fine.sum())
            error = np.abs(fine - rough)
        agreed = (error <= _RELATIVE * fine) | (error <= max(_FLOOR, _SHARE * total)) | ~np.isfinite(error)
        agreed |= (middle <= low) | (middle >= high) | (seen > _MOST_PANELS)
        np.add.at(done, owner[agreed], fine[agreed])
        if agreed.all():
            return done
        rest = ~agreed
        low, high = np.concatenate([low[rest], middle[rest]]), np.concatenate([middle[rest], high[rest]])
        owner, rough = np.tile(owner[rest], 2), np.concatenate([left[rest], right[rest]])
        seen += len(low)
    np.add.at(done, owner, rough)
    return done


def _panels(function: Callable[[_Floats], _Floats], low: _Floats, high: _Floats) -> _Floats:
    """Return one Gauss-Legendre sum for each panel."""
    width = high - low
    nodes = low[:, None] + width[:, None] * ((_NODES + 1) / 2)
    first, last = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)  # a density may jump at the ends
    nodes = np.where((first <= last)[:, None], np.clip(nodes, first[:, None], last[:, None]), nodes)
    values = function(nodes.ravel()).reshape(nodes.shape)
    total = np.empty(len(low))
    with np.errstate(over="ignore", invalid="ignore"):
        total[:] = (values @ _WEIGHTS) * width / 2
    total[np.isinf(values).any(axis=1)] = math.inf
    return total
