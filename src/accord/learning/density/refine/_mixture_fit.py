"""Fit a mixture of normal laws to noisy counts of projections, from several starts. Post-processing."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from accord.core.shared import Generator
from accord.learning.density.refine._fit_problem import FitProblem, Frame
from accord.learning.density.refine._mixture_shape import NormalMixture
from accord.learning.density.refine._projections import NoisyCounts

__all__ = ["LEAST_PART", "fit_mixture", "units_in_bins"]

Floats = NDArray[np.float64]
_WEIGHTINGS, _STEPS, _FEW_STEPS = 4, 60, 8
_FIRST_STEPS, _TO_THE_END, _FEW_STARTS = 12, 3, 4
_WORK = 4e10  # multiplications for the first steps, and again for the last ones
_ENOUGH = 1e-3
_FLOOR, _LEAST_FLOOR = 0.02, 1e-4
_NARROW = 0.25
_ODD = 4.0
LEAST_PART = 0.02
"""Of the units: so many are taken to be in bins even if fewer are counted."""


def fit_mixture(
    model: NormalMixture,
    counts: Sequence[NoisyCounts],
    *,
    units: int,
    components: int,
    full: bool,
    starts: int,
    generator: Generator,
) -> NormalMixture:
    """Return the best mixture of so many components that was found; the model itself if none was.

    Parameters
    ----------
    model
        Gives coordinates and starts.
    counts
        Releases to be fitted together.
    units
        How many units there are.
    starts
        How many starts are tried, the model among them if it has as many components; fewer where a step is dear.
    generator
        Public: draws starts.

    """
    frame = Frame.of(model, full=full)
    floor = _floor(frame, counts)
    problem = FitProblem(
        counts=counts,
        mass=units_in_bins(counts, units=units),
        frame=frame,
        components=components,
        full=full,
        floor=floor,
    )
    rows, columns = problem.size
    work = _WORK / (rows * columns**2)  # how many steps, at what a step costs
    steps = max(_FEW_STEPS, min(_STEPS, int(work / (_WEIGHTINGS * _TO_THE_END))))
    tried = max(min(starts, _FEW_STARTS), min(starts, int(work / _FIRST_STEPS)))
    opened = []
    for start in _starts(model, frame, components=components, starts=tried, generator=generator):
        with suppress(np.linalg.LinAlgError):
            opened.append(_scored(problem, problem.pack(start), weightings=1, steps=min(_FIRST_STEPS, steps)))
    ended = []
    for _, vector in sorted(opened, key=lambda one: one[0])[:_TO_THE_END]:
        with suppress(np.linalg.LinAlgError):
            ended.append(_scored(problem, vector, weightings=_WEIGHTINGS, steps=steps))
    if not ended:
        return model
    return problem.model(min(ended, key=lambda one: one[0])[1])


def _scored(problem: FitProblem, vector: Floats, *, weightings: int, steps: int) -> tuple[float, Floats]:
    """Return where a descent ends, and how good that is; refuse what is no model."""
    with np.errstate(all="ignore"):
        found = _descend(problem, vector, weightings=weightings, steps=steps)
        score = problem.score(found)
        problem.model(found)
    if not math.isfinite(score):
        raise np.linalg.LinAlgError
    return score, found


def units_in_bins(counts: Sequence[NoisyCounts], *, units: int) -> float:
    """Return the number of units that are in bins: all, unless the counts say clearly that many are not."""
    totals = np.array([one.counts.sum() / len(one.counts) for one in counts])
    precisions = np.array([len(one.counts) / (one.variance * one.counts.shape[1]) for one in counts])
    mean = float(totals @ precisions / precisions.sum())
    if abs(mean - units) <= _ODD / math.sqrt(precisions.sum()):
        return float(units)
    return max(min(mean, float(units)), LEAST_PART * units)


def _floor(frame: Frame, counts: Sequence[NoisyCounts]) -> float:
    """Return the least spread of a component: a narrower one may be a single value that many records share."""
    widths = []
    for one in counts:
        sizes = np.linalg.norm(one.query.directions @ frame.spread, axis=1)
        narrow = np.quantile(np.diff(one.query.inner, axis=1), _NARROW, axis=1)
        widths.append(float((narrow / sizes).min()))
    return max(_LEAST_FLOOR, min(_FLOOR, *widths))


def _starts(
    model: NormalMixture, frame: Frame, *, components: int, starts: int, generator: Generator
) -> Iterator[NormalMixture]:
    """Yield the model, then components at its own records or quantiles, some of one width, some as near as they are."""
    given = model.count == components
    if given:
        yield model
    if components == 1:
        if not given:
            yield _opening(frame, frame.centre[None], np.ones(1))
        return
    dimension = model.dimension
    inverse = np.linalg.inv(frame.spread)
    for number in range(int(given), starts):
        means = model.draw(components, generator)
        if dimension == 1 and number % 2:
            levels = (np.arange(components) + 0.5) / components
            means = np.quantile(model.draw(4096, generator)[:, 0], levels)[:, None]
        if number % 4 < 2:
            widths = 0.7 * np.exp(0.4 * generator.standard_normal(components))
        else:
            places = (means - frame.centre) @ inverse.T
            gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(components, np.inf))
            widths = np.clip(gaps.min(axis=1) / math.sqrt(dimension), 0.05, 2.0)
        yield _opening(frame, means, widths)


def _opening(frame: Frame, means: Floats, widths: Floats) -> NormalMixture:
    count = len(means)
    return NormalMixture(weights=np.full(count, 1 / count), means=means, factors=widths[:, None, None] * frame.spread)


def _descend(problem: FitProblem, vector: Floats, *, weightings: int, steps: int) -> Floats:
    """Return the end of Levenberg's and Marquardt's steps, the counts weighted anew a few times."""
    damping = 1e-2
    for _ in range(weightings):
        variances = problem.variances(vector)
        residuals = problem.residuals(vector, variances=variances)
        slopes = problem.derivatives(vector, variances=variances)
        for _ in range(steps):
            squared, gradient = slopes.T @ slopes, slopes.T @ residuals
            damped = squared + damping * np.diag(np.diag(squared) + 1e-3)
            trial = vector - np.clip(np.linalg.solve(damped, gradient), -1.0, 1.0)
            found = problem.residuals(trial, variances=variances)
            gain = float(residuals @ residuals - found @ found)
            if not gain > 0:
                damping *= 4
                if damping > 1e8:
                    break
                continue
            vector, residuals = trial, found
            damping = max(damping / 4, 1e-7)
            if gain < _ENOUGH:
                break
            slopes = problem.derivatives(vector, variances=variances)
        damping = min(damping, 1e2)
    return vector
