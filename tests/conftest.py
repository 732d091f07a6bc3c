"""What all tests share: one profile of hypothesis, and a measure of work that no slow machine changes.

A test asserts no seconds: a machine that pauses would fail it, and nothing would be wrong. `work` counts the calls that
a piece of code makes instead; seconds are measured in `benchmarks/`.
"""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

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
