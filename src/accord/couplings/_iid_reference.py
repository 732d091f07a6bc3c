"""Tuples of independent records from one public law, as candidates for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.coupling import Abstain
from accord.core.shared import SharedRandomness
from accord.couplings._ratio_bounds import log_ratio_bound
from accord.couplings._sampled import sampled
from accord.couplings.reference import BATCH
from accord.distributions import Distribution, log_densities

__all__ = ["IidReference"]

_Floats = NDArray[np.float64]


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
