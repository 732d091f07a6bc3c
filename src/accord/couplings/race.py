"""Coupled tuples of labels: an exponential race on their counts."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Premises
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness, uniform_open
from accord.distributions import Categorical
from accord.distributions.categorical import as_labels, label_array, label_keys
from accord.laws import FiniteLaw

__all__ = [
    "RaceCoupling",
    "agreement",
    "joint_law",
]


_Floats = NDArray[np.float64]
_Counts = NDArray[np.int64]

_MOST_VECTORS = 200_000
_MOST_CELLS = 1_500_000  # floats held at once by the arrivals of several draws


@final
@dataclass(frozen=True, slots=True, init=False)
class RaceCoupling(PointsCoupling):
    """Couple tuples of records from laws on one public list of categories.

    What is coupled is the vector of counts; given the counts, the order of the records has the same law whatever the
    probabilities are, so it is drawn afterwards, for the released tuple alone. Every possible vector of counts has an
    arrival ``E ~ Exp(1)`` that all blocks share, and a block with law ``P`` takes the vector with the least ``E / P``.

    If there are more than ``most_vectors`` vectors, the categories are split into a few groups, a race shares out the
    records among the groups, and further races share out each group's records within it: a tree, of the widest nodes
    that ``most_vectors`` allows. Which tree it is depends on the numbers of categories and records only.

    Formal guarantees
    -----------------
    - Marginal: a block's records are independent with its own law, up to the rounding of floats.
    - Agreement of one race: two blocks agree with probability ``agreement(P, Q)``, P and Q being the laws of the
      counts; that is at least ``(1 - TV) / (1 + TV)``.
    - Agreement down a tree: the product over its races, in expectation over the path, so disagreement is at most the
      sum over the races of ``2 TV / (1 + TV)`` of the conditional laws. This is worse than one race on all counts: for
      close laws by a factor of up to the square root of the number of races.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Draws are independent of each other.
    - Not promised: the optimal ``1 - TV``, which needs both laws at once; a running time that is independent of the
      laws; any privacy by itself.

    Parameters
    ----------
    categories
        Distinct labels, public. A law whose list or order differs abstains.
    most_vectors
        The most vectors of counts in one race: more give better agreement and take longer.

    Source: theory 4 L4, 8 S1 and S3; docs/proofs/race.md.

    Examples
    --------
    >>> law = Categorical(["a", "b"], [0.5, 0.5])
    >>> coupling = RaceCoupling(["a", "b"])
    >>> coupled = coupling.couple([law, ABSTAIN, law], records=10, draws=2, shared=SharedRandomness(1))
    >>> coupled.keys.shape
    (2, 3)
    >>> bool(coupled.keys[0, 0] == coupled.keys[0, 2]), coupled.keys[0, 1]
    (True, ABSTAIN)
    >>> coupled.decode(0, coupled.keys[0, 0]).shape
    (10, 1)

    """

    categories: tuple[Hashable, ...]
    most_vectors: int

    def __init__(self, categories: Iterable[Hashable], *, most_vectors: int = _MOST_VECTORS) -> None:
        _check.store(
            self, categories=as_labels(categories), most_vectors=_check.integer("most_vectors", most_vectors, least=1)
        )

    def premises(self, *, records: int) -> Premises:
        """Return marginals; agreement by the total variation of tuples where one race decides, not down a tree."""
        nodes = sum(1 for _ in _tree(len(self.categories), records=records, most=self.most_vectors))
        return Premises(marginals=True, agreement="tuples" if nodes <= 1 else None)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Races":
        """Return the races of tuples of ``records`` records; laws are `Categorical` ones on ``categories``."""
        size = _check.integer("records", records, least=1)
        nodes = tuple(_tree(len(self.categories), records=size, most=self.most_vectors))
        return _Races(label_array(self.categories), label_keys(self.categories), nodes, size, draws, shared)


def agreement(*laws: Sequence[Fraction] | Sequence[float]) -> Fraction | float:
    """Return the probability that blocks with these finite laws all take the same value in one race.

    Formal guarantees
    -----------------
    - ``sum_y 1 / (sum_x max_i p_i(x) / p_i(y))`` over the y to which every law gives weight; for two laws at least
      ``(1 - TV) / (1 + TV)``. Exact for ints and Fractions.

    Parameters
    ----------
    *laws
        Weights on one list of values, each with a positive sum; they need not be normalised.

    Raises
    ------
    InvalidParameter
        If there is no law, lengths differ, or weights are negative, not finite or all 0.

    Source: theory 8 S1; docs/proofs/race.md.

    Examples
    --------
    >>> agreement([Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)])
    Fraction(3, 4)
    >>> agreement([0.5, 0.5], [0.5, 0.5], [0.5, 0.5])
    1.0

    """
    if not laws or len({len(law) for law in laws}) > 1:
        raise InvalidParameter("agreement needs at least one law, and as many weights in each.")
    weights: list[list[Fraction | float]] = [list(law) for law in laws]
    if any(not math.isfinite(w) or w < 0 for law in weights for w in law) or any(not sum(law) > 0 for law in weights):
        raise InvalidParameter("weights must be finite and at least 0, with a positive sum in each law.")
    if all(isinstance(w, (int, Fraction)) for law in weights for w in law):
        return _exact_agreement([[Fraction(w) for w in law] for law in weights])
    table = np.array([[float(w) for w in law] for law in weights])
    common = np.flatnonzero((table > 0).all(axis=0))
    with np.errstate(over="ignore"):
        return float(sum(1 / (table / table[:, [y]]).max(axis=0).sum() for y in common))


def _exact_agreement(laws: list[list[Fraction]]) -> Fraction:
    result = Fraction(0)
    for y in range(len(laws[0])):
        if all(law[y] > 0 for law in laws):
            result += 1 / sum((max(law[x] / law[y] for law in laws) for x in range(len(laws[0]))), Fraction(0))
    return result


@final
@dataclass(frozen=True, slots=True)
class _Races:
    """The races of all draws: laws are raced together, as a race's arrivals take longer than its laws."""

    labels: NDArray[Any]
    public: list[tuple[bool, Any]]
    nodes: tuple[tuple[int, ...], ...]
    records: int
    draws: int
    shared: SharedRandomness

    def prepare(self, law: object) -> _Floats | Abstain:
        """Return a law's probabilities on the public list."""
        if not isinstance(law, Categorical) or label_keys(law.categories) != self.public:
            return ABSTAIN
        values = np.array(law.probabilities, dtype=np.float64)
        valid = values.shape == (len(self.public),) and bool((values >= 0).all()) and 0 < values.sum() < np.inf
        return values if valid else ABSTAIN

    def votes_of(self, prepared: Sequence[_Floats | Abstain]) -> list[list[bytes]]:
        """Return the bytes of each block's counts; none for an abstention."""
        votes: list[list[bytes]] = [[] for _ in prepared]
        racing = [(own, law) for own, law in zip(votes, prepared, strict=True) if law is not ABSTAIN]
        widest = max((math.comb(self.records + len(cuts) - 2, self.records) for cuts in self.nodes), default=1)
        step = max(1, _MOST_CELLS // widest)
        for start in range(0, self.draws, step):
            chunk = np.arange(start, min(start + step, self.draws))
            laws = [law for _, law in racing]
            counts = _race_all(laws, nodes=self.nodes, records=self.records, draws=chunk, shared=self.shared)
            for (own, _), rows in zip(racing, counts, strict=True):
                own += [row.astype("<i8").tobytes() for row in rows]
        return votes

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records, shape (l, 1): in a random order, the same for all who hold key and draw."""
        records = np.repeat(self.labels, np.frombuffer(key, dtype="<i8"))
        arranged: NDArray[Any] = self.shared.stream("arrange", int(draw), key.hex()).permutation(records)
        return arranged[:, None]


@final
class _Race:
    """One race: share out ``total`` records among the groups of one node of the tree, in each of several draws.

    An arrival is keyed by draw, node and the vector itself, never by a position, so equal vectors meet equal arrivals.
    """

    __slots__ = ("_arrivals", "_columns", "_cuts", "_earliest", "_vectors", "_ways")

    def __init__(self, cuts: tuple[int, ...], *, total: int, draws: _Counts, shared: SharedRandomness) -> None:
        self._cuts = cuts
        self._vectors = _count_vectors(total, groups=len(cuts) - 1)
        self._columns: _Floats = np.ascontiguousarray(self._vectors.T, dtype=np.float64)
        factorials = gammaln(np.arange(total + 1) + 1.0)
        self._ways = factorials[total] - factorials[self._vectors].sum(axis=1)
        names = shared.hash_rows(self._vectors, "race", "vectors", *cuts).view(np.int64)
        rows = np.column_stack((np.repeat(draws, len(names)), np.tile(names, len(draws))))
        words = shared.hash_rows(rows, "race", "arrivals").reshape(len(draws), len(names))
        self._arrivals: _Floats = np.log(-np.log(uniform_open(words)))
        self._earliest = self._arrivals.min(axis=1)

    def winners(self, probabilities: _Floats, *, draws: _Counts) -> _Counts:
        """Return the vectors that a block takes in the draws at these positions, shape (len(draws), groups)."""
        weights = self._log_weights(probabilities)
        top = int(weights.argmax())
        if not np.isfinite(weights[top]):
            raise ArithmeticError("no vector of counts has a finite weight")
        # What weighs less cannot win: even with the earliest arrival of all it comes after the heaviest vector.
        least = weights[top] + (self._earliest[draws] - self._arrivals[draws, top]).min()
        able = np.flatnonzero(weights >= least)
        scores = self._arrivals[np.ix_(draws, able)] - weights[able]
        taken: _Counts = self._vectors[able[scores.argmin(axis=1)]]
        return taken

    def _log_weights(self, probabilities: _Floats) -> _Floats:
        """Return the log probability of each vector, up to a constant."""
        low, high = self._cuts[0], self._cuts[-1]
        if high - low == len(self._cuts) - 1:  # every group is a single category
            masses = probabilities[low:high]
        else:
            masses = np.array([probabilities[start:stop].sum() for start, stop in pairwise(self._cuts)])
        present = masses > 0
        logs = np.log(masses, out=np.zeros_like(masses), where=present)
        # No matrix product: BLAS may round differently with another number of threads.
        weights: _Floats = self._ways + (self._columns * logs[:, None]).sum(axis=0)
        weights[(self._columns[~present] > 0).any(axis=0)] = -np.inf
        return weights


def _race_all(
    probabilities: Sequence[_Floats],
    *,
    nodes: Sequence[tuple[int, ...]],
    records: int,
    draws: _Counts,
    shared: SharedRandomness,
) -> list[_Counts]:
    """Return each block's counts, shape (draws, categories).

    Blocks meet only in which races are held: a race's arrivals do not depend on who takes part.
    """
    results = [np.full((len(draws), len(law)), -1, dtype=np.int64) for law in probabilities]
    for rows in results:
        rows[:, 0] = records
    for cuts in nodes:
        totals = [rows[:, cuts[0]].copy() for rows in results]
        for total in sorted({int(value) for column in totals for value in column}):
            race = _Race(cuts, total=total, draws=draws, shared=shared)
            for law, rows, column in zip(probabilities, results, totals, strict=True):
                here = np.flatnonzero(column == total)
                if len(here):
                    rows[np.ix_(here, np.array(cuts[:-1]))] = race.winners(law, draws=here)
    return results


def _tree(categories: int, *, records: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the nodes from the root down: where each cuts its range of categories, ends included.

    A node has the most groups for which the vectors of counts stay within ``most``, and at least two.
    """
    groups = 2
    while groups < categories:
        vectors = math.comb(records + groups, groups)
        if vectors > most or vectors * (groups + 1) > 10 * most:
            break
        groups += 1
    ranges = [(0, categories)]
    for low, high in ranges:
        width = high - low
        if width > 1:
            parts = min(groups, width)
            cuts = tuple(low + width * part // parts for part in range(parts + 1))
            ranges.extend(pairwise(cuts))
            yield cuts


def _count_vectors(total: int, *, groups: int) -> _Counts:
    """Return all vectors of ``groups`` counts with this sum, in order of the dictionary: the gaps between bars."""
    places = total + groups - 1
    rows = math.comb(places, groups - 1)
    flat = chain.from_iterable(combinations(range(places), groups - 1))
    bars = np.fromiter(flat, dtype=np.int64, count=rows * (groups - 1)).reshape(rows, groups - 1)
    return np.diff(bars, axis=1, prepend=-1, append=places) - 1


_MOST_STATES = 2_000_000

_Column = tuple[Fraction, ...]


def joint_law(laws: Sequence[FiniteLaw]) -> FiniteLaw:
    """Return the joint law of the values that k finite laws take under the earliest-point rule (theory L1, L2).

    Formal guarantees
    -----------------
    - Exact: rational arithmetic throughout. The outcomes are tuples ``(z_1, ..., z_k)``.
    - It is the law of Couple I for every reference measure, and of Couple II: of `TuplePoissonCoupling` on laws whose
      probabilities are multiples of 2^-62.
    - Not promised: speed. The work grows like the product of the laws' sizes times 2^k; what is too large is refused.

    Parameters
    ----------
    laws
        At least one law. An outcome that a law lacks has probability 0 there.

    Raises
    ------
    InvalidParameter
        If there is no law, or the joint law could have more than two million outcomes and states.

    Source: theory 4 L1, L2; docs/proofs/joint-law.md.

    Examples
    --------
    >>> law = joint_law([FiniteLaw({"a": 1, "b": 1}), FiniteLaw({"a": 1, "b": 3})])
    >>> law["a", "a"], law["a", "b"], law["b", "b"]
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))

    """
    given = tuple(laws)
    if not given or not all(isinstance(law, FiniteLaw) for law in given):
        raise InvalidParameter("laws must be a list of at least one FiniteLaw.")
    outcomes = _union(given)
    size = 2 ** len(given)
    for law in given:
        size *= sum(number > 0 for number in law.numerators)
        if size > _MOST_STATES:
            raise InvalidParameter("the joint law is too large to be written down: take fewer or smaller laws.")
    columns = [tuple(law[outcome] for law in given) for outcome in outcomes]
    table = _joint(columns, blocks=len(given))
    names = [tuple(outcomes[place] for place in places) for places in table]
    return FiniteLaw.of(names, weights=table.values())


def _union(laws: Sequence[FiniteLaw]) -> list[Hashable]:
    """Return every outcome once, in the order in which they are met."""
    seen: dict[Hashable, Any] = {}
    for law in laws:
        for key, outcome in zip(law.index, law.outcomes, strict=True):
            seen.setdefault(key, outcome)
    return list(seen.values())


def _joint(columns: Sequence[_Column], *, blocks: int) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every tuple of places of outcomes; ``columns[y][i]`` is law i's probability of y."""

    @cache
    def waiting(blocks_left: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        """Return the joint law of those that have not taken a point yet, values in their order."""
        if not blocks_left:
            return {(): Fraction(1)}
        total = sum((max(column[i] for i in blocks_left) for column in columns), Fraction(0))
        result: dict[tuple[int, ...], Fraction] = {}
        for place, column in enumerate(columns):
            for takers, mass in _slabs(column, blocks_left):
                rest = tuple(i for i in blocks_left if i not in takers)
                for values, chance in waiting(rest).items():
                    later = dict(zip(rest, values, strict=True))
                    whole = tuple(later.get(i, place) for i in blocks_left)
                    result[whole] = result.get(whole, Fraction(0)) + mass / total * chance
        return result

    return waiting(tuple(range(blocks)))


def _slabs(column: _Column, blocks: tuple[int, ...]) -> Iterator[tuple[frozenset[int], Fraction]]:
    """Cut the heights from 0 to the largest probability: who accepts in each slab, and how high the slab is."""
    below = Fraction(0)
    for height in sorted({column[i] for i in blocks} - {Fraction(0)}):
        yield frozenset(i for i in blocks if column[i] >= height), height - below
        below = height
