"""A promise of accuracy rests only on couplings that state its premises."""

from typing import Any

import pytest

from accord.couplings import (
    AtomRace,
    Coupled,
    DyadicCoupling,
    HashedLattice,
    NormalLattice,
    ParameterRounding,
    Premises,
    ProductCoupling,
    RaceCoupling,
    RecordByRecord,
    ShiftRounding,
    StatisticCoupling,
)
from accord.distributions import Normal, PointMass
from accord.errors import InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import PrivateLearner
from accord.theory import (
    AgnosticPrivateLearner,
    BlackBoxPrivateLearner,
    BoostedPrivateLearner,
    PoissonCoupling,
    TuplePoissonCoupling,
)
from accord.theory.grand import require_premises

ASKED: dict[str, Any] = {"alpha": ".5", "beta": ".5", "epsilon": 1, "delta": "1e-3"}
POISSON = PoissonCoupling(Normal(0, 9))
STATED = [
    (AtomRace(), 1, True, "tuples"),
    (AtomRace(record_by_record=True), 7, True, "records"),
    (HashedLattice(dimension=2), 1, True, "tuples"),
    (HashedLattice(dimension=2, record_by_record=True), 7, True, "records"),
    (NormalLattice(dimension=1), 7, True, "tuples"),
    (POISSON, 7, True, "tuples"),
    (StatisticCoupling(PointMass), 7, True, "tuples"),
    (RaceCoupling(list("abc")), 7, True, "tuples"),
    (RaceCoupling(list("abc"), most_vectors=4), 7, True, None),
    (RecordByRecord(POISSON), 1, True, "tuples"),
    (RecordByRecord(POISSON), 7, True, "records"),
    (RecordByRecord(DyadicCoupling()), 7, True, None),
    (ProductCoupling([NormalLattice(dimension=1)]), 7, True, "tuples"),
    (ProductCoupling([NormalLattice(dimension=1), RaceCoupling(list("ab"))]), 7, True, None),
    (DyadicCoupling(), 1, True, None),
    (TuplePoissonCoupling(), 7, False, "tuples"),
    (ShiftRounding(dimension=3), 7, False, None),
    (ParameterRounding(widths=[1.0]), 7, False, None),
]


class Points:
    """All point masses, learnt from one record."""

    def fit(self, records: Any, *, seed: int) -> PointMass:
        return PointMass([float(records[0, 0])])

    def sample_complexity(self, alpha: float, beta: float) -> int:
        return 1


@pytest.mark.parametrize(("coupling", "records", "marginals", "agreement"), STATED)
def test_J9_what_every_coupling_states(coupling: Any, records: int, *, marginals: bool, agreement: str | None) -> None:
    assert coupling.premises(records=records) == Premises(marginals=marginals, agreement=agreement)  # type: ignore[arg-type]


def test_J9_every_public_coupling_has_a_statement() -> None:
    import accord.couplings
    import accord.theory

    offered = [getattr(room, name) for room in (accord.couplings, accord.theory) for name in room.__all__]
    couplings = [one for one in offered if hasattr(one, "couple")]
    stating = [one for one in couplings if callable(getattr(one, "premises", None))]
    named = {one.__name__ for one in couplings} - {one.__name__ for one in stating}
    assert named == {"Coupling", "LawCoupling", "PointsCoupling"}
    assert len(stating) >= 13


@pytest.mark.parametrize("coupling", [TuplePoissonCoupling(step=0.125), DyadicCoupling()])
def test_J9_no_theorem_rests_on_a_coupling_that_breaks_its_premises(coupling: Any) -> None:
    for make in (BlackBoxPrivateLearner, BoostedPrivateLearner):
        with pytest.raises(InvalidParameter, match="does not state"):
            make(Points(), coupling=coupling, **ASKED)
    with pytest.raises(InvalidParameter, match="does not state"):
        AgnosticPrivateLearner(Points(), coupling=coupling, agnostic_factor=3, **ASKED)
    sizes: dict[str, Any] = {"epsilon": 1, "delta": "1e-3", "blocks": 60, "records": 1}
    assert PrivateLearner(Points(), coupling=coupling, **sizes).sampler.coupling is coupling


def test_J9_the_class_of_point_masses_has_couplings_that_keep_them() -> None:
    learner = BlackBoxPrivateLearner(Points(), coupling=AtomRace(record_by_record=True), **ASKED)
    release = learner.release([3.0] * learner.required_records)
    assert release.value == PointMass([3.0])


def test_J9_a_silent_coupling_and_one_that_states_something_else_are_refused() -> None:
    class Silent:
        isolated = True

        def couple(self, laws: Any, **sizes: Any) -> Coupled:
            raise NotImplementedError

    class Odd(Silent):
        def premises(self, *, records: int) -> Any:
            return True

    with pytest.raises(InvalidParameter, match=r"marginals.*agreement"):
        BlackBoxPrivateLearner(EmpiricalLearner(list("ab")), coupling=Silent(), **ASKED)
    with pytest.raises(InvalidParameter, match="must return Premises"):
        BlackBoxPrivateLearner(EmpiricalLearner(list("ab")), coupling=Odd(), **ASKED)
    with pytest.raises(InvalidParameter, match="agreement"):
        Premises(marginals=True, agreement="sometimes")  # type: ignore[arg-type]


def test_J9_sizes_by_tuples_need_agreement_of_tuples() -> None:
    require_premises(HashedLattice(dimension=1, record_by_record=True), records=9)
    with pytest.raises(InvalidParameter, match="whole tuples"):
        require_premises(HashedLattice(dimension=1, record_by_record=True), records=9, whole_tuples=True)
    strict = ASKED | {"alpha": "0.05", "beta": "0.001", "method": "certified", "delta": "1e-6"}
    assert (
        BlackBoxPrivateLearner(GaussianLearner(dimension=1), coupling=NormalLattice(dimension=1), **strict).plan
        is not None
    )
