"""Normal laws by pivotal simulation (method C): sizes that are stored, looked up, or certified anew."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from typing import Any, final

import numpy as np
from scipy.special import betaincinv

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.shared import Generator, SharedRandomness
from accord.couplings import ShiftRounding
from accord.distributions import Normal
from accord.laws import total_variation
from accord.learners import GaussianLearner

__all__ = [
    "CONFIDENCE",
    "PivotDesign",
    "certify_normal",
    "design_for",
    "lower_bound",
    "simulate",
    "stored_pivot",
]


CONFIDENCE = 0.999


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PivotDesign:
    """Public sizes of best-of-draws with shift rounding on R^d, and what they are to reach."""

    dimension: int
    alpha: Fraction
    epsilon: Fraction
    delta: Fraction
    blocks: int
    block_size: int
    records: int
    draws: int
    step: float


def simulate(design: PivotDesign, *, runs: int, seed: int) -> int:
    """Return how many of ``runs`` complete releases at N(0, I) ended within total variation alpha.

    A run takes fresh blocks, fits them, couples the fits, chooses a cell by the law of `BestOfDraws` and learns again
    from the records it stands for. No answer is a failure. Run r is a function of the seed and r.
    """
    key = SharedRandomness(seed)
    return sum(_succeeds(design, key.child("run", run)) for run in range(runs))


def lower_bound(successes: int, *, runs: int, confidence: float = CONFIDENCE) -> float:
    """Return the Clopper-Pearson lower bound of a success probability."""
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, runs - successes + 1, 1 - confidence))


def _succeeds(design: PivotDesign, key: SharedRandomness) -> bool:
    source = key.stream("data and noise")
    learner = GaussianLearner()
    size = (design.blocks, design.block_size, design.dimension)
    laws = [learner.fit(block, seed=0) for block in source.standard_normal(size)]
    coupling = ShiftRounding(dimension=design.dimension, step=design.step)
    coupled = coupling.couple(laws, records=design.records, draws=design.draws, shared=key.child("coupling"))
    chosen = _choose(coupled.keys.tolist(), design, source)
    if chosen is None:
        return False
    model = learner.fit(coupled.decode(*chosen), seed=0)
    truth = Normal(np.zeros(design.dimension), np.eye(design.dimension))
    return total_variation(model, truth) < float(design.alpha)


def _choose(keys: list[list[Any]], design: PivotDesign, source: Generator) -> tuple[int, bytes] | None:
    """Choose a (draw, cell) by the law of `BestOfDraws`, or None, in floats."""
    cells = [
        (draw, key, count)
        for draw, row in enumerate(keys)
        for key, count in Counter(row).items()
        if isinstance(key, bytes)
    ]
    if not cells:
        return None
    counts = np.array([count for _, _, count in cells], dtype=np.float64)
    log_weights = math.log(design.delta / design.draws) + float(design.epsilon) / 2 * (counts - 1)
    shift = max(0.0, float(log_weights.max()))
    ends = np.cumsum(np.exp(log_weights - shift))
    ticket = source.uniform() * (float(ends[-1]) + math.exp(-shift))
    place = int(np.searchsorted(ends, ticket, side="right"))
    return None if place == len(cells) else cells[place][:2]


_BASE = {
    1: (58, 13, 33, 300, 5.5),
    2: (64, 75, 75, 600, 6.0),
    3: (72, 150, 150, 1000, 6.5),
    5: (85, 660, 660, 3000, 7.2),
}
"""By dimension, at alpha = beta = 0.1, epsilon = 1, delta = 1e-6: k, b, l, R and the step; found on other seeds."""

_GROWTH = 1.12
_ATTEMPTS = 8
_PILOT = 60


def design_for(
    dimension: int, *, alpha: Fraction, epsilon: Fraction, delta: Fraction, growth: float = 1.0
) -> PivotDesign:
    """Return sizes worth a try: k grows with the votes that S9 asks for, b and l with ``growth / alpha^2``.

    Raises
    ------
    InvalidParameter
        If there is no base to start from at this dimension.

    """
    if dimension not in _BASE:
        raise InvalidParameter(f"dimension must be one of {sorted(_BASE)} for a pivotal plan.")
    blocks, block_size, records, draws, step = _BASE[dimension]
    scale = _votes(draws, float(epsilon), float(delta)) / _votes(draws, 1.0, 1e-6)
    finer = float(Fraction(1, 100) / alpha**2) * growth
    return PivotDesign(
        dimension=dimension,
        alpha=alpha,
        epsilon=epsilon,
        delta=delta,
        blocks=math.ceil(blocks * scale - 1e-9),
        block_size=max(dimension + 2, math.ceil(block_size * finer - 1e-9)),
        records=max(dimension + 2, math.ceil(records * finer - 1e-9)),
        draws=draws,
        step=step,
    )


def certify_normal(
    *,
    dimension: int,
    alpha: Number,
    beta: Number,
    epsilon: Number,
    delta: Number,
    runs: int = 1000,
    seed: int = 20_261_130,
) -> dict[str, Any]:
    """Find sizes and certify them: a pilot chooses, then fresh seeds decide.

    The confidence is shared among attempts: attempt j spends ``0.001 / 2^(j + 1)``.

    Returns
    -------
    dict
        Plain data, the numbers of a certificate of method C.

    Raises
    ------
    InvalidParameter
        If no attempt succeeds; allow more runs.

    """
    accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
    loss, slack = _check.epsilon(epsilon), _check.delta(delta)
    if float(slack) > math.expm1(float(loss) / 2):
        raise InvalidParameter("delta must be at most exp(epsilon / 2) - 1.")
    growth, spent = 1.0, 0
    for attempt in range(3 * _ATTEMPTS):
        design = design_for(dimension, alpha=accuracy, epsilon=loss, delta=slack, growth=growth)
        growth *= _GROWTH
        hits = simulate(design, runs=min(_PILOT, runs), seed=seed + 1000 + attempt)
        if hits < min(_PILOT, runs) * (1 - 0.9 * float(failure)):
            continue
        confidence = 1 - (1 - CONFIDENCE) / 2 ** (spent + 1)
        spent += 1
        successes = simulate(design, runs=runs, seed=seed + attempt)
        if lower_bound(successes, runs=runs, confidence=confidence) >= 1 - float(failure):
            return _numbers(design, runs=runs, successes=successes, seed=seed + attempt, confidence=confidence) | {
                "beta_simulated": str(failure)
            }
    raise InvalidParameter("no sizes were certified: allow more runs, or a larger beta.")


def stored_pivot(
    dimension: int, *, alpha: Fraction, beta: Fraction, epsilon: Fraction, delta: Fraction
) -> dict[str, Any] | None:
    """Return the stored numbers with the least n that are at least as strict as what is asked, or None.

    The simulation is in double precision: a number that is the same double as the stored one (the binary value of
    1e-6 is a hair below 1/1000000) is served as well, and takes its place, so that no more than what was asked is
    ever spent.
    """
    asked = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": delta}
    fit = [
        row
        for row in _stored()
        if row["dimension"] == dimension
        and all(_is_no_stricter(value, row[f"{name}_simulated"]) for name, value in asked.items())
    ]
    if not fit:
        return None
    row = min(fit, key=lambda one: int(one["records_needed"]))
    own = {name: min(asked[name.removesuffix("_simulated")], Fraction(row[name])) for name in row if "_sim" in name}
    return {**row, **{name: str(value) for name, value in own.items()}}


def _is_no_stricter(asked: Fraction, stored: str) -> bool:
    return Fraction(stored) <= asked or float(Fraction(stored)) == float(asked)


@lru_cache(maxsize=1)
def _stored() -> tuple[Mapping[str, Any], ...]:
    text = resources.files("accord.theory.planning").joinpath("pivots.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


def _numbers(design: PivotDesign, *, runs: int, successes: int, seed: int, confidence: float) -> dict[str, Any]:
    return {
        "dimension": design.dimension,
        "alpha_simulated": str(design.alpha),
        "epsilon_simulated": str(design.epsilon),
        "delta_simulated": str(design.delta),
        "blocks": design.blocks,
        "block_size": design.block_size,
        "records": design.records,
        "draws": design.draws,
        "step": design.step,
        "runs": runs,
        "successes": successes,
        "seed": seed,
        "confidence": confidence,
        "records_needed": design.blocks * design.block_size,
    }


def _votes(draws: int, epsilon: float, delta: float) -> float:
    return 1 + 2 / epsilon * math.log(9 * draws / delta)
