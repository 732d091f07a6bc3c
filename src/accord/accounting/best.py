"""The least of all totals that are valid, and which rule it is."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from accord.accounting.composition import (
    NoGuarantee,
    advanced_composition,
    advanced_epsilon,
    common_relation,
    read_guarantees,
    slack,
    sum_of,
)
from accord.accounting.optimal import MOST_ROUNDS, total_of
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP

__all__ = ["Bound", "CompositionTable", "best_composition", "composition_table", "counted_table"]

Guarantee = PureDP | ApproxDP
Rounds = Counter[Guarantee]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What one rule says of the total.

    Parameters
    ----------
    rule
        Its name.
    source
        Where it is proved.
    total
        An upper bound; `NoGuarantee` with its reason if the rule gives none.

    """

    rule: str
    source: str
    total: PureDP | ApproxDP | NoGuarantee


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionTable:
    """Every rule side by side, each an upper bound of the same total."""

    bounds: tuple[Bound, ...]

    @property
    def best(self) -> Bound:
        """The bound with the least epsilon; among equals the one with the least delta, then the first."""
        return min(self.bounds, key=lambda bound: (bound.total.epsilon, bound.total.delta))


def best_composition(guarantees: Iterable[PureDP | ApproxDP], *, delta: Number) -> PureDP | ApproxDP | NoGuarantee:
    """Return the least total of all bounds that are valid for these rounds at this delta.

    Formal guarantees
    -----------------
    - Privacy: rounds with these guarantees, fixed in advance, each mechanism free to depend on all earlier outputs,
      have the total that is returned. Every bound is rounded outward; `composition_table` shows all, by name.
    - The same for every order of the rounds, and for n copies given as n values.
    - Not promised: a fixed price for guarantees that are chosen on the way (that is a `PrivacyFilter`); the least total
      for particular mechanisms, see `accord.accounting`.

    Parameters
    ----------
    guarantees
        At least one, all under one relation and for one unit.
    delta
        What the total's delta may be, from 0 to below 1. The total's own may be smaller.

    Returns
    -------
    PureDP, ApproxDP or NoGuarantee
        `NoGuarantee`, with the reason, if no rule has a finite total.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if relations or units are mixed.

    Source
    ------
    Theory C2, C3, C4; docs/proofs/composition.md.

    Examples
    --------
    >>> best_composition([PureDP(1)] * 10, delta=0).epsilon
    Fraction(10, 1)
    >>> float(best_composition([PureDP("0.1")] * 1000, delta="1e-6").epsilon)
    19.344671447993047

    """
    return composition_table(guarantees, delta=delta).best.total


def composition_table(guarantees: Iterable[PureDP | ApproxDP], *, delta: Number) -> CompositionTable:
    """Return what every rule says of the total at this delta.

    The arguments are those of `best_composition`.

    Examples
    --------
    >>> table = composition_table([PureDP("0.1")] * 30, delta="1e-6")
    >>> for bound in table.bounds:
    ...     print(f"{bound.rule}: {float(bound.total.epsilon):.4f}")
    basic: 3.0000
    advanced: 3.1946
    advanced, tight mean: 3.0290
    optimal: 2.3459
    >>> table.best.rule
    'optimal'

    """
    found = read_guarantees(guarantees)
    common_relation(found)
    return counted_table(Counter(found), allowed=slack(delta))


def counted_table(rounds: Rounds, *, allowed: Fraction) -> CompositionTable:
    """Return the same for guarantees and their counts, in a time that does not grow with the counts of equal ones."""
    epsilons = {guarantee.epsilon for guarantee in rounds if guarantee.epsilon}
    exact = len(epsilons) <= 1 and rounds.total() <= MOST_ROUNDS
    bounds = [
        Bound(rule="basic", source="C2", total=_basic(rounds, allowed)),
        Bound(rule="advanced", source="C3", total=_advanced(rounds, allowed, kl_bound="seed")),
        Bound(rule="advanced, tight mean", source="C3, M7", total=_advanced(rounds, allowed, kl_bound="tight")),
        Bound(
            rule="optimal" if exact else "heterogeneous",
            source="C4",
            total=_or_none(rounds, allowed, lambda: total_of(rounds, allowed=allowed)),
        ),
    ]
    return CompositionTable(bounds=tuple(bounds))


def _basic(rounds: Rounds, allowed: Fraction) -> PureDP | ApproxDP | NoGuarantee:
    total = sum_of(rounds)
    if total.delta <= allowed:
        return total
    reason = f"the deltas add up to {float(total.delta):.6g}, more than the {float(allowed):.6g} that is allowed"
    return common_relation(rounds).none(delta=allowed, reason=reason)


def _advanced(
    rounds: Rounds, allowed: Fraction, *, kl_bound: Literal["seed", "tight"]
) -> PureDP | ApproxDP | NoGuarantee:
    """Return advanced composition with all the slack that the rounds leave.

    With several guarantees the squares and the means are added, as in the proof of C3.
    """
    relation = common_relation(rounds)
    chance = allowed - sum((guarantee.delta * count for guarantee, count in rounds.items()), start=Fraction(0))
    if chance <= 0:
        reason = "the deltas of the rounds leave no slack, and this rule needs some"
        return relation.none(delta=allowed, reason=reason)
    if len(rounds) == 1:
        ((guarantee, count),) = rounds.items()
        return _or_none(
            rounds,
            allowed,
            lambda: advanced_composition(guarantee, rounds=count, delta_prime=chance, kl_bound=kl_bound),
        )
    epsilons: Counter[Fraction] = Counter()
    for guarantee, count in rounds.items():
        epsilons[guarantee.epsilon] += count
    return _or_none(
        rounds,
        allowed,
        lambda: relation.guarantee(advanced_epsilon(epsilons, chance=chance, kl_bound=kl_bound), allowed),
    )


def _or_none(
    rounds: Rounds, allowed: Fraction, rule: Callable[[], PureDP | ApproxDP | NoGuarantee]
) -> PureDP | ApproxDP | NoGuarantee:
    """Return what a rule says; if it does not cover these rounds, its reason."""
    try:
        return rule()
    except InvalidParameter as refusal:
        return common_relation(rounds).none(delta=allowed, reason=str(refusal).rstrip("."))
