"""One suite for every coupling, accord's own and yours: form, replay, isolation, marginals, agreement."""

import random  # noqa: TID251 - its state must not be touched
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import Interrupts, ambient_seed, watched
from accord.core.coupling import ABSTAIN, Coupled, Coupling, Distribution, Measure
from accord.core.shared import SharedRandomness
from accord.testing.coupling_statements import (
    Closeness,
    CouplingFault,
    Scores,
    check_agreement,
    check_marginal,
    check_unrelated,
    closeness,
    standard_scores,
)

__all__ = [
    "CouplingCase",
    "CouplingFault",
    "check_coupling",
    "check_form",
    "check_isolation",
    "check_poison",
    "check_prefix",
    "check_rare_influence",
    "check_replay",
    "poison",
    "run",
]


_legacy: Any = np.random  # noqa: TID251 - as above
_DRAWS = 16
_DECODED = 200


_GUARD = (
    "whatever goes wrong with one law must be that law's abstention and change nothing for the others, but couple "
    "raised {error} where one law {bad}. Subclass PointsCoupling, whose loop guards each law, or ask each law inside "
    "alone(lambda: ..., failed=None) of accord.couplings, isinstance included (it asks for __class__), and vote "
    "ABSTAIN for a law that failed or is no law of yours."
)


def run(
    coupling: Coupling, laws: Sequence[Any], *, records: int, draws: int, key: str, bad: str | None = None
) -> Coupled:
    """Couple the laws; the suite's own call, which must not raise, whatever one law does: ``bad`` says what."""
    interrupts = Interrupts()
    try:
        with watched() as interrupts:
            return coupling.couple(list(laws), records=records, draws=draws, shared=SharedRandomness(key))
    except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        if interrupts.raised is not None:
            raise
        name = type(error).__name__
        if bad is None:
            message = (
                f"couple must give every law of the case a vote, and it raised {name}: laws, records and draws are "
                "those of the case, which the coupling must take."
            )
            raise CouplingFault(message) from error
        raise CouplingFault(_GUARD.format(error=name, bad=bad)) from error


# --- form -------------------------------------------------------------------------------------------------------------


def check_form(coupled: Coupled, *, laws: int, records: int, columns: Sequence[int], draws: int) -> None:
    """Refuse keys that are no bytes, abstentions of good laws, decoding that is not pure, two keys of one tuple."""
    keys = coupled.keys
    if not isinstance(keys, np.ndarray) or keys.shape != (draws, laws) or keys.dtype != object:
        raise CouplingFault("keys must be an array of objects of shape (draws, laws)")
    votes: list[Any] = list(keys.flat)
    if any(key is ABSTAIN for key in votes):
        raise CouplingFault("a law of the case abstained")
    if not all(type(key) is bytes for key in votes):
        raise CouplingFault("a key is neither bytes nor ABSTAIN")
    for draw in range(min(draws, _DECODED)):
        known: dict[bytes, bytes] = {}
        for block, key in enumerate(keys[draw]):
            first, again = coupled.decode(draw, key), coupled.decode(draw, key)
            if first.shape != (records, columns[block]):
                raise CouplingFault("decode does not give an array of shape (records, d)")
            name = _canonical(first)
            if name != _canonical(again) or known.setdefault(name, key) != key:
                raise CouplingFault("decode is not a function of draw and key, or two keys name one tuple")
    if (
        draws <= _DRAWS
        and len(set(columns)) == 1
        and _canonical(coupled.values[0, 0]) != _canonical(coupled.decode(0, keys[0, 0]))
    ):
        raise CouplingFault("values are not the decoded keys")


def _canonical(records: NDArray[Any]) -> bytes:
    """Return bytes that are equal for equal tuples: -0.0 is 0.0, True is not 1."""
    if records.dtype == object and all(type(value) is float for value in records.ravel().tolist()):
        records = records.astype(np.float64)
    if records.dtype.kind in "iuf":
        values = records.astype(np.float64) + 0.0
        if not np.isfinite(values).all():
            raise CouplingFault("a decoded record is not finite")
        return values.tobytes()
    return repr([(type(value).__name__, value) for value in records.ravel().tolist()]).encode()


# --- replay -----------------------------------------------------------------------------------------------------------


def check_replay(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse votes that depend on anything but laws, key and draw, and calls that touch global generators."""
    before = random.getstate(), _state()
    with ambient_seed(1):
        base = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    with ambient_seed(2):
        again = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    run(coupling, laws, records=records, draws=2, key="replay")
    if before != (random.getstate(), _state()):
        raise CouplingFault("a global generator was read or seeded")
    if not _same(base, again):
        raise CouplingFault("equal keys gave different votes: there is another source of randomness")


def check_prefix(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse draws that depend on how many are made."""
    many = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    few = run(coupling, laws, records=records, draws=_DRAWS // 3, key="replay").keys
    if not _same(many[: len(few)], few):
        raise CouplingFault("a draw depends on the number of draws")


def check_isolation(coupling: Coupling, laws: Sequence[Any], *, others: Sequence[Any], records: int) -> None:
    """Refuse votes that depend on other blocks' laws, on their number or on the place of the block."""
    base = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    count = len(laws)
    for place in range(count):
        rest = [block for block in range(count) if block != place]
        for other, bad in (
            *((other, None) for other in others),
            (ABSTAIN, "is ABSTAIN"),
            *(poison() if place == 0 else ()),
        ):
            changed = [other if block == place else law for block, law in enumerate(laws)]
            keys = run(coupling, changed, records=records, draws=_DRAWS, key="replay", bad=bad).keys
            if not _same(keys[:, rest], base[:, rest]):
                raise CouplingFault("a change of one law changed another block's vote")
        keys = run(coupling, [laws[block] for block in rest], records=records, draws=_DRAWS, key="replay").keys
        if not _same(keys, base[:, rest]):
            raise CouplingFault("votes depend on the number of laws")
    for order in (list(reversed(range(count))), [*range(1, count), 0]):
        keys = run(coupling, [laws[block] for block in order], records=records, draws=_DRAWS, key="replay").keys
        if not _same(keys, base[:, order]):
            raise CouplingFault("votes depend on the place of a block")
    keys = run(coupling, [laws[0]] * 3, records=records, draws=_DRAWS, key="replay").keys
    if not (
        _same(keys[:, [0]], base[:, [0]]) and _same(keys[:, [1]], keys[:, [0]]) and _same(keys[:, [2]], keys[:, [0]])
    ):
        raise CouplingFault("equal laws cast different votes")


def check_rare_influence(
    coupling: Coupling,
    laws: Sequence[Any],
    keys: NDArray[np.object_],
    *,
    other: Any,  # noqa: ANN401 - a law or anything
    records: int,
    key: str,
) -> None:
    """Refuse votes that depend on other blocks' laws in few of many draws, given the keys of these laws."""
    changes: list[dict[int, Any]] = [{0: other, len(laws) - 1: ABSTAIN}]
    if len(laws) == 2:
        changes = [{0: other}, {1: ABSTAIN}]
    for change in changes:
        rest = [block for block in range(len(laws)) if block not in change]
        changed = [change.get(block, own) for block, own in enumerate(laws)]
        found = run(coupling, changed, records=records, draws=len(keys), key=key).keys
        if not _same(found[:, rest], keys[:, rest]):
            raise CouplingFault("a change of one law changed another block's vote, in a few draws")


def check_poison(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse couplings in which a law that cannot be used does anything but abstain, alone."""
    for law, bad in ((ABSTAIN, "is ABSTAIN"), *poison()):
        keys = run(coupling, [law, *laws], records=records, draws=_DRAWS, key="replay", bad=bad).keys
        if not all(key is ABSTAIN for key in keys[:, 0]):
            raise CouplingFault(f"a law that cannot be used does not abstain in every draw: one that {bad}")
        if any(key is ABSTAIN for key in keys[:, 1:].ravel().tolist()):
            raise CouplingFault(f"a law abstained because of another block's law, one that {bad}")


def _same(first: NDArray[np.object_], second: NDArray[np.object_]) -> bool:
    pairs: list[tuple[Any, Any]] = list(zip(first.ravel().tolist(), second.ravel().tolist(), strict=False))
    return first.shape == second.shape and all(
        one is two or (type(one) is bytes and type(two) is bytes and one == two) for one, two in pairs
    )


def _state() -> bytes:
    kind, words, *rest = _legacy.get_state()
    return repr((kind, words.tobytes(), rest)).encode()


# --- laws that cannot be used -----------------------------------------------------------------------------------------


def poison() -> Iterator[tuple[Any, str]]:
    """Yield laws that raise whatever is asked, one that answers NaN, things that are no laws; and what each does."""
    yield _Raising(ArithmeticError), "raises ArithmeticError at every question, __class__ included"
    yield _Raising(SystemExit), "raises SystemExit at every question, __class__ included"
    yield _Nan(), "answers NaN"
    yield object(), "is a plain object"
    yield "a law", "is a text"
    yield None, "is None"


@final
class _Raising:
    """Raises an error of its own at every question."""

    def __init__(self, error: type[BaseException]) -> None:
        _check.store(self, error=error)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - it never returns
        raise object.__getattribute__(self, "error")


@final
class _Nan:
    """Has the form of a law, and no number to give."""

    dimension = 1
    measure = Measure.LEBESGUE

    def sample(self, size: int, generator: object) -> NDArray[Any]:  # noqa: ARG002 - as a law is asked
        return np.full((size, 1), np.nan)

    def log_density(self, x: Any) -> NDArray[Any]:  # noqa: ANN401 - as a law is asked
        return np.full(len(x), np.nan)

    def cdf(self, x: Any) -> NDArray[Any]:  # noqa: ANN401 - as a law is asked
        return np.full(np.shape(x), np.nan)

    def interval(self, low: Any, high: Any) -> NDArray[Any]:  # noqa: ANN401, ARG002 - as a law is asked
        return np.full(np.shape(low), np.nan)

    def log_density_bound(self, low: Any, high: Any) -> NDArray[Any]:  # noqa: ANN401, ARG002 - as a law is asked
        return np.full(len(low), np.nan)


_FEWEST_RUNS = 1_000
_MOST_REPLAYED = 1_000

ScoresOf = Callable[[Distribution, NDArray[Any]], NDArray[np.float64]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CouplingCase:
    """What the suite needs to know of a coupling.

    Parameters
    ----------
    coupling
        The coupling.
    laws
        At least two different laws that it takes; the first two should be close: total variation of the tuples between
        0.02 and 0.5.
    records
        Length of the tuples.
    agreement
        The probability with which the first two blocks agree, by another route than running: a number that is exact, or
        "race" for that of theory S1 (computed from the laws' densities), or None if only the bounds are promised.
    total_variation
        Total variation of the tuples of the first two laws, or None to have it estimated from their densities.
    least_agreement
        A lower bound of that probability, where something else is promised than ``(1 - TV) / (1 + TV)``.
    scores
        ``scores(law, tuples)`` turns the tuples of one law, shape (draws, records, d), into numbers of shape
        (draws, m, c) that are independent and standard normal if the marginal is right. For couplings whose marginal is
        another law than ``law``; by default the scores are those of independent records of ``law``.
    others
        More laws that take the place of one, such as distant ones: a small influence of a distant law shows.
    prefix
        Whether draw r must not depend on how many draws are made.

    """

    coupling: Coupling
    laws: Sequence[Distribution]
    records: int = 1
    agreement: float | Literal["race"] | None = None
    total_variation: float | None = None
    least_agreement: float | None = None
    scores: ScoresOf | None = None
    others: Sequence[Any] = ()
    prefix: bool = True

    def __post_init__(self) -> None:
        _check.store(self, laws=tuple(self.laws))
        _check.store(self, others=tuple(self.others))


def check_coupling(case: CouplingCase, *, runs: int = 4_000) -> None:
    """Run the whole suite.

    Formal guarantees
    -----------------
    - A true coupling fails with probability below 1e-6.
    - For certain, on the laws given: keys that are no bytes, decoding that is no function of draw and key, different
      keys of equal tuples, other sources of randomness than the key, touched global generators; and if the coupling
      says that it is isolated, votes that depend on another block's law (another one, an abstention, one that raises,
      one that answers NaN, things that are no laws), on the number of laws or on the place of the block. All of these
      in 16 draws; in a thousand, what the last of the laws (or of the others) does in the first place, and an
      abstention in the last.
    - By sampling: records or tuple sums off their law by more than about six standard errors, so a scale that is 10 %
      wrong at 4,000 runs; draws or keys that depend on each other; agreement of the first two blocks below
      ``(1 - TV) / (1 + TV)``, above ``1 - TV``, or other than ``agreement``.
    - If the coupling is not isolated: its slack must be a Fraction from 0 to 1, and a change, a loss or a new order of
      the other laws must leave the agreement of two blocks as it is.
    - Not promised: privacy, which rests on the proof of isolation; faults on laws that were not given.

    Parameters
    ----------
    case
        The coupling and its laws.
    runs
        Draws, at least 1,000.

    Raises
    ------
    CouplingFault
        At the first check that fails.
    InvalidParameter
        If ``runs`` is below 1,000.

    Source: theory 4 G1, G2, L3, 8 S1, 9.

    Examples
    --------
    >>> from accord.couplings import StatisticCoupling
    >>> from accord.distributions import Poisson
    >>> case = CouplingCase(
    ...     coupling=StatisticCoupling(Poisson),
    ...     laws=[Poisson(2.0), Poisson(2.1), Poisson(5.0)],
    ...     records=10,
    ...     agreement="race",
    ... )
    >>> check_coupling(case, runs=1_000)

    """
    draws = _check.integer("runs", runs, least=_FEWEST_RUNS)
    _check_inputs(case)
    small = run(case.coupling, case.laws, records=case.records, draws=8, key="form")
    _check_form(case, small, draws=8)
    check_replay(case.coupling, case.laws, records=case.records)
    if case.prefix:
        check_prefix(case.coupling, case.laws, records=case.records)
    check_poison(case.coupling, case.laws, records=case.records)
    if case.coupling.isolated:
        check_isolation(case.coupling, case.laws, others=(*case.laws, *case.others), records=case.records)
    coupled = run(case.coupling, case.laws, records=case.records, draws=draws, key="law")
    _check_form(case, coupled, draws=draws)
    if case.coupling.isolated:
        other = (*case.laws, *case.others)[-1]
        keys = coupled.keys[:_MOST_REPLAYED] if case.prefix else coupled.keys
        check_rare_influence(case.coupling, case.laws, keys, other=other, records=case.records, key="law")
    near = _closeness(case)
    equal = _equal(coupled)
    _check_agreement(case, equal, draws, near)
    if not case.coupling.isolated:
        _check_law_of_others(case, equal, draws)
    _check_marginals(case, coupled, draws)


def _check_inputs(case: CouplingCase) -> None:
    if len(case.laws) < 2 or any(not isinstance(law, Distribution) for law in case.laws):
        raise CouplingFault("at least two laws must be given, and all must be distributions")
    if case.laws[0] == case.laws[1]:
        raise CouplingFault("the first two laws must be different, or their agreement shows nothing")
    if case.coupling.isolated not in (True, False) or not isinstance(case.coupling.isolated, bool):
        raise CouplingFault("isolated must be True or False")
    if case.coupling.isolated:
        return
    slack = getattr(case.coupling, "slack", None)
    stated = slack(laws=len(case.laws), records=case.records, draws=1) if callable(slack) else None
    if type(stated) is not Fraction or not 0 <= stated < 1:
        raise CouplingFault("a coupling that is not isolated must state its slack, a Fraction from 0 to 1")


def _check_form(case: CouplingCase, coupled: Coupled, *, draws: int) -> None:
    columns = [law.dimension for law in case.laws] if case.scores is None else None
    if columns is None:
        columns = [coupled.decode(0, key).shape[1] for key in coupled.keys[0]]
    check_form(coupled, laws=len(case.laws), records=case.records, columns=columns, draws=draws)


# --- marginals --------------------------------------------------------------------------------------------------------


def _check_marginals(case: CouplingCase, coupled: Coupled, draws: int) -> None:
    again = run(case.coupling, case.laws, records=case.records, draws=draws, key="another key")
    for block, law in enumerate(case.laws):
        scores = _scores(case, law, coupled, block)
        if scores.values.size == 0:
            continue
        check_marginal(scores, draws=draws, records=scores.values.shape[0] // draws)
        if block == 0:
            check_unrelated(scores, _scores(case, law, again, block, label="again"), draws=draws)


def _scores(case: CouplingCase, law: Distribution, coupled: Coupled, block: int, *, label: str = "law") -> Scores:
    tuples = np.stack([coupled.decode(draw, key) for draw, key in enumerate(coupled.keys[:, block])])
    if case.scores is not None:
        given = np.asarray(case.scores(law, tuples), dtype=np.float64)
        return Scores(given.reshape(given.shape[0] * given.shape[1], -1))
    stream = SharedRandomness("scores").stream(label, block)
    return standard_scores(law, tuples.reshape(-1, tuples.shape[2]), stream)


# --- agreement --------------------------------------------------------------------------------------------------------


def _equal(coupled: Coupled, first: int = 0, second: int = 1) -> int:
    return sum(one == two for one, two in zip(coupled.keys[:, first], coupled.keys[:, second], strict=True))


def _closeness(case: CouplingCase) -> Closeness:
    if case.total_variation is not None and case.agreement != "race":
        return Closeness(case.total_variation, 0.0, 0.0, 1.0)
    stream = SharedRandomness("closeness").stream("tuples")
    found = closeness(case.laws[0], case.laws[1], records=case.records, generator=stream)
    if case.total_variation is None:
        return found
    return Closeness(case.total_variation, 0.0, found.race, found.race_doubt)


def _check_agreement(case: CouplingCase, equal: int, draws: int, near: Closeness) -> None:
    most = min(1.0, near.total_variation + near.doubt)
    least = max(0.0, near.total_variation - near.doubt)
    low, high = (1 - most) / (1 + most), 1 - least
    low = low if case.least_agreement is None else case.least_agreement
    check_agreement(equal, draws, low=low, high=1.0, message="blocks agree less often than is promised")
    check_agreement(equal, draws, low=0.0, high=high, message="blocks agree more often than 1 - TV: keys collide")
    if case.agreement is None:
        return
    low, high = case.agreement, case.agreement  # type: ignore[assignment] # a number, or replaced at once
    if case.agreement == "race":
        low, high = near.race - near.race_doubt, near.race + near.race_doubt
    check_agreement(equal, draws, low=low, high=high, message="blocks do not agree as often as they should")


def _check_law_of_others(case: CouplingCase, equal: int, draws: int) -> None:
    """Two blocks' agreement must not change in law with the others: by the same bounds, applied to two samples."""
    first, second, *rest = case.laws
    variants: list[tuple[list[Distribution], int, int]] = [
        ([first, second, second, first, *rest], 0, 1),
        ([*reversed(case.laws)], len(case.laws) - 1, len(case.laws) - 2),
        ([first, second], 0, 1),
    ]
    for number, (laws, one, two) in enumerate(variants):
        coupled = run(case.coupling, laws, records=case.records, draws=draws, key=f"variant {number}")
        found = _equal(coupled, one, two)
        share = (found + equal) / (2 * draws)
        margin = 6.2 * (2 * share * (1 - share) / draws) ** 0.5 + 1 / draws
        if abs(found - equal) / draws > margin:
            raise CouplingFault("the agreement of two blocks depends on the other blocks")
