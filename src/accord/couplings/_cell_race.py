"""A race over public cells whose points are made by counter from the shared key: for lattices and statistics."""

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN, Vote
from accord.core.shared import SharedRandomness, mix, uniform_open, word_at

__all__ = ["LOG_LIMIT", "CellRace", "Floats", "Integers", "Points", "Reach", "Words"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_ARRIVALS_AT_ONCE = 1 << 20
_LOG_ROUNDS = np.log([2.0, 6.0, 18.0, 54.0])
"""Scores are looked for below 2, then 6, ...; the winner's score is Exp(1), so beyond 54 there is none (exp(-54))."""

LOG_LIMIT = float(_LOG_ROUNDS[-1])


@final
@dataclass(frozen=True, slots=True)
class Points:
    """Some shared points, one a row: the integers of their cells, the streams of these, and their numbers in them."""

    cells: Integers
    streams: Words
    numbers: Integers
    width: int

    def uniforms(self, first: int, count: int) -> Floats:
        """Return ``count`` of each point's own uniforms from number ``first`` on, shape (n, count)."""
        counter = self.numbers[:, None] * self.width + 1 + first + np.arange(count)
        return uniform_open(word_at(self.streams[:, None], counter))


class Reach(Protocol):
    """What one law can reach: cells, and its density with respect to the measure that gives each cell volume 1."""

    @property
    def cells(self) -> Integers:
        """Shape (n, D): the integers that name each cell."""

    @property
    def log_bound(self) -> Floats:
        """Shape (n,): at least the log density anywhere in the cell."""

    def log_density(self, which: Integers, points: Points) -> Floats:
        """Return the log density at points in the cells numbered ``which``, shape (len(which),)."""

    def key(self, points: Points) -> bytes:
        """Return the canonical bytes of the value of a single point."""


@final
class CellRace:
    """The shared points: unit rate in every cell, in every draw, as a function of the key.

    Parameters
    ----------
    shared
        The key, which no other race with the same labels may use.
    draws
        Number of independent draws.
    uniforms
        How many uniforms each point has of its own.
    labels
        Under which this race's words hang from the key.

    """

    __slots__ = ("_labels", "_shared", "_width", "draws")

    def __init__(self, shared: SharedRandomness, *, draws: int, uniforms: int, labels: tuple[str, ...] = ()) -> None:
        self._shared = shared
        self._labels = labels
        self._width = uniforms + 1
        self.draws = np.array([self._word(draw) for draw in range(draws)], dtype=np.uint64)
        """One word a draw, shape (draws,)."""

    def _word(self, draw: int) -> np.uint64:
        return self._shared.word(*self._labels, "draw", draw)

    def _tags(self, cells: Integers) -> Words:
        return self._shared.hash_rows(cells, *self._labels, "cell")

    def point(self, draw: int, cell: Integers, number: int) -> Points:
        """Return one point again, from its name."""
        streams = mix(self._tags(cell[None, :]) ^ np.array([self._word(draw)], dtype=np.uint64))
        return Points(cell[None, :], streams, np.array([number], dtype=np.int64), self._width)

    def votes(self, reach: Reach) -> list[Vote]:
        """Return the key of the point with the least arrival over density, in each draw."""
        together = max(1, _ARRIVALS_AT_ONCE // max(1, len(reach.cells)))
        tags = self._tags(reach.cells)
        votes: list[Vote] = []
        for start in range(0, len(self.draws), together):
            streams = mix(tags[None, :] ^ self.draws[start : start + together, None])
            votes += self._race(reach, streams)
        return votes

    def _race(self, reach: Reach, streams: Words) -> list[Vote]:
        """Points come by arrival in each cell; cells in which none can win any more are left alone."""
        bounds = reach.log_bound
        first = uniform_open(word_at(streams, np.zeros(1, dtype=np.int64)))
        draw, cell = np.nonzero(first > np.exp(-np.exp(LOG_LIMIT + bounds)))
        stream, arrival, bound = streams[draw, cell], -np.log(first[draw, cell]), bounds[cell]
        number = np.zeros(len(draw), dtype=np.int64)
        least = np.log(arrival) - bound
        best = np.full(len(streams), np.inf)
        winner = np.zeros((len(streams), 2), dtype=np.int64)
        for level in _LOG_ROUNDS:
            while len(now := np.nonzero(least < np.minimum(best[draw], level))[0]):
                points = Points(reach.cells[cell[now]], stream[now], number[now], self._width)
                score = least[now] + bound[now] - reach.log_density(cell[now], points)
                order = np.lexsort((number[now], cell[now], score, draw[now]))
                found, place = np.unique(draw[now][order], return_index=True)
                leader = order[place]
                better = score[leader] < best[found]
                found, leader = found[better], leader[better]
                best[found] = score[leader]
                winner[found, 0], winner[found, 1] = cell[now][leader], number[now][leader]
                number[now] += 1
                arrival[now] -= np.log(uniform_open(word_at(stream[now], number[now] * self._width)))
                least[now] = np.log(arrival[now]) - bound[now]
        return [
            reach.key(Points(reach.cells[[place]], row[[place]], np.array([which]), self._width))
            if np.isfinite(score)
            else ABSTAIN
            for row, (place, which), score in zip(streams, winner.tolist(), best.tolist(), strict=True)
        ]
