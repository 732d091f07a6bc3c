"""The second of two stages: couple tuples among candidates that a public coarse law suggests."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import ABSTAIN, Abstain, Distribution, Premises, Vote
from accord.core.errors import InvalidParameter
from accord.core.points import BatchedPoints, Points, PointsCoupling
from accord.core.shared import Generator, SharedRandomness, require_shared
from accord.couplings.model_reference import ModelReference, widened
from accord.couplings.normal_reference import NormalReference
from accord.couplings.reference import TupleReference, shortfall
from accord.couplings.rows import rows_apart

__all__ = ["Diagnosis", "ModelReference", "NormalReference", "TwoStageCoupling", "WideReference", "widened"]

_CHUNK = 2048
_MOST_CANDIDATES = 1 << 24
_SIMULATED = 1000

_Floats = NDArray[np.float64]


@runtime_checkable
class WideReference(TupleReference, Protocol):
    """A `TupleReference` that draws and evaluates candidates in large chunks."""

    def least_records(self) -> int:
        """Return the least length of a tuple."""

    def drawn(self, size: int, stream: Generator, *, records: int) -> NDArray[Any]:
        """Return ``size`` independent points of nu."""

    def points_of(self, law: Any, size: int, stream: Generator, *, records: int) -> NDArray[Any]:  # noqa: ANN401
        """Return independent tuples of a law, in the same form."""

    def evaluator(self, laws: Sequence[Distribution | Abstain], *, records: int) -> Callable[[NDArray[Any]], _Floats]:
        """Return a function that gives the normalised log ratios of these laws at points, shape (laws, points)."""

    def usual_candidates(self, records: int) -> int:
        """Return a public number of candidates that is enough for typical laws."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """How well candidates serve one public law.

    Parameters
    ----------
    candidates
        N.
    effective
        ``(sum f)^2 / sum f^2`` over the N candidates of one draw: as many independent tuples of the law they are worth.
    shortfall
        An estimate of a bound on the total variation between the law and what the race gives it.

    """

    candidates: int
    effective: float
    shortfall: float


@final
@dataclass(frozen=True, slots=True, init=False)
class TwoStageCoupling(PointsCoupling):
    """Couple tuples by a race among N candidates from a public law nu of tuples (theory S1).

    Candidates ``Y_1 .. Y_N`` are independent from nu, with arrivals ``E_j ~ Exp(1)``, the same for all laws. A law with
    density f with respect to nu takes the candidate with the least ``E_j / f(Y_j)``.

    Formal guarantees
    -----------------
    - Given the candidates, a law takes candidate j with probability ``f(Y_j) / sum f``, up to the rounding of floats.
    - Marginal: within ``E_q[(f - 1)_+ / (f + N - 1)]``, at most ``E_q[f] / N``, of ``q^l`` in total variation.
      `diagnose` estimates it for a public law.
    - Agreement: given the candidates exactly as in one race on a finite list (`agreement`), of any number of laws; by
      S1 it hardly depends on nu where N is large enough for the marginals.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Not promised: any privacy; an agreement or a marginal where nu misses the laws. Privacy needs neither.

    Parameters
    ----------
    reference
        `NormalReference` or `ModelReference`, or another reference of their form.
    candidates
        N, at most 2^24; by default as many as the reference calls usual, from public numbers alone.

    Source
    ------
    theory 4 (L3, L4), 8 (S1, S3, S4); proof page ``docs/proofs/two-stage.md``.

    Examples
    --------
    >>> from accord.distributions import Normal
    >>> coarse = Normal([0.0, 0.0, 0.0, 0.0], np.eye(4))
    >>> coupling = TwoStageCoupling(NormalReference(coarse, strength=200), candidates=4096)
    >>> near = Normal([0.01, 0.0, 0.0, 0.0], np.eye(4))
    >>> coupled = coupling.couple([coarse, near, ABSTAIN], records=50, draws=4, shared=SharedRandomness(1))
    >>> coupled.keys.shape, coupled.keys[0, 2]
    ((4, 3), ABSTAIN)
    >>> coupled.decode(0, coupled.keys[0, 0]).shape
    (50, 4)

    """

    reference: WideReference
    candidates: int | None

    def __init__(self, reference: WideReference, *, candidates: int | None = None) -> None:
        if not isinstance(reference, WideReference):
            raise InvalidParameter("reference must be a NormalReference, a ModelReference, or of their form.")
        _check.store(self, reference=reference)
        chosen = (
            None if candidates is None else _check.integer("candidates", candidates, least=1, most=_MOST_CANDIDATES)
        )
        _check.store(self, candidates=chosen)

    def candidates_for(self, records: int) -> int:
        """Return N for tuples of this length: a public number."""
        return self.reference.usual_candidates(records) if self.candidates is None else self.candidates

    def premises(self, *, records: int) -> Premises:  # noqa: ARG002 - the same for all
        """Return nothing: candidates are a finite list, about a law that may miss those of the blocks."""
        return Premises(marginals=False, agreement=None)

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> Points | BatchedPoints:
        """Return the candidates of all draws.

        Laws are those that the reference can read; a law to which no candidate is possible abstains. Tuples of normal
        laws have at least d + 1 records.
        """
        size = _check.integer("records", records, least=self.reference.least_records())
        candidates = _Candidates(self.reference, size, shared, draws, self.candidates_for(size))
        return rows_apart(candidates, reference=self.reference)

    def diagnose(
        self, law: Distribution, *, records: int, tuples: int = _SIMULATED, shared: SharedRandomness | None = None
    ) -> Diagnosis:
        """Say how well the candidates serve a law: a public one, as the answer tells of it.

        Parameters
        ----------
        law
            Public, for instance the coarse law itself.
        records
            Length l of a tuple.
        tuples
            How many tuples of the law are simulated for the shortfall, at least 2.
        shared
            A key; by default a public one.

        """
        size = _check.integer("records", records, least=self.reference.least_records())
        count = _check.integer("tuples", tuples, least=2)
        key = SharedRandomness("accord: diagnosis") if shared is None else require_shared(shared)
        number = self.candidates_for(size)
        evaluate = self.reference.evaluator([law], records=size)
        seen = evaluate(self.reference.points_of(law, count, key.stream("diagnosis"), records=size))[0]
        candidates = _Candidates(self.reference, size, key, 1, number)
        chunks = [evaluate(candidates.chunk(0, at)[: number - at * _CHUNK])[0] for at in range(-(-number // _CHUNK))]
        logs = np.concatenate(chunks)
        weights = np.exp(logs - logs.max()) if np.isfinite(logs.max()) else np.zeros(len(logs))
        effective = float(weights.sum() ** 2 / np.square(weights).sum()) if weights.any() else 0.0
        return Diagnosis(candidates=number, effective=effective, shortfall=shortfall(seen, candidates=number))


@final
@dataclass(frozen=True, slots=True)
class _Candidates:
    """The candidates of a shared key: number j of a draw is a function of key, draw and j."""

    reference: WideReference
    records: int
    shared: SharedRandomness
    draws: int
    number: int

    def votes_of(self, given: Sequence[Distribution | Abstain]) -> list[list[Vote]]:
        """Return the number of the candidate that each law takes in each draw."""
        evaluate = self.reference.evaluator(given, records=self.records)
        winners = np.array([self._race(evaluate, draw, laws=len(given)) for draw in range(self.draws)])
        return [[struct.pack("<q", own) if own >= 0 else ABSTAIN for own in column] for column in winners.T.tolist()]

    def _race(self, evaluate: Callable[[NDArray[Any]], _Floats], draw: int, *, laws: int) -> NDArray[np.int64]:
        """Return the candidate that each law takes in a draw, -1 for none; the first among equals."""
        best = np.full(laws, np.inf)
        winner = np.full(laws, -1, dtype=np.int64)
        for chunk in range(-(-self.number // _CHUNK)):
            size = min(_CHUNK, self.number - chunk * _CHUNK)
            rows = np.asarray(evaluate(self.chunk(draw, chunk)[:size]), dtype=np.float64).reshape(laws, size)
            scores = np.subtract(self.log_arrivals(draw, chunk)[:size], rows, out=rows)
            place = scores.argmin(axis=1)
            score = scores[np.arange(laws), place]
            better = score < best
            best[better] = score[better]
            winner[better] = chunk * _CHUNK + place[better]
        return winner

    def chunk(self, draw: int, chunk: int) -> NDArray[Any]:
        """Return the candidates number ``chunk * 2048`` and following."""
        stream = self.shared.stream("two stage", "candidates", draw, chunk)
        return self.reference.drawn(_CHUNK, stream, records=self.records)

    def log_arrivals(self, draw: int, chunk: int) -> _Floats:
        """Return the logarithms of their arrivals."""
        arrivals = self.shared.stream("two stage", "arrivals", draw, chunk).standard_exponential(_CHUNK)
        return np.asarray(np.log(np.maximum(arrivals, np.finfo(np.float64).tiny)))

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:
        """Return the records of a candidate, shape (l, d)."""
        (number,) = struct.unpack("<q", key)
        point = self.chunk(int(draw), number // _CHUNK)[number % _CHUNK]
        return np.asarray(
            self.reference.decode(point, draw=int(draw), number=number, records=self.records, shared=self.shared)
        )
