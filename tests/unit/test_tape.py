"""The tape finds programs that look past their mechanisms, and passes those that do not."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import accord.mechanisms
from accord.errors import InvalidParameter
from accord.mechanisms import (
    AboveThreshold,
    BestOfDraws,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Laplace,
    StableMode,
    ThresholdedCounts,
)
from accord.testing import Tape, TapeEnded
from accord.testing.tape import ROADS

Program = Callable[[list[int]], Any]
DATA, NEIGHBOUR = [3, 1, 4, 1, 5], [3, 1, 4, 9, 5]


def played(program: Program, *, now: list[int]) -> tuple[Any, Any, Tape]:
    tape = Tape()
    with tape.recording():
        first = program(DATA)
    with tape.playing():
        second = program(now)
    return first, second, tape


def clipped_sum(data: list[int]) -> Any:
    return DiscreteLaplace(sensitivity=8, scale=2).release(sum(min(one, 9) for one in data)).value


GOOD: dict[str, tuple[Program, str]] = {
    "laplace": (lambda data: Laplace(sensitivity=8, epsilon=1).release([float(sum(data))]).value, "Laplace"),
    "discrete": (clipped_sum, "DiscreteLaplace"),
    "gaussian": (
        lambda data: DiscreteGaussian(sensitivity=8, sigma=9).release(sum(data), delta="1e-6").value,
        "DiscreteGaussian",
    ),
    "choice": (lambda data: Exponential(sensitivity=8, epsilon=1).select([0, sum(data)]).value, "Exponential"),
    "levels": (lambda data: ThresholdedCounts(epsilon=1, threshold=20).release(data).value, "ThresholdedCounts"),
    "sparse": (
        lambda data: AboveThreshold(sensitivity=8, epsilon=1, threshold=9).release(iter([sum(data), 0])).value,
        "AboveThreshold",
    ),
    "mode": (lambda data: StableMode(epsilon=1, delta="0.1").release(data).value, "StableMode"),
    "draws": (lambda data: BestOfDraws(epsilon=1, delta="0.1", draws=2).release([data, data]).value, "BestOfDraws"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_private_program_has_no_faults_and_its_whole_sensitivity_is_seen_in_use(name: str) -> None:
    program, mechanism = GOOD[name]
    first, second, tape = played(program, now=NEIGHBOUR)
    assert tape.faults == []
    assert first == second
    assert tape.used == {mechanism: Fraction(1)}


def scaled_by_data(data: list[int]) -> Any:
    return DiscreteLaplace(sensitivity=8, scale=max(data)).release(sum(data)).value


def too_small_a_sensitivity(data: list[int]) -> Any:
    return DiscreteLaplace(sensitivity=7, scale=2).release(sum(data)).value


def as_often_as_the_data_say(data: list[int]) -> Any:
    return [DiscreteLaplace(sensitivity=8, scale=2).release(sum(data)).value for _ in range(max(data) - 3)]


def other_mechanism(data: list[int]) -> Any:
    if max(data) < 9:
        return clipped_sum(data)
    return Laplace(sensitivity=8, epsilon=1).release([float(sum(data))]).value


def longer_vector(data: list[int]) -> Any:
    return DiscreteLaplace(sensitivity=8, scale=2).release([0] * max(data)).value


def two_voters(data: list[int]) -> Any:
    return StableMode(epsilon=1, delta="0.1").release([max(data), max(data), 1]).value


BROKEN: dict[str, tuple[Program, str]] = {
    "scale": (scaled_by_data, "scale differs"),
    "sensitivity": (too_small_a_sensitivity, "times its sensitivity"),
    "shape": (longer_vector, "another shape"),
    "mechanism": (other_mechanism, "it was DiscreteLaplace"),
    "voters": (two_voters, "moved by 2 times"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mutant_is_found(name: str) -> None:
    program, words = BROKEN[name]
    _, _, tape = played(program, now=NEIGHBOUR)
    assert any(words in fault for fault in tape.faults), tape.faults


def test_one_release_more_or_less_is_found() -> None:
    tape = Tape()
    with tape.recording():
        as_often_as_the_data_say(DATA)
    with pytest.raises(TapeEnded), tape.playing():
        as_often_as_the_data_say(NEIGHBOUR)
    with tape.playing():
        as_often_as_the_data_say([4])
    assert tape.faults[-1] == "1 calls less than were recorded"


def test_a_leak_beside_the_mechanisms_shows_in_what_comes_out() -> None:
    first, second, tape = played(lambda data: (clipped_sum(data), len(set(data))), now=NEIGHBOUR)
    assert tape.faults == []
    assert first != second


def test_every_mechanism_is_on_the_tape() -> None:
    released = {
        name
        for name in accord.mechanisms.__all__
        if hasattr(getattr(accord.mechanisms, name), "release") or hasattr(getattr(accord.mechanisms, name), "select")
    }
    assert {road.name for road in ROADS} == released


def test_mechanisms_are_as_before_when_the_tape_ends_and_only_one_runs() -> None:
    before = DiscreteLaplace.release
    tape = Tape()
    with tape.recording(), pytest.raises(InvalidParameter, match="only one"), Tape().playing():
        pass
    assert DiscreteLaplace.release is before
