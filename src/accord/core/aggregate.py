"""The only road from data to output: coupled votes of the laws, then a private selection. Part of the trusted core."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from accord.core.best_of_draws import BestOfDraws
from accord.core.coupling import Coupling
from accord.core.errors import InvalidParameter
from accord.core.exact import exp_upper
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Fitted, couple_apart
from accord.core.points import is_isolated
from accord.core.release import SLACK, Composed, Release, Stage, note
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.stable_mode import StableMode

__all__ = ["aggregate", "coupling_charge", "selection"]


def aggregate(
    laws: Sequence[Fitted],
    *,
    records: int,
    coupling: Coupling,
    mode: StableMode | BestOfDraws,
    shared: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
) -> Release[NDArray[Any]]:
    """Release one tuple of records on which many of the laws agree, or no answer.

    Formal guarantees
    -----------------
    - Privacy, isolated coupling: ``mode.guarantee`` when one law changes. One law moves one vote in each draw; the
      selection is private in the votes; the records are a function of what was selected (theory L7, M6).
    - Privacy, other couplings: the same, with `coupling_charge` added to delta. In the ideal coupling the law of the
      other blocks' votes is free of one block's law; what the votes miss of it is paid for (theory L3).
    - Not promised: accuracy where the laws do not agree; then the answer is `NoAnswer`.

    Parameters
    ----------
    laws
        One a block; `ABSTAIN` for a block whose fit failed.
    records
        l, the number of records in the tuple.
    coupling
        An isolated coupling, or one that states its slack.
    mode
        `StableMode` for a single draw, `BestOfDraws` for several.
    shared
        Key of an isolated coupling; by default a fresh one. Any other coupling always has a fresh secret key from the
        operating system, used once: a key that was chosen, is known or was used before would undo its promise.
    randomness
        Source of the release noise; leave it out.

    Returns
    -------
    Release
        Of the records, shape (l, d), or of `NoAnswer`.

    """
    randomness, shared = require_private(randomness), require_shared(shared)
    draws = mode.draws if isinstance(mode, BestOfDraws) else 1
    charge = coupling_charge(coupling, epsilon=mode.epsilon, laws=len(laws), records=records, draws=draws)
    if mode.delta + charge >= 1:
        raise InvalidParameter("the coupling's charge is too large: together with the mode's delta it must be below 1.")
    key = shared if is_isolated(coupling) else SharedRandomness.fresh()
    coupled = couple_apart(coupling, laws, isolated=is_isolated(coupling), records=records, draws=draws, shared=key)
    if isinstance(mode, BestOfDraws):
        release = mode.release(coupled.keys, randomness=randomness).map(lambda winner: coupled.decode(*winner))
    else:
        release = mode.release(coupled.keys[0], randomness=randomness).map(lambda key: coupled.decode(0, key))
    if charge == 0:
        return release
    paid = note(
        Stage(
            mechanism=SLACK,
            parameters=(("coupling", type(coupling).__name__),),
            guarantee=ApproxDP(0, charge, unit=mode.guarantee.unit),
            what="what the votes of a coupling that is not isolated tell of each other",
        )
    )
    guarantee = ApproxDP(mode.epsilon, mode.delta + charge, unit=mode.guarantee.unit)
    return Release(release.value, guarantee, (Composed(how="basic", stages=(*release.stages, paid)),))


def selection(*, epsilon: Fraction, delta: Fraction, draws: int) -> StableMode | BestOfDraws:
    """Return the private selection for this number of draws."""
    if draws == 1:
        return StableMode(epsilon=epsilon, delta=delta)
    return BestOfDraws(epsilon=epsilon, delta=delta, draws=draws)


def coupling_charge(coupling: Coupling, *, epsilon: Fraction, laws: int, records: int, draws: int) -> Fraction:
    """Return what a coupling costs in delta, ``(1 + exp(epsilon)) slack`` rounded up: 0 if it is isolated.

    Parameters
    ----------
    coupling
        Any coupling.
    epsilon
        Of the selection.
    laws, records, draws
        Public sizes: k, l and the number of draws.

    Raises
    ------
    InvalidParameter
        If the coupling is not isolated and does not state a slack, an int or a Fraction from 0 to 1.

    Source
    ------
    theory L3; proof page ``docs/proofs/sampler.md``.

    """
    if is_isolated(coupling):
        return Fraction(0)
    slack = getattr(coupling, "slack", None)
    if not callable(slack):
        message = (
            "the coupling must be isolated (one law moves one vote only) or state its slack(laws, records, draws)."
        )
        raise InvalidParameter(message)
    distance = slack(laws=laws, records=records, draws=draws)
    if type(distance) not in {int, Fraction} or not 0 <= distance <= 1:
        raise InvalidParameter("a coupling's slack must be a Fraction from 0 to 1: a proved bound, not a float.")
    return (1 + exp_upper(epsilon)) * Fraction(distance)
