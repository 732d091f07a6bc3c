"""A private density, stage by stage: locate, open, refine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.composition import basic_composition
from accord.accounting.figures import short_text
from accord.accounting.of_stages import settled
from accord.core.blocks import FarRecords, Progress
from accord.core.budget import Budget
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.isolation import Isolation
from accord.core.release import Composed, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.density.columns import ColumnFrame
from accord.density.family import BlackBox, DensityFamily, NormalMixtures, NormalParameters
from accord.density.plan import DensityPlan
from accord.density.refine.mixture_fit import LEAST_PART
from accord.density.refine.statistics import StatisticsRefiner
from accord.density.sketch import LineSketch, fit_to_points, search, sketch_points
from accord.distributions import Normal
from accord.learning.rehearsal import continuous_tables
from accord.location.locate import Located, locate

__all__ = [
    "PrivateModel",
    "Sources",
    "StageResult",
    "budget_facts",
    "refine_normals",
    "rehearse",
    "release_density",
    "sketch_and_fit",
]

_REHEARSAL_KEY = SharedRandomness(0)
_REHEARSAL_POINTS = 500


_Floats = NDArray[np.float64]

_POINTS = 60_000
_SKETCH_COMPONENTS = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What each stage is handed besides the records.

    Parameters
    ----------
    numbers, word
        n, or each record's unit, and the guarantee's word for a unit.
    shared, randomness, progress
        As in `PrivateSampler.release`.
    n_jobs
        Workers for what is done with released values.
    isolation
        Of the fits of blocks.

    """

    numbers: int | NDArray[np.int64]
    word: str
    shared: SharedRandomness
    randomness: PrivateRandomness
    progress: Progress | None
    n_jobs: int | None
    isolation: Isolation | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What a stage released.

    Parameters
    ----------
    law
        Of the moving columns, in their own units; None if the estimator could not be fitted to what was released.
    public
        One entry a release.
    guarantees
        One a release.

    """

    law: Distribution | None
    public: tuple[Mapping[str, Any], ...]
    guarantees: tuple[PureDP | ApproxDP, ...]


def refine_normals(
    records: NDArray[Any] | FarRecords, family: NormalMixtures, frame: ColumnFrame, sources: Sources, *, budget: Budget
) -> StageResult:
    """Refine a normal law of standard columns into a mixture of the family.

    Formal guarantees
    -----------------
    - Privacy: ``budget``, under replacing one unit, whatever was located.
    - Not promised: accuracy.
    """
    refined, facts, guarantee = _normal_mixture(
        records,
        frame,
        sources,
        budget=budget,
        components=family.components,
        kind="full" if family.covariance in {"full", "tied"} else "diag",
    )
    law = _law(frame.normals(refined).of_kind(family.covariance), facts)
    return StageResult(law=law, public=(facts,), guarantees=(guarantee,))


def _law(found: NormalParameters, facts: Mapping[str, Any]) -> Distribution | None:
    """Return the law of a mixture, None if hardly a record was counted or it has no density in floats."""
    if facts["complete"] <= LEAST_PART:
        return None
    try:
        return found.law()
    except InvalidParameter:
        return None


def sketch_and_fit(
    records: NDArray[Any] | FarRecords, family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
) -> StageResult:
    """Release a sketch of the columns, and fit the learner to points of it, in the columns' own units.

    One column's sketch is a histogram; that of several is a mixture of normals.

    Formal guarantees
    -----------------
    - Privacy: ``budget``, under replacing one unit, whatever was located. The learner sees no record.
    - Not promised: accuracy; what is finer than the sketch is lost.
    """
    return (_from_counts if len(frame.columns) == 1 else _from_mixture)(records, family, frame, sources, budget=budget)


def _from_counts(
    records: NDArray[Any] | FarRecords, family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
) -> StageResult:
    """Release counts of one column's cells, fit to points of them, and search on for what explains them best."""
    sketch = LineSketch(epsilon=budget.epsilon, delta=budget.delta)
    cells = sketch.release(frame.standard(records), units=sources.numbers, randomness=sources.randomness)
    guarantee = ApproxDP(sketch.epsilon, sketch.delta, unit=sources.word)
    facts = {"stage": "sketch by counts", **budget_facts(guarantee), "cells": len(cells.counts), "noise": cells.noise}
    law = _fitted(family, frame.to_own_units(sketch_points(cells.law, size=_POINTS)), sources)
    if law is not None:
        centre, scale = frame.to_own_units(np.zeros(1)), frame.to_own_units(np.ones(1))
        law = search(
            family.learner,
            law,
            cells,
            centre=float(centre[0]),
            scale=float(scale[0] - centre[0]),
            shared=sources.shared.child("search"),
            n_jobs=sources.n_jobs,
        )
    return StageResult(law=law, public=(facts,), guarantees=(guarantee,))


def _from_mixture(
    records: NDArray[Any] | FarRecords, family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
) -> StageResult:
    """Release a mixture of normal laws of several columns, and fit to points of it."""
    refined, facts, guarantee = _normal_mixture(
        records, frame, sources, budget=budget, components=_SKETCH_COMPONENTS, kind="full"
    )
    stream = sources.shared.stream("points of the sketch")
    sketch = _law(frame.normals(refined), facts)
    law = None
    if sketch is not None:
        law = _fitted(family, np.asarray(sketch.sample(_POINTS, stream), dtype=np.float64), sources)
    return StageResult(law=law, public=(facts,), guarantees=(guarantee,))


def _fitted(family: BlackBox, points: _Floats, sources: Sources) -> Distribution | None:
    key = sources.shared.child("fit to the sketch")
    return fit_to_points(family.learner, points, shared=key, fits=family.restarts, n_jobs=sources.n_jobs)


def _normal_mixture(
    records: NDArray[Any] | FarRecords,
    frame: ColumnFrame,
    sources: Sources,
    *,
    budget: Budget,
    components: int,
    kind: Literal["full", "diag"],
) -> tuple[NormalParameters, Mapping[str, Any], PureDP | ApproxDP]:
    """Release a mixture of normal laws of the standard columns."""
    d = len(frame.columns)
    refiner = StatisticsRefiner(
        epsilon=budget.epsilon, delta=budget.delta, components=components, covariance=kind, unit=sources.word
    )
    refined = refiner.refine(
        Normal(np.zeros(d), np.eye(d)),
        frame.standard(records),
        units=sources.numbers,
        shared=sources.shared.child("refine"),
        randomness=sources.randomness,
        progress=sources.progress,
    )
    facts = {"stage": "refine by statistics", **budget_facts(refiner.guarantee), **refined.public}
    return NormalParameters.of(refined.model), facts, refiner.guarantee


def budget_facts(guarantee: PureDP | ApproxDP) -> Mapping[str, str]:
    """Return epsilon and delta as text, rounded up."""
    return {"epsilon": short_text(guarantee.epsilon, up=True), "delta": short_text(guarantee.delta, up=True)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateModel:
    """What was released.

    Parameters
    ----------
    law
        Of whole records; None if a column had no answer.
    moving
        Of the columns that are not constant, in their own units; None if there are none, or no answer.
    located
        The first stage.
    public
        One entry a stage: parameters, budget, and what was released.
    guarantees
        Of each stage that ran.
    stages
        The mechanisms that ran, and how they compose.

    """

    law: Distribution | None
    moving: Distribution | None
    located: Located
    public: tuple[Mapping[str, Any], ...]
    guarantees: tuple[PureDP | ApproxDP, ...]
    stages: tuple[Composed, ...] = ()

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """The sum over the stages."""
        total = basic_composition(self.guarantees)
        if not isinstance(total, (PureDP, ApproxDP)):
            raise AssertionError("the stages promise nothing together")  # noqa: TRY004 - a fault of ours, not a type
        return total


def release_density(
    records: NDArray[Any] | FarRecords,
    plan: DensityPlan,
    family: DensityFamily,
    *,
    numbers: int | NDArray[np.int64],
    word: str,
    shared: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    isolation: Isolation | None = None,
) -> PrivateModel:
    """Run the stages of a plan, each of which sees the records and what was released before.

    Formal guarantees
    -----------------
    - Privacy: ``plan.budget`` under replacing one unit: each stage is private by itself, whatever the
      earlier ones released (theory C2, adaptive).
    - Not promised: an answer; accuracy.

    Parameters
    ----------
    records
        Shape (n, d), or on the workers of ``isolation``.
    plan
        From `density_plan`, for the same family and sizes.
    family
        Of the estimator.
    numbers, word
        n, or each record's unit, and the guarantee's word for a unit.
    shared, randomness, progress
        As in `PrivateSampler.release`.
    n_jobs
        Workers for what is done with released values; the result does not depend on it.
    isolation
        How the fits of blocks are kept apart, and where they run; copies here by default.

    Source
    ------
    theory 7, S5, S9, C2; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> from accord.density.plan import density_plan
    >>> data = SharedRandomness(0).stream("example").normal(100.0, 2.0, size=(20_000, 1))
    >>> family = NormalMixtures(components=1)
    >>> plan = density_plan(units=20_000, columns=1, budget=Budget(1, "1e-6"))
    >>> found = release_density(data, plan, family, numbers=20_000, word="record")
    >>> bool(abs(found.law.mean[0] - 100.0) < 0.5), found.guarantee.epsilon
    (True, Fraction(1, 1))

    """
    sources = Sources(
        numbers=numbers,
        word=word,
        shared=require_shared(shared),
        randomness=require_private(randomness),
        progress=progress,
        n_jobs=n_jobs,
        isolation=isolation,
    )
    with composing("basic") as run:
        model = _run(records, plan, family, sources)
    return replace(model, stages=settled(run, ApproxDP(plan.budget.epsilon, plan.budget.delta, unit=word)))


def _run(
    records: NDArray[Any] | FarRecords, plan: DensityPlan, family: DensityFamily, sources: Sources
) -> PrivateModel:
    """Run the stages."""
    located = locate(
        records,
        plan.location,
        numbers=sources.numbers,
        word=sources.word,
        shared=sources.shared.child("locate"),
        randomness=sources.randomness,
        progress=sources.progress,
        isolation=sources.isolation,
    )
    first = _location_facts(plan, located)
    if located.without_answer:
        return PrivateModel(law=None, moving=None, located=located, public=(first,), guarantees=(located.guarantee,))
    frame = ColumnFrame(located)
    if not frame.columns:
        law = frame.with_constants(None)
        return PrivateModel(law=law, moving=None, located=located, public=(first,), guarantees=(located.guarantee,))
    if isinstance(family, NormalMixtures):
        result = refine_normals(records, family, frame, sources, budget=plan.rest)
    else:
        result = sketch_and_fit(records, family, frame, sources, budget=plan.rest)
    return PrivateModel(
        law=None if result.law is None else frame.with_constants(result.law),
        moving=result.law,
        located=located,
        public=(first, *result.public),
        guarantees=(located.guarantee, *result.guarantees),
    )


def _location_facts(plan: DensityPlan, located: Located) -> Mapping[str, Any]:
    return {
        "stage": "locate",
        **budget_facts(located.guarantee),
        "blocks": plan.location.blocks,
        "draws": plan.location.draws,
        "groups": plan.location.groups,
        "cell_widths": plan.location.widths,
        "centre": tuple(located.centre.tolist()),
        "scale": tuple(located.scale.tolist()),
        "constant": tuple(located.constant.tolist()),
    }


def rehearse(family: DensityFamily, *, columns: int) -> None:
    """Fit a black box to made-up records; refuse it if it takes none of them. Reads no record.

    Parameters
    ----------
    family
        Normal laws are known to work.
    columns
        Of the records to come.

    Raises
    ------
    InvalidParameter
        If it fits neither normal nor log-normal nor uniform records; nothing has been spent.

    Examples
    --------
    >>> from accord.learners import ScipyLearner
    >>> rehearse(BlackBox(learner=ScipyLearner("norm")), columns=1)
    >>> rehearse(BlackBox(learner=ScipyLearner("norm")), columns=2)
    Traceback (most recent call last):
    accord.errors.InvalidParameter: the estimator (ScipyLearner, norm) does not work on any table of 2 columns ...

    """
    if not isinstance(family, BlackBox):
        return
    if any(_works(family, points) for points in continuous_tables(_REHEARSAL_POINTS, columns)):
        return
    message = (
        f"the estimator ({family.words}) does not work on any table of {columns} column{'s' if columns > 1 else ''} "
        f"that was made up to try it: its fit, score_samples or sample fails, or what they return is no density of "
        f"shape (n,), no records of shape (n, {columns}). Nothing was spent."
    )
    raise InvalidParameter(message)


def _works(family: BlackBox, points: NDArray[np.float64]) -> bool:
    return fit_to_points(family.learner, points, shared=_REHEARSAL_KEY) is not None
