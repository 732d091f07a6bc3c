"""What all tests share: one profile of hypothesis, a measure of work that no slow machine changes, frozen secrets.

A test asserts no seconds: a machine that pauses would fail it, and nothing would be wrong. `work` counts the calls that
a piece of code makes instead; seconds are measured in `benchmarks/`.

No test fails by chance more often than once in a million runs, and a release is random in its blocks and its noise. A
test of few records, where a release gives no answer now and then, freezes its secrets with a key that it states:
`freeze_secrets`.
"""

import hashlib
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from accord.randomness import PrivateRandomness, SharedRandomness

# Examples are new in every run; one that fails is printed with the decorator that repeats it. No clock is read.
settings.register_profile("accord", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("accord")


def calls(code: Callable[[], object]) -> int:
    """How many functions, of Python or C, ``code`` calls."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        code()
    finally:
        sys.setprofile(before)
    return counted


@pytest.fixture(scope="session")
def work() -> Callable[[Callable[[], object]], int]:
    """Counter of the calls that a piece of code makes."""
    return calls


@pytest.fixture
def freeze_secrets(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give, from a call with a key on, bytes of that key for all secrets of accord: orders, noise and fresh keys."""

    def freeze(key: int) -> None:
        asked = 0

        def source(randomness: PrivateRandomness, count: int) -> bytes:
            nonlocal asked
            asked += 1
            return hashlib.shake_256(f"{key}|{asked}".encode()).digest(count)

        def fresh(kind: type[SharedRandomness]) -> SharedRandomness:
            return kind(source(PrivateRandomness(), 32))

        monkeypatch.setattr(PrivateRandomness, "_source", source)
        monkeypatch.setattr(SharedRandomness, "fresh", classmethod(fresh))

    return freeze
