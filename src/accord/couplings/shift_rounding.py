"""Shift rounding: vote for the cell of a randomly shifted lattice that holds a law's parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Premises
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness, mix, uniform_open, word_at
from accord.couplings.lattice.cells import Floats, Integers, centred_basis
from accord.distributions import Normal, PointMass

__all__ = ["ParameterRounding", "ShiftRounding"]

_AT_ONCE = 1 << 21  # floats in one array of frames
_LARGEST_INDEX = 2.0**40  # a shift keeps 12 bits there, so that chances are right to 1 / 4096 of a cell
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRounding(PointsCoupling):
    """Round the parameters of normal laws on R^d to a lattice whose shift all blocks share.

    A law's log scales, then the columns of its Cholesky factor, then its mean are cut into cells, each in the frame and
    units of the cells already chosen, so that one width suits every scale, place and correlation. The vote is the cell.
    It stands for ``records`` records whose mean and unbiased covariance are exactly those of the cell's centre, so that
    `GaussianLearner`, fitted to them, gives back the centre.

    The cells are ``step`` standard deviations wide, as the parameters vary when ``records`` records are fitted. Best
    used with many draws: a cell centred on where the blocks' fits cluster wins.

    Formal guarantees
    -----------------
    - Agreement: while the cells chosen so far agree, two laws part in the next coordinate with probability exactly
      ``min(1, |difference| / width)``: the total variation of the uniform laws on two shifted cells (theory S5).
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Equivariance: the joint law of votes and errors is the same after any affine map with a lower triangular matrix
      of positive diagonal.
    - Not promised: that the records follow the law (their mean and scatter are rounded ones); any privacy.

    Parameters
    ----------
    dimension
        d, 1 to 64.
    step
        Width of a cell, above 0; at ``sqrt(12)`` the rounding error is as large as that of a fit to l records.

    Source
    ------
    theory S5; proof page ``docs/proofs/shift-rounding.md``.

    Examples
    --------
    >>> laws = [Normal([0.0], [[1.0]]), Normal([0.001], [[1.0]])]
    >>> coupled = ShiftRounding(dimension=1).couple(laws, records=20, draws=3, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.decode(0, coupled.keys[0, 0]).shape
    ((3, 2), (20, 1))

    """

    dimension: int
    step: float = math.sqrt(12.0)

    def __post_init__(self) -> None:
        _check.store(self, dimension=_check.integer("dimension", self.dimension, least=1, most=64))
        _check.store(self, step=_width("step", self.step))

    @property
    def least_records(self) -> int:
        """Fewer records than this have no covariance of full rank: d + 2."""
        return self.dimension + 2

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return nothing: parameters are rounded, and agreement is by their distances."""
        return Premises(marginals=False, agreement=None)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Cells":
        """Return the lattices of all draws; laws are `Normal` ones on R^d, and ``records`` sets the resolution."""
        records = _check.integer("records", records, least=self.least_records)
        return _Cells(shared, dimension=self.dimension, records=records, draws=draws, step=self.step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRounding(PointsCoupling):
    """Round vectors of parameters, given as point masses, to a lattice of public widths whose shift all blocks share.

    For models that no other coupling knows: let the learner return `PointMass` of its parameters (in coordinates where
    a fixed width makes sense, such as the log of a scale), and make a model of the released vector.

    Formal guarantees
    -----------------
    - Law: a vote stands for the centre of a cell that is uniform around the vector, independently in each coordinate.
    - Agreement: two vectors agree with probability exactly ``prod_i (1 - min(1, |difference_i| / width_i))``, the best
      that is possible for cells that are uniform around both in one coordinate (theory S5).
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Not promised: any privacy; any use of cells much narrower than the spread of the blocks' parameters.

    Parameters
    ----------
    widths
        One public width above 0 for each coordinate: a number stands for one coordinate.

    Source
    ------
    theory S5; proof page ``docs/proofs/shift-rounding.md``.

    Examples
    --------
    >>> laws = [PointMass([3.0, 0.1]), PointMass([3.001, 0.1]), ABSTAIN]
    >>> coupled = ParameterRounding(widths=[0.5, 0.2]).couple(laws, records=1, draws=2, shared=SharedRandomness(1))
    >>> bool(coupled.keys[0, 0] == coupled.keys[0, 1]), coupled.keys[0, 2]
    (True, ABSTAIN)
    >>> bool(abs(coupled.decode(0, coupled.keys[0, 0]) - [3.0, 0.1]).max() <= 0.25)
    True

    """

    widths: tuple[float, ...]

    def __init__(self, *, widths: float | Sequence[float]) -> None:
        listed = [widths] if isinstance(widths, (int, float)) else list(widths)
        _check.at_least_one("widths", listed)
        _check.store(self, widths=tuple(_width("widths", width) for width in listed))

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return nothing: parameters are rounded, and agreement is by their distances."""
        return Premises(marginals=False, agreement=None)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Shifts":
        """Return the shifts of all draws.

        Laws are `PointMass` of as many numbers as there are widths; ``records`` is how often the released vector is
        repeated.
        """
        return _Shifts(shared, widths=self.widths, records=_check.integer("records", records, least=1), draws=draws)


@final
class _Shifts:
    """One shift for each coordinate and draw."""

    def __init__(self, shared: SharedRandomness, *, widths: tuple[float, ...], records: int, draws: int) -> None:
        self._shared = shared
        self._widths = np.array(widths)
        self._records = records
        self._shifts = self._of(np.arange(draws))

    def _of(self, draws: Integers) -> Floats:
        states = self._shared.hash_rows(draws[:, None], "parameter rounding", "draw")
        return uniform_open(word_at(states[:, None], np.arange(len(self._widths))))

    def votes(self, law: object) -> list[bytes] | Abstain:
        """Return the cell of one law's vector in each draw."""
        if type(law) is not PointMass:
            return ABSTAIN
        vector = np.array(law.vector, dtype=np.float64)
        if vector.shape != self._widths.shape:
            return ABSTAIN
        index = np.floor(vector / self._widths + self._shifts)
        if not (np.abs(index) < _LARGEST_INDEX).all():
            return ABSTAIN
        votes: list[bytes] = index.astype("<i8").view(f"V{8 * len(self._widths)}").ravel().tolist()
        return votes

    def decode(self, draw: int, key: bytes) -> Floats:
        """Return the centre of a cell, once for each record."""
        cell = np.frombuffer(key, dtype="<i8") + 0.5 - self._of(np.array([draw]))
        return np.repeat(cell * self._widths, self._records, axis=0)


@final
@dataclass(frozen=True, slots=True)
class _Parameters:
    """Log scales, shape (n, d); the unit lower triangular factor, (n, d, d); mean, (n, d)."""

    log_scale: Floats
    unit: Floats
    mean: Floats


@final
class _Cells:
    """The lattices of all draws. A shift is a function of key, draw, and the cells of the coordinates before."""

    def __init__(self, shared: SharedRandomness, *, dimension: int, records: int, draws: int, step: float) -> None:
        self._shared = shared
        self._draws = draws
        self._dimension = dimension
        self._records = records
        self._width = step / math.sqrt(records)

    def votes(self, law: object) -> list[bytes] | Abstain:
        """Return one law's cells in each draw, as bytes; some draws at a time."""
        if type(law) is not Normal or law.dimension != self._dimension:
            return ABSTAIN
        size = max(1, _AT_ONCE // self._dimension**2)
        chunks = [np.arange(start, min(self._draws, start + size)) for start in range(0, self._draws, size)]
        return [vote for chunk in chunks for vote in self._votes(law, chunk)]

    def _votes(self, law: Normal, draws: Integers) -> list[bytes]:
        factor = np.asarray(law.cholesky, dtype=np.float64)
        spread = np.diag(factor).copy()
        law_parameters = _Parameters(np.log(spread), factor / spread, np.asarray(law.mean, dtype=np.float64))
        with np.errstate(all="ignore"):
            cells, _ = self._walk(draws, law=law_parameters)
        width = 8 * cells.shape[1]
        found: list[bytes] = np.ascontiguousarray(cells.astype("<i8")).view(f"V{width}").ravel().tolist()
        return found

    def decode(self, draw: int, key: bytes) -> Floats:
        """Return the records that a vote stands for, shape (l, d)."""
        cells = np.frombuffer(key, dtype="<i8").astype(np.int64)[None, :]
        _, centre = self._walk(np.array([draw]), cells=cells)
        noise = self._shared.stream("shift rounding", "records", int(draw), key.hex()).standard_normal(
            (self._records, self._dimension)
        )
        basis = centred_basis(noise) * math.sqrt(self._records - 1)
        factor = centre.unit[0] * np.exp(centre.log_scale[0])
        return np.asarray(centre.mean[0] + basis @ factor.T)

    def _walk(
        self, draws: Integers, *, law: _Parameters | None = None, cells: Integers | None = None
    ) -> tuple[Integers, _Parameters]:
        """Go through the coordinates, choosing a law's cells or following given ones; return the cells and centres."""
        d, count = self._dimension, len(draws)
        chosen = np.empty((count, d + d * (d + 1) // 2), dtype=np.int64)
        state = self._shared.hash_rows(draws[:, None], "shift rounding", "draw")
        place = 0

        def cut(value: Floats | None) -> Floats:
            """Cut one coordinate in units of its width, and return the centre of the cell in these units."""
            nonlocal state, place
            shift = uniform_open(mix(state ^ _GOLDEN))
            if cells is None:
                index = np.floor(np.asarray(value) + shift)
                if not (np.abs(index) < _LARGEST_INDEX).all():
                    message = "the law is too concentrated for double precision at its distance from zero"
                    raise ArithmeticError(message)
                chosen[:, place] = index.astype(np.int64)
            else:
                chosen[:, place] = cells[:, place]
            number = chosen[:, place]
            state = mix((state + _GOLDEN) ^ mix(_words(number)))
            place += 1
            return np.asarray(number + 0.5 - shift)

        log_scale = np.empty((count, d))
        narrow = self._width / math.sqrt(2.0)
        for i in range(d):
            value = None if law is None else np.full(count, law.log_scale[i] / narrow)
            log_scale[:, i] = cut(value) * narrow
        frame = np.broadcast_to(np.eye(d), (count, d, d)).copy()
        mean = np.empty((count, d))
        for column in range(d - 2, -2, -1):
            rows = range(column + 1, d)
            target = np.empty((count, len(rows)))
            centre = np.empty((count, len(rows)))
            for position, row in enumerate(rows):
                relative = log_scale[:, row] - (log_scale[:, column] if column >= 0 else 0.0)
                width = self._width * np.exp(relative)
                value = None
                if law is not None:
                    entry = law.mean[row] if column < 0 else law.unit[row, column]
                    before = frame[:, row, column + 1 : row]
                    target[:, position] = entry - np.einsum("nk,nk->n", before, target[:, :position])
                    value = target[:, position] / width
                centre[:, position] = cut(value) * width
            moved = np.einsum("nij,nj->ni", frame[:, column + 1 :, column + 1 :], centre)
            if column < 0:
                mean = moved
            else:
                frame[:, column + 1 :, column] = moved
        return chosen, _Parameters(log_scale, frame, mean)


def _width(name: str, value: object) -> float:
    """Return a public width as a float, or refuse it by name."""
    number = math.nan
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        number = float(value)
    if not 0.0 < number < math.inf:
        raise InvalidParameter(f"{name} must be finite and above 0.")
    return number


def _words(numbers: Integers) -> NDArray[np.uint64]:
    return np.ascontiguousarray(numbers).view(np.uint64)
