"""Optimal composition: of equal guarantees exactly, of unequal ones by sums of their losses."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from accord.accounting.composition import (
    DOWN,
    LARGEST_EPSILON,
    UP,
    NoGuarantee,
    Relation,
    advanced_epsilon,
    common_relation,
    contexts,
    exp_above,
    log_above,
    power_below,
    read_guarantees,
    rounded_up,
    slack,
    upper,
)
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP

__all__ = [
    "MOST_ROUNDS",
    "ROUNDING",
    "delta_above",
    "heterogeneous_composition",
    "least_loss",
    "left_over",
    "optimal_composition",
    "total_of",
]


ROUNDING = 2.0**-53
_HALVINGS = 60

Floats = NDArray[np.float64]


def delta_above(epsilon: float, *, losses: Floats, masses: Floats, excess: float, added: float) -> float:
    """Return ``excess * sum masses (1 - exp(epsilon - losses))_+ + added``, for losses in rising order.

    All terms are positive, so that the float sum has a small relative error, which ``excess`` must cover together with
    that of the masses: ``len(losses) + 16`` units of `ROUNDING` are enough for the sum, the product and ``expm1``.
    """
    first = int(np.searchsorted(losses, epsilon, side="right"))
    terms = -np.expm1(epsilon - losses[first:]) * masses[first:]
    return float(terms.sum()) * excess + added


def least_loss(allowed: float, *, losses: Floats, masses: Floats, excess: float, added: float) -> float:
    """Return a nearly least epsilon of at least 0 with `delta_above` at most ``allowed``; infinity if there is none."""

    def enough(epsilon: float) -> bool:
        return delta_above(epsilon, losses=losses, masses=masses, excess=excess, added=added) <= allowed

    short, good = 0.0, max(0.0, float(losses[-1]))
    if enough(short):
        return 0.0
    if not enough(good):
        return math.inf
    for _ in range(_HALVINGS):
        middle = (short + good) / 2
        if not short < middle < good:
            break
        short, good = (short, middle) if enough(middle) else (middle, good)
    return good


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
