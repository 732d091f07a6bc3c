"""The cast: what a law, a learner and a coupling must offer, and what they give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Literal, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core.errors import InvalidParameter
from accord.core.shared import Generator, SharedRandomness

__all__ = [
    "ABSTAIN",
    "Abstain",
    "Coupled",
    "Coupling",
    "Distribution",
    "LawCoupling",
    "Learner",
    "Measure",
    "Premises",
    "StatesPremises",
    "Vote",
]


class Measure(Enum):
    """What a density is taken with respect to."""

    COUNTING = "counting"
    LEBESGUE = "Lebesgue"
    BOTH = "counting and Lebesgue"


@runtime_checkable
class Distribution(Protocol):
    """A law on records: it can be sampled and its density can be read.

    Implementations are immutable values; equal parameters give equal behaviour.
    """

    @property
    def dimension(self) -> int:
        """Number of columns d of a record."""

    @property
    def measure(self) -> Measure:
        """What `log_density` is taken with respect to."""

    def sample(self, size: int, generator: Generator) -> NDArray[Any]:
        """Return ``size`` independent records, shape (size, d)."""

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log density at each record of ``x`` (shape (n, d)), shape (n,)."""


class Abstain(Enum):
    """Type of `ABSTAIN`, what a block votes when its fit failed. A singleton; it survives copying and pickling."""

    ABSTAIN = "ABSTAIN"

    def __repr__(self) -> str:
        return "ABSTAIN"


ABSTAIN: Final = Abstain.ABSTAIN


@runtime_checkable
class Learner(Protocol):
    """Any non-private estimator of a distribution.

    Privacy never depends on it: a learner may be wrong, fail, or overfit. It must only be a function of ``records`` and
    ``seed``, without memory of earlier fits; accord hands every block its own copy all the same.

    How a block's cells are read is the learner's public word, never the container's: an attribute ``cells`` that is
    "numbers" (each cell as a float, NaN for what is none; so also without the attribute), or "labels" (each cell as a
    plain Python value, None for what is missing; whole floats are ints).

    Before anything is spent, a learner may be tried with its coupling on tables that accord makes up: normal,
    log-normal and uniform numbers, whole numbers, words. If its laws of these are none that the coupling takes, it may
    offer others, by a method ``example(size, columns)`` that returns at most ``size`` made-up records of shape
    (size, columns). They are public: they must not be read off the data.
    """

    def fit(self, records: NDArray[Any], *, seed: int) -> Distribution:
        """Return a distribution learnt from ``records``, shape (n, d).

        Raises
        ------
        FitFailed
            If these records do not allow a fit. Any exception counts the same: the block abstains.

        """


Vote = bytes | Abstain
"""A block's vote: canonical bytes, or `ABSTAIN`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Coupled:
    """The coupled tuples of k laws in each of several independent draws.

    Parameters
    ----------
    keys
        Shape (draws, k), objects: the canonical bytes of each block's tuple, or `ABSTAIN`. Equal keys are equal tuples.
    decode
        ``decode(draw, key)`` gives the tuple's records, shape (records, d): a function of draw, key and public values.

    """

    keys: NDArray[np.object_]
    decode: Callable[[int, bytes], NDArray[Any]]

    @property
    def values(self) -> NDArray[Any]:
        """All tuples, shape (draws, k, records, d); where a block abstained, None."""
        draws, blocks = self.keys.shape
        known: dict[tuple[int, bytes], NDArray[Any]] = {}
        for draw in range(draws):
            for key in self.keys[draw]:
                if isinstance(key, bytes) and (draw, key) not in known:
                    known[draw, key] = self.decode(draw, key)
        if not known:
            return np.full((draws, blocks, 0, 0), None, dtype=object)
        example = next(iter(known.values()))
        missing = np.full(example.shape, None, dtype=object)
        rows = [[known.get((draw, key), missing) for key in self.keys[draw]] for draw in range(draws)]
        return np.array(rows, dtype=None if all(isinstance(key, bytes) for key in self.keys.flat) else object)


class Coupling(Protocol):
    """One random object that gives every law its own tuple, so that close laws get exactly equal tuples (theory 4).

    This is what the rest of accord takes. To write one, subclass `accord.core.PointsCoupling`: its ``points`` leave the
    loop over laws to the core, and with it the guard. Only a coupling whose votes depend on all laws needs a ``couple``
    of its own.
    """

    __slots__ = ()

    @property
    def isolated(self) -> bool:
        """True where block i's vote is a function of law i, public values and the shared key alone."""

    def couple(
        self, laws: Sequence[Distribution | Abstain], *, records: int, draws: int, shared: SharedRandomness
    ) -> Coupled:
        """Couple tuples of ``records`` records of each law, ``draws`` times independently.

        A law that is `ABSTAIN`, foreign or degenerate gives `ABSTAIN` for its own block and changes nothing for others,
        and couple never raises because of a law. A law may be anybody's object and raise anything at any question,
        even at ``isinstance(law, ...)``, which asks for its ``__class__``: ask each law inside
        ``alone(lambda: ..., failed=None)`` (`accord.couplings.alone`), that question included, and compare with
        ``law is ABSTAIN``.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """What a coupling keeps of the premises of the theorems (theory 4: G1, marginals; G2, agreement).

    Parameters
    ----------
    marginals
        True where a block's tuple has the law of independent records of its own law, for every law that takes part, up
        to the rounding of floats; False where records are moved to a grid, rounded, or drawn from a finite list.
    agreement
        How two blocks part at most: "tuples" for ``2 t / (1 + t)``, t the total variation of the whole tuples;
        "records" for ``2 l t``, t that of one of the l records; None where neither is proved.

    """

    marginals: bool
    agreement: Literal["tuples", "records"] | None

    def __post_init__(self) -> None:
        if not isinstance(self.marginals, bool) or self.agreement not in {"tuples", "records", None}:
            raise InvalidParameter("marginals must be True or False, agreement 'tuples', 'records' or None.")


@runtime_checkable
class StatesPremises(Protocol):
    """A coupling that says which premises of the theorems it keeps: without it, no theorem may rest on it."""

    def premises(self, *, records: int) -> Premises:
        """Return what holds for tuples of this many records: proved, for every law that takes part."""


class LawCoupling(Coupling, Protocol):
    """A coupling that is not isolated: only the law of the other blocks' votes is free of block i's law (theory L3).

    Its shared key must stay secret, and what its numbers miss of the ideal coupling is charged to delta.
    """

    @property
    def isolated(self) -> Literal[False]:
        """False: a change of law i may move other votes, for a given key."""

    def slack(self, *, laws: int, records: int, draws: int) -> Fraction:
        """Return a bound on the total variation between all votes as computed and those of the ideal coupling.

        It holds for all laws, and is a function of public numbers alone: ``laws`` blocks, ``records`` records a tuple,
        ``draws`` draws.
        """
