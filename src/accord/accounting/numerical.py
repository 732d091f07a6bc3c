"""The least epsilon of a composed law of the privacy loss, as an upper bound."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.losses import GridLaw, PrivacyLoss
from accord.accounting.noise_losses import DiscreteGaussianLoss, GaussianLoss
from accord.accounting.optimal import ROUNDING, least_loss

__all__ = [
    "ComposedLaw",
    "Tilted",
    "compose",
    "numerical_epsilon",
    "tilt",
]


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


_WORK = 1 << 24
_MOST_CELLS = 1 << 17
_MOST_GAUSSIAN_CELLS = 1 << 15
_FEWEST_CELLS = 1 << 12
_WIDTH = 20.0  # deviations that the cells are made to cover


def numerical_epsilon(losses: Mapping[PrivacyLoss, int], *, left: float, order: float, guess: float) -> float:
    """Return an epsilon at which the pure parts of these losses spend at most ``left``; infinity if none was found.

    Parameters
    ----------
    losses
        Losses and their numbers.
    left
        The delta that may be spent, beyond what the losses give away for certain.
    order
        The tilt. Every positive one gives a valid bound; that of the moment bound a nearly exact one.
    guess
        About the answer; only decides how fine the grid is.

    """
    parts = sorted(_merged(losses).items(), key=lambda part: repr(part[0]))
    step = _step(parts, guess=guess)
    order = max(order, 1e-6)
    tilted = [tilt(loss.on_grid(step), count=count, step=step, order=order) for loss, count in parts]
    law = compose(tilted, step=step, order=order, lowest=guess / 2)
    found = least_loss(left, losses=law.losses, masses=law.masses, excess=law.excess, added=law.added)
    found = max(found, float(law.losses[0]))  # below the window masses are missing: nothing is known there
    return found + law.shift + 4 * ROUNDING * max(abs(float(law.losses[-1])), found) if found > 0 else 0.0


def _merged(losses: Mapping[PrivacyLoss, int]) -> dict[PrivacyLoss, int]:
    """Return the same losses with all Gaussians as one: the squares add up."""
    others: dict[PrivacyLoss, int] = {}
    squared, gaussian = Fraction(0), None
    for loss, count in losses.items():
        if isinstance(loss, GaussianLoss):
            squared, gaussian = squared + count * loss.squared, loss
        else:
            others[loss] = others.get(loss, 0) + count
    if gaussian is not None and squared > 0:
        others[gaussian.with_square(squared)] = 1
    return others


def _size(loss: PrivacyLoss) -> float:
    """Return about the largest loss, or the deviation of a Gaussian."""
    if isinstance(loss, GaussianLoss):
        return math.sqrt(loss.squared)
    if isinstance(loss, DiscreteGaussianLoss):
        return float(loss.shift / loss.sigma)
    return float(loss.guarantee.epsilon) if loss.guarantee is not None else 1.0


def _step(parts: list[tuple[PrivacyLoss, int]], *, guess: float) -> float:
    """Return the step: as fine as the work allows, and a fraction of the largest part's epsilon if that is pure."""
    most = _MOST_GAUSSIAN_CELLS if any(isinstance(loss, GaussianLoss) for loss, _ in parts) else _MOST_CELLS
    cells = min(most, max(_FEWEST_CELLS, _WORK // len(parts)))
    deviation = math.sqrt(math.fsum(count * _size(loss) ** 2 for loss, count in parts))
    range_ = 2 * math.fsum(count * _size(loss) for loss, count in parts) + guess
    step = max(min(_WIDTH * deviation, range_), 1e-12) / cells
    heaviest = max(parts, key=lambda part: part[1] * _size(part[0]) ** 2)[0]
    if heaviest.guarantee is None or heaviest.guarantee.epsilon == 0:
        return step
    epsilon = float(heaviest.guarantee.epsilon)
    return epsilon / max(1, round(epsilon / step))
