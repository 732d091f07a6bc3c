"""From a table to a private model and synthetic rows, with sizes chosen from public numbers."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.best_of_draws import BestOfDraws
from accord.core.blocks import Progress
from accord.core.coupling import Distribution, Learner
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.records import Records
from accord.core.release import Composed, NoAnswerType, Stage
from accord.core.shared import SharedRandomness
from accord.core.verdict import judge, within_larger
from accord.learners.traits import Family, family_of, read_for
from accord.learning.learner import PrivateLearner
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of

__all__ = ["SamplePlan", "Synthesis", "sample_plan", "sample_rows", "synthesise"]

FEWEST_DRAWS, MOST_DRAWS = 4, 10_000
_BLOCKS_PER_VOTE = 2.4
_FAILURE = "0.05"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """The public sizes of one run: n units, k blocks of b units, tuples of l records, R draws.

    ``typical_error`` is about the mean total variation between the model and the best one of its family, if there is an
    answer and the data are of that family: a number for planning, not a promise.
    """

    units: int
    blocks: int
    block_size: int
    records: int
    draws: int
    typical_error: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """What one run released. Nothing here but ``model`` depends on the data, and that is private.

    Parameters
    ----------
    model
        The private model, or None when there was no answer (the budget is spent all the same).
    guarantee
        What was promised.
    plan
        The public sizes of the run.
    stages
        The mechanisms that ran.
    seeded
        Whether a person fixed the shared parts by a seed. The release noise is never seeded.

    """

    model: Distribution | None
    guarantee: PureDP | ApproxDP
    plan: SamplePlan
    seeded: bool
    stages: tuple[Stage | Composed, ...] = ()


def sample_plan(
    learner: Learner,
    *,
    units: int,
    dimension: int,
    epsilon: Number,
    delta: Number,
    blocks: int | None = None,
    draws: int | None = None,
    records: int | None = None,
    noun: str = "records",
) -> SamplePlan:
    """Choose blocks, draws and tuple size from public numbers.

    The defaults are rules of thumb found by simulation (``benchmarks/sizes.py``): 32 draws, or 1000 for three and more
    columns; 2.4 blocks for every vote that must agree; as many records a tuple as such blocks usually agree on. They
    carry no promise of an answer.

    Parameters
    ----------
    learner
        A learner shipped with accord.
    units, dimension
        Number of units of privacy and of columns.
    epsilon, delta
        Of the release.
    blocks, draws, records
        k, R and l where a person has chosen them.
    noun
        What a refusal calls the units of privacy.

    Raises
    ------
    NotEnoughRecords
        If the units are too few; says how many are needed, or the largest usable number of blocks.
    InvalidParameter
        If a chosen number is out of range.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> sample_plan(GaussianLearner(), units=10_000, dimension=1, epsilon=1, delta="1e-6")
    SamplePlan(units=10000, blocks=101, block_size=99, records=59, draws=32, typical_error=0.059)

    """
    family = family_of(learner, dimension=dimension)
    chosen_draws = _check.integer(
        "draws", family.usual_draws if draws is None else draws, least=FEWEST_DRAWS, most=MOST_DRAWS
    )
    mode = BestOfDraws(epsilon=epsilon, delta=delta, draws=chosen_draws)
    votes = mode.votes_needed(failure=_FAILURE)
    chosen_blocks = math.ceil(_BLOCKS_PER_VOTE * votes) if blocks is None else _check.integer("blocks", blocks, least=1)
    if chosen_blocks < votes:
        message = f"blocks must be at least {votes} at this epsilon and delta: fewer could hardly agree on an answer."
        raise InvalidParameter(message)
    _refuse_few_units(family, units=units, blocks=chosen_blocks, chosen=blocks is not None, noun=noun)
    block_size = units // chosen_blocks
    if records is None:
        by_blocks = min(2.0, (chosen_blocks / votes - 0.9) / 1.5)
        by_draws = min(1.0, chosen_draws / family.usual_draws) ** 0.4
        usual = math.floor(family.agreeing_ratio * by_blocks * by_draws * block_size)
        tuple_size = max(family.least_tuple, usual)
    else:
        tuple_size = _check.integer("records per vote", records, least=family.least_tuple)
    return SamplePlan(
        units=units,
        blocks=chosen_blocks,
        block_size=block_size,
        records=tuple_size,
        draws=chosen_draws,
        typical_error=float(f"{family.typical_error / math.sqrt(tuple_size):.2g}"),
    )


def _refuse_few_units(family: Family, *, units: int, blocks: int, chosen: bool, noun: str) -> None:
    least = family.least_block if chosen else family.usual_block
    needed = least * blocks
    if units >= needed:
        return
    if chosen:
        message = (
            f"{blocks} blocks of at least {least} need {needed} {noun} and there are {units}: "
            f"the largest usable number of blocks is {units // least}."
        )
    else:
        message = (
            f"too few {noun}: there are {units}, and about {needed} are needed at this epsilon and delta "
            f"({blocks} blocks of {least}). A larger epsilon needs fewer. Nothing was spent."
        )
    raise NotEnoughRecords(message, needed=needed, present=units)


def synthesise(
    records: ArrayLike | Records,
    *,
    learner: Learner,
    epsilon: Number,
    delta: Number,
    units: ArrayLike | None = None,
    blocks: int | None = None,
    draws: int | None = None,
    records_per_vote: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
    unit: str | None = None,
) -> Synthesis:
    """Learn a private model of a table, with sizes chosen by `sample_plan`.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, by `PrivateLearner`; everything else here is chosen from
      public numbers.
    - Not promised: an answer; an accuracy.

    Parameters
    ----------
    records
        Shape (n, d).
    learner, epsilon, delta
        As in `PrivateLearner`.
    units, progress, ledger, unit
        As in `PrivateSampler.release`.
    blocks, draws, records_per_vote
        k, R, l where a person has chosen them.
    seed
        Fixes the shared parts (learner seeds, coupling) for tests. Blocks and release noise are never seeded.

    """
    given = read_for(learner, records, units=units, unit=unit)
    plan = sample_plan(
        learner,
        units=given.units,
        dimension=given.dimension,
        epsilon=epsilon,
        delta=delta,
        blocks=blocks,
        draws=draws,
        records=records_per_vote,
        noun="records" if given.owners is None else "units of privacy",
    )
    private = PrivateLearner(
        learner, epsilon=epsilon, delta=delta, blocks=plan.blocks, records=plan.records, draws=plan.draws
    )
    shared = SharedRandomness.fresh() if seed is None else SharedRandomness(seed)
    promised = ApproxDP(private.guarantee.epsilon, private.guarantee.delta, unit=given.word)
    judge(verdicts_of(promised, units=plan.units, typical_error=plan.typical_error))
    with within_larger():
        release = private.release(given, shared=shared.child("release"), progress=progress, ledger=ledger)
    model = None if isinstance(release.value, NoAnswerType) else release.value
    return Synthesis(
        model=model, guarantee=release.guarantee, plan=plan, seeded=seed is not None, stages=release.stages
    )


def sample_rows(synthesis: Synthesis, *, rows: int, seed: int | None = None) -> NDArray[Any]:
    """Return ``rows`` synthetic records of the released model, shape (rows, d): free of charge, by post-processing.

    Raises
    ------
    InvalidParameter
        If there was no answer.

    """
    rows = _check.integer("rows", rows, least=1)
    if synthesis.model is None:
        message = "there was no answer, so there is no model to sample."
        raise InvalidParameter(message)
    shared = SharedRandomness.fresh() if seed is None else SharedRandomness(seed)
    return np.asarray(synthesis.model.sample(rows, shared.stream("synthetic rows")))
