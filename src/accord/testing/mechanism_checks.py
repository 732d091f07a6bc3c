"""One suite for every mechanism, accord's own and yours: refusals, guarantee, replay, law, privacy on neighbours."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, final

import numpy as np
from scipy.stats import beta

from accord.core import check as _check
from accord.core.alone import turn
from accord.core.errors import AccordError, NotPrivateWarning, WrongRandomness
from accord.core.exact import exp_lower
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.release import Release
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.testing.enumeration import hockey_stick
from accord.testing.tape import ReplayRandomness

__all__ = [
    "CountingRandomness",
    "MechanismCase",
    "MechanismFault",
    "UntouchedRandomness",
    "check_independence",
    "check_mechanism",
    "check_sampled_law",
    "check_sampled_privacy",
]


class MechanismFault(AssertionError):
    """A mechanism failed its suite; the text says which check."""


_TAIL = 1e-9
"""Each statistical statement is wrong with at most this probability; a run makes fewer than a thousand of them."""

_MOST_EVENTS = 40
_LAGS = (1, 2, 3)


def _bounds(count: int, runs: int) -> tuple[float, float]:
    """Return Clopper-Pearson bounds of a probability, each wrong with probability 1e-9."""
    low = float(beta.ppf(_TAIL, count, runs - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - _TAIL, count + 1, runs - count)) if count < runs else 1.0
    return low, high


def _line(outcomes: Iterable[Hashable]) -> list[Any]:
    """Return distinct outcomes in their own order, or by the names of their types and their texts if they have none."""
    distinct: set[Any] = set(outcomes)
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=lambda outcome: (type(outcome).__name__, repr(outcome)))


# --- law --------------------------------------------------------------------------------------------------------------


def check_sampled_law(law: Mapping[Any, Fraction], found: Counter[Hashable]) -> None:
    """Refuse outcomes that do not follow the law."""
    runs = found.total()
    for outcome in {*law, *found}:
        low, high = _bounds(found[outcome], runs)
        if not low <= float(law.get(outcome, Fraction(0))) <= high:
            message = "sampled outcomes do not follow the law"
            raise MechanismFault(message)


# --- independence -----------------------------------------------------------------------------------------------------


def check_independence(outcomes: Sequence[Hashable]) -> None:
    """Refuse a sequence of runs whose near outcomes are equal more or less often than its distant ones.

    Pairs that share no run are independent, and each is a pair of equals with the sum of squared probabilities as its
    chance, ties of the law included: so both numbers are binomial with one chance. Outcomes are compared as they are,
    and by the half of the line that they are in.
    """
    order = {outcome: place for place, outcome in enumerate(_line(outcomes))}
    places = [order[outcome] for outcome in outcomes]
    middle = sorted(places)[len(places) // 2]
    for marks in (places, [int(place >= middle) for place in places], [int(place > middle) for place in places]):
        half = len(marks) // 2
        least, most = _share_of_equals(zip(marks[:half], marks[half:], strict=False))
        for lag in _LAGS:
            for start in (0, lag):
                low, high = _share_of_equals(_near(marks, lag=lag, start=start))
                if low > most or high < least:
                    message = "successive outcomes depend on each other: noise is used more than once"
                    raise MechanismFault(message)


def _near(marks: Sequence[int], *, lag: int, start: int) -> list[tuple[int, int]]:
    """Return pairs of runs ``lag`` apart, no run in two of them."""
    firsts = [place for block in range(start, len(marks) - 2 * lag + 1, 2 * lag) for place in range(block, block + lag)]
    return [(marks[place], marks[place + lag]) for place in firsts]


def _share_of_equals(pairs: Iterable[tuple[int, int]]) -> tuple[float, float]:
    equal = [first == second for first, second in pairs]
    return _bounds(sum(equal), len(equal))


# --- privacy ----------------------------------------------------------------------------------------------------------


def check_sampled_privacy(guarantee: PureDP | ApproxDP, p: Counter[Hashable], q: Counter[Hashable]) -> None:
    """Refuse an event that is likelier under ``p`` than the guarantee allows, given ``q``."""
    ratio = exp_lower(guarantee.epsilon)
    for event in _events(p, q):
        low, _ = _bounds(sum(p[outcome] for outcome in event), p.total())
        _, high = _bounds(sum(q[outcome] for outcome in event), q.total())
        if Fraction(low) > ratio * Fraction(high) + guarantee.delta:  # the ratio may be beyond the floats
            message = "an event is likelier for one neighbour than the promise allows"
            raise MechanismFault(message)


def _events(p: Counter[Hashable], q: Counter[Hashable]) -> list[frozenset[Hashable]]:
    """Return the most frequent single outcomes, and half-lines of outcomes."""
    events = [frozenset([outcome]) for outcome, _ in (p + q).most_common(_MOST_EVENTS)]
    line = _line([*p, *q])
    steps = range(1, len(line), max(1, len(line) // _MOST_EVENTS))
    return events + [frozenset(half) for step in steps for half in (line[:step], line[step:])]


class UntouchedRandomness(PrivateRandomness):
    """A source that nothing may be read from."""

    __slots__ = ()

    def bytes(self, count: int) -> bytes:
        """Refuse."""
        message = f"{count} bytes of noise were drawn before the input was refused"
        raise MechanismFault(message)


class CountingRandomness(PrivateRandomness):
    """Another source's bytes; ``taken`` says how many have been read."""

    __slots__ = ("_inner", "taken")

    def __init__(self, inner: PrivateRandomness) -> None:
        super().__init__()
        self._inner = inner
        self.taken = 0

    def bytes(self, count: int) -> bytes:
        """Count and pass on."""
        self.taken += count
        return self._inner.bytes(count)


_FEWEST_RUNS = 100
_REPLAYS = 64
_LEAST_TEXT = 3

Run = Callable[[Any, PrivateRandomness], Hashable | Release[Any]]
Law = Mapping[Any, Fraction]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismCase:
    """What the suite needs to know of a mechanism.

    Parameters
    ----------
    guarantee
        What a run promises.
    run
        ``run(query, randomness)`` runs the mechanism once and returns a hashable outcome, or the `Release` of one: then
        the release's own guarantee must equal ``guarantee``. Coarsen outcomes (clip, round; `Release.map`) to a few
        dozen: post-processing keeps the promise.
    neighbours
        Pairs of queries that neighbours can have, the most distant ones first of all.
    law
        ``law(query)`` is the exact law of the outcome by another route than running, or None. With a law, privacy is
        checked exactly.
    refused
        Queries that must be refused before any noise is drawn, in words that do not repeat them.
    constant
        Whether the outcome may be the same each time, and a run may draw nothing, as with sensitivity 0.
    same_bits
        Whether neighbours must draw equally many bytes when they are given equal ones.

    """

    guarantee: PureDP | ApproxDP
    run: Run
    neighbours: Sequence[tuple[Any, Any]]
    law: Callable[[Any], Law] | None = None
    refused: Sequence[Any] = ()
    constant: bool = False
    same_bits: bool = False

    def __post_init__(self) -> None:
        _check.store(self, neighbours=tuple(self.neighbours))
        _check.store(self, refused=tuple(self.refused))


def check_mechanism(case: MechanismCase, *, runs: int = 20_000) -> None:
    """Run the whole suite.

    Formal guarantees
    -----------------
    - A true mechanism fails with probability below 1e-6.
    - With a law, a pair of neighbours that breaks the promise is found for certain, and sampled outcomes that do not
      follow the law are found if any is off by more than about six standard errors.
    - Without a law, an excess over the promise is found if it shows in ``runs`` runs on one of the most frequent
      outcomes or on a half-line of outcomes (in their own order, or else by type and text).
    - A run that draws nothing is found for certain. Noise that serves for several runs is found if runs up to three
      apart are equal, or on one side of the median, more or less often than distant ones, by about six standard errors.
    - Not promised: neighbours that were not given; holes in the floats that a release can be (attacks on the last
      bits, against which accord's mechanisms use a grid), which no feasible number of runs shows; secrets that leak
      through time or memory.

    Parameters
    ----------
    case
        The mechanism and its neighbours.
    runs
        Runs a query, at least 100.

    Raises
    ------
    MechanismFault
        At the first check that fails.
    InvalidParameter
        If ``runs`` is below 100.

    Examples
    --------
    >>> from accord.mechanisms import StableMode
    >>> mode = StableMode(epsilon=1, delta="0.1")
    >>> case = MechanismCase(
    ...     guarantee=mode.guarantee,
    ...     run=lambda votes, randomness: mode.release(votes, randomness=randomness),
    ...     neighbours=[(["a", "a", "b"], ["a", "b", "b"])],
    ...     law=mode.law,
    ...     refused=[[]],
    ... )
    >>> check_mechanism(case, runs=2_000)

    """
    runs = _check.integer("runs", runs, least=_FEWEST_RUNS)
    with turn(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # about this suite's own sources
        _check_inputs(case)
        for query in case.refused:
            _check_refusal(case, query)
        taken = [(_check_sources(case, first), _check_sources(case, second)) for first, second in case.neighbours]
        if case.same_bits and any(first != second for first, second in taken):
            message = "neighbours draw different numbers of bytes"
            raise MechanismFault(message)
        if case.law is None:
            _check_by_sampling(case, runs)
        else:
            _check_by_law(case, case.law, runs)


def _check_inputs(case: MechanismCase) -> None:
    if not isinstance(case.guarantee, (PureDP, ApproxDP)) or not case.neighbours:
        message = "the guarantee must be a PureDP or ApproxDP, and neighbours must be given"
        raise MechanismFault(message)
    if any(isinstance(query, Iterator) for pair in (*case.neighbours, case.refused) for query in pair):
        message = "a query is an iterator, which one run would use up: give a list"
        raise MechanismFault(message)


# --- one run ----------------------------------------------------------------------------------------------------------


def _outcome(case: MechanismCase, query: Any, randomness: PrivateRandomness) -> Hashable:  # noqa: ANN401 - as asked
    try:
        outcome = case.run(query, randomness)
    except AccordError as error:
        raise _refused(error) from error
    if isinstance(outcome, Release):
        if outcome.guarantee != case.guarantee:
            message = "a release carries another guarantee than the case promises"
            raise MechanismFault(message)
        outcome = outcome.value
    try:
        hash(outcome)
    except TypeError:
        message = f"an outcome of type {type(outcome).__name__} cannot be hashed: return a number, text or tuple"
        raise MechanismFault(message) from None
    return outcome


def _refused(error: AccordError) -> MechanismFault:
    return MechanismFault(f"one of the neighbours was refused with {type(error).__name__}: all must be answered")


def _check_sources(case: MechanismCase, query: Any) -> list[int]:  # noqa: ANN401 - whatever the mechanism is asked
    """Return how many bytes are drawn under each of 64 keys."""
    for wrong in (SharedRandomness(1), 1):
        try:
            case.run(query, wrong)  # type: ignore[arg-type] # that is the point
        except WrongRandomness:
            continue
        except AccordError as error:
            raise _refused(error) from error
        message = f"noise was taken from {type(wrong).__name__}"
        raise MechanismFault(message)
    first, again = _replay(case, query), _replay(case, query)
    if first != again:
        message = "equal secret bits gave different outcomes: there is another source of randomness"
        raise MechanismFault(message)
    return [taken for _, taken in first]


def _replay(case: MechanismCase, query: Any) -> list[tuple[Hashable, int]]:  # noqa: ANN401 - as above
    found = []
    for key in range(_REPLAYS):
        source = CountingRandomness(ReplayRandomness(key))
        found.append((_outcome(case, query, source), source.taken))
    return found


def _sample(case: MechanismCase, query: Any, runs: int) -> Counter[Hashable]:  # noqa: ANN401 - as above
    source = CountingRandomness(PrivateRandomness())
    outcomes = []
    for _ in range(runs):
        before = source.taken
        outcomes.append(_outcome(case, query, source))
        if source.taken == before and not case.constant:
            message = "a run drew nothing from the source: no noise, or noise of an earlier run"
            raise MechanismFault(message)
    found = Counter(outcomes)
    if len(found) == 1 and not case.constant and case.law is None:
        message = "the outcome was always the same: no noise"
        raise MechanismFault(message)
    check_independence(outcomes)
    return found


# --- refusals ---------------------------------------------------------------------------------------------------------


def _check_refusal(case: MechanismCase, query: Any) -> None:  # noqa: ANN401 - whatever must be refused
    try:
        case.run(query, UntouchedRandomness())
    except AccordError as error:
        if any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", str(error)) for text in _texts(query)):
            message = f"the refusal of a query of type {type(query).__name__} repeats what is in it"
            raise MechanismFault(message) from None
        return
    message = f"a query of type {type(query).__name__} was not refused"
    raise MechanismFault(message)


def _texts(query: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """Yield the texts of a query and its entries, but for words that rules are stated in: None, True, nan, inf."""
    if isinstance(query, np.ndarray):
        query = query.tolist()
    if isinstance(query, Mapping):
        query = [*query.keys(), *query.values()]
    if isinstance(query, (list, tuple, set, frozenset)):
        for entry in query:
            yield from _texts(entry)
    elif query is not None and not isinstance(query, bool) and not (isinstance(query, float) and not isfinite(query)):
        yield from (text for text in (str(query), repr(query)) if len(text) >= _LEAST_TEXT)


# --- law and privacy --------------------------------------------------------------------------------------------------


def _check_by_law(case: MechanismCase, law_of: Callable[[Any], Law], runs: int) -> None:
    laws = [(_read_law(law_of, first), _read_law(law_of, second)) for first, second in case.neighbours]
    ratio = exp_lower(case.guarantee.epsilon)
    for first, second in laws:
        excess = max(hockey_stick(first, second, ratio=ratio), hockey_stick(second, first, ratio=ratio))
        if excess > case.guarantee.delta:
            message = f"neighbours differ by delta = {float(excess):.3g} at the promised epsilon"
            raise MechanismFault(message)
    for queries, pair in zip(case.neighbours, laws, strict=True):
        for query, law in zip(queries, pair, strict=True):
            check_sampled_law(law, _sample(case, query, runs))


def _read_law(law_of: Callable[[Any], Law], query: Any) -> Law:  # noqa: ANN401 - as above
    try:
        law = law_of(query)
    except AccordError as error:
        raise _refused(error) from error
    chances = list(law.values())
    if not all(isinstance(chance, (Fraction, int)) and chance >= 0 for chance in chances) or sum(chances) != 1:
        message = "the law must consist of Fractions that are at least 0 and add up to exactly 1"
        raise MechanismFault(message)
    return law


def _check_by_sampling(case: MechanismCase, runs: int) -> None:
    for first, second in case.neighbours:
        p, q = _sample(case, first, runs), _sample(case, second, runs)
        check_sampled_privacy(case.guarantee, p, q)
        check_sampled_privacy(case.guarantee, q, p)
