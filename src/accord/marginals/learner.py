"""A private model of a table with many columns, from noisy tables of a few of them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from numpy.typing import ArrayLike

from accord.accounting.of_stages import settled
from accord.accounting.verdicts import WEIGHTED, of_delta, of_sizes
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.records import Records
from accord.core.release import Release, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.spending import spending
from accord.core.verdict import Verdict, judge, within_larger
from accord.ledger import Ledger
from accord.marginals.domain import Domain
from accord.marginals.engine import WHOLE, CountingEngine, coded, unit_weights
from accord.marginals.model import MarginalModel
from accord.marginals.pace import Pace
from accord.marginals.planning import MarginalPlan, make_plan, planned_losses
from accord.marginals.run import Run

__all__ = ["MarginalLearner"]

Progress = Callable[[int, int, str], None]
_MAX_CELLS = 1 << 22
_TREE_CELLS = 1 << 18
_TRIPLES = Fraction(1, 4)


@final
@dataclass(frozen=True, slots=True, init=False)
class MarginalLearner:
    """Measure tables of one to six columns with noise, and fit the law of greatest entropy to them.

    The plan is made from public facts before a record is read: the domain, n, epsilon and delta. Few cells for n
    epsilon: the table of all columns in one go. Otherwise each column is measured, rare codes are put together, and
    then, if all cells are few enough to be fitted at once, all pairs are measured and in rounds the triples that the
    model explains worst; with more columns, in rounds the pair or triple that it explains worst for its noise.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit (a record, or all records of a unit), the exact total of
      all steps, each free to depend on what earlier ones released. Kinds, numbers and noise of the steps are planned.
    - Counts are whole numbers, noise is exact. A unit weighs the same whatever number of records it has.
    - A cell that holds no code becomes its column's ``other``; no record is an error.
    - Not promised: an accuracy. `plan` states the noise of what is measured; what is not measured may be off by more.

    Parameters
    ----------
    domain
        The columns and their codes, public.
    epsilon
        Above 0, at most 1000.
    delta
        Above 0, below 1; well below 1 / number of units.
    max_cells
        Up to so many cells all columns are fitted at once; public, at least 16. It decides about time and memory.
    tree_cells
        With more, the cliques of the model's junction tree have together at most so many, where a single table has.
    triples
        Share of what is left after single columns that goes to triples, from 0 to below 1.
    rounds
        How many tables are chosen where not all pairs are measured; twice the number of columns by default. Given, it
        also says that pairs are not measured all.
    target
        A column that models of the records will predict: tables with it weigh twice as much as others in the choice of
        tables, where tables are chosen. The tree of pairs is not its matter, nor is the noise.

    Raises
    ------
    InvalidParameter
        Outside these ranges.

    Source
    ------
    McKenna, Mullins, Sheldon and Miklau (2022); docs/proofs/marginals.md.

    Examples
    --------
    >>> import numpy as np
    >>> from accord.marginals import Column
    >>> domain = Domain([Column("a", 3), Column("b", 3)])
    >>> learner = MarginalLearner(domain, epsilon=1, delta="1e-6")
    >>> print(learner.plan(1000).lines()[1])
    1 x table of all columns: discrete Laplace, scale 2
    >>> codes = np.arange(3000)[:, None] // [1, 3] % 3
    >>> release = learner.release(codes)
    >>> bool(abs(release.value.marginal(["a"]) - 1 / 3).max() < 0.05)
    True
    >>> release.guarantee.epsilon
    Fraction(1, 1)

    """

    domain: Domain
    epsilon: Fraction
    delta: Fraction
    max_cells: int
    tree_cells: int
    triples: Fraction
    rounds: int | None
    target: str | None

    def __init__(
        self,
        domain: Domain,
        *,
        epsilon: Number,
        delta: Number,
        max_cells: int = _MAX_CELLS,
        tree_cells: int = _TREE_CELLS,
        triples: Number = _TRIPLES,
        rounds: int | None = None,
        target: str | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise InvalidParameter("domain must be a Domain.")
        _check.store(
            self,
            domain=domain,
            epsilon=_check.epsilon(epsilon),
            delta=_check.delta(delta),
            max_cells=_check.integer("max_cells", max_cells, least=16, most=1 << 26),
            tree_cells=_check.integer("tree_cells", tree_cells, least=16, most=1 << 26),
        )
        share = _check.exact("triples", triples)
        if not 0 <= share < 1:
            raise InvalidParameter("triples must be at least 0 and below 1.")
        _check.store(
            self, triples=share, rounds=None if rounds is None else _check.integer("rounds", rounds, least=1, most=1000)
        )
        if target is not None and target not in {column.name for column in domain.columns}:
            raise InvalidParameter("target must be the name of one of the columns.")
        _check.store(self, target=target)

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE)

    def plan(self, units: int, *, several_records: bool = False) -> MarginalPlan:
        """Return all steps of a release, their noise and the errors to expect; reads no record.

        Parameters
        ----------
        units
            n, the number of units of privacy, public.
        several_records
            Whether a unit may have several records, that is whether ``units`` will be given.

        """
        return self._plan(_check.integer("units", units, least=1), 1 if not several_records else WHOLE, "record")

    def _plan(self, units: int, whole: int, word: str) -> MarginalPlan:
        return make_plan(
            self.domain,
            units=units,
            whole=whole,
            promised=ApproxDP(self.epsilon, self.delta, Neighbouring.REPLACE_ONE, word),
            max_cells=self.max_cells,
            triples=float(self.triples),
            rounds=self.rounds,
        )

    def release(
        self,
        codes: ArrayLike,
        *,
        units: ArrayLike | None = None,
        unit: str | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Release[MarginalModel]:
        """Measure, fit and return a model.

        Parameters
        ----------
        codes
            Shape (n, d). A cell that is not a code of its column becomes the column's ``other``.
        units
            The unit of each record, shape (n,): all records of a unit share one weight. By default each record is one.
        unit
            The guarantee's word for what ``units`` names; "unit" by default, "record" without ``units``.
        randomness
            Source of all noise; leave it out.
        progress
            Told how far the release is, in the time that it is expected to take: (done, all, what).
        ledger
            Charged after all checks and before the first count.

        Warns
        -----
        VerdictWarning
            Of what public facts say against it, before it is charged: a delta that is not far below 1 / n, expected
            errors by which n is not enough, units that weigh the same.

        Raises
        ------
        NotEnoughRecords
            If there are none; nothing has been spent.
        BudgetExceeded
            If the ledger's cap does not allow it; nothing has been spent.

        """
        table = self.domain.read(codes)
        records = Records.of(table[:, :1], units=units, unit=unit)
        several, shape = records.owners is not None, self.domain.codes
        whole = WHOLE if several else 1
        counting = CountingEngine.of(
            coded(table, [size + 1 for size in shape], weights=unit_weights(records)),
            shape,
            total=records.units * whole,
            uncounted=self.domain.uncounted,
        )
        judge(_verdicts(self._plan(records.units, whole, records.word), weighted=several))
        with within_larger():
            return self.release_counted(
                counting,
                units=records.units,
                several_records=several,
                word=records.word,
                randomness=randomness,
                progress=progress,
                ledger=ledger,
            )

    def release_counted(
        self,
        counting: CountingEngine,
        *,
        units: int,
        several_records: bool,
        word: str,
        what: str = "marginals",
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Release[MarginalModel]:
        """Do the same with records that an engine counts, wherever they are.

        Parameters
        ----------
        counting
            Of codes of this domain; with ``several_records`` each unit's records weigh `WHOLE` together, and else each
            weighs 1. Their total is ``units`` times that.
        units
            n, the number of units of privacy, public.
        several_records
            As in `plan`.
        word
            What the guarantee calls a unit.
        what
            What a ledger says was charged for.
        randomness, progress, ledger
            As in `release`.

        """
        source = require_private(randomness)
        plan = self._plan(units, WHOLE if several_records else 1, word)
        judge(_verdicts(plan, weighted=several_records))
        charged = f"{what}: {self.domain.dimension} columns, {plan.mode}"
        with spending(ledger, plan.promised, what=charged), composing("numeric", delta=self.delta) as ran:
            pace = None if progress is None else Pace(plan, progress)
            run = Run(
                self.domain,
                plan=plan,
                max_cells=self.max_cells,
                tree_cells=self.tree_cells,
                target=None if self.target is None else self.domain.places([self.target])[0],
                randomness=source,
                progress=pace,
            )
            model = run.model(counting)
            if pace is not None:
                pace.finish()
            planned = planned_losses(plan.steps, one_record=plan.whole == 1)
            stages = settled(ran, plan.promised, planned=planned)
        return Release(model, plan.promised, stages)


def _verdicts(plan: MarginalPlan, *, weighted: bool) -> tuple[Verdict, ...]:
    """Return what a plan says against a release: errors are those of single columns, by their noise."""
    delta = of_delta(plan.promised, units=plan.units)
    return (*delta, *([WEIGHTED] if weighted else []), *of_sizes(plan.expected_errors))
