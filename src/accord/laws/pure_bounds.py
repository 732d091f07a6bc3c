"""What pure closeness implies for total variation and Kullback-Leibler divergence (theory M7)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.laws.finite import FiniteLaw, Pair, side_by_side
from accord.laws.hockey_stick import Loss, float_above, loss

__all__ = [
    "PureApproximation",
    "pure_approximation",
    "pure_kl_bound",
    "pure_symmetric_kl_bound",
    "pure_total_variation_bound",
]


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PureApproximation:
    """A law that is purely close to Q, and how much of P had to move.

    Attributes
    ----------
    law
        P*, on the outcomes of P, then those that only Q has.
    alpha
        Mass of P above ``e^epsilon Q``, which was taken away.
    beta
        Mass that P lacked below ``e^-epsilon Q``, which was added.

    """

    law: FiniteLaw
    alpha: Fraction
    beta: Fraction

    @property
    def total_variation(self) -> Fraction:
        """Total variation between P and P*: the larger of alpha and beta."""
        return max(self.alpha, self.beta)


def pure_approximation(
    p: FiniteLaw, q: FiniteLaw, *, epsilon: Number | None = None, exp_epsilon: Number | None = None
) -> PureApproximation:
    """Return a law P* that is (epsilon, 0)-close to ``q`` in both directions, and as near to ``p`` as any.

    Formal guarantees
    -----------------
    - Closeness: ``P*(E) <= e^epsilon Q(E)`` and ``Q(E) <= e^epsilon P*(E)`` for all events E, for certain: if e^epsilon
      is irrational, a rational lower bound takes its place throughout, which promises more.
    - Distance: the total variation between ``p`` and P* is ``max(alpha, beta)``, exactly; it is at most
      ``smallest_delta(p, q)`` at the same epsilon, since ``alpha <= delta`` and ``e^epsilon beta <= delta``.
    - Nearest: no law that is purely close to ``q`` at that bound is nearer to ``p``.
    - Not promised: that it is the only such law.

    Parameters
    ----------
    p, q
        Laws; an outcome that one of them lacks has probability 0 there.
    epsilon
        From 0 to 1000.
    exp_epsilon
        In place of ``epsilon``: e^epsilon itself, at least 1.

    Raises
    ------
    InvalidParameter
        If p or q is no `FiniteLaw`, or not exactly one of epsilon and exp_epsilon is given, in its range.

    Source
    ------
    theory M8; docs/proofs/pure-approximation.md.

    Examples
    --------
    >>> p, q = FiniteLaw({"a": 9, "b": 1}), FiniteLaw({"a": 1, "b": 1})
    >>> near = pure_approximation(p, q, exp_epsilon="3/2")
    >>> near.law["a"], near.alpha, near.beta, near.total_variation
    (Fraction(2, 3), Fraction(3, 20), Fraction(7, 30), Fraction(7, 30))

    """
    pair = side_by_side(p, q)
    ratio = loss(epsilon, exp_epsilon).lower
    given, low, high, one = _over_one_denominator(pair, ratio)
    clipped = [min(max(number, least), most) for number, least, most in zip(given, low, high, strict=True)]
    above = sum(number - most for number, most in zip(given, high, strict=True) if number > most)
    below = sum(least - number for number, least in zip(given, low, strict=True) if number < least)
    mass = one - above + below
    # Spread what is missing over the room up to e^epsilon q, or take a surplus from the room down to q / e^epsilon.
    bound = high if mass < one else low
    room = abs(sum(bound) - mass)
    share = abs(one - mass)
    moved = clipped if share == 0 else [at * (room - share) + to * share for at, to in zip(clipped, bound, strict=True)]
    law = FiniteLaw.of(pair.outcomes, weights=moved)
    return PureApproximation(law=law, alpha=Fraction(above, one), beta=Fraction(below, one))


def _over_one_denominator(pair: Pair, ratio: Fraction) -> tuple[list[int], list[int], list[int], int]:
    """Return p, ``q / ratio``, ``ratio q`` and 1 as whole numbers over one denominator."""
    up, down = ratio.numerator, ratio.denominator
    own = pair.second_total * up * down
    low, high = pair.first_total * down * down, pair.first_total * up * up
    return (
        [number * own for number in pair.first],
        [number * low for number in pair.second],
        [number * high for number in pair.second],
        pair.first_total * own,
    )
