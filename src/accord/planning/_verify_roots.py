"""The checker of method D: every inequality from the numbers, Poisson chances as sums of their terms."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["far_cells", "shifts_that_do", "too_many"]

_Floats = NDArray[np.float64]
_STEP = 0.04
_BINS, _LOSSES = 4096, 3.0
_HAIR = 1e-9
_ADDED = 0.25
_ROUNDING = 1e-12
_LEAST_HALF = 25


def shifts_that_do(numbers: Mapping[str, Any]) -> float:
    """Return a lower bound of P[the shift of one draw lets a block vote for the truth's cell with chance >= q]."""
    missed, _ = _one_label(*(float(numbers[name]) for name in ("width", "mean_size", "floor")))
    if not missed.max() < 1:
        raise ValueError
    places = [math.ceil(-math.log1p(-miss) / _LOSSES * _BINS) for miss in missed]
    one = np.bincount([place for place in places if place < _BINS], minlength=_BINS) / len(places)
    total = np.zeros(_BINS)
    total[0] = 1.0
    left, power = int(numbers["labels"]), one
    while left:
        if left % 2:
            total = np.convolve(total, power)[:_BINS]
        power, left = np.convolve(power, power)[:_BINS], left // 2
    last = math.floor(-math.log(float(numbers["agreement"])) / _LOSSES * _BINS)
    return float(total[: last + 1].sum())


def far_cells(numbers: Mapping[str, Any], alpha: float, epsilon: float) -> tuple[float, float]:
    """Bound the weight of cells further than alpha, a cell with n0 votes being 1: those of chance above q0; others."""
    _, hit = _one_label(*(float(numbers[name]) for name in ("width", "mean_size", "floor")))
    width, tilt, power = (float(numbers[name]) for name in ("width", "tilt", "power"))
    small, mean = float(numbers["small"]), float(numbers["mean_size"])
    labels, blocks = int(numbers["labels"]), int(numbers["blocks"])
    beyond = 1.5 * width - 0.5
    fall = 2 * power * beyond - 4 * tilt * width
    if not (0 < small < 1 and 0 < tilt < power and power >= 1 and beyond > 0 and fall > 0):
        raise ValueError
    near = sum(
        math.exp(power * math.log(chance) + tilt * (max(abs(place), abs(place + 1)) * _STEP) ** 2)
        for place, chance in zip(range(-len(hit) // 2, len(hit) // 2), hit, strict=True)
    )
    far = 2 * math.exp(4 * tilt * width**2 - power * beyond**2) / fall
    one = (near * _STEP + far) / width
    gain = math.expm1(epsilon / 2)
    top = max(blocks * math.log1p(small * gain) - power * math.log(small), blocks * math.log1p(gain))
    square = mean**2 / (mean + labels * float(numbers["floor"]))
    scale = math.log(int(numbers["draws"])) - epsilon / 2 * int(numbers["good_votes"])
    likely = top + labels * math.log(one) - tilt * alpha**2 * square + scale
    rest = math.log(math.expm1(blocks * math.log1p(small * gain)) / small + blocks) + scale
    return _exponential(likely), _exponential(rest)


def too_many(numbers: Mapping[str, Any]) -> float:
    """Return P[Poisson(b') > b], by its terms."""
    mean, size = float(numbers["mean_size"]), int(numbers["block_size"])
    counts = np.arange(size + 1, dtype=np.float64)
    return 1.0 - float(np.exp(counts * math.log(mean) - mean - gammaln(counts + 1)).sum())


def _exponential(value: float) -> float:
    return math.exp(min(value, 1.0))


@lru_cache(maxsize=32)
def _one_label(width: float, mean: float, floor: float) -> tuple[_Floats, _Floats]:
    """Bound, over all means: the chance to miss the truth's cell, and to hit any cell, by the offset of its centre."""
    half = round(width / _STEP / 2)
    if half < _LEAST_HALF or abs(half * 2 * _STEP - width) > _HAIR or not 0 < floor <= mean:
        raise ValueError
    inside = np.arange(-half, half) * _STEP
    wide = np.arange(-4 * half, 4 * half) * _STEP
    missed, missing = np.zeros(2 * half), np.ones(8 * half)
    row = math.floor(math.sqrt(floor) / _STEP)
    lower = _Count(row * _STEP, reach=3 * width)
    while row * _STEP < math.sqrt(mean + floor):
        upper = _Count((row + 1) * _STEP, reach=3 * width)
        left, right = row * _STEP, (row + 1) * _STEP
        miss = upper.above(left + inside + width / 2 - _HAIR) + lower.below(right + inside + _STEP - width / 2 + _HAIR)
        other = lower.above(right + wide + _STEP + width / 2 + _HAIR) + upper.below(left + wide - width / 2 - _HAIR)
        missed, missing = np.maximum(missed, miss), np.minimum(missing, other)
        row, lower = row + 1, upper
    return np.minimum(missed, 1.0), np.minimum(1.0, 1 - missing + _ROUNDING)


class _Count:
    """The law of the root of a Poisson count plus 1/4, for counts whose roots are near that of the mean."""

    def __init__(self, root: float, *, reach: float) -> None:
        self._start = math.floor(max(0.0, root - reach) ** 2)
        counts = np.arange(self._start, math.ceil((root + reach + 1) ** 2) + 2, dtype=np.float64)
        terms = np.exp(2 * counts * math.log(root) - root**2 - gammaln(counts + 1)) if root > 0 else counts == 0
        self._sums = np.concatenate([[0.0], np.cumsum(terms)])

    def below(self, value: NDArray[Any]) -> _Floats:
        """Return P[V <= value]; counts below the reach, chance under 1e-12, are left out."""
        counts = np.floor(np.where(value > 0, value * value - _ADDED, -1.0)).astype(np.int64)
        return np.asarray(self._sums[np.clip(counts - self._start + 1, 0, len(self._sums) - 1)], dtype=np.float64)

    def above(self, value: NDArray[Any]) -> _Floats:
        """Return P[V > value], likewise."""
        return np.asarray(np.maximum(0.0, 1.0 - self.below(value)), dtype=np.float64)
