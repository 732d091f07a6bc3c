"""One suite for every coupling, accord's own and yours: form, replay, isolation, marginals, agreement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Coupled, Coupling
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution
from accord.testing._coupling_fault import CouplingFault
from accord.testing._coupling_replay import (
    check_form,
    check_isolation,
    check_poison,
    check_prefix,
    check_rare_influence,
    check_replay,
    run,
)
from accord.testing._coupling_scores import Scores, standard_scores
from accord.testing._coupling_statements import (
    Closeness,
    check_agreement,
    check_marginal,
    check_unrelated,
    closeness,
)

__all__ = ["CouplingCase", "CouplingFault", "check_coupling"]

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
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "others", tuple(self.others))


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
