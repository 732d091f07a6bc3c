"""What public facts refuse is refused before anything is spent: a charge is followed by an answer or by no answer."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.core.spending import SPENT
from accord.couplings import (
    AtomRace,
    DyadicCoupling,
    HashedLattice,
    ModelReference,
    NormalLattice,
    NormalReference,
    ParameterRounding,
    RaceCoupling,
    RecordByRecord,
    ShiftRounding,
    StatisticCoupling,
    TwoStageCoupling,
)
from accord.distributions import Exponential, Measure, Normal
from accord.errors import AccordError, FitFailed, InvalidParameter, NothingReleased, SchemaMismatch
from accord.learners import EmpiricalLearner, GaussianLearner, ScipyLearner
from accord.learning import CoarseVotes, Isolation, PrivateLearner, PrivateSampler, TwoStageSampler
from accord.ledger import Ledger
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.synthesis.by_votes import synthesise
from accord.synthesis.discovery import discover
from accord.synthesis.learner import TableLearner
from accord.tables import Column, Schema, Table, parse_schema
from accord.theory import AgnosticPrivateLearner, BoostedPrivateLearner, PoissonCoupling, TuplePoissonCoupling

N = 1200
GRID = [
    *[(epsilon, "1e-6") for epsilon in ("1e-12", "1e-9", "1e-6", "1e-3", "1", "1000")],
    *[("1", delta) for delta in ("1e-300", "1e-30", ".5", ".999")],
    *[("1e-9", "1e-30"), ("1e-9", ".999"), ("1e-4", "1e-30"), ("1e-4", ".999"), ("1000", "1e-30"), ("1000", ".999")],
]
LABELS = Column(name="letter", kind="category", categories=("a", "b", "c"))
BOUNDED = Column(name="bounded", kind="number", bounds=(-5.0, 5.0))
FREE = Column(name="free", kind="number")
WIDE = tuple(Column(name=f"wide {place}", kind="category", categories=tuple("abcdefgh")) for place in range(11))
SLOW = {"rounds", "discovery", "density", "numbers without bounds", "bounded numbers and labels"}
FEW = [("1e-9", "1e-6"), ("1", "1e-30"), ("1e-4", ".999"), ("1000", "1e-6")]


def of(columns: tuple[Column, ...], *, units: bool = False) -> Table:
    stream = SharedRandomness(3).stream("table")
    cells = tuple(
        stream.integers(0, len(column.categories), N).astype(np.int32) if column.is_label else stream.normal(size=N)
        for column in columns
    )
    return Table(columns=cells, units=np.arange(N) // 2 if units else None, schema=Schema(columns=columns))


def tables(*columns: Column, units: bool = False) -> Callable[..., Any]:
    table = of(columns, units=units)
    return lambda **budget: TableLearner(table.schema, **budget).release(table)


def found(**budget: Any) -> Any:
    numbers = SharedRandomness(4).stream("cells").normal(size=N).round(2)
    cells = [pa.array([str(one) for one in numbers]), pa.array(["ab"[int(one > 0)] for one in numbers])]
    return discover(cells, names=["x", "sign"], **budget)


def sampled(learner: Any, **options: Any) -> Callable[..., Any]:
    numbers = SharedRandomness(5).stream("records").normal(size=N)
    records = (numbers > 0).astype(np.int64) if isinstance(learner, EmpiricalLearner) else numbers
    return lambda **budget: PrivateSampler(learner, blocks=200, records=4, **options, **budget).release(records)


def synthesised(**budget: Any) -> Any:
    return synthesise(SharedRandomness(6).stream("records").normal(size=N), learner=GaussianLearner(), **budget)


def density(estimator: Any) -> Callable[..., Any]:
    def fit(**budget: Any) -> Any:
        from accord import PrivateDensity

        return PrivateDensity(estimator, **budget).fit(SharedRandomness(7).stream("records").normal(size=(4 * N, 1)))

    return fit


ROADS = {
    "one column of labels": tables(LABELS),
    "bounded numbers": tables(BOUNDED),
    "bounded numbers and labels": tables(LABELS, BOUNDED),
    "units": tables(LABELS, BOUNDED, units=True),
    "numbers without bounds": tables(FREE),
    "rounds": tables(*WIDE),
    "discovery": found,
    "sampler": sampled(GaussianLearner()),
    "sampler with draws": sampled(EmpiricalLearner([0, 1]), draws=4),
    "synthesise": synthesised,
    "density": density(ScipyLearner("norm")),
}


def refusal_of(road: Callable[..., Any], **budget: str) -> AccordError | None:
    try:
        road(**budget)
    except NothingReleased:
        return None
    except AccordError as error:
        return error
    return None


@pytest.mark.parametrize("road", ROADS)
def test_B7_no_budget_is_charged_for_what_it_is_too_small_or_too_large_for(road: str) -> None:
    for epsilon, delta in FEW if road in SLOW else GRID:
        refused = refusal_of(ROADS[road], epsilon=epsilon, delta=delta)
        assert refused is None or SPENT not in getattr(refused, "__notes__", ()), (epsilon, delta, str(refused))


def test_B6_a_tiny_epsilon_is_called_noise(tmp_path: Any) -> None:
    (tmp_path / "data.csv").write_text("x\n" + "\n".join(str(place / 100) for place in range(500)) + "\n")
    (tmp_path / "schema.toml").write_text('version = 2\n[[columns]]\nname = "x"\nkind = "number"\nbounds = [0, 5]\n')
    arguments = ["synth", str(tmp_path / "data.csv"), "--schema", str(tmp_path / "schema.toml"), "--rows", "5"]
    arguments += ["--epsilon", "1e-9", "--delta", "1e-6", "--out", str(tmp_path / "out.csv")]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    assert "[too-few-records]" in ended.stderr


def test_B7_a_delta_however_small_is_planned_with_or_refused_before_the_charge() -> None:
    plan = TableLearner(Schema(columns=(BOUNDED,)), epsilon=1, delta="1e-30").plan(N)
    assert plan.spent <= 1
    assert plan.promised.delta == Fraction(1, 10**30)


def test_B9_too_many_labels_are_refused_with_the_schema_and_by_name() -> None:
    labels = ", ".join(f'"{place}"' for place in range(65_537))
    text = f'version = 2\n[[columns]]\nname = "town"\nkind = "category"\ncategories = [{labels}]\n'
    with pytest.raises(SchemaMismatch, match='"town" lists 65537 labels'):
        parse_schema(text)


# --- laws that a coupling cannot take -------------------------------------------------------------------------------


class OnlySamples:
    """A law that meets the protocol and can do nothing but sample."""

    dimension, measure = 1, Measure.LEBESGUE

    def sample(self, size: int, generator: Any) -> Any:
        return generator.normal(size=(size, 1))

    def log_density(self, x: Any) -> Any:
        raise NotImplementedError


class Drawn:
    """A foreign learner whose laws only sample."""

    def fit(self, records: Any, *, seed: int) -> Any:
        return OnlySamples()


class NeverFits:
    def fit(self, records: Any, *, seed: int) -> Any:
        raise FitFailed("these records do not allow a fit.")


class Broken:
    """A learner that asks arrays for what they have not."""

    def fit(self, records: Any, *, seed: int) -> Any:
        return records.no_such_method()


class Own:
    """A foreign learner of normal laws; with ``least`` only of records above it."""

    def __init__(self, least: float = -math.inf) -> None:
        self.least = least

    def fit(self, records: Any, *, seed: int) -> Any:
        if records.min() < self.least:
            raise FitFailed("a record is out of range.")
        return GaussianLearner().fit(records, seed=seed)


class Far:
    """A foreign learner whose laws are normal for large records only."""

    def fit(self, records: Any, *, seed: int) -> Any:
        return GaussianLearner().fit(records, seed=seed) if records.min() > 9e5 else OnlySamples()


class Offering(Far):
    def example(self, size: int, columns: int) -> Any:
        return 1e6 + SharedRandomness(1).stream("example").normal(size=(size, columns))


COUPLINGS: dict[str, tuple[Any, int]] = {
    "race": (RaceCoupling(["a", "b"]), 4),
    "atoms": (AtomRace(), 1),
    "dyadic": (DyadicCoupling(), 1),
    "hashed lattice": (HashedLattice(dimension=1), 1),
    "normal lattice": (NormalLattice(dimension=1), 20),
    "Poisson": (PoissonCoupling(Normal(0.0, 9.0), most_points=4096), 1),
    "record by record": (RecordByRecord(HashedLattice(dimension=1)), 2),
    "shift": (ShiftRounding(dimension=1), 20),
    "parameters": (ParameterRounding(widths=[0.5]), 4),
    "statistics": (StatisticCoupling(Exponential), 4),
    "tuple Poisson": (TuplePoissonCoupling(), 2),
    "normal reference": (TwoStageCoupling(NormalReference(Normal(0.0, 9.0), strength=10), candidates=64), 4),
    "models": (TwoStageCoupling(ModelReference([Normal(0.0, 9.0), Normal(0.0, 4.0)]), candidates=64), 4),
}
NORMALS = SharedRandomness(8).stream("records").normal(size=4000)
ROUNDED: dict[str, Any] = {
    "blocks": 40,
    "records": 20,
    "draws": 8,
    "coupling": ShiftRounding(dimension=1),
    "epsilon": 4,
}
BUDGET: dict[str, Any] = {"epsilon": 1, "delta": "1e-3"}


def uncharged(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger", epsilon=4, delta="1e-2", unit="record")


def refused(made: Any, data: Any, tmp_path: Path, *, match: str) -> None:
    ledger = uncharged(tmp_path)
    with pytest.raises(InvalidParameter, match=match) as caught:
        made.release(data, ledger=ledger)
    assert SPENT not in getattr(caught.value, "__notes__", ())
    assert [entry.kind for entry in ledger.entries()] == ["create"]


@pytest.mark.parametrize("name", [*COUPLINGS, "shift, in processes"])
def test_B7_a_law_that_a_coupling_cannot_take_is_refused_first(name: str, tmp_path: Path) -> None:
    isolation = Isolation(kind="process" if "processes" in name else "copy")
    name = name.removesuffix(", in processes")
    coupling, records = COUPLINGS[name]
    sampler = PrivateSampler(Drawn(), blocks=40, records=records, coupling=coupling, isolation=isolation, **BUDGET)
    refused(sampler, NORMALS, tmp_path, match=f"{type(coupling).__name__} cannot couple .* Nothing was spent")


@pytest.mark.parametrize(
    "make",
    [
        lambda learner, coupling: PrivateLearner(learner, blocks=40, records=1, coupling=coupling, **BUDGET),
        lambda learner, coupling: AgnosticPrivateLearner(learner, parts=2, blocks=40, coupling=coupling, **BUDGET),
        lambda learner, coupling: TwoStageSampler(
            learner, blocks=40, records=4, first=CoarseVotes(coupling=coupling, records=1), epsilon=2, delta="1e-3"
        ),
    ],
    ids=["learner", "agnostic", "two stages"],
)
def test_B7_every_road_tries_the_laws_first(make: Any, tmp_path: Path) -> None:
    refused(make(Drawn(), HashedLattice(dimension=1)), NORMALS, tmp_path, match="cannot couple OnlySamples")


def test_B7_a_boosted_learner_tries_the_laws_before_its_one_charge(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"alpha": "0.5", "beta": "0.9", "coupling": AtomRace(record_by_record=True), **BUDGET}
    boosted = BoostedPrivateLearner(EmpiricalLearner(["a", "b"]), **asked)
    sampler = PrivateSampler(Drawn(), blocks=40, records=1, coupling=HashedLattice(dimension=1), **BUDGET)
    object.__setattr__(boosted.part.private, "sampler", sampler)
    object.__setattr__(boosted.part, "plan", replace(boosted.part.plan, records=40, blocks=40))
    object.__setattr__(boosted.part, "learner", Drawn())
    data = np.zeros(40 * boosted.parts)
    refused(boosted, data, tmp_path, match="HashedLattice cannot couple OnlySamples")


def test_B7_the_second_stage_is_tried_too(tmp_path: Path) -> None:
    first = PrivateLearner(GaussianLearner(), blocks=40, records=20, **BUDGET)
    sampler = TwoStageSampler(Drawn(), blocks=40, records=4, first=first, strength=20, epsilon=2, delta="1e-2")
    refused(sampler, NORMALS, tmp_path, match="TwoStageCoupling cannot couple OnlySamples")


def test_B7_a_function_that_makes_no_reference_is_refused_first(tmp_path: Path) -> None:
    first = CoarseVotes(coupling=ShiftRounding(dimension=1), records=20)
    sizes: dict[str, Any] = {"blocks": 40, "records": 4, "first": first, "reference": lambda law: law}
    sampler = TwoStageSampler(GaussianLearner(), epsilon=2, delta="1e-3", **sizes)
    refused(sampler, NORMALS, tmp_path, match="reference must make .* and makes Normal")


@pytest.mark.parametrize("kind", ["copy", "process"])
def test_B7_a_learner_of_broken_code_is_refused_first(kind: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"coupling": HashedLattice(dimension=1), "isolation": Isolation(kind=kind)}
    sampler = PrivateSampler(Broken(), blocks=40, records=1, **options, **BUDGET)
    refused(sampler, NORMALS, tmp_path, match="Broken fits no table of 1 column: .* AttributeError")


def test_B7_a_learner_that_fits_nothing_made_up_is_not_refused(tmp_path: Path) -> None:
    ledger = uncharged(tmp_path)
    sampler = PrivateSampler(NeverFits(), blocks=40, records=1, coupling=HashedLattice(dimension=1), **BUDGET)
    assert isinstance(sampler.release(NORMALS, ledger=ledger).value, NoAnswerType)
    assert [entry.kind for entry in ledger.entries()] != ["create"]
    far = PrivateSampler(Own(9e5), delta="1e-3", **ROUNDED).release(NORMALS + 1e6, shared=SharedRandomness(9))
    assert not isinstance(far.value, NoAnswerType)


def test_B7_a_foreign_learner_that_can_be_coupled_answers_as_before(tmp_path: Path) -> None:
    own = PrivateSampler(Own(), delta="1e-3", **ROUNDED)
    released = own.release(NORMALS, shared=SharedRandomness(9), ledger=uncharged(tmp_path))
    assert not isinstance(released.value, NoAnswerType)


def test_B7_a_learner_for_other_records_offers_an_example(tmp_path: Path) -> None:
    data = NORMALS + 1e6
    refused(PrivateSampler(Far(), delta="1e-3", **ROUNDED), data, tmp_path, match=r"example\(size, columns\)")
    offered = PrivateSampler(Offering(), delta="1e-3", **ROUNDED)
    assert not isinstance(offered.release(data, shared=SharedRandomness(9)).value, NoAnswerType)


def test_B7_trying_reads_neither_records_nor_the_key_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, int]] = []
    real = Isolation.fit_block

    def noted(self: Isolation, learner: Any, records: Any, *, seed: int) -> Any:
        seen.append((records.tobytes(), seed))
        return real(self, learner, records, seed=seed)

    monkeypatch.setattr(Isolation, "fit_block", noted)
    tried = []
    for place, data in enumerate((NORMALS, NORMALS * 7 + 100)):
        seen.clear()
        sampler = PrivateSampler(Own(), blocks=40, records=20, coupling=ShiftRounding(dimension=1), **BUDGET)
        sampler.release(data, shared=SharedRandomness(place))
        sampler.release(data, shared=SharedRandomness(place))
        tried.append(seen[0])
        assert len(seen) == 81  # once a sampler
    assert tried[0] == tried[1]


@pytest.mark.parametrize("frame", [pa.table({"x": ["a", "b"] * 2000}), [{"x": 1.0}] * 4000], ids=["texts", "dicts"])
def test_B7_texts_and_dicts_for_a_learner_of_numbers_are_refused_first(frame: Any, tmp_path: Path) -> None:
    ledger = uncharged(tmp_path)
    with pytest.raises(AccordError) as caught:
        synthesise(frame, learner=GaussianLearner(), ledger=ledger, **BUDGET)
    assert SPENT not in getattr(caught.value, "__notes__", ())
    assert [entry.kind for entry in ledger.entries()] == ["create"]
