"""The one guarded loop: what a coupling writes, and what the core makes of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import accord.couplings as room
import accord.theory as theory_room
from accord.core import ABSTAIN, Coupled, PointsCoupling, couple_all
from accord.core.errors import InvalidParameter
from accord.randomness import SharedRandomness

KEY = SharedRandomness(5)


class Texts:
    """A law is a text; it votes for its first letters, one a draw."""

    def __init__(self, draws: int) -> None:
        self.draws = draws

    def votes(self, law: Any) -> list[bytes]:
        return [letter.encode() for letter in law.upper()[: self.draws]]

    def decode(self, draw: int, key: bytes) -> Any:
        return np.array([[f"{draw} {key.decode()}"]])


class OneByOne(PointsCoupling):
    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Texts:
        return Texts(draws)


class TextsTogether:
    """The same, all at once; a digit spoils the batch."""

    def __init__(self, draws: int) -> None:
        self.draws = draws

    def prepare(self, law: Any) -> Any:
        return law.upper() if law else ABSTAIN

    def votes_of(self, prepared: Sequence[str]) -> list[list[bytes]]:
        if any(letter.isdigit() for letter in "".join(map(str, prepared))):
            raise ArithmeticError
        return [[letter.encode() for letter in str(text)[: self.draws]] for text in prepared]

    def decode(self, draw: int, key: bytes) -> Any:
        return Texts(self.draws).decode(draw, key)


class Together(PointsCoupling):
    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> TextsTogether:
        return TextsTogether(draws)


class OfItsOwn:
    """An older coupling, with a loop of its own; it notes with what it was called."""

    isolated = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        self.seen.append(list(laws))
        keys = np.array([[ABSTAIN if law is ABSTAIN else law.encode() for law in laws]] * draws, dtype=object)
        return Coupled(keys=keys.reshape(draws, len(laws)), decode=lambda _, key: np.array([[key.decode()]] * records))


def keys(coupling: Any, laws: Any, *, draws: int = 2) -> Any:
    return couple_all(coupling, laws, records=1, draws=draws, shared=KEY).keys.tolist()


@pytest.mark.parametrize("coupling", [OneByOne(), Together()])
def test_each_law_is_asked_alone(coupling: Any) -> None:
    found = keys(coupling, ["ab", ABSTAIN, 7, "cd", None])
    assert found == [[b"A", ABSTAIN, ABSTAIN, b"C", ABSTAIN], [b"B", ABSTAIN, ABSTAIN, b"D", ABSTAIN]]
    assert coupling.isolated is True
    again = coupling.couple(["ab"], records=1, draws=2, shared=KEY)
    assert again.keys.tolist() == [[b"A"], [b"B"]]
    assert again.values.tolist() == [[[["0 A"]]], [[["1 B"]]]]


def test_a_law_with_too_few_votes_abstains() -> None:
    assert keys(OneByOne(), ["ab", "c"]) == [[b"A", ABSTAIN], [b"B", ABSTAIN]]


def test_what_spoils_a_batch_abstains_alone() -> None:
    assert keys(Together(), ["ab", "3x", "cd"]) == [[b"A", ABSTAIN, b"C"], [b"B", ABSTAIN, b"D"]]


def test_a_law_that_has_nothing_to_prepare_abstains() -> None:
    assert keys(Together(), ["", "ab"]) == [[ABSTAIN, b"A"], [ABSTAIN, b"B"]]


@pytest.mark.parametrize("coupling", [OneByOne(), Together(), OfItsOwn()])
def test_no_law_at_all(coupling: Any) -> None:
    assert couple_all(coupling, [], records=1, draws=2, shared=KEY).keys.shape == (2, 0)
    assert keys(coupling, [ABSTAIN]) == [[ABSTAIN], [ABSTAIN]]


def test_a_coupling_with_a_loop_of_its_own_is_called_once() -> None:
    old = OfItsOwn()
    coupled = couple_all(old, ["a", ABSTAIN, "b"], records=3, draws=1, shared=KEY)  # type: ignore[list-item]
    assert coupled.keys.tolist() == [[b"a", ABSTAIN, b"b"]]
    assert coupled.decode(0, b"a").tolist() == [["a"]] * 3
    assert old.seen == [["a", ABSTAIN, "b"]]
    assert couple_all(old, [], records=1, draws=1, shared=KEY).decode(0, b"z").tolist() == [["z"]]


def test_its_errors_are_its_own() -> None:
    class Raising(OfItsOwn):
        def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
            raise InvalidParameter("too short")

    with pytest.raises(InvalidParameter, match="too short"):
        keys(Raising(), ["a"])


@pytest.mark.parametrize("wrong", [{"draws": 0}, {"draws": 1.5}, {"shared": 3}])
@pytest.mark.parametrize("coupling", [OneByOne(), OfItsOwn()])
def test_what_a_call_must_give(coupling: Any, wrong: Any) -> None:
    with pytest.raises((InvalidParameter, TypeError)):
        couple_all(coupling, [], **{"records": 1, "draws": 1, "shared": KEY, **wrong})


def test_L3_no_public_coupling_but_couple_II_has_a_loop_of_its_own() -> None:
    public = [getattr(house, name) for house in (room, theory_room) for name in house.__all__]
    couplings = [one for one in public if isinstance(one, type) and hasattr(one, "couple") and hasattr(one, "premises")]
    assert len(couplings) >= 12
    of_their_own = {one.__name__ for one in couplings if one.couple is not PointsCoupling.couple}
    assert of_their_own == {"TuplePoissonCoupling"}
