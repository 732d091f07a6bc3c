"""The share of rows that a condition has, and how far the noise of a release may have moved it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from accord.marginals.verdicts import TableErrors
from accord.synthesis.conditions import Clause
from accord.synthesis.model import TableModel

__all__ = ["Probability", "error_of"]

_WIDTH: Final = 2 * 1.959964
"""Deviations between the ends of an interval that holds 95 % of a normal law."""
_MEAN_SIZE: Final = math.sqrt(2 / math.pi)
_NOISE: Final = 2.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """A released share.

    Parameters
    ----------
    value
        From 0 to 1.
    error
        How far the noise is expected to have moved it, on average; None where no measured table holds the columns of
        the condition together, so that nothing is known.

    Examples
    --------
    >>> print(Probability(value=0.25, error=0.01))
    0.25 (expected error 0.01)

    """

    value: float
    error: float | None

    @property
    def is_noise(self) -> bool:
        """Whether noise alone may have made it."""
        return self.error is not None and self.value < _NOISE * self.error

    def __str__(self) -> str:
        """Return both, in few digits."""
        said = "unknown" if self.error is None else f"{self.error:.2g}"
        return f"{self.value:.4g} (expected error {said})"


def error_of(clauses: Sequence[Clause], law: TableModel, errors: TableErrors) -> float | None:
    """Return how far noise is expected to have moved the share of a condition.

    Of one column: from the intervals of its own cells, which have noise of their own. Of two that were measured
    together: at most the expected total variation of their table. Otherwise nothing is known.
    """
    places = sorted({place for clause in clauses for place in clause})
    names = [column.name for column in law.schema.read]
    if len(places) == 1:
        column = errors.columns[names[places[0]]]
        weight = np.sum([law.weights(clause)[places[0]] for clause in clauses], axis=0)
        spread = (column.high - column.low)[: len(weight)] / _WIDTH
        return min(_MEAN_SIZE * float(np.sqrt(((weight * spread) ** 2).sum())), column.error)
    if len(places) == 2:
        left, right = (names[place] for place in places)
        pair = errors.pairs.get((left, right)) or errors.pairs.get((right, left))
        return None if pair is None else pair.error
    return None
