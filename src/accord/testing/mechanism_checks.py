"""One suite for every mechanism, accord's own and yours: refusals, guarantee, replay, law, privacy on neighbours."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from scipy.stats import beta

from accord._exact import exp_lower
from accord.errors import AccordError, WrongRandomness
from accord.privacy import ApproxDP, PureDP
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing.enumeration import hockey_stick
from accord.testing.replay import ReplayRandomness

__all__ = ["MechanismCase", "MechanismFault", "check_mechanism"]

_TAIL = 1e-9
"""Each statistical statement is wrong with at most this probability; a run makes fewer than a thousand of them."""

_MOST_EVENTS = 40
_OPERATING_SYSTEM = PrivateRandomness()

Run = Callable[[Any, PrivateRandomness], Hashable]


class MechanismFault(AssertionError):
    """A mechanism failed its suite; the text says which check."""


class _Untouched(PrivateRandomness):
    """A source that nothing may be read from."""

    __slots__ = ()

    def bytes(self, count: int) -> bytes:
        message = f"{count} bytes of noise were drawn before the input was refused"
        raise MechanismFault(message)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismCase:
    """What the suite needs to know of a mechanism.

    Parameters
    ----------
    guarantee
        What a run promises.
    run
        ``run(query, randomness)`` runs the mechanism once and returns a hashable outcome; coarsen it (clip, round) to
        a few dozen outcomes: post-processing keeps the promise.
    neighbours
        Pairs of queries that neighbours can have, the most distant ones first of all.
    law
        ``law(query)`` is the exact law of the outcome by another route than running, or None. With a law, privacy is
        checked exactly.
    refused
        Queries that must be refused before any noise is drawn.
    constant
        Whether the outcome may be the same each time, as with sensitivity 0.

    """

    guarantee: PureDP | ApproxDP
    run: Run
    neighbours: Sequence[tuple[Any, Any]]
    law: Callable[[Any], Mapping[Any, Fraction]] | None = None
    refused: Sequence[Any] = ()
    constant: bool = False


def check_mechanism(case: MechanismCase, *, runs: int = 20_000) -> None:
    """Run the whole suite.

    Formal guarantees
    -----------------
    - A true mechanism fails with probability below 1e-6.
    - With a law, a pair of neighbours that breaks the promise is found for certain, and sampled outcomes that do not
      follow the law are found if any is off by more than about six standard errors.
    - Without a law, an excess over the promise is found if it shows in ``runs`` runs on one of the most frequent
      outcomes or on a half-line of outcomes.
    - Not promised: neighbours that were not given.

    Parameters
    ----------
    case
        The mechanism and its neighbours.
    runs
        Runs a query.

    Raises
    ------
    MechanismFault
        At the first check that fails.

    Examples
    --------
    >>> from accord.mechanisms import StableMode
    >>> mode = StableMode(epsilon=1, delta="0.1")
    >>> case = MechanismCase(
    ...     guarantee=mode.guarantee,
    ...     run=lambda votes, randomness: mode.release(votes, randomness=randomness).value,
    ...     neighbours=[(["a", "a", "b"], ["a", "b", "b"])],
    ...     law=mode.law,
    ...     refused=[[]],
    ... )
    >>> check_mechanism(case, runs=2_000)

    """
    _check_guarantee(case)
    for query in case.refused:
        _check_refusal(case, query)
    queries = _distinct([query for pair in case.neighbours for query in pair])
    for query in queries:
        _check_sources(case, query)
    if case.law is not None:
        for first, second in case.neighbours:
            _check_exactly(case, first, second)
            _check_exactly(case, second, first)
    found = [_sample(case, query, runs) for query in queries]
    if case.law is not None:
        for query, outcomes in zip(queries, found, strict=True):
            _check_law(case.law(query), outcomes)
    else:
        for first, second in case.neighbours:
            p, q = found[_place(queries, first)], found[_place(queries, second)]
            _check_statistically(case, p, q)
            _check_statistically(case, q, p)


def _distinct(queries: Sequence[Any]) -> list[Any]:
    kept: dict[str, Any] = {}
    for query in queries:
        kept.setdefault(repr(query), query)
    return list(kept.values())


def _place(queries: Sequence[Any], query: Any) -> int:  # noqa: ANN401 - whatever the mechanism is asked
    return [repr(other) for other in queries].index(repr(query))


def _check_guarantee(case: MechanismCase) -> None:
    if not isinstance(case.guarantee, (PureDP, ApproxDP)) or case.guarantee.epsilon < 0 or not case.neighbours:
        message = "the guarantee must be a PureDP or ApproxDP, and neighbours must be given"
        raise MechanismFault(message)


def _check_refusal(case: MechanismCase, query: Any) -> None:  # noqa: ANN401 - whatever must be refused
    try:
        case.run(query, _Untouched())
    except AccordError:
        return
    message = f"a query of type {type(query).__name__} was not refused"
    raise MechanismFault(message)


def _check_sources(case: MechanismCase, query: Any) -> None:  # noqa: ANN401 - whatever the mechanism is asked
    for wrong in (SharedRandomness(1), 1):
        try:
            case.run(query, wrong)  # type: ignore[arg-type] # that is the point
        except WrongRandomness:
            continue
        message = f"noise was taken from {type(wrong).__name__}"
        raise MechanismFault(message)
    if case.run(query, ReplayRandomness("same")) != case.run(query, ReplayRandomness("same")):
        message = "equal secret bits gave different outcomes: there is another source of randomness"
        raise MechanismFault(message)


def _check_exactly(case: MechanismCase, first: Any, second: Any) -> None:  # noqa: ANN401 - as above
    assert case.law is not None  # noqa: S101 - for the type checker
    excess = hockey_stick(case.law(first), case.law(second), ratio=exp_lower(case.guarantee.epsilon))
    if excess > case.guarantee.delta:
        message = f"neighbours differ by delta = {float(excess):.3g} at the promised epsilon"
        raise MechanismFault(message)


def _sample(case: MechanismCase, query: Any, runs: int) -> Counter[Hashable]:  # noqa: ANN401 - as above
    found = Counter(case.run(query, _OPERATING_SYSTEM) for _ in range(runs))
    if len(found) == 1 and not case.constant and case.law is None:
        message = "the outcome was always the same: no noise"
        raise MechanismFault(message)
    return found


def _bounds(count: int, runs: int) -> tuple[float, float]:
    """Return Clopper-Pearson bounds of a probability, each wrong with probability 1e-9."""
    low = float(beta.ppf(_TAIL, count, runs - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - _TAIL, count + 1, runs - count)) if count < runs else 1.0
    return low, high


def _check_law(law: Mapping[Any, Fraction], found: Counter[Hashable]) -> None:
    runs = found.total()
    for outcome in {*law, *found}:
        low, high = _bounds(found[outcome], runs)
        if not low <= float(law.get(outcome, Fraction(0))) <= high:
            message = "sampled outcomes do not follow the law"
            raise MechanismFault(message)


def _events(p: Counter[Hashable], q: Counter[Hashable]) -> list[frozenset[Hashable]]:
    """Return single outcomes and half-lines of outcomes, as far as they can be put in order."""
    outcomes = [outcome for outcome, _ in (p + q).most_common(_MOST_EVENTS)]
    events = [frozenset([outcome]) for outcome in outcomes]
    try:
        line = sorted({*p, *q})  # type: ignore[type-var] # tried and caught
    except TypeError:
        return events
    steps = range(1, len(line), max(1, len(line) // _MOST_EVENTS))
    return events + [frozenset(half) for step in steps for half in (line[:step], line[step:])]


def _check_statistically(case: MechanismCase, p: Counter[Hashable], q: Counter[Hashable]) -> None:
    ratio = float(exp_lower(case.guarantee.epsilon))
    for event in _events(p, q):
        low, _ = _bounds(sum(p[outcome] for outcome in event), p.total())
        _, high = _bounds(sum(q[outcome] for outcome in event), q.total())
        if low > ratio * high + float(case.guarantee.delta):
            message = "an event is likelier for one neighbour than the promise allows"
            raise MechanismFault(message)
