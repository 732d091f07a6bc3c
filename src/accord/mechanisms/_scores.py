"""Scores of candidates: read without loss, then counted in whole steps below the best one."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter

__all__ = ["BLOCK", "FARTHEST", "alive", "blocks", "depths", "read_scores"]

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
