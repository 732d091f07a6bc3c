"""The boosted private learner: many models from disjoint parts, and the one with most neighbours."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from numpy.typing import ArrayLike

from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.blocks import Progress, child_key
from accord.core.coupling import Coupling, Learner
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation
from accord.core.records import Records
from accord.core.release import NoAnswer, NoAnswerType, Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.verdict import judge, within_larger
from accord.distributions import Categorical, Distribution, Measure, on_a_line
from accord.learners import EmpiricalLearner, GaussianLearner, HistogramLearner, MinimumDistanceLearner
from accord.learning._neighbours import Nearness, most_neighbours
from accord.learning._parts import cut_into_parts, of_one_part, together
from accord.learning._reach import not_enough
from accord.learning.black_box import PrivateLearner
from accord.learning.traits import read_for
from accord.learning.verdicts import verdicts_of
from accord.ledger import Ledger, spending
from accord.planning import Plan, boosted_sizes, plan
from accord.planning.plan import Method

__all__ = ["BoostedPrivateLearner"]

_PART_FAILURE = Fraction(1, 8)
_PART_DELTA = Fraction(1, 32)
_MARGIN = Fraction(1, 10)
_OF_FAILURES = 36
"""Half of the parts fail with probability at most beta^36 (proof page)."""


@final
@dataclass(frozen=True, slots=True)
class BoostedPrivateLearner:
    """Learn a distribution privately with a failure probability that costs a logarithm only (theory L10).

    T `PrivateLearner` on disjoint parts, each at ``alpha / 3`` and failure 1/8; of their models the first with most
    neighbours is returned: those within twice ``alpha / 3`` in total variation.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, that of one part, at most ``(epsilon, delta)``, under replacing one unit, whatever the
      learner returns: a unit is in one part (C1), and choosing among the models reads nothing else (M6).
    - Accuracy: total variation below alpha with probability at least 1 - beta, if the learner's ``sample_complexity``
      is true; with ``coupling``, under the same condition as for `PrivateLearner`.
    - Parts without an answer have no vote and are not chosen. No answer at all only if no part has one.
    - Distances between models are worked out by formula (float errors are at most 2e-9); where there is none, by draws
      whose error fits into ``margin``.
    - Not promised: accuracy with ``margin=0`` where no formula is known for two models: they are no neighbours then.

    Parameters
    ----------
    learner
        Any `Learner` with a ``sample_complexity``.
    alpha, beta
        Accuracy and failure probability, strictly between 0 and 1.
    epsilon, delta
        Above 0, at most 1 (certified: 10); strictly between 0 and 1.
    method
        "theorem" (L10 to the letter), or "certified": one part, with the sizes of `PrivateLearner`, where best of draws
        takes the place of boosting.
    margin
        Share of ``alpha / 3`` that is set aside for the error of distances that have no formula, 0 to 1/2: parts are
        that much more accurate. By default 0 for the learners whose laws have formulas (labels, normal laws,
        histograms, lists of laws on labels or of densities on a line with known masses of intervals), 1/10 for others.
    coupling, isolation
        As in `PrivateSampler`.

    Source
    ------
    theory L10, C1, S9; proof page ``docs/proofs/private-learners.md``.

    Examples
    --------
    >>> from accord.learners import EmpiricalLearner
    >>> settings = {"alpha": "0.5", "epsilon": 1, "delta": "1e-6"}
    >>> learner = BoostedPrivateLearner(EmpiricalLearner(["no", "yes"]), beta="0.01", **settings)
    >>> learner.parts, learner.required_records == learner.parts * learner.part.required_records
    (590, True)
    >>> twice = BoostedPrivateLearner(EmpiricalLearner(["no", "yes"]), beta="0.0001", **settings)
    >>> twice.required_records == 2 * learner.required_records - learner.part.required_records
    True

    """

    learner: Learner
    alpha: Fraction
    beta: Fraction
    method: Method
    margin: Fraction
    parts: int
    part: PrivateLearner

    def __init__(
        self,
        learner: Learner,
        *,
        alpha: Number,
        beta: Number,
        epsilon: Number,
        delta: Number,
        method: Method = "theorem",
        margin: Number | None = None,
        coupling: Coupling | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
        slack = _check.delta(delta)
        share = _default_margin(learner) if margin is None else _check.exact("margin", margin)
        if not 0 <= share <= Fraction(1, 2):
            raise InvalidParameter("margin must be from 0 to 1/2.")
        parts = 1
        if method == "theorem":
            parts = boosted_sizes(learner, alpha=accuracy, beta=failure, epsilon=epsilon, delta=slack).parts
            slack = min(slack, _PART_DELTA)
        part = PrivateLearner(
            learner,
            alpha=accuracy if method != "theorem" else accuracy / 3 * (1 - share),
            beta=failure if method != "theorem" else _PART_FAILURE,
            epsilon=epsilon,
            delta=slack,
            method=method,
            coupling=coupling,
            isolation=isolation,
        )
        for name, value in (
            ("learner", learner),
            ("alpha", accuracy),
            ("beta", failure),
            ("method", method),
            ("margin", share),
            ("parts", parts),
            ("part", part),
        ):
            object.__setattr__(self, name, value)

    @property
    def required_records(self) -> int:
        """Fewer records, or units of privacy, are refused: n = T k b."""
        return self.parts * self.part.required_records

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return together(self.part.guarantee, parts=self.parts)

    def release(
        self,
        data: ArrayLike | Records,
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

        More units than `required_records` make all parts larger, and the blocks in them as `PrivateLearner.use_of`
        says; fewer units than there are parts are left out. The ledger is charged once, for all parts together.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than `required_records`; nothing has been spent. The text names the alpha that
            they can reach.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        given = read_for(self.part.sampler.learner, data, units=units, unit=unit)
        self._check(given)
        guarantee = together(self.part.guarantee, parts=self.parts, word=given.word, in_place_key=in_place_key)
        judge(verdicts_of(guarantee, units=given.units))
        with spending(ledger, guarantee, what=self._summary()), composing("parallel") as run:
            models = self._models(
                cut_into_parts(
                    given, parts=self.parts, in_place_key=child_key(in_place_key, "parts"), randomness=randomness
                ),
                shared=shared,
                randomness=randomness,
                progress=progress,
                in_place_key=in_place_key,
            )
            best = most_neighbours(models, nearness=self._nearness(), shared=shared.child("distances"))
        chosen = None if best is None else models[best]
        return Release(NoAnswer if chosen is None else chosen, guarantee, settled(run, guarantee))

    def _models(
        self,
        parts: Iterable[Records],
        *,
        shared: SharedRandomness,
        randomness: PrivateRandomness,
        progress: Progress | None,
        in_place_key: SharedRandomness | None,
    ) -> list[Distribution | None]:
        """Return one model a part, None where there was no answer."""
        models: list[Distribution | None] = []
        for number, part in enumerate(parts):
            with within_larger():
                released = self.part.release(
                    part,
                    shared=shared.child("part", number),
                    randomness=randomness,
                    progress=of_one_part(progress, part=number, parts=self.parts),
                    in_place_key=child_key(in_place_key, "part", number),
                )
            models.append(None if isinstance(released.value, NoAnswerType) else released.value)
        return models

    def _nearness(self) -> Nearness:
        far = 2 * self.alpha / 3
        pairs = max(1, self.parts * (self.parts - 1) // 2)
        failure = float(self.beta) * (1 - float(self.beta) ** (_OF_FAILURES - 1)) / pairs
        return Nearness(near=far * (1 - self.margin), far=far, failure=failure)

    def _check(self, given: Records) -> None:
        asked = self.part.plan
        if asked is not None and given.units < self.required_records:

            def plan_at(alpha: Fraction) -> Plan:
                return plan(
                    self.learner,
                    alpha=alpha if self.method != "theorem" else alpha * (1 - self.margin),
                    beta=self.beta,
                    epsilon=asked.certificate.numbers["epsilon"],
                    delta=asked.certificate.numbers["delta"],
                    method=self.method,
                    learner="boosted",
                )

            raise not_enough(needed=self.required_records, present=given.units, alpha=self.alpha, plan_at=plan_at)
        units, columns = given.units // self.parts, given.rows.shape[1]
        self.part.check(units, columns=columns)
        self.part.rehearse(units, columns=columns, named_units=given.owners is not None)

    def _summary(self) -> str:
        """Public words for a ledger."""
        sampler = self.part.sampler
        return (
            f"boosted private learner: {type(self.learner).__name__}, {self.parts} parts, {sampler.blocks} blocks, "
            f"{sampler.records} records, {sampler.draws} draws"
        )


def _default_margin(learner: Learner) -> Fraction:
    """Return 0 where all laws that the learner gives have formulas for their total variation."""
    known = isinstance(learner, (EmpiricalLearner, HistogramLearner, GaussianLearner))
    listed = isinstance(learner, MinimumDistanceLearner) and all(map(_has_formulas, learner.candidates))
    return Fraction(0) if known or listed else _MARGIN


def _has_formulas(law: Distribution) -> bool:
    """Whether the total variation of this law and others of the kind is worked out by formula, whatever the pair."""
    if isinstance(law, Categorical):
        return True
    return law.measure is Measure.LEBESGUE and on_a_line(law) is not None
