"""Lists without an end, and tuples too short to learn from, are refused before anything is spent."""

from itertools import repeat
from typing import Any

import pytest
from typer.testing import CliRunner

from accord.cli.app import app
from accord.couplings import DyadicCoupling
from accord.distributions import Normal
from accord.errors import InvalidParameter
from accord.learners import ScipyLearner
from accord.learning import PrivateLearner
from accord.ledger import Ledger
from accord.randomness import SharedRandomness
from accord.theory import MinimumDistanceLearner


def test_J10_candidates_without_a_length_are_refused() -> None:
    for endless in (repeat(Normal(0, 1)), iter([Normal(0, 1)])):
        with pytest.raises(InvalidParameter, match="no iterator"):
            MinimumDistanceLearner(endless)  # type: ignore[arg-type]


def test_J10_a_tuple_too_short_for_the_learner_costs_nothing(tmp_path: Any) -> None:
    data = SharedRandomness(1).stream("records").weibull(2.0, size=4000)
    sizes: dict[str, Any] = {
        "epsilon": 1,
        "delta": "1e-6",
        "blocks": 100,
        "coupling": DyadicCoupling(record_by_record=True),
    }
    with Ledger.create(tmp_path / "ledger.db", epsilon=3, delta="1e-3") as ledger:
        with pytest.raises(InvalidParameter, match="at least 3"):
            PrivateLearner(ScipyLearner("weibull_min"), records=1, **sizes).release(data, ledger=ledger)
        assert [entry.kind for entry in ledger.entries()] == ["create"]
    PrivateLearner(ScipyLearner("weibull_min"), records=3, **sizes).check(4000, columns=1)


def test_B10_an_audit_by_runs_tells_how_far_it_is_on_stderr_and_json_is_silent() -> None:
    told = CliRunner().invoke(app, ["audit", "sampler", "--runs", "100"])
    assert "of 100" in told.stderr
    assert "s left" in told.stderr
    quiet = CliRunner().invoke(app, ["audit", "sampler", "--runs", "100", "--json"])
    assert quiet.stderr == ""
