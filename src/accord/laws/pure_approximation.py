"""The pure law behind an approximate one: move at most delta of mass and the slack is gone (theory M8)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core.exact import Number
from accord.laws._loss import loss
from accord.laws._pairs import Pair, side_by_side
from accord.laws.finite import FiniteLaw

__all__ = ["PureApproximation", "pure_approximation"]


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
