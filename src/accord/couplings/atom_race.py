"""A race on a countable universe that nobody lists: integers, text, any label."""

import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution, Premises
from accord.core.errors import InvalidParameter
from accord.core.points import PointsCoupling
from accord.core.shared import SharedRandomness, mix, uniform_open
from accord.distributions import Atoms, Categorical, Mixture, PointMass
from accord.distributions.categorical import label_array

__all__ = [
    "AtomRace",
    "ListsAtoms",
    "label_bytes",
    "label_of",
]


def label_bytes(label: Hashable) -> bytes:
    """Return the bytes of a label: text, bytes, a whole number, a float, a boolean, or a tuple of these.

    True is not 1; 1 and 1.0 are the same label, as in the lists of `Categorical`.

    Raises
    ------
    TypeError
        For any other type, and for NaN.

    """
    value = label.item() if isinstance(label, np.generic) else label
    if type(value) is float and value.is_integer():
        value = int(value)
    rule = _RULES.get(type(value))
    if rule is None or value != value:  # noqa: PLR0124 - NaN
        raise TypeError("a label must be text, bytes, a number, a boolean, or a tuple of these")
    return rule(value)


def _tuple_bytes(parts: tuple[Hashable, ...]) -> bytes:
    pieces = [label_bytes(part) for part in parts]
    return b"t" + b"".join(struct.pack("<Q", len(piece)) + piece for piece in pieces)


_RULES: dict[type, Callable[[Any], bytes]] = {
    bool: lambda value: b"b1" if value else b"b0",
    int: lambda value: b"i" + str(value).encode(),
    float: lambda value: b"f" + struct.pack("<d", value),
    str: lambda value: b"s" + value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: b"y" + value,
    tuple: _tuple_bytes,
}


def label_of(data: bytes) -> Hashable:
    """Return the label with these bytes; a float that is whole comes back as the whole number."""
    kind, body = data[:1], data[1:]
    match kind:
        case b"b":
            return body == b"1"
        case b"i":
            return int(body)
        case b"f":
            return float(struct.unpack("<d", body)[0])
        case b"s":
            return body.decode("utf-8", "surrogatepass")
        case b"y":
            return body
    return tuple(label_of(part) for part in split(body))


def split(body: bytes) -> list[bytes]:
    """Return the pieces of a sequence, each of which stands after its length."""
    parts, place = [], 0
    while place < len(body):
        (size,) = struct.unpack_from("<Q", body, place)
        parts.append(body[place + 8 : place + 8 + size])
        place += 8 + size
    return parts


_LISTED_MASS = 1 - 2.0**-40
_CELLS_AT_ONCE = 1 << 21

_Floats = NDArray[np.float64]
_Words = NDArray[np.uint64]


@runtime_checkable
class ListsAtoms(Distribution, Protocol):
    """A law of one column and countable support that can list nearly all of its mass."""

    def support_atoms(self, mass: float) -> tuple[Sequence[Hashable], Sequence[float]]:
        """Return distinct labels with at least this total probability, and the probability of each."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AtomRace(PointsCoupling):
    """Couple laws of finite or countable support on a universe of labels that is never listed.

    Every label y has an arrival ``E_y ~ Exp(1)`` that is computed from the shared key, the draw and the bytes of y. A
    law P takes the label with the least ``E_y / P(y)`` among those to which it gives weight. Laws need not agree on a
    list of labels, and a law costs what its own support costs.

    Formal guarantees
    -----------------
    - Marginal: a block's record has its own law, up to the rounding of floats; for a law that lists all but a mass m of
      its support, up to m.
    - Agreement, for one record: that of one race on the union of the supports, ``agreement(P, Q)``; at least
      ``(1 - TV) / (1 + TV)``. Record by record, for l records: the power l of that, which is worse than a joint race.
    - Isolation: by its form (`accord.core.PointsCoupling`).
    - Labels: -0.0 is 0.0, and 1.0 is 1; True is not 1. A law with a NaN label abstains.
    - Not promised: any privacy; a joint coupling of several records, for which `RaceCoupling` needs a public list.

    Parameters
    ----------
    record_by_record
        Whether tuples of several records may be coupled by as many independent races.
    most_atoms
        A law with a longer list abstains.

    Source
    ------
    theory 4 (L3, L4), 8 (S1); proof page ``docs/proofs/atom-race.md``.

    Examples
    --------
    >>> laws = [Categorical(["a", "b"], [0.9, 0.1]), Categorical(["c", "a"], [0.1, 0.9]), PointMass("a")]
    >>> coupled = AtomRace().couple(laws, records=1, draws=5, shared=SharedRandomness(3))
    >>> [coupled.decode(draw, coupled.keys[draw, 0]).tolist() for draw in range(2)]
    [[['a']], [['a']]]
    >>> bool(coupled.keys[0, 0] == coupled.keys[0, 1] == coupled.keys[0, 2])
    True

    """

    record_by_record: bool = False
    most_atoms: int = 1_000_000

    def __post_init__(self) -> None:
        if not isinstance(self.record_by_record, bool):
            raise InvalidParameter("record_by_record must be True or False.")
        _check.store(self, most_atoms=_check.integer("most_atoms", self.most_atoms, least=1))

    def premises(self, *, records: int) -> Premises:
        """Return marginals, and the agreement of one record; tuples are raced record by record."""
        return Premises(marginals=True, agreement="tuples" if records == 1 else "records")

    def points(self, *, records: int, draws: int, shared: SharedRandomness) -> "_Race":
        """Return the arrivals of all labels.

        Laws are `Categorical`, `PointMass`, `Atoms` without a rest, mixtures of these, and laws with `support_atoms`.

        Raises
        ------
        InvalidParameter
            If several records are asked for without ``record_by_record``.

        """
        size = _check.integer("records", records, least=1)
        if size > 1 and not self.record_by_record:
            raise InvalidParameter(
                "records must be 1: without a public list of labels several records can only be coupled one by one, "
                "which agrees less often. Ask for that with record_by_record=True, or list the labels and take "
                "RaceCoupling."
            )
        return _Race(shared, records=size, draws=draws, most_atoms=self.most_atoms)


@final
class _Race:
    """The arrivals of all labels, computed when a law asks for them.

    What is remembered between laws is a function of labels, key and draw alone, so it is the same whoever asks first.
    """

    __slots__ = ("_arrivals", "_draws", "_key", "_last", "_most", "_records", "_tags")

    def __init__(self, shared: SharedRandomness, *, records: int, draws: int, most_atoms: int) -> None:
        self._most = most_atoms
        self._key = shared.stream("atom race", "labels").bytes(32)
        self._records = records
        rows = np.array([(draw, record) for draw in range(draws) for record in range(records)], dtype=np.int64)
        self._draws = shared.hash_rows(rows, "atom race", "draws")
        self._tags: dict[bytes, int] = {}
        self._last = b""
        self._arrivals: _Floats = np.zeros((0, 0))

    def votes(self, law: object) -> list[bytes]:
        """Return one law's vote in each draw: the bytes of its labels, each after its length."""
        names, masses = _atoms(law, most=self._most)
        tags = np.array([self._tag(name) for name in names], dtype=np.uint64)
        logs = np.log(masses)
        step = max(1, _CELLS_AT_ONCE // len(names))
        if len(self._draws) <= step:
            winners = (self._all_arrivals(tags) - logs).argmin(axis=1)
        else:
            parts = [self._draws[start : start + step] for start in range(0, len(self._draws), step)]
            winners = np.concatenate([(_log_arrivals(tags, part) - logs).argmin(axis=1) for part in parts])
        framed = {winner: struct.pack("<Q", len(names[winner])) + names[winner] for winner in set(winners.tolist())}
        return [b"".join(map(framed.__getitem__, row)) for row in winners.reshape(-1, self._records).tolist()]

    def decode(self, draw: int, key: bytes) -> NDArray[Any]:  # noqa: ARG002 - labels look alike in every draw
        """Return the records of a key, shape (l, 1)."""
        return label_array([label_of(name) for name in split(key)])[:, None]

    def _all_arrivals(self, tags: _Words) -> _Floats:
        known = tags.tobytes()
        if known != self._last:
            self._arrivals, self._last = _log_arrivals(tags, self._draws), known
        return self._arrivals

    def _tag(self, name: bytes) -> int:
        tag = self._tags.get(name)
        if tag is None:
            digest = blake2b(name, key=self._key, digest_size=8, person=b"accord-atoms").digest()
            tag = self._tags[name] = int.from_bytes(digest, "little")
        return tag


def _log_arrivals(tags: _Words, draws: _Words) -> _Floats:
    """Return the log arrival of each label in each draw, shape (draws, labels)."""
    uniform = uniform_open(mix(mix(draws)[:, None] ^ tags[None, :]))
    return np.asarray(np.log(-np.log(uniform)))


def _atoms(law: object, *, most: int) -> tuple[list[bytes], _Floats]:
    """Return the labels of positive weight as sorted bytes, so that a tie goes to the least, and their weights.

    It raises for a law that has no list.
    """
    gathered: dict[bytes, float] = {}
    for labels, masses in _lists(law):
        if len(labels) != len(masses) or len(labels) > most:
            raise InvalidParameter("a law must list as many weights as labels, and not too many.")
        for name, mass in zip(map(label_bytes, labels), masses, strict=True):
            gathered[name] = gathered.get(name, 0.0) + float(mass)
    names = sorted(name for name, mass in gathered.items() if mass != 0)
    weights = np.array([gathered[name] for name in names])
    if not (0 < len(names) <= most and (weights > 0).all() and np.isfinite(weights.sum())):
        raise InvalidParameter("weights must be finite and at least 0, with a positive sum.")
    return names, weights


def _lists(law: object) -> Iterator[tuple[Sequence[Hashable], Sequence[float]]]:
    """Yield lists of labels and weights that make up a law."""
    if type(law) is Categorical:
        yield law.categories, law.probabilities
    elif type(law) is PointMass and law.dimension == 1:
        yield (law.label if law.vector is None else law.vector[0],), (1.0,)
    elif type(law) is Atoms and law.rest_mass == 0:
        yield law.values, law.masses
    elif type(law) is Mixture:
        for part, weight in law.positive:
            for labels, masses in _lists(part):
                yield labels, [weight * mass for mass in masses]
    elif isinstance(law, ListsAtoms) and law.dimension == 1:
        yield law.support_atoms(_LISTED_MASS)
    else:
        raise InvalidParameter("a law must be able to list its labels.")
