"""References from which laws are coupled: what one must offer, and independent records of one law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone, ambient_seed
from accord.core.coupling import Abstain, Distribution
from accord.core.shared import Generator, SharedRandomness
from accord.couplings.ratio_bounds import log_ratio_bound
from accord.distributions import log_densities
from accord.distributions.stack import is_own

__all__ = [
    "BATCH",
    "IidReference",
    "TupleReference",
    "sampled",
    "shortfall",
    "usual_candidates",
]


BATCH = 64
"""Points come in batches of this many: batch b of a draw is a function of key, draw and b."""


@runtime_checkable
class TupleReference(Protocol):
    """A public probability nu on tuples of ``records`` records, and the densities of laws with respect to it.

    Everything is a function of its arguments and public parameters. Points are opaque arrays with the number of the
    point along the first axis.
    """

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> NDArray[Any]:
        """Return the ``BATCH`` independent points number ``batch * BATCH`` and following of a draw."""

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: NDArray[Any], *, records: int) -> NDArray[Any]:
        """Return ``log dq^l/dnu`` of each law at each point, shape (laws, points); -inf for a law that fails.

        Row i is a function of law i and of the points. A factor that is constant in the point may be left out of a row
        (theory S1). Accord's own references see all laws at once; any other is shown one at a time, so that isolation
        does not hang on it.
        """

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> NDArray[Any]:
        """Return an upper bound on each row of `log_ratios`, the same factors left out; inf where unknown."""

    def decode(
        self, point: NDArray[Any], *, draw: int, number: int, records: int, shared: SharedRandomness
    ) -> NDArray[Any]:
        """Return the records of one point, shape (records, d)."""


_FEWEST, _MOST = 1 << 10, 1 << 18
_TARGET = 0.05

_Floats = NDArray[np.float64]


def shortfall(log_ratios: _Floats, *, candidates: int) -> float:
    """Return the mean of ``(f - 1)_+ / (f + N - 1)`` over ratios ``f = dq/dnu`` seen at tuples of q.

    The total variation between q and the law of the winner of a race among N independent candidates from nu is at most
    its expectation (docs/proofs/two-stage.md).
    """
    logs = np.asarray(log_ratios, dtype=np.float64)
    with np.errstate(over="ignore"):
        small = np.exp(np.minimum(logs, 0.0))
        large = np.exp(-np.maximum(logs, 0.0))
    # For f > 1, divided through by f, so that nothing overflows.
    above = (1.0 - large) / (1.0 + (candidates - 1) * large)
    return float(np.where(small < 1.0, 0.0, above).mean())


def usual_candidates(log_ratios: _Floats) -> int:
    """Return the least power of 2, from 2^10 to 2^18, whose mean shortfall over these ratios is at most a twentieth."""
    number = _FEWEST
    while number < _MOST and shortfall(log_ratios, candidates=number) > _TARGET:
        number *= 2
    return number


def sampled(law: Distribution, size: int, stream: Generator) -> NDArray[Any]:
    """Return ``size`` records of a law, shape (size, d).

    A law that is not accord's own may read the global generators of Python and numpy: these are seeded from the stream
    for it. Otherwise its points, drawn again when a tuple is decoded, would be others than the laws were asked about.
    """
    if is_own(law):
        return np.asarray(law.sample(size, stream))
    with ambient_seed(int(stream.integers(2**32))):
        return np.asarray(law.sample(size, stream))


@final
@dataclass(frozen=True, slots=True)
class IidReference:
    """The law of l independent records of a public probability; it satisfies `TupleReference`.

    Formal guarantees
    -----------------
    - Points: independent tuples from the law, a function of key, draw and batch.
    - Ratios: ``sum(log q - log nu)`` over the records, in logs, masses counted at the atoms of the law and densities
      elsewhere; -inf where either vanishes, never NaN.
    - Bounds: l times that of one record.

    Parameters
    ----------
    law
        A public probability on records.

    Source
    ------
    theory L1, S2; docs/proofs/poisson.md.

    """

    law: Distribution

    def points(self, draw: int, batch: int, *, records: int, shared: SharedRandomness) -> NDArray[Any]:
        """Return a batch of tuples, shape (BATCH, records, d)."""
        stream = shared.stream("poisson", "points", draw, batch)
        drawn = sampled(self.law, BATCH * records, stream)
        return drawn.reshape(BATCH, records, self.law.dimension)

    def log_ratios(self, laws: Sequence[Distribution | Abstain], points: NDArray[Any], *, records: int) -> _Floats:
        """Return the log ratio of each law's tuple to the reference's at each point, shape (laws, points)."""
        flat = np.ascontiguousarray(points).reshape(len(points) * records, self.law.dimension)
        own = log_densities([self.law], flat, reference=self.law)[0]
        rows = log_densities(laws, flat, reference=self.law)
        with np.errstate(invalid="ignore", over="ignore"):
            rows -= own
            rows[:, own == -np.inf] = -np.inf  # a record that the reference calls impossible
            totals: _Floats = rows.reshape(len(laws), len(points), records).sum(axis=2)
        totals[np.isnan(totals)] = -np.inf
        return totals

    def log_bounds(self, laws: Sequence[Distribution | Abstain], *, records: int) -> _Floats:
        """Return an upper bound of each row of `log_ratios`, shape (laws,); inf where unknown."""
        return np.array([self._bound(law) * records for law in laws])

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
        return np.array(point).reshape(records, self.law.dimension)

    def _bound(self, law: object) -> float:
        return alone(lambda: log_ratio_bound(law, self.law).seen, failed=-math.inf)
