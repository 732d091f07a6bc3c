"""Laws on the line by counting in declared bins."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.cells import Cells
from accord.core.coupling import Coupling
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.couplings.lattice.hashed import HashedLattice
from accord.distributions import Piecewise
from accord.learners.tables import fail, number_table, records_for, smoothed, tuple_total_variation
from accord.learners.traits import Traits

__all__ = ["HistogramLearner"]

_LAW = "histogram"


@final
@dataclass(frozen=True, slots=True, init=False)
class HistogramLearner:
    """Count the records in declared bins, and add 1/4 to each count.

    Bin i is ``[edges[i], edges[i + 1])``, the last one with its upper end, as in `Piecewise`. A record outside all bins
    is left out: what is learnt is the law of a record given that it lies between the first and the last edge. It is
    not moved into the nearest bin, because the mass heaped up there would be a peak that the data do not have; to keep
    outliers, declare wide outer bins.

    Formal guarantees
    -----------------
    - Purity: the law is a function of the counts of the declared bins alone; the seed is not read.
    - Failure: `FitFailed`, with a text that holds no data.
    - `sample_complexity` and `tuple_total_variation` hold for every law with a constant density on each bin and no mass
      outside them. For another law p between the edges they hold with p made constant on each bin in the place of p;
      by the triangle inequality the total variation to p is greater by at most that from p to its binned form.
    - Not promised: anything about the mass outside the edges, nor detail finer than a bin.

    Parameters
    ----------
    edges
        Shape (m + 1,), m >= 1, finite and increasing, public: they must not be read off the data.

    Source: theory 6, S6; proof page ``docs/proofs/learners.md``.

    Examples
    --------
    >>> import numpy as np
    >>> learner = HistogramLearner([0, 1, 3])
    >>> learner.fit(np.array([0.5, 1.0, 3.0, 7.0]), seed=0)
    Piecewise(edges=(0.0, 1.0, 3.0), masses=(0.35714285714285715, 0.6428571428571429))
    >>> learner.sample_complexity(0.1, 0.1)
    252

    """

    edges: tuple[float, ...]
    cells: ClassVar[Cells] = "numbers"

    def __init__(self, edges: ArrayLike) -> None:
        try:
            ends = np.asarray(edges)
        except ValueError:  # rows of different lengths
            ends = np.zeros((0, 0))
        if ends.ndim != 1 or len(ends) < 2:
            raise InvalidParameter("edges must be a list of at least two increasing numbers.")
        _check.store(self, edges=Piecewise(ends, np.ones(len(ends) - 1)).edges)

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return _OfBins(columns=1, formulas=True, seeded=False)

    @property
    def bins(self) -> int:
        """The number m of bins."""
        return len(self.edges) - 1

    def fit(self, records: NDArray[Any], *, seed: int) -> Piecewise:  # noqa: ARG002 - nothing here is random
        """Return the histogram.

        Parameters
        ----------
        records
            Numbers, shape (n, 1) or (n,). A record outside the bins, NaN and infinities included, is left out.
        seed
            Not read.

        Raises
        ------
        FitFailed
            If no record is left, or they are not one column of numbers.

        """
        table = number_table(records, law=_LAW)
        if table.shape[1] != 1:
            fail("the records are not one column", law=_LAW)
        column = table[:, 0]
        inside = column[(column >= self.edges[0]) & (column <= self.edges[-1])]
        if len(inside) == 0:
            fail("no record is between the edges", law=_LAW)
        places = np.searchsorted(np.array(self.edges), inside, side="right") - 1
        return Piecewise(self.edges, smoothed(np.minimum(places, self.bins - 1), count=self.bins))

    def sample_complexity(self, alpha: Number, beta: Number) -> int:
        """Return a number b of records from which on the histogram is within total variation ``alpha`` of the truth.

        It fails with probability at most ``beta``, for every law in the binned class (see above). Two laws of that
        class are as far apart as their masses, so this is `EmpiricalLearner.sample_complexity` for m labels.

        Parameters
        ----------
        alpha, beta
            Strictly between 0 and 1.

        """
        accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
        return records_for(float(accuracy), float(failure), cells=self.bins)

    def tuple_total_variation(self, records: int, block_size: int) -> float:
        """Return an upper bound on the mean total variation of tuples: E TV(q^l, p^l), q fitted to b records of p.

        As `EmpiricalLearner.tuple_total_variation`, for p in the binned class.

        Parameters
        ----------
        records, block_size
            l and b, at least 1.

        """
        size = _check.integer("records", records, least=1)
        block = _check.integer("block_size", block_size, least=1)
        return tuple_total_variation(size, block, cells=self.bins)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _OfBins(Traits):
    """Laws with bounded densities on the line."""

    def single_coupling(self, *, record_by_record: bool) -> Coupling:
        return HashedLattice(dimension=1, record_by_record=record_by_record)
