"""Say which of many queries are above a threshold, and pay for those only: the sparse vector technique."""

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import NoReturn, final

from accord.core import check as _check
from accord.core.errors import AccordError, InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import PureDP, Sensitivity
from accord.core.release import Release, ran
from accord.core.secret import PrivateRandomness, require_private
from accord.noise.numbers import as_sensitivity, laplace_tail, least_integer
from accord.noise.samplers import discrete_laplace

__all__ = ["AboveThreshold", "AboveThresholdRun", "RunStopped"]


class RunStopped(AccordError, RuntimeError):
    """The run has said "above" as often as it may: nothing more can be asked of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Compare queries, one at a time, with a threshold; stop after ``count`` answers "above".

    The threshold gets noise once a run, each query noise of its own; "above" is said if the noisy query reaches the
    noisy threshold. Any number of queries may be asked, each chosen in view of the earlier answers.

    Formal guarantees
    -----------------
    - Privacy: epsilon-DP under ``sensitivity.neighbouring`` for all answers of a run together, exactly. The sensitivity
      is the caller's claim, for each query.
    - Law: discrete Laplace noise on the grid of ``step``, of scale ``S / e1`` for the threshold and ``2 count S / e2``
      for a query, where ``e1 = threshold_share * epsilon``, ``e1 + e2 = epsilon`` and S is in whole steps. With
      ``count=1`` and half shares these are the scales of Dwork and Roth's algorithm 1.
    - A stopped run answers nothing; a run cannot be copied, pickled or used in a forked process, which would share its
      threshold noise.
    - Not promised: noisy values (releasing one costs extra); running time independent of the noise.

    Parameters
    ----------
    sensitivity
        Above 0: a `Sensitivity`, or a number for "replace one". For each query, over all
        neighbours, also those where the unit has another number of records or stands elsewhere.
    epsilon
        Above 0, at most 1000, for the whole run. Kept as an exact fraction.
    threshold
        Public. Kept as an exact fraction.
    count
        After how many answers "above" the run stops.
    step
        Every query is a whole multiple of this public number: 1 for counts.
    threshold_share
        Part of epsilon that is spent on the threshold, strictly between 0 and 1.

    Raises
    ------
    InvalidParameter
        Outside these ranges, or if the sensitivity is below one step.

    Source
    ------
    Dwork and Roth (2014), algorithm 1; Lyu, Su and Li (2017), algorithm 1 (not 3 to 6, which are not private);
    docs/proofs/above-threshold.md.

    Examples
    --------
    >>> mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=1000)
    >>> mechanism.release([0, 10, 2000, 0]).value
    (False, False, True)
    >>> run = mechanism.start()
    >>> run.ask(3000), run.stopped
    (True, True)

    """

    sensitivity: Sensitivity
    epsilon: Fraction
    threshold: Fraction
    count: int = 1
    step: Fraction = Fraction(1)
    threshold_share: Fraction = Fraction(1, 2)

    def __init__(
        self,
        *,
        sensitivity: Sensitivity | Number,
        epsilon: Number,
        threshold: Number,
        count: int = 1,
        step: Number = 1,
        threshold_share: Number = Fraction(1, 2),
    ) -> None:
        _check.store(
            self,
            sensitivity=as_sensitivity(sensitivity),
            epsilon=_check.epsilon(epsilon),
            threshold=_check.exact("threshold", threshold),
            count=_check.integer("count", count, least=1),
            step=_check.exact("step", step),
            threshold_share=_check.probability("threshold_share", threshold_share),
        )
        if self.step <= 0:
            raise InvalidParameter("step must be above 0: queries are whole multiples of it.")
        if self.sensitivity.bound < self.step:
            raise InvalidParameter(
                "sensitivity must be at least one step: a query on the grid that moves by less does not move at all."
            )

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of all answers of one run together."""
        return PureDP(self.epsilon, self.sensitivity.neighbouring)

    @property
    def threshold_scale(self) -> Fraction:
        """Scale of the threshold's noise, in steps."""
        return floor(self.sensitivity.bound / self.step) / (self.threshold_share * self.epsilon)

    @property
    def query_scale(self) -> Fraction:
        """Scale of each query's noise, in steps."""
        steps = floor(self.sensitivity.bound / self.step)
        return 2 * self.count * steps / ((1 - self.threshold_share) * self.epsilon)

    def start(self, *, randomness: PrivateRandomness | None = None) -> "AboveThresholdRun":
        """Draw the threshold's noise and return a run, which is asked one query at a time.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.

        """
        return AboveThresholdRun(self, randomness=require_private(randomness))

    def steps(self, query: Number) -> int:
        """Return a query's value in steps, or refuse it by name."""
        steps = _check.exact("query", query) / self.step
        if steps.denominator != 1:
            raise InvalidParameter("query must be a whole multiple of step: round it, and count that in sensitivity.")
        return steps.numerator

    def release(
        self, queries: Iterable[Number], *, randomness: PrivateRandomness | None = None
    ) -> Release[tuple[bool, ...]]:
        """Run over queries until the run stops or they end; an iterator is not asked for more. See also `start`.

        Returns
        -------
        Release
            Of one answer for each query asked; the last is True if the run stopped.

        Raises
        ------
        WrongRandomness
            If ``randomness`` is anything but secret.
        InvalidParameter
            If a query is not a multiple of ``step``. All are read before any noise is drawn, but those of an iterator,
            which are made one at a time: a refusal then shows that the run has come so far.

        """
        if not isinstance(queries, Iterator):
            queries = [self.steps(query) * self.step for query in queries]
        run = self.start(randomness=randomness)
        answers = []
        for query in queries:
            answers.append(run.ask(query))
            if run.stopped:
                break
        return Release(tuple(answers), self.guarantee, run.stages)

    def accuracy(self, *, queries: int, failure: Number) -> Fraction:
        """Return A such that, with probability at least ``1 - failure``, no answer is wrong by A or more.

        Among ``queries`` queries, then, none at or above ``threshold + A`` is answered "below" and none at or below
        ``threshold - A`` "above".

        Parameters
        ----------
        queries
            How many are asked, at least 1.
        failure
            Strictly between 0 and 1.

        """
        queries = _check.integer("queries", queries, least=1)
        half = _check.probability("failure", failure) / 2

        def reach(scale: Fraction, dimension: int) -> int:
            return least_integer(lambda h: laplace_tail(h, scale=scale, dimension=dimension) <= half)

        return (reach(self.threshold_scale, 1) + reach(self.query_scale, queries) - 1) * self.step


@final
class AboveThresholdRun:
    """One run of `AboveThreshold`, made by its ``start``. It holds secret noise: never show, copy or store it."""

    __slots__ = ("_lock", "_noisy_threshold", "_pid", "_randomness", "_remaining", "mechanism", "stages")

    def __init__(self, mechanism: AboveThreshold, *, randomness: PrivateRandomness) -> None:
        self.mechanism = mechanism
        self._randomness = randomness
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._remaining = mechanism.count
        # A whole number of steps reaches the threshold if and only if it reaches it rounded up.
        self._noisy_threshold = ceil(mechanism.threshold / mechanism.step) + self._noise(mechanism.threshold_scale)
        _, self.stages = ran(mechanism, mechanism.guarantee)

    def _noise(self, scale: Fraction) -> int:
        return int(discrete_laplace(scale, size=1, randomness=self._randomness)[0])

    @property
    def stopped(self) -> bool:
        """Whether the run has stopped. This follows from its answers."""
        return self._remaining == 0

    @property
    def guarantee(self) -> PureDP:
        """The guarantee of all answers together, however many are asked."""
        return self.mechanism.guarantee

    def ask(self, query: Number) -> bool:
        """Return whether a query is above the threshold, with noise.

        Parameters
        ----------
        query
            The query's value on the data: a whole multiple of ``step``.

        Raises
        ------
        InvalidParameter
            If it is not a multiple of ``step``. Nothing has been drawn then.
        RunStopped
            If the run has stopped, or was started in another process.

        """
        steps = self.mechanism.steps(query)
        if self._pid != os.getpid():
            raise RunStopped("this run belongs to another process: start a new one, which is charged again.")
        with self._lock:
            if self.stopped:
                raise RunStopped("this run has stopped: start a new one, which is charged again.")
            above = steps + self._noise(self.mechanism.query_scale) >= self._noisy_threshold
            self._remaining -= above
        return above

    def __reduce__(self) -> NoReturn:
        raise RunStopped("a run cannot be copied or stored: two copies would share their noise.")

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def __repr__(self) -> str:
        return f"AboveThresholdRun(stopped={self.stopped})"
