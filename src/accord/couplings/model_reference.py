"""Candidate tuples for laws without a statistic: records of one of several public models."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from accord.core import check as _check
from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Abstain, Distribution
from accord.core.errors import FitFailed, InvalidParameter
from accord.core.shared import Generator, SharedRandomness
from accord.couplings.reference import BATCH, sampled, usual_candidates
from accord.distributions import Mixture, Normal, log_densities

__all__ = [
    "LineMixture",
    "ModelReference",
    "line_mixture",
    "tuple_densities",
    "widened",
]


_Floats = NDArray[np.float64]

_BLOCK = 256
_FOLD = 32  # records whose sums are multiplied before a logarithm is taken
_LOWEST = -45.0  # a component this far (in logs) below the largest counts as exp(-45) of it
_MIDDLE = _LOWEST / 128.0
_START = math.exp(_MIDDLE)
_MOST_COMPONENTS = 1000


@final
@dataclass(frozen=True, slots=True)
class LineMixture:
    """A mixture: log weight less log standard deviation, mean and 1 / standard deviation of each component."""

    logs: _Floats
    means: _Floats
    inverses: _Floats


def line_mixture(law: object) -> LineMixture | None:
    """Return the numbers of a `Normal` or a `Mixture` of `Normal` on a line, None for anything else."""

    def look() -> LineMixture | None:
        if type(law) is Normal:
            parts: Sequence[tuple[Any, float]] = [(law, 1.0)]
        elif type(law) is Mixture:
            parts = law.positive
        else:
            return None
        if not 0 < len(parts) <= _MOST_COMPONENTS or any(type(p) is not Normal or p.dimension != 1 for p, _ in parts):
            return None
        spreads = np.array([part.cholesky[0, 0] for part, _ in parts])
        logs = np.log([weight for _, weight in parts]) - np.log(spreads) - 0.5 * math.log(2.0 * math.pi)
        return LineMixture(logs, np.array([part.mean[0] for part, _ in parts]), 1.0 / spreads)

    found = alone(look, failed=None)
    if found is None:
        return None
    usable = all(np.isfinite(column).all() for column in (found.logs, found.means, found.inverses))
    return found if usable else None


def tuple_densities(law: LineMixture, tuples: _Floats) -> _Floats:
    """Return the log density of n tuples of l numbers, shape (n,) from ``tuples`` transposed: shape (l, n).

    A function of the law and the tuples; relative errors of a record's density stay below 1e-12.
    """
    found = np.empty(tuples.shape[1])
    _compiled()(np.ascontiguousarray(tuples), law.logs, law.means, law.inverses, found)
    found[np.isnan(found)] = -np.inf
    return found


@functools.cache
def _compiled() -> Callable[..., None]:
    """Compile once a process; keep the code on the disk where that is possible."""
    from numba import njit  # noqa: PLC0415 - takes half a second, and few need it

    flags = {"contract", "reassoc", "nsz", "arcp"}
    try:
        code: Callable[..., None] = njit(cache=True, fastmath=flags)(_densities)
    except RuntimeError:  # no place to keep it
        code = njit(fastmath=flags)(_densities)
    return code


def _densities(  # noqa: C901 - one nest of loops, compiled as a whole
    tuples: _Floats, logs: _Floats, means: _Floats, inverses: _Floats, found: _Floats
) -> None:
    """Fill ``found``: loops that a compiler turns into vector code.

    With t the largest exponent, the density of a record is ``exp(t) * s``, s from 1 to the number of components; the s
    of 32 records are multiplied before one logarithm is taken. ``exp(u)`` for u in [-45, 0] is a polynomial in
    ``u / 64``, expanded about the middle and squared six times.
    """
    length, size = tuples.shape
    parts = len(logs)
    exponents = np.empty((parts, _BLOCK))
    top, total, product, result = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, size, _BLOCK):
        width = min(_BLOCK, size - start)
        for i in range(width):
            product[i] = 1.0
            result[i] = 0.0
        for row in range(length):
            for i in range(width):
                top[i] = -np.inf
                total[i] = 0.0
            for part in range(parts):
                for i in range(width):
                    z = (tuples[row, start + i] - means[part]) * inverses[part]
                    e = logs[part] - 0.5 * z * z
                    exponents[part, i] = e
                    top[i] = max(top[i], e)
            for part in range(parts):
                for i in range(width):
                    x = max(exponents[part, i] - top[i], _LOWEST) * 0.015625 - _MIDDLE
                    y = 1.0 / 479001600.0
                    y = y * x + 1.0 / 39916800.0
                    y = y * x + 1.0 / 3628800.0
                    y = y * x + 1.0 / 362880.0
                    y = y * x + 1.0 / 40320.0
                    y = y * x + 1.0 / 5040.0
                    y = y * x + 1.0 / 720.0
                    y = y * x + 1.0 / 120.0
                    y = y * x + 1.0 / 24.0
                    y = y * x + 1.0 / 6.0
                    y = y * x + 0.5
                    y = y * x + 1.0
                    y = (y * x + 1.0) * _START
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    y *= y
                    total[i] += y
            for i in range(width):
                product[i] *= total[i]
                result[i] += top[i]
            if row % _FOLD == _FOLD - 1 or row == length - 1:
                for i in range(width):
                    result[i] += math.log(product[i])
                    product[i] = 1.0
        for i in range(width):
            found[start + i] = result[i]


_NUMBERS_AT_ONCE = 4_000_000
_PILOT = 512


@final
@dataclass(frozen=True, slots=True, init=False)
class ModelReference:
    """Tuples of l records from one of several public models, each equally likely; it satisfies `TupleReference`.

    Formal guarantees
    -----------------
    - Points: independent, a model drawn anew for each, a function of key, draw and number. Records are shuffled, so a
      model that groups its records by component does no harm.
    - Ratios: ``log dq^l/dnu`` with nu the mixture of the models' tuples, in logs. At atoms of a model masses count.
      Mixtures of normal laws on a line are evaluated by compiled code.
    - Not promised: that the models surround a law. Where they do not, see `TwoStageCoupling`.

    Parameters
    ----------
    models
        At least two public laws of one dimension: for instance `widened`, from a private release.

    Source
    ------
    theory S1, S4; proof page ``docs/proofs/two-stage.md``.

    """

    models: tuple[Distribution, ...]
    common: Mixture
    tables: tuple[LineMixture, ...] | None

    def __init__(self, models: Iterable[Distribution]) -> None:
        found = tuple(models)
        if len(found) < 2:
            raise InvalidParameter("models must hold at least two laws.")
        _check.store(self, models=found, common=Mixture(found, np.ones(len(found))))
        tables = [line_mixture(model) for model in found]
        known = tuple(table for table in tables if table is not None)
        _check.store(self, tables=known if len(known) == len(tables) else None)

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""
        return self.common.dimension

    def least_records(self) -> int:
        """Return the least length of a tuple: 1."""
        return 1

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> NDArray[Any]:
        """Return a batch of tuples, shape (BATCH, records, d)."""
        return self.drawn(BATCH, shared.stream("model reference", draw, batch), records=records)

    def drawn(self, size: int, stream: Generator, *, records: int) -> NDArray[Any]:
        """Return independent tuples of nu, shape (size, records, d)."""
        length = _check.integer("records", records, least=1)
        picks = stream.integers(len(self.models), size=size)
        parts = []
        for number, model in enumerate(self.models):
            count = int((picks == number).sum())
            if count:
                parts.append(_sampled(model, count, stream, records=length))
        tuples = np.concatenate(parts)
        placed = np.empty_like(tuples)
        placed[np.argsort(picks, kind="stable")] = tuples
        return placed

    def points_of(self, law: Distribution, size: int, stream: Generator, *, records: int) -> NDArray[Any]:
        """Return independent tuples of a law, in the same form."""
        return _sampled(law, size, stream, records=_check.integer("records", records, least=1))

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: NDArray[Any], *, records: int) -> _Floats:
        """Return the log ratio of each law at each point, shape (laws, points)."""
        return self.evaluator(laws, records=records)(points)

    def evaluator(self, laws: Sequence[Distribution | Abstain], *, records: int) -> Callable[[NDArray[Any]], _Floats]:
        """Return the function that gives the same for many batches of points; the laws are read once, here."""
        length = _check.integer("records", records, least=1)
        tables = [line_mixture(law) for law in laws] if self.tables is not None else [None] * len(laws)
        # A law is read by its own type; whether compiled code is used at all is up to the public models.
        others = [law if table is None else ABSTAIN for law, table in zip(laws, tables, strict=True)]

        def evaluate(points: NDArray[Any]) -> _Floats:
            own = self._of_models(points, records=length)
            rows = self._of_others(others, points, records=length)
            flat = None
            for row, table in enumerate(tables):
                if table is not None:
                    flat = _columns(points) if flat is None else flat
                    rows[row] = tuple_densities(table, flat)
            with np.errstate(invalid="ignore"):
                rows -= logsumexp(own, axis=0) - np.log(len(self.models))
            rows[~(rows < np.inf)] = -np.inf
            return rows

        return evaluate

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> _Floats:  # noqa: ARG002
        """Return inf for each law, as no bound is known; -inf for an abstention."""
        return np.array([-np.inf if law is ABSTAIN else np.inf for law in laws])

    def decode(
        self,
        point: NDArray[Any],
        *,
        draw: int,  # noqa: ARG002 - nothing is drawn after the release
        number: int,  # noqa: ARG002
        records: int,
        shared: SharedRandomness,  # noqa: ARG002
    ) -> NDArray[Any]:
        """Return the records of a point: the point itself, shape (records, d)."""
        return np.array(point).reshape(records, self.dimension)

    def usual_candidates(self, records: int) -> int:
        """Return how many candidates give laws that lie as the models do their own law: of models and l alone."""
        return usual_candidates(self.pilot(_PILOT, records=records))

    def pilot(self, size: int, *, records: int) -> _Floats:
        """Return ``log d theta^l/dnu'`` at tuples of ``size`` models theta, nu' being nu without theta."""
        stream = SharedRandomness("accord: pilot of a model reference").stream(size, records)
        picks = stream.integers(len(self.models), size=size)
        tuples = np.concatenate([_sampled(self.models[pick], 1, stream, records=records) for pick in picks])
        own = self._of_models(tuples, records=records)
        mine = own[picks, np.arange(size)]
        own[picks, np.arange(size)] = -np.inf
        with np.errstate(invalid="ignore"):
            ratios = mine - logsumexp(own, axis=0) + np.log(len(self.models) - 1)
        return np.where(np.isnan(ratios), -np.inf, ratios)

    def _of_models(self, points: NDArray[Any], *, records: int) -> _Floats:
        """Return the log density of each tuple under each model, shape (models, points)."""
        if self.tables is None:
            return self._of_others(self.models, points, records=records)
        flat = _columns(points)
        return np.array([tuple_densities(table, flat) for table in self.tables])

    def _of_others(self, laws: Sequence[object], points: NDArray[Any], *, records: int) -> _Floats:
        """Return the log density of each tuple under each law by its own methods; -inf for a law that fails."""
        rows = np.full((len(laws), len(points)), -np.inf)
        active = [row for row, law in enumerate(laws) if law is not ABSTAIN]
        flat = np.ascontiguousarray(points).reshape(-1, self.dimension)
        together = max(1, _NUMBERS_AT_ONCE // max(1, len(flat)))
        for start in range(0, len(active), together):
            chosen = active[start : start + together]
            found = log_densities([laws[row] for row in chosen], flat, reference=self.common)
            rows[chosen] = found.reshape(len(chosen), len(points), records).sum(axis=2)
        return rows


def widened(
    law: Distribution,
    *,
    learner_fit: Callable[..., Distribution],
    records: int,
    models: int = 64,
    shared: SharedRandomness,
) -> tuple[Distribution, ...]:
    """Return models that scatter about a public law: the learner's fits to samples of it (a parametric bootstrap).

    Post-processing of the law: nothing else is looked at. A fit that fails is left out.

    Parameters
    ----------
    law
        A public law, such as a private release.
    learner_fit
        ``learner_fit(records, seed=...)`` returns a law; a learner's `fit`.
    records
        The size of each sample: fewer scatter more.
    models
        How many samples, at least 2.
    shared
        A key.

    Raises
    ------
    FitFailed
        If fewer than two fits succeed.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> def fit(records, *, seed):
    ...     return Normal(records.mean(), records.var())
    >>> len(widened(Normal(0, 1), learner_fit=fit, records=50, models=8, shared=SharedRandomness(1)))
    8

    """
    size = _check.integer("records", records, least=1)
    wanted = _check.integer("models", models, least=2)

    def fitted(number: int) -> Distribution | None:
        sample = sampled(law, size, shared.stream("widened", number))
        model: object = learner_fit(sample, seed=shared.seed("widened", number))
        return model if isinstance(model, Distribution) and model.dimension == law.dimension else None

    found: list[Distribution] = []
    for number in range(wanted):
        model = alone(partial(fitted, number), failed=None)
        if model is not None:  # a sample that allows no fit is left out
            found.append(model)
    if len(found) < 2:
        raise FitFailed("fewer than two fits to samples of the law succeeded: no models surround it.")
    return tuple(found)


def _sampled(model: Distribution, count: int, stream: Generator, *, records: int) -> NDArray[Any]:
    """Return tuples of records of a model, shape (count, records, d), shuffled across all."""
    drawn = sampled(model, count * records, stream)
    shuffled: NDArray[Any] = stream.permutation(drawn.reshape(count * records, model.dimension))
    return shuffled.reshape(count, records, model.dimension)


def _columns(points: NDArray[Any]) -> _Floats:
    """Return tuples of numbers on a line with the record along the first axis, shape (records, n)."""
    return np.ascontiguousarray(np.asarray(points, dtype=np.float64)[:, :, 0].T)
