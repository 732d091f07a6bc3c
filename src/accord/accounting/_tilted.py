"""Convolution of many grid laws by a tilted Fourier transform, with its rounding error bounded and added.

The laws are multiplied by ``e^(order * loss)`` and normalised, so that the losses that decide about a small delta
become the likely ones. The absolute error of a Fourier transform is then small against them, whatever delta is. See
docs/proofs/privacy-loss.md for every constant.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.accounting._grid import GridLaw
from accord.privacy._loss_sums import ROUNDING

__all__ = ["ComposedLaw", "Tilted", "compose", "tilt"]

Floats = NDArray[np.float64]
_DEVIATIONS = 9.5
_LARGEST_EXPONENT = 700.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """A grid law times ``e^(order * loss)``, normalised.

    Parameters
    ----------
    law
        The law that was tilted.
    count
        How many copies are composed.
    masses
        Of the tilted law, from ``law.first`` on.
    log_moment
        ``log`` of the normalising constant.
    error
        Relative error of every mass, in units of rounding.

    """

    law: GridLaw
    count: int
    masses: Floats
    log_moment: float
    error: float


def tilt(law: GridLaw, *, count: int, step: float, order: float) -> Tilted:
    """Return the tilted law."""
    exponents = order * step * np.arange(law.first, law.first + law.masses.size)
    with np.errstate(divide="ignore"):
        logs = np.log(law.masses) + exponents
    top = float(logs.max())
    grown = np.exp(logs - top)
    total = float(grown.sum())
    largest = max(abs(float(exponents[0])), abs(float(exponents[-1])), abs(top), 1.0)
    used = float(np.abs(logs[grown > 0]).max(initial=1.0))
    error = law.error + 8 * (largest + used) + 2 * law.masses.size + 64
    return Tilted(law=law, count=count, masses=grown / total, log_moment=top + math.log(total), error=error)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedLaw:
    """An upper bound of the law of a summed loss, above some loss.

    Parameters
    ----------
    losses
        In rising order.
    masses
        Upper bounds of the masses at these losses, up to ``excess``.
    excess
        A factor that covers all relative errors.
    added
        What lies beyond the losses, at most.
    shift
        How far losses may have been placed too low, all together.

    """

    losses: Floats
    masses: Floats
    excess: float
    added: float
    shift: float


def compose(parts: Sequence[Tilted], *, step: float, order: float, lowest: float) -> ComposedLaw:
    """Return the law of the sum of ``count`` copies of every part, at losses from about ``lowest`` on or lower."""
    means, variances = zip(*(_moments(part) for part in parts), strict=True)
    counts = [part.count for part in parts]
    middle = math.fsum(n * m for n, m in zip(counts, means, strict=True))
    spread = _DEVIATIONS * math.sqrt(math.fsum(n * v for n, v in zip(counts, variances, strict=True)))
    least = sum(part.count * part.law.first for part in parts)
    most = sum(part.count * (part.law.first + part.masses.size - 1) for part in parts)
    start = max(least, min(math.floor(middle - spread), math.floor(lowest / step)))
    end = min(most, max(start, math.ceil(middle + spread)))
    cells = 1 << max(4, (end - start + 1).bit_length())
    tilted = _circular(parts, cells=cells, start=start)
    end = start + cells - 1

    total_count = sum(counts)
    log_moment = math.fsum(part.count * part.log_moment for part in parts)
    indices = np.arange(start, end + 1, dtype=np.float64)
    exponents = log_moment - order * step * indices
    error = 2 * (total_count + 1) * (16 * math.log2(cells) + 8) * ROUNDING
    masses = (np.maximum(tilted, 0.0) + error) * np.exp(np.minimum(exponents, _LARGEST_EXPONENT))
    relative = math.fsum(part.count * (part.error + 4 * abs(part.log_moment)) for part in parts)
    relative += 8 * (abs(log_moment) + order * step * max(abs(start), abs(end))) + 2 * cells + 64
    return ComposedLaw(
        losses=indices * step,
        masses=masses,
        excess=math.exp(2 * ROUNDING * relative),
        added=_beyond(parts, step=step, order=order, end=end, most=most) + 1e-290,
        shift=ROUNDING * (math.fsum(p.count * p.law.shift for p in parts) + 8 * step * max(abs(start), abs(end), 1)),
    )


def _moments(part: Tilted) -> tuple[float, float]:
    indices = part.law.first + np.arange(part.masses.size, dtype=np.float64)
    mean = float(indices @ part.masses)
    return mean, float((indices - mean) ** 2 @ part.masses)


def _circular(parts: Sequence[Tilted], *, cells: int, start: int) -> Floats:
    """Return the masses of the sum, folded into ``cells`` positions of which the first is ``start``.

    What is folded in from outside is positive: it can only raise a mass.
    """
    spectrum = np.ones(cells // 2 + 1, dtype=np.complex128)
    for part in parts:
        # Each part begins at position 0: the sum of all beginnings is put back at the end.
        padded = np.zeros(-(-part.masses.size // cells) * cells)
        padded[: part.masses.size] = part.masses
        spectrum *= _power(np.fft.rfft(padded.reshape(-1, cells).sum(axis=0)), part.count)
    least = sum(part.count * part.law.first for part in parts)
    return np.roll(np.fft.irfft(spectrum, n=cells), (least - start) % cells)


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return the power by repeated squaring: at most ``exponent`` roundings, each three units, add up in it."""
    result = None
    while True:
        if exponent & 1:
            result = values if result is None else result * values
        exponent >>= 1
        if not exponent:
            return values if result is None else result
        values = values * values


def _beyond(parts: Sequence[Tilted], *, step: float, order: float, end: int, most: int) -> float:
    """Return a bound of the mass above the last position, by exponential moments of higher orders."""
    if most <= end:
        return 0.0
    best = math.inf
    variance = max(math.fsum(part.count * _moments(part)[1] for part in parts), 1.0) * step**2
    for factor in (0.25, 0.5, 1.0):
        more = factor * _DEVIATIONS / math.sqrt(variance)
        exponent = -(order + more) * step * (end + 1)
        for part in parts:
            at = more * step * (part.law.first + np.arange(part.masses.size))
            with np.errstate(divide="ignore"):
                logs = np.log(part.masses) + at
            top = float(logs.max())
            exponent += part.count * (part.log_moment + top + math.log(float(np.exp(logs - top).sum())))
        best = min(best, exponent)
    return math.exp(min(best, 0.0) + 1e-6)
