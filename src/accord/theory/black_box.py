"""The private learner of the theorem: sizes that promise an accuracy, for any learner as a black box."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.blocks import Progress, child_key
from accord.core.cells import Cells
from accord.core.coupling import Coupling, Distribution, Learner
from accord.core.errors import FitFailed, InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation
from accord.core.records import Records
from accord.core.release import Release
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.core.verdict import judge, within_larger
from accord.couplings import ParameterRounding, ShiftRounding
from accord.distributions import Categorical, PointMass
from accord.distributions.categorical import label_array, label_indices
from accord.learners.traits import read_for, refuse_other_columns, traits_of
from accord.learning.learner import PrivateLearner
from accord.learning.sampler import PrivateSampler
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of
from accord.theory.grand import joint_coupling, require_premises, tuple_coupling
from accord.theory.parts import RecordsUse, block_size_for, leave_out, not_enough
from accord.theory.planning import plan as plan_sizes
from accord.theory.planning.plan import Method, Plan
from accord.theory.planning.theorems import TheoremSizes, theorem_sizes
from accord.theory.planning.verify import Proof

__all__ = [
    "BlackBoxPrivateLearner",
    "CellModel",
    "Frequencies",
    "Recipe",
    "RootModel",
    "Roots",
    "TheoremSizes",
    "recipe_for",
    "theorem_sizes",
]


_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Frequencies:
    """Fit the frequencies of a public list of labels, as a point mass that `ParameterRounding` can round.

    With two labels it is the frequency of the first, else all of them. A record that is not in the list is left out.

    Source: planning, method B; proof page ``docs/proofs/planning.md``.
    """

    categories: tuple[Hashable, ...]
    cells: ClassVar[Cells] = "labels"

    @property
    def coordinates(self) -> int:
        """How many frequencies the point mass has."""
        return 1 if len(self.categories) == 2 else len(self.categories)

    def example(self, size: int, columns: int) -> NDArray[Any]:  # noqa: ARG002 - there is one column
        """Return made-up records of the list, shape (size, 1)."""
        return label_array(self.categories)[np.arange(size) % len(self.categories), None]

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:  # noqa: ARG002 - nothing here is random
        """Return the frequencies; `FitFailed` if no record is in the list."""
        found = label_indices(self.categories, np.asarray(records).ravel())
        counts = np.bincount(found[found >= 0], minlength=len(self.categories))
        if counts.sum() == 0:
            raise FitFailed("no frequencies can be fitted: no record is in the list of categories.")
        return PointMass((counts / counts.sum())[: self.coordinates])


@final
@dataclass(frozen=True, slots=True)
class CellModel:
    """Make a law of the centre of a cell: the nearest point of the simplex."""

    categories: tuple[Hashable, ...]

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:  # noqa: ARG002 - nothing here is random
        """Return the law, from a table whose first row is the centre."""
        centre = np.asarray(records, dtype=np.float64)[0]
        if len(self.categories) == 2:
            centre = np.array([centre[0], 1.0 - centre[0]])
        return Categorical(self.categories, _on_simplex(centre))


@final
@dataclass(frozen=True, slots=True)
class Roots:
    """Fit ``sqrt(X + 1/4)`` for every label, X a Poisson count of mean ``mean_size p + floor``, as a point mass.

    Poisson(mean_size) of the records are used, the first ones, and each label gets Poisson(floor) counts of its own:
    the counts of labels are then independent. A block whose number is beyond its records has no vote.

    Source: planning, method D; proof page ``docs/proofs/planning.md``.
    """

    categories: tuple[Hashable, ...]
    mean_size: float
    floor: float
    cells: ClassVar[Cells] = "labels"

    def example(self, size: int, columns: int) -> NDArray[Any]:  # noqa: ARG002 - there is one column
        """Return made-up records of the list, shape (size, 1)."""
        return label_array(self.categories)[np.arange(size) % len(self.categories), None]

    def fit(self, records: NDArray[Any], *, seed: int) -> PointMass:
        """Return the roots; `FitFailed` if there are fewer records than the seed asks for."""
        source = SharedRandomness(seed).stream("rounded roots")
        used = int(source.poisson(self.mean_size))
        labels = np.asarray(records).ravel()
        if used > len(labels):
            raise FitFailed("no roots of counts can be fitted: the block has too few records for its seed.")
        found = label_indices(self.categories, labels[:used])
        counts = np.bincount(found[found >= 0], minlength=len(self.categories))
        added = source.poisson(self.floor, size=len(self.categories))
        return PointMass(np.sqrt(counts + added + 0.25))


@final
@dataclass(frozen=True, slots=True)
class RootModel:
    """Make a law of the centre of a cell of roots: see part D of the proof page."""

    categories: tuple[Hashable, ...]
    mean_size: float
    floor: float

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:  # noqa: ARG002 - nothing here is random
        """Return the law, from a table whose first row is the centre."""
        squares = np.maximum(np.asarray(records, dtype=np.float64)[0] ** 2 * (np.asarray(records)[0] > 0), self.floor)
        means = _scaled(squares, total=self.mean_size + len(squares) * self.floor, floor=self.floor)
        return Categorical(self.categories, np.maximum(means - self.floor, 0.0) / (means - self.floor).sum())


def _scaled(squares: _Floats, *, total: float, floor: float) -> _Floats:
    """Multiply by one number, then raise to the floor what fell below it, so that the sum is ``total``."""
    ordered = np.sort(squares)[::-1]
    sums = np.cumsum(ordered)
    below = np.arange(len(squares) - 1, -1, -1)
    factors = (total - below * floor) / sums
    # Keep the most coordinates that stay above the floor; if all do, this is a plain change of scale.
    kept = np.nonzero(factors * ordered >= floor)[0]
    return np.asarray(np.maximum(squares * factors[kept[-1]], floor))


def _on_simplex(point: _Floats) -> _Floats:
    """Return the nearest point of the simplex, in the Euclidean distance."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    return np.asarray(np.maximum(point - excess[ordered > excess][-1], 0.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that a plan decides about a release, public.

    Parameters
    ----------
    fitted
        The learner of the blocks.
    again
        The learner of the released tuple.
    coupling
        The coupling on which the plan's promise rests.
    epsilon, delta
        Of the selection. A stored simulation that is stricter than what was asked is run with its own numbers.

    """

    fitted: Learner
    again: Learner
    coupling: Coupling
    epsilon: Fraction
    delta: Fraction


def recipe_for(
    learner: Learner, *, plan: Plan, epsilon: Fraction, delta: Fraction, coupling: Coupling | None
) -> Recipe:
    """Return what a plan of theory L9, or of method A, B, C or D, runs.

    Raises
    ------
    InvalidParameter
        If ``coupling`` is given where the promise is for another one, or missing where none is known.

    """
    numbers = plan.certificate.numbers
    method = plan.certificate.method
    own = _WITH_COUPLINGS_OF_THEIR_OWN.get(method)
    if own is not None:
        if coupling is not None:
            raise InvalidParameter(f"coupling must be left out: sizes certified by method {method} have their own.")
        return own(learner, numbers)
    if method == Proof.BLACK_BOX:
        delta = Fraction(numbers["delta_used"])
        chosen = coupling or tuple_coupling(learner, records=plan.synthetic_records)
    else:
        chosen = coupling or _joint(learner, records=plan.synthetic_records)
    if coupling is not None:
        by_tuples = method != Proof.BLACK_BOX and callable(getattr(learner, "tuple_total_variation", None))
        require_premises(coupling, records=plan.synthetic_records, whole_tuples=by_tuples)
    return Recipe(fitted=learner, again=learner, coupling=chosen, epsilon=epsilon, delta=delta)


def _joint(learner: Learner, *, records: int) -> Coupling:
    """Return a coupling for method A, whose total variation is of whole tuples unless the learner states none."""
    found = joint_coupling(learner, records=records)
    if found is not None:
        return found
    if not callable(getattr(learner, "tuple_total_variation", None)):
        return tuple_coupling(learner, records=records)
    message = (
        f"method='certified' needs coupling=, one for tuples of {records} records that agrees as their total variation "
        f"says: none is known for {type(learner).__name__} at this size."
    )
    raise InvalidParameter(message)


def _labels(learner: Learner, method: Proof) -> tuple[Hashable, ...]:
    labels = traits_of(learner).labels
    if labels is None:
        raise InvalidParameter(f"sizes certified by method {method} are for EmpiricalLearner.")
    return labels


def _rounded(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    labels = _labels(learner, Proof.FREQUENCIES)
    frequencies = Frequencies(labels)
    return Recipe(
        fitted=frequencies,
        again=CellModel(labels),
        coupling=ParameterRounding(widths=[float(numbers["width"])] * frequencies.coordinates),
        epsilon=Fraction(numbers["epsilon"]),
        delta=Fraction(numbers["delta"]),
    )


def _roots(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    labels = _labels(learner, Proof.ROOTS)
    mean_size, floor = float(numbers["mean_size"]), float(numbers["floor"])
    return Recipe(
        fitted=Roots(labels, mean_size, floor),
        again=RootModel(labels, mean_size, floor),
        coupling=ParameterRounding(widths=[float(numbers["width"])] * len(labels)),
        epsilon=Fraction(numbers["epsilon"]),
        delta=Fraction(numbers["delta"]),
    )


def _pivotal(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    return Recipe(
        fitted=learner,
        again=learner,
        coupling=ShiftRounding(dimension=int(numbers["dimension"]), step=float(numbers["step"])),
        epsilon=Fraction(numbers["epsilon_simulated"]),
        delta=Fraction(numbers["delta_simulated"]),
    )


_WITH_COUPLINGS_OF_THEIR_OWN: dict[str, Callable[[Learner, Any], Recipe]] = {
    Proof.FREQUENCIES: _rounded,
    Proof.PIVOTAL: _pivotal,
    Proof.ROOTS: _roots,
}


@final
@dataclass(frozen=True, slots=True)
class BlackBoxPrivateLearner:
    """Learn a distribution privately and accurately, with any learner as a black box (theory L9).

    A `PrivateLearner` with the sizes of the theorem, huge and certain, or with certified ones: a `PrivateSampler`
    releases l records on which the blocks agree; the same learner is fitted to them.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, at most ``(epsilon, delta)``, under replacing one unit, whatever the learner returns (M6:
      learning again looks only at released records). The theorem, and a simulation that is stricter than what was
      asked, run at less: ``guarantee`` is what is spent.
    - Accuracy: total variation below alpha with probability at least 1 - beta, if the premises of ``plan.certificate``
      are true; with ``coupling``, if what that states of its marginals and agreement (theory 4, G1 and G2; `Premises`)
      is true. One that does not state them is refused.

    Parameters
    ----------
    learner
        Any `Learner` that states its sample complexity.
    alpha, beta
        Accuracy and failure probability, strictly between 0 and 1.
    epsilon, delta
        As in `PrivateSampler`; epsilon is at most 1 (theorem) or 10 (certified).
    method
        "theorem" (L9 to the letter; the default), or "certified", by `accord.theory.planning.plan`: `EmpiricalLearner`
        votes with rounded frequencies, ``GaussianLearner(dimension=1, 2, 3 or 5)`` with rounded parameters where a
        simulation is stored, others with one draw.
    coupling, isolation
        As in `PrivateSampler`.

    Source
    ------
    theory L9, S5, S6, S9, S11; proof pages ``docs/proofs/private-learners.md``, ``docs/proofs/sampler.md`` and
    ``docs/proofs/planning.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> settings = {"alpha": "0.1", "beta": "0.1", "epsilon": 1, "delta": "1e-6"}
    >>> learner = BlackBoxPrivateLearner(GaussianLearner(dimension=1), method="certified", **settings)
    >>> learner.required_records < 1500
    True
    >>> data = SharedRandomness(0).stream("example").normal(5.0, 2.0, size=learner.required_records)
    >>> model = learner.release(data, shared=SharedRandomness(1)).value
    >>> bool(abs(model.mean[0] - 5.0) < 1.0)
    True
    >>> learner.use_of(2000).left_out == 2000 - learner.required_records
    True

    """

    learner: Learner
    private: PrivateLearner
    plan: Plan

    def __init__(
        self,
        learner: Learner,
        *,
        alpha: Number,
        beta: Number,
        epsilon: Number,
        delta: Number,
        method: Method = "theorem",
        coupling: Coupling | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        plan = _planner(learner, beta=beta, epsilon=epsilon, delta=delta, method=method)(alpha)
        exact_epsilon, exact_delta = _check.epsilon(epsilon), _check.delta(delta)
        recipe = recipe_for(learner, plan=plan, epsilon=exact_epsilon, delta=exact_delta, coupling=coupling)
        private = PrivateLearner(
            recipe.fitted,
            epsilon=recipe.epsilon,
            delta=recipe.delta,
            blocks=plan.blocks,
            records=plan.synthetic_records,
            draws=plan.draws,
            coupling=recipe.coupling,
            isolation=isolation,
            again=recipe.again,
        )
        _check.store(self, learner=learner, private=private, plan=plan)

    @property
    def sampler(self) -> PrivateSampler:
        """What releases the records that are learnt from."""
        return self.private.sampler

    @property
    def again(self) -> Learner:
        """What is fitted to the released records."""
        return self.private.again

    @property
    def required_records(self) -> int:
        """Fewer records, or units of privacy, are refused: n = k b."""
        return self.plan.records

    @property
    def guarantee(self) -> ApproxDP:
        """What a release promises when each record is a unit of its own."""
        return self.sampler.guarantee

    def use_of(self, units: int) -> RecordsUse:
        """Return what a release does with this many records, or units of privacy.

        With sizes of the theorem or of methods A and B all blocks grow, and fewer units are left out than there are
        blocks. A simulation (method C) certifies its own block size alone: the surplus is left out.

        Raises
        ------
        NotEnoughRecords
            If they are fewer than `required_records`.

        """
        present = _check.integer("units", units, least=0)
        self.check(present)
        size = block_size_for(self.plan, units=present, blocks=self.sampler.blocks)
        used = size * self.sampler.blocks
        return RecordsUse(block_size=size, used=used, left_out=present - used)

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
            If there are fewer units than `required_records`. The text names the alpha that they can reach.
        InvalidParameter
            If the columns are not as many as the learner has, or there are fewer released records than its
            ``least_records(columns)``, where it has that method.

        """
        if units < self.required_records:
            raise self._not_enough(units)
        if columns is not None:
            refuse_other_columns(self.learner, columns)
        self.private.check(units, columns=columns)

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

        No answer is also given if the learner cannot fit the released records, or makes something of them that is no
        law. What becomes of more records than `required_records` is said by `use_of`.

        Warns
        -----
        VerdictWarning
            As by `PrivateSampler.release`.

        Raises
        ------
        NotEnoughRecords
            If there are fewer units than `required_records`; nothing has been spent.

        """
        randomness, shared = require_private(randomness), require_shared(shared)
        given = read_for(self.sampler.learner, data, units=units, unit=unit)
        self.check(given.units, columns=given.rows.shape[1])
        kept = self._kept(given, in_place_key=child_key(in_place_key, "surplus"), randomness=randomness)
        promise = self.guarantee
        stated = ApproxDP(promise.epsilon, promise.delta, promise.neighbouring, given.word)
        judge(verdicts_of(stated, units=given.units))
        with within_larger():
            return self.private.release(
                kept, shared=shared, randomness=randomness, progress=progress, ledger=ledger, in_place_key=in_place_key
            )

    def rehearse(self, units: int, *, columns: int, named_units: bool = False) -> None:
        """Do what `PrivateSampler.rehearse` does, for blocks of the size that a release of this many units has."""
        used = block_size_for(self.plan, units=units, blocks=self.sampler.blocks) * self.sampler.blocks
        self.sampler.rehearse(used, columns=columns, named_units=named_units)

    def _kept(self, given: Records, *, in_place_key: SharedRandomness | None, randomness: PrivateRandomness) -> Records:
        size = block_size_for(self.plan, units=given.units, blocks=self.sampler.blocks)
        if size == given.units // self.sampler.blocks:
            return given
        return leave_out(given, keep=size * self.sampler.blocks, in_place_key=in_place_key, randomness=randomness)

    def _not_enough(self, units: int) -> Exception:
        numbers = self.plan.certificate.numbers
        asked = {name: numbers[name] for name in ("beta", "epsilon", "delta")}
        return not_enough(
            needed=self.required_records,
            present=units,
            alpha=Fraction(numbers["alpha"]),
            plan_at=_planner(self.learner, method=self.plan.method, **asked),
        )


def _planner(
    learner: Learner, *, beta: Number, epsilon: Number, delta: Number, method: Method
) -> Callable[[Number], Plan]:
    """Return the plan as a function of alpha."""

    def at(alpha: Number) -> Plan:
        return plan_sizes(learner, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta, method=method)

    return at
