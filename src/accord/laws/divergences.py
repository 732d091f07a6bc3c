"""Total variation, Hellinger distance and Kullback-Leibler divergence of two laws."""

import math
from fractions import Fraction
from typing import overload

from accord.core.errors import InvalidParameter
from accord.distributions import Categorical, Distribution, Measure, Normal, Product, Uniform
from accord.laws._families import as_finite, as_product, holds_labels, simplified
from accord.laws._finite_divergences import finite_hellinger, finite_kl_divergence, finite_total_variation
from accord.laws._line import Line, take_apart
from accord.laws._line_divergences import line_hellinger, line_kl_divergence, line_total_variation
from accord.laws._normal_divergences import normal_hellinger, normal_kl_divergence, normal_total_variation
from accord.laws._pairs import Pair, side_by_side
from accord.laws.finite import FiniteLaw

__all__ = ["hellinger", "kl_divergence", "total_variation"]

_Finite = FiniteLaw | Categorical
_Law = FiniteLaw | Distribution
_NOTHING_KNOWN = "no formula is known for these two laws; estimate_total_variation gives an interval from draws."


@overload
def total_variation(p: _Finite, q: _Finite) -> Fraction: ...
@overload
def total_variation(p: Normal, q: Normal) -> float: ...
@overload
def total_variation(p: _Law, q: _Law) -> Fraction | float: ...
def total_variation(p: _Law, q: _Law) -> Fraction | float:
    """Largest ``|P(B) - Q(B)|`` over events B.

    Formal guarantees
    -----------------
    - Finite laws (`FiniteLaw`, `Categorical`, `PointMass`, `Atoms` without a rest, mixtures and products of them): a
      Fraction, exact; float probabilities count with their exact values.
    - Normal laws: a float. A closed form where d = 1 (relative error about 1e-15, however close the laws are), where
      the covariances are equal, or where the laws differ along one axis only (about 1e-16 times the condition number of
      the covariances; axes whose variances differ by less than 1e-13 count as equal); otherwise one integral, stopped
      when two resolutions agree to 1e-10 (the largest error seen in tests was 2e-9), and kept between ``h^2`` and
      ``h sqrt(2 - h^2)``, h being the Hellinger distance.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): probabilities of cells between
      the crossings of the densities, so that heavy tails count in full; an error of about 1e-13 for laws whose
      probabilities of intervals are that good.
    - Products with the same columns, and boxes: if they differ in one factor, or one pair of factors is
      singular; boxes in closed form. Other laws are refused: see `estimate_total_variation`.
    - Equal laws are exactly 0 apart; laws with atoms only and laws with a density are exactly 1 apart.
    - Not promised: that the floats are upper bounds; a proved error of the integral.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory 1; docs/proofs/laws.md (the integral).

    Examples
    --------
    >>> total_variation(FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "b": 1}))
    Fraction(1, 4)
    >>> round(total_variation(Normal(0, 1), Normal(1, 1)), 6)
    0.382925

    """
    finite = _finite_pair(p, q)
    return _total_variation(*_distributions(p, q)) if finite is None else finite_total_variation(finite)


def hellinger(p: _Law, q: _Law) -> float:
    """Hellinger distance ``h`` with ``h^2 = 1 - int sqrt(p q)``, from 0 to 1.

    Formal guarantees
    -----------------
    - Finite laws (see `total_variation`): rounded up, within two units in the last place, however close the laws are.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): an integral of
      ``(sqrt p - sqrt q)^2``, panels of which are halved until they agree to 1e-11 (relative).
    - Products with the same columns, and boxes: from those of the factors. Other laws are refused.
    - Equal laws are exactly 0 apart.
    - Not promised: that the floats, but for finite laws, are upper bounds.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory L5 (this normalisation); docs/proofs/laws.md.

    Examples
    --------
    >>> hellinger(FiniteLaw({"a": 1}), FiniteLaw({"b": 1}))
    1.0
    >>> round(hellinger(Normal(0, 1), Normal(1, 1)), 6)
    0.342787

    """
    finite = _finite_pair(p, q)
    return _hellinger(*_distributions(p, q)) if finite is None else finite_hellinger(finite)


def kl_divergence(p: _Law, q: _Law) -> float:
    """Kullback-Leibler divergence ``int p log(p / q)`` of ``p`` from ``q``, in nats; not symmetric.

    Formal guarantees
    -----------------
    - Finite laws (see `total_variation`): rounded up, within two units in the last place; infinite if and only if
      ``p`` has mass where ``q`` has none (or the value is beyond the largest float). About 20 microseconds an atom.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): an integral of
      ``p log(p / q) - p + q``, as above; infinite where p has more than 1e-300 of mass outside q, or the tails add up
      without end. Tails that fade too slowly to be added up are refused.
    - Products with the same columns, and boxes: the sum over factors. Other laws are refused.
    - Equal laws are exactly 0 apart.
    - Not promised: that the floats, but for finite laws, are upper bounds.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory M7; docs/proofs/laws.md.

    Examples
    --------
    >>> round(kl_divergence(FiniteLaw({"a": 1, "b": 1}), FiniteLaw({"a": 3, "b": 1})), 6)
    0.143841
    >>> kl_divergence(Normal(1, 1), Normal(0, 1))
    0.5

    """
    finite = _finite_pair(p, q)
    return _kl_divergence(*_distributions(p, q)) if finite is None else finite_kl_divergence(finite)


def _total_variation(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return 1.0
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_total_variation(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_total_variation(*lines)
    return _boxes_total_variation(p, q) if isinstance(p, Uniform) and isinstance(q, Uniform) else _products(p, q)


def _products(p: Distribution, q: Distribution) -> float:
    """Return the total variation of two products that differ in one factor only, or are singular in one."""
    pairs = [pair for pair in _factors(p, q) if pair[0] != pair[1]]
    if len(pairs) == 1:
        return float(total_variation(*pairs[0]))
    if any(_are_singular(*pair) for pair in pairs):
        return 1.0
    raise InvalidParameter(_NOTHING_KNOWN)


def _hellinger(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return 1.0
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_hellinger(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_hellinger(*lines)
    distances = [hellinger(*pair) for pair in _factors(p, q)]
    if max(distances) >= 1:
        return 1.0
    return math.sqrt(-math.expm1(math.fsum(math.log1p(-(distance**2)) for distance in distances)))


def _kl_divergence(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return math.inf
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_kl_divergence(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_kl_divergence(*lines)
    return math.fsum(kl_divergence(*pair) for pair in _factors(p, q))


def _boxes_total_variation(p: Uniform, q: Uniform) -> float:
    """Return what the larger box has outside the common part, as a share of it."""
    low = tuple(map(max, p.low, q.low))
    high = tuple(map(min, p.high, q.high))
    if not all(start < end for start, end in zip(low, high, strict=True)):
        return 1.0
    return max(0.0, -math.expm1(Uniform(low, high).log_volume - max(p.log_volume, q.log_volume)))


def _are_singular(p: Distribution, q: Distribution) -> bool:
    """Return whether one law consists of atoms while the other has none."""
    return {p.measure, q.measure} == {Measure.COUNTING, Measure.LEBESGUE}


def _lines(p: Distribution, q: Distribution) -> tuple[Line, Line] | None:
    first, second = take_apart(p), take_apart(q)
    return None if first is None or second is None else (first, second)


def _factors(p: Distribution, q: Distribution) -> list[tuple[Distribution, Distribution]]:
    """Return the factors of two products with the same columns, side by side; refuse other laws."""
    first, second = as_product(p), as_product(q)
    if not (isinstance(first, Product) and isinstance(second, Product)) or first.spans != second.spans:
        raise InvalidParameter(_NOTHING_KNOWN)
    return list(zip(first.factors, second.factors, strict=True))


def _finite_pair(p: object, q: object) -> Pair | None:
    """Return two finite laws side by side; None if either is not finite."""
    first, second = as_finite(p), as_finite(q)
    return None if first is None or second is None else side_by_side(first, second)


def _distributions(p: object, q: object) -> tuple[Distribution, Distribution]:
    """Return two distributions of one dimension in their simplest form."""
    if not (isinstance(p, Distribution) and isinstance(q, Distribution)):
        raise InvalidParameter("p and q must be laws of one kind: both finite, or both distributions such as Normal.")
    if p.dimension != q.dimension:
        raise InvalidParameter("p and q must have the same dimension.")
    first, second = simplified(p), simplified(q)
    if holds_labels(first) != holds_labels(second) and _are_singular(first, second):
        raise InvalidParameter("p and q must be laws of one kind: labels have no distance from numbers.")
    return first, second
