"""Basic and advanced composition, and what every total shares: one relation for all, bounds rounded upward."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Literal, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP

__all__ = [
    "DOWN",
    "LARGEST_EPSILON",
    "UP",
    "NoGuarantee",
    "Relation",
    "advanced_composition",
    "advanced_epsilon",
    "basic_composition",
    "common_relation",
    "exp_above",
    "exp_below",
    "log_above",
    "lower",
    "power_below",
    "read_guarantees",
    "refuse_other_relation",
    "root_above",
    "rounded_up",
    "slack",
    "sum_of",
    "upper",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoGuarantee:
    """No finite epsilon holds at this delta, and why. Falsy; nothing can be admitted or charged with it.

    Parameters
    ----------
    delta
        The slack that was asked for.
    reason
        One sentence for people.
    neighbouring, unit
        As in the guarantees that were put together.

    Examples
    --------
    >>> from accord.privacy import ApproxDP, optimal_composition
    >>> total = optimal_composition(ApproxDP("0.1", "1e-8"), rounds=1000, delta="1e-6")
    >>> total.epsilon
    inf
    >>> print(total.reason)
    the guarantees alone spend a delta of 9.99995e-06, more than the 1e-06 that is allowed

    """

    delta: Fraction
    reason: str
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    unit: str = "record"

    @property
    def epsilon(self) -> float:
        """Always infinite."""
        return math.inf

    def at(self, delta: Number) -> float:
        """Return infinity, for every slack."""
        _check.exact("delta", delta)
        return math.inf

    def __bool__(self) -> bool:
        return False


@final
@dataclass(frozen=True, slots=True)
class Relation:
    """Which datasets are neighbours, and what one position of them is."""

    neighbouring: Neighbouring
    unit: str

    def guarantee(self, epsilon: Fraction, delta: Fraction) -> PureDP | ApproxDP:
        """Return the guarantee with these numbers; pure if delta is 0."""
        if delta == 0:
            return PureDP(epsilon, self.neighbouring, self.unit)
        return ApproxDP(epsilon, delta, self.neighbouring, self.unit)

    def none(self, *, delta: Fraction, reason: str) -> NoGuarantee:
        """Return the absence of a guarantee."""
        return NoGuarantee(delta=delta, reason=reason, neighbouring=self.neighbouring, unit=self.unit)


def read_guarantees(guarantees: Iterable[PureDP | ApproxDP]) -> list[PureDP | ApproxDP]:
    """Return the guarantees as a list, or refuse anything else."""
    if isinstance(guarantees, PureDP | ApproxDP):
        raise InvalidParameter("guarantees must be a collection: for one guarantee write [guarantee].")
    found = list(guarantees)
    _check.at_least_one("guarantees", found)
    for guarantee in found:
        if isinstance(guarantee, NoGuarantee):
            raise InvalidParameter(f"guarantees holds one that is infinite: {guarantee.reason}.")
        if not isinstance(guarantee, PureDP | ApproxDP):
            raise InvalidParameter("guarantees must hold PureDP and ApproxDP values only, such as PureDP('0.1').")
    return found


def common_relation(guarantees: Collection[PureDP | ApproxDP]) -> Relation:
    """Return the strongest relation that all imply, and the unit that all share; or refuse the mixture and say why."""
    relations = {guarantee.neighbouring for guarantee in guarantees}
    common = [relation for relation in relations if all(each.implies(relation) for each in relations)]
    if not common:
        raise InvalidParameter(
            "guarantees mix the relations 'replace one' and 'add or remove one': replacing a record is removing one "
            "and adding one, so their epsilons measure different things. State all under one relation first: "
            "(epsilon, delta) under 'add or remove one' gives (2 epsilon, (1 + e^epsilon) delta) under 'replace one'; "
            "the other way nothing follows."
        )
    units = {guarantee.unit for guarantee in guarantees}
    if len(units) > 1:
        raise InvalidParameter(
            f"guarantees are for different units of privacy ({', '.join(sorted(units))}): a total speaks about one "
            "unit. Restate all for the same one; a person with several records is not protected by a promise for one."
        )
    return Relation(common[0], units.pop())


def refuse_other_relation(cap: PureDP | ApproxDP, guarantee: PureDP | ApproxDP) -> None:
    """Refuse a guarantee that says nothing under the relation of a cap, or nothing about its unit."""
    common_relation([cap, guarantee])
    if not guarantee.neighbouring.implies(cap.neighbouring):
        raise InvalidParameter(
            f"the cap counts under '{cap.neighbouring.value}' and this guarantee holds under "
            f"'{guarantee.neighbouring.value}' only: it says nothing of records that stand elsewhere in the file. A "
            f"cap under '{guarantee.neighbouring.value}' takes both."
        )


def slack(value: Number, *, name: str = "delta") -> Fraction:
    """Return a delta from 0 to below 1."""
    result = _check.exact(name, value)
    if not 0 <= result < 1:
        raise InvalidParameter(f"{name} must be at least 0 and below 1: at 1 nothing is promised.")
    return result


_DIGITS = 60


def contexts(digits: int) -> tuple[Context, Context]:
    """Return decimal contexts that round up and down."""
    up, down = (
        Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        for rounding in (ROUND_CEILING, ROUND_FLOOR)
    )
    return up, down


UP, DOWN = contexts(_DIGITS)


def upper(value: Fraction) -> Decimal:
    """Return the least 60-digit decimal that is not below ``value``."""
    return UP.divide(Decimal(value.numerator), Decimal(value.denominator))


def lower(value: Fraction) -> Decimal:
    """Return the largest 60-digit decimal that is not above ``value``."""
    return DOWN.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_above(x: Decimal) -> Decimal:
    """Return a decimal not below ``exp(x)``: ``Decimal.exp`` is correctly rounded, and the next one is above."""
    return Decimal(1) if x == 0 else UP.exp(x).next_plus(UP)


def exp_below(x: Decimal) -> Decimal:
    """Return a decimal not above ``exp(x)``."""
    return Decimal(1) if x == 0 else DOWN.exp(x).next_minus(DOWN)


def log_above(x: Decimal) -> Decimal:
    """Return a decimal not below ``log(x)``, for x above 0."""
    return Decimal(0) if x == 1 else UP.ln(x).next_plus(UP)


def root_above(x: Decimal) -> Decimal:
    """Return a decimal not below the square root of x, for x at least 0."""
    return UP.sqrt(x).next_plus(UP) if x else Decimal(0)


def power_below(base: Decimal, exponent: int, *, context: Context) -> Decimal:
    """Return a decimal not above ``base ** exponent``, for a base and an exponent of at least 0."""
    result = Decimal(1)
    while exponent:
        if exponent & 1:
            result = context.multiply(result, base)
        base = context.multiply(base, base)
        exponent >>= 1
    return result


def rounded_up(value: Decimal | Fraction) -> Fraction:
    """Return the least float at or above ``value`` (at least 0), as a fraction; beyond the floats, ``value`` itself.

    Examples
    --------
    >>> rounded_up(Fraction(1, 10)) == Fraction(0.1)
    True
    >>> float(rounded_up(Fraction(1, 3))), rounded_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.33333333333333337, True)

    """
    exact = Fraction(value)
    try:
        nearest = exact.numerator / exact.denominator  # correctly rounded for whole numbers
    except OverflowError:
        return exact
    if Fraction(nearest) < exact:
        nearest = nextafter(nearest, inf)
    return exact if nearest == inf else Fraction(nearest)


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
