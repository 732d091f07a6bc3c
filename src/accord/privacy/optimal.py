"""The least total of equal rounds: optimal composition after Kairouz, Oh and Viswanath."""

from decimal import Decimal
from fractions import Fraction

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._relation import Relation, common_relation, read_guarantees, slack
from accord.privacy._upper import DOWN, UP, contexts, exp_above, log_above, power_below, rounded_up, upper
from accord.privacy.no_guarantee import NoGuarantee

__all__ = ["MOST_ROUNDS", "left_over", "optimal_composition"]

MOST_ROUNDS = 100_000
_LARGEST_LOSS = 10**6


def optimal_composition(guarantee: PureDP | ApproxDP, *, rounds: int, delta: Number) -> PureDP | ApproxDP | NoGuarantee:
    """Return the least epsilon that holds for all equal rounds together, rounded up.

    Formal guarantees
    -----------------
    - Privacy: k rounds, round i any mechanism that may depend on all earlier outputs and that has ``guarantee``
      whatever they were, are together (epsilon', delta)-DP with the epsilon' that is returned.
    - Optimality: no smaller epsilon' holds for all such mechanisms, up to a rounding of one unit in the last place of a
      float. 60-digit arithmetic, every step rounded outward, so it is valid for the smallest deltas.
    - Not promised: the least total for particular mechanisms. That of Laplace noise is smaller, see
      `accord.accounting`.

    Parameters
    ----------
    guarantee
        Of every round.
    rounds
        The number k, from 1 to 100000, fixed in advance.
    delta
        Of the total, from 0 to below 1.

    Returns
    -------
    PureDP, ApproxDP or NoGuarantee
        `NoGuarantee` if the rounds alone spend more than ``delta``, that is ``1 - (1 - delta_0)^k > delta``.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    Theory C4; Kairouz, Oh and Viswanath (2015), Theorem 3.3; docs/proofs/composition.md.

    Examples
    --------
    >>> round(float(optimal_composition(ApproxDP("0.1", "1e-10"), rounds=1000, delta="1e-6").epsilon), 8)
    19.40185234
    >>> optimal_composition(PureDP("0.1"), rounds=30, delta=0).epsilon
    Fraction(3, 1)

    """
    (found,) = read_guarantees([guarantee])
    rounds = _check.integer("rounds", rounds, least=1)
    if rounds > MOST_ROUNDS:
        raise InvalidParameter("rounds must be at most 100000 here: best_composition has bounds for more.")
    allowed = slack(delta)
    relation = common_relation([found])
    return optimum(relation, epsilon=found.epsilon, rounds=rounds, deltas={found.delta: rounds}, allowed=allowed)


def optimum(
    relation: Relation, *, epsilon: Fraction, rounds: int, deltas: dict[Fraction, int], allowed: Fraction
) -> PureDP | ApproxDP | NoGuarantee:
    """Return the least total of rounds with one epsilon, whose deltas may differ."""
    left = left_over(deltas, allowed=allowed)
    if isinstance(left, str):
        return relation.none(delta=allowed, reason=left)
    sum_of_losses = rounds * epsilon
    if left == 0 or sum_of_losses == 0 or sum_of_losses > _LARGEST_LOSS:
        return relation.guarantee(sum_of_losses, allowed)
    ratio = _worst_ratio(exp_above(upper(epsilon)), rounds=rounds, left=left)
    return relation.guarantee(min(sum_of_losses, rounded_up(log_above(ratio))), allowed)


def left_over(deltas: dict[Fraction, int], *, allowed: Fraction) -> Decimal | str:
    """Return what is left of ``allowed`` for the pure parts, rounded down, or the reason why nothing is.

    A round with delta gives its input away with chance delta; none does with chance ``prod (1 - delta)``. On that event
    ``1 - (1 - allowed) / prod (1 - delta)`` may be spent.
    """
    smallest = min((value for value in (*deltas, allowed) if value > 0), default=Fraction(1))
    digits = 80 + 2 * len(str(int(1 / smallest)))
    up, down = contexts(digits)
    whole = Decimal(1)
    for value, count in sorted(deltas.items()):
        kept = down.divide(Decimal(value.denominator - value.numerator), Decimal(value.denominator))
        whole = down.multiply(whole, power_below(kept, count, context=down))
    rest = up.divide(Decimal(allowed.denominator - allowed.numerator), Decimal(allowed.denominator))
    left = down.subtract(Decimal(1), up.divide(rest, whole))
    if left < 0:
        spent = float(up.subtract(Decimal(1), whole))
        return f"the guarantees alone spend a delta of {spent:.6g}, more than the {float(allowed):.6g} that is allowed"
    return DOWN.plus(left)


def _worst_ratio(base: Decimal, *, rounds: int, left: Decimal) -> Decimal:
    """Return the largest ``(P(top i) - left) / Q(top i)`` over i, at least 1, rounded up: e^epsilon' is that.

    P and Q are the laws of k randomised responses with odds ``base : 1`` and ``1 : base``; the top outcomes are those
    with fewest flips. P(l flips) = C(k, l) base^(k - l) / (1 + base)^k, Q(l flips) = C(k, l) base^l / (1 + base)^k.
    ``base`` is taken as an exact number; a larger one dominates.
    """
    one = Decimal(1)
    both = UP.add(one, base), DOWN.add(one, base)
    inverse = UP.divide(one, base)
    here = UP.divide(one, power_below(DOWN.divide(both[1], base), rounds, context=DOWN))
    there = power_below(DOWN.divide(one, both[0]), rounds, context=DOWN)
    mass, other, worst = Decimal(0), Decimal(0), one
    for flips in range(rounds + 1):
        mass, other = UP.add(mass, here), DOWN.add(other, there)
        if mass > left:
            worst = max(worst, UP.divide(UP.subtract(mass, left), other))
        up, down = Decimal(rounds - flips), Decimal(flips + 1)
        here = UP.divide(UP.multiply(here, UP.multiply(up, inverse)), down)
        there = DOWN.divide(DOWN.multiply(there, DOWN.multiply(up, base)), down)
        # An outcome with P / Q below the ratio found only lowers (P - left) / Q, and so do all after it.
        if here <= DOWN.multiply(worst, there) and mass > left:
            break
    return worst
