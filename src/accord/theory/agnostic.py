"""The agnostic private learner: one private record from each of many parts, and a learner for records off its class."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.accounting.of_stages import settled
from accord.core import check as _check
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
from accord.distributions.categorical import label_array
from accord.learners.traits import least_records, listed_laws, read_for, refuse_other_columns, traits_of
from accord.learning.sampler import PrivateSampler, learn_again
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of
from accord.theory.grand import require_premises, single_coupling
from accord.theory.parts import cut_into_parts, not_enough, of_one_part, together
from accord.theory.planning import plan as plan_sizes
from accord.theory.planning.plan import Method, Plan

__all__ = ["AgnosticPrivateLearner"]


@final
@dataclass(frozen=True, slots=True)
class AgnosticPrivateLearner:
    """Learn a distribution privately that need not belong to the learner's class (theory L11).

    The units are cut into T parts and each part into k blocks. The blocks of a part agree on a single record, by a
    `PrivateSampler` with l = 1; the learner is fitted to the T records.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, that of one part, at most ``(epsilon, delta)``, under replacing one unit, whatever the
      learner returns: a unit is in one part (C1), and learning from the T records is post-processing (M6).
    - Accuracy, with ``alpha`` and ``beta``: total variation at most ``(8 C^2 + 9 C) OPT + alpha`` with probability at
      least 1 - beta, for OPT the total variation of the truth to the class, if the learner has ``C OPT + alpha`` from
      ``sample_complexity`` records on and the coupling has marginals and agreement as theory 4 asks (G1, G2).
    - A part without an answer gives the public record ``stand_in``; no answer at all only if no part has one.
    - Not promised, with ``parts`` and ``blocks``: an accuracy.

    Parameters
    ----------
    learner
        Offers ``agnostic_factor`` (C), as `MinimumDistanceLearner` does, and ``sample_complexity`` for laws off its
        class.
    epsilon, delta
        As in `PrivateSampler`; with ``alpha`` and ``beta`` epsilon is at most 1.
    alpha, beta
        Strictly between 0 and 1; or leave both out.
    method
        "theorem" (L11 to the letter); the planner has no certified sizes for this learner.
    parts, blocks
        T and k; required without alpha and beta, refused with them.
    agnostic_factor
        C, where the learner does not offer it; at least 1.
    coupling
        One for single records. By default, for a shipped learner or the learner's public ``candidates``: a race on
        labels, a hashed lattice for laws with bounded densities, Couple I over the even mixture of other candidates.
    stand_in
        A public record, shape (d,). By default a draw from the first candidate, the first label, or zeros.
    isolation
        As in `PrivateSampler`.

    Source
    ------
    theory L11, L12, C1; proof page ``docs/proofs/private-learners.md``.

    Examples
    --------
    >>> from accord.learners import EmpiricalLearner
    >>> learner = AgnosticPrivateLearner(
    ...     EmpiricalLearner(["no", "yes"]), agnostic_factor=1, alpha="0.5", beta="0.5", epsilon=1, delta="1e-6"
    ... )
    >>> learner.parts, learner.sampler.blocks, learner.sampler.records
    (20, 444, 1)
    >>> learner.error_bound("0.01")
    Fraction(67, 100)

    """

    learner: Learner
    sampler: PrivateSampler
    parts: int
    required_records: int
    plan: Plan | None
    agnostic_factor: Fraction | None
    stand_in: tuple[Any, ...] | None

    def __init__(
        self,
        learner: Learner,
        *,
        epsilon: Number,
        delta: Number,
        alpha: Number | None = None,
        beta: Number | None = None,
        method: Method | None = None,
        parts: int | None = None,
        blocks: int | None = None,
        agnostic_factor: Number | None = None,
        coupling: Coupling | None = None,
        stand_in: ArrayLike | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        by_accuracy = alpha is not None and beta is not None and parts is None and blocks is None
        by_size = alpha is None and beta is None and method is None and parts is not None and blocks is not None
        if by_accuracy == by_size:
            raise InvalidParameter(
                "give either alpha and beta, or the sizes parts and blocks, which come without a promise of accuracy."
            )
        offered = getattr(learner, "agnostic_factor", None) if agnostic_factor is None else agnostic_factor
        factor = None if offered is None else _check.exact("agnostic_factor", offered)
        plan = None
        if alpha is not None and beta is not None:
            if factor is None:
                raise InvalidParameter(
                    f"{type(learner).__name__} has no agnostic_factor: give agnostic_factor=C if its total variation "
                    f"is at most C OPT + alpha for every law, or take MinimumDistanceLearner."
                )
            plan = plan_sizes(
                learner,
                alpha=alpha,
                beta=beta,
                epsilon=epsilon,
                delta=delta,
                method=method or "theorem",
                learner="agnostic",
                agnostic_factor=factor,
            )
            if coupling is not None:
                require_premises(coupling, records=1)
            parts, blocks, delta = plan.parts, plan.blocks, Fraction(plan.certificate.numbers["delta_used"])
        sampler = PrivateSampler(
            learner,
            epsilon=epsilon,
            delta=delta,
            blocks=_check.integer("blocks", blocks, least=1),
            records=1,
            coupling=single_coupling(learner) if coupling is None else coupling,
            isolation=isolation,
        )
        count = _check.integer("parts", parts, least=1)
        _check.store(
            self,
            learner=learner,
            sampler=sampler,
            parts=count,
            required_records=count * sampler.blocks if plan is None else plan.records,
            plan=plan,
            agnostic_factor=factor,
            stand_in=_stand_in(learner) if stand_in is None else tuple(np.atleast_1d(np.asarray(stand_in))),
        )

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return together(self.sampler.guarantee, parts=self.parts)

    def error_bound(self, distance: Number) -> Fraction:
        """Return ``(8 C^2 + 9 C) OPT + alpha``, the promised total variation; it may be above 1.

        Parameters
        ----------
        distance
            OPT, the total variation of the truth to the class, from 0 to 1.

        Raises
        ------
        InvalidParameter
            If sizes were given instead of alpha and beta.

        """
        best = _check.exact("distance", distance)
        if not 0 <= best <= 1:
            raise InvalidParameter("distance must be from 0 to 1.")
        if self.plan is None or self.agnostic_factor is None:
            raise InvalidParameter("an error is promised with alpha and beta, not with parts and blocks.")
        factor = self.agnostic_factor
        return (8 * factor**2 + 9 * factor) * best + Fraction(self.plan.certificate.numbers["alpha"])

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

        More units than `required_records` make all blocks larger; fewer than one a part and a block are left out. The
        ledger is charged once, for all parts together.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than `required_records`; nothing has been spent. The text names the alpha that
            they can reach.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        given = read_for(self.sampler.learner, data, units=units, unit=unit)
        self._check(given)
        guarantee = together(self.sampler.guarantee, parts=self.parts, word=given.word, in_place_key=in_place_key)
        judge(verdicts_of(guarantee, units=given.units))
        with spending(ledger, guarantee, what=self._summary()), composing("parallel") as run:
            records = self._records(
                given, shared=shared, randomness=randomness, progress=progress, in_place_key=in_place_key
            )
            if records is None:
                return Release(NoAnswer, guarantee, settled(run, guarantee))
            model = learn_again(
                self.learner, records, isolation=self.sampler.isolation, seed=shared.seed("learn again")
            )
        return Release(model, guarantee, settled(run, guarantee))

    def _records(
        self,
        given: Records,
        *,
        shared: SharedRandomness,
        randomness: PrivateRandomness,
        progress: Progress | None,
        in_place_key: SharedRandomness | None,
    ) -> NDArray[Any] | None:
        """Return one record a part, shape (T, d); None if no part has an answer."""
        found = list(
            self._singles(given, shared=shared, randomness=randomness, progress=progress, in_place_key=in_place_key)
        )
        answered = [record for record in found if record is not None]
        if not answered:
            return None
        public = _row(self.stand_in, like=answered[0])
        return np.concatenate([public if record is None else record for record in found])

    def _singles(
        self,
        given: Records,
        *,
        shared: SharedRandomness,
        randomness: PrivateRandomness,
        progress: Progress | None,
        in_place_key: SharedRandomness | None,
    ) -> Iterator[NDArray[Any] | None]:
        for number, part in enumerate(
            cut_into_parts(
                given, parts=self.parts, in_place_key=child_key(in_place_key, "parts"), randomness=randomness
            )
        ):
            with within_larger():
                released = self.sampler.release(
                    part,
                    shared=shared.child("part", number),
                    randomness=randomness,
                    progress=of_one_part(progress, part=number, parts=self.parts),
                    in_place_key=child_key(in_place_key, "part", number),
                )
            yield None if isinstance(released.value, NoAnswerType) else released.value

    def _check(self, given: Records) -> None:
        if given.units < self.required_records:
            raise self._not_enough(given.units)
        columns = given.rows.shape[1]
        refuse_other_columns(self.learner, columns)
        if self.stand_in is not None and len(self.stand_in) != columns:
            raise InvalidParameter("stand_in must be one record, with as many cells as the data have columns.")
        needed = least_records(self.learner, columns=columns)
        if self.parts < needed:
            raise InvalidParameter(
                f"parts must be at least {needed}, as {type(self.learner).__name__} learns again from one record of "
                f"each, and is {self.parts}. Nothing was spent."
            )
        self.sampler.rehearse(given.units // self.parts, columns=columns, named_units=given.owners is not None)

    def _not_enough(self, units: int) -> Exception:
        if self.plan is None:
            return not_enough(needed=self.required_records, present=units)
        numbers = self.plan.certificate.numbers

        def plan_at(alpha: Fraction) -> Plan:
            asked = {name: numbers[name] for name in ("beta", "epsilon", "delta", "agnostic_factor")}
            return plan_sizes(self.learner, alpha=alpha, learner="agnostic", **asked)

        return not_enough(
            needed=self.required_records, present=units, alpha=Fraction(numbers["alpha"]), plan_at=plan_at
        )

    def _summary(self) -> str:
        """Public words for a ledger."""
        return (
            f"agnostic private learner: {type(self.learner).__name__}, {self.parts} parts, {self.sampler.blocks} "
            f"blocks, one record a part"
        )


def _stand_in(learner: Learner) -> tuple[Any, ...] | None:
    """Return a public record that the learner can read, None for zeros."""
    labels = traits_of(learner).labels
    if labels is not None:
        return labels[:1]
    candidates = listed_laws(learner)
    if not candidates:
        return None
    return tuple(candidates[0].sample(1, SharedRandomness("stand-in").stream("record"))[0])


def _row(record: tuple[Any, ...] | None, *, like: NDArray[Any]) -> NDArray[Any]:
    """Return the public record as a row, shape (1, d)."""
    if record is None:
        return np.zeros_like(like)
    row = label_array(record) if like.dtype.kind not in "fiu" else np.asarray(record, dtype=like.dtype)
    return row[None, :]
