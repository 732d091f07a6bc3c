"""One of finitely many public laws, by minimum distance on the sets of Yatracos."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.cells import Cells
from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.shared import SharedRandomness
from accord.distributions import Categorical, log_densities, on_a_line
from accord.distributions.categorical import label_indices, label_keys
from accord.laws import FiniteLaw
from accord.learners.tables import fail, number_table
from accord.learners.traits import Traits
from accord.theory.yatracos import PublicSets, cell_sets, cut_line, line_laws

__all__ = [
    "FAILURE",
    "MinimumDistanceLearner",
    "SimulatedSets",
    "records_for_deviation",
    "simulated_sets",
]


_ROUND_UP = 1.0 + 1e-12
_MOST = 1 << 62


def records_for_deviation(
    deviation: float, failure: float, *, sets: int, ends: int | None = None, vc: int | None = None
) -> int:
    """Return an n from which on ``sup_A |frequency - chance|`` is at most ``deviation``, but for chance ``failure``.

    The least of three bounds, each for every law: Hoeffding's for each set; that of Dvoretzky, Kiefer, Wolfowitz and
    Massart, where each set is a union of intervals with at most ``ends`` ends in all; and one by symmetrisation and
    Sauer's lemma, where the family has a known dimension of Vapnik and Chervonenkis. Proof: docs/proofs/learners.md.
    """
    if sets == 0 or ends == 0:
        return 1
    unit = 2 * deviation**2
    found = [_up(math.log(2 * sets / failure) / unit)]
    if ends is not None:
        found.append(_up(ends**2 * math.log(2 / failure) / unit))
    if vc is not None:
        found.append(_by_dimension(deviation, failure, vc=vc))
    return min(found)


def _by_dimension(deviation: float, failure: float, *, vc: int) -> int:
    """Return the n from which on ``sqrt(2 log(2 S(n)) / n) + sqrt(log(1 / failure) / (2 n))`` is small enough.

    ``S(n) <= (e n / v)^v`` for n >= v, and then the bound falls with n.
    """

    def enough(count: int) -> bool:
        shatter = math.log(2) + vc * (1 + math.log(count / vc))
        spread = math.sqrt(2 * shatter) + math.sqrt(-math.log(failure) / 2)
        return spread * _ROUND_UP <= deviation * math.sqrt(count)

    low = high = max(vc, 1)
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _up(value: float) -> int:
    return max(1, math.ceil(value * _ROUND_UP))


_Floats = NDArray[np.float64]

FAILURE = 1e-6
"""Chance that some simulated measure is off by more than the stated error."""

_KEY = "minimum distance: measures of sets"
_ROWS = 1 << 12
_ROUNDING = 1e-9


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedSets:
    """The sets ``{q_i > q_j}``, i < j, decided record by record.

    Parameters
    ----------
    laws
        N candidates on R^d.
    measures, error, gap, ends
        See `PublicSets`; ends is None.

    """

    laws: tuple[Distribution, ...]
    measures: _Floats
    error: float
    gap: float
    ends: int | None = None

    def frequencies(self, records: NDArray[Any]) -> _Floats:
        """Return the share of the records in each set, shape (S,) from records of shape (n, d)."""
        counts = np.zeros(self.measures.shape[1])
        for start in range(0, len(records), _ROWS):
            counts += _members(self.laws, records[start : start + _ROWS])
        return counts / len(records)


def simulated_sets(laws: Sequence[Distribution], *, draws: int) -> SimulatedSets:
    """Return the sets, each law's measure of each simulated from ``draws`` records of that law.

    With N laws and S sets, Hoeffding's inequality makes every one of the N S shares right up to
    ``sqrt(log(2 N S / 1e-6) / (2 draws))`` together, but for chance 1e-6 over the public draws.

    Raises
    ------
    InvalidParameter
        If a law has no density at its own draws.

    """
    count = len(laws)
    pairs = count * (count - 1) // 2
    key = SharedRandomness(_KEY)
    measures = np.zeros((count, pairs))
    for row, law in enumerate(laws):
        stream = key.stream(row)
        for start in range(0, draws, _ROWS):
            drawn = law.sample(min(_ROWS, draws - start), stream)
            if not np.isfinite(log_densities([law], drawn)).all():
                raise InvalidParameter(f"candidates[{row}] has no density at its own draws.")
            measures[row] += _members(laws, drawn)
    measures /= draws
    measures.flags.writeable = False
    error = math.sqrt(math.log(2 * max(1, count * pairs) / FAILURE) / (2 * draws))
    return SimulatedSets(laws=tuple(laws), measures=measures, error=error, gap=_ROUNDING)


def _members(laws: Sequence[Distribution], records: NDArray[Any]) -> _Floats:
    """Return how many records are in the set of each pair i < j, in the order of pairs, shape (S,)."""
    logs = log_densities(laws, records)
    counts = [np.count_nonzero(logs[first] > logs[first + 1 :], axis=1) for first in range(len(laws) - 1)]
    return np.concatenate([np.zeros(0), *counts])


_LAW = "law of the list"
_MOST_CANDIDATES = 500
_TIE = 1e-12
_EXACT = 1e-10
_LEAST = 1e-14
_LEAST_GAP, _MOST_GAP = 1e-4, 0.1


@final
@dataclass(frozen=True, slots=True, init=False)
class MinimumDistanceLearner:
    """Choose, of a public list of laws, the one whose chances of the Yatracos sets are nearest to the frequencies.

    For each pair i < j there is the set ``A_ij = {q_i > q_j}``; the law with the least ``max |q(A) - frequency of A|``
    over all sets is chosen, the first among equals. Whatever the true law p is, the chosen one is within
    ``3 OPT + alpha`` of it, OPT being the least total variation between p and the list.

    The sets and the laws' chances of them are worked out once, when the learner is made, and never from data:

    - on labels (`Categorical`, `FiniteLaw`): exactly;
    - on the line (laws with known masses of intervals and bounds of their density: normal, uniform, gamma, piecewise,
      mixtures ...): sets are unions of cells, fine enough for a proved ``gap``, or what 8192 cells (``24 / gap``, if
      that is more) allow;
    - otherwise (R^d, mixed laws): a record is in a set where its densities say so, and the chances are simulated from
      ``draws`` public records of each law.

    Formal guarantees
    -----------------
    - Purity: the choice is a function of the records alone; the seed is not read.
    - Accuracy: ``TV(chosen, p) <= 3 OPT + 2 D + resolution``, D being the greatest deviation of a set's frequency
      from its chance under p; `sample_complexity` makes this ``3 OPT + alpha`` for every p whatever (theory L12), the
      error of integration included.
    - Failure: `FitFailed` without records or where they are no table, with a text that holds no data. A foreign label,
      a NaN or an infinity is a record in no set: it counts as mass that no candidate has.
    - Not promised: a constant below 3, nor speed for long lists: N laws have N (N - 1) / 2 sets, need 4 N^3 bytes, and
      where chances are simulated ``draws * N^3 / 2`` comparisons.

    Parameters
    ----------
    candidates
        1 to 500 laws on records of the same kind, public: they must not be chosen by the data. A `FiniteLaw` becomes a
        `Categorical`.
    vc
        Dimension of Vapnik and Chervonenkis of the sets, at least 1, where it is known; it can make
        `sample_complexity` smaller for very long lists.
    draws
        Public records for each law, at least 1000, where chances are simulated. Lower it for long lists.
    gap
        On the line: what pairs of laws may lose of their total variation by the cells, 1e-4 to 0.1. alpha must be
        above it; the theorem's agnostic learner asks for a 96th of its alpha, which 3e-4 allows at 0.1.

    Raises
    ------
    InvalidParameter
        If there are no candidates, too many, something that is no law, or laws of different numbers of columns.

    Source: theory L12; proof page ``docs/proofs/learners.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from accord.distributions import Normal
    >>> learner = MinimumDistanceLearner([Normal(mean, 1) for mean in (-1, 0, 1)])
    >>> learner.fit(np.array([0.9, 1.4, 0.2, 2.2, 50.0]), seed=0)
    Normal(mean=(1.0,), covariance=((1.0,),))
    >>> learner.sample_complexity(0.2, 0.1)
    154

    """

    candidates: tuple[Distribution, ...]
    vc: int | None
    draws: int
    gap: float
    _sets: PublicSets = field(repr=False, compare=False)
    _labels: bool = field(repr=False, compare=False)

    def __init__(
        self,
        candidates: Collection[Distribution | FiniteLaw],
        *,
        vc: int | None = None,
        draws: int = 100_000,
        gap: Number = 0.003,
    ) -> None:
        laws = _as_laws(candidates)
        finest = float(_check.exact("gap", gap))
        if not _LEAST_GAP <= finest <= _MOST_GAP:
            raise InvalidParameter("gap must be from 1e-4 to 0.1.")
        _check.store(
            self,
            gap=finest,
            candidates=laws,
            vc=None if vc is None else _check.integer("vc", vc, least=1),
            draws=_check.integer("draws", draws, least=1000),
            _labels=all(isinstance(law, Categorical) for law in laws),
        )
        _check.store(self, _sets=_public_sets(laws, draws=self.draws, gap=finest))

    @property
    def cells(self) -> Cells:
        """How records are read: as labels if all candidates are laws on labels."""
        return "labels" if self._labels else "numbers"

    @property
    def traits(self) -> Traits:
        """What is public of its laws."""
        return Traits(
            columns=self.candidates[0].dimension, formulas=all(map(_has_formulas, self.candidates)), seeded=False
        )

    @property
    def agnostic_factor(self) -> int:
        """C in ``C OPT + alpha``: 3."""
        return 3

    @property
    def resolution(self) -> float:
        """What alpha must exceed: the error of integration, as it enters the bound; about 1e-9 on labels."""
        return self._sets.gap + 4 * self._sets.error

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:  # noqa: ARG002 - nothing here is random
        """Return the candidate chosen.

        Parameters
        ----------
        records
            Shape (n, d), or (n,) for d = 1.
        seed
            Not read.

        Raises
        ------
        FitFailed
            If there is no record, or they are no table of d columns.

        """
        frequencies = self._frequencies(records)
        worst = np.array([np.abs(row - frequencies).max(initial=0.0) for row in self._sets.measures])
        return self.candidates[int(np.argmax(worst <= worst.min() + _TIE))]

    def sample_complexity(self, alpha: Number, beta: Number) -> int:
        """Return a number b of records from which on the choice is within ``3 OPT + alpha`` of any law whatever.

        It fails with probability at most ``beta``. By the least of three bounds on D: Hoeffding's over all sets, that
        of Dvoretzky, Kiefer, Wolfowitz and Massart where sets have few ends on a line, and one by ``vc``.

        Parameters
        ----------
        alpha
            Above `resolution`, below 1.
        beta
            Strictly between 0 and 1; above 1e-6 where chances are simulated, which is then part of it.

        Raises
        ------
        InvalidParameter
            If alpha or beta is too small for the accuracy of integration.

        """
        accuracy = float(_check.probability("alpha", alpha))
        failure = float(_check.probability("beta", beta))
        if len(self.candidates) == 1:
            return 1
        simulated = isinstance(self._sets, SimulatedSets)
        if simulated and failure <= 2 * FAILURE:
            raise InvalidParameter("beta must be above 2e-6: chances of sets are simulated, and may be off.")
        room = (accuracy - self.resolution) / 2
        if not room > 0:
            on_line = not simulated and not self._labels
            hint = "; give more draws" if simulated else "; give a smaller gap" if on_line else ""
            raise InvalidParameter(f"alpha must be above {self.resolution:.2g}, the error of integration{hint}.")
        return records_for_deviation(
            room,
            failure - FAILURE if simulated else failure,
            sets=self._sets.measures.shape[1],
            ends=self._sets.ends,
            vc=self.vc,
        )

    def _frequencies(self, records: NDArray[Any]) -> NDArray[np.float64]:
        """Return the share of the records in each set."""
        dimension = self.candidates[0].dimension
        if self._labels:
            table = records if isinstance(records, np.ndarray) else np.asarray(records, dtype=object)
            table = table[:, None] if table.ndim == 1 else table
        else:
            table = number_table(records, law=_LAW)
        if table.ndim != 2 or table.shape[1] != dimension:
            fail("the records have another number of columns than the laws", law=_LAW)
        if len(table) == 0:
            fail("there is no record", law=_LAW)
        if not isinstance(self._sets, SimulatedSets):
            return self._sets.frequencies(table.ravel())
        finite = table[np.isfinite(table).all(axis=1)]
        if len(finite) == 0:
            return np.zeros(self._sets.measures.shape[1])
        return self._sets.frequencies(finite) * (len(finite) / len(table))

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """Return the learner itself: it holds public values only, and none of them can be changed."""
        return self


@final
@dataclass(frozen=True, slots=True)
class _LabelCells:
    """Each label of a public list is a cell."""

    labels: tuple[Any, ...]

    @property
    def count(self) -> int:
        return len(self.labels)

    def places(self, records: NDArray[Any]) -> NDArray[np.int64]:
        return label_indices(self.labels, records)


def _as_laws(candidates: object) -> tuple[Distribution, ...]:
    """Return the candidates as laws, or refuse them."""
    if isinstance(candidates, (str, bytes)) or not isinstance(candidates, Collection):
        raise InvalidParameter("candidates must be a list of laws, of a length that is known: no iterator.")
    given = tuple(candidates)
    if not 1 <= len(given) <= _MOST_CANDIDATES:
        raise InvalidParameter(
            f"candidates must be 1 to {_MOST_CANDIDATES} laws: the work grows with the cube of their number."
        )
    laws = tuple(_categorical(law) if isinstance(law, FiniteLaw) else law for law in given)
    for place, law in enumerate(laws):
        if not isinstance(law, Distribution):
            raise InvalidParameter(f"candidates[{place}] is no law: it needs sample, log_density, dimension, measure.")
    if len({law.dimension for law in laws}) > 1:
        raise InvalidParameter("candidates must be laws on the same number of columns.")
    if len({isinstance(law, Categorical) for law in laws}) > 1:
        raise InvalidParameter("candidates must be laws on labels all, or laws on numbers all.")
    return laws


def _categorical(law: FiniteLaw) -> Categorical:
    """Return the same law as a distribution on records."""
    return Categorical(law.outcomes, [number / law.denominator for number in law.numerators])


def _public_sets(laws: tuple[Distribution, ...], *, draws: int, gap: float) -> PublicSets:
    """Return the sets and what each law gives them, by the most exact way that fits the laws."""
    tables = [law for law in laws if isinstance(law, Categorical)]
    if tables:
        pairs = [zip(label_keys(law.categories), law.categories, strict=True) for law in tables]
        labels = {key: label for pair in pairs for key, label in pair}
        masses = np.zeros((len(tables), len(labels)))
        places = {key: place for place, key in enumerate(labels)}
        for row, law in enumerate(tables):
            masses[row, [places[key] for key in label_keys(law.categories)]] = law.probabilities
        return cell_sets(_LabelCells(tuple(labels.values())), masses, error=_EXACT, gap=_EXACT)
    on_line = line_laws(laws)
    if on_line is not None:
        cells, masses, found = cut_line(on_line, gap=gap)
        return cell_sets(cells, masses, error=_EXACT, gap=found + cells.count * _LEAST, least=_LEAST)
    return simulated_sets(laws, draws=draws)


def _has_formulas(law: Distribution) -> bool:
    """Whether the total variation of this law and others of the kind is worked out by formula, whatever the pair."""
    if isinstance(law, Categorical):
        return True
    return law.measure is Measure.LEBESGUE and on_a_line(law) is not None
