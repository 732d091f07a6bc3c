"""Couple laws that a learner chose from a public list: each law of the list votes once, and blocks look its vote up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Coupling, Premises
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution
from accord.learning._premises import stated_premises

__all__ = ["ListedLaws"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLaws:
    """Run an isolated coupling on the laws of a public list, one at a time.

    Formal guarantees
    -----------------
    - Marginal and agreement: those of ``inner``.
    - Isolation: a vote is that of one law of the list, coupled alone; it is a function of this law and the shared key.
      Which votes of the list are worked out, and when, changes nothing but the time that is taken.
    - A law that is not of the list is `ABSTAIN` for its block.
    - Not promised: any privacy.

    Parameters
    ----------
    inner
        An isolated coupling.
    candidates
        The public list.

    """

    inner: Coupling
    candidates: tuple[Distribution, ...]

    @property
    def isolated(self) -> bool:
        """True: block i's vote is a function of law i, public values and the shared key alone."""
        return True

    def premises(self, *, records: int) -> Premises:
        """Return those of ``inner``."""
        return stated_premises(self.inner, records=records)

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        """Couple the laws; arguments as in `Coupling.couple`."""
        empty = self.inner.couple([], records=records, draws=draws, shared=shared)
        place_of: dict[int, int] = {id(law): place for place, law in enumerate(self.candidates)}
        votes: dict[int, list[object]] = {}
        keys = np.full((draws, len(laws)), ABSTAIN, dtype=object)
        for block, law in enumerate(laws):
            if law is ABSTAIN:
                continue
            place = place_of.get(id(law))
            if place is None:
                place = self._find(law)
            if place is None:
                continue
            if place not in votes:
                alone = self.inner.couple([self.candidates[place]], records=records, draws=draws, shared=shared)
                votes[place] = alone.keys[:, 0].tolist()
            keys[:, block] = votes[place]
        return Coupled(keys=keys, decode=empty.decode)

    def _find(self, law: object) -> int | None:
        """Return the place of a law that equals one of the list: it may have come from another process."""

        def look() -> int | None:
            return next((place for place, known in enumerate(self.candidates) if known == law), None)

        return alone(look, failed=None)  # a foreign law may do anything when it is compared
