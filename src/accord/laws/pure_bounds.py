"""What pure closeness implies for total variation and Kullback-Leibler divergence (theory M7)."""

from fractions import Fraction
from typing import Literal

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.laws._loss import Loss, loss
from accord.laws._rounding import float_above

__all__ = ["pure_kl_bound", "pure_symmetric_kl_bound", "pure_total_variation_bound"]


def pure_total_variation_bound(epsilon: Number) -> float:
    """Bound on the total variation of laws that are (epsilon, 0)-close both ways: ``tanh(epsilon / 2)``, rounded up.

    Formal guarantees
    -----------------
    - Attained by the laws ``(a, 1) / (a + 1)`` and ``(1, a) / (a + 1)``, with a = e^epsilon, up to the rounding.

    Parameters
    ----------
    epsilon
        From 0 to 1000.

    Raises
    ------
    InvalidParameter
        If epsilon is outside its range.

    Source
    ------
    theory M7; docs/proofs/laws.md.

    Examples
    --------
    >>> pure_total_variation_bound(0), round(pure_total_variation_bound(1), 6)
    (0.0, 0.462117)

    """
    return float_above(_half_tangent(loss(epsilon, None)))


def pure_symmetric_kl_bound(epsilon: Number) -> float:
    """Bound on ``KL(P || Q) + KL(Q || P)`` under (epsilon, 0)-closeness: ``2 epsilon tanh(epsilon / 2)``, rounded up.

    Formal guarantees
    -----------------
    - Attained by the laws of `pure_total_variation_bound`, up to the rounding.

    Parameters
    ----------
    epsilon
        From 0 to 1000.

    Raises
    ------
    InvalidParameter
        If epsilon is outside its range.

    Source
    ------
    theory M7; docs/proofs/laws.md.

    Examples
    --------
    >>> round(pure_symmetric_kl_bound(1), 6)
    0.924234

    """
    return float_above(2 * _check.exact("epsilon", epsilon) * _half_tangent(loss(epsilon, None)))


def pure_kl_bound(epsilon: Number, *, form: Literal["tight", "seed"] = "tight") -> float:
    """Bound on ``KL(P || Q)`` under (epsilon, 0)-closeness, rounded up.

    Formal guarantees
    -----------------
    - ``"tight"``: ``epsilon tanh(epsilon / 2)``, attained by the laws of `pure_total_variation_bound`, up to rounding.
    - ``"seed"``: ``epsilon (e^epsilon - 1)``, the form of the textbook, never smaller.

    Parameters
    ----------
    epsilon
        From 0 to 1000.
    form
        Which of the two.

    Raises
    ------
    InvalidParameter
        If epsilon is outside its range, or ``form`` is no such word.

    Source
    ------
    theory M7; docs/proofs/laws.md proves the tight form.

    Examples
    --------
    >>> round(pure_kl_bound(1), 6), round(pure_kl_bound(1, form="seed"), 6)
    (0.462117, 1.718282)

    """
    bounds = loss(epsilon, None)
    factors = {"tight": _half_tangent(bounds), "seed": bounds.upper - 1}
    if form not in factors:
        raise InvalidParameter("form must be 'tight' or 'seed'.")
    return float_above(_check.exact("epsilon", epsilon) * factors[form])


def _half_tangent(bounds: Loss) -> Fraction:
    """Return a rational not below ``tanh(epsilon / 2) = (a - 1) / (a + 1)``, which grows with a."""
    return (bounds.upper - 1) / (bounds.upper + 1)
