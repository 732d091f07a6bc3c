"""Success at the standard normal law, which is success at every normal law: simulate it and bound it."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from scipy.special import betaincinv

from accord.core.shared import Generator, SharedRandomness
from accord.couplings import ShiftRounding
from accord.distributions import Normal
from accord.laws import total_variation
from accord.learners import GaussianLearner

__all__ = ["CONFIDENCE", "PivotDesign", "lower_bound", "simulate"]

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
