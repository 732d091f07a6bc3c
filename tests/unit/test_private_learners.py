"""Settings, refusals and sizes of the private learners."""

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import (
    AtomRace,
    DyadicCoupling,
    HashedLattice,
    NormalLattice,
    ParameterRounding,
    Premises,
    RaceCoupling,
    ShiftRounding,
)
from accord.distributions import Atoms, Categorical, Distribution, Mixture, Normal, Piecewise, Uniform
from accord.errors import InvalidParameter, NotEnoughRecords
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner, Learner
from accord.learning import PrivateLearner, partition
from accord.mechanisms import StableMode
from accord.privacy import NoAnswerType
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness
from accord.theory import (
    AgnosticPrivateLearner,
    BlackBoxPrivateLearner,
    BoostedPrivateLearner,
    MinimumDistanceLearner,
    PoissonCoupling,
    RecordsUse,
)
from accord.theory.black_box import CellModel, Frequencies
from accord.theory.boosted import Nearness, most_neighbours
from accord.theory.grand import ListedLaws, joint_coupling, single_coupling, tuple_coupling
from accord.theory.planning import agnostic_sizes, boosted_sizes, plan, theorem_sizes

ASKED: dict[str, Any] = {"alpha": "0.1", "beta": "0.1", "epsilon": 1, "delta": "1e-6"}
CERTIFIED = ASKED | {"method": "certified"}
YES_NO = EmpiricalLearner(["no", "yes"])


class Stated:
    """A learner with any sample complexity."""

    cells = "labels"

    def __init__(self, complexity: Any) -> None:
        self.sample_complexity = complexity

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        return YES_NO.fit(records, seed=seed)


class Mute:
    """A learner that states nothing."""

    cells = "labels"

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        return YES_NO.fit(records, seed=seed)


BUILDERS: dict[str, Any] = {
    "black box": BlackBoxPrivateLearner,
    "boosted": BoostedPrivateLearner,
    "agnostic": lambda learner, **rest: AgnosticPrivateLearner(learner, agnostic_factor=1, **rest),
}


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(field, value) for field in ("alpha", "beta", "delta") for value in (0, 1, -0.1, 1.5, math.nan, "one")],
        *[("epsilon", value) for value in (0, -1, "1.001", 2, math.inf, math.nan)],
    ],
)
def test_numbers_out_of_range_are_refused_by_name(name: str, field: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=field):
        BUILDERS[name](YES_NO, **ASKED | {field: value})


@pytest.mark.parametrize("name", ["black box", "boosted"])
def test_certified_sizes_allow_epsilon_up_to_10(name: str) -> None:
    assert BUILDERS[name](YES_NO, **CERTIFIED | {"epsilon": 10}).guarantee.epsilon == 10
    with pytest.raises(InvalidParameter, match="epsilon"):
        BUILDERS[name](YES_NO, **CERTIFIED | {"epsilon": "10.001"})


def test_agnostic_has_no_certified_sizes_and_says_so() -> None:
    with pytest.raises(InvalidParameter, match="agnostic"):
        AgnosticPrivateLearner(YES_NO, agnostic_factor=1, **CERTIFIED)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(
    "complexity",
    [
        lambda a, b: math.pi / a,
        lambda a, b: 0,
        lambda a, b: "many",
        lambda a, b: math.ceil(1000 * a),
        lambda a, b: math.ceil(1000 * b / a),
        lambda a, b: True if a > 0.01 else -1,
    ],
)
def test_a_sample_complexity_that_is_none_is_refused(name: str, complexity: Any) -> None:
    with pytest.raises(InvalidParameter, match="sample_complexity"):
        BUILDERS[name](Stated(complexity), coupling=RaceCoupling(["no", "yes"]), **ASKED)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_learner_without_sample_complexity_is_named(name: str) -> None:
    with pytest.raises(InvalidParameter, match="Mute has no sample_complexity"):
        BUILDERS[name](Mute(), **ASKED)


@pytest.mark.parametrize("name", BUILDERS)
def test_what_is_no_learner_is_named(name: str) -> None:
    with pytest.raises(InvalidParameter, match="fit"):
        BUILDERS[name](lambda a, b: 7, coupling=RaceCoupling(["no", "yes"]), **ASKED)


@pytest.mark.parametrize("name", BUILDERS)
def test_an_unknown_method_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="method"):
        BUILDERS[name](YES_NO, **ASKED | {"method": "best"})


@pytest.mark.parametrize("sizes", [{}, {"blocks": 40}, {"blocks": 40, "records": 4, "method": "theorem"}])
def test_sizes_of_ones_own_are_blocks_and_records(sizes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        PrivateLearner(YES_NO, epsilon=1, delta="1e-6", **sizes)


def test_alpha_and_beta_still_make_the_learner_of_the_theorem() -> None:
    with pytest.warns(DeprecationWarning, match=r"accord\.theory\.BlackBoxPrivateLearner"):
        learner: Any = PrivateLearner(YES_NO, **ASKED)
    assert learner == BlackBoxPrivateLearner(YES_NO, **ASKED)


@pytest.mark.parametrize("sizes", [{"alpha": "0.1"}, {"alpha": "0.1", "beta": "0.1", "blocks": 40}])
def test_accuracy_leaves_no_sizes_open(sizes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        BlackBoxPrivateLearner(YES_NO, epsilon=1, delta="1e-6", **sizes)


@pytest.mark.parametrize("sizes", [{}, {"parts": 3}, {"alpha": "0.1", "beta": "0.1", "parts": 3}, {"blocks": 30}])
def test_agnostic_either_accuracy_or_sizes(sizes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="either"):
        AgnosticPrivateLearner(YES_NO, epsilon=1, delta="1e-6", **sizes)


def test_agnostic_factor_is_needed_and_checked() -> None:
    with pytest.raises(InvalidParameter, match="EmpiricalLearner has no agnostic_factor"):
        AgnosticPrivateLearner(YES_NO, **ASKED)
    with pytest.raises(InvalidParameter, match="agnostic_factor"):
        AgnosticPrivateLearner(YES_NO, agnostic_factor="0.5", **ASKED)
    with pytest.raises(InvalidParameter, match="agnostic_factor"):
        AgnosticPrivateLearner(YES_NO, agnostic_factor=math.nan, **ASKED)


@pytest.mark.parametrize("margin", [-0.1, 0.6, math.nan])
def test_margin_is_checked(margin: float) -> None:
    with pytest.raises(InvalidParameter, match="margin"):
        BoostedPrivateLearner(YES_NO, margin=margin, **ASKED)


def test_a_certified_coupling_is_not_replaced() -> None:
    for learner in (YES_NO, GaussianLearner(dimension=1)):
        with pytest.raises(InvalidParameter, match="coupling must be left out"):
            BlackBoxPrivateLearner(learner, coupling=NormalLattice(dimension=1), **CERTIFIED)


def test_columns_are_checked_before_anything_is_spent() -> None:
    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=2), **CERTIFIED)
    with pytest.raises(InvalidParameter, match="2 columns"):
        learner.release(np.zeros((learner.required_records, 3)))
    boosted = BoostedPrivateLearner(GaussianLearner(dimension=2), **CERTIFIED)
    with pytest.raises(InvalidParameter, match="2 columns"):
        boosted.release(np.zeros((learner.required_records, 1)))
    agnostic = AgnosticPrivateLearner(YES_NO, epsilon=1, delta="1e-6", parts=2, blocks=30)
    with pytest.raises(InvalidParameter, match="1 columns"):
        agnostic.release(np.zeros((100, 2)))


def test_stand_in_is_a_record() -> None:
    learner = AgnosticPrivateLearner(
        Mute(), epsilon=1, delta="1e-6", parts=2, blocks=30, coupling=AtomRace(), stand_in=[1, 2]
    )
    with pytest.raises(InvalidParameter, match="stand_in"):
        learner.release(np.zeros(100))


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_L9_sizes() -> None:
    sizes = theorem_sizes(YES_NO, **ASKED)
    learner = BlackBoxPrivateLearner(YES_NO, **ASKED)
    assert (learner.sampler.blocks, learner.sampler.records, learner.sampler.draws) == (sizes.blocks, sizes.records, 1)
    assert learner.required_records == sizes.required_records
    assert learner.sampler.delta == sizes.delta


@pytest.mark.parametrize("delta", ["1e-6", "0.5"])
def test_L10_sizes(delta: str) -> None:
    sizes = boosted_sizes(YES_NO, **ASKED | {"delta": delta})
    learner = BoostedPrivateLearner(YES_NO, **ASKED | {"delta": delta})
    assert learner.margin == 0
    assert (learner.parts, learner.part.sampler.blocks, learner.part.sampler.records) == (
        sizes.parts,
        sizes.blocks,
        sizes.records,
    )
    assert learner.required_records == sizes.required_records
    assert learner.guarantee.delta == sizes.delta == min(Fraction(delta), Fraction(1, 32))
    shy = BoostedPrivateLearner(YES_NO, margin="0.1", **ASKED)
    assert shy.parts == learner.parts
    assert 1.2 < shy.part.required_records / learner.part.required_records < 1.6  # alpha / 3 enters by its square


def test_L11_sizes() -> None:
    listed = MinimumDistanceLearner([Normal(mean, 1) for mean in (-1, 0, 1)])
    rough = ASKED | {"alpha": "0.5"}
    sizes = agnostic_sizes(listed, **rough, agnostic_factor=3)
    learner = AgnosticPrivateLearner(listed, **rough)
    assert (learner.parts, learner.sampler.blocks, learner.sampler.records) == (sizes.parts, sizes.blocks, 1)
    assert learner.required_records == sizes.required_records
    assert learner.guarantee.delta == sizes.delta
    assert learner.error_bound("0.01") == 99 * Fraction(1, 100) + Fraction(1, 2)
    with pytest.raises(InvalidParameter, match="distance"):
        learner.error_bound(2)


def test_error_bound_needs_a_promise() -> None:
    learner = AgnosticPrivateLearner(YES_NO, agnostic_factor=1, epsilon=1, delta="1e-6", parts=2, blocks=30)
    with pytest.raises(InvalidParameter, match="promised"):
        learner.error_bound("0.1")


def test_certified_runs_what_the_plan_names() -> None:
    atoms = BlackBoxPrivateLearner(YES_NO, **CERTIFIED)
    found = plan(YES_NO, **CERTIFIED)
    assert atoms.required_records == found.records
    assert atoms.sampler.coupling == ParameterRounding(widths=found.certificate.numbers["width"])
    normal = BlackBoxPrivateLearner(GaussianLearner(dimension=3), **CERTIFIED)
    numbers = plan(GaussianLearner(dimension=3), **CERTIFIED).certificate.numbers
    assert normal.sampler.coupling == ShiftRounding(dimension=3, step=numbers["step"])
    assert normal.sampler.draws == numbers["draws"]


def test_a_stricter_simulation_is_run_and_charged_as_it_is() -> None:
    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED | {"epsilon": "1.05", "delta": "2e-6"})
    assert learner.plan is not None
    numbers = learner.plan.certificate.numbers
    assert learner.guarantee.epsilon == Fraction(numbers["epsilon_simulated"]) <= Fraction("1.05")
    assert learner.guarantee.delta == Fraction(numbers["delta_simulated"]) <= Fraction("2e-6")


def test_method_A_runs_with_a_joint_coupling() -> None:
    """No simulation is stored for so small a beta; the tuples of a black box are coupled record by record."""
    strict = CERTIFIED | {"alpha": "0.05", "beta": "0.001"}
    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **strict)
    assert learner.plan is not None
    assert learner.plan.certificate.method == "A"
    assert learner.sampler.coupling == NormalLattice(dimension=1)
    assert learner.use_of(3 * learner.required_records).left_out == 0
    with pytest.raises(InvalidParameter, match="needs coupling="):
        BlackBoxPrivateLearner(GaussianLearner(dimension=4), **CERTIFIED)
    with pytest.raises(InvalidParameter, match="whole tuples"):
        BlackBoxPrivateLearner(
            GaussianLearner(dimension=4), coupling=HashedLattice(dimension=4, record_by_record=True), **CERTIFIED
        )

    class Own:
        isolated = True

        def premises(self, *, records: int) -> Premises:
            return Premises(marginals=True, agreement="tuples")

        def couple(self, laws: Any, **sizes: Any) -> Any:
            raise NotImplementedError

    own = Own()
    assert BlackBoxPrivateLearner(GaussianLearner(dimension=4), coupling=own, **CERTIFIED).sampler.coupling is own


def test_boosted_certified_is_one_part(freeze_secrets: Callable[[int], None]) -> None:
    freeze_secrets(1)  # the plan itself allows no answer: once in 1600 runs
    learner = BoostedPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED)
    assert learner.parts == 1
    assert learner.required_records == plan(GaussianLearner(dimension=1), **CERTIFIED).records
    data = np.random.default_rng(5).normal(3.0, 2.0, size=learner.required_records)
    model = learner.release(data, shared=SharedRandomness(2)).value
    assert isinstance(model, Normal)
    assert abs(model.mean[0] - 3.0) < 1.0


# --- more and fewer records -------------------------------------------------------------------------------------------


def test_more_records_make_larger_blocks_where_the_promise_allows() -> None:
    atoms = BlackBoxPrivateLearner(YES_NO, **CERTIFIED)
    blocks, needed = atoms.sampler.blocks, atoms.required_records
    assert atoms.plan is not None
    assert atoms.use_of(needed) == RecordsUse(block_size=atoms.plan.block_size, used=needed, left_out=0)
    use = atoms.use_of(5 * needed + 3)
    assert use == RecordsUse(block_size=5 * atoms.plan.block_size, used=5 * needed, left_out=3)
    assert blocks * use.block_size == use.used


def test_a_simulation_leaves_the_surplus_out(freeze_secrets: Callable[[int], None]) -> None:
    freeze_secrets(1)  # the plan itself allows no answer: once in 60,000 runs
    seen: list[int] = []

    class Witness:
        def __deepcopy__(self, memo: object) -> "Witness":
            return self

        def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
            seen.append(len(records))
            return GaussianLearner().fit(records, seed=seed)

    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED)
    assert learner.plan is not None
    use = learner.use_of(3000)
    assert (use.block_size, use.left_out) == (learner.plan.block_size, 3000 - learner.required_records)
    object.__setattr__(learner.sampler, "learner", Witness())
    names = np.repeat(np.arange(3000), 2)
    learner.rehearse(3000, columns=1, named_units=True)  # on tables that are made up
    seen.clear()
    value = learner.release(np.random.default_rng(6).normal(size=6000), units=names, shared=SharedRandomness(1)).value
    assert seen == [2 * learner.plan.block_size] * learner.sampler.blocks
    assert not isinstance(value, NoAnswerType)


@pytest.mark.parametrize("name", BUILDERS)
def test_fewer_records_are_refused_with_what_they_reach(name: str) -> None:
    learner = BUILDERS[name](YES_NO, **ASKED)
    with pytest.raises(NotEnoughRecords, match="Nothing was spent") as caught:
        learner.release(["no"] * 1000)
    assert (caught.value.needed, caught.value.present) == (learner.required_records, 1000)
    assert "no alpha below 1" in str(caught.value)


def test_the_alpha_that_is_named_is_reached() -> None:
    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED)
    present = learner.required_records // 2
    with pytest.raises(NotEnoughRecords, match="reach alpha = ") as caught:
        learner.release(np.zeros(present))
    reached = str(caught.value).split("alpha = ")[1].rstrip(".")
    again = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED | {"alpha": reached})
    assert again.required_records <= present
    assert Fraction("0.1") < Fraction(reached) < Fraction("0.5")


def test_units_are_counted_not_records() -> None:
    learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), **CERTIFIED)
    rows = 2 * learner.required_records
    with pytest.raises(NotEnoughRecords):
        learner.release(np.zeros(rows), units=np.arange(rows) // 3)


# --- couplings --------------------------------------------------------------------------------------------------------


def test_couplings_of_tuples_and_of_single_records() -> None:
    many = EmpiricalLearner(range(16))
    flat = HistogramLearner([0, 1, 2])
    cases: list[tuple[Learner, int, Any]] = [
        (YES_NO, 100, RaceCoupling(["no", "yes"])),
        (many, 100, AtomRace(record_by_record=True)),
        (GaussianLearner(dimension=1), 12, NormalLattice(dimension=1)),
        (GaussianLearner(dimension=1), 11, HashedLattice(dimension=1, record_by_record=True)),
        (GaussianLearner(dimension=4), 50, HashedLattice(dimension=4, record_by_record=True)),
        (flat, 20, HashedLattice(dimension=1, record_by_record=True)),
    ]
    for learner, records, expected in cases:
        assert tuple_coupling(learner, records=records) == expected
    assert joint_coupling(many, records=100) is None
    assert single_coupling(many) == RaceCoupling(range(16))
    assert single_coupling(GaussianLearner(dimension=2)) == HashedLattice(dimension=2)


def test_couplings_of_lists_by_the_type_of_their_laws() -> None:
    line = MinimumDistanceLearner([Normal(0, 1), Uniform(0, 1), Piecewise([0, 1, 2], [1, 1])])
    labels = MinimumDistanceLearner([Categorical(["a", "b"], [1, 3]), Categorical(["a", "b"], [3, 1])])
    assert single_coupling(line) == ListedLaws(inner=HashedLattice(dimension=1), candidates=line.candidates)
    assert single_coupling(labels) == ListedLaws(inner=AtomRace(), candidates=labels.candidates)
    mixed = MinimumDistanceLearner([Atoms([0.0], [0.5], rest=Normal(0, 1)), Normal(0, 1)], draws=1000)
    points = PoissonCoupling(Mixture(mixed.candidates, [1, 1]))
    assert single_coupling(mixed) == ListedLaws(inner=points, candidates=mixed.candidates)
    in_tuples = tuple_coupling(mixed, records=5)
    assert in_tuples.couple(list(mixed.candidates), records=5, draws=2, shared=KEY).keys.shape == (2, 2)
    chosen = AgnosticPrivateLearner(mixed, epsilon=1, delta="1e-6", parts=2, blocks=30, coupling=DyadicCoupling())
    assert chosen.sampler.coupling == DyadicCoupling()
    for learner in (GaussianLearner(), Mute()):
        with pytest.raises(InvalidParameter, match="coupling="):
            single_coupling(learner)


def test_listed_laws_vote_as_their_coupling_does() -> None:
    candidates = tuple(Normal(mean, 1.0) for mean in (0.0, 0.1, 5.0))
    inner = HashedLattice(dimension=1)
    listed = ListedLaws(inner=inner, candidates=candidates)
    equal = copy.deepcopy(candidates[1])
    assert equal is not candidates[1]
    laws: list[Any] = [candidates[2], ABSTAIN, candidates[0], equal, candidates[0], Normal(0.05, 1.0), "no law"]
    found = listed.couple(laws, records=1, draws=4, shared=KEY)
    expected = inner.couple(laws, records=1, draws=4, shared=KEY)
    assert found.keys[:, :5].tolist() == expected.keys[:, :5].tolist()
    assert (found.keys[:, 5:] == ABSTAIN).all()
    assert found.decode(2, found.keys[2, 0]).tolist() == expected.decode(2, expected.keys[2, 0]).tolist()
    alone = listed.couple([laws[3]], records=1, draws=4, shared=KEY)
    assert alone.keys[:, 0].tolist() == found.keys[:, 3].tolist()


# --- rounded labels ---------------------------------------------------------------------------------------------------


def test_frequencies_and_back() -> None:
    two = Frequencies(("no", "yes"))
    assert two.fit(np.array([["yes"], ["no"], ["yes"], ["perhaps"]], dtype=object), seed=0).vector == (1 / 3,)
    assert CellModel(("no", "yes")).fit(np.array([[0.25]]), seed=0) == Categorical(["no", "yes"], [0.25, 0.75])
    assert CellModel(("no", "yes")).fit(np.array([[-0.25]]), seed=0) == Categorical(["no", "yes"], [0, 1])
    three = ("a", "b", "c")
    assert Frequencies(three).fit(np.array(["a", "b", "a", "c"]), seed=0).vector == (0.5, 0.25, 0.25)
    model = CellModel(three).fit(np.array([[0.9, 0.3, -0.4]]), seed=0)
    assert np.allclose(model.probabilities, [0.8, 0.2, 0.0])


# --- neighbours -------------------------------------------------------------------------------------------------------

FAR = Nearness(near=Fraction(1, 5), far=Fraction(1, 5), failure=1e-6)
KEY = SharedRandomness(7)


def atoms(*chances: float | None) -> list[Distribution | None]:
    return [None if p is None else Categorical(["no", "yes"], [1 - p, p]) for p in chances]


def test_the_first_of_those_with_most_neighbours() -> None:
    assert most_neighbours(atoms(0.9, 0.1, 0.2, None, 0.85), nearness=FAR, shared=KEY) == 0  # ties: first
    assert most_neighbours(atoms(None, 0.9, 0.1, 0.2, 0.25), nearness=FAR, shared=KEY) == 2
    assert most_neighbours(atoms(0.9, 0.1, 0.1, 0.3), nearness=FAR, shared=KEY) == 1
    assert most_neighbours(atoms(None, None), nearness=FAR, shared=KEY) is None
    assert most_neighbours([], nearness=FAR, shared=KEY) is None


def test_the_bound_itself_is_near() -> None:
    """1/4 and 3/4 are exactly 1/2 apart, in floats too."""
    edge = Nearness(near=Fraction(1, 2), far=Fraction(1, 2), failure=1e-6)
    inside = Nearness(near=Fraction(49, 100), far=Fraction(49, 100), failure=1e-6)
    models = atoms(0.0, 0.75, 0.25)
    assert most_neighbours(models, nearness=edge, shared=KEY) == 2
    assert most_neighbours(models, nearness=inside, shared=KEY) == 0


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_against_counting(seed: int) -> None:
    from accord.laws import total_variation

    generator = np.random.default_rng(seed)
    laws: list[Any] = [Normal(generator.normal() / 3, 1.0) for _ in range(8)] + atoms(*generator.random(4))
    for models in (laws[:8], laws[8:]):
        counts = [sum(total_variation(p, q) <= FAR.far for q in models) for p in models]
        assert most_neighbours(models, nearness=FAR, shared=KEY) == counts.index(max(counts))


def spread(*means: float) -> list[Distribution | None]:
    """Laws on the plane that have no formula: mixtures."""
    return [Mixture([Normal([m, 0], np.eye(2)), Normal([m, 3], np.eye(2))], [0.5, 0.5]) for m in means]


def test_distances_by_draws() -> None:
    """A shift by m moves the mixtures erf(m / sqrt(8)) apart: 0.04 for 0.1, 0.38 for 1, 0.5 for 1.35."""
    near = Nearness(near=Fraction(9, 50), far=Fraction(1, 5), failure=1e-6)
    assert most_neighbours(spread(3.0, 0.0, 0.1, 1.35), nearness=near, shared=KEY) == 1
    assert most_neighbours(spread(3.0, 0.0, 0.1, 1.35), nearness=FAR, shared=KEY) == 0  # no draws, no neighbours
    assert most_neighbours(spread(3.0, 0.0, 0.1, 1.35), nearness=near, shared=KEY) == 1


def test_models_that_cannot_be_compared_have_no_neighbours() -> None:
    class Foreign:
        dimension = 1
        __hash__ = None  # type: ignore[assignment]

        @property
        def measure(self) -> Any:
            raise RuntimeError

        def sample(self, size: int, generator: Any) -> Any:
            raise RuntimeError

        def log_density(self, x: Any) -> Any:
            raise RuntimeError

    models: list[Any] = [Foreign(), *atoms(0.5, 0.55)]
    near = Nearness(near=Fraction(9, 50), far=Fraction(1, 5), failure=1e-6)
    assert most_neighbours(models, nearness=near, shared=KEY) == 1


# --- what the theorems ask of the selection ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
def test_L7_the_selection_answers_where_the_theorem_asks_it_to(epsilon: str, delta: str) -> None:
    """L6's mode answers but for delta0 at a lead of 4 log(1 / delta0) / epsilon; so does the exclusive one, at L9's k.

    With c = 1/8 and 7/8 of the laws good, 49/64 of the votes agree; the others may all be for one other value.
    """
    asked: dict[str, Any] = {"alpha": "0.5", "beta": "0.5", "epsilon": epsilon, "delta": delta}
    sampler = BlackBoxPrivateLearner(YES_NO, **asked).sampler
    mode, votes = sampler.mode, sampler.blocks
    assert isinstance(mode, StableMode)
    assert mode.acceptance(math.floor(49 * votes / 64), votes=votes) >= 1 - sampler.delta
    assert mode.acceptance(votes // 2 - 1, votes=votes) < Fraction(1, 2)


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_L11_the_selection_answers_at_the_lead_of_the_theorem(epsilon: str) -> None:
    asked: dict[str, Any] = {"alpha": "0.5", "beta": "0.5", "epsilon": epsilon, "delta": "1e-6"}
    sampler = AgnosticPrivateLearner(YES_NO, agnostic_factor=1, **asked).sampler
    mode, votes = sampler.mode, sampler.blocks
    assert isinstance(mode, StableMode)
    lead = 4 * math.log(1 / sampler.delta) / float(mode.epsilon)
    assert lead <= votes / 4
    assert mode.acceptance(math.ceil((votes + lead) / 2), votes=votes) >= 1 - sampler.delta


# --- a release --------------------------------------------------------------------------------------------------------


def listed_agnostic(**more: Any) -> AgnosticPrivateLearner:
    listed = MinimumDistanceLearner([Normal(mean, 1) for mean in (-1, 0, 1)])
    return AgnosticPrivateLearner(listed, epsilon=1, delta="1e-3", parts=6, blocks=20, **more)


def test_an_agnostic_release() -> None:
    told: list[tuple[int, int]] = []
    learner = listed_agnostic()
    data = np.random.default_rng(8).normal(0.9, 1.0, size=6 * 20 * 50 + 5)
    shared = SharedRandomness(4)
    release = learner.release(
        data, shared=shared, progress=lambda done, total, what: told.append((done, total)), units=range(len(data))
    )
    assert release.value == Normal(1.0, 1.0)
    assert release.guarantee.unit == "unit"
    assert told == [(done, 120) for done in range(1, 121)]
    assert learner.release(data, shared=shared).guarantee.unit == "record"


def test_a_bad_unit_word_costs_nothing() -> None:
    with pytest.raises(InvalidParameter, match="units="):
        listed_agnostic().release(np.zeros(500), unit="person")


def test_parts_without_an_answer_are_stood_in_for() -> None:
    """The third part holds labels that nobody knows; its record is then the public one."""
    seen: list[NDArray[Any]] = []

    class Witness:
        def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
            seen.append(records.copy())
            return Normal(0.0, 1.0)

    two = EmpiricalLearner([0, 1])
    learner = AgnosticPrivateLearner(two, epsilon=1, delta="1e-3", parts=6, blocks=20, stand_in=[77])
    shared = SharedRandomness(4)
    data = np.ones((6 * 20 * 5, 1), dtype=np.int64)
    parts = partition(len(data), blocks=6, randomness=ReplayRandomness(4))
    data[parts[2]] = 5
    object.__setattr__(learner, "learner", Witness())
    assert learner.release(data, shared=shared, randomness=ReplayRandomness(4)).value == Normal(0.0, 1.0)
    (records,) = seen
    assert records.shape == (6, 1)
    assert records[2, 0] == 77
    assert (np.delete(records[:, 0], 2) == 1).sum() >= 3
    data[:] = 5
    assert isinstance(learner.release(data, shared=shared).value, NoAnswerType)
    assert AgnosticPrivateLearner(two, epsilon=1, delta="1e-3", parts=6, blocks=20).stand_in == (0,)


def test_a_boosted_release_of_labels() -> None:
    learner = BoostedPrivateLearner(
        Stated(lambda a, b: 2), alpha="0.5", beta="0.98", epsilon=1, delta="1e-3", coupling=RaceCoupling(["no", "yes"])
    )
    told: list[tuple[int, int]] = []
    release = learner.release(
        ["yes"] * (learner.required_records + 1),
        shared=SharedRandomness(1),
        progress=lambda done, total, what: told.append((done, total)),
    )
    assert isinstance(release.value, Categorical)
    assert release.value.probabilities[1] > 0.7
    total = learner.parts * learner.part.sampler.blocks
    assert told == [(done, total) for done in range(1, total + 1)]
