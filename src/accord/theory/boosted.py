"""The boosted private learner: many models from disjoint parts, and the one with most neighbours."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.alone import alone
from accord.core.blocks import Progress, child_key
from accord.core.coupling import Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation
from accord.core.records import Records
from accord.core.release import NoAnswer, NoAnswerType, Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.spending import spending
from accord.core.verdict import judge, within_larger
from accord.distributions import Categorical
from accord.distributions.categorical import label_keys
from accord.laws import estimate_total_variation, total_variation
from accord.learners.traits import read_for, traits_of
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of
from accord.theory.black_box import BlackBoxPrivateLearner
from accord.theory.parts import cut_into_parts, not_enough, of_one_part, together
from accord.theory.planning import plan
from accord.theory.planning.plan import Method, Plan
from accord.theory.planning.theorems import boosted_sizes

__all__ = [
    "BoostedPrivateLearner",
    "Nearness",
    "most_neighbours",
]


_FIRST_SAMPLES = 1000
_GROWTH = 4
_UNSURE = 1e-9  # float distances that are so near to the bound are worked out exactly


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """When two models are neighbours (proof page ``docs/proofs/private-learners.md``).

    Where a formula is known: if their total variation is at most ``far``. Elsewhere by draws, so that models within
    ``near`` of each other are neighbours and models more than ``far`` apart are not, but for a probability of
    ``failure`` a pair; with ``near = far`` there are no draws, and such pairs are no neighbours.

    Parameters
    ----------
    near, far
        ``near <= far``.
    failure
        Of one pair.

    """

    near: Fraction
    far: Fraction
    failure: float

    def holds(self, p: Distribution, q: Distribution, *, shared: SharedRandomness) -> bool:
        """Return whether two models are neighbours; a model that cannot be compared has none."""
        known = alone(lambda: self._by_formula(p, q), failed=False)
        if known is None:
            return alone(lambda: self.near < self.far and self._by_draws(p, q, shared=shared), failed=False)
        return known

    def _by_formula(self, p: Distribution, q: Distribution) -> bool | None:
        """Return whether the distance is at most ``far``, None where no formula is known."""
        try:
            return bool(total_variation(p, q) <= self.far)
        except InvalidParameter:
            return None

    def _by_draws(self, p: Distribution, q: Distribution, *, shared: SharedRandomness) -> bool:
        """Draw until the interval leaves out what is above ``far``, or what is within ``near``.

        Stage s may fail with probability ``failure / 2^(s + 1)``. Once the interval is no longer than ``far - near``,
        one of the two holds.
        """
        stage = 0
        while True:
            risk = self.failure / 2 ** (stage + 1)
            found = estimate_total_variation(
                p,
                q,
                samples=min(_FIRST_SAMPLES * _GROWTH**stage, self._enough(risk)),
                generator=shared.stream(stage),
                failure=risk,
            )
            if found.high <= self.far:
                return True
            if found.low > self.near:
                return False
            stage += 1

    def _enough(self, risk: float) -> int:
        """Return the draws at which Hoeffding's interval is shorter than ``far - near``: a little more than twice."""
        return math.ceil(2.01 * math.log(4 / risk) / float(self.far - self.near) ** 2) + 1


def most_neighbours(
    models: Sequence[Distribution | None], *, nearness: Nearness, shared: SharedRandomness
) -> int | None:
    """Return the first index t with the largest ``N_t = #{i: models i and t are neighbours}``; None without models.

    Parameters
    ----------
    models
        One a part; None for a part without an answer, which has no neighbours and is nobody's.
    nearness
        Equal models are always neighbours.
    shared
        Gives the pair (i, j) of distinct models its draws.

    """
    number, distinct = _distinct(models)
    if not distinct:
        return None
    near = np.eye(len(distinct), dtype=np.bool_)
    tables = _tables(distinct)
    for i, p in enumerate(distinct):
        known = None if tables is None else 0.5 * np.abs(tables[i + 1 :] - tables[i]).sum(axis=1) - float(nearness.far)
        for j in range(i + 1, len(distinct)):
            gap = 0.0 if known is None else float(known[j - i - 1])
            if abs(gap) > _UNSURE:
                near[i, j] = near[j, i] = gap < 0
            else:
                near[i, j] = near[j, i] = nearness.holds(p, distinct[j], shared=shared.child(i, j))
    members = np.bincount([index for index in number if index is not None], minlength=len(distinct))
    counts = near @ members
    best = [counts[index] if index is not None else -1 for index in number]
    return int(np.argmax(best))


def _distinct(models: Sequence[Distribution | None]) -> tuple[list[int | None], list[Distribution]]:
    """Return which distinct model each part has, and the distinct models in order of appearance."""
    seen: dict[object, int] = {}
    distinct: list[Distribution] = []
    number: list[int | None] = []
    for model in models:
        if model is None:
            number.append(None)
            continue
        place = alone(partial(seen.setdefault, model, len(distinct)), failed=len(distinct))  # without a hash: its own
        if place == len(distinct):
            distinct.append(model)
        number.append(place)
    return number, distinct


def _tables(models: Sequence[Distribution]) -> NDArray[np.float64] | None:
    """Return the probabilities of laws on one list of labels, shape (models, labels); None for other laws."""
    laws = [law for law in models if type(law) is Categorical]
    if len(laws) < len(models):
        return None
    labels = label_keys(laws[0].categories)
    if any(label_keys(law.categories) != labels for law in laws[1:]):
        return None
    return np.array([law.probabilities for law in laws])


_PART_FAILURE = Fraction(1, 8)
_PART_DELTA = Fraction(1, 32)
_MARGIN = Fraction(1, 10)
_OF_FAILURES = 36
"""Half of the parts fail with probability at most beta^36 (proof page)."""


@final
@dataclass(frozen=True, slots=True)
class BoostedPrivateLearner:
    """Learn a distribution privately with a failure probability that costs a logarithm only (theory L10).

    T `BlackBoxPrivateLearner` on disjoint parts, each at ``alpha / 3`` and failure 1/8; of their models the first with
    most neighbours is returned: those within twice ``alpha / 3`` in total variation.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, that of one part, at most ``(epsilon, delta)``, under replacing one unit, whatever the
      learner returns: a unit is in one part (C1), and choosing among the models reads nothing else (M6).
    - Accuracy: total variation below alpha with probability at least 1 - beta, if the learner's ``sample_complexity``
      is true; with ``coupling``, under the same condition as for `BlackBoxPrivateLearner`.
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
        "theorem" (L10 to the letter), or "certified": one part, with the sizes of `BlackBoxPrivateLearner`, where best
        of draws takes the place of boosting.
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
    part: BlackBoxPrivateLearner

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
        part = BlackBoxPrivateLearner(
            learner,
            alpha=accuracy if method != "theorem" else accuracy / 3 * (1 - share),
            beta=failure if method != "theorem" else _PART_FAILURE,
            epsilon=epsilon,
            delta=slack,
            method=method,
            coupling=coupling,
            isolation=isolation,
        )
        _check.store(
            self, learner=learner, alpha=accuracy, beta=failure, method=method, margin=share, parts=parts, part=part
        )

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

        More units than `required_records` make all parts larger, and the blocks in them as
        `BlackBoxPrivateLearner.use_of` says; fewer units than there are parts are left out. The ledger is charged once,
        for all parts together.

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
    return Fraction(0) if traits_of(learner).formulas else _MARGIN
