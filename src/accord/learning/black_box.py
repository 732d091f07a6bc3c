"""The private learner: learn again, from the records on which the blocks agreed."""

import copy
from dataclasses import dataclass
from typing import final

from numpy.typing import ArrayLike

from accord import _check
from accord._exact import Number
from accord.couplings import Coupling
from accord.distributions import Distribution
from accord.errors import InvalidParameter, NotEnoughRecords
from accord.learners import Learner
from accord.learning.blocks import Progress, count_units, unit_numbers
from accord.learning.isolation import Isolation
from accord.learning.records import as_records
from accord.learning.sampler import PrivateSampler
from accord.ledger import Ledger
from accord.planning import TheoremSizes, theorem_sizes
from accord.privacy import ApproxDP, NoAnswer, NoAnswerType, Release
from accord.randomness import PrivateRandomness, SharedRandomness, require_shared

__all__ = ["PrivateLearner", "TheoremSizes", "theorem_sizes"]


@final
@dataclass(frozen=True, slots=True)
class PrivateLearner:
    """Learn a distribution privately, with any learner as a black box (theory L9).

    A `PrivateSampler` releases l records on which the blocks agree; the same learner is fitted to them. Either state
    the accuracy (``alpha``, ``beta``: the sizes of the theorem, huge and certain) or the sizes (``blocks``,
    ``records``).

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, whatever the learner returns (M6: learning again looks
      only at released records).
    - Accuracy, with ``alpha`` and ``beta``: total variation below alpha with probability at least 1 - beta, if the
      learner's ``sample_complexity`` is true.
    - Not promised, with ``blocks`` and ``records``: an accuracy; or an answer at all.

    Parameters
    ----------
    learner
        Any `Learner`.
    epsilon, delta
        As in `PrivateSampler`.
    alpha, beta
        Accuracy and failure probability, strictly between 0 and 1; or leave both out.
    blocks, records
        k and l; required without alpha and beta, refused with them.
    draws
        R; 1 with alpha and beta.
    coupling, isolation
        As in `PrivateSampler`.

    Source
    ------
    theory L9, S9; proof page ``docs/proofs/sampler.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> learner = PrivateLearner(GaussianLearner(), epsilon=1, delta="1e-6", blocks=100, records=90, draws=8)
    >>> data = SharedRandomness(0).stream("example").normal(5.0, 2.0, size=20_000)
    >>> model = learner.release(data).value
    >>> bool(abs(model.mean[0] - 5.0) < 2.0)
    True

    """

    learner: Learner
    sampler: PrivateSampler
    required_records: int

    def __init__(
        self,
        learner: Learner,
        *,
        epsilon: Number,
        delta: Number,
        alpha: Number | None = None,
        beta: Number | None = None,
        blocks: int | None = None,
        records: int | None = None,
        draws: int = 1,
        coupling: Coupling | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        by_accuracy = alpha is not None and beta is not None and blocks is None and records is None and draws == 1
        by_size = alpha is None and beta is None and blocks is not None and records is not None
        if by_accuracy == by_size:
            message = "give either alpha and beta (the theorem's sizes), or blocks and records (and draws)."
            raise InvalidParameter(message)
        if alpha is not None and beta is not None:
            sizes = theorem_sizes(learner, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta)
            blocks, records, required = sizes.blocks, sizes.records, sizes.required_records
            delta = sizes.delta
        else:
            required = _check.integer("blocks", blocks, least=1)
        sampler = PrivateSampler(
            learner,
            epsilon=epsilon,
            delta=delta,
            blocks=_check.integer("blocks", blocks, least=1),
            records=_check.integer("records", records, least=1),
            draws=draws,
            coupling=coupling,
            isolation=isolation,
        )
        object.__setattr__(self, "learner", learner)
        object.__setattr__(self, "sampler", sampler)
        object.__setattr__(self, "required_records", required)

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return self.sampler.guarantee

    def release(
        self,
        data: ArrayLike,
        *,
        units: ArrayLike | None = None,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
        unit: str | None = None,
    ) -> Release[Distribution]:
        """Release a model, or no answer; the arguments are those of `PrivateSampler.release`.

        No answer is also given if the learner cannot fit the released records.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than `required_records`; nothing has been spent.

        """
        shared = require_shared(shared)
        units = None if units is None else unit_numbers(units)
        present = count_units(len(as_records(data)) if units is None else units)
        if self.sampler.blocks <= present < self.required_records:
            message = (
                f"too few records or units of privacy: there are {present}, and {self.required_records} are needed for "
                f"these settings. Nothing was spent."
            )
            raise NotEnoughRecords(message, needed=self.required_records, present=present)
        released = self.sampler.release(
            data, units=units, shared=shared, randomness=randomness, progress=progress, ledger=ledger, unit=unit
        )
        if isinstance(released.value, NoAnswerType):
            return Release(NoAnswer, released.guarantee)
        try:
            model = copy.deepcopy(self.learner).fit(released.value, seed=shared.seed("learn again"))
        except Exception:  # noqa: BLE001 - the budget is spent: this is a result, not an error to try again after
            return Release(NoAnswer, released.guarantee)
        return Release(model, released.guarantee)
