"""B5, B8: every road of the library tells what public facts say against a release: once, before it is charged."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from accord import PrivateDensity
from accord.core import VerdictWarning, collected
from accord.couplings import RaceCoupling, ShiftRounding
from accord.density import estimator as fits
from accord.distributions import Distribution
from accord.errors import NothingReleased
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.learning import CoarseVotes, PrivateLearner, PrivateSampler, TwoStageSampler
from accord.ledger import Ledger
from accord.marginals import Column, Domain, MarginalLearner
from accord.randomness import SharedRandomness
from accord.theory import AgnosticPrivateLearner, BoostedPrivateLearner

NORMALS = SharedRandomness(1).stream("records").normal(size=(4000, 1))
YES_NO = ["no", "yes"]
WEAK = "1e-3"  # times 4000
SIZES: dict[str, Any] = {"epsilon": 4, "delta": WEAK, "blocks": 40}


class Few:
    """Frequencies, with a sample complexity so small that the theorem's sizes can be run."""

    cells = "labels"

    def fit(self, records: Any, *, seed: int) -> Distribution:
        return EmpiricalLearner(YES_NO).fit(records, seed=seed)

    def sample_complexity(self, alpha: Any, beta: Any) -> int:
        return 2


def marginals(**more: Any) -> MarginalLearner:
    options: dict[str, Any] = {"epsilon": 1, "delta": WEAK} | more
    return MarginalLearner(Domain([Column("a", 2), Column("b", 2)]), **options)


def boosted() -> Any:
    asked: dict[str, Any] = {"epsilon": 1, "alpha": "0.5", "beta": "0.98", "coupling": RaceCoupling(YES_NO)}
    made = BoostedPrivateLearner(Few(), delta=WEAK, **asked)
    return made.release(["yes"] * made.required_records)


def two_stages(*, first: Any) -> Any:
    more: dict[str, Any] = SIZES | {"epsilon": 9, "delta": "2e-3", "records": 10, "strength": 20}
    return TwoStageSampler(GaussianLearner(), first=first, **more).release(NORMALS)


ROADS: dict[str, Callable[[], Any]] = {
    "sampler": lambda: PrivateSampler(GaussianLearner(), records=20, **SIZES).release(NORMALS),
    "learner": lambda: PrivateLearner(GaussianLearner(), records=30, **SIZES).release(NORMALS),
    "boosted": boosted,
    "agnostic": lambda: AgnosticPrivateLearner(EmpiricalLearner(YES_NO), parts=2, **SIZES).release(["yes"] * 400),
    "votes, then a sampler": lambda: two_stages(first=CoarseVotes(coupling=ShiftRounding(dimension=1), records=20)),
    "learner, then a sampler": lambda: two_stages(first=PrivateLearner(GaussianLearner(), records=20, **SIZES)),
    "marginals": lambda: marginals().release(np.zeros((4000, 2), dtype=int)),
}


@pytest.mark.parametrize("road", ROADS)
def test_B5_a_large_delta_is_told_once_on_every_road(road: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ROADS[road]()
    told = [one for one in caught if isinstance(one.message, VerdictWarning)]
    assert [one.message.verdict.code for one in told] == ["delta-too-large"]  # type: ignore[union-attr]
    assert told[0].filename == __file__


@pytest.mark.parametrize("road", [PrivateSampler, PrivateLearner])
def test_B5_blocks_too_small_to_agree_are_told(road: Any) -> None:
    sizes: dict[str, Any] = {"blocks": 40, "records": 20, "epsilon": 4}
    with collected() as verdicts:
        road(GaussianLearner(), delta="1e-6", **sizes).release(NORMALS[:400])
        road(GaussianLearner(), delta="1e-6", coupling=ShiftRounding(dimension=1), **sizes).release(NORMALS[:400])
    assert [verdict.code for verdict in verdicts] == ["too-few-records"]
    assert "blocks of 10 rarely agree" in verdicts[0].text
    assert "about 800 are needed for 40 blocks, or use at most 20 blocks" in verdicts[0].text


def test_B5_a_typical_error_of_few_records_is_told() -> None:
    with collected() as verdicts:
        PrivateLearner(GaussianLearner(), **SIZES | {"delta": "1e-7"}, records=19).release(NORMALS)
    assert ["typical error is 0.1 in total" in verdict.text for verdict in verdicts] == [True]
    with collected() as verdicts:
        PrivateLearner(GaussianLearner(), **SIZES | {"delta": "1e-7"}, records=21).release(NORMALS)
    assert verdicts == []


def test_B5_marginals_tell_of_noise_and_weights() -> None:
    few = np.zeros((30, 2), dtype=int)
    with collected() as verdicts:
        marginals(epsilon="0.1", delta="1e-6").release(few, units=np.arange(30) // 2)
    assert [verdict.code for verdict in verdicts] == ["weighted-by-unit", "too-few-records"]
    assert "the expected error of 2 of 2 columns" in verdicts[1].text


def test_B5_a_verdict_that_is_made_an_error_comes_before_the_charge(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=9, delta="1e-2", unit="record")
    made: list[Callable[[], Any]] = [
        lambda: PrivateLearner(GaussianLearner(), records=30, **SIZES).release(NORMALS, ledger=ledger),
        lambda: marginals().release(np.zeros((4000, 2), dtype=int), ledger=ledger),
        lambda: PrivateDensity(GaussianMixture(1), epsilon=1, delta=WEAK).fit(NORMALS, ledger=ledger),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for road in made:
            with pytest.raises(VerdictWarning):
                road()
    assert [entry.kind for entry in ledger.entries()] == ["create"]


def test_B5_B8_the_account_of_a_density_holds_its_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "_FITS", fits._Fits())
    density = PrivateDensity(GaussianMixture(1), epsilon=2, delta=WEAK)
    for fit, codes in enumerate((["delta-too-large"], *[["fitted-again", "delta-too-large"]] * 2)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with suppress(NothingReleased):
                density.fit(NORMALS)
        told = [one for one in caught if isinstance(one.message, VerdictWarning)]
        shown = codes if fit < 2 else codes[1:]  # the second fit of a process is told, once
        assert [one.message.verdict.code for one in told] == shown  # type: ignore[union-attr]
        assert {one.filename for one in told} == {__file__}
        for report in (density.report_, density.curator_report_):
            assert [verdict["code"] for verdict in report["warnings"]] == codes
    assert all(verdict["text"] for verdict in density.report_["warnings"])
