"""Audit by running: an event is chosen on some runs and judged on others."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from accord.audit.exact import Evidence
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = ["audit_runs"]

_FEWEST = 100
_MOST_CUTS = 400
_ROUND_DOWN = 1 - 1e-9

_CHOOSING_DOUBT = 1e-4  # strict, so that among many events a lucky one is not preferred
_SHOWN = 4

_Floats = NDArray[np.float64]


def audit_runs(
    run: Callable[[Any], Hashable],
    *,
    pair: tuple[Any, Any],
    runs: int,
    delta: Number = 0,
    confidence: Number = "0.999",
    score: Callable[[Any], float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evidence:
    """Run a mechanism many times on two neighbours and return what this proves.

    Half of the runs choose one event and its direction, the other half judge it: by Clopper and Pearson, the event's
    probability is at least ``p`` under one neighbour and at most ``q`` under the other, so that
    ``epsilon >= log((p - delta) / q)``.

    Formal guarantees
    -----------------
    - Correctness: if the mechanism is ``(epsilon, delta)``-private for this pair and runs are independent, the bound
      exceeds epsilon with probability at most ``1 - confidence``.
    - Not promised: that a leak is found. With n judging runs nothing above about ``log(n / 7)`` can be shown, and only
      events among single outcomes, sets of outcomes and half-lines of the score are tried.

    Parameters
    ----------
    run
        ``run(dataset)`` runs the mechanism once with fresh noise and returns a hashable outcome.
    pair
        Two neighbouring datasets, the most telling ones that you can think of.
    runs
        Runs on each of the two, at least 100.
    delta
        At least 0, below 1.
    confidence
        Strictly between 0 and 1.
    score
        From an outcome to a number; events are then half-lines of it. Without it, single outcomes and sets of them.
    progress
        Told ``(done, all)`` now and then.

    Raises
    ------
    InvalidParameter
        If a number is out of range, or the score is not a number for some outcome.

    Source
    ------
    theory 1 (definition); Clopper and Pearson (1934); proof page ``docs/proofs/audit.md``.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace
    >>> noise = DiscreteLaplace(sensitivity=1, scale=1)
    >>> found = audit_runs(lambda count: noise.release(count).value, pair=(0, 1), runs=4_000, score=float)
    >>> found.contradicts(1)
    False
    >>> audit_runs(lambda count: count, pair=(0, 1), runs=4_000).epsilon > 5
    True

    """
    count = _check.integer("runs", runs, least=_FEWEST)
    slack = _check.exact("delta", delta)
    if not 0 <= slack < 1:
        raise InvalidParameter("delta must be at least 0 and below 1.")
    doubt = 1 - float(_check.probability("confidence", confidence))
    outcomes = _outcomes(run, pair, runs=count, progress=progress)
    half = count // 2
    choosing, judging = ([side[cut] for side in outcomes] for cut in (slice(half), slice(half, None)))
    typical = _typical(*choosing)
    mark = (lambda outcome: typical.get(outcome, 0.0)) if score is None else score
    event = _best_event(*(_scores(mark, side) for side in choosing), delta=float(slack))
    p, q = (_scores(mark, side) for side in judging)
    low, high = event.bounds(*((p, q) if event.forward else (q, p)), doubt=doubt)
    epsilon = _epsilon(low, high, delta=float(slack))
    return Evidence(
        epsilon=epsilon,
        delta=slack,
        confidence=1 - doubt,
        event=event.words(typical if score is None else None) if epsilon > 0 else "",
        likelier=low,
        rarer=high,
        runs=2 * count,
    )


def _outcomes(
    run: Callable[[Any], Hashable],
    pair: tuple[Any, Any],
    *,
    runs: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Hashable], list[Hashable]]:
    """Run on both in turn, so that a drift of the machine hits both alike."""
    first: list[Hashable] = []
    second: list[Hashable] = []
    step = max(1, runs // 100)
    for done in range(runs):
        first.append(run(pair[0]))
        second.append(run(pair[1]))
        if progress is not None and (done + 1) % step == 0:
            progress(done + 1, runs)
    return first, second


def _typical(first: Sequence[Hashable], second: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return how much more typical of the first neighbour an outcome was: the logarithm of a ratio of counts."""
    p, q = Counter(first), Counter(second)
    return {one: math.log((p[one] + 1) / (q[one] + 1)) for one in {**p, **q}}


def _scores(score: Callable[[Any], float], outcomes: Sequence[Hashable]) -> _Floats:
    """Return the sorted scores."""
    scores = np.sort(np.array([float(score(outcome)) for outcome in outcomes]))
    if np.isnan(scores).any():
        raise InvalidParameter("score must return a number for every outcome, never NaN.")
    return scores


@final
@dataclass(frozen=True, slots=True)
class _HalfLine:
    """The score is at least (or at most) ``cut``; ``forward`` if that is likelier under the first neighbour."""

    cut: float
    upper: bool
    forward: bool

    def hits(self, scores: _Floats) -> int:
        if self.upper:
            return len(scores) - int(np.searchsorted(scores, self.cut, side="left"))
        return int(np.searchsorted(scores, self.cut, side="right"))

    def bounds(self, likelier: _Floats, rarer: _Floats, *, doubt: float) -> tuple[float, float]:
        """Return a lower bound of the first probability and an upper one of the second, both true but for ``doubt``."""
        low, _ = _interval(np.array([self.hits(likelier)]), len(likelier), doubt=doubt)
        _, high = _interval(np.array([self.hits(rarer)]), len(rarer), doubt=doubt)
        return float(low[0]), float(high[0])

    def words(self, typical: dict[Hashable, float] | None) -> str:
        if typical is None:
            return f"the score is {'at least' if self.upper else 'at most'} {self.cut:.6g}"
        members = [x for x, ratio in typical.items() if (ratio >= self.cut if self.upper else ratio <= self.cut)]
        if len(members) <= _SHOWN:
            return f"the output is {' or '.join(repr(x) for x in members)}"
        return f"the output is one of {len(members)} that the choosing runs found typical"


def _best_event(first: _Floats, second: _Floats, *, delta: float) -> _HalfLine:
    """Return the half-line and the direction with the largest bound on the choosing runs."""
    levels = np.unique(np.concatenate([first, second]))
    cuts = np.unique(np.quantile(levels, np.linspace(0, 1, num=min(len(levels), _MOST_CUTS)), method="nearest"))
    best, chosen = -1.0, _HalfLine(cut=float(cuts[0]), upper=True, forward=True)
    for forward, (p, q) in ((True, (first, second)), (False, (second, first))):
        for upper in (True, False):
            low, _ = _interval(_counts(p, cuts, upper=upper), len(p), doubt=_CHOOSING_DOUBT)
            _, high = _interval(_counts(q, cuts, upper=upper), len(q), doubt=_CHOOSING_DOUBT)
            found = [_epsilon(float(a), float(b), delta=delta) for a, b in zip(low, high, strict=True)]
            place = int(np.argmax(found))
            if found[place] > best:
                best, chosen = found[place], _HalfLine(cut=float(cuts[place]), upper=upper, forward=forward)
    return chosen


def _counts(scores: _Floats, cuts: _Floats, *, upper: bool) -> NDArray[np.int64]:
    if upper:
        return len(scores) - np.searchsorted(scores, cuts, side="left")
    return np.searchsorted(scores, cuts, side="right").astype(np.int64)


def _interval(hits: NDArray[np.int64], trials: int, *, doubt: float) -> tuple[_Floats, _Floats]:
    """Return Clopper-Pearson bounds, each wrong with probability ``doubt / 2``."""
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, doubt / 2), 0.0)
    high = np.where(hits < trials, betaincinv(hits + 1, np.maximum(trials - hits, 1), 1 - doubt / 2), 1.0)
    return low, high


def _epsilon(low: float, high: float, *, delta: float) -> float:
    more = low - delta
    return max(0.0, math.log(more / high) * _ROUND_DOWN) if more > high > 0 else 0.0
