"""A unit that is called "record" is not a record: every road gives it another word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from accord.core import Records
from accord.core.unit_names import unit_word
from accord.couplings import RaceCoupling
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner
from accord.learning import PrivateSampler
from accord.ledger import Ledger
from accord.marginals import Column, Domain, MarginalLearner
from accord.privacy import ApproxDP, PureDP, basic_composition
from accord.synthesis.discovery import discover

NAMES = [number // 2 for number in range(2000)]
CODES = np.array([[number % 3] for number in range(2000)])


def sampled(units: Any, unit: str | None) -> str:
    learner = PrivateSampler(
        EmpiricalLearner([0, 1, 2]), epsilon=5, delta="1e-3", blocks=20, records=1, coupling=RaceCoupling([0, 1, 2])
    )
    return learner.release(CODES, units=units, unit=unit).guarantee.unit


def discovered(units: Any, unit: str | None) -> str:
    cells = pa.array([str(code) for code in CODES[:, 0]])
    found = discover([cells], names=["code"], epsilon=5, delta="1e-3", units=units, unit=unit)
    return found.guarantee.unit


def modelled(units: Any, unit: str | None) -> str:
    learner = MarginalLearner(Domain([Column("code", 3)]), epsilon=5, delta="1e-3")
    return learner.release(CODES, units=units, unit=unit).guarantee.unit


ROADS: list[Callable[[Any, str | None], str]] = [
    lambda units, unit: Records.of(CODES, units=units, unit=unit).word,
    sampled,
    discovered,
    modelled,
]


@pytest.mark.parametrize("road", ROADS)
def test_A13_record_is_the_word_of_records_alone(road: Callable[[Any, str | None], str]) -> None:
    assert road(None, None) == road(None, "record") == "record"
    assert road(NAMES, None) == "unit"
    assert road(NAMES, "person") == "person"
    assert road(NAMES, "record") == 'unit "record"'
    assert road(NAMES, " Record") == 'unit " Record"'


def test_A13_neither_a_ledger_nor_a_total_adds_persons_called_record_to_records(tmp_path: Path) -> None:
    promised = ApproxDP(1, "1e-6", unit=unit_word("record", named=True))
    with Ledger.create(tmp_path / "records.db", epsilon=10, delta="1e-3") as ledger:
        with pytest.raises(InvalidParameter, match='each record and the request protects each unit "record"'):
            ledger.charge(promised, what="persons")
        assert ledger.spent.epsilon == 0
    with pytest.raises(InvalidParameter, match="different units"):
        basic_composition([promised, PureDP(1)])
    assert unit_word("voter", named=True) == 'unit "voter"'


WRONG: list[Any] = [
    *(5, 1.5, b"person", ["person"], True, "", " ", "\t", "per\nson", "per\x00son", "per\u200bson", "\u200b"),
    *("per\u00adson", "\ufeffperson", "person\u202e", "\u2028", "\u3164", "\u2800", "person\ufe0f", "\ud800"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("road", ROADS)
def test_A13_a_word_that_cannot_be_seen_is_refused(road: Callable[[Any, Any], str], wrong: Any) -> None:
    for units in (NAMES, None):
        with pytest.raises(InvalidParameter, match="unit must be a word for the unit of privacy"):
            road(units, wrong)
    with pytest.raises(InvalidParameter, match="unit must be a word for the unit of privacy"):
        ApproxDP(1, "1e-6", unit=wrong)


def test_A13_words_in_any_script_pass_and_a_wide_record_is_not_a_record() -> None:
    for word in ("person", "Haushalt", "\u4eba", "\u043b\u0438\u0446\u043e", "unit 7", 'a "b"', "e\u0301"):
        assert unit_word(word, named=True) == word
    wide = "\uff52\uff45\uff43\uff4f\uff52\uff44"
    assert unit_word(wide, named=True) == f'unit "{wide}"'
