"""What a result takes along when it is pickled, copied or printed: nothing that was not released."""

import copy
import gc
import pickle
import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.mixture import GaussianMixture

from accord.core import Records
from accord.core.budget import Budget
from accord.density.family import NormalMixtures
from accord.density.plan import density_plan
from accord.density.release import release_density
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import PrivateDensity, PrivateLearner, PrivateSampler
from accord.location.curator import CuratorOnly
from accord.location.locate import Located
from accord.mechanisms import AboveThreshold
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.reports import Report
from accord.synthesis import synthesise
from accord.synthesis.discovery import discover
from accord.synthesis.learner import TableLearner
from accord.tables import Column, Schema, Table
from accord.theory import AgnosticPrivateLearner

NUMBERS = np.random.default_rng(7).normal(50.0, 10.0, size=(8000, 1))
RARE = "only-one-person-has-this-4711"
LABELS = np.array(["a", "b"] * 400)


def table() -> Any:
    schema = Schema(columns=(Column(name="height", kind="number"),))
    return TableLearner(schema, epsilon=4, delta="1e-6").release(
        Table(columns=(NUMBERS[:, 0],), units=None, schema=schema)
    )


def discovered() -> Any:
    texts = pa.array([RARE, *["a", "b"] * 4000][:8000])
    return discover([texts, pa.array(NUMBERS[:, 0].astype(str))], names=["t", "x"], epsilon=4, delta="1e-6")


def located() -> Any:
    plan = density_plan(units=len(NUMBERS), columns=1, budget=Budget(1, "1e-6"))
    return release_density(NUMBERS, plan, NormalMixtures(components=1), numbers=len(NUMBERS), word="record")


RESULTS: dict[str, Callable[[], Any]] = {
    "a density": lambda: PrivateDensity(GaussianMixture(), epsilon=1, delta="1e-6").fit(NUMBERS),
    "the stages of a density": located,
    "the first stage of a density": lambda: located().located,
    "a sampler": lambda: PrivateSampler(GaussianLearner(), epsilon=4, delta="1e-3", blocks=40, records=12).release(
        NUMBERS
    ),
    "a sampler of labels": lambda: PrivateSampler(
        EmpiricalLearner(("a", "b")), epsilon=2, delta="1e-3", blocks=40, records=1
    ).release(LABELS),
    "a learner": lambda: PrivateLearner(
        EmpiricalLearner(("a", "b")), epsilon=2, delta="1e-3", blocks=40, records=1
    ).release(LABELS),
    "an agnostic learner": lambda: AgnosticPrivateLearner(
        EmpiricalLearner(("a", "b")), epsilon=2, delta="1e-3", parts=3, blocks=40
    ).release(LABELS),
    "a synthesis": lambda: synthesise(NUMBERS, learner=GaussianLearner(), epsilon=1, delta="1e-6"),
    "a table": table,
    "a discovery": discovered,
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """Digests of all shared keys that are made from here on: those of partitions and couplings are secret."""
    made: set[bytes] = set()
    original = SharedRandomness.__init__

    def kept(self: SharedRandomness, key: Any) -> None:
        original(self, key)
        made.add(self._digest)

    monkeypatch.setattr(SharedRandomness, "__init__", kept)
    return made


def parts(value: Any) -> Iterator[Any]:
    """Return everything that an object holds, at any depth, without code."""
    code = type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType
    seen, left = {id(value)}, [value]
    while left:
        one = left.pop()
        yield one
        for inner in gc.get_referents(one):
            if id(inner) not in seen and not isinstance(inner, code):
                seen.add(id(inner))
                left.append(inner)


def carried(result: Any, keys: set[bytes]) -> set[str]:
    """Return what pickles, copies and texts of a result hold that was not released."""
    found = set()
    contents = [pickle.dumps(result, protocol=one) for one in range(2, 6)]
    cells = [
        packed
        for cell in NUMBERS[:200, 0].tolist()
        for packed in (np.float64(cell).tobytes(), pickle.dumps(cell)[-9:-1])
    ]
    for content in contents:
        found |= {"a record"} if any(cell in content for cell in cells) or RARE.encode() in content else set()
        found |= {"a key"} if any(key in content for key in keys) else set()
    for text in (repr(result), str(result)):
        found |= {"a record"} if any(repr(cell) in text for cell in NUMBERS[:200, 0].tolist()) else set()
        found |= {"agreement"} if "agreement=(" in text else set()
    for other in (pickle.loads(contents[-1]), copy.deepcopy(copy.copy(result))):  # noqa: S301 - our own
        for part in parts(other):
            found |= {"records"} if isinstance(part, Records | Table) else set()
            found |= {"a key"} if isinstance(part, SharedRandomness | PrivateRandomness) else set()
            found |= {"agreement"} if isinstance(part, Located) and not empty(part.agreement) else set()
    return found


def empty(agreement: Any) -> bool:
    try:
        return agreement.value is None
    except AttributeError:
        return False
    except InvalidParameter:
        return True


@pytest.mark.parametrize("name", RESULTS)
def test_A12_no_result_takes_along_what_was_not_released(name: str, keys: set[bytes]) -> None:
    result = RESULTS[name]()
    assert keys or name == "a table"  # which takes no key but for rows
    assert carried(result, keys) == set()


def test_A12_what_is_for_the_curator_stays_where_it_was_made() -> None:
    first = located().located
    (share,) = first.agreement.value
    assert 0 < share <= 1
    assert str(share) not in repr(first)
    sent = pickle.loads(pickle.dumps(first))  # noqa: S301 - our own
    for other in (copy.copy(first.agreement), copy.deepcopy(first).agreement, sent.agreement):
        with pytest.raises(InvalidParameter, match="stays with the object that was made first"):
            _ = other.value
    state: Any = first.agreement
    assert state.__getstate__() is None


def test_A12_a_report_has_no_part_for_the_curator() -> None:
    assert "CuratorOnly" not in {str(field.type) for field in fields(Report)}
    assert is_dataclass(Report)


def test_A12_a_run_with_secret_noise_gives_no_state() -> None:
    run = AboveThreshold(sensitivity=1, epsilon=1, threshold=3).start()
    for take in (pickle.dumps, copy.copy, copy.deepcopy, lambda one: one.__getstate__()):
        with pytest.raises(Exception, match="cannot be copied or stored"):
            take(run)
    assert not hasattr(run, "__dict__")


# --- mutants ----------------------------------------------------------------------------------------------------------


def test_A12_mutant_an_agreement_that_is_a_plain_number_is_caught(keys: set[bytes]) -> None:
    first = located().located
    plain: Any = first.agreement.value
    assert carried(replace(first, agreement=plain), keys) == {"agreement"}


def test_A12_mutant_records_or_a_key_in_a_result_are_caught(keys: set[bytes]) -> None:
    key = SharedRandomness.fresh()
    assert carried({"law": Records.of(NUMBERS)}, keys) == {"a record", "records"}
    assert carried({"law": key}, keys) == {"a key"}
    assert carried({"law": NUMBERS[3:5, 0].tolist()}, keys) == {"a record"}
    assert carried([RARE], keys) == {"a record"}


def test_A12_mutant_a_copy_that_keeps_the_value_is_caught(monkeypatch: pytest.MonkeyPatch, keys: set[bytes]) -> None:
    monkeypatch.setattr(CuratorOnly, "__reduce__", lambda self: (CuratorOnly, self._held))
    assert carried(located().located, keys) == {"agreement"}
