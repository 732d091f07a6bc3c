"""One block's fit and the others: copies, processes, time limits, and whatever a learner may do."""

import asyncio
import cProfile
import decimal
import gc
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.blocks import fit_blocks
from accord.core.coupling import ABSTAIN
from accord.distributions import Distribution, Normal
from accord.errors import InvalidParameter
from accord.learners import GaussianLearner
from accord.learning import Isolation, PrivateSampler
from accord.randomness import SharedRandomness

LEFT_BEHIND: list[float] = []
BLOCKS = [np.arange(10), np.arange(10, 20), np.arange(20, 30)]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


class Litterer:
    """Leaves its mean in a module global and adds what it finds there."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        LEFT_BEHIND.append(float(records.mean()))
        return Normal(sum(LEFT_BEHIND), 1.0)


@dataclass
class Misbehaves:
    """Does one bad thing when it meets a large record."""

    how: str

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:  # noqa: C901 - a list of sins
        if records.max() > 100:
            match self.how:
                case "exception":
                    raise ValueError(str(records.max()))
                case "exit":
                    raise SystemExit(3)
                case "warning":
                    warnings.warn(str(records.max()), stacklevel=1)
                    raise FloatingPointError
                case "hard exit":
                    os._exit(7)
                case "sleep":
                    time.sleep(60)
                case "panic":
                    raise Panic(str(records.max()))
                case "cancelled":
                    raise asyncio.CancelledError
                case "chatter":
                    print(records.max())  # noqa: T201
                    sys.stderr.write(str(records.max()))
                    logging.getLogger().critical(records.max())
                    raise ValueError
                case "new generator":
                    legacy: Any = np.random  # in some versions of numpy's stubs it is missing
                    legacy.set_bit_generator(np.random.Philox(1))
                    raise ValueError
                case "dawdle":
                    subprocess.Popen(["sleep", "60"])
                    os._exit(0)
                case "unpicklable":
                    return lambda: None  # type: ignore[return-value]
        return Normal(float(records.mean()) + np.random.random(), 1.0)  # noqa: NPY002 - what others do


class Panic(BaseException):
    """What learners in other languages raise."""


def data(*, spoilt: bool) -> NDArray[Any]:
    table = np.arange(30, dtype=float)[:, None]
    if spoilt:
        table[12] = 1e6
    return table


def fit(learner: Any, table: NDArray[Any], isolation: Isolation) -> list[Any]:
    return list(fit_blocks(learner, table, blocks=BLOCKS, shared=SharedRandomness(1), isolation=isolation))


@needs_fork
def test_a_process_a_block_keeps_litter_apart() -> None:
    LEFT_BEHIND.clear()
    apart = Isolation(kind="process", seconds=30)
    before, after = (fit(Litterer(), data(spoilt=spoilt), apart) for spoilt in (False, True))
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert LEFT_BEHIND == []


def test_copies_do_not_keep_litter_apart_as_known_limits_says() -> None:
    LEFT_BEHIND.clear()
    before, after = [], []
    before = fit(Litterer(), data(spoilt=False), Isolation())
    LEFT_BEHIND.clear()
    after = fit(Litterer(), data(spoilt=True), Isolation())
    LEFT_BEHIND.clear()
    assert before[2] != after[2]


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda: sys.setrecursionlimit(900), sys.getrecursionlimit),
        (gc.disable, gc.isenabled),
        (lambda: sys.settrace(lambda *_: None), sys.gettrace),
        (lambda: sys.setprofile(lambda *_: None), sys.getprofile),
        (lambda: np.set_printoptions(precision=1), np.get_printoptions),
        (lambda: np.seterr(all="raise"), np.geterr),
        (lambda: setattr(decimal.getcontext(), "prec", 3), lambda: decimal.getcontext().prec),
        (lambda: os.chdir("/"), os.getcwd),
        (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters)),
    ],
)
def test_what_a_fit_sets_in_the_interpreter_is_put_back(
    change: Callable[[], Any], state: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = state()
    during = alone(lambda: (change(), state())[1], failed=None)
    assert state() == before
    assert during != before


def test_a_compiled_profiler_of_the_caller_goes_on() -> None:
    profiler = cProfile.Profile()
    assert profiler.runcall(lambda: alone(lambda: 2, failed=None)) == 2


ANYWHERE = ("exception", "exit", "warning", "panic", "cancelled", "chatter", "new generator")
CASES = [("copy", how) for how in ANYWHERE] + [
    ("process", how) for how in (*ANYWHERE, "hard exit", "sleep", "unpicklable", "dawdle")
]


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_whatever_a_learner_does_is_its_blocks_abstention(kind: Any, how: str, capfd: Any) -> None:
    if kind == "process" and not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    isolation = Isolation(kind=kind, seconds=2.0 if how == "sleep" else 30.0 if kind == "process" else None)
    clean = fit(Misbehaves(how), data(spoilt=False), isolation)
    spoilt = fit(Misbehaves(how), data(spoilt=True), isolation)
    assert ABSTAIN not in clean
    assert spoilt == [clean[0], ABSTAIN, clean[2]]
    assert "1000000" not in "".join(capfd.readouterr())


@needs_fork
def test_both_kinds_give_the_same_laws() -> None:
    table = np.random.default_rng(0).normal(size=(30, 1))
    assert fit(GaussianLearner(), table, Isolation()) == fit(GaussianLearner(), table, Isolation(kind="process"))


@needs_fork
def test_the_sampler_takes_it() -> None:
    sampler = PrivateSampler(
        GaussianLearner(),
        epsilon=2,
        delta="1e-3",
        blocks=20,
        records=20,
        draws=8,
        isolation=Isolation(kind="process", seconds=30),
    )
    table = np.tile(np.random.default_rng(0).normal(size=50), 20)
    shared = SharedRandomness(3)
    assert sampler.release(table, shared=shared).guarantee == sampler.guarantee


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("thread", None), ("copy", 1.0), ("process", 0.0), ("process", float("nan")), ("process", 10.0**12)],
)
def test_silly_settings_are_refused(kind: Any, seconds: float | None) -> None:
    with pytest.raises(InvalidParameter):
        Isolation(kind=kind, seconds=seconds)
