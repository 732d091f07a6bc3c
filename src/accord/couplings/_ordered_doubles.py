"""The finite doubles in their order, as whole numbers: where a tree over them is cut, and which double a leaf is."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["BITS", "leaf_values", "node_ends"]

BITS = 64
"""Depth of the binary tree whose leaves are all words, the doubles among them."""

_LARGEST = np.int64(0x7FEF_FFFF_FFFF_FFFF)  # the place of the largest double; that of 0.0 and -0.0 is 0
_SIGN = np.uint64(1 << 63)


def node_ends(nodes: NDArray[np.uint64], *, depth: int, bits: int) -> NDArray[np.float64]:
    """Return where nodes are cut into their ``2^bits`` children, shape (n, 2^bits + 1).

    Child c holds the doubles x with ``ends[c] < x <= ends[c + 1]``. What lies beyond the largest double on either side
    belongs to that double, so the outermost ends are infinite; a child without any double has equal ends.

    Parameters
    ----------
    nodes
        Shape (n,): the first ``depth`` bits of the words in each node.
    depth, bits
        ``depth + bits`` is at most 64.

    """
    rest = BITS - depth - bits
    children = np.arange(1 << bits, dtype=np.uint64)
    first = ((nodes[:, None] << np.uint64(bits)) | children) << np.uint64(rest)
    places = np.empty((len(nodes), len(children) + 1), dtype=np.int64)
    places[:, 1:] = _signed(first + np.uint64((1 << rest) - 1))
    places[:, 0] = np.maximum(_signed(first[:, 0]), -_LARGEST) - 1
    places = np.clip(places, -_LARGEST - 1, _LARGEST)
    places[places == _LARGEST] += 1
    return _doubles(places)


def leaf_values(leaves: NDArray[np.uint64], *, depth: int) -> NDArray[np.float64]:
    """Return the least finite double of each leaf at this depth (its only one at depth 64); 0.0 is never -0.0."""
    first = leaves << np.uint64(BITS - depth) if depth < BITS else leaves
    return _doubles(np.clip(_signed(first), -_LARGEST, _LARGEST))


def _signed(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (words ^ _SIGN).view(np.int64)


def _doubles(places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the doubles at these places; one beyond the largest is infinity."""
    words = np.abs(places).view(np.uint64)
    return np.where(places < 0, words | _SIGN, words).view(np.float64)
