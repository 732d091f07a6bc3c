"""B3 for the roads of several mechanisms: parts, and two stages, say what ran, and compose to at most the promise."""

from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from accord.accounting.of_stages import rebuilt, total_of
from accord.core.release import SLACK, leaves
from accord.couplings import RaceCoupling, ShiftRounding
from accord.distributions import Distribution
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import CoarseVotes, PrivateLearner, TwoStageSampler, two_stage
from accord.mechanisms import BestOfDraws, StableMode
from accord.privacy import ApproxDP, Neighbouring, NoAnswer, NoAnswerType, Release
from accord.randomness import SharedRandomness
from accord.theory import AgnosticPrivateLearner, BoostedPrivateLearner, agnostic, boosted

YES_NO = ["no", "yes"]
NORMALS = SharedRandomness(1).stream("records").normal(size=6000)
BUDGET: dict[str, Any] = {"epsilon": 1, "delta": "1e-3"}


class Few:
    """Frequencies, with a sample complexity so small that the theorem's sizes can be run."""

    cells = "labels"

    def fit(self, records: Any, *, seed: int) -> Distribution:
        return EmpiricalLearner(YES_NO).fit(records, seed=seed)

    def sample_complexity(self, alpha: Any, beta: Any) -> int:
        return 2


class Paid:
    """A race that is paid for as if it were not isolated."""

    isolated = False

    def slack(self, **_: int) -> Fraction:
        return Fraction(1, 10**9)

    def couple(self, laws: Any, **more: Any) -> Any:
        return RaceCoupling(YES_NO).couple(laws, **more)


def in_parts(learner: type) -> Release[Any]:
    if learner is AgnosticPrivateLearner:
        return AgnosticPrivateLearner(EmpiricalLearner(YES_NO), parts=3, blocks=40, **BUDGET).release(["yes"] * 400)
    asked: dict[str, Any] = {"alpha": "0.5", "beta": "0.98", "coupling": RaceCoupling(YES_NO)}
    made = BoostedPrivateLearner(Few(), **asked, **BUDGET)
    return made.release(["yes"] * made.required_records)


def in_stages(first: Any, **more: Any) -> Release[Any]:
    sizes: dict[str, Any] = {"blocks": 60, "records": 10, "draws": 4, "strength": 20} | more
    return TwoStageSampler(GaussianLearner(), epsilon=4, delta="1e-3", first=first, **sizes).release(NORMALS)


def coarse_votes(**more: Any) -> CoarseVotes:
    return CoarseVotes(coupling=ShiftRounding(dimension=1), **{"records": 20, "draws": 8} | more)


def coarse_release() -> PrivateLearner:
    return PrivateLearner(GaussianLearner(), blocks=60, records=20, draws=8, epsilon=1, delta="1e-4")


def composed(release: Release[Any], *, how: str) -> list[Any]:
    (root,) = release.stages
    assert root.how == how  # type: ignore[union-attr]
    epsilon, delta = total_of(root)
    assert 0 < epsilon <= release.guarantee.epsilon
    assert 0 < delta <= release.guarantee.delta
    return list(leaves(root))


@pytest.mark.parametrize("learner", [AgnosticPrivateLearner, BoostedPrivateLearner])
def test_B3_parts_say_what_ran_on_each_and_the_largest_counts(learner: type) -> None:
    release = in_parts(learner)
    stages = composed(release, how="parallel")
    assert len(stages) > 1
    assert {(stage.mechanism, stage.guarantee.epsilon) for stage in stages} == {("StableMode", Fraction(1))}
    assert all(isinstance(rebuilt(stage), StableMode) for stage in stages)
    assert total_of(release.stages[0]) == (Fraction(1), max(stage.guarantee.delta for stage in stages))


@pytest.mark.parametrize(
    ("first", "epsilons"), [(coarse_votes, [2, 2]), (coarse_release, [1, 3])], ids=["votes", "release"]
)
def test_B3_two_stages_say_what_ran_and_add_up_to_the_promise(first: Callable[[], Any], epsilons: list[int]) -> None:
    release = in_stages(first())
    assert not isinstance(release.value, NoAnswerType)
    stages = composed(release, how="basic")
    assert [(stage.mechanism, stage.guarantee.epsilon) for stage in stages] == [
        ("BestOfDraws", epsilon) for epsilon in epsilons
    ]
    assert all(isinstance(rebuilt(stage), BestOfDraws) for stage in stages)
    assert total_of(release.stages[0]) == (release.guarantee.epsilon, release.guarantee.delta)


def test_B3_a_first_stage_without_an_answer_is_all_that_ran() -> None:
    class Split:
        def fit(self, records: Any, *, seed: int) -> Distribution:
            return GaussianLearner().fit(records + seed % 2**40, seed=seed)

    sizes: dict[str, Any] = {"blocks": 60, "records": 10, "epsilon": 4, "delta": "1e-3"}
    release = TwoStageSampler(Split(), first=coarse_votes(), **sizes).release(NORMALS)
    assert isinstance(release.value, NoAnswerType)
    (stage,) = composed(release, how="basic")
    assert stage.guarantee.epsilon == 2


def test_B3_the_slack_of_a_first_coupling_is_a_stage_of_its_own() -> None:
    sizes: dict[str, Any] = {"blocks": 60, "records": 10, "epsilon": 4, "delta": "1e-3"}
    first = CoarseVotes(coupling=Paid(), records=4)
    stages = composed(
        TwoStageSampler(EmpiricalLearner(YES_NO), first=first, **sizes).release(["yes"] * 600), how="basic"
    )
    assert [stage.mechanism for stage in stages] == ["StableMode", SLACK, "StableMode"]
    assert stages[0].guarantee.delta + stages[1].guarantee.delta == Fraction(1, 2000)


def test_B3_a_foreign_first_stage_is_claimed() -> None:
    class Foreign:
        guarantee = ApproxDP(1, Fraction(1, 10**4))

        def release(self, data: Any, **_: Any) -> Release[Any]:
            return Release(NoAnswer, self.guarantee)

    (stage,) = composed(in_stages(Foreign()), how="basic")
    assert (stage.mechanism, stage.claimed, stage.guarantee.epsilon) == ("Foreign", True, 1)


# --- mutants: a road that spends more than it promises is caught by its own release -----------------------------------


@pytest.mark.parametrize(
    ("learner", "module"),
    [(AgnosticPrivateLearner, agnostic), (BoostedPrivateLearner, boosted)],
    ids=["agnostic", "boosted"],
)
def test_B3_parts_that_spend_more_are_caught(
    learner: type, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(*_: Any, **__: Any) -> ApproxDP:
        return ApproxDP(Fraction(1, 2), Fraction(1, 1000), Neighbouring.REPLACE_ONE)

    monkeypatch.setattr(module, "together", half)
    with pytest.raises(AssertionError, match="more than is promised"):
        in_parts(learner)


def test_B3_a_second_stage_that_spends_more_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(*, epsilon: Fraction, delta: Fraction, draws: int) -> Any:
        return BestOfDraws(epsilon=2 * epsilon, delta=delta, draws=draws)

    monkeypatch.setattr(two_stage, "selection", double)
    with pytest.raises(AssertionError, match="more than is promised"):
        in_stages(coarse_votes())
