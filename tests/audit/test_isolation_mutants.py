"""Variants of the guard around learners and laws must be caught by what the real one passes."""

import contextlib
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core import alone as _alone
from accord.core.blocks import fit_blocks
from accord.core.coupling import ABSTAIN
from accord.distributions import Distribution, Normal
from accord.randomness import SharedRandomness

BLOCKS = [np.arange(place, place + 5) for place in range(0, 20, 5)]


class Reader:
    """Reads the global generator slowly."""

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        total = 0.0
        for _ in range(5):
            total += random.random()
            time.sleep(0.002)
        return Normal(float(records.mean()) + total, 1.0)


def means(key: int) -> list[Any]:
    table = np.arange(20.0)[:, None]
    laws: list[Any] = fit_blocks(Reader(), table, blocks=BLOCKS, shared=SharedRandomness(key))
    return [law if law is ABSTAIN else float(law.mean[0]) for law in laws]


def is_the_same_at_once() -> bool:
    """Whether three threads fit what they fit alone, and leave the streams and the generator as they were."""
    expected = [means(key) for key in range(3)]
    before = sys.stdout, sys.stderr, random.getstate()
    found: dict[int, list[Any]] = {}
    threads = [threading.Thread(target=lambda key=key: found.update({key: means(key)})) for key in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return before == (sys.stdout, sys.stderr, random.getstate()) and [found.get(key) for key in range(3)] == expected


@contextlib.contextmanager
def nothing() -> Iterator[None]:
    yield


def test_A8_mutant_without_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_the_same_at_once()
    streams, generator = (sys.stdout, sys.stderr), random.getstate()
    for module in (_alone,):
        monkeypatch.setattr(module, "turn", nothing)
    try:
        assert not is_the_same_at_once()
    finally:
        sys.stdout, sys.stderr = streams
        random.setstate(generator)


# --- what a learner or a law raises -----------------------------------------------------------------------------------


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        if records.max() > 100:
            raise self.error
        return Normal(float(records.mean()), 1.0)


ERRORS = [ValueError(), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("panic")]


def is_one_blocks_affair(error: BaseException) -> bool:
    """Whether the others' laws are what they are without the error, which one block's record leads to."""
    table = np.arange(20.0)[:, None]
    clean = fit_blocks(Raises(error), table, blocks=BLOCKS, shared=SharedRandomness(1))
    table[7] = 1e6
    try:
        spoilt = fit_blocks(Raises(error), table, blocks=BLOCKS, shared=SharedRandomness(1))
    except BaseException:  # noqa: BLE001 - the run ended: that is what this looks for
        return False
    return spoilt == [clean[0], ABSTAIN, *clean[2:]]


def test_A10_whatever_is_raised_is_one_blocks_affair() -> None:
    assert all(is_one_blocks_affair(error) for error in ERRORS)


def test_A10_mutant_exceptions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.core import isolation

    def ask(question: Any, *, failed: Any, seed: int = 0) -> Any:
        try:
            return question()
        except Exception:  # noqa: BLE001 - the fault
            return failed

    monkeypatch.setattr(isolation, "alone", ask)
    assert [is_one_blocks_affair(error) for error in ERRORS] == [True, False, False, False, False]


def test_A10_mutant_a_learners_interrupt_is_taken_for_a_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.core import isolation

    def ask(question: Any, *, failed: Any, seed: int = 0) -> Any:
        try:
            return question()
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the fault is above
            return failed

    monkeypatch.setattr(isolation, "alone", ask)
    assert [is_one_blocks_affair(error) for error in ERRORS] == [True, True, False, True, True]
