"""Scores, the exact weights that they give, and an exact choice by weight: what every selection by scores shares."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import AccordError, InvalidParameter
from accord.core.exact import Number, exp_lower
from accord.core.guarantee import Neighbouring, Sensitivity
from accord.core.secret import PrivateRandomness
from accord.noise.numbers import as_sensitivity, float_up

__all__ = [
    "BLOCK",
    "FARTHEST",
    "LOWEST_BIT",
    "Cumulative",
    "ScoreWeights",
    "alive",
    "blocks",
    "candidate_weights",
    "choose",
    "depths",
    "log_upper",
    "read_scores",
    "score_weights",
    "selection_sensitivity",
    "shortfall",
    "uniform_index",
    "weights_of",
    "whole_weights",
]


FARTHEST = 1 << 52
"""Depths are cut off here: whole numbers up to twice this are exact as floats."""

BLOCK = 1 << 13
"""Arrays are worked through in pieces of this size, which stay in the cache."""

_LARGEST = 1000
_MINUS_INFINITY = float("-inf")
_WHOLE = 1 << 53  # up to here every int is a float


def read_scores(scores: ArrayLike | Sequence[Any], *, name: str = "scores") -> NDArray[Any]:
    """Return scores as an array of float64, of integers, or of Fractions (with the float -inf): no score is rounded.

    Raises
    ------
    InvalidParameter
        If there are none, they have another shape than (n,), or one is NaN, +inf or not a number.

    """
    array = _as_array(scores, name)
    if array.ndim != 1 or array.size == 0:
        raise InvalidParameter(f"{name} must be a list or array of shape (n,) with at least one entry.")
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        array = array.astype(np.float64, copy=False)
        if np.isnan(array).any() or array.max() == np.inf:
            _refuse_special(name)
        return array
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind != "O":
        raise InvalidParameter(f"{name} must be numbers (ints, floats or Fractions), not {array.dtype}.")
    exact = np.empty(array.size, dtype=object)
    exact[:] = [_exact(score, name) for score in array.tolist()]
    return exact


def _as_array(scores: Any, name: str) -> NDArray[Any]:  # noqa: ANN401 - anything a caller may pass
    if isinstance(scores, np.ma.MaskedArray):
        raise InvalidParameter(f"{name} must not be masked: {_never(name)}.")
    if not isinstance(scores, (list, tuple)):
        return np.asarray(scores)
    kinds = set(map(type, scores))
    if kinds == {int} and min(scores) >= -(1 << 63) and max(scores) < 1 << 63:
        return np.array(scores, dtype=np.int64)
    if kinds and kinds <= {float, np.float64, int} and _floats_hold(scores, kinds):
        return np.array(scores, dtype=np.float64)
    array = np.empty(len(scores), dtype=object)
    array[:] = scores
    return array


def _floats_hold(scores: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether all ints among the scores are floats too."""
    return int not in kinds or all(-_WHOLE <= score <= _WHOLE for score in scores if type(score) is int)


def _exact(score: Any, name: str) -> Fraction | float:  # noqa: ANN401 - checked here
    if isinstance(score, (float, np.floating)):
        if score == _MINUS_INFINITY:
            return _MINUS_INFINITY
        if not score < np.inf:
            _refuse_special(name)
    return _check.exact_data(name, score)


def _refuse_special(name: str) -> NoReturn:
    raise InvalidParameter(f"{name} must not hold NaN or +inf: {_never(name)}.")


def _never(name: str) -> str:
    return f"give {'0' if name == 'base' else '-inf'} to a candidate that is never to be chosen"


def alive(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which scores are above -inf."""
    if scores.dtype.kind in "iu":
        return np.ones(scores.size, dtype=np.bool_)
    return np.asarray(scores > _MINUS_INFINITY, dtype=np.bool_)


def depths(scores: NDArray[Any], *, exponent: int, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return ``min(max(q) - q, 2^52)`` for ``q = floor(score / 2^exponent)``, exactly; the maximum is over ``among``.

    Between neighbours whose scores differ by at most S, q differs by at most ``ceil(S / 2^exponent)``. Entries outside
    ``among``, which must not be empty, are of no meaning.

    Examples
    --------
    >>> depths(np.array([0.0, 2.5, 3.0]), exponent=-1, among=np.array([True, True, False]))[:2]
    array([5., 0.])

    """
    if scores.dtype.kind == "f":
        return _of_floats(scores, exponent, among)
    if scores.dtype.kind in "iu":
        return _of_integers(scores, exponent, among)
    return _of_fractions(scores, exponent, among)


def blocks(size: int) -> Iterator[slice]:
    """Yield the pieces of an array of this size, in order."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


def _of_floats(scores: NDArray[np.float64], exponent: int, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    best = _float_steps(np.where(among, scores, -np.inf).max(keepdims=True), exponent)
    result = np.empty(scores.size)
    for block in blocks(scores.size):
        # A difference of whole floats is exact below 2^53, and above it does not fall below 2^53 by rounding.
        below = np.subtract(best, _float_steps(scores[block], exponent), out=result[block])
        np.minimum(below, float(FARTHEST), out=below)
    return result


def _float_steps(scores: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Return ``floor(score / 2^exponent)`` in floats; it never falls as the score grows."""
    # Scores beyond 2^1000 steps count as that, so nothing overflows; cutting off moves no two scores apart.
    limit = 2.0 ** min(_LARGEST + exponent, 1023)
    steps = np.clip(scores, -limit, limit)
    with np.errstate(under="ignore"):
        steps *= 2.0**-exponent
    np.floor(steps, out=steps)
    steps -= (scores < 0) & (steps == 0)  # a tiny negative score may have been scaled to zero; no branch, for time
    return steps


def _of_integers(scores: NDArray[Any], exponent: int, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    steps = scores.astype(np.uint64 if scores.dtype.kind == "u" else np.int64)
    shift = min(max(exponent, 0), 64)
    for part in (shift // 2, shift - shift // 2):  # 64 in one go is not defined
        steps = steps >> steps.dtype.type(part)
    best = int(steps[among].max()) % (1 << 64)
    result = np.empty(scores.size)
    for block in blocks(scores.size):
        apart = np.uint64(best) - steps[block].astype(np.uint64)  # modulo 2^64, which is where the difference lies
        near = np.minimum(apart, np.uint64(FARTHEST)).view(np.int64) * 2.0 ** max(-exponent, 0)
        np.minimum(near, float(FARTHEST), out=result[block])
    return result


def _of_fractions(scores: NDArray[Any], exponent: int, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    scale = Fraction(2) ** -exponent
    steps = [floor(score * scale) if isinstance(score, Fraction) else None for score in scores.tolist()]
    best = max(step for step, counts in zip(steps, among.tolist(), strict=True) if counts and step is not None)
    near = [FARTHEST if step is None else min(max(best - step, 0), FARTHEST) for step in steps]
    return np.array(near, dtype=np.float64)


_CHARGE = Fraction(1, 1 << 46)
"""Part of epsilon that pays for the rounding of weights (docs/proofs/exponential.md)."""

_FLOOR = 88
"""No weight is below exp(-88) times the best one's; exp(-88) > 2^-127."""

LOWEST_BIT = 180
"""Every weight is a whole multiple of 2^-180."""

_SMALLEST_EPSILON = Fraction(1, 1 << 30)
_DIGITS, _DIGIT_BITS = 5, 9
_MOST_STEPS = (1 << _DIGITS * _DIGIT_BITS) - 1
_TABLE_BITS = 512
_SMALLEST_SENSITIVITY, _LARGEST_SENSITIVITY = Fraction(1, 1 << 800), Fraction(1 << 800)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreWeights:
    """The weights ``exp(-rate * k)`` of scores k steps of ``2^exponent`` below the best, for k up to ``deepest``."""

    exponent: int
    rate: Fraction
    deepest: int
    tables: NDArray[np.float64]

    def weigh(
        self, scores: NDArray[Any], *, among: NDArray[np.bool_], offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return one weight a candidate: 0 outside ``among``, exactly 1 for the best, within 2^-49 of the exponential.

        Every weight is a multiple of 2^-180 from ``exp(-88)`` up to 1. The operations do not depend on the scores.
        ``offsets`` are whole steps, at most 2^51 in size, that are added to the scores.
        """
        weights = depths(scores, exponent=self.exponent, among=among)
        if offsets is not None:
            weights -= offsets
            weights -= np.where(among, weights, np.inf).min()
        for block in blocks(weights.size):
            steps = np.clip(weights[block], 0.0, float(self.deepest)).astype(np.int64)
            part = among[block].astype(np.float64)
            for table in self.tables:
                part *= table[steps & ((1 << _DIGIT_BITS) - 1)]
                steps >>= _DIGIT_BITS
            weights[block] = part
        return weights

    def offset_steps(self, logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return natural logarithms as whole steps. Public numbers: their rounding costs no privacy."""
        steps: NDArray[np.float64] = np.rint(logarithms / float(self.rate))
        if np.abs(steps).max(initial=0.0) > FARTHEST / 2:
            raise InvalidParameter("base must not span more than a factor of 10^2400 between its positive entries.")
        return steps

    def shortfall(self, t: Fraction, odds: Fraction) -> Fraction | None:
        """Return G such that candidates G below the best have a chance of at most ``exp(-t)``; None if none is proved.

        ``odds`` bounds how many such candidates there are for each of the best.
        """
        logarithm = max(Fraction(0), log_upper(odds) + t + _CHARGE) if odds else Fraction(0)
        if logarithm > self.rate * self.deepest:
            return None
        return (1 + logarithm / self.rate) * Fraction(2) ** self.exponent


@lru_cache(maxsize=64)
def score_weights(*, bound: Fraction, epsilon: Fraction, sides: int) -> ScoreWeights:
    """Return the weights for scores of sensitivity ``bound``; ``sides`` is 2, or 1 for monotone scores.

    The rate pays for rounding scores down to a grid and for `_CHARGE`:
    ``sides * rate * ceil(bound / 2^exponent) + _CHARGE == epsilon``.
    """
    if epsilon < _SMALLEST_EPSILON:
        raise InvalidParameter("epsilon must be at least 2^-30, about 1e-9, for each choice.")
    if not _SMALLEST_SENSITIVITY <= bound <= _LARGEST_SENSITIVITY:
        raise InvalidParameter("sensitivity must be from 1e-240 to 1e240: rescale the scores.")
    spent = epsilon - _CHARGE
    most = floor(spent * _MOST_STEPS / (sides * _FLOOR))
    exponent = bound.numerator.bit_length() - bound.denominator.bit_length() - most.bit_length() - 2
    while ceil(bound / Fraction(2) ** exponent) > most:
        exponent += 1
    rate = spent / (sides * ceil(bound / Fraction(2) ** exponent))
    tables = np.array([_table(rate * (1 << _DIGIT_BITS * digit)) for digit in range(_DIGITS)])
    tables.flags.writeable = False
    return ScoreWeights(exponent, rate, floor(_FLOOR / rate), tables)


def _table(rate: Fraction) -> list[float]:
    """Return ``exp(-rate * j)`` for each digit j, rounded to the nearest float (up to 2^-170 of a unit)."""
    step = floor(exp_lower(-rate) * (1 << _TABLE_BITS))
    power, entries = 1 << _TABLE_BITS, []
    for _ in range(1 << _DIGIT_BITS):
        entries.append(power / (1 << _TABLE_BITS))  # a quotient of Python ints is correctly rounded
        power = power * step >> _TABLE_BITS
    return entries


def log_upper(value: Fraction) -> Fraction:
    """Return an upper bound of the natural logarithm of a positive number, within one part in 10^48."""
    with localcontext(Context(prec=50)):
        ratio = (Decimal(value.numerator) / Decimal(value.denominator)).next_plus()
        return Fraction(ratio.ln().next_plus())  # Decimal.ln is correctly rounded


def selection_sensitivity(sensitivity: Sensitivity | Number, *, monotone: bool) -> Sensitivity:
    """Return the sensitivity of a score; a bare number is for "replace one", or for "add or remove one" if monotone."""
    if not isinstance(monotone, bool):
        raise InvalidParameter("monotone must be True or False.")
    checked = as_sensitivity(sensitivity)
    if checked.bound == 0:
        raise InvalidParameter("sensitivity must be above 0: a score that ignores the data needs no mechanism.")
    if not monotone:
        return checked
    if isinstance(sensitivity, Sensitivity) and sensitivity.neighbouring is not Neighbouring.ADD_OR_REMOVE_ONE:
        raise InvalidParameter(
            "monotone scores need a sensitivity for Neighbouring.ADD_OR_REMOVE_ONE: when a record is replaced, one "
            "score may rise while another falls, and the factor 2 cannot go. Use monotone=False there."
        )
    return Sensitivity(checked.bound, Neighbouring.ADD_OR_REMOVE_ONE)


def weights_of(sensitivity: Sensitivity, *, epsilon: Fraction, monotone: bool) -> ScoreWeights:
    """Return the weights of one choice at this epsilon."""
    return score_weights(bound=sensitivity.bound, epsilon=epsilon, sides=1 if monotone else 2)


def candidate_weights(
    rule: ScoreWeights, scores: NDArray[Any], *, base: ArrayLike | None = None, left: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return the weights of the candidates that are left; if all of these score -inf, as if they scored the same."""
    among = np.ones(scores.size, dtype=np.bool_) if left is None else left
    offsets = None
    if base is not None:
        positive, logarithms = _read_base(base, candidates=scores.size)
        among = among & positive
        offsets = rule.offset_steps(logarithms)
    finite = among & alive(scores)
    if not finite.any():
        scores, finite = np.zeros(scores.size), among
    return rule.weigh(scores, among=finite, offsets=offsets)


def _read_base(base: ArrayLike, *, candidates: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which weights are positive, and their logarithms below the largest one's (0 for the others)."""
    weights = read_scores(base, name="base")
    if weights.size != candidates:
        raise InvalidParameter(f"base must have one weight a candidate: {candidates} scores, {weights.size} weights.")
    positive = np.asarray(weights > 0, dtype=np.bool_)
    if (weights < 0).any() or not positive.any():
        raise InvalidParameter("base must hold weights of at least 0, not all of them 0.")
    if weights.dtype == object:
        pairs = [weight.as_integer_ratio() if weight > 0 else (1, 1) for weight in weights.tolist()]
        logarithms = np.array([math.log(top) - math.log(bottom) for top, bottom in pairs])
    else:
        logarithms = np.log(np.where(positive, weights, 1).astype(np.float64))
    return positive, np.where(positive, logarithms - logarithms[positive].max(), 0.0)


def shortfall(rule: ScoreWeights, t: Number, *, odds: Fraction) -> float:
    """Return the largest shortfall to expect, rounded up; infinite where nothing is proved."""
    value = _check.exact("t", t)
    if value < 0:
        raise InvalidParameter("t must be at least 0: the bound fails with a chance of exp(-t).")
    gap = rule.shortfall(value, odds)
    return math.inf if gap is None else float_up(gap)


_BITS = 256
_MORE = 64
_MOST_BITS = 8192
_LIMBS, _WIDTH = 4, 45  # 4 * 45 = LOWEST_BIT; a block's sum of one limb is below 2^(13 + 45)


def choose(below: Callable[[int], int], total: int, *, randomness: PrivateRandomness) -> int:
    """Return ``below(floor(U * total))`` for a uniform real U in [0, 1).

    256 bits of U are read; the next 64 only if they leave the result open, which happens with a chance of at most
    2^-256 for each place where ``below`` changes.

    Parameters
    ----------
    below
        A function on 0 .. total - 1 that never falls.
    total
        At least 1.
    randomness
        The secret source.

    Raises
    ------
    AccordError
        If the source gives the same bits for ever.

    """
    value, bits = randomness.bits(_BITS), _BITS
    while bits < _MOST_BITS:
        first = below(value * total >> bits)
        if first == below(((value + 1) * total - 1) >> bits):
            return first
        value, bits = value << _MORE | randomness.bits(_MORE), bits + _MORE
    # A true source comes here with a chance below 2^-8000.
    raise AccordError("the source of randomness repeats itself: nothing was released.")


def uniform_index(count: int, *, randomness: PrivateRandomness) -> int:
    """Return a uniform index from 0 to ``count - 1``, exactly."""
    return choose(lambda position: position, count, randomness=randomness)


def whole_weights(weights: NDArray[np.float64]) -> list[int]:
    """Return weights from 0 to 1 as whole numbers over 2^180, exactly."""
    return [int(weight * 2.0**LOWEST_BIT) for weight in weights.tolist()]


@final
class Cumulative:
    """Running sums of weights, multiples of 2^-180 from 0 to 1, in whole numbers."""

    __slots__ = ("_ends", "_weights")

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self._weights = weights
        totals = (_whole(_limbs(weights[block]).sum(axis=1)) for block in blocks(weights.size))
        self._ends = list(accumulate(totals))

    def choose(self, *, randomness: PrivateRandomness) -> int:
        """Return an index with probability exactly its weight over the total."""
        return choose(self._holder, self._ends[-1], randomness=randomness)

    def _holder(self, position: int) -> int:
        """Return the first index at which the running sum exceeds ``position``."""
        block = bisect_right(self._ends, position)
        before = self._ends[block - 1] if block else 0
        sums = np.cumsum(_limbs(self._weights[BLOCK * block : BLOCK * (block + 1)]), axis=1)
        inside = bisect_right(range(sums.shape[1]), position - before, key=lambda index: _whole(sums[:, index]))
        return BLOCK * block + inside


def _limbs(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the binary digits of weights in groups of 45, shape (4, n); every step is exact."""
    rest = weights.copy()
    groups = np.empty((_LIMBS, weights.size), dtype=np.int64)
    for group in groups:
        rest *= 2.0**_WIDTH
        whole = np.floor(rest)
        rest -= whole
        group[:] = whole
    return groups


def _whole(limbs: NDArray[Any]) -> int:
    """Join limbs (or sums of them) to one number."""
    result = 0
    for limb in limbs.tolist():
        result = (result << _WIDTH) + limb
    return result
