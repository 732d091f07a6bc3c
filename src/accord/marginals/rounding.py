"""Records whose tables are the model's, up to rounding: a loop that changes one cell of one record at a time."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord._compiled import compiled, mix_word, uniform_word, word_number

__all__ = ["balance"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ENOUGH = 0.6
_STALLED = 0.8


@final
class _Layout:
    """Tables one after the other in one array, and for each column which of them hold it.

    ``slots[column]`` is an array of rows (start, stride of the column, another column, its stride, ...), filled up with
    strides 0; a row with start -1 ends the list.
    """

    def __init__(self, shape: Sequence[int], tables: Sequence[tuple[int, ...]], values: Sequence[Floats]) -> None:
        sizes = [len(one) for one in values]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.flat = np.concatenate([np.zeros(0), *(np.asarray(one, dtype=np.float64) for one in values)])
        widest = max((len(table) for table in tables), default=1)
        rows: list[list[list[int]]] = [[] for _ in shape]
        for table, start in zip(tables, starts, strict=False):
            strides = np.cumprod([1, *(shape[column] for column in reversed(table[1:]))])[::-1].tolist()
            for column, stride in zip(table, strides, strict=True):
                row = [int(start), stride]
                for other, step in zip(table, strides, strict=True):
                    row.extend([other, step] if other != column else [])
                rows[column].append([*row, *([0] * (2 * widest - len(row)))])
        longest = max(map(len, rows), default=0)
        end = [-1] + [0] * (2 * widest - 1)
        self.slots = np.array([[*row, *([end] * (longest + 1 - len(row)))] for row in rows], dtype=np.int64)


def balance(
    records: Ints,
    *,
    shape: Sequence[int],
    tables: Sequence[tuple[int, ...]],
    expected: Sequence[Floats],
    factors: Sequence[tuple[int, ...]],
    potentials: Sequence[Floats],
    sweeps: int,
    word: int,
) -> Ints:
    """Return records of the same law, given that their tables are close to the expected ones.

    A Metropolis walk on whole sets of records with the weight ``prod p(record) exp(-sum (count - expected)^2)``: a step
    proposes for one cell the value of another record in the same column. It stops once the mean squared difference is
    about that of rounding, or hardly falls any more.

    Parameters
    ----------
    records
        Draws of the model in random order, shape (n, d).
    shape
        Number of codes of each column.
    tables, expected
        Which tables, and the expected count of each of their cells, flat.
    factors, potentials
        The model: ``log p`` is a sum of these, up to a constant.
    sweeps
        Most proposals a record and column.
    word
        64 random bits.

    """
    found = np.ascontiguousarray(records, dtype=np.int32)
    lacks, model = _Layout(shape, tables, expected), _Layout(shape, factors, potentials)
    start = 0
    for table, expect in zip(tables, expected, strict=True):
        place = np.zeros(len(found), dtype=np.int64)
        for column in table:
            place = place * shape[column] + found[:, column]
        lacks.flat[start : start + len(expect)] -= np.bincount(place, minlength=len(expect))
        start += len(expect)
    shares = np.zeros((len(shape), max(shape)))
    for column, size in enumerate(shape):
        shares[column, :size] = np.log(np.maximum(np.bincount(found[:, column], minlength=size), 0.5))
    enough = _ENOUGH * len(lacks.flat)
    state = np.uint64(word)
    before = np.inf
    for sweep in range(sweeps):
        excess = float(lacks.flat @ lacks.flat)
        if excess <= enough or excess > _STALLED * before:
            break
        before = excess
        for column in range(len(shape)):
            stream = np.uint64(mix_word(state ^ np.uint64(sweep * len(shape) + column + 1)))
            _walk(
                found, column, lacks.slots[column], lacks.flat, model.slots[column], model.flat, shares[column], stream
            )
    return found.astype(np.int64)


@compiled
def _cell(slot: Ints, records: NDArray[np.int32], record: int, code: int) -> int:
    """Return where a table holds a record, if its cell in the column at hand were this code."""
    place: int = slot[0] + slot[1] * code
    for axis in range(2, len(slot), 2):
        place += slot[axis + 1] * records[record, slot[axis]]
    return place


@compiled
def _walk(  # noqa: PLR0917 - compiled: plain arrays, positions only
    records: NDArray[np.int32],
    column: int,
    slots: Ints,
    lacks: Floats,
    model_slots: Ints,
    model: Floats,
    shares: Floats,
    stream: np.uint64,
) -> None:
    count = len(records)
    # One distance for all donors: they are read in order, and the records are in random order.
    donor = int(uniform_word(mix_word(stream)) * count)
    for record in range(count):
        donor = donor + 1 if donor + 1 < count else 0
        old, new = records[record, column], records[donor, column]
        if old == new:
            continue
        change = shares[old] - shares[new]
        for slot in model_slots:
            if slot[0] < 0:
                break
            place = _cell(slot, records, record, old)
            change += model[place + (new - old) * slot[1]] - model[place]
        for slot in slots:
            if slot[0] < 0:
                break
            place = _cell(slot, records, record, old)
            # One record more in the new cell and one less in the old: by this much the squares change.
            change -= 2 * (lacks[place] - lacks[place + (new - old) * slot[1]]) + 2
        if change >= 0 or np.log(uniform_word(word_number(stream, record))) < change:
            records[record, column] = new
            for slot in slots:
                if slot[0] >= 0:
                    place = _cell(slot, records, record, old)
                    lacks[place] += 1.0
                    lacks[place + (new - old) * slot[1]] -= 1.0
