"""What comes after locating: refine mixtures of normals, or fit a black box to a released sketch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core.blocks import Progress
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution, Normal
from accord.learning.density.column_frame import ColumnFrame
from accord.learning.density.count_search import search
from accord.learning.density.family import BlackBox, NormalMixtures
from accord.learning.density.line_sketch import LineSketch, sketch_points
from accord.learning.density.normal_family import NormalParameters
from accord.learning.density.plan import Budget
from accord.learning.density.refine._mixture_fit import LEAST_PART
from accord.learning.density.refine.statistics import StatisticsRefiner
from accord.learning.density.sketch_fit import fit_to_points
from accord.ledger.figures import short_text

__all__ = ["Sources", "StageResult", "budget_facts", "refine_normals", "sketch_and_fit"]

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

    """

    numbers: int | NDArray[np.int64]
    word: str
    shared: SharedRandomness
    randomness: PrivateRandomness
    progress: Progress | None
    n_jobs: int | None


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
    records: NDArray[Any], family: NormalMixtures, frame: ColumnFrame, sources: Sources, *, budget: Budget
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
    records: NDArray[Any], family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
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
    records: NDArray[Any], family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
) -> StageResult:
    """Release counts of one column's cells, fit to points of them, and search on for what explains them best."""
    sketch = LineSketch(epsilon=budget[0], delta=budget[1])
    cells = sketch.release(frame.to_standard(records), units=sources.numbers, randomness=sources.randomness)
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
    records: NDArray[Any], family: BlackBox, frame: ColumnFrame, sources: Sources, *, budget: Budget
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
    records: NDArray[Any],
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
        epsilon=budget[0], delta=budget[1], components=components, covariance=kind, unit=sources.word
    )
    refined = refiner.refine(
        Normal(np.zeros(d), np.eye(d)),
        frame.to_standard(records),
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
