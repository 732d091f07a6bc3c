"""Two releases at once in one process give what they give alone, and leave the process as it was."""

import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.alone import alone, turn
from accord.core.blocks import fit_blocks
from accord.core.coupling import ABSTAIN
from accord.distributions import Distribution, Measure, Normal
from accord.learning import Isolation
from accord.randomness import Generator, SharedRandomness
from accord.theory import PoissonCoupling

legacy: Any = np.random
BLOCKS = [np.arange(place, place + 5) for place in range(0, 20, 5)]


class Noisy:
    """A law that reads the global generators, prints, warns and logs whenever it is asked."""

    dimension = 1
    measure = Measure.LEBESGUE

    def __init__(self, mean: float) -> None:
        self.law = Normal(mean, 1.0)

    def sample(self, size: int, generator: Generator) -> Any:
        return self.law.sample(size, generator)

    def log_density(self, x: Any) -> NDArray[np.float64]:
        return np.asarray(self.law.log_density(x) + 0.1 * slow_noise())


class Reader:
    """A learner that reads the global generators, with pauses in which another thread may run."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Any:
        return Noisy(float(records.mean()) + slow_noise())


def slow_noise() -> float:
    total = 0.0
    for _ in range(4):
        total += random.random() + float(legacy.random_sample())
        print("CANARY")  # noqa: T201
        logging.getLogger("a learner").critical("CANARY")
        warnings.warn("CANARY", stacklevel=1)
        time.sleep(0.0005)
    return total / 8


def release(key: int) -> list[Any]:
    """Return the votes of a release up to its selection, whose randomness is secret."""
    shared = SharedRandomness(key)
    table = np.arange(20.0)[:, None] / 20 + key
    laws: list[Any] = fit_blocks(Reader(), table, blocks=BLOCKS, shared=shared.child("learner"))
    coupling = PoissonCoupling(Normal(0.0, 9.0), most_points=200)
    votes: list[Any] = coupling.couple(laws, records=1, draws=2, shared=shared.child("coupling")).keys.tolist()
    return votes


def together(*tasks: Callable[[], object]) -> list[Any]:
    """Run tasks at once, each in a thread of its own."""
    found: list[Any] = [None] * len(tasks)
    start = threading.Barrier(len(tasks))

    def run(place: int) -> None:
        start.wait()
        found[place] = tasks[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def state() -> list[Any]:
    """Return what belongs to the process."""
    generator = legacy.get_state()
    return [
        sys.stdout, sys.stderr, list(warnings.filters), logging.root.manager.disable, random.getstate(),
        generator[1].tolist(), generator[2:], signal.getsignal(signal.SIGINT), np.geterr(),
    ]  # fmt: skip


@pytest.fixture
def often() -> Iterator[None]:
    """Let threads change places often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often")
def test_A8_releases_at_once_give_the_votes_that_they_give_alone(capfd: Any, caplog: Any) -> None:
    expected = [release(key) for key in range(3)]
    assert any(vote is not ABSTAIN for votes in expected for draw in votes for vote in draw)
    before = state()
    found = together(*(lambda key=key: release(key) for key in range(3)))
    assert state() == before
    assert found == expected
    assert "CANARY" not in "".join(capfd.readouterr())
    assert "CANARY" not in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.usefixtures("often")
def test_A8_so_do_fits_in_processes() -> None:
    table = np.arange(20.0)[:, None]

    def fit(kind: Any) -> list[float]:
        laws: list[Any] = fit_blocks(
            Means(), table, blocks=BLOCKS, shared=SharedRandomness(1), isolation=Isolation(kind=kind)
        )
        return [float(law.mean[0]) for law in laws]

    expected = fit("copy")
    before = state()
    assert together(lambda: fit("copy"), lambda: fit("process"), lambda: fit("process")) == [expected] * 3
    assert state() == before


class Means:
    """A learner with noise from the global generators, and a law of accord's own."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        return Normal(float(records.mean()) + slow_noise(), 1.0)


def test_A8_a_turn_may_be_taken_again_by_whoever_has_it() -> None:
    assert alone(lambda: alone(lambda: 3, failed=None), failed=None) == 3
    with turn(), turn():
        assert alone(lambda: 4, failed=None) == 4
    assert together(lambda: alone(lambda: 5, failed=None)) == [5]  # and it was given back


def test_A8_a_turn_is_given_back_when_something_is_raised() -> None:
    def fails() -> None:
        with turn():
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fails()
    assert together(lambda: alone(lambda: 5, failed=None)) == [5]


def test_A8_whoever_waits_comes_before_whoever_has_just_had_a_turn() -> None:
    order: list[str] = []
    has_begun, is_waiting = threading.Event(), threading.Event()

    def first() -> None:
        with turn():
            has_begun.set()
            is_waiting.wait()
            time.sleep(0.2)  # the other thread asks meanwhile
            order.append("first")
        with turn():
            order.append("first again")

    def second() -> None:
        has_begun.wait()
        is_waiting.set()
        with turn():
            order.append("second")

    together(first, second)
    assert order == ["first", "second", "first again"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork among threads
def test_A8_a_child_does_not_inherit_the_turn_of_another_thread() -> None:
    holds, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with turn():
            holds.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    child = multiprocessing.get_context("fork").Process(target=_take_a_turn, daemon=True)
    child.start()
    child.join(60)
    ended = child.exitcode
    child.kill()
    may_end.set()
    thread.join()
    assert ended == 0


def _take_a_turn() -> None:
    with turn():
        pass
    if alone(lambda: 1, failed=0) != 1:
        raise AssertionError
