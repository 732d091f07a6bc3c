"""What comes after locating: refine mixtures of normals, or fit a black box to a released sketch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.distributions import Distribution, Normal
from accord.learning.blocks import Progress
from accord.learning.column_frame import ColumnFrame
from accord.learning.density_family import BlackBox, NormalMixtures
from accord.learning.density_plan import Budget
from accord.learning.line_sketch import LineSketch, sketch_points
from accord.learning.normal_family import NormalParameters
from accord.learning.refine.statistics import StatisticsRefiner
from accord.learning.sketch_fit import fit_to_points
from accord.ledger.figures import short_text
from accord.privacy import ApproxDP, PureDP
from accord.randomness import PrivateRandomness, SharedRandomness

__all__ = ["Sources", "StageResult", "budget_facts", "refine_normals", "sketch_and_fit"]

_Floats = NDArray[np.float64]

_POINTS = 60_000
_SKETCH_COMPONENTS = 8


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
    law = frame.normals(refined).of_kind(family.covariance).law()
    return StageResult(law=law, public=(facts,), guarantees=(guarantee,))


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
    if len(frame.columns) == 1:
        sketch = LineSketch(epsilon=budget[0], delta=budget[1])
        drawn = sketch.release(frame.to_standard(records), units=sources.numbers, randomness=sources.randomness)
        points = frame.to_own_units(sketch_points(drawn, size=_POINTS))
        guarantee: PureDP | ApproxDP = ApproxDP(sketch.epsilon, sketch.delta, unit=sources.word)
        facts: Mapping[str, Any] = {"stage": "sketch by counts", "cells": len(drawn.masses), **budget_facts(guarantee)}
    else:
        refined, facts, guarantee = _normal_mixture(
            records, frame, sources, budget=budget, components=_SKETCH_COMPONENTS, kind="full"
        )
        stream = sources.shared.stream("points of the sketch")
        points = np.asarray(frame.normals(refined).law().sample(_POINTS, stream), dtype=np.float64)
    law = fit_to_points(
        family.learner,
        points,
        shared=sources.shared.child("fit to the sketch"),
        fits=family.restarts,
        n_jobs=sources.n_jobs,
    )
    return StageResult(law=law, public=(facts,), guarantees=(guarantee,))


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
