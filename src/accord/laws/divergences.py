"""Total variation, Hellinger distance and Kullback-Leibler divergence of two laws of one kind."""

from fractions import Fraction
from typing import overload

from accord.distributions import Categorical, Normal
from accord.errors import InvalidParameter
from accord.laws._finite_divergences import finite_hellinger, finite_kl_divergence, finite_total_variation
from accord.laws._normal_divergences import normal_hellinger, normal_kl_divergence, normal_total_variation
from accord.laws._pairs import Pair, side_by_side
from accord.laws.finite import FiniteLaw

__all__ = ["hellinger", "kl_divergence", "total_variation"]

_Finite = FiniteLaw | Categorical


@overload
def total_variation(p: _Finite, q: _Finite) -> Fraction: ...
@overload
def total_variation(p: Normal, q: Normal) -> float: ...
def total_variation(p: _Finite | Normal, q: _Finite | Normal) -> Fraction | float:
    """Largest ``|P(B) - Q(B)|`` over events B.

    Formal guarantees
    -----------------
    - Finite laws: a Fraction, exact; a `Categorical` counts with the exact values of its float probabilities.
    - Normal laws: a float. A closed form where d = 1 (relative error about 1e-15, however close the laws are), where
      the covariances are equal, or where the laws differ along one axis only (about 1e-16 times the condition number of
      the covariances; axes whose variances differ by less than 1e-13 count as equal); otherwise one integral, stopped
      when two resolutions agree to 1e-10 (the largest error seen in tests was 2e-9), and kept between ``h^2`` and
      ``h sqrt(2 - h^2)``, h being the Hellinger distance.
    - Equal laws are exactly 0 apart.
    - Not promised: that the float for normal laws is an upper bound; a proved error of the integral.

    Parameters
    ----------
    p, q
        Both `FiniteLaw` or `Categorical`, or both `Normal` of one dimension.

    Raises
    ------
    InvalidParameter
        If they are of other kinds, or of two.

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
    normals = _both_normal(p, q)
    return finite_total_variation(_pair(p, q)) if normals is None else normal_total_variation(*normals)


def hellinger(p: _Finite | Normal, q: _Finite | Normal) -> float:
    """Hellinger distance ``h`` with ``h^2 = 1 - int sqrt(p q)``, from 0 to 1.

    Formal guarantees
    -----------------
    - Finite laws: rounded up, within two units in the last place, however close the laws are.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - Equal laws are exactly 0 apart.
    - Not promised: that the float for normal laws is an upper bound.

    Parameters
    ----------
    p, q
        Both `FiniteLaw` or `Categorical`, or both `Normal` of one dimension.

    Raises
    ------
    InvalidParameter
        If they are of other kinds, or of two.

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
    normals = _both_normal(p, q)
    return finite_hellinger(_pair(p, q)) if normals is None else normal_hellinger(*normals)


def kl_divergence(p: _Finite | Normal, q: _Finite | Normal) -> float:
    """Kullback-Leibler divergence ``int p log(p / q)`` of ``p`` from ``q``, in nats; not symmetric.

    Formal guarantees
    -----------------
    - Finite laws: rounded up, within two units in the last place, however close the laws are; infinite if and only if
      ``p`` has mass where ``q`` has none (or the value is beyond the largest float). About 20 microseconds an atom.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - Equal laws are exactly 0 apart.
    - Not promised: that the float for normal laws is an upper bound.

    Parameters
    ----------
    p, q
        Both `FiniteLaw` or `Categorical`, or both `Normal` of one dimension.

    Raises
    ------
    InvalidParameter
        If they are of other kinds, or of two.

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
    normals = _both_normal(p, q)
    return finite_kl_divergence(_pair(p, q)) if normals is None else normal_kl_divergence(*normals)


def _both_normal(p: object, q: object) -> tuple[Normal, Normal] | None:
    """Return two normal laws of one dimension; None if neither is normal."""
    if not (isinstance(p, Normal) or isinstance(q, Normal)):
        return None
    if not (isinstance(p, Normal) and isinstance(q, Normal)):
        raise InvalidParameter("p and q must be laws of one kind: both finite, or both Normal.")
    if p.dimension != q.dimension:
        raise InvalidParameter("p and q must have the same dimension.")
    return p, q


def _pair(p: object, q: object) -> Pair:
    if not (isinstance(p, (FiniteLaw, Categorical)) and isinstance(q, (FiniteLaw, Categorical))):
        raise InvalidParameter("p and q must be FiniteLaw, Categorical or Normal.")
    return side_by_side(_finite(p), _finite(q))


def _finite(law: _Finite) -> FiniteLaw:
    return law if isinstance(law, FiniteLaw) else FiniteLaw.of(law.categories, weights=law.probabilities)
