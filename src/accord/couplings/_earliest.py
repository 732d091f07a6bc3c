"""Points of Couple II and who accepts them: floats where they are sure, whole numbers and further bits where not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from accord.couplings._grid_law import GridLaw, Integers
from accord.randomness import SecretStream

__all__ = ["Points", "first_accepted", "margin"]

_POINT, _HEIGHT, _AGAIN = range(3)  # what a word is for
_WORD = 64
_LARGEST_LOG = 43.0  # log 2^62
_UNIT = 2.0**-50

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """As many points of each of several draws; point p belongs to the draw at place ``p // batch_size``.

    Parameters
    ----------
    proposers
        Shape (points,): the law that each point was drawn from.
    heights
        Shape (points,): the first 64 bits of each point's height.
    cells
        Shape (d, points, l): the records, columns first; a column that the proposer lacks is 0.

    """

    laws: Sequence[GridLaw]
    draws: Integers
    batch: int
    stream: SecretStream
    proposers: Integers
    heights: NDArray[np.uint64]
    cells: Integers

    @staticmethod
    def batch_size(laws: int) -> int:
        """Return how many points of a draw are drawn at once: a matter of speed, no law depends on it."""
        return min(max(2 * laws, 8), 256)

    @classmethod
    def drawn(cls, laws: Sequence[GridLaw], *, records: int, draws: Integers, batch: int, stream: SecretStream) -> Self:
        """Draw a batch of points: a law, uniformly; a tuple of records from it; a height."""
        size, dimension = cls.batch_size(len(laws)), max(len(law.kinds) for law in laws)
        width = 2 + records * (dimension + 1)
        words = np.concatenate([stream.words(size * width, _POINT, int(draw), batch) for draw in draws])
        words = words.reshape(len(draws) * size, width)
        proposers = np.array(
            [
                _uniform(int(word), len(laws), stream=stream, labels=(int(draws[place // size]), batch, place % size))
                for place, word in enumerate(words[:, 0])
            ],
            dtype=np.int64,
        )
        numbers = (words[:, 2:] >> np.uint64(2)).astype(np.int64).reshape(len(words), dimension + 1, records)
        cells = np.zeros((dimension, len(words), records), dtype=np.int64)
        for number, law in enumerate(laws):
            here = np.flatnonzero(proposers == number)
            own = np.zeros((dimension, len(here) * records), dtype=np.int64)
            picks = numbers[here].transpose(1, 0, 2).reshape(dimension + 1, -1)
            law.draw(picks[0], picks[1:], own)
            cells[:, here] = own.reshape(dimension, len(here), records)
        return cls(laws, draws, batch, stream, proposers, words[:, 1].copy(), cells)

    def __len__(self) -> int:
        return len(self.proposers)

    def kinds(self, point: int) -> str:
        """Return the kinds of the columns of a point."""
        return self.laws[int(self.proposers[point])].kinds

    def tuple_of(self, point: int) -> Integers:
        """Return the records of a point, shape (d, l), in the columns that it has."""
        return self.cells[: len(self.kinds(point)), point]

    def log_weights(self) -> Floats:
        """Return the log probability of every point under every law, shape (laws, points), up to `margin`."""
        kinds = np.array([law.kinds for law in self.laws])
        logs = np.full((len(self.laws), len(self)), -np.inf)
        for kind in sorted(set(kinds.tolist())):
            here = np.flatnonzero(kinds[self.proposers] == kind)
            if len(here) == 0:
                continue
            records = np.ascontiguousarray(self.cells[: len(kind), here]).reshape(len(kind), -1)
            for number in np.flatnonzero(kinds == kind).tolist():
                logs[number, here] = self.laws[number].log_weights(records).reshape(len(here), -1).sum(axis=1)
        return logs

    def weights(self, point: int) -> list[int]:
        """Return the probability of one point under every law, exactly, in a common unit."""
        kind, records = self.kinds(point), self.tuple_of(point)
        return [law.tuple_weight(records) if law.kinds == kind else 0 for law in self.laws]

    def accepts(self, point: int, *, weight: int, total: int) -> bool:
        """Return whether the point's height is below ``weight / total``, reading as many of its bits as it takes."""
        height, bits = int(self.heights[point]), _WORD
        place, position = divmod(point, self.batch_size(len(self.laws)))
        depth = 0
        while True:
            if (height + 1) * total <= weight << bits:
                return True
            if height * total >= weight << bits:
                return False
            word = self.stream.words(1, _HEIGHT, int(self.draws[place]), self.batch, position, depth)[0]
            height, bits, depth = (height << _WORD) + int(word), bits + _WORD, depth + 1


def margin(laws: Sequence[GridLaw], *, records: int) -> float:
    """Return a bound, four times over, on the error of ``log P_i(y) - log sum_j P_j(y)`` as computed, where finite.

    A record has at most c = d + 1 factors and so a log of size at most 43 c; a tuple's is a sum of l of these.
    """
    factors = max(len(law.kinds) for law in laws) + 1
    parts = max(len(law.components) for law in laws)
    size = _LARGEST_LOG * factors * records
    return 4 * _UNIT * (size * (records + factors + 8) + (records + 1) * (parts + 8) + len(laws) + 8)


def first_accepted(laws: Sequence[GridLaw], points: Points, *, pending: Flags) -> Integers:
    """Return the first point that each law accepts in each draw, shape (laws, draws); -1 for none or not pending."""
    logs = points.log_weights()
    top = logs.max(axis=0)
    shares = logs - (top + np.log(np.exp(logs - top).sum(axis=0)))
    doubt = margin(laws, records=points.cells.shape[2])
    heights = points.heights.astype(np.float64)
    with np.errstate(divide="ignore"):
        above = np.log(heights + 1.0) - _WORD * np.log(2.0)
        below = np.log(heights) - _WORD * np.log(2.0)
    size = points.batch_size(len(laws))
    asked = np.repeat(pending, size, axis=1)
    accepted = asked & (above + doubt <= shares)
    unsure = asked & ~accepted & (below - doubt < shares) & (logs > -np.inf)
    for point in np.flatnonzero(unsure.any(axis=0)):
        weights = points.weights(int(point))
        for law in np.flatnonzero(unsure[:, point]):
            accepted[law, point] = points.accepts(int(point), weight=weights[law], total=sum(weights))
    grid = accepted.reshape(len(laws), -1, size)
    first = grid.argmax(axis=2) + np.arange(grid.shape[1]) * size
    return np.where(grid.any(axis=2), first, -1)


def _uniform(word: int, count: int, *, stream: SecretStream, labels: tuple[int, ...]) -> int:
    """Return a uniform number below ``count``: the word's, or that of the first further word that will do."""
    share = (1 << _WORD) // count
    tries = 0
    while word >= share * count:
        word = int(stream.words(1, _AGAIN, *labels, tries)[0])
        tries += 1
    return word // share
