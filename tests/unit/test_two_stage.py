"""Two stages: refusals, odd laws, compiled densities, models about a law, and the sampler end to end."""

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from accord.core import aggregate
from accord.core.coupling import ABSTAIN, Abstain
from accord.couplings import (
    Coupled,
    ModelReference,
    NormalLattice,
    NormalReference,
    ShiftRounding,
    TupleReference,
    TwoStageCoupling,
    widened,
)
from accord.couplings.model_reference import line_mixture, tuple_densities
from accord.couplings.two_stage import WideReference
from accord.distributions import Distribution, Mixture, Normal, Piecewise, Uniform
from accord.errors import BudgetExceeded, FitFailed, InvalidParameter, NotEnoughRecords
from accord.learners import GaussianLearner
from accord.learning import CoarseRelease, CoarseVotes, PrivateLearner, TwoStageSampler
from accord.ledger import Ledger
from accord.mechanisms import DiscreteLaplace
from accord.privacy import ApproxDP, Neighbouring, NoAnswer, NoAnswerType, PureDP, Release, basic_composition
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing import ReplayRandomness
from accord.theory import PoissonCoupling

LINE = Normal(0, 1)

# --- references -------------------------------------------------------------------------------------------------------


def test_references_are_tuple_references_and_serve_the_poisson_coupling_too() -> None:
    models = ModelReference([Normal(s, 1.2) for s in (-0.2, 0.0, 0.2)])
    laws: list[Distribution | Abstain] = [LINE, Normal(0.01, 1), ABSTAIN]
    for reference in (NormalReference(LINE, strength=40), models):
        assert isinstance(reference, TupleReference)
        assert isinstance(reference, WideReference)
        coupling = PoissonCoupling(reference, most_points=2000)
        coupled = coupling.couple(laws, records=8, draws=5, shared=SharedRandomness(1))
        assert all(key is ABSTAIN for key in coupled.keys[:, 2])
        assert coupled.decode(0, coupled.keys[0, 0]).shape == (8, 1)


@pytest.mark.parametrize("strength", [1, 0, -3, "2/3", float("nan"), float("inf"), 2 * 10**9, "many"])
def test_a_strength_up_to_the_dimension_or_none_at_all_is_refused(strength: Any) -> None:
    with pytest.raises(InvalidParameter, match="strength"):
        NormalReference(LINE, strength=strength)


def test_references_refuse_other_laws_and_short_tuples() -> None:
    with pytest.raises(InvalidParameter, match="ModelReference"):
        NormalReference(cast("Any", Uniform(0, 1)), strength=10)
    with pytest.raises(InvalidParameter, match="two laws"):
        ModelReference([LINE])
    with pytest.raises(InvalidParameter, match="dimension"):
        ModelReference([LINE, Normal([0, 0], np.eye(2))])
    with pytest.raises(InvalidParameter, match="distributions"):
        ModelReference(cast("Any", [LINE, "a law"]))
    coupling = TwoStageCoupling(NormalReference(Normal(np.zeros(3), np.eye(3)), strength=10))
    with pytest.raises(InvalidParameter, match="at least 4"):
        coupling.couple([], records=3, draws=1, shared=SharedRandomness(1))
    with pytest.raises(InvalidParameter, match="reference"):
        TwoStageCoupling(cast("Any", LINE))
    with pytest.raises(InvalidParameter, match="candidates"):
        TwoStageCoupling(NormalReference(LINE, strength=10), candidates=0)


def test_decoded_records_have_the_mean_and_scatter_of_their_candidate() -> None:
    coarse = Normal([1e6, -2.0, 0.0], np.diag([1e-4, 4.0, 1e8]))
    reference, shared = NormalReference(coarse, strength=30), SharedRandomness("decode")
    point = reference.points(1, 0, records=12, shared=shared)[5]
    records = reference.decode(point, draw=1, number=5, records=12, shared=shared)
    units = (records - np.array(coarse.mean)) / np.sqrt(np.diag(np.array(coarse.covariance)))
    factor = np.zeros((3, 3))
    factor[np.tril_indices(3)] = point[3:]
    assert units.mean(axis=0) == pytest.approx(point[:3], abs=1e-6)
    centred = units - units.mean(axis=0)
    assert centred.T @ centred == pytest.approx(factor @ factor.T, rel=1e-6, abs=1e-6)


def test_the_usual_number_of_candidates_is_public_and_grows_with_the_width() -> None:
    coarse = Normal(np.full(4, 50.0), 9 * np.eye(4))
    numbers = [NormalReference(coarse, strength=s).usual_candidates(60) for s in (400, 150, 60)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]
    standard = NormalReference(Normal(np.zeros(4), np.eye(4)), strength=150)
    assert standard.usual_candidates(60) == numbers[1]
    models = ModelReference([Normal(s / 20, 1.0) for s in range(-5, 6)])
    assert models.usual_candidates(10) == 1024


def test_a_diagnosis_tells_a_served_law_from_one_that_is_missed() -> None:
    coupling = TwoStageCoupling(NormalReference(Normal(np.zeros(4), np.eye(4)), strength=100), candidates=8192)
    near = coupling.diagnose(Normal(np.full(4, 0.05), np.eye(4)), records=50)
    far = coupling.diagnose(Normal(np.full(4, 2.0), np.eye(4)), records=50)
    assert near.candidates == 8192
    assert near.effective > 500
    assert near.shortfall < 0.01
    assert far.effective < 5
    assert far.shortfall > 0.9
    apart = TwoStageCoupling(ModelReference([Uniform(0, 1), Uniform(0, 2)]), candidates=100)
    assert apart.diagnose(Uniform(5, 6), records=3).effective == 0.0


def test_no_laws_no_votes_and_no_possible_candidate_is_an_abstention() -> None:
    coupling = TwoStageCoupling(ModelReference([Uniform(0, 1), Uniform(0, 2)]), candidates=100)
    assert coupling.couple([], records=2, draws=3, shared=SharedRandomness(1)).keys.shape == (3, 0)
    coupled = coupling.couple([Uniform(5, 6), Uniform(0, 1)], records=2, draws=3, shared=SharedRandomness(1))
    assert all(key is ABSTAIN for key in coupled.keys[:, 0])
    assert all(isinstance(key, bytes) for key in coupled.keys[:, 1])
    assert isinstance(coupled, Coupled)


# --- compiled densities -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        Normal(0.3, 2.0),
        Mixture([Normal(-4, 1), Normal(0, 0.25), Normal(5, 9)], [0.2, 0.5, 0.3]),
        Mixture([Normal(0, 1), Normal(1e6, 1e-6)], [1, 1]),
        Mixture([Normal(0, 1), Normal(2, 1), Normal(7, 1)], [0.5, 0.0, 0.5]),
        Mixture([Normal(0, 1e-12), Normal(0, 1e12)], [1 - 1e-12, 1e-12]),
        Mixture([Normal(k / 10, 1 + k) for k in range(40)], np.arange(1, 41)),
    ],
    ids=["one", "three", "far and thin", "a weight of 0", "scales", "forty"],
)
@pytest.mark.parametrize("length", [1, 31, 32, 33, 100])
def test_compiled_densities_are_the_plain_ones(law: Any, length: int) -> None:
    generator = np.random.default_rng(length)
    tuples = generator.choice([0.01, 1.0, 30.0], size=(length, 300)) * generator.normal(size=(length, 300))
    table = line_mixture(law)
    assert table is not None
    plain = law.log_density(tuples.reshape(-1)).reshape(length, 300).sum(axis=0)
    assert tuple_densities(table, tuples) == pytest.approx(plain, rel=1e-12, abs=1e-11)


def test_what_is_no_mixture_of_normal_laws_on_a_line_is_left_to_the_plain_way() -> None:
    odd: list[Any] = [ABSTAIN, None, Uniform(0, 1), Normal([0, 0], np.eye(2)), Mixture([Uniform(0, 1), LINE], [1, 1])]
    assert [line_mixture(law) for law in odd] == [None] * 5
    nested = Mixture([Mixture([LINE, Normal(1, 1)], [1, 1]), LINE], [1, 1])
    assert line_mixture(nested) is None
    with np.errstate(all="ignore"):
        far = tuple_densities(cast("Any", line_mixture(LINE)), np.array([[1e200, np.inf, np.nan, 0.0]]))
    assert far[:3].tolist() == [-math.inf] * 3
    assert far[3] == pytest.approx(-0.5 * math.log(2 * math.pi))


# --- models about a law -----------------------------------------------------------------------------------------------


def test_widened_models_scatter_as_samples_of_that_size_do() -> None:
    fit = GaussianLearner().fit
    models = widened(Normal(3, 4), learner_fit=fit, records=50, models=400, shared=SharedRandomness(2))
    means = np.array([model.mean[0] for model in models if isinstance(model, Normal)])
    assert len(means) == 400
    # 400 means of variance 4 / 50: the sum of squares is chi-squared, within six standard deviations.
    assert abs(float(np.square(means - 3).sum()) / (4 / 50) - 400) < 6 * math.sqrt(800)
    again = widened(Normal(3, 4), learner_fit=fit, records=50, models=400, shared=SharedRandomness(2))
    assert again == models


def test_fits_that_fail_are_left_out_and_none_at_all_is_a_failure() -> None:
    def fussy(records: NDArray[Any], *, seed: int) -> Distribution:
        if float(records.mean()) > 0:
            raise ValueError("not these")
        return GaussianLearner().fit(records, seed=seed)

    def never(records: NDArray[Any], *, seed: int) -> Any:
        return None

    found = widened(LINE, learner_fit=fussy, records=20, models=40, shared=SharedRandomness(3))
    assert 8 < len(found) < 32
    with pytest.raises(FitFailed, match="fewer than two"):
        widened(LINE, learner_fit=never, records=20, models=40, shared=SharedRandomness(3))


class Grouped:
    """A sampler that gives its records in order of size."""

    dimension, measure = 1, LINE.measure

    def sample(self, size: int, generator: Any) -> NDArray[Any]:
        return np.sort(generator.normal(size=(size, 1)), axis=0)

    def log_density(self, x: Any) -> Any:
        return LINE.log_density(x)


def test_records_that_a_model_groups_are_shuffled() -> None:
    reference = ModelReference([cast("Distribution", Grouped()), LINE])
    points = reference.drawn(2048, SharedRandomness(4).stream("grouped"), records=10)
    spread = points[:, :, 0].std(axis=1)
    assert spread.min() > 0.2  # ten sorted neighbours out of ten thousand would lie within a hundredth


# --- the sampler ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ThreeNormals:
    """Three normal laws on a line by expectation and maximisation."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Mixture:
        from sklearn.mixture import GaussianMixture

        found = GaussianMixture(3, n_init=2, random_state=seed, max_iter=200).fit(records)
        parts = [Normal(mean, cov) for mean, cov in zip(found.means_, found.covariances_, strict=True)]
        return Mixture(parts, found.weights_)


@dataclass(frozen=True)
class NoisyHistogram:
    """A first stage with a guarantee of its own: counts on public cells with discrete Laplace noise."""

    epsilon: Fraction = Fraction(1)
    claims: Fraction = Fraction(1)

    @property
    def guarantee(self) -> PureDP:
        return PureDP(self.epsilon)

    def release(
        self,
        data: ArrayLike,
        *,
        units: ArrayLike | None = None,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        unit: str | None = None,
    ) -> Release[Any]:
        edges = np.linspace(-12, 12, 49)
        counts = np.histogram(np.asarray(data), edges)[0]
        noisy = DiscreteLaplace(sensitivity=2, scale=2 / self.epsilon).release(counts, randomness=randomness).value
        masses = np.maximum(np.asarray(noisy, dtype=float), 0.0)
        return Release(
            Piecewise(edges, masses / masses.sum()),
            PureDP(self.claims, Neighbouring.REPLACE_ONE, unit or "record"),
        )


def five_columns(n: int = 20_000) -> NDArray[Any]:
    generator = np.random.default_rng(5)
    return generator.normal(size=(n, 5)) @ (np.eye(5) + 0.3 * generator.normal(size=(5, 5))) + 10.0


def gaussian_sampler(**given: Any) -> TwoStageSampler:
    first = CoarseVotes(coupling=ShiftRounding(dimension=5, step=7.0), records=100, draws=1000)
    settings: dict[str, Any] = {
        "epsilon": 4,
        "delta": "1e-6",
        "blocks": 40,
        "records": 40,
        "draws": 16,
        "first": first,
    } | given
    return TwoStageSampler(GaussianLearner(), **settings)


def test_normal_laws_in_five_columns_get_an_answer_close_to_the_truth(freeze_secrets: Callable[[int], None]) -> None:
    freeze_secrets(1)  # no answer has a chance of 4e-7 already
    data = five_columns()
    release = gaussian_sampler().release(data, shared=SharedRandomness(6))
    assert not isinstance(release.value, NoAnswerType)
    assert release.value.shape == (40, 5)
    assert release.guarantee == ApproxDP(4, "1e-6")
    truth, factor = data.mean(axis=0), np.linalg.cholesky(np.cov(data.T))
    units = np.linalg.solve(factor, (release.value - truth).T)
    assert np.abs(units.mean(axis=1)).max() < 6 / math.sqrt(40)
    assert 0.4 < float(np.square(units).mean()) < 2.0


def test_mixtures_on_a_line_get_an_answer_after_a_noisy_histogram() -> None:
    generator = np.random.default_rng(7)
    kinds = generator.choice(3, p=[0.3, 0.3, 0.4], size=20_000)
    data = generator.normal(np.array([-5.0, 0.0, 5.0])[kinds], np.array([1.0, 0.7, 1.5])[kinds])
    sampler = TwoStageSampler(
        ThreeNormals(),
        epsilon=4,
        delta="1e-6",
        blocks=30,
        records=30,
        draws=16,
        first=NoisyHistogram(),
        strength=300,
        models=40,
        candidates=2048,
    )
    assert [str(stage.epsilon) for stage in sampler.stages] == ["1", "3"]
    assert basic_composition(sampler.stages) == sampler.guarantee
    release = sampler.release(data, shared=SharedRandomness(8))
    assert not isinstance(release.value, NoAnswerType)
    records = release.value[:, 0]
    truth = Mixture([Normal(-5, 1), Normal(0, 0.49), Normal(5, 2.25)], [0.3, 0.3, 0.4])
    order = np.sort(truth.cdf(records))
    assert np.abs(order - (np.arange(30) + 0.5) / 30).max() < 0.5
    assert truth.log_density(records).mean() > -4.0


def test_a_private_learner_can_be_the_first_stage() -> None:
    first = PrivateLearner(GaussianLearner(), epsilon=3, delta="1e-7", blocks=40, records=40, draws=8)
    assert isinstance(first, CoarseRelease)
    sampler = gaussian_sampler(first=first, epsilon=6, strength=80)
    data = np.random.default_rng(9).normal(3.0, 2.0, size=(8000, 1))
    release = sampler.release(data, shared=SharedRandomness(10), units=np.arange(8000) // 2, unit="person")
    assert release.guarantee == ApproxDP(6, "1e-6", unit="person")
    assert not isinstance(release.value, NoAnswerType)


def test_one_charge_of_the_sum_before_the_first_fit(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=8, delta="1e-5", who="a test", why="two stages")
    sampler = gaussian_sampler()
    sampler.release(five_columns(), shared=SharedRandomness(6), ledger=ledger)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (Fraction(4), Fraction("1e-6"))
    charges = [entry for entry in ledger.entries() if "two-stage sampler" in str(entry)]
    assert charges
    assert "(2, 5e-07) and then (2, 5e-07)" in str(charges[0])
    with pytest.raises(NotEnoughRecords):
        sampler.release(five_columns(30), ledger=ledger)
    assert ledger.spent.epsilon == 4
    with pytest.raises(BudgetExceeded):
        gaussian_sampler(epsilon=5).release(five_columns(), ledger=ledger)
    assert ledger.spent.epsilon == 4
    ledger.close()


def test_without_a_coarse_law_there_is_no_answer_and_the_total_is_spent() -> None:
    data = np.random.default_rng(11).normal(size=(400, 5)) * np.exp(np.arange(400) % 40)[:, None]
    release = gaussian_sampler().release(data, shared=SharedRandomness(12))
    assert release.value is NoAnswer
    assert release.guarantee == ApproxDP(4, "1e-6")
    line = np.random.default_rng(13).normal(size=(8000, 1))

    def no_reference(law: Distribution) -> WideReference:
        raise FitFailed("nothing surrounds this law")

    first = CoarseVotes(coupling=NormalLattice(dimension=1), records=40, draws=8)
    sampler = gaussian_sampler(first=first, reference=no_reference)
    assert sampler.release(line, shared=SharedRandomness(14)).value is NoAnswer
    chosen = gaussian_sampler(first=first, reference=lambda law: NormalReference(cast("Normal", law), strength=70))
    assert chosen.release(line, shared=SharedRandomness(14)).value is not NoAnswer


def test_a_first_stage_that_releases_more_than_it_promised_is_an_error() -> None:
    data = np.random.default_rng(15).normal(size=(4000, 1))
    sampler = gaussian_sampler(first=NoisyHistogram(claims=Fraction(2)), strength=50)
    with pytest.raises(InvalidParameter, match="another guarantee"):
        sampler.release(data)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"first": None}, "first"),
        ({"share": 0}, "share"),
        ({"share": 1}, "share"),
        ({"first": NoisyHistogram(), "share": "1/2", "strength": 9}, "share"),
        ({"first": NoisyHistogram()}, "strength"),
        ({"first": NoisyHistogram(epsilon=Fraction(4)), "strength": 9}, "above those of the first"),
        ({"strength": 0}, "strength"),
        ({"strength": float("nan")}, "strength"),
        ({"models": 1}, "models"),
        ({"candidates": 0}, "candidates"),
        ({"candidates": 1 << 25}, "candidates"),
        ({"reference": 3}, "reference"),
        ({"blocks": 3}, "blocks"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"records": 0}, "records"),
        ({"draws": 0}, "draws"),
    ],
)
def test_settings_outside_their_range_are_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidParameter, match=word):
        gaussian_sampler(**given)


def test_tuples_and_strengths_too_small_for_the_columns_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", epsilon=8, delta="1e-5", who="a test", why="two stages")
    with pytest.raises(InvalidParameter, match="at least 6"):
        gaussian_sampler(records=5).release(five_columns(), ledger=ledger)
    with pytest.raises(InvalidParameter, match="above 5"):
        gaussian_sampler(strength=5).release(five_columns(), ledger=ledger)
    with pytest.raises(InvalidParameter, match="units"):
        gaussian_sampler().release(five_columns(), unit="person", ledger=ledger)
    with pytest.raises(InvalidParameter, match="one unit a record"):
        gaussian_sampler().release(five_columns(), units=np.arange(7), ledger=ledger)
    assert ledger.spent.epsilon == 0
    ledger.close()


def test_replay_on_neighbours_moves_one_column_of_votes_in_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same keys and noise: one record replaced, also by one that ruins its block's fit; the reference held fixed."""
    data = five_columns()
    coarse = Normal(data.mean(axis=0), np.cov(data.T))
    sampler = gaussian_sampler(
        records=20, draws=3, candidates=1000, reference=lambda _: NormalReference(coarse, strength=50)
    )
    seen: list[NDArray[np.object_]] = []

    def spying(laws: Any, *, records: int, coupling: Any, mode: Any, shared: SharedRandomness, randomness: Any) -> Any:
        draws = mode.draws
        seen.append(coupling.couple(laws, records=records, draws=draws, shared=shared).keys)
        return aggregate(laws, records=records, coupling=coupling, mode=mode, shared=shared, randomness=randomness)

    # The function's own globals: a run that collects doctests may hold the module twice.
    monkeypatch.setitem(TwoStageSampler.release.__globals__, "aggregate", spying)

    def votes(records: NDArray[Any]) -> list[NDArray[np.object_]]:
        seen.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler.release(records, shared=SharedRandomness(16), randomness=ReplayRandomness(17))
        return list(seen)

    before = votes(data)
    assert [keys.shape for keys in before] == [(1000, 40), (3, 40)]
    touched = set()
    for row, value in itertools.product((0, 1234), (1e300, np.nan, 0.0)):
        changed = data.copy()
        changed[row] = value
        after = votes(changed)
        assert len(after) == 2
        moved = [set(np.flatnonzero((a != b).any(axis=0)).tolist()) for a, b in zip(before, after, strict=True)]
        assert len(moved[0] | moved[1]) <= 1
        touched |= moved[0]
    assert len(touched) == 2  # the two blocks of these rows, and they were seen to move
