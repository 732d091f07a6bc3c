"""Broken couplings of every kind that the suite is for, each of which it must refuse by the right check."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from accord import couplings, learning, mechanisms
from accord.core.coupling import ABSTAIN
from accord.couplings import Coupled, RecordByRecord, StatisticCoupling, alone
from accord.distributions import Exponential
from accord.errors import InvalidParameter
from accord.randomness import SharedRandomness
from accord.testing import CouplingCase, CouplingFault, check_coupling

LAWS = [Exponential(1.0), Exponential(1.05), Exponential(2.0)]
RECORDS = 20
TRUE = StatisticCoupling(Exponential)


@dataclass(frozen=True)
class Mutant:
    """A coupling of exponential laws; a mutant overrides what it breaks."""

    isolated: bool = True

    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        return laws

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        return coupled

    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        given = self.laws(list(laws), shared)
        return self.votes(TRUE.couple(given, records=records, draws=draws, shared=shared), list(laws), shared)


def scaled(law: Any, factor: float) -> Any:
    return Exponential(law.scale * factor) if type(law) is Exponential else law


class Unbroken(Mutant):
    pass


class WideMarginal(Mutant):
    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        return [scaled(law, 1.1) for law in laws]


class WideSum(Mutant):
    """The mean of a tuple is right, its spread a tenth too large."""

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        def decode(draw: int, key: bytes) -> Any:
            records = coupled.decode(draw, key)
            return records * (records.mean() + 1e-9) ** 0.1

        return Coupled(keys=coupled.keys, decode=decode)


class SortedRecords(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        return Coupled(keys=coupled.keys, decode=lambda draw, key: np.sort(coupled.decode(draw, key), axis=0))


@dataclass(frozen=True)
class OwnKeys(Mutant):
    """Each block's vote comes from another key: by its law, its place or the number of laws."""

    by: str = "law"

    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        parts = []
        for place, law in enumerate(laws):
            label = {
                "law": repr(law) if type(law) is Exponential else "",
                "place": str(place),
                "number": str(len(laws)),
            }
            key = shared.child(label[self.by])
            parts.append(TRUE.couple([law], records=records, draws=draws, shared=key))
        keys = np.concatenate([part.keys for part in parts], axis=1)

        def decode(draw: int, key: bytes) -> Any:
            place = next(place for place, part in enumerate(parts) if part.keys[draw, 0] == key)
            return parts[place].decode(draw, key)

        return Coupled(keys=keys, decode=decode)


@dataclass(frozen=True)
class DrawsReused(Mutant):
    """Draw r is draw r mod period; where decoding goes the same way, only sampling can tell."""

    period: int = 50

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        source = np.arange(len(coupled.keys)) % self.period
        return Coupled(keys=coupled.keys[source], decode=lambda draw, key: coupled.decode(int(draw) % self.period, key))


class DrawsByNumber(Mutant):
    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        return TRUE.couple(laws, records=records, draws=draws, shared=shared.child(draws))


class NeighbourDecides(Mutant):
    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        good = [law for law in laws if type(law) is Exponential]
        pooled = float(np.mean([law.scale for law in good])) if good else 1.0
        return [Exponential(law.scale + 1e-3 * pooled) if type(law) is Exponential else law for law in laws]


class NeighbourDecidesRarely(Mutant):
    """In one draw of fifty, the later ones, the first law decides for all."""

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        keys = coupled.keys.copy()
        if type(laws[0]) is Exponential and laws[0].scale > 1.5:
            keys[49::50, 1:] = keys[49::50, [0]]
        return Coupled(keys=keys, decode=coupled.decode)


class AbstainTogetherRarely(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        keys = coupled.keys.copy()
        if any(key is ABSTAIN for key in keys[0]):
            keys[49::50] = ABSTAIN
        return Coupled(keys=keys, decode=coupled.decode)


class AbstainTogether(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        keys = coupled.keys.copy()
        for row in keys:
            if any(key is ABSTAIN for key in row):
                row[:] = ABSTAIN
        return Coupled(keys=keys, decode=coupled.decode)


class FallsBack(Mutant):
    """A law that cannot be used votes for a fixed law instead of abstaining."""

    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        return [law if type(law) is Exponential else Exponential(1.0) for law in laws]


class Raises(Mutant):
    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        return [law if law is ABSTAIN else Exponential(law.scale) for law in laws]


class ShortKeys(Mutant):
    """Keys forget which point it was: different tuples of one cell collide."""

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        keys = np.array(
            [[key[:8] if isinstance(key, bytes) else key for key in row] for row in coupled.keys], dtype=object
        )
        return Coupled(keys=keys, decode=lambda draw, key: coupled.decode(draw, key + bytes(8)))


class SignedZeros(Mutant):
    """Records below 0.05 become zero, with a sign that depends on the law: equal tuples, different keys."""

    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        def shown(draw: int, key: bytes) -> Any:
            return np.where((table := coupled.decode(draw, key)) < 0.0, 0.0, table)

        keys: Any = coupled.keys.copy()
        signs: dict[bytes, float] = {}
        for place in np.ndindex(*keys.shape):
            if isinstance(keys[place], bytes):
                sign = -0.0 if getattr(laws[place[1]], "scale", 1.0) > 1.01 else 0.0
                keys[place] += np.float64(sign).tobytes()
                signs[keys[place]] = sign
        return Coupled(keys=keys, decode=lambda draw, key: shown(draw, key[:-8]))


class FrozenKey(Mutant):
    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        return TRUE.couple(laws, records=records, draws=draws, shared=SharedRandomness("always"))


class OperatingSystem(Mutant):
    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        return TRUE.couple(laws, records=records, draws=draws, shared=SharedRandomness(os.urandom(8)))


class GlobalGenerator(Mutant):
    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        random.random()
        return laws


class ImpureDecode(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        calls = []

        def decode(draw: int, key: bytes) -> Any:
            calls.append(draw)
            return coupled.decode(draw, key) * (1 + 1e-12 * len(calls))

        return Coupled(keys=coupled.keys, decode=decode)


class TextKeys(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        keys = np.array(
            [[key.hex() if key is not ABSTAIN else key for key in row] for row in coupled.keys], dtype=object
        )
        return Coupled(keys=keys, decode=lambda draw, key: coupled.decode(draw, bytes.fromhex(str(key))))


class FlatRecords(Mutant):
    def votes(self, coupled: Coupled, laws: list[Any], shared: SharedRandomness) -> Coupled:
        return Coupled(keys=coupled.keys, decode=lambda draw, key: coupled.decode(draw, key)[:, 0])


class NoSlack(Mutant):
    isolated = False


class FloatSlack(NoSlack):
    def slack(self, **_: Any) -> float:
        return 0.0


class LawDependsOnCompany(NoSlack):
    """Not isolated, and the law of two votes depends on how many others there are: among five laws they part."""

    def slack(self, **_: Any) -> Fraction:
        return Fraction(0)

    def couple(self, laws: Sequence[Any], *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        if len(laws) > 3:
            return OwnKeys(by="law").couple(laws, records=records, draws=draws, shared=shared)
        return TRUE.couple(laws, records=records, draws=draws, shared=shared)


MUTANTS: list[tuple[Any, str]] = [
    (WideMarginal(), "follow the law"),
    (WideSum(), "follow the law"),
    (SortedRecords(), "follow the law|independent"),
    (OwnKeys(by="law"), "less often|as often"),
    (OwnKeys(by="place"), "place of a block|number of laws"),
    (OwnKeys(by="number"), "number of laws"),
    (DrawsReused(), "independent of each other"),
    (DrawsReused(period=777), "independent of each other"),
    (DrawsByNumber(), "number of draws"),
    (NeighbourDecides(), "changed another block"),
    (AbstainTogether(), "because of another|changed another"),
    (NeighbourDecidesRarely(), "in a few draws"),
    (AbstainTogetherRarely(), "in a few draws"),
    (FallsBack(), "does not abstain"),
    (Raises(), "raised"),
    (ShortKeys(), "follow the law|keys collide|as often"),
    (SignedZeros(), "two keys name one"),
    (FrozenKey(), "related votes"),
    (OperatingSystem(), "another source"),
    (GlobalGenerator(), "global generator"),
    (ImpureDecode(), "not a function"),
    (TextKeys(), "neither bytes"),
    (FlatRecords(), "shape"),
    (NoSlack(isolated=False), "slack"),
    (FloatSlack(isolated=False), "slack"),
    (RecordByRecord(TRUE), "as often|less often"),
]


def case(coupling: Any) -> CouplingCase:
    return CouplingCase(coupling=coupling, laws=LAWS, records=RECORDS, agreement="race", others=[Exponential(1e6)])


def test_the_coupling_that_the_mutants_are_made_of_passes() -> None:
    check_coupling(case(Unbroken()))


@pytest.mark.parametrize(("mutant", "words"), MUTANTS, ids=lambda value: getattr(value, "by", type(value).__name__))
def test_each_mutant_is_caught_by_the_check_that_is_for_it(mutant: Any, words: str) -> None:
    with pytest.raises(CouplingFault, match=words):
        check_coupling(case(mutant), runs=2_000)


@dataclass(frozen=True)
class Asks(Mutant):
    """Asks a law what it is outside of any guard, or inside one that lets SystemExit through."""

    caught: tuple[type[BaseException], ...] = ()

    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        def known(law: Any) -> bool:
            try:
                return isinstance(law, Exponential)
            except self.caught:
                return False

        return [law if law is ABSTAIN or known(law) else ABSTAIN for law in laws]


class AsksAlone(Mutant):
    def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
        known = [law is ABSTAIN or alone(partial(isinstance, law, Exponential), failed=False) for law in laws]
        return [law if takes else ABSTAIN for law, takes in zip(laws, known, strict=True)]


def test_J11_a_coupling_that_asks_a_law_unguarded_is_told_what_is_broken_and_what_to_do() -> None:
    statement = "whatever goes wrong with one law must be that law's abstention"
    remedy = r"alone\(lambda: ..., failed=None\) of accord.couplings, isinstance included"
    for error, mutant in (("ArithmeticError", Asks()), ("SystemExit", Asks(caught=(Exception,)))):
        told = f"{statement}.* raised {error} where one law raises {error} at every question, __class__.*{remedy}"
        with pytest.raises(CouplingFault, match=told):
            check_coupling(case(mutant), runs=1_000)
    check_coupling(case(AsksAlone()), runs=1_000)


def test_J11_a_case_that_the_coupling_does_not_take_is_told_apart() -> None:
    class Refuses(Mutant):
        def laws(self, laws: list[Any], shared: SharedRandomness) -> list[Any]:
            raise InvalidParameter

    with pytest.raises(CouplingFault, match="every law of the case a vote, and it raised InvalidParameter"):
        check_coupling(case(Refuses()), runs=1_000)


def test_J11_abstain_is_where_couplings_and_learners_are() -> None:
    assert couplings.ABSTAIN is learning.ABSTAIN is mechanisms.ABSTAIN is ABSTAIN
    assert "ABSTAIN" in couplings.__all__
    assert "ABSTAIN" in learning.__all__


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_a_target_of_agreement_that_is_a_tenth_off_is_refused(share: float) -> None:
    key = "target"
    print(f"shared key {key}")  # noqa: T201 - shown when the test fails
    keys = TRUE.couple(LAWS[:2], records=RECORDS, draws=40_000, shared=SharedRandomness(key)).keys
    right = float(np.mean(keys[:, 0] == keys[:, 1]))
    check_coupling(CouplingCase(coupling=TRUE, laws=LAWS, records=RECORDS, agreement=right))
    with pytest.raises(CouplingFault, match="as often"):
        check_coupling(CouplingCase(coupling=TRUE, laws=LAWS, records=RECORDS, agreement=right * share))


def test_a_law_of_others_that_depends_on_company_is_caught() -> None:
    with pytest.raises(CouplingFault, match="other blocks"):
        check_coupling(CouplingCase(coupling=LawDependsOnCompany(isolated=False), laws=LAWS, records=RECORDS))


def test_cases_that_show_nothing_are_refused() -> None:
    few: list[list[Any]] = [[LAWS[0]], [LAWS[0], LAWS[0]], [LAWS[0], object()]]
    for laws in few:
        with pytest.raises(CouplingFault, match=r"laws|distributions"):
            check_coupling(CouplingCase(coupling=TRUE, laws=laws, records=RECORDS))
