"""The first of two stages: what releases the coarse law, and how the budget is shared."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final, runtime_checkable

from numpy.typing import ArrayLike

from accord.core import check as _check
from accord.core.coupling import Coupling
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.release import Release
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.privacy import basic_composition

__all__ = ["CoarseRelease", "CoarseVotes", "stages_of"]

_HALF = Fraction(1, 2)


@runtime_checkable
class CoarseRelease(Protocol):
    """A private release of a law with a guarantee of its own, such as a `PrivateLearner`."""

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What it promises under replacing one unit."""

    def release(
        self,
        data: ArrayLike,
        *,
        units: ArrayLike | None = None,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        unit: str | None = None,
    ) -> Release[Any]:
        """Release a law, or no answer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoarseVotes:
    """A first stage on the blocks' own fits: the learner's law of records on which they agree.

    Parameters
    ----------
    coupling
        Any coupling of the learner's laws: `ShiftRounding` for normal laws in any dimension.
    records
        Of the tuple that the first stage agrees on.
    draws
        Independent draws of the coupling.

    """

    coupling: Coupling
    records: int
    draws: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _check.integer("records", self.records, least=1))
        object.__setattr__(self, "draws", _check.integer("draws", self.draws, least=1, most=100_000))


def stages_of(
    first: CoarseVotes | CoarseRelease, *, epsilon: Fraction, delta: Fraction, share: Number | None
) -> tuple[PureDP | ApproxDP, ApproxDP]:
    """Return the guarantees of both stages; their basic composition is (epsilon, delta), exactly."""
    if isinstance(first, CoarseVotes):
        part = _HALF if share is None else _check.probability("share", share)
        own: PureDP | ApproxDP = ApproxDP(epsilon * part, delta * part)
    elif isinstance(first, CoarseRelease):
        own = first.guarantee
        if share is not None:
            raise InvalidParameter("share is for CoarseVotes: a CoarseRelease has a guarantee of its own.")
        if not isinstance(own, (PureDP, ApproxDP)) or own.neighbouring is not Neighbouring.REPLACE_ONE:
            raise InvalidParameter("the first stage must promise privacy under replacing one unit.")
        if not (own.epsilon < epsilon and own.delta < delta):
            raise InvalidParameter("epsilon and delta must be above those of the first stage: it is part of the total.")
    else:
        raise InvalidParameter("first must be CoarseVotes, or have a guarantee and a release.")
    rest = ApproxDP(_check.epsilon(epsilon - own.epsilon), _check.delta(delta - own.delta))
    total = basic_composition([ApproxDP(own.epsilon, own.delta) if own.delta else PureDP(own.epsilon), rest])
    if (total.epsilon, total.delta) != (epsilon, delta):
        raise AssertionError("the stages do not add up")
    return own, rest
