"""Totals of rounds with different epsilons."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import reduce

import numpy as np

from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.privacy._loss_sums import ROUNDING, least_loss
from accord.privacy._relation import Relation, common_relation, read_guarantees, slack
from accord.privacy._upper import exp_above, rounded_up, upper
from accord.privacy.composition import LARGEST_EPSILON, advanced_epsilon
from accord.privacy.no_guarantee import NoGuarantee
from accord.privacy.optimal import MOST_ROUNDS, left_over, optimum

__all__ = ["heterogeneous_composition", "total_of"]

_MOST_CELLS = 1 << 17
_MOST_WORK = 3 * 10**8
_MOST_ROUNDS = 5000
_CANDIDATES = 8
_SMALLEST_DELTA = Decimal("1e-280")


def heterogeneous_composition(
    guarantees: Iterable[PureDP | ApproxDP], *, delta: Number
) -> PureDP | ApproxDP | NoGuarantee:
    """Return a total of different rounds that is optimal, or nearly so, where that can be computed.

    Formal guarantees
    -----------------
    - Privacy: rounds with these guarantees, fixed in advance and in any order, each mechanism free to depend on all
      earlier outputs, are together (epsilon', delta)-DP with the epsilon' that is returned.
    - Optimality: for one epsilon (deltas may differ) as `optimal_composition`. For several, the law of the summed loss
      is computed on a grid: exactly if all epsilons are multiples of a common step that is not too small, otherwise
      after rounding each epsilon up to the grid, by at most a 30000th of the sum of all. Above 5000 rounds, or for
      deltas below 1e-280: advanced composition with the tight mean, which is not optimal.
    - The same for every order of the rounds.

    Parameters
    ----------
    guarantees
        At least one, all under one relation and for one unit.
    delta
        Of the total, from 0 to below 1.

    Returns
    -------
    PureDP, ApproxDP or NoGuarantee
        `NoGuarantee` if the rounds alone spend more than ``delta``, that is ``1 - prod (1 - delta_i) > delta``.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if relations or units are mixed.

    Source
    ------
    Theory C4; Kairouz, Oh and Viswanath (2015), Theorem 3.5; Murtagh and Vadhan (2016) for the rounding;
    docs/proofs/composition.md.

    Examples
    --------
    >>> rounds = [PureDP("0.1")] * 50 + [PureDP("0.2")] * 25
    >>> round(float(heterogeneous_composition(rounds, delta="1e-6").epsilon), 6)
    5.872602

    """
    return total_of(Counter(read_guarantees(guarantees)), allowed=slack(delta))


def total_of(found: Mapping[PureDP | ApproxDP, int], *, allowed: Fraction) -> PureDP | ApproxDP | NoGuarantee:
    """Return the same for guarantees and their counts."""
    relation = common_relation(found)
    deltas: Counter[Fraction] = Counter()
    rounds: Counter[Fraction] = Counter()
    for guarantee, count in found.items():
        deltas[guarantee.delta] += count
        if guarantee.epsilon > 0:
            rounds[guarantee.epsilon] += count
    left = left_over(deltas, allowed=allowed)
    if isinstance(left, str):
        return relation.none(delta=allowed, reason=left)
    if len(rounds) <= 1 and rounds.total() <= MOST_ROUNDS:
        epsilon = max(rounds, default=Fraction(0))
        return optimum(relation, epsilon=epsilon, rounds=rounds.total(), deltas=deltas, allowed=allowed)
    return _total(relation, rounds, left=left, allowed=allowed)


def _total(
    relation: Relation, rounds: Counter[Fraction], *, left: Decimal, allowed: Fraction
) -> PureDP | ApproxDP | NoGuarantee:
    together = sum((count * epsilon for epsilon, count in rounds.items()), start=Fraction(0))
    if left == 0 or max(rounds) > LARGEST_EPSILON:
        return relation.guarantee(together, allowed)
    bounds = [together]
    step = _step(rounds, together=together) if left > _SMALLEST_DELTA else None
    if step is not None:
        bounds.append(_on_grid(rounds, step=step, left=left))
    else:
        bounds.append(advanced_epsilon(rounds, chance=Fraction(left), kl_bound="tight"))
    return relation.guarantee(min(bounds), allowed)


def _step(rounds: Counter[Fraction], *, together: Fraction) -> Fraction | None:
    """Return the step of the grid: a common one of all epsilons if it is coarse enough, or a fine one."""
    most = min(_MOST_CELLS, _MOST_WORK // rounds.total())
    common = Fraction(
        reduce(math.gcd, (epsilon.numerator for epsilon in rounds)),
        reduce(math.lcm, (epsilon.denominator for epsilon in rounds)),
    )
    if together / common <= most:
        return common
    if rounds.total() > _MOST_ROUNDS:
        return None
    fine = together / most
    heavy = sorted(rounds, key=lambda epsilon: (-epsilon * rounds[epsilon], epsilon))[:_CANDIDATES]
    steps = [fine, *(epsilon / math.ceil(epsilon / fine - 1) for epsilon in heavy if epsilon > 2 * fine)]
    return min(
        steps, key=lambda step: sum(count * math.ceil(epsilon / step) * step for epsilon, count in rounds.items())
    )


def _on_grid(rounds: Counter[Fraction], *, step: Fraction, left: Decimal) -> Fraction:
    """Return the least epsilon of the summed loss, each epsilon a whole number of steps, rounded up.

    A round of epsilon has loss +epsilon with chance ``p = 1 / (1 + e^-epsilon)`` and -epsilon otherwise. Only sums of
    positive products occur, so every mass keeps a relative error of 4 units a round.
    """
    step = rounded_up(step)
    masses = np.ones(1)
    for epsilon, count in sorted(rounds.items()):
        steps = math.ceil(epsilon / step)
        gain = float(1 / (1 + 1 / Fraction(exp_above(upper(steps * step)))))
        loss = float(1 / (1 + Fraction(exp_above(upper(steps * step)))))
        for _ in range(count):
            longer = np.zeros(masses.size + steps)
            longer[steps:] = gain * masses
            longer[: masses.size] += loss * masses
            masses = longer
    cells = masses.size - 1
    losses = float(step) * (2 * np.arange(masses.size, dtype=np.float64) - cells)
    excess = 1 + ROUNDING * (4 * rounds.total() + 2 * masses.size + 64)
    allowed = float(Context(prec=17, rounding=ROUND_FLOOR).plus(left)) * (1 - 2 * ROUNDING)
    found = least_loss(allowed, losses=losses, masses=masses, excess=excess, added=1e-290)
    # A loss may be stored too small, by a unit of rounding of the largest: then epsilon is too small by no more.
    return rounded_up(Fraction(found) + Fraction(4 * ROUNDING * losses[-1])) if found else Fraction(0)
