"""Laws on a public list of labels by counting."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.cells import Cells
from accord.core.coupling import Coupling
from accord.core.errors import FitFailed, InvalidParameter
from accord.core.exact import Number
from accord.couplings.atom_race import AtomRace
from accord.couplings.race import RaceCoupling
from accord.distributions import Categorical
from accord.distributions.categorical import as_labels, label_indices
from accord.learners.tables import records_for, smoothed, tuple_total_variation
from accord.learners.traits import Family, Traits

__all__ = ["EmpiricalLearner"]


@final
@dataclass(frozen=True, slots=True, init=False)
class EmpiricalLearner:
    """Count the labels of a public list, and add 1/4 to each count.

    The added quarter keeps the law of a tuple close to the truth where a label is rare: at b records and d labels the
    expected squared Hellinger distance is at most about ``d / (8 b)``, against twice that for bare frequencies.

    Formal guarantees
    -----------------
    - Purity: the law is a function of the counts of the listed labels alone; the seed is not read.
    - Failure: `FitFailed`, with a text that holds no data.
    - `sample_complexity` and `tuple_total_variation` hold for every law on the listed labels.
    - Not promised: unbiased frequencies.

    Parameters
    ----------
    categories
        Distinct labels, public: they must not be read off the data. Floats are refused: they are no labels.

    Source: theory 6, S6; proof page ``docs/proofs/learners.md``.

    Examples
    --------
    >>> import numpy as np
    >>> learner = EmpiricalLearner(["no", "yes"])
    >>> learner.fit(np.array([["yes"], ["yes"], ["other"]]), seed=0).probabilities
    (0.1, 0.9)

    """

    categories: tuple[Hashable, ...]
    cells: ClassVar[Cells] = "labels"

    def __init__(self, categories: Iterable[Hashable]) -> None:
        labels = as_labels(categories)
        if any(isinstance(label, (float, np.floating)) for label in labels):
            raise InvalidParameter(
                "categories must not be floats: on continuous data the laws of two blocks share no values, so blocks "
                "never agree, and a released value would be somebody's record. Use GaussianLearner, or declare text or "
                "whole numbers."
            )
        _check.store(self, categories=labels)

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return _OfLabels(columns=1, labels=self.categories, formulas=True, seeded=False)

    def fit(self, records: NDArray[Any], *, seed: int) -> Categorical:  # noqa: ARG002 - nothing here is random
        """Return the law of the labels.

        Parameters
        ----------
        records
            Labels, shape (n, 1) or (n,). A record that is not in the list, None and NaN included, is left out. Bytes,
            as in numpy's arrays of dtype "S", are read as text where no category is bytes.
        seed
            Not read.

        Raises
        ------
        FitFailed
            If no record is left, or there is more than one column.

        """
        labels = records if isinstance(records, np.ndarray) else np.asarray(records, dtype=object)
        if labels.ndim not in {1, 2} or (labels.ndim == 2 and labels.shape[1] != 1):
            raise FitFailed("no law on labels can be fitted: the records are not one column.")
        found = label_indices(self.categories, labels.ravel())
        found = found[found >= 0]
        if len(found) == 0:
            raise FitFailed("no law on labels can be fitted: no record is in the list of categories.")
        return Categorical(self.categories, smoothed(found, count=len(self.categories)))

    def sample_complexity(self, alpha: Number, beta: Number) -> int:
        """Return a number b of records from which on the law is within total variation ``alpha`` of any law.

        It fails with probability at most ``beta``. With the added c = 1/4 the mean total variation is at most
        ``(sqrt((d - 1) b) / 2 + c (d - 1)) / (b + c d)``, one record moves it by at most ``1 / (b + c d)``, and
        McDiarmid's inequality does the rest.

        Parameters
        ----------
        alpha, beta
            Strictly between 0 and 1.

        """
        accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
        return records_for(float(accuracy), float(failure), cells=len(self.categories))

    def tuple_total_variation(self, records: int, block_size: int) -> float:
        """Return an upper bound on the mean total variation of tuples: E TV(q^l, p^l), q fitted to b records of p.

        The lesser of ``l E TV`` and, by Hellinger, ``sqrt(1 - (1 - h)^(2 l))`` with h = E h^2 at most
        ``1 - sqrt(b / (b + c d)) + (d - 1) / (2 b)`` (theory L5, S6).

        Parameters
        ----------
        records, block_size
            l and b, at least 1.

        """
        size = _check.integer("records", records, least=1)
        block = _check.integer("block_size", block_size, least=1)
        return tuple_total_variation(size, block, cells=len(self.categories))


_MOST_VECTORS = 200_000
_USUAL_DRAWS = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _OfLabels(Traits):
    """Laws on a public list of labels: a race for tuples as long as their vectors of counts can be listed."""

    labels: tuple[Hashable, ...]

    def family(self, columns: int) -> Family:
        if columns != 1:
            raise InvalidParameter("data must have 1 column for EmpiricalLearner.")
        free = max(1, len(self.labels) - 1)
        return Family(
            coupling=RaceCoupling(self.labels),
            least_block=1,
            usual_block=5,
            usual_draws=_USUAL_DRAWS,
            least_tuple=1,
            agreeing_ratio=min(3.0, 10.0 / free**2),
            typical_error=0.5 * free**0.5,
        )

    def joint_coupling(self, records: int) -> Coupling | None:
        few = math.comb(records + len(self.labels) - 1, records) <= _MOST_VECTORS
        return RaceCoupling(self.labels, most_vectors=_MOST_VECTORS) if few else None

    def single_coupling(self, *, record_by_record: bool) -> Coupling:
        return AtomRace(record_by_record=True) if record_by_record else RaceCoupling(self.labels)
