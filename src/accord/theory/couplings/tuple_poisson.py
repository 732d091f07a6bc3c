"""Couple II: earliest accepted points of the laws themselves, where no public reference covers them all."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import alone
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Distribution, Premises
from accord.core.errors import InvalidParameter
from accord.core.shared import SharedRandomness, require_shared
from accord.couplings.atom_race import label_of, split
from accord.distributions.categorical import label_array
from accord.theory.couplings.grid import GridLaw, Integers, Points, Reader, first_accepted
from accord.theory.couplings.secret_stream import SecretStream

__all__ = [
    "Decoder",
    "TuplePoissonCoupling",
    "tuple_key",
]


def tuple_key(kinds: str, cells: Integers, *, names: Sequence[bytes]) -> bytes:
    """Return the canonical bytes of a tuple.

    Parameters
    ----------
    kinds
        One letter a column.
    cells
        Shape (at least d, l).
    names
        The bytes of each label, by its number.

    """
    columns = []
    for kind, column in zip(kinds, cells, strict=False):
        parts = [column.astype("<i8").tobytes()] if kind == "n" else [names[number] for number in column.tolist()]
        columns.append(b"".join(struct.pack("<Q", len(part)) + part for part in parts))
    return kinds.encode() + b":" + b"".join(struct.pack("<Q", len(column)) + column for column in columns)


@final
@dataclass(frozen=True, slots=True)
class Decoder:
    """Give the records of a key; draw and key are all it reads, besides the public widths."""

    steps: tuple[float, ...]

    def __call__(self, draw: int, key: bytes) -> NDArray[Any]:  # noqa: ARG002 - the same in every draw
        """Return the records, shape (l, d): floats, or Python objects where there are labels."""
        kinds, _, body = key.partition(b":")
        columns = [self._column(place, kind, split(part)) for place, (kind, part) in enumerate(_columns(kinds, body))]
        kind = columns[0].dtype if len({column.dtype for column in columns}) == 1 else np.dtype(object)
        records = np.empty((len(columns[0]), len(columns)), dtype=kind)
        for place, column in enumerate(columns):
            records[:, place] = column
        return records

    def _column(self, place: int, kind: str, parts: Sequence[bytes]) -> NDArray[Any]:
        if kind == "l":
            return label_array([label_of(part) for part in parts])
        step = self.steps[0] if len(self.steps) == 1 else self.steps[place]
        values: NDArray[Any] = np.frombuffer(parts[0], dtype="<i8") * step + 0.0  # -0.0 is 0.0
        return values


def _columns(kinds: bytes, body: bytes) -> list[tuple[str, bytes]]:
    return list(zip(kinds.decode(), split(body), strict=True))


_MOST_CELLS = 1 << 18
_MOST_NUMBERS = 2_000_000  # numbers drawn at once


@final
@dataclass(frozen=True, slots=True, init=False)
class TuplePoissonCoupling:
    """Couple tuples of records of laws that need no common reference: point masses, atoms with densities, any mix.

    Every law is first turned into a law on a public grid whose probabilities are whole multiples of 2^-62. Then points
    are drawn: one of the k laws, uniformly; a tuple of records from it; a height, uniform between 0 and 1. A block
    takes the first point whose height is below its own law's share ``P_i(y) / sum_j P_j(y)``.

    Formal guarantees
    -----------------
    - Marginal: a block's records are independent with its own law on the grid, exactly. That law is the law's
      probabilities of the cells around the multiples of ``step``, up to the rounding of floats; see Not promised.
    - Agreement: two blocks disagree with probability at most ``2 TV / (1 + TV)``, TV being the distance of the laws of
      the tuples on the grid.
    - Not isolated: only the joint law of the other blocks' votes is free of block i's law (theory L3); it is so
      exactly, and `slack` is 0. Every comparison is one of whole numbers, decided in floats only where a proved bound
      of their error leaves no doubt; and no number of points ends the search, which each block ends with probability
      1/k a point.
    - A law that abstains or cannot be read takes no part; which laws these are depends on each alone.
    - A key holds the records, so that `decode` needs no secret; a record's digits do not tell which law proposed it.
    - Not promised: any privacy if the shared key is known, was chosen by a person, or was used before; a running time
      that is independent of the laws. In several columns a normal law's conditional means are rounded to a sixteenth
      of a cell. Tails that do not fit into ``most_cells`` are moved into the outermost cell, up to 2^-30 of the mass;
      beyond, the block abstains.

    Parameters
    ----------
    step
        Public width of the cells in columns of numbers, above 0: one number, or one a column (any number where a
        column holds labels). Records are multiples of it. A twentieth of a standard deviation is fine enough for most
        uses. None: every law that holds numbers abstains.
    most_cells
        A public limit on the size of one column's tables, at least 1. A normal law of one column needs 19 standard
        deviations of cells, and 16 times as many where it depends on other columns.

    Source: theory 4 L2, L3, 9; docs/proofs/tuple-poisson.md.

    Examples
    --------
    >>> from accord.distributions import Atoms, Normal, PointMass
    >>> laws = [PointMass(0.0), Atoms([0.0], [0.5], rest=Normal(0, 1)), ABSTAIN, PointMass("lost")]
    >>> coupling = TuplePoissonCoupling(step=0.125)
    >>> coupled = coupling.couple(laws, records=1, draws=20, shared=SharedRandomness.fresh())
    >>> coupled.keys.shape, coupled.keys[0, 2]
    ((20, 4), ABSTAIN)
    >>> coupled.decode(0, coupled.keys[0, 0]).tolist(), coupled.decode(0, coupled.keys[0, 3]).tolist()
    ([[0.0]], [['lost']])

    """

    step: tuple[float, ...]
    most_cells: int

    def __init__(self, *, step: float | Sequence[float] | None = None, most_cells: int = _MOST_CELLS) -> None:
        _check.store(
            self, step=_steps(step), most_cells=_check.integer("most_cells", most_cells, least=1, most=1 << 24)
        )

    @property
    def isolated(self) -> Literal[False]:
        """False: for a given key, a change of law i may move other votes, though not their law."""
        return False

    def slack(self, *, laws: int, records: int, draws: int) -> Fraction:
        """Return 0: the votes have the law of the ideal coupling of the laws on the grid, exactly.

        Parameters
        ----------
        laws, records, draws
            At least 1.

        """
        for name, number in (("laws", laws), ("records", records), ("draws", draws)):
            _check.integer(name, number, least=1)
        return Fraction(0)

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return agreement by the total variation of tuples; records are moved to a grid, so marginals are others."""
        return Premises(marginals=False, agreement="tuples")

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        """Couple the tuples of all laws, ``draws`` times independently.

        Parameters
        ----------
        laws
            `Categorical`, `Normal`, `PointMass`, any law on a line that knows its probabilities of intervals, `Product`
            of these, `Mixture` of these on the same kinds of columns; `FiniteLaw`. Labels are text, bytes, numbers,
            booleans or tuples of these. Anything else is `ABSTAIN` for that block and changes nothing for others.
        records
            Length l of a tuple, at least 1.
        draws
            At least 1.
        shared
            A key that nobody knows or chose, for this call alone: `SharedRandomness.fresh()`.

        """
        size = _check.integer("records", records, least=1)
        rounds = _check.integer("draws", draws, least=1)
        stream = SecretStream(require_shared(shared))
        reader = Reader(self.step, self.most_cells)
        read = [_read(reader, law) for law in laws]
        keys = np.full((rounds, len(read)), ABSTAIN, dtype=object)
        blocks = [block for block, law in enumerate(read) if law is not None]
        active = [law for law in read if law is not None]
        names = list(reader.names)
        for start in range(0, rounds if active else 0, chunk := _chunk(active, records=size)):
            chosen = np.arange(start, min(start + chunk, rounds))
            pending = np.ones((len(active), len(chosen)), dtype=bool)
            batch = 0
            while pending.any():
                left = np.flatnonzero(pending.any(axis=0))
                points = Points.drawn(active, records=size, draws=chosen[left], batch=batch, stream=stream)
                taken = first_accepted(active, points, pending=pending[:, left])
                _enter(keys, points, taken, blocks=blocks, draws=chosen[left], names=names)
                pending[:, left] &= taken < 0
                batch += 1
        return Coupled(keys=keys, decode=Decoder(self.step))


def _chunk(laws: Sequence[GridLaw], *, records: int) -> int:
    """Return how many draws are dealt with at once: a matter of memory."""
    width = records * (max((len(law.kinds) for law in laws), default=1) + 1)
    return max(1, _MOST_NUMBERS // (Points.batch_size(len(laws)) * max(width, len(laws))))


def _enter(
    keys: NDArray[np.object_],
    points: Points,
    taken: NDArray[np.int64],
    *,
    blocks: Sequence[int],
    draws: NDArray[np.int64],
    names: Sequence[bytes],
) -> None:
    """Write the keys of the points that were taken."""
    known: dict[int, bytes] = {}
    for law, place in zip(*np.nonzero(taken >= 0), strict=True):
        point = int(taken[law, place])
        if point not in known:
            known[point] = tuple_key(points.kinds(point), points.tuple_of(point), names=names)
        keys[draws[place], blocks[law]] = known[point]


def _read(reader: Reader, law: object) -> GridLaw | None:
    """Return the law on the grid, or None for one that abstains."""
    if law is ABSTAIN:
        return None
    return alone(lambda: reader.read(law), failed=None)


def _steps(step: Any) -> tuple[float, ...]:  # noqa: ANN401 - what a caller gives
    """Return the widths as floats, or refuse them."""
    if step is None:
        return ()
    values = None
    try:
        given = np.atleast_1d(np.asarray(step))
        values = given.astype(np.float64) if given.dtype.kind in "iufO" and given.ndim == 1 else None
    except (TypeError, ValueError, OverflowError):
        values = None
    if values is None or len(values) == 0 or not all(math.ldexp(1, -900) < x < math.ldexp(1, 900) for x in values):
        raise InvalidParameter("step must be a positive number, or one a column, between 2^-900 and 2^900.")
    return tuple(values.tolist())
