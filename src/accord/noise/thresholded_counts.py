"""Discover the levels of a column: noisy counts above a threshold, or the levels alone."""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, final

from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.core.votes import Tally, tally
from accord.noise.numbers import laplace_tail, least_integer
from accord.noise.samplers import discrete_laplace

__all__ = [
    "CHANCE_BITS",
    "LevelSelection",
    "ThresholdedCounts",
    "level_curve",
]


CHANCE_BITS = 128
_ONE = 1 << CHANCE_BITS
_SMALLEST_EPSILON = Fraction(1, 10_000)


@lru_cache(maxsize=32)
def level_curve(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Return chances over 2^128 for counts 0, 1, .. up to the first certain one; beyond it all are certain.

    ``pi(0) = 0``, then ``pi(n) = min(a pi(n-1) + delta, 1 - (1 - pi(n-1) - delta) / a, 1)`` rounded down, where a is a
    lower bound of exp(epsilon). A count that moves by one is (epsilon, delta)-DP (docs/proofs/thresholded-counts.md).

    Examples
    --------
    >>> curve = level_curve(Fraction(1), Fraction(1, 10**6))
    >>> len(curve), curve[16] / 2**128 > 0.95
    (29, True)

    """
    if epsilon < _SMALLEST_EPSILON:
        raise InvalidParameter("epsilon must be at least 1/10000 for each count that moves.")
    ratio = max(_ONE, int(exp_lower(epsilon) * _ONE))
    step = int(delta * _ONE)
    curve = [0]
    while curve[-1] < _ONE:
        last = curve[-1]
        grown = (ratio * last >> CHANCE_BITS) + step
        held = _ONE - max(0, -((last + step - _ONE) * _ONE // ratio))
        curve.append(min(grown, held, _ONE))
    return tuple(curve)


Values = Collection[Any] | NDArray[Any]
_NOBODY = Tally({}, {}, 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdedCounts:
    """Release each level whose noisy count reaches a threshold, with that count: the stable histogram.

    Only levels that occur get noise, so no public list of levels is needed; the threshold hides who brings a new one.

    Formal guarantees
    -----------------
    - Privacy: (epsilon, delta)-DP under ``neighbouring``, where `delta` is the chance that a level held by one unit is
      released, ``P[1 + Z >= t]``: no smaller one would do. It is an upper bound within one part in 10^57,
      as long as it is above about exp(-5000); a smaller chance is stated as that, on the safe side.
    - Law: Z is discrete Laplace of scale 1 / epsilon, or 2 / epsilon under "replace one" (two counts move), drawn
      exactly. A level is released if its noisy count is at or above ``threshold``; above it if ``inclusive=False``.
    - Order: that of the levels' canonical bytes, never that of the data. An empty dataset is answered like any other.
    - A unit of privacy is one entry of ``values``: one level, or `ABSTAIN` for none. Several entries of one person are
      several units; keep one of them, chosen without looking at others' data, before calling this.
      Where an entry stands does not matter.
    - Not promised: running time independent of the number of levels.

    Parameters
    ----------
    epsilon
        Above 0, at most 1000. Kept as an exact fraction.
    threshold
        Whole, at least 2 (1 if not inclusive). Leave it out to have the least one for ``delta``.
    delta
        What `delta` may be at most. Give either this or ``threshold``.
    inclusive
        Whether a noisy count equal to the threshold is released.
    neighbouring
        The relation between datasets.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if not exactly one of ``threshold`` and ``delta`` is given.

    Source
    ------
    Korolova, Kenthapadi, Mishra and Ntoulas (2009); Bun, Nissim and Stemmer (2016); docs/proofs/thresholded-counts.md.

    Examples
    --------
    >>> counts = ThresholdedCounts(epsilon=1, delta="1e-6", neighbouring=Neighbouring.ADD_OR_REMOVE_ONE)
    >>> counts.threshold, counts.threshold_for("1e-9")
    (15, 22)
    >>> [level for level, count in counts.release(["b"] * 90 + ["a"] * 80 + ["c"]).value]
    ['a', 'b']
    >>> strict = ThresholdedCounts(epsilon=1, threshold=15, inclusive=False, neighbouring=counts.neighbouring)
    >>> round(float(counts.delta / strict.delta), 3)  # a factor of e
    2.718

    """

    epsilon: Fraction
    threshold: int
    inclusive: bool = True
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE

    def __init__(
        self,
        *,
        epsilon: Number,
        threshold: int | None = None,
        delta: Number | None = None,
        inclusive: bool = True,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
    ) -> None:
        _check.store(self, epsilon=_check.epsilon(epsilon), neighbouring=neighbouring)
        _moves(neighbouring)
        if not isinstance(inclusive, bool):
            raise InvalidParameter("inclusive must be True (at or above the threshold) or False (above it).")
        _check.store(self, inclusive=inclusive)
        if (threshold is None) == (delta is None):
            raise InvalidParameter("give either threshold or delta: each follows from the other.")
        chosen = self.threshold_for(delta) if threshold is None and delta is not None else threshold
        least = 2 if inclusive else 1
        _check.store(self, threshold=_check.integer("threshold", chosen, least=least))

    @property
    def scale(self) -> Fraction:
        """Scale of the noise of each count."""
        return _moves(self.neighbouring) / self.epsilon

    @property
    def least_released(self) -> int:
        """The least noisy count that is released."""
        return self.threshold if self.inclusive else self.threshold + 1

    @property
    def delta(self) -> Fraction:
        """The chance that a level held by one unit is released, rounded up."""
        return self._tail(self.least_released - 1)

    def _tail(self, least: int) -> Fraction:
        """Return P[Z >= least] for least >= 1, rounded up."""
        return laplace_tail(least, scale=self.scale, dimension=1) / 2

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of one release."""
        return ApproxDP(self.epsilon, self.delta, self.neighbouring)

    def threshold_for(self, delta: Number) -> int:
        """Return the least threshold at which `delta` is at most this, at the same epsilon, relation and comparison."""
        allowed = _check.delta(delta)
        least = 2 + least_integer(lambda more: self._tail(1 + more) <= allowed)
        return least if self.inclusive else least - 1

    def acceptance(self, count: int) -> float:
        """Return the chance that a level with this count is released, in floats."""
        count = _check.integer("count", count, least=0)
        if count == 0:
            return 0.0
        missing = self.least_released - count
        return float(self._tail(missing)) if missing > 0 else float(1 - self._tail(1 - missing))

    def release(
        self, values: Values, *, randomness: PrivateRandomness | None = None
    ) -> Release[tuple[tuple[Any, int], ...]]:
        """Run the mechanism once.

        Parameters
        ----------
        values
            One level a unit: a sequence, or an array of shape (n,) or (n, m) whose rows are levels, see
            `accord.core.votes`. `ABSTAIN` is no level.
        randomness
            The operating system's source unless given.

        Returns
        -------
        Release
            Of pairs (level in canonical form, noisy count).

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If a value has no canonical form. Nothing has been drawn then.

        """
        source = require_private(randomness)
        counted = _count(values)
        noise = discrete_laplace(self.scale, size=len(counted.counts), randomness=source).tolist()
        noisy = {key: count + more for (key, count), more in zip(counted.counts.items(), noise, strict=True)}
        shown = tuple((counted.values[key], count) for key, count in noisy.items() if count >= self.least_released)
        return Release(shown, *ran(self, self.guarantee))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSelection:
    """Release levels without counts, each with the largest chance that (epsilon, delta)-DP allows for its count.

    Formal guarantees
    -----------------
    - Privacy: (epsilon, delta)-DP under ``neighbouring``, exactly. Under "replace one" two counts move, and each gets
      half of epsilon and of delta.
    - Law: a level with count n is released with probability exactly `acceptance`, independently of the others. Under
      "add or remove one" no rule has a larger one, up to 2^-100.
    - Order, units and the empty dataset as in `ThresholdedCounts`.
    - Not promised: counts; running time independent of the number of levels.

    Parameters
    ----------
    epsilon
        At least 1/10000 for each count that moves, at most 1000. Kept as an exact fraction.
    delta
        Below 1, at least 2^-100. Kept as an exact fraction.
    neighbouring
        The relation between datasets.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory S7; Desfontaines, Voss, Gipson and Mandayam (2022); docs/proofs/thresholded-counts.md.

    Examples
    --------
    >>> levels = LevelSelection(epsilon=1, delta="1e-6", neighbouring=Neighbouring.ADD_OR_REMOVE_ONE)
    >>> levels.acceptance(28), levels.acceptance(1) <= Fraction(1, 10**6)
    (Fraction(1, 1), True)
    >>> levels.release(["b"] * 40 + ["a"] * 40).value
    ('a', 'b')

    """

    epsilon: Fraction
    delta: Fraction
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE

    def __init__(
        self, *, epsilon: Number, delta: Number, neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    ) -> None:
        _check.store(self, epsilon=_check.epsilon(epsilon), delta=_check.delta(delta), neighbouring=neighbouring)
        self._chance(0)  # refuses what has no curve

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of one release."""
        return ApproxDP(self.epsilon, self.delta, self.neighbouring)

    def _chance(self, count: int) -> int:
        moves = _moves(self.neighbouring)
        curve = level_curve(self.epsilon / moves, self.delta / moves)
        return curve[min(count, len(curve) - 1)]

    def acceptance(self, count: int) -> Fraction:
        """Return the exact chance that a level with this count is released."""
        return Fraction(self._chance(_check.integer("count", count, least=0)), 1 << CHANCE_BITS)

    def release(self, values: Values, *, randomness: PrivateRandomness | None = None) -> Release[tuple[Any, ...]]:
        """Run the mechanism once; arguments and errors as in `ThresholdedCounts.release`.

        Returns
        -------
        Release
            Of the levels in canonical form.

        """
        source = require_private(randomness)
        counted = _count(values)
        heads = {key: source.bits(CHANCE_BITS) < self._chance(count) for key, count in counted.counts.items()}
        return Release(
            tuple(counted.values[key] for key, shown in heads.items() if shown),
            *ran(self, self.guarantee),
        )

    def law(self, values: Values) -> dict[tuple[Any, ...], Fraction]:
        """Return the exact law of `release`, for audits only: it is not private. For few levels, usable as keys."""
        counted = _count(values)
        chances = [(counted.values[key], self.acceptance(count)) for key, count in counted.counts.items()]
        law = {}
        for heads in product([False, True], repeat=len(chances)):
            probability = Fraction(1)
            for (_, chance), shown in zip(chances, heads, strict=True):
                probability *= chance if shown else 1 - chance
            if probability:
                law[tuple(level for (level, _), shown in zip(chances, heads, strict=True) if shown)] = probability
        return law


def _moves(neighbouring: Neighbouring) -> int:
    """Return how many counts move by one between neighbours."""
    if not isinstance(neighbouring, Neighbouring):
        raise InvalidParameter("neighbouring must be a Neighbouring, such as Neighbouring.REPLACE_ONE.")
    return 1 if neighbouring is Neighbouring.ADD_OR_REMOVE_ONE else 2


def _count(values: Values) -> Tally:
    """Count levels. No values are as good as any: an error would show that there are none."""
    return _NOBODY if isinstance(values, Collection) and len(values) == 0 else tally(values)
