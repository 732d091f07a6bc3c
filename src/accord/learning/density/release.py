"""A private density, stage by stage: locate, open, refine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.of_stages import settled
from accord.core.blocks import Progress
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.release import Composed, composing
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared
from accord.distributions import Distribution
from accord.learning.density.column_frame import ColumnFrame
from accord.learning.density.family import DensityFamily, NormalMixtures
from accord.learning.density.locate import Located, locate
from accord.learning.density.plan import DensityPlan
from accord.learning.density.stages import Sources, budget_facts, refine_normals, sketch_and_fit
from accord.privacy import basic_composition

__all__ = ["PrivateModel", "release_density"]


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
    records: NDArray[Any],
    plan: DensityPlan,
    family: DensityFamily,
    *,
    numbers: int | NDArray[np.int64],
    word: str,
    shared: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
) -> PrivateModel:
    """Run the stages of a plan, each of which sees the records and what was released before.

    Formal guarantees
    -----------------
    - Privacy: ``(plan.epsilon, plan.delta)`` under replacing one unit: each stage is private by itself, whatever the
      earlier ones released (theory C2, adaptive).
    - Not promised: an answer; accuracy.

    Parameters
    ----------
    records
        Shape (n, d).
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

    Source
    ------
    theory 7, S5, S9, C2; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> from accord.learning.density.plan import density_plan
    >>> data = SharedRandomness(0).stream("example").normal(100.0, 2.0, size=(20_000, 1))
    >>> family = NormalMixtures(components=1)
    >>> plan = density_plan(units=20_000, columns=1, epsilon=1, delta="1e-6")
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
    )
    with composing("basic") as run:
        model = _run(records, plan, family, sources)
    return replace(model, stages=settled(run, ApproxDP(plan.epsilon, plan.delta, unit=word)))


def _run(records: NDArray[Any], plan: DensityPlan, family: DensityFamily, sources: Sources) -> PrivateModel:
    """Run the stages."""
    located = locate(
        records,
        plan.location,
        numbers=sources.numbers,
        word=sources.word,
        shared=sources.shared.child("locate"),
        randomness=sources.randomness,
        progress=sources.progress,
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
