"""Points that let one law reach another's vote, and a loop without its guard: the suite must catch them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from accord.core.points import PointsCoupling
from accord.couplings import ABSTAIN, RaceCoupling
from accord.distributions import Categorical
from accord.randomness import SharedRandomness
from accord.testing import CouplingCase, check_coupling
from accord.testing.coupling_checks import CouplingFault

LAWS = [Categorical(["a", "b"], [0.5, 0.5]), Categorical(["a", "b"], [0.6, 0.4]), Categorical(["a", "b"], [0.1, 0.9])]


class OfARace:
    """The points of a race, law by law."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def votes(self, law: Any) -> Any:
        return self.made.votes_of([self.made.prepare(law)])[0]

    def decode(self, draw: int, key: bytes) -> Any:
        return self.made.decode(draw, key)


class Remembers(OfARace):
    """Gives the second law the first one's votes."""

    first: Any = None

    def votes(self, law: Any) -> Any:
        self.first = super().votes(law) if self.first is None else self.first
        return self.first


class Counts(OfARace):
    """Uses another draw for each law that comes later."""

    seen = 0

    def votes(self, law: Any) -> Any:
        self.seen += 1
        found = super().votes(law)
        return found[self.seen :] + found[: self.seen]


class Batch:
    """The points of a race, all laws together."""

    def __init__(self, made: Any) -> None:
        self.prepare, self.decode, self.made = made.prepare, made.decode, made

    def votes_of(self, prepared: Sequence[Any]) -> Any:
        return self.made.votes_of(prepared)


class Averages(Batch):
    """Pulls each law towards the mean of all."""

    def votes_of(self, prepared: Sequence[Any]) -> Any:
        mean = np.mean([one for one in prepared if one is not ABSTAIN], axis=0)
        return self.made.votes_of([one if one is ABSTAIN else 0.9 * one + 0.1 * mean for one in prepared])


class Shifts(Batch):
    """Gives each law its neighbour's votes, where there are several."""

    def votes_of(self, prepared: Sequence[Any]) -> Any:
        return [*self.made.votes_of(prepared)[1:], self.made.votes_of(prepared)[0]]


@dataclass(frozen=True)
class Built(PointsCoupling):
    kind: Any

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Any:
        return self.kind(RaceCoupling(["a", "b"]).points(records=records, draws=draws, shared=shared))


def check(kind: Any) -> None:
    check_coupling(CouplingCase(coupling=Built(kind), laws=LAWS, agreement="race"), runs=1_000)


@pytest.mark.parametrize("kind", [OfARace, Batch])
def test_G1_what_the_mutants_are_made_of_passes(kind: Any) -> None:
    check(kind)


@pytest.mark.parametrize("kind", [Remembers, Counts, Averages, Shifts])
def test_L3_points_that_let_laws_meet_are_caught(kind: Any) -> None:
    with pytest.raises(CouplingFault):
        check(kind)


def test_L3_a_loop_without_its_guard_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.core.points.alone", lambda ask, *, failed: ask())
    with pytest.raises(CouplingFault, match="one law"):
        check(OfARace)
