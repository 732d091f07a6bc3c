"""The private sampler: blocks, one law a block, an agreed tuple of records."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from numpy.typing import ArrayLike, NDArray

from accord.accounting.figures import short_text
from accord.accounting.of_stages import settled
from accord.core import check as _check
from accord.core.aggregate import aggregate, coupling_charge, selection
from accord.core.alone import alone
from accord.core.best_of_draws import BestOfDraws
from accord.core.blocks import FarRecords, Progress, cut, fit_blocks, relation_of
from accord.core.coupling import Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.isolation import Isolation
from accord.core.points import is_isolated
from accord.core.records import Records
from accord.core.release import NoAnswer, NoAnswerType, Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.spending import spending
from accord.core.stable_mode import StableMode
from accord.core.verdict import Verdict, judge
from accord.learners.traits import columns_of, family_of, least_records
from accord.learning.on_workers import reading
from accord.learning.rehearsal import MOST_ROWS, rehearse_votes
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of

__all__ = [
    "PrivateSampler",
    "learn_again",
]


def learn_again(
    learner: Learner, records: NDArray[Any], *, isolation: Isolation, seed: int
) -> Distribution | NoAnswerType:
    """Return the model fitted to released records; no answer if the fit fails or gives something that is no law.

    The budget is spent: what goes wrong here is a result, not an error to try again after.
    """
    model: object = isolation.fit(learner, records, seed=seed)

    def look() -> Distribution | NoAnswerType:  # a foreign object may do anything when it is looked at
        return model if isinstance(model, Distribution) and not isinstance(model, type) else NoAnswer

    return alone(look, failed=NoAnswer)


_HOPELESS = Fraction(1, 2)
_LEAST_DELTA = Fraction(1, 2**100)
_COPIES = Isolation()


def of_blocks(learner: Learner, *, dimension: int, blocks: int, units: int) -> tuple[Verdict, ...]:
    """Return ``too-few-records`` if blocks are so small that they rarely agree, where simulations say how small.

    They do for the learners that have a coupling of their own, and say nothing of one that was passed.
    """
    usual = family_of(learner, dimension=dimension).usual_block
    size = units // blocks
    if size >= usual:
        return ()
    how = f"blocks of {size} rarely agree on a law of {type(learner).__name__}"
    most = units // usual
    do = f"about {usual * blocks} are needed for {blocks} blocks" + (f", or use at most {most} blocks" if most else "")
    return (Verdict("too-few-records", f"n is not enough: {how}; {do}."),)


@final
@dataclass(frozen=True, slots=True)
class PrivateSampler:
    """Release l synthetic records on which the learners of k blocks agree (theory L8, S9).

    The units are cut into k blocks; the learner fits each block; the laws of l records are coupled so that close laws
    give exactly equal tuples; a tuple that many blocks share is released, in the best of several independent draws.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, whatever the learner returns. It needs three facts only: a
      unit is in one block chosen without looking, a block's vote depends on this block alone, the selection is exact.
    - Blocks are secret: the unit may have another number of records, which may stand anywhere in the file.
    - A coupling that is not isolated is paid for out of ``delta``: the selection runs at ``delta - coupling_charge``.
    - A fit that fails is that block's abstention and changes nothing else.
    - A coupling that was passed is refused before anything is spent, and before the first fit to records, if it takes
      none of the laws that the learner fits to made-up tables (`rehearse`).
    - Not promised: an answer. Where the blocks do not agree the value is `NoAnswer` and the budget is spent all the
      same. With ``draws > 1`` the law of the tuple is selected: it is not exactly a tuple of the learned law.

    Parameters
    ----------
    learner
        Any `Learner`.
    epsilon
        Above 0, at most 1000.
    delta
        Above 0, below 1; choose it well below 1 / number of units.
    blocks
        k. `StableMode.votes_needed` and `BestOfDraws.votes_needed` say how many votes must agree.
    records
        l, the records of the released tuple.
    draws
        R, independent draws of the coupling on the same blocks.
    coupling
        An isolated coupling, or one that states its slack; by default the one of the learner's family.
    isolation
        How fits are kept apart: `Isolation()` copies the learner, ``Isolation(kind="process")`` forks a process a
        block, here or on ``workers``.

    Source
    ------
    theory L7, L8, S9; proof page ``docs/proofs/sampler.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> sampler = PrivateSampler(GaussianLearner(), epsilon=1, delta="1e-6", blocks=100, records=90, draws=8)
    >>> data = SharedRandomness(0).stream("example").normal(5.0, 2.0, size=20_000)
    >>> release = sampler.release(data)
    >>> release.value.shape, release.guarantee.epsilon
    ((90, 1), Fraction(1, 1))

    """

    learner: Learner
    epsilon: Fraction
    delta: Fraction
    blocks: int
    records: int
    draws: int = 1
    coupling: Coupling | None = None
    isolation: Isolation = _COPIES
    _tried: set[tuple[int, int]] = field(default_factory=set, init=False, repr=False, compare=False)

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
    ) -> None:
        if not isinstance(learner, Learner):
            message = f"learner must have a method fit(records, *, seed); {type(learner).__name__} has none."
            raise InvalidParameter(message)
        _check.store(
            self,
            learner=learner,
            epsilon=_check.epsilon(epsilon),
            delta=_check.delta(delta),
            blocks=_check.integer("blocks", blocks, least=1),
            records=_check.integer("records", records, least=1),
            draws=_check.integer("draws", draws, least=1, most=100_000),
            coupling=coupling,
            isolation=isolation or _COPIES,
            _tried=set(),
        )
        self._refuse_hopeless_blocks()

    def _refuse_hopeless_blocks(self) -> None:
        needed = self.mode.votes_needed(failure=_HOPELESS)
        if self.blocks < needed:
            message = (
                f"blocks must be at least {needed} at this epsilon and delta: even if all {self.blocks} blocks agreed, "
                f"an answer would be unlikely."
            )
            raise InvalidParameter(message)

    @property
    def mode(self) -> StableMode | BestOfDraws:
        """The selection: `StableMode` for one draw, `BestOfDraws` for several, at ``delta - coupling_charge``."""
        return self._mode_for(self.coupling)

    @property
    def coupling_charge(self) -> Fraction:
        """What of ``delta`` pays for a coupling that is not isolated; 0 for the others."""
        return self._charge_of(self.coupling)

    def _charge_of(self, coupling: Coupling | None) -> Fraction:
        if coupling is None:  # the family's, which is looked up when the number of columns is known
            return Fraction(0)
        return coupling_charge(coupling, epsilon=self.epsilon, laws=self.blocks, records=self.records, draws=self.draws)

    def _mode_for(self, coupling: Coupling | None) -> StableMode | BestOfDraws:
        charge = self._charge_of(coupling)
        if charge and self.delta - charge < _LEAST_DELTA:
            message = (
                f"delta must be above the coupling's charge, {short_text(charge, up=True)} at these sizes, by at least "
                f"2^-100."
            )
            raise InvalidParameter(message)
        return selection(epsilon=self.epsilon, delta=self.delta - charge, draws=self.draws)

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE)

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
    ) -> Release[NDArray[Any]]:
        """Release one tuple of ``records`` records, or no answer.

        Parameters
        ----------
        data
            Shape (n, d) or (n,). What is wrong inside a record (a NaN, an unknown category) is the block's affair. Or a
            data frame of dask, whose partitions the workers of ``isolation`` hold: its blocks are cut and fitted there.
        units
            The unit of each record, shape (n,): all records of one person go to one block. By default each record is
            one. For a frame of dask a column of it.
        shared
            Key of learner seeds and, if it is isolated, coupling; by default a fresh one. Must not depend on the data.
            Any other coupling has a fresh secret key of its own; and blocks are cut in secret, each time anew.
        randomness
            Source of the blocks and of the release noise; leave it out.
        progress
            Told how far the fits are.
        ledger
            Charged after all checks of the input and before the first fit to records; confirmed when there is a value
            or `NoAnswer`. A run that fails stays charged.
        unit
            The guarantee's word for what ``units`` names; by default "unit", and always "record" without ``units``.
        in_place_key
            A key that fixes the blocks, for who may know it; chosen without looking at the data. It gives up neighbours
            whose records stand elsewhere in the file: the release then holds under
            `Neighbouring.REPLACE_ONE_IN_PLACE`. By default blocks are secret.

        Warns
        -----
        VerdictWarning
            Of what public facts say against it, before it is charged: a delta that is not far below 1 / n, blocks so
            small that they rarely agree.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than blocks; nothing has been spent.
        InvalidParameter
            If the coupling that was passed takes none of the laws that the learner fits to made-up tables, or the
            learner's code is at fault on all of them; nothing has been spent.
        BudgetExceeded
            If the ledger's cap does not allow it; nothing has been spent.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        with reading(self.learner, data, units=units, unit=unit, isolation=self.isolation) as given:
            return self._released(
                given,
                shared=shared,
                randomness=randomness,
                progress=progress,
                ledger=ledger,
                in_place_key=in_place_key,
            )

    def _released(
        self,
        given: Records | FarRecords,
        *,
        shared: SharedRandomness,
        randomness: PrivateRandomness,
        progress: Progress | None,
        ledger: Ledger | None,
        in_place_key: SharedRandomness | None,
    ) -> Release[NDArray[Any]]:
        self.rehearse(given.units, columns=given.dimension, named_units=given.several_records)
        coupling, _ = self._coupling_for(given.dimension)
        mode = self._mode_for(coupling)
        rows = cut(given, blocks=self.blocks, in_place_key=in_place_key, randomness=randomness)
        guarantee = ApproxDP(self.epsilon, self.delta, relation_of(in_place_key), given.word)
        judge(self._verdicts(given, guarantee), stacklevel=3)
        with spending(ledger, guarantee, what=self._summary(coupling)), composing("basic") as run:
            laws = fit_blocks(
                self.learner,
                given,
                blocks=rows,
                shared=shared.child("learner"),
                isolation=self.isolation,
                progress=progress,
            )
            release = aggregate(
                laws,
                records=self.records,
                coupling=coupling,
                mode=mode,
                shared=shared.child("coupling"),
                randomness=randomness,
            )
        return Release(release.value, guarantee, settled(run, guarantee))

    def rehearse(self, units: int, *, columns: int, named_units: bool = False) -> None:
        """Refuse what public numbers decide, and try the learner with a coupling that was passed; reads no record.

        Public numbers: those of columns, and of records in a block where the learner states its
        ``least_records(columns)``. The trial is on made-up tables of at most 64 rows.
        Refused is a coupling that takes none of the laws that were fitted, and a learner whose code is at fault (a
        `TypeError` and the like) on every table; one that fails otherwise is not, as it may fit other records. The
        default coupling takes the laws of its learner and is not tried. Records whose laws
        the coupling does take can be offered as ``example(size, columns)``, see `Learner`.

        Parameters
        ----------
        units
            Number of records, or of units of privacy.
        columns
            Number of columns.
        named_units
            Whether units were named, so that one may have several records.

        Raises
        ------
        NotEnoughRecords
            If blocks would be too small for any fit; nothing has been spent.
        InvalidParameter
            Naming the classes of what does not go together; nothing has been spent.

        """
        _, least = self._coupling_for(columns)
        self._refuse_small_blocks(units, least=1 if named_units and self.coupling is not None else least)
        self.isolation.check(self.learner)
        rows = MOST_ROWS if named_units else max(1, min(units // self.blocks, MOST_ROWS))
        coupling, tried = self.coupling, (columns, rows)
        if coupling is None or tried in self._tried:
            return
        rehearse_votes(
            self.learner,
            coupling_about=lambda _: coupling,
            coupling_name=type(coupling).__name__,
            records=self.records,
            columns=columns,
            rows=rows,
            isolation=self.isolation,
        )
        self._tried.add(tried)

    def _verdicts(self, given: Records | FarRecords, guarantee: ApproxDP) -> tuple[Verdict, ...]:
        """Return what public facts say against a release."""
        found = verdicts_of(guarantee, units=given.units)
        if self.coupling is not None:
            return found
        columns = given.dimension
        return (*found, *of_blocks(self.learner, dimension=columns, blocks=self.blocks, units=given.units))

    def _summary(self, coupling: Coupling) -> str:
        """Public words for a ledger."""
        learner = type(self.learner).__name__
        text = f"private sampler: {learner}, {self.blocks} blocks, {self.records} records, {self.draws} draws"
        if is_isolated(coupling):
            return text
        charge = short_text(self._charge_of(coupling), up=True)
        return f"{text}, {type(coupling).__name__} ({charge} of delta pays for it)"

    def _coupling_for(self, dimension: int) -> tuple[Coupling, int]:
        """Return the coupling and the least number of units in a block; refuse tuples too small to couple."""
        if self.coupling is not None:
            known = columns_of(self.learner)
            if known is not None and known != dimension:
                raise InvalidParameter(
                    f"data must have {known} column{'s' if known > 1 else ''} for {type(self.learner).__name__}."
                )
            return self.coupling, max(1, least_records(self.learner, columns=dimension))
        family = family_of(self.learner, dimension=dimension)
        if self.records < family.least_tuple:
            message = f"records must be at least {family.least_tuple} for {type(self.learner).__name__}."
            raise InvalidParameter(message)
        return family.coupling, family.least_block

    def _refuse_small_blocks(self, units: int, *, least: int) -> None:
        needed = self.blocks * least
        if units < needed:
            usable = units // least
            message = (
                f"{self.blocks} blocks of at least {least} need {needed} records or units of privacy "
                f"and there are {units}: the largest usable number of blocks is {usable}."
            )
            raise NotEnoughRecords(message, needed=needed, present=units)
