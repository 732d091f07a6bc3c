"""The only road from data to output: coupled votes of the laws, then a private selection. Part of the trusted core."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from accord._abstain import Abstain
from accord.couplings import Coupling
from accord.distributions import Distribution
from accord.errors import InvalidParameter
from accord.mechanisms import BestOfDraws, StableMode
from accord.privacy import Release
from accord.randomness import PrivateRandomness, SharedRandomness, require_private, require_shared

__all__ = ["aggregate"]


def aggregate(
    laws: Sequence[Distribution | Abstain],
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
    - Privacy: ``mode.guarantee`` when one law changes. The coupling is isolated, so one law moves one vote in each
      draw; the selection is private in the votes; the records are a function of what was selected (theory L7, M6).
    - Not promised: accuracy where the laws do not agree; then the answer is `NoAnswer`.

    Parameters
    ----------
    laws
        One a block; `ABSTAIN` for a block whose fit failed.
    records
        l, the number of records in the tuple.
    coupling
        An isolated coupling.
    mode
        `StableMode` for a single draw, `BestOfDraws` for several.
    shared
        Key of the coupling; by default a fresh one.
    randomness
        Source of the release noise; leave it out.

    Returns
    -------
    Release
        Of the records, shape (l, d), or of `NoAnswer`.

    """
    if coupling.isolated is not True:
        message = "aggregate needs an isolated coupling: one law must move one vote only."
        raise InvalidParameter(message)
    randomness = require_private(randomness)
    draws = mode.draws if isinstance(mode, BestOfDraws) else 1
    coupled = coupling.couple(laws, records=records, draws=draws, shared=require_shared(shared))
    if isinstance(mode, BestOfDraws):
        chosen = mode.release(coupled.keys, randomness=randomness)
        return chosen.map(lambda winner: coupled.decode(*winner))
    return mode.release(coupled.keys[0], randomness=randomness).map(lambda key: coupled.decode(0, key))
