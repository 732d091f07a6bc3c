"""B7: blocks and tuples from which a learner says that it cannot learn are refused first; texts are labels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accord.core.spending import SPENT
from accord.couplings import DyadicCoupling, HashedLattice, RaceCoupling, ShiftRounding
from accord.errors import AccordError, FitFailed, InvalidParameter, NotEnoughRecords
from accord.learners import EmpiricalLearner, GaussianLearner, MixtureLearner, ScipyLearner
from accord.learning import CoarseVotes, PrivateLearner, PrivateSampler, TwoStageSampler
from accord.ledger import Ledger
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.synthesis import synthesise
from accord.theory import AgnosticPrivateLearner
from accord.theory.black_box import Frequencies, Roots

NORMALS = SharedRandomness(8).stream("records").normal(size=4000)
BUDGET: dict[str, Any] = {"epsilon": 4, "delta": "1e-6"}
SINGLE = HashedLattice(dimension=1, record_by_record=True)
LATTICE: dict[str, Any] = {"blocks": 40, "coupling": SINGLE, **BUDGET}


def sampler(learner: Any, **more: Any) -> PrivateSampler:
    return PrivateSampler(learner, **LATTICE | {"records": 1} | more)


def two_stages(learner: Any, *, records: int = 20) -> TwoStageSampler:
    first = CoarseVotes(coupling=SINGLE, records=records)
    return TwoStageSampler(learner, first=first, blocks=40, records=2, strength=20, **BUDGET)


def refused(made: Any, data: Any, tmp_path: Path, *, kind: type[AccordError], match: str) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")
    with pytest.raises(kind, match=match) as caught:
        made.release(data, ledger=ledger)
    assert SPENT not in getattr(caught.value, "__notes__", ())
    assert [entry.kind for entry in ledger.entries()] == ["create"]


SMALL: dict[str, tuple[Callable[[], Any], int]] = {
    "normal laws": (lambda: sampler(GaussianLearner()), 80),
    "scipy": (lambda: sampler(ScipyLearner("norm"), coupling=DyadicCoupling()), 120),
    "mixture": (lambda: sampler(MixtureLearner(2)), 160),
    "learner": (lambda: PrivateLearner(GaussianLearner(), records=2, **LATTICE), 80),
    "agnostic": (lambda: AgnosticPrivateLearner(GaussianLearner(), parts=2, **LATTICE), 160),
    "two stages": (lambda: two_stages(MixtureLearner(2)), 160),
}


@pytest.mark.parametrize("road", SMALL)
def test_B7_blocks_too_small_for_any_fit_are_refused_first(road: str, tmp_path: Path) -> None:
    make, needed = SMALL[road]
    refused(make(), NORMALS[: needed - 1], tmp_path, kind=NotEnoughRecords, match="records")
    make().release(NORMALS[:needed])


def test_B7_a_block_of_few_units_may_have_enough_records() -> None:
    rounded = sampler(GaussianLearner(), records=20, draws=8, coupling=ShiftRounding(dimension=1))
    released = rounded.release(NORMALS, units=np.arange(4000) // 100, shared=SharedRandomness(9))
    assert not isinstance(released.value, NoAnswerType)


@pytest.mark.parametrize(
    ("make", "data", "match"),
    [
        (lambda: sampler(EmpiricalLearner(["a"]), coupling=RaceCoupling(["a"])), np.zeros((400, 2)), "1 column"),
        (lambda: sampler(GaussianLearner(dimension=2)), NORMALS, "2 columns"),
        (lambda: sampler(ScipyLearner("norm")), np.zeros((400, 2)), "dimension"),
        (lambda: PrivateLearner(GaussianLearner(), records=1, **LATTICE), NORMALS, "records must be at least 2"),
        (lambda: AgnosticPrivateLearner(GaussianLearner(), parts=1, **LATTICE), NORMALS, "parts must be at least 2"),
        (lambda: two_stages(GaussianLearner(), records=1), NORMALS, "first stage must be at least 2"),
    ],
    ids=["labels", "columns", "scipy", "tuple", "parts", "coarse law"],
)
def test_B7_what_no_fit_could_take_is_refused_first(make: Any, data: Any, match: str, tmp_path: Path) -> None:
    refused(make(), data, tmp_path, kind=InvalidParameter, match=match)


WORDS = ["no", "yes"]
TEXTS: dict[str, Any] = {
    "plain": np.array(WORDS * 600, dtype=object),
    "text": np.array(WORDS * 600),
    "a column of text": np.array(WORDS * 600)[:, None],
    "bytes": np.array(WORDS * 600, dtype="S"),
    "variable text": np.array(WORDS * 600, dtype=np.dtypes.StringDType()),
    "masked": np.ma.masked_array(np.array(WORDS * 600), mask=[False] * 1200),
    "a list of bytes": [word.encode() for word in WORDS * 600],
}


@pytest.mark.parametrize("kind", TEXTS)
def test_B7_arrays_of_text_are_labels(kind: str) -> None:
    for categories in (WORDS, np.array(WORDS)):
        learner = EmpiricalLearner(categories)
        assert learner.categories == ("no", "yes")
        assert learner.fit(np.asarray(TEXTS[kind]), seed=0).probabilities == (0.5, 0.5)
        for fitted in (Frequencies(learner.categories), Roots(learner.categories, 600.0, 0.01)):
            assert fitted.fit(np.asarray(TEXTS[kind]), seed=0) == fitted.fit(TEXTS["plain"], seed=0)
        model = synthesise(TEXTS[kind], learner=learner, epsilon=4, delta="1e-6", seed=1).model
        assert model is not None
        assert set(model.sample(50, SharedRandomness(1).stream("sample")).ravel().tolist()) == {"no", "yes"}


def test_B7_bytes_are_labels_of_their_own_where_a_category_is_bytes() -> None:
    learner = EmpiricalLearner([b"no", "no", "\xe9"])
    assert learner.fit(np.array([b"no", b"no", b"\xe9"], dtype=object), seed=0).probabilities[0] > 0.7
    accented = EmpiricalLearner(["\xe9", "e"])
    assert accented.fit(np.array([b"\xc3\xa9"] * 9, dtype=object), seed=0).probabilities[0] > 0.9
    with pytest.raises(FitFailed):
        accented.fit(np.array([b"\xe9"], dtype=object), seed=0)
