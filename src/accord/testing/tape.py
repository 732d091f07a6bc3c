"""Freeze the noise of a run: bytes that a key gives again, or a tape of what a program's mechanisms released.

For tests only: whoever knows the key or holds the tape can remove the noise.
"""

import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from accord.core.best_of_draws import BestOfDraws
from accord.core.errors import AccordError, InvalidParameter
from accord.core.release import Release, note
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.core.stable_mode import StableMode
from accord.noise.above_threshold import AboveThreshold
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.exponential import Exponential
from accord.noise.laplace import Laplace
from accord.noise.permute_and_flip import PermuteAndFlip
from accord.noise.thresholded_counts import LevelSelection, ThresholdedCounts
from accord.noise.top_k import TopK

__all__ = ["Call", "ReplayRandomness", "Tape", "TapeEnded"]

_Used = Callable[[Any, Any, Any], Fraction]


class TapeEnded(AccordError, RuntimeError):
    """A program that is played again asks for more releases than were recorded."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One release on a tape.

    Parameters
    ----------
    mechanism
        Name of the class.
    parameters
        Of the mechanism, by field.
    given
        A copy of what it was applied to: not released.
    release
        What came out.

    """

    mechanism: str
    parameters: Mapping[str, Any]
    given: Any
    release: Release[Any]


@final
@dataclass(slots=True)
class Tape:
    """Record the releases of a program, then run it on a neighbour with every release replaced by the recorded one.

    With the noise frozen a private program is deterministic in everything else. So on a neighbour each mechanism must
    be the same, in the same order, and be applied to something within its declared sensitivity; and every byte that
    leaves must be equal. `faults` says what was not; `used` how much of each sensitivity was seen in use, which shows
    that the comparison has power.

    Formal guarantees
    -----------------
    - Found: a mechanism with other parameters, one more or one less; an input that moved by more than the sensitivity.
    - A program without faults and with equal outputs on a pair of neighbours loses at most what its mechanisms promise
      together on this pair and these outcomes.
    - Not promised: anything about other pairs. While a tape runs nothing is private, and only one may run in a process.

    Examples
    --------
    >>> def program(data):
    ...     return DiscreteLaplace(sensitivity=1, scale=2).release(sum(data)).value
    >>> tape = Tape()
    >>> with tape.recording():
    ...     first = program([0, 1, 1])
    >>> with tape.playing():
    ...     second = program([0, 1, 0])
    >>> first == second, tape.faults, tape.used["DiscreteLaplace"]
    (True, [], Fraction(1, 1))
    >>> with tape.playing():
    ...     third = program([0, 1, 7])
    >>> tape.faults
    ['call 0, DiscreteLaplace: the input moved by 6 times its sensitivity']

    """

    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    used: dict[str, Fraction] = field(default_factory=dict)
    _place: int = 0
    _inside: bool = False

    @contextmanager
    def recording(self) -> Iterator["Tape"]:
        """Run mechanisms as they are and keep what they release."""
        self.calls, self.faults, self.used = [], [], {}
        with _patched(self._record):
            yield self

    @contextmanager
    def playing(self) -> Iterator["Tape"]:
        """Answer every call with the recorded release, and compare what it is applied to."""
        self.faults, self._place = [], 0
        with _patched(self._play):
            yield self
        if self._place < len(self.calls):
            self.faults.append(f"{len(self.calls) - self._place} calls less than were recorded")

    def _record(self, road: "_Road", mechanism: Any, given: Any, run: Callable[[Any], Release[Any]]) -> Release[Any]:  # noqa: ANN401
        if self._inside:  # one mechanism runs another: its own release is what counts
            return run(given)
        kept: list[Any] = []
        self._inside = True
        try:
            release = run(_listening(given, kept) if isinstance(given, Iterator) else given)
        finally:
            self._inside = False
        snapshot = kept if isinstance(given, Iterator) else copy.deepcopy(given)
        self.calls.append(Call(mechanism=road.name, parameters=_parameters(mechanism), given=snapshot, release=release))
        return release

    def _play(self, road: "_Road", mechanism: Any, given: Any, run: Callable[[Any], Release[Any]]) -> Release[Any]:  # noqa: ANN401, ARG002
        if self._place >= len(self.calls):
            self.faults.append(f"a {road.name} more than was recorded")
            raise TapeEnded("the tape has ended: the program asks for more releases than on its first run.")
        call, place = self.calls[self._place], self._place
        self._place += 1
        where = f"call {place}, {road.name}"
        if call.mechanism != road.name:
            self.faults.append(f"{where}: it was {call.mechanism}")
            return _frozen(call.release)
        now = _parameters(mechanism)
        self.faults += [f"{where}: {name} differs" for name in now if now[name] != call.parameters[name]]
        if isinstance(given, Iterator):
            given = [entry for entry, _ in zip(given, call.given, strict=False)]
        try:
            share = road.used(mechanism, call.given, given)
        except _ShapeDiffersError:
            self.faults.append(f"{where}: the input has another shape")
            return _frozen(call.release)
        self.used[road.name] = max(self.used.get(road.name, Fraction(0)), share)
        if share > 1:
            self.faults.append(f"{where}: the input moved by {float(share):.6g} times its sensitivity")
        return _frozen(call.release)


def _frozen(release: Release[Any]) -> Release[Any]:
    """Return a recorded release, and take its stages down as if its mechanism had run."""
    for stage in release.stages:
        note(stage)
    return release


class _ShapeDiffersError(Exception):
    """Two inputs cannot be compared."""


@final
@dataclass(frozen=True, slots=True)
class _Road:
    """How one class of mechanisms is run, and what share of its sensitivity two inputs use."""

    kind: type
    method: str
    used: _Used

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.kind.__name__


def _number(value: Any) -> Fraction:  # noqa: ANN401
    """Return a number as a fraction; a float at its binary value, which is what is compared."""
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _difference(before: Any, now: Any) -> list[Fraction]:  # noqa: ANN401
    """Return by how much the entries differ that do."""
    first, second = np.asarray(before), np.asarray(now)
    if first.shape != second.shape:
        raise _ShapeDiffersError
    differ = np.atleast_1d(first != second)
    pairs = zip(np.atleast_1d(first)[differ].tolist(), np.atleast_1d(second)[differ].tolist(), strict=True)
    return [abs(_number(one) - _number(other)) for one, other in pairs]


def _ratio(moved: Fraction, bound: Fraction) -> Fraction:
    if bound == 0:
        return Fraction(0) if moved == 0 else Fraction(10**9)
    return moved / bound


def _l1(mechanism: Any, before: Any, now: Any) -> Fraction:  # noqa: ANN401
    return _ratio(sum(_difference(before, now), Fraction(0)), mechanism.sensitivity.bound)


def _l2(mechanism: Any, before: Any, now: Any) -> Fraction:  # noqa: ANN401
    """Return the square of the share: it is exact, and above 1 together with the share."""
    squares = sum((entry**2 for entry in _difference(before, now)), Fraction(0))
    return _ratio(squares, mechanism.sensitivity.bound**2)


def _largest(mechanism: Any, before: Any, now: Any) -> Fraction:  # noqa: ANN401
    return _ratio(max(_difference(before, now), default=Fraction(0)), mechanism.sensitivity.bound)


def _levels(mechanism: Any, before: Any, now: Any) -> Fraction:  # noqa: ANN401, ARG001
    first, second = (Counter(repr(level) for level in values) for values in (before, now))
    more, less = (first - second).total(), (second - first).total()
    return Fraction(max(more, less))


def _voters(mechanism: Any, before: Any, now: Any) -> Fraction:  # noqa: ANN401
    """Return how many voters changed their votes: one may."""
    draws = [(before, now)] if isinstance(mechanism, StableMode) else list(zip(before, now, strict=True))
    changed: set[int] = set()
    for first, second in draws:
        if len(first) != len(second):
            raise _ShapeDiffersError
        changed |= {
            place for place, pair in enumerate(zip(first, second, strict=True)) if repr(pair[0]) != repr(pair[1])
        }
    return Fraction(len(changed))


ROADS: Final = tuple(
    _Road(*entry)
    for entry in (
        (Laplace, "release", _l1),
        (DiscreteLaplace, "release", _l1),
        (DiscreteGaussian, "release", _l2),
        (Exponential, "select", _largest),
        (PermuteAndFlip, "select", _largest),
        (TopK, "select", _largest),
        (AboveThreshold, "release", _largest),
        (ThresholdedCounts, "release", _levels),
        (LevelSelection, "release", _levels),
        (StableMode, "release", _voters),
        (BestOfDraws, "release", _voters),
    )
)
"""Every mechanism that looks at data: a tape that left one out would call its noise part of the program."""

_running = False


@contextmanager
def _patched(answer: Callable[..., Release[Any]]) -> Iterator[None]:
    """Route every mechanism of the process through ``answer``."""
    global _running  # noqa: PLW0603 - classes are patched, so this is a matter of the whole process
    if _running:
        raise InvalidParameter("a tape is running already: only one may run in a process.")
    _running = True
    before = {road: getattr(road.kind, road.method) for road in ROADS}
    try:
        for road, method in before.items():
            setattr(road.kind, road.method, _routed(road, method, answer))
        yield
    finally:
        for road, method in before.items():
            setattr(road.kind, road.method, method)
        _running = False


def _routed(road: _Road, method: Callable[..., Release[Any]], answer: Callable[..., Release[Any]]) -> Any:  # noqa: ANN401
    def routed(self: Any, given: Any, **options: Any) -> Release[Any]:  # noqa: ANN401
        return answer(road, self, given, lambda value: method(self, value, **options))

    return routed


def _parameters(mechanism: Any) -> dict[str, Any]:  # noqa: ANN401
    return {one.name: getattr(mechanism, one.name) for one in fields(mechanism)}


def _listening(values: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    for value in values:
        kept.append(value)
        yield value


@final
class ReplayRandomness(PrivateRandomness):
    """Stand in for `PrivateRandomness` with bytes that depend on a key alone.

    Not private: never release anything with it. It makes tests on neighbours comparable (same noise, other data) and
    runs repeatable: it fixes the blocks of a release, too. Copies and pickles start again from the beginning.

    Formal guarantees
    -----------------
    - Equal keys give equal bytes to equal sequences of calls.
    - Not promised: any privacy whatsoever.

    Parameters
    ----------
    key
        An int, text or bytes.

    Source
    ------
    SHAKE-256 of the key and a counter (FIPS 202).

    Examples
    --------
    >>> ReplayRandomness("a test").bits(64) == ReplayRandomness("a test").bits(64)
    True

    """

    __slots__ = ("_blocks", "_key")

    def __init__(self, key: int | str | bytes) -> None:
        SharedRandomness(key)  # refuses what is no key
        super().__init__()
        self._key = key
        self._blocks = 0

    def _source(self, count: int) -> bytes:
        label = f"accord replay|{type(self._key).__name__}|{self._blocks}|".encode()
        body = self._key if isinstance(self._key, bytes) else str(self._key).encode("utf-8", "surrogatepass")
        self._blocks += 1
        return hashlib.shake_256(label + body).digest(count)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return (type(self), (self._key,))

    def __repr__(self) -> str:
        return "ReplayRandomness(...)  # not private"
