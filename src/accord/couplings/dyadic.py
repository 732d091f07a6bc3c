"""Coupled numbers of any laws on a line: races down a tree over the doubles, without bounds and without a reference."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Premises
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness, mix, uniform_open, word_at
from accord.distributions import OnALine, on_a_line

__all__ = [
    "BITS",
    "DyadicCoupling",
    "leaf_values",
    "node_ends",
]


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


_Floats = NDArray[np.float64]
_Words = NDArray[np.uint64]
_SIGN_AND_EXPONENT = 12
_AT_ONCE = 1 << 21  # floats held at once
_LEAST_MASS = 2.0**-32
_ROUNDING = 1e-12
_RELATIVE = 1e-6
_WHOLE = 1e-9


@final
@dataclass(frozen=True, slots=True, init=False)
class DyadicCoupling(PointsCoupling):
    """Couple single numbers of laws on R that know the probabilities of intervals.

    The doubles, in their order, are the leaves of a public tree: sign and exponent come first, then the mantissa. A
    node has ``2^node_bits`` children, each with an arrival ``E ~ Exp(1)`` that all blocks share; a block goes to the
    child with the least ``E / P(child)``, until a single double is left.

    Formal guarantees
    -----------------
    - Marginal: a block's number is its own law's, rounded up to a double, as far as the law's `interval` is exact.
      Nodes of probability below 2^-32 are filled evenly: no P(X <= x) moves by more than that, but atoms that rare
      are lost.
    - Agreement: of one node, at least ``(1 - TV) / (1 + TV)`` of the conditional laws; of the whole, the product along
      the path, in expectation. So disagreement is at most the sum over the levels of the mean ``2 TV / (1 + TV)``. This
      is worse than one race on all doubles would be, most where the laws' width falls between two levels: 1.3 to 1.7
      times TV was seen for close laws, against 1.4 or less.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - A law whose intervals do not add up, are NaN, negative or miss a part of the mass abstains, alone.
    - Draws are independent of each other. NaN and infinities are never voted; -0.0 is 0.0.
    - Not promised: any privacy; agreement of tuples that is better than that of their records one by one.

    Parameters
    ----------
    resolution
        Mantissa bits that are kept, 0 to 52 (all). With fewer, a number is rounded down to one with so many bits.
    node_bits
        1 to 12. More bits agree better where the laws' width is about that of a node's children, and take longer.
    record_by_record
        Allow tuples of several records. They are coupled one by one: agreement falls with the number of records as
        its power, where a joint coupling loses only with the square root.

    Source
    ------
    theory L4, S1; proof page ``docs/proofs/dyadic.md``.

    Examples
    --------
    >>> from accord.distributions import Normal, PointMass
    >>> laws = [Normal(5.0, 1.0), PointMass(0.0), ABSTAIN, Normal(5.0, 1.0)]
    >>> coupled = DyadicCoupling().couple(laws, records=1, draws=3, shared=SharedRandomness(1))
    >>> bool(coupled.keys[0, 0] == coupled.keys[0, 3]), coupled.keys[0, 2]
    (True, ABSTAIN)
    >>> coupled.decode(0, coupled.keys[0, 1]).tolist()
    [[0.0]]

    """

    resolution: int
    node_bits: int
    record_by_record: bool

    def __init__(self, *, resolution: int = 52, node_bits: int = 8, record_by_record: bool = False) -> None:
        _check.store(
            self,
            resolution=_check.integer("resolution", resolution, least=0, most=52),
            node_bits=_check.integer("node_bits", node_bits, least=1, most=12),
        )
        if not isinstance(record_by_record, bool):
            raise InvalidParameter("record_by_record must be True or False.")
        _check.store(self, record_by_record=record_by_record)

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return marginals; down a tree two laws part more often than 2 TV allows."""
        return Premises(marginals=True, agreement=None)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Tree":
        """Return the tree of all draws; laws are those for which `accord.distributions.on_a_line` holds."""
        size = _check.integer("records", records, least=1)
        if size > 1 and not self.record_by_record:
            raise InvalidParameter(
                "records must be 1: several are coupled one by one, which agrees rarely; if that is meant, give "
                "record_by_record=True."
            )
        return _Tree(shared, records=size, draws=draws, depth=_SIGN_AND_EXPONENT + self.resolution, bits=self.node_bits)


@final
class _Tree:
    """The tree and its arrivals: those of a node's children are a function of key, draw, record and node."""

    def __init__(self, shared: SharedRandomness, *, records: int, draws: int, depth: int, bits: int) -> None:
        self._shared = shared
        self._records = records
        self._draws = draws
        self._depth = depth
        self._levels = [(done, min(bits, depth - done)) for done in range(0, depth, bits)]

    def votes(self, law: object) -> list[bytes] | Abstain:
        """Return one law's vote in each draw; a law that is not on a line abstains."""
        found = on_a_line(law)
        if found is None:
            return ABSTAIN
        votes: list[bytes] = []
        step = max(1, _AT_ONCE // (self._records << self._levels[0][1]))
        for start in range(0, self._draws, step):
            chunk = np.arange(start, min(self._draws, start + step))
            places = np.tile(np.arange(self._records), len(chunk))
            values = self.values(found, np.repeat(chunk, self._records), places)
            votes += values.astype("<f8").view(f"V{8 * self._records}").tolist()
        return votes

    def decode(self, draw: int, key: bytes) -> _Floats:  # noqa: ARG002 - the same in every draw
        """Return the records of a vote, shape (l, 1)."""
        return np.frombuffer(key, dtype="<f8").astype(np.float64)[:, None]

    def values(self, law: OnALine, draws: NDArray[np.int64], records: NDArray[np.int64]) -> _Floats:
        """Return one law's number in each of these (draw, record), shape (n,)."""
        races = self._shared.hash_rows(np.column_stack([draws, records]), "dyadic", "draw")
        nodes = np.zeros(len(races), dtype=np.uint64)
        masses = np.ones(len(races))
        with np.errstate(all="ignore"):
            for depth, bits in self._levels:
                found, first, where = np.unique(nodes, return_index=True, return_inverse=True)
                weights = _weights(law, found, masses[first], depth=depth, bits=bits)
                labels = np.column_stack([np.full(len(found), depth), found.view(np.int64)])
                streams = mix(self._shared.hash_rows(labels, "dyadic", "node")[where] ^ races)
                arrivals = -np.log(uniform_open(word_at(streams[:, None], np.arange(1 << bits))))
                taken = (arrivals / weights[where]).argmin(axis=1)
                nodes = (nodes << np.uint64(bits)) | taken.astype(np.uint64)
                masses = np.where(masses < _LEAST_MASS, 0.0, weights[where, taken])
        return leaf_values(nodes, depth=self._depth)


def _weights(law: OnALine, nodes: _Words, masses: _Floats, *, depth: int, bits: int) -> _Floats:
    """Return the probabilities of the nodes' children, shape (n, 2^bits); even ones in nodes of too little mass.

    Raises
    ------
    ArithmeticError
        If they are no probabilities, or do not add up to the mass of their node.

    """
    ends = node_ends(nodes, depth=depth, bits=bits)
    weights = (ends[:, :-1] < ends[:, 1:]).astype(np.float64)
    read = np.flatnonzero(masses >= _LEAST_MASS)
    if len(read) == 0:
        return weights
    held = weights[read] > 0
    low, high = ends[read, :-1][held], ends[read, 1:][held]
    found = np.zeros(held.shape)
    found[held] = np.asarray(law.interval(low, high), dtype=np.float64)
    gap = np.abs(found.sum(axis=1) - masses[read])
    tolerance = _WHOLE if depth == 0 else _ROUNDING + _RELATIVE * masses[read]
    if not ((found >= 0).all() and (gap <= tolerance).all()):
        raise ArithmeticError("the probabilities of intervals do not add up")
    if depth == 0:
        _refuse_bad_cdf(law, ends[0], found[0])
    weights[read] = found
    return weights


def _refuse_bad_cdf(law: OnALine, ends: _Floats, found: _Floats) -> None:
    """Refuse a law whose cdf falls somewhere, or is not what its intervals add up to."""
    inner = np.isfinite(ends[1:])
    values = np.asarray(law.cdf(ends[1:][inner]), dtype=np.float64)
    close = np.abs(values - found.cumsum()[inner]) <= _WHOLE
    if not (close.all() and (np.diff(values) >= -math.ulp(1.0)).all()):
        raise ArithmeticError("the cdf does not fit the probabilities of intervals")
