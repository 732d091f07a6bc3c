"""Two releases from the same blocks: a coarse law, then a tuple on which the blocks agree about it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, final, runtime_checkable

from numpy.typing import ArrayLike, NDArray

from accord.accounting.figures import short_text
from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.aggregate import aggregate, selection
from accord.core.alone import alone
from accord.core.best_of_draws import BestOfDraws
from accord.core.blocks import Progress, fit_blocks, partition, relation_of
from accord.core.budget import Budget
from accord.core.coupling import ABSTAIN, Coupling, Distribution, Learner
from accord.core.errors import FitFailed, InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.isolation import Fitted, Isolation, SealedLaw
from accord.core.records import Records
from accord.core.release import NoAnswer, NoAnswerType, Release, Stage, composing, note
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.spending import spending
from accord.core.stable_mode import StableMode
from accord.core.verdict import judge, within_larger
from accord.couplings import ModelReference, TwoStageCoupling, widened
from accord.couplings.two_stage import WideReference
from accord.learners.traits import least_records, read_for, traits_of
from accord.learning.learner import PrivateLearner
from accord.learning.rehearsal import MOST_ROWS, rehearse_votes
from accord.learning.sampler import PrivateSampler
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of

__all__ = [
    "CoarseRelease",
    "CoarseVotes",
    "TwoStageSampler",
    "stages_of",
]


_HALF = Fraction(1, 2)


@runtime_checkable
class CoarseRelease(Protocol):
    """A private release of a law with a guarantee of its own, such as a `PrivateLearner`."""

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What it promises under replacing one unit."""

    def release(
        self,
        data: ArrayLike,
        *,
        units: ArrayLike | None = None,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        unit: str | None = None,
    ) -> Release[Any]:
        """Release a law, or no answer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoarseVotes:
    """A first stage on the blocks' own fits: the learner's law of records on which they agree.

    Parameters
    ----------
    coupling
        Any coupling of the learner's laws: `ShiftRounding` for normal laws in any dimension.
    records
        Of the tuple that the first stage agrees on.
    draws
        Independent draws of the coupling.

    """

    coupling: Coupling
    records: int
    draws: int = 1

    def __post_init__(self) -> None:
        _check.store(self, records=_check.integer("records", self.records, least=1))
        _check.store(self, draws=_check.integer("draws", self.draws, least=1, most=100_000))


def stages_of(
    first: CoarseVotes | CoarseRelease, *, epsilon: Fraction, delta: Fraction, share: Number | None
) -> tuple[PureDP | ApproxDP, ApproxDP]:
    """Return the guarantees of both stages; their basic composition is (epsilon, delta), exactly."""
    whole = Budget(epsilon, delta)
    if isinstance(first, CoarseVotes):
        part = _HALF if share is None else _check.probability("share", share)
        parts = whole.split({"first": part, "second": 1 - part})
        own: PureDP | ApproxDP = ApproxDP(parts["first"].epsilon, parts["first"].delta)
    elif isinstance(first, CoarseRelease):
        own = first.guarantee
        if share is not None:
            raise InvalidParameter("share is for CoarseVotes: a CoarseRelease has a guarantee of its own.")
        if not isinstance(own, (PureDP, ApproxDP)) or own.neighbouring is not Neighbouring.REPLACE_ONE:
            raise InvalidParameter("the first stage must promise privacy under replacing one unit.")
        if not (own.epsilon < epsilon and own.delta < delta):
            raise InvalidParameter("epsilon and delta must be above those of the first stage: it is part of the total.")
    else:
        raise InvalidParameter("first must be CoarseVotes, or have a guarantee and a release.")
    rest = whole - Budget(own.epsilon, own.delta)
    return own, ApproxDP(_check.epsilon(rest.epsilon), _check.delta(rest.delta))


_COPIES = Isolation()
_MODELS = 64
_MOST_CANDIDATES = 1 << 24
_FEW_CANDIDATES = 256


@final
@dataclass(frozen=True, slots=True)
class TwoStageSampler:
    """Release l synthetic records on which blocks agree, where no coupling covers their laws beforehand (theory S4).

    The first stage releases a coarse law. The second draws candidates about it and couples the blocks' tuples among
    them (`TwoStageCoupling`). Partition and fits are made once and serve both.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, the sum of both `stages`: given whatever the first stage
      released, the second is private by itself (adaptive composition, C2).
    - One charge of the total before the first fit to records. If the first stage has no answer, neither has the
      second, and the total is spent.
    - Laws that a stage's coupling cannot take, by fits to made-up tables, are refused before that charge.
    - Not promised: an answer. With ``draws > 1`` the law of the tuple is selected. Records follow the blocks' laws only
      as far as the candidates serve them: `TwoStageCoupling.diagnose`.

    Parameters
    ----------
    learner
        Any `Learner`.
    epsilon, delta
        Of both stages together.
    blocks
        k.
    records
        l, the records of the released tuple; for `GaussianLearner` at least d + 1.
    draws
        R of the second stage.
    first
        `CoarseVotes`, or a `CoarseRelease`, whose guarantee is taken out of the total.
    share
        The part of epsilon and delta that `CoarseVotes` get, strictly between 0 and 1; a half by default.
    strength
        How many records the coarse law is worth; fewer spread the candidates wider. For `CoarseVotes` by default
        ``1 / (1 / (records of the first stage) + 1 / (size of a block))``; must be given for a `CoarseRelease`.
    models
        How many bootstrap fits surround the coarse law, where the learner is not `GaussianLearner`.
    candidates
        N; by default from public numbers, see `TwoStageCoupling`.
    reference
        Makes the candidates' law from the coarse one, in place of all this; must not look at data.
    isolation
        As in `PrivateSampler`.

    Source
    ------
    theory L8, S4, S9, C2; proof page ``docs/proofs/two-stage.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> from accord.couplings import ShiftRounding
    >>> first = CoarseVotes(coupling=ShiftRounding(dimension=3), records=100, draws=500)
    >>> sampler = TwoStageSampler(
    ...     GaussianLearner(), epsilon=4, delta="1e-6", blocks=50, records=40, draws=8, first=first
    ... )
    >>> data = SharedRandomness(0).stream("example").normal(size=(30_000, 3))
    >>> release = sampler.release(data, shared=SharedRandomness(1))
    >>> release.guarantee.epsilon, [str(stage.epsilon) for stage in sampler.stages]
    (Fraction(4, 1), ['2', '2'])

    """

    learner: Learner
    epsilon: Fraction
    delta: Fraction
    blocks: int
    records: int
    draws: int
    first: CoarseVotes | CoarseRelease
    stages: tuple[PureDP | ApproxDP, ApproxDP]
    strength: Fraction | None
    models: int
    candidates: int | None
    reference: Callable[[Distribution], WideReference] | None
    isolation: Isolation

    def __init__(
        self,
        learner: Learner,
        *,
        epsilon: Number,
        delta: Number,
        blocks: int,
        records: int,
        draws: int = 1,
        first: CoarseVotes | CoarseRelease,
        share: Number | None = None,
        strength: Number | None = None,
        models: int = _MODELS,
        candidates: int | None = None,
        reference: Callable[[Distribution], WideReference] | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        total, slack = _check.epsilon(epsilon), _check.delta(delta)
        stages = stages_of(first, epsilon=total, delta=slack, share=share)
        if not isinstance(first, CoarseVotes) and strength is None and reference is None:
            raise InvalidParameter("strength must say how many records the law of a CoarseRelease is worth.")
        worth = None if strength is None else _check.exact("strength", strength)
        if worth is not None and not worth >= 1:
            raise InvalidParameter("strength must be at least 1.")
        if reference is not None and not callable(reference):
            raise InvalidParameter("reference must be a function that makes a reference from the coarse law.")
        # What a sampler refuses at the second stage's budget is refused here too.
        second = PrivateSampler(
            learner, epsilon=stages[1].epsilon, delta=stages[1].delta, blocks=blocks, records=records, draws=draws
        )
        _check.store(
            self,
            learner=learner,
            epsilon=total,
            delta=slack,
            blocks=second.blocks,
            records=second.records,
            draws=second.draws,
            first=first,
            stages=stages,
            strength=worth,
            models=_check.integer("models", models, least=2),
            candidates=None
            if candidates is None
            else _check.integer("candidates", candidates, least=1, most=_MOST_CANDIDATES),
            reference=reference,
            isolation=isolation or _COPIES,
        )
        if isinstance(first, CoarseVotes):
            self._coarse_mode(first)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """The sum of the stages, exactly: what a release promises when each record is a unit of its own."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE)

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
    ) -> Release[NDArray[Any]]:
        """Release one tuple of ``records`` records, or no answer; the arguments are those of `PrivateSampler.release`.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than blocks; nothing has been spent.
        BudgetExceeded
            If the ledger's cap does not allow both stages; nothing has been spent.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        given = read_for(self.learner, data, units=units, unit=unit)
        self._refuse_small_blocks(given)
        strength = self._strength(block_size=given.units // self.blocks)
        self._refuse_short_tuples(given.rows.shape[1], strength=strength)
        self.isolation.check(self.learner)
        self._rehearse(given)
        guarantee = ApproxDP(self.epsilon, self.delta, relation_of(in_place_key), given.word)
        rows = partition(given, blocks=self.blocks, in_place_key=in_place_key, randomness=randomness)
        judge(verdicts_of(guarantee, units=given.units))
        with spending(ledger, guarantee, what=self._summary()), composing("basic") as run:
            laws = fit_blocks(
                self.learner,
                given.rows,
                blocks=rows,
                shared=shared.child("learner"),
                isolation=self.isolation,
                progress=progress,
            )
            coarse = self._coarse(laws, given, shared=shared, randomness=randomness)
            coupling = None if coarse is None else self._coupling(coarse, strength=strength, shared=shared)
            if coupling is None:
                return Release(NoAnswer, guarantee, settled(run, guarantee))
            released = aggregate(
                laws,
                records=self.records,
                coupling=coupling,
                mode=selection(epsilon=self.stages[1].epsilon, delta=self.stages[1].delta, draws=self.draws),
                shared=shared.child("second stage"),
                randomness=randomness,
            )
        return Release(released.value, guarantee, settled(run, guarantee))

    def _coarse_mode(self, first: CoarseVotes) -> StableMode | BestOfDraws:
        """Return the selection of the first stage; what it owes for a coupling that is not isolated is taken out."""
        return self._first_sampler(first).mode

    def _first_sampler(self, first: CoarseVotes) -> PrivateSampler:
        return PrivateSampler(
            self.learner,
            epsilon=self.stages[0].epsilon,
            delta=self.stages[0].delta,
            blocks=self.blocks,
            records=first.records,
            draws=first.draws,
            coupling=first.coupling,
            isolation=self.isolation,
        )

    def _rehearse(self, given: Records) -> None:
        """Refuse laws that one of the stages could not couple; no record is read, only how many there are."""
        columns, named = given.rows.shape[1], given.owners is not None
        if isinstance(self.first, CoarseVotes):
            self._first_sampler(self.first).rehearse(given.units, columns=columns, named_units=named)
        elif isinstance(self.first, PrivateLearner):
            self.first.check(given.units, columns=columns)
            self.first.rehearse(given.units, columns=columns, named_units=named)
        if self.reference is None and traits_of(self.learner).own_reference:
            return
        rehearse_votes(
            self.learner,
            coupling_about=_about_one_law if self.reference is None else self._refuse_no_reference,
            coupling_name=TwoStageCoupling.__name__,
            records=self.records,
            columns=columns,
            rows=MOST_ROWS if named else min(given.units // self.blocks, MOST_ROWS),
            isolation=self.isolation,
        )

    def _refuse_no_reference(self, law: Fitted) -> None:
        """Refuse a function that makes something else of a law of made-up records; one that fails may like others."""
        known = law.opened() if type(law) is SealedLaw else law
        made = (
            None if self.reference is None or known is ABSTAIN else alone(partial(self.reference, known), failed=None)
        )
        if made is not None and not isinstance(made, WideReference):
            raise InvalidParameter(
                f"reference must make a reference on tuples, such as ModelReference, and makes "
                f"{type(made).__name__}. Nothing was spent."
            )

    def _coarse(
        self,
        laws: list[Fitted],
        given: Records,
        *,
        shared: SharedRandomness,
        randomness: PrivateRandomness,
    ) -> Distribution | None:
        """Run the first stage; return a law, or None for no answer."""
        if isinstance(self.first, CoarseVotes):
            tuple_release = aggregate(
                laws,
                records=self.first.records,
                coupling=self.first.coupling,
                mode=self._coarse_mode(self.first),
                shared=shared.child("first stage"),
                randomness=randomness,
            )
            if isinstance(tuple_release.value, NoAnswerType):
                return None
            law = self.isolation.fit(self.learner, tuple_release.value, seed=shared.seed("coarse law"))
            return None if law is ABSTAIN else law
        key = shared.child("first stage")
        with composing("basic", apart=True), within_larger():
            released = self.first.release(
                given.rows, units=given.owners, shared=key, randomness=randomness, unit=given.word
            )
        promised, claimed = self.stages[0], released.guarantee
        covered = claimed.epsilon <= promised.epsilon and claimed.delta <= promised.delta
        if not covered or claimed.unit != given.word or claimed.neighbouring is not Neighbouring.REPLACE_ONE:
            raise InvalidParameter("the first stage's release has another guarantee than the first stage promised.")
        name = type(self.first).__name__
        own = Stage(mechanism=name, parameters=(), guarantee=claimed, what="the first stage", claimed=True)
        for stage in released.stages or (own,):  # code that is not accord's may keep no stages
            note(stage)
        return released.value if isinstance(released.value, Distribution) else None

    def _coupling(self, coarse: Distribution, *, strength: Fraction, shared: SharedRandomness) -> Coupling | None:
        """Return the coupling about the coarse law, None if no reference can be made of it: a function of it alone."""
        try:
            reference = self._reference(coarse, strength=strength, shared=shared)
        except (FitFailed, InvalidParameter):
            return None
        return None if self.records < reference.least_records() else self._about(reference)

    def _about(self, reference: WideReference) -> TwoStageCoupling:
        return TwoStageCoupling(reference, candidates=self.candidates)

    def _reference(self, coarse: Distribution, *, strength: Fraction, shared: SharedRandomness) -> WideReference:
        if self.reference is not None:
            return self.reference(coarse)
        own = traits_of(self.learner).reference(coarse, strength=strength)
        if own is not None:
            return own

        def fit(sample: NDArray[Any], *, seed: int) -> Any:  # noqa: ANN401 - a law, or an abstention
            return self.isolation.fit(self.learner, sample, seed=seed)

        size = max(1, math.floor(strength))
        key = shared.child("widened")
        return ModelReference(widened(coarse, learner_fit=fit, records=size, models=self.models, shared=key))

    def _strength(self, *, block_size: int) -> Fraction:
        if self.strength is not None:
            return self.strength
        known = [block_size] if not isinstance(self.first, CoarseVotes) else [block_size, self.first.records]
        return Fraction(1) / sum(Fraction(1, number) for number in known)

    def _refuse_small_blocks(self, given: Records) -> None:
        """Refuse blocks, and tuples of a first stage, from which the learner says that it cannot learn."""
        least = max(1, least_records(self.learner, columns=given.rows.shape[1]))
        if isinstance(self.first, CoarseVotes) and self.first.records < least:
            raise InvalidParameter(f"records of the first stage must be at least {least}: the coarse law is of them.")
        of_block = least if given.owners is None else 1
        needed = self.blocks * of_block
        if given.units < needed:
            word = "as many" if of_block == 1 else f"{needed}"
            message = f"{self.blocks} blocks need {word} records or units of privacy and there are {given.units}."
            raise NotEnoughRecords(message, needed=needed, present=given.units)

    def _refuse_short_tuples(self, dimension: int, *, strength: Fraction) -> None:
        if self.reference is None:
            traits_of(self.learner).check_reference(dimension, records=self.records, strength=strength)

    def _summary(self) -> str:
        """Public words for a ledger."""
        name = type(self.first.coupling if isinstance(self.first, CoarseVotes) else self.first).__name__
        parts = [f"({short_text(stage.epsilon, up=True)}, {short_text(stage.delta, up=True)})" for stage in self.stages]
        return (
            f"two-stage sampler: {type(self.learner).__name__}, {self.blocks} blocks, {self.records} records, "
            f"{self.draws} draws, first {name}; {parts[0]} and then {parts[1]}"
        )


def _about_one_law(law: Fitted) -> Coupling | None:
    """Return a small second stage about a law of made-up records."""
    known = law.opened() if type(law) is SealedLaw else law
    if known is ABSTAIN:
        return None
    return TwoStageCoupling(ModelReference([known, known]), candidates=_FEW_CANDIDATES)
