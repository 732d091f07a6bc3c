"""Total variation of laws that have no formula, estimated with a bound on the error."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.shared import Generator
from accord.distributions import Mixture
from accord.distributions.measured import Flags, Points, atom_columns, log_density_at, union

__all__ = ["Estimate", "estimate_total_variation"]

_FAILURE = "1e-6"
_AT_ONCE = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate and an interval that contains the truth but for a small probability.

    Attributes
    ----------
    value
        The estimate.
    low, high
        The interval, within [0, 1].
    failure
        Bound on the probability that the truth is outside, over the draws.

    """

    value: float
    low: float
    high: float
    failure: float


def estimate_total_variation(
    p: Distribution, q: Distribution, *, samples: int, generator: Generator, failure: Number = _FAILURE
) -> Estimate:
    """Estimate the total variation from draws of the half-and-half mixture of ``p`` and ``q``.

    There ``|p - q| / (p + q)`` is between 0 and 1 with the total variation as its mean, for densities with respect to
    any common measure: laws with atoms count their masses at atoms of either.

    Formal guarantees
    -----------------
    - Coverage: the total variation is in ``[low, high]`` but for a probability of ``failure``, whatever the laws, as
      far as samplers and densities are those of the laws. The half-width is the smaller of Hoeffding's,
      ``sqrt(log(4 / failure) / (2 n))``, and the empirical Bernstein bound of Maurer and Pontil (2009, theorem 4),
      ``sqrt(2 V log(8 / failure) / n) + 7 log(8 / failure) / (3 (n - 1))`` for the sample variance V.
    - Equal laws give the value 0.
    - Not promised: coverage over many calls at once; a bound on the rounding of the densities.

    Parameters
    ----------
    p, q
        Laws of one dimension that can be sampled and have densities.
    samples
        Number n of draws, from 2.
    generator
        Read for the draws.
    failure
        Strictly between 0 and 1.

    Raises
    ------
    InvalidParameter
        If they are no laws of one dimension, a number is out of its range, or a density fails at the laws' own draws.

    Source
    ------
    theory 1 (total variation); docs/proofs/laws.md.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> from accord.randomness import SharedRandomness
    >>> stream = SharedRandomness("example").stream("estimate")
    >>> found = estimate_total_variation(Normal(0, 1), Normal(1, 1), samples=10_000, generator=stream)
    >>> found.low < 0.382925 < found.high, round(found.high - found.low, 2)
    (True, 0.03)

    """
    if not (isinstance(p, Distribution) and isinstance(q, Distribution)) or p.dimension != q.dimension:
        raise InvalidParameter("p and q must be distributions of the same dimension.")
    count = _check.integer("samples", samples, least=2)
    risk = float(_check.probability("failure", failure))
    both = Mixture([p, q], [0.5, 0.5])
    gaps = np.empty(count)
    for start in range(0, count, _AT_ONCE):
        points = Points(both.sample(min(_AT_ONCE, count - start), generator), dimension=p.dimension)
        gaps[start : start + len(points)] = _gaps(p, q, points)
    value = float(gaps.mean())
    half = _half_width(float(gaps.var(ddof=1)), count=count, failure=risk)
    return Estimate(value=value, low=max(0.0, value - half), high=min(1.0, value + half), failure=risk)


def _gaps(p: Distribution, q: Distribution, points: Points) -> NDArray[np.float64]:
    """Return ``|p - q| / (p + q)``, which is ``|tanh(log(p / q) / 2)|``."""
    atoms: Flags = union([atom_columns(p, points), atom_columns(q, points)])
    own, other = log_density_at(p, points, atoms), log_density_at(q, points, atoms)
    if not (np.maximum(own, other) > -np.inf).all():  # NaN included
        raise InvalidParameter("p and q must have a density at their own draws.")
    with np.errstate(over="ignore"):
        return np.abs(np.tanh((own - other) / 2))


def _half_width(variance: float, *, count: int, failure: float) -> float:
    """Return the smaller of two half-widths, each of which fails with at most half of the probability."""
    hoeffding = math.sqrt(math.log(4 / failure) / (2 * count))
    log = math.log(8 / failure)
    return min(hoeffding, math.sqrt(2 * variance * log / count) + 7 * log / (3 * (count - 1)))
