"""Privacy by enumeration: every small vote vector, every neighbour, exact laws, no luck."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from accord.core.coupling import ABSTAIN
from accord.core.exact import Number, exp_lower, to_fraction

__all__ = ["hockey_stick", "neighbours", "vote_vectors", "worst_delta"]

Law = Mapping[Any, Fraction]


def vote_vectors(voters: int) -> Iterator[tuple[Any, ...]]:
    """Yield every vote vector, abstentions included, up to the order of voters and to relabelling that keeps the order.

    Votes are the texts "001", "003", ..; the even ones are free for newcomers between them.

    Examples
    --------
    >>> [len(list(vote_vectors(voters))) for voters in (1, 2, 3)]
    [2, 4, 8]

    """
    for abstaining in range(voters + 1):
        for counts in _compositions(voters - abstaining):
            cast = [f"{2 * place + 1:03d}" for place, count in enumerate(counts) for _ in range(count)]
            yield (*cast, *[ABSTAIN] * abstaining)


def _compositions(total: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        for rest in _compositions(total - first):
            yield (first, *rest)


def neighbours(votes: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the vectors in which one voter votes otherwise: a value present, a new one anywhere, or nobody."""
    places = len({vote for vote in votes if vote is not ABSTAIN})
    targets = [*(f"{place:03d}" for place in range(2 * places + 1)), ABSTAIN]
    for voter, vote in enumerate(votes):
        if vote not in votes[:voter]:
            for target in targets:
                yield (*votes[:voter], target, *votes[voter + 1 :])


def hockey_stick(law: Law, other: Law, *, ratio: Fraction) -> Fraction:
    """Return the least delta with ``law(B) <= ratio * other(B) + delta`` for every event B (theory M9)."""
    excess = (probability - ratio * other.get(outcome, Fraction(0)) for outcome, probability in law.items())
    return sum((more for more in excess if more > 0), Fraction(0))


def worst_delta(law: Callable[[Any], Law], *, voters: int, epsilon: Number, draws: int | None = None) -> Fraction:
    """Return an upper bound of the delta a vote mechanism has at ``epsilon``, over all vectors of ``voters`` votes.

    Exact but for exp(epsilon), which is rounded down by one part in 10^58. The number of pairs grows exponentially:
    for small cases.

    Parameters
    ----------
    law
        From votes to the exact law of the output. It must not depend on the order of voters.
    voters
        Number of voters.
    epsilon
        The epsilon at which to look.
    draws
        None if ``law`` takes a vector. Otherwise it takes that many vectors, and a neighbour changes one voter in
        all of them.

    Examples
    --------
    >>> from accord.mechanisms import StableMode
    >>> worst_delta(StableMode(epsilon=1, delta="0.1").law, voters=3, epsilon=1) <= Fraction(1, 10)
    True

    """
    ratio = exp_lower(to_fraction(epsilon))
    worst = Fraction(0)
    for vectors in product(list(vote_vectors(voters)), repeat=draws or 1):
        here = law(vectors if draws else vectors[0])
        for others in product(*([vector, *neighbours(vector)] for vector in vectors)):
            worst = max(worst, hockey_stick(here, law(others if draws else others[0]), ratio=ratio))
    return worst
