"""Mixtures of normal laws on a line as tables of numbers, and their densities at many tuples by compiled code."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.distributions import Mixture, Normal

__all__ = ["LineMixture", "line_mixture", "tuple_densities"]

_Floats = NDArray[np.float64]

_BLOCK = 256
_FOLD = 32  # records whose sums are multiplied before a logarithm is taken
_LOWEST = -45.0  # a component this far (in logs) below the largest counts as exp(-45) of it
_MIDDLE = _LOWEST / 128.0
_START = math.exp(_MIDDLE)
_MOST_COMPONENTS = 1000


@final
@dataclass(frozen=True, slots=True)
class LineMixture:
    """A mixture: log weight less log standard deviation, mean and 1 / standard deviation of each component."""

    logs: _Floats
    means: _Floats
    inverses: _Floats


def line_mixture(law: object) -> LineMixture | None:
    """Return the numbers of a `Normal` or a `Mixture` of `Normal` on a line, None for anything else."""

    def look() -> LineMixture | None:
        if type(law) is Normal:
            parts: Sequence[tuple[Any, float]] = [(law, 1.0)]
        elif type(law) is Mixture:
            parts = law.positive
        else:
            return None
        if not 0 < len(parts) <= _MOST_COMPONENTS or any(type(p) is not Normal or p.dimension != 1 for p, _ in parts):
            return None
        spreads = np.array([part.cholesky[0, 0] for part, _ in parts])
        logs = np.log([weight for _, weight in parts]) - np.log(spreads) - 0.5 * math.log(2.0 * math.pi)
        return LineMixture(logs, np.array([part.mean[0] for part, _ in parts]), 1.0 / spreads)

    found = alone(look, failed=None)
    if found is None:
        return None
    usable = all(np.isfinite(column).all() for column in (found.logs, found.means, found.inverses))
    return found if usable else None


def tuple_densities(law: LineMixture, tuples: _Floats) -> _Floats:
    """Return the log density of n tuples of l numbers, shape (n,) from ``tuples`` transposed: shape (l, n).

    A function of the law and the tuples; relative errors of a record's density stay below 1e-12.
    """
    found = np.empty(tuples.shape[1])
    _compiled()(np.ascontiguousarray(tuples), law.logs, law.means, law.inverses, found)
    found[np.isnan(found)] = -np.inf
    return found


@functools.cache
def _compiled() -> Callable[..., None]:
    """Compile once a process; keep the code on the disk where that is possible."""
    from numba import njit  # noqa: PLC0415 - takes half a second, and few need it

    flags = {"contract", "reassoc", "nsz", "arcp"}
    try:
        code: Callable[..., None] = njit(cache=True, fastmath=flags)(_densities)
    except RuntimeError:  # no place to keep it
        code = njit(fastmath=flags)(_densities)
    return code


def _densities(  # noqa: C901 - one nest of loops, compiled as a whole
    tuples: _Floats, logs: _Floats, means: _Floats, inverses: _Floats, found: _Floats
) -> None:
    """Fill ``found``: loops that a compiler turns into vector code.

    With t the largest exponent, the density of a record is ``exp(t) * s``, s from 1 to the number of components; the s
    of 32 records are multiplied before one logarithm is taken. ``exp(u)`` for u in [-45, 0] is a polynomial in
    ``u / 64``, expanded about the middle and squared six times.
    """
    length, size = tuples.shape
    parts = len(logs)
    exponents = np.empty((parts, _BLOCK))
    top, total, product, result = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, size, _BLOCK):
        width = min(_BLOCK, size - start)
        for i in range(width):
            product[i] = 1.0
            result[i] = 0.0
        for row in range(length):
            for i in range(width):
                top[i] = -np.inf
                total[i] = 0.0
            for part in range(parts):
                for i in range(width):
                    z = (tuples[row, start + i] - means[part]) * inverses[part]
                    e = logs[part] - 0.5 * z * z
                    exponents[part, i] = e
                    top[i] = max(top[i], e)
            for part in range(parts):
                for i in range(width):
                    x = max(exponents[part, i] - top[i], _LOWEST) * 0.015625 - _MIDDLE
                    y = 1.0 / 479001600.0
                    y = y * x + 1.0 / 39916800.0
                    y = y * x + 1.0 / 3628800.0
                    y = y * x + 1.0 / 362880.0
                    y = y * x + 1.0 / 40320.0
                    y = y * x + 1.0 / 5040.0
                    y = y * x + 1.0 / 720.0
                    y = y * x + 1.0 / 120.0
                    y = y * x + 1.0 / 24.0
                    y = y * x + 1.0 / 6.0
                    y = y * x + 0.5
                    y = y * x + 1.0
                    y = (y * x + 1.0) * _START
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    total[i] += y
            for i in range(width):
                product[i] *= total[i]
                result[i] += top[i]
            if row % _FOLD == _FOLD - 1 or row == length - 1:
                for i in range(width):
                    result[i] += math.log(product[i])
                    product[i] = 1.0
        for i in range(width):
            found[start + i] = result[i]
