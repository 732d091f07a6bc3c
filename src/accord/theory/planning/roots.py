"""Three and more labels by rounded roots of counts: certified for every law on d labels (method D)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, pdtr, pdtrik

from accord.theory.planning.certified import tail_above

__all__ = ["FLOOR", "STEP", "RoundedRoots", "plan_roots"]

STEP = 0.04
"""Step of the grids of roots and of offsets; a width is a whole number of steps, and even."""

_Floats = NDArray[np.float64]
FLOOR = 6.0
"""c0: a block adds Poisson(c0) counts of its own to every label, so that no mean is near 0."""

_ADDED = 0.25
_WIDTHS = tuple(range(56, 204, 6))
_POWERS = np.geomspace(4, 400, 24)
_TILTS = np.geomspace(0.05, 6, 40)
_DRAWS = (128, 1024, 4096)
_SHARES = {"noise": 0.06, "shift": 0.3, "votes": 0.3, "few": 0.04, "bad": 0.29}
_MOST_BLOCKS = 100_000
_BINS = 4096
_LOSSES = 3.0
_CUT = 1e-4
_PILOT_ROOT = 8.0
_ROOTS = (32.0, 64.0, 128.0, 256.0, 512.0)
_ROWS = 1000
_MARGIN = 1 + 1e-7
_TIE = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedRoots:
    """The sizes of the method and the numbers of its proof (docs/proofs/planning.md, part D).

    Parameters
    ----------
    labels, blocks, block_size, draws
        d, k, b, R.
    mean_size
        b': a block uses Poisson(b') of its records.
    width
        w: blocks vote for the cell, of this width, that holds the roots of their counts.
    good_votes, agreement
        n0: what the cell of the truth gets in some draw; q: a block's chance to vote for it then, at least.
    tilt, power, small
        t, A, q0 of the bound on cells that are far from the truth.

    """

    labels: int
    blocks: int
    block_size: int
    draws: int
    mean_size: float
    width: float
    good_votes: int
    agreement: float
    tilt: float
    power: float
    small: float

    @property
    def records(self) -> int:
        """Number of records n = k b."""
        return self.blocks * self.block_size


@final
@dataclass(frozen=True, slots=True)
class _Chances:
    """Bounds for one coordinate, over all means: of a miss of the truth's cell, by its offset, and log F by (A, t)."""

    width: float
    missed: _Floats
    sums: _Floats


@lru_cache(maxsize=64)
def plan_roots(*, labels: int, alpha: float, beta: float, epsilon: float, delta: float) -> RoundedRoots | None:
    """Return the best sizes found, or None if nothing on the list will do."""
    asked = _Asked(labels=labels, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta)
    best: RoundedRoots | None = None
    for steps in _WIDTHS:
        chances = _chances(steps, largest=_PILOT_ROOT)
        losses = _losses(steps, labels)
        for draws in _DRAWS:
            for found in asked.sizes(chances, losses, draws):
                if best is None or found.records < best.records:
                    best = found
    return None if best is None else _settled(asked, best)


def _settled(asked: "_Asked", found: RoundedRoots) -> RoundedRoots | None:
    """Work the numbers out again with bounds for all means up to b'."""
    root = next((limit for limit in _ROOTS if limit > math.sqrt(found.mean_size + FLOOR) * 1.05 + 1), None)
    if root is None:
        return None
    steps = round(found.width / STEP)
    chances = _chances(steps, largest=root)
    losses = _losses(steps, asked.labels, largest=root)
    again = [one for one in asked.sizes(chances, losses, found.draws) if one.mean_size + FLOOR <= root**2]
    return min(again, key=lambda one: one.records, default=None)


# --- one coordinate ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _chances(steps: int, *, largest: float) -> _Chances:
    """Bound V = sqrt(X + 1/4), X a Poisson count, for all means from c0 to ``largest^2``.

    V rises with the mean (stochastically), so the tails at the two ends of an interval of roots bound those inside.
    """
    roots = np.arange(math.floor(math.sqrt(FLOOR) / STEP), math.ceil(largest / STEP)) * STEP
    wide = np.arange(-2 * steps, 2 * steps) * STEP
    missed, hit = np.zeros(steps), np.zeros(4 * steps)
    for start in range(0, len(roots), _ROWS):
        first, half = roots[start : start + _ROWS, None], steps // 2
        last, inside = first + STEP, STEP * np.arange(-half, half)
        misses = 1 - _below(last, first + inside + half * STEP - _TIE)
        misses += _below(first, last + inside + (1 - half) * STEP + _TIE)
        others = 1 - _below(first, last + wide + (1 + half) * STEP + _TIE)
        others += _below(last, first + wide - half * STEP - _TIE)
        missed, hit = np.maximum(missed, misses.max(axis=0)), np.maximum(hit, 1 - others.min(axis=0))
    return _Chances(steps * STEP, np.minimum(missed, 1.0), _sums(steps, wide, hit))


def _sums(steps: int, wide: NDArray[Any], hit: NDArray[Any]) -> _Floats:
    """Return log F by (A, t): a sum over offsets up to 2 w, and Chernoff's bound beyond."""
    squares = np.maximum(np.abs(wide), np.abs(wide + STEP)) ** 2
    powers, width = _POWERS[:, None], steps * STEP
    logs = powers[..., None] * np.log(np.minimum(hit + 1e-12, 1.0)) + _TILTS[:, None] * squares
    near = np.exp(np.minimum(logs, 600.0)).sum(axis=2) / steps
    beyond = 1.5 * width - 0.5
    fall = powers * beyond - 2 * _TILTS * width
    level = _TILTS * 4 * width**2 - powers * beyond**2
    far = np.exp(np.minimum(level, 600.0)) / (width * np.maximum(fall, 1e-9))
    return np.asarray(np.where(fall > 0, np.log(near + far), np.inf), dtype=np.float64)


def _below(root: NDArray[Any], value: NDArray[Any]) -> _Floats:
    """Return P[V <= value]; ties with a possible value of V are broken by the caller, who moves it by a hair."""
    counts = np.floor(np.where(value > 0, value**2 - _ADDED, -1.0))
    return np.asarray(np.where(counts >= 0, pdtr(np.maximum(counts, 0), root**2), 0.0), dtype=np.float64)


@lru_cache(maxsize=64)
def _losses(steps: int, labels: int, *, largest: float = _PILOT_ROOT) -> _Floats:
    """Return P[sum of -log(1 - miss) <= i / _BINS * _LOSSES] over the shifts of d coordinates, i = 0, 1, .."""
    with np.errstate(divide="ignore"):
        loss = -np.log1p(-_chances(steps, largest=largest).missed)
    places = np.minimum(np.ceil(loss / _LOSSES * _BINS), _BINS).astype(np.int64)
    one = np.bincount(places, minlength=_BINS + 1)[:_BINS] / len(places)
    total = np.zeros(_BINS)
    total[0] = 1.0
    for bit in f"{labels:b}":
        total = _folded(total, total)
        if bit == "1":
            total = _folded(total, one)
    return np.asarray(np.cumsum(total), dtype=np.float64)


def _folded(first: _Floats, second: _Floats) -> _Floats:
    product = np.fft.irfft(np.fft.rfft(first, 2 * _BINS) * np.fft.rfft(second, 2 * _BINS), 2 * _BINS)
    return np.asarray(np.maximum(product[:_BINS] - 1e-15, 0.0), dtype=np.float64)


# --- all coordinates --------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    labels: int
    alpha: float
    beta: float
    epsilon: float
    delta: float

    def sizes(self, chances: _Chances, losses: _Floats, draws: int) -> Iterator[RoundedRoots]:
        """Yield sizes at this width and R, for several k."""
        shifted = -math.log(_SHARES["shift"] * self.beta) / draws * _MARGIN
        if not losses[-1] > shifted:
            return
        agreement = math.exp(-int(np.searchsorted(losses, shifted)) / _BINS * _LOSSES) - 1e-9
        noise = _SHARES["noise"] * self.beta
        alone = math.ceil(1 + 2 / self.epsilon * math.log(draws * (1 - noise) / (self.delta * noise)) * _MARGIN)
        if not alone < _MOST_BLOCKS * (agreement - 2 * _CUT):
            return
        for share in np.linspace(1.05, 2.0, 14):
            blocks = math.ceil(alone / (agreement - _CUT) * share)
            good = _votes(blocks, agreement - _CUT, failure=_SHARES["votes"] * self.beta)
            if good >= alone and (found := self._with(chances, draws, blocks, good)) is not None:
                yield replace(found, agreement=agreement)

    def _with(self, chances: _Chances, draws: int, blocks: int, good: int) -> RoundedRoots | None:
        """Return the least b' for which far cells weigh at most their share of the cell with n0 votes."""
        gain = math.expm1(self.epsilon / 2)
        room = self.epsilon / 2 * good - math.log(draws)
        smalls = np.geomspace(1e-4, 0.9, 200)
        few = np.log(np.exp(blocks * np.log1p(smalls * gain) - 600) / smalls) + 600
        fits = smalls[np.logaddexp(few, math.log(blocks)) <= room + math.log(_SHARES["few"] * self.beta)]
        if len(fits) == 0:
            return None
        small = float(fits[-1])
        grown = blocks * math.log1p(small * gain) - _POWERS * math.log(small)
        size = np.maximum(blocks * self.epsilon / 2, grown) - room - math.log(_SHARES["bad"] * self.beta)
        need = np.maximum(size[:, None] + self.labels * (chances.sums + 1e-6), 1e-9) / (_TILTS * self.alpha**2)
        place = np.unravel_index(int(np.argmin(need)), need.shape)
        least = _mean(float(need[place]), self.labels)
        mean = max(1.0, math.ceil(least) * _MARGIN)
        return RoundedRoots(
            labels=self.labels,
            blocks=blocks,
            block_size=_block(mean),
            draws=draws,
            mean_size=mean,
            width=chances.width,
            good_votes=good,
            agreement=0.0,
            tilt=float(_TILTS[place[1]]),
            power=float(_POWERS[place[0]]),
            small=small,
        )


def _votes(blocks: int, chance: float, *, failure: float) -> int:
    """Return the largest n0 with P[Bin(k, chance) < n0] at most ``failure``."""
    counts = np.arange(blocks + 1)
    enough = tail_above(counts, size=blocks, chance=chance) >= 1 - failure / _MARGIN
    return int(counts[enough][-1])


def _mean(square: float, labels: int) -> float:
    """Return b' with ``b'^2 / (b' + d c0) = square``: what alpha^2 is multiplied by in the bound on far cells."""
    return (square + math.sqrt(square**2 + 4 * square * labels * FLOOR)) / 2


def _block(mean: float) -> int:
    """Return b with P[Poisson(b') > b] at most 1e-4."""
    guess = math.ceil(float(pdtrik(1 - _CUT / 2, mean)))
    while gammaincc(guess + 1, mean) < 1 - _CUT / _MARGIN:
        guess += 1
    return guess
