"""Totals in closed form: basic composition and advanced adaptive composition."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._relation import common_relation, read_guarantees
from accord.privacy._upper import DOWN, UP, exp_above, log_above, lower, root_above, rounded_up, upper
from accord.privacy.no_guarantee import NoGuarantee

__all__ = ["LARGEST_EPSILON", "advanced_composition", "advanced_epsilon", "basic_composition", "sum_of"]

LARGEST_EPSILON = 1000
"""Beyond it there is no protection, and plain addition is far below every other bound."""


def basic_composition(guarantees: Iterable[PureDP | ApproxDP]) -> PureDP | ApproxDP | NoGuarantee:
    """Add up: the epsilons, and the deltas.

    Formal guarantees
    -----------------
    - Privacy: mechanisms with these guarantees, each chosen by looking at all earlier outputs, are together
      (sum of epsilons, sum of deltas)-DP. Exact, nothing is rounded.
    - Not promised: that this is the least total, see `best_composition`. If the guarantees themselves are chosen on the
      way, the sum is no fixed number: use a `PrivacyFilter`.

    Parameters
    ----------
    guarantees
        At least one, all under one relation and for one unit.

    Returns
    -------
    PureDP, ApproxDP or NoGuarantee
        `NoGuarantee` if the deltas add up to 1 or more.

    Raises
    ------
    InvalidParameter
        If there are none, or relations or units are mixed.

    Source
    ------
    Theory C2; docs/proofs/composition.md.

    Examples
    --------
    >>> basic_composition([PureDP(1), ApproxDP("0.5", "1e-6")])
    ApproxDP(epsilon=Fraction(3, 2), delta=Fraction(1, 1000000), neighbouring=Neighbouring.REPLACE_ONE, unit='record')

    """
    return sum_of(Counter(read_guarantees(guarantees)))


def sum_of(rounds: Mapping[PureDP | ApproxDP, int]) -> PureDP | ApproxDP | NoGuarantee:
    """Return the same for guarantees and their counts."""
    relation = common_relation(rounds)
    delta = sum((count * guarantee.delta for guarantee, count in rounds.items()), start=Fraction(0))
    if delta >= 1:
        return relation.none(delta=delta, reason="the deltas add up to 1 or more, where nothing is promised")
    return relation.guarantee(sum((count * g.epsilon for g, count in rounds.items()), start=Fraction(0)), delta)


def advanced_composition(
    guarantee: PureDP | ApproxDP, *, rounds: int, delta_prime: Number, kl_bound: Literal["seed", "tight"] = "seed"
) -> PureDP | ApproxDP | NoGuarantee:
    """Advanced adaptive composition of equal rounds.

    Formal guarantees
    -----------------
    - Privacy: k rounds, round i any mechanism that may depend on all earlier outputs and that has ``guarantee``
      whatever they were, are together ``(k m + epsilon sqrt(2 k log(1 / delta')), k delta + delta')``-DP, rounded
      outward. ``m = epsilon (e^epsilon - 1)`` under "seed", ``epsilon tanh(epsilon / 2)`` under "tight".
    - Not promised: that it beats plain addition (with few rounds it does not), see `best_composition`.

    Parameters
    ----------
    guarantee
        Of every round. Epsilon 0 gives epsilon 0 and ``k delta``.
    rounds
        The number k, at least 1, fixed in advance.
    delta_prime
        Above 0, with ``k delta + delta' <= 1``.
    kl_bound
        Which bound of the mean loss is used.

    Returns
    -------
    PureDP, ApproxDP or NoGuarantee
        `NoGuarantee` if ``k delta + delta'`` is exactly 1.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if epsilon is above 1000.

    Source
    ------
    Theory C3 and M7; Dwork, Rothblum and Vadhan (2010); docs/proofs/composition.md.

    Examples
    --------
    >>> total = advanced_composition(ApproxDP("0.1", "1e-10"), rounds=1000, delta_prime="9e-7")
    >>> round(float(total.epsilon), 4), total.delta == Fraction(1, 10**6)
    (27.2029, True)

    """
    if kl_bound not in {"seed", "tight"}:
        raise InvalidParameter("kl_bound must be 'seed' or 'tight'.")
    (found,) = read_guarantees([guarantee])
    relation = common_relation([found])
    rounds = _check.integer("rounds", rounds, least=1)
    chance = _check.exact("delta_prime", delta_prime)
    if not chance > 0:
        raise InvalidParameter("delta_prime must be above 0: without slack the total is the sum, basic_composition.")
    delta = rounds * found.delta + chance
    if delta > 1:
        raise InvalidParameter("rounds * delta + delta_prime must be at most 1: take fewer rounds or smaller deltas.")
    if found.epsilon == 0 and rounds * found.delta < 1:
        return relation.guarantee(Fraction(0), rounds * found.delta)
    if delta == 1:
        return relation.none(delta=delta, reason="the deltas add up to 1, where nothing is promised")
    epsilon = advanced_epsilon({found.epsilon: rounds}, chance=chance, kl_bound=kl_bound)
    return relation.guarantee(epsilon, delta)


def advanced_epsilon(rounds: dict[Fraction, int], *, chance: Fraction, kl_bound: Literal["seed", "tight"]) -> Fraction:
    """Return ``sum m(epsilon) + sqrt(2 sum epsilon^2 log(1 / chance))``, rounded up, over epsilons and their counts.

    Raises
    ------
    InvalidParameter
        If an epsilon is above 1000.

    """
    if max(rounds) > LARGEST_EPSILON:
        raise InvalidParameter("epsilon must be at most 1000 for advanced composition: above it, add up.")
    mean = Decimal(0)
    for epsilon, count in sorted(rounds.items()):
        factor = mean_factor(epsilon, kl_bound=kl_bound)
        mean = UP.add(mean, UP.multiply(upper(count * epsilon), factor))
    squares = upper(2 * sum((count * epsilon**2 for epsilon, count in rounds.items()), start=Fraction(0)))
    spread = root_above(UP.multiply(squares, log_above(UP.divide(Decimal(1), lower(chance)))))
    return rounded_up(UP.add(mean, spread))


def mean_factor(epsilon: Fraction, *, kl_bound: Literal["seed", "tight"]) -> Decimal:
    """Return an upper bound of ``e^epsilon - 1``, or of ``tanh(epsilon / 2) = (e^epsilon - 1) / (e^epsilon + 1)``."""
    gain = UP.subtract(exp_above(upper(epsilon)), Decimal(1))
    if kl_bound == "seed":
        return gain
    return min(Decimal(1), UP.divide(gain, DOWN.add(gain, Decimal(2))))
