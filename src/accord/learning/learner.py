"""The private learner with sizes of one's own: learn again, from the records on which the blocks agreed."""

import math
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import ArrayLike

from accord._moved import learner_by_accuracy
from accord.core import check as _check
from accord.core.blocks import FarRecords, Progress, child_key
from accord.core.coupling import Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation
from accord.core.records import Records
from accord.core.release import NoAnswer, NoAnswerType, Release
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.verdict import Verdict, judge, within_larger
from accord.learners.traits import family_of, least_records, refuse_other_columns
from accord.learning.on_workers import reading
from accord.learning.sampler import PrivateSampler, learn_again, of_blocks
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of

__all__ = ["PrivateLearner"]


@final
@dataclass(frozen=True, slots=True)
class PrivateLearner:
    """Learn a distribution privately, with any learner as a black box and sizes of one's own.

    A `PrivateSampler` releases l records on which the blocks agree; the same learner is fitted to them. For sizes that
    promise an accuracy see `accord.theory.BlackBoxPrivateLearner`.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, ``(epsilon, delta)`` under replacing one unit, whatever the learner returns (M6: learning
      again looks only at released records).
    - Not promised: an accuracy; or an answer at all.

    Parameters
    ----------
    learner
        Any `Learner`.
    epsilon, delta
        As in `PrivateSampler`.
    blocks, records
        k and l.
    draws
        R.
    coupling, isolation
        As in `PrivateSampler`.
    again
        The learner of the released records; the same by default.

    Source
    ------
    theory L8, L9, S9; proof pages ``docs/proofs/private-learners.md`` and ``docs/proofs/sampler.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> learner = PrivateLearner(GaussianLearner(), epsilon=1, delta="1e-6", blocks=100, records=90, draws=8)
    >>> data = SharedRandomness(0).stream("example").normal(5.0, 2.0, size=20_000)
    >>> model = learner.release(data).value
    >>> bool(abs(model.mean[0] - 5.0) < 1.5)
    True

    """

    learner: Learner
    sampler: PrivateSampler
    again: Learner

    def __new__(cls, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - what 0.1 made of alpha and beta
        """Return a learner by accuracy where 0.1 did: for alpha and beta."""
        if "alpha" in named or "beta" in named:
            return learner_by_accuracy(*arguments, **named)
        return object.__new__(cls)

    def __init__(
        self,
        learner: Learner,
        *,
        epsilon: Number,
        delta: Number,
        blocks: int,
        records: int,
        draws: int = 1,
        coupling: Coupling | None = None,
        isolation: Isolation | None = None,
        again: Learner | None = None,
    ) -> None:
        sampler = PrivateSampler(
            learner,
            epsilon=epsilon,
            delta=delta,
            blocks=blocks,
            records=records,
            draws=draws,
            coupling=coupling,
            isolation=isolation,
        )
        _check.store(self, learner=learner, sampler=sampler, again=learner if again is None else again)

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return self.sampler.guarantee

    def check(self, units: int, *, columns: int | None = None) -> None:
        """Refuse data that cannot be used, by their public numbers alone; nothing is spent by it.

        Parameters
        ----------
        units
            Number of records, or of units of privacy.
        columns
            Number of columns.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than blocks.
        InvalidParameter
            If the columns are not as many as the learner has, its trait ``columns``, or ``records`` are fewer than
            its ``least_records(columns)``, where it has that method.

        """
        if units < self.sampler.blocks:
            message = (
                f"too few records or units of privacy: there are {units}, and {self.sampler.blocks} are needed for "
                f"these settings. Nothing was spent."
            )
            raise NotEnoughRecords(message, needed=self.sampler.blocks, present=units)
        if columns is not None:
            refuse_other_columns(self.learner, columns)
            self._refuse_short_tuples(columns)

    def release(
        self,
        data: ArrayLike | Records | FarRecords,
        *,
        units: ArrayLike | None = None,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
        unit: str | None = None,
        in_place_key: SharedRandomness | None = None,
    ) -> Release[Distribution]:
        """Release a model, or no answer; the arguments are those of `PrivateSampler.release`.

        No answer is also given if the learner cannot fit the released records, or makes something of them that is no
        law.

        Warns
        -----
        VerdictWarning
            As by `PrivateSampler.release`; also of a large typical error of the learner's family.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than blocks; nothing has been spent.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        isolation = self.sampler.isolation
        with reading(self.sampler.learner, data, units=units, unit=unit, isolation=isolation) as given:
            self.check(given.units, columns=given.dimension)
            judge(self._verdicts(given))
            with within_larger():
                released = self.sampler.release(
                    given,
                    shared=shared,
                    randomness=randomness,
                    progress=progress,
                    ledger=ledger,
                    in_place_key=child_key(in_place_key, "blocks"),
                )
        if isinstance(released.value, NoAnswerType):
            return Release(NoAnswer, released.guarantee, released.stages)
        model = learn_again(
            self.again, released.value, isolation=self.sampler.isolation, seed=shared.seed("learn again")
        )
        return Release(model, released.guarantee, released.stages)

    def rehearse(self, units: int, *, columns: int, named_units: bool = False) -> None:
        """Do what `PrivateSampler.rehearse` does."""
        self.sampler.rehearse(units, columns=columns, named_units=named_units)

    def _verdicts(self, given: Records | FarRecords) -> tuple[Verdict, ...]:
        """Return what public facts say against a release."""
        promise, sampler = self.guarantee, self.sampler
        stated = ApproxDP(promise.epsilon, promise.delta, promise.neighbouring, given.word)
        if sampler.coupling is not None:
            return verdicts_of(stated, units=given.units)
        columns = given.dimension
        blocks = of_blocks(sampler.learner, dimension=columns, blocks=sampler.blocks, units=given.units)
        typical = family_of(sampler.learner, dimension=columns).typical_error / math.sqrt(sampler.records)
        return (*verdicts_of(stated, units=given.units, typical_error=None if blocks else typical), *blocks)

    def _refuse_short_tuples(self, columns: int) -> None:
        """Refuse tuples from which the learner says that it cannot learn: its ``least_records(columns)``."""
        needed = least_records(self.again, columns=columns)
        if self.sampler.records < needed:
            message = (
                f"records must be at least {needed}, from which {type(self.again).__name__} can learn again, and is "
                f"{self.sampler.records}. Nothing was spent."
            )
            raise InvalidParameter(message)
