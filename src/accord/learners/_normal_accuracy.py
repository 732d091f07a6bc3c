"""How close the normal law fitted to b records is to the true one: bounds that hold for every normal law.

For the sample mean m and the unbiased covariance S of b records of N(0, I) in R^d,

    2 KL(N(m, S) || N(0, I)) = tr S - d - log det S + |m|^2,

and by affine maps its law is the same for every true normal law. Its moment generating function is known in closed form
(Wishart and chi-square), so Chernoff's bound and Pinsker's ``TV <= sqrt(KL / 2)`` bound the quantiles of the total
variation for every d, b and probability. Proof: docs/proofs/learners.md.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma

__all__ = ["expected_kl", "log_tail", "records_for"]

_MOST = 1 << 62
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
_FINE_ENOUGH = 1e-9


def expected_kl(records: int, *, dimension: int) -> float:
    """Return an upper bound on E KL(fit || truth), infinite where a fit is impossible (b <= d)."""
    freedom = records - 1
    if freedom <= dimension - 1:
        return math.inf
    halves = (freedom - np.arange(dimension)) / 2
    # log x - digamma(x) <= 1 / (2 x) + 1 / (12 x^2), without the cancellation of the two.
    near = np.where(halves > 1e6, 1 / (2 * halves) + 1 / (12 * halves**2), np.log(halves) - digamma(halves))
    volume = float(np.sum(near + np.log(freedom / 2 / halves)))
    return 0.5 * (volume + dimension / records) * (1 + _FINE_ENOUGH)


def log_tail(divergence: float, *, records: int, dimension: int) -> float:
    """Return an upper bound on log P[KL(fit || truth) >= divergence], at most 0."""
    freedom = records - 1
    if freedom <= dimension - 1:
        return 0.0
    most = 0.5 * (freedom - dimension + 1)

    def exponent(share: float) -> float:
        return _log_moment(share * most, freedom=freedom, records=records, dimension=dimension) - (
            2 * share * most * divergence
        )

    best = minimize_scalar(exponent, bounds=(0.0, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-5})
    return min(0.0, float(best.fun))


def _log_moment(weight: float, *, freedom: int, records: int, dimension: int) -> float:
    """Return an upper bound on log E exp(2 weight KL), infinite where there is no moment.

    ``E exp(w (tr S - d - log det S))`` is a product over i of Gamma functions at ``x_i = (freedom - i) / 2``; their
    ratios are bounded by Stirling's series, whose remainder is between 0 and its first term.
    """
    places = (freedom - np.arange(dimension)) / 2
    left = places - weight
    if weight >= 0.5 * records or left[-1] <= 0:
        return math.inf
    half = freedom / 2
    ratio = (left - 0.5) * np.log1p(-weight / places) - (half - weight) * math.log1p(-weight / half)
    remainder = 1 / (12 * left) - 1 / (12 * places) + 1 / (360 * places**3)
    scatter = float(np.sum(weight * np.log(half / places) + ratio + remainder))
    mean = -0.5 * dimension * math.log1p(-2 * weight / records)
    return scatter + mean + _ROUNDING * dimension * (weight + 1)


def records_for(alpha: float, beta: float, *, dimension: int) -> int:
    """Return a b from which on the fit is within total variation alpha, but for probability beta.

    Found by doubling and bisection on the bound, which falls with b; the last step is checked.
    """
    divergence, target = 2 * alpha**2, math.log(beta)

    def enough(records: int) -> bool:
        return log_tail(divergence, records=records, dimension=dimension) <= target

    low = high = dimension + 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            message = "alpha is too small to certify a number of records at double precision."
            raise OverflowError(message)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
