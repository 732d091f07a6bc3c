"""What the mechanisms that choose by score have in common."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring, Sensitivity
from accord.mechanisms._noise_numbers import as_sensitivity, float_up
from accord.mechanisms._score_weights import ScoreWeights, score_weights
from accord.mechanisms._scores import alive, read_scores

__all__ = ["candidate_weights", "selection_sensitivity", "shortfall", "weights_of"]


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
