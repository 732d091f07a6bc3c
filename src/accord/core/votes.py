"""Votes in canonical form: equal votes are equal bytes, and what is given back depends on those bytes alone."""

import math
import struct
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, ValuesView
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from accord.core.check import at_least_one, store
from accord.core.coupling import ABSTAIN
from accord.core.errors import InvalidParameter
from accord.core.release import NoAnswer

__all__ = [
    "Canonical",
    "Tally",
    "canonical",
    "encode",
    "law_of",
    "tally",
]


_UNORDERED = (
    "a vote has a frozen set whose members hash by their place in memory, so that it has no order of its own: vote "
    "with tuples in their place."
)


class Canonical(NamedTuple):
    """A vote in canonical form: ``value`` is a function of ``key``, and ``key`` of the vote."""

    key: bytes
    value: Any


def encode(vote: Any) -> bytes:  # noqa: ANN401 - a vote is a value of any of the types below
    """Return the bytes by which votes are compared.

    Formal guarantees
    -----------------
    - Injective on canonical values: a type tag, a length, then the content; two votes of different kinds never meet.
      ``1``, ``1.0`` and ``True`` are three votes; ``np.int64(1)`` is the vote ``1``.
    - Equal in spite of their looks: ``-0.0`` and ``0.0``, all NaNs, ``Decimal("1.0")`` and ``Decimal("1")``.
    - Not promised: equality of classes that share module and qualified name.

    Parameters
    ----------
    vote
        None, bool, int, float, complex, str, bytes, Fraction, Decimal, date, datetime, Enum, their numpy scalars;
        tuples, named tuples, frozen sets and frozen dataclasses of these; or a numpy row (an array or a
        structured scalar).

    Raises
    ------
    InvalidParameter
        For any other type, and for a frozen set whose members hash by their place in memory; the text names the type
        and never the content.

    Source
    ------
    docs/proofs/votes.md; theory 9 ("equality of votes on canonical bytes").

    Examples
    --------
    >>> encode(-0.0) == encode(0.0)
    True
    >>> len({encode(1), encode(1.0), encode(True)})
    3

    """
    return canonical(vote).key


def canonical(vote: Any) -> Canonical:  # noqa: ANN401 - see encode
    """Return key and canonical value of a vote; the rules are those of `encode`."""
    if type(vote) is bytes:  # what couplings vote with; one part alone shares nothing
        return _bytes(vote)
    reading = _Reading()
    try:
        found = reading(vote)
        if reading.sets:
            again = _Reading()
            again(found.value)
            if [hash(members) for members in reading.sets] != [hash(members) for members in again.sets]:
                raise InvalidParameter(_UNORDERED)
    except RecursionError:
        raise InvalidParameter("a vote is nested too deeply.") from None
    return found


@final
class _Reading:
    """One vote while it is read: parts with one key become one object, whatever the voter's parts shared in memory."""

    __slots__ = ("_known", "sets")

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}
        self.sets: list[frozenset[Any]] = []

    def __call__(self, vote: Any) -> Canonical:  # noqa: ANN401 - see encode
        found = self._read(vote)
        return Canonical(found.key, self._known.setdefault(found.key, found.value))

    def _read(self, vote: Any) -> Canonical:  # noqa: ANN401 - see encode
        if _has_fields(vote):
            return _record(vote, self)
        if type(vote) is tuple:
            parts = [self(item) for item in vote]
            return Canonical(_pack(b"T", *(part.key for part in parts)), tuple(part.value for part in parts))
        if type(vote) is frozenset:
            return self._set(vote)
        rule = next((rule for types, rule in _RULES if isinstance(vote, types)), None)
        if rule is None or not (isinstance(vote, Enum) or type(vote) in _EXACT or _is_numpy_scalar(vote)):
            _refuse(vote)  # a subclass may look or behave otherwise than its key says
        return rule(vote)

    def _set(self, vote: frozenset[Any]) -> Canonical:
        """Put the members in by the order of their keys: a set keeps the order in which it was filled."""
        members = {member.key: member.value for member in map(self, vote)}
        ordered = sorted(members)
        value = frozenset([members[key] for key in ordered])
        self.sets.append(value)
        return Canonical(_pack(b"Z", *ordered), value)


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """How many votes each value got. Secret: neither counts nor order may leave the mechanism.

    Attributes
    ----------
    counts
        Number of votes by canonical key, in the order of the keys' bytes. Abstentions are not counted.
    values
        The canonical value of each key.
    voters
        The number of voters, abstentions included. Public.

    """

    counts: Mapping[bytes, int]
    values: Mapping[bytes, Any]
    voters: int


def tally(votes: Collection[Any] | NDArray[Any]) -> Tally:
    """Count votes by canonical key.

    Formal guarantees
    -----------------
    - Each entry of a sequence, or of an array of objects, is read alone, with its own type and unit of time. The type
      that any other array declares is public: if numpy found it by looking at all votes, pass the list instead.

    Parameters
    ----------
    votes
        A sequence of votes, or an array of shape (k,) or (k, m) whose rows are votes. `ABSTAIN` is a vote for nobody.

    Raises
    ------
    InvalidParameter
        If there are no votes, or something in there is not a vote.

    Examples
    --------
    >>> result = tally(["a", "b", "a", ABSTAIN])
    >>> [(result.values[key], count) for key, count in result.counts.items()], result.voters
    ([('a', 2), ('b', 1)], 4)

    """
    if isinstance(votes, (str, bytes)) or not (isinstance(votes, (Sequence, ValuesView)) or type(votes) is np.ndarray):
        raise InvalidParameter(f"votes must be a sequence, one entry a voter, like a list: not {type(votes).__name__}.")
    at_least_one("votes", votes)
    counts: dict[bytes, int] = {}
    values: dict[bytes, Any] = {}
    for vote in votes:
        if vote is NoAnswer:
            raise InvalidParameter("NoAnswer is a result, not a vote: a voter without an opinion votes ABSTAIN.")
        if vote is ABSTAIN:
            continue
        key, value = canonical(vote)
        counts[key] = counts.get(key, 0) + 1
        values.setdefault(key, value)
    ordered = sorted(counts)
    number, value = ({key: found[key] for key in ordered} for found in (counts, values))
    return Tally(MappingProxyType(number), MappingProxyType(value), len(votes))


# --- one rule a kind of vote ------------------------------------------------------------------------------------------


def _refuse(vote: object) -> NoReturn:
    raise InvalidParameter(
        f"a vote of type {type(vote).__name__} has no canonical form: vote with numbers, text, bytes, dates, tuples or "
        f"frozen dataclasses of these, or with numpy rows of numbers."
    )


def _pack(tag: bytes, *parts: bytes) -> bytes:
    """Join parts so that they can be told apart again: every part is preceded by its length."""
    return tag + b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _whole(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _real(number: Any) -> tuple[bytes, float]:  # noqa: ANN401 - any real number, of Python or numpy
    value = math.nan if math.isnan(number) else float(number) + 0.0  # -0.0 + 0.0 is 0.0
    return struct.pack(">d", value), value


def _class_name(vote: object) -> bytes:
    return _text(f"{type(vote).__module__}:{type(vote).__qualname__}")


def _none(_: None) -> Canonical:
    return Canonical(b"N", None)


def _enum(vote: Enum) -> Canonical:
    if isinstance(vote, Flag):
        return Canonical(_pack(b"E", _class_name(vote), _whole(vote.value)), type(vote)(vote.value))
    if type(vote).__members__.get(vote.name) is not vote:  # made without its class
        _refuse(vote)
    return Canonical(_pack(b"E", _class_name(vote), _text(vote.name)), vote)


def _bool(vote: bool | np.bool_) -> Canonical:  # noqa: FBT001 - a vote
    return Canonical(_pack(b"B", bytes([bool(vote)])), bool(vote))


def _int(vote: int | np.integer[Any]) -> Canonical:
    return Canonical(_pack(b"I", _whole(int(vote))), int(vote))


def _float(vote: float | np.floating[Any]) -> Canonical:
    if isinstance(vote, np.longdouble) and vote.itemsize > 8:
        _refuse(vote)
    key, value = _real(vote)
    return Canonical(_pack(b"F", key), value)


def _complex(vote: complex | np.complexfloating[Any, Any]) -> Canonical:
    if isinstance(vote, np.clongdouble) and vote.itemsize > 16:
        _refuse(vote)
    (left, real), (right, imaginary) = _real(vote.real), _real(vote.imag)
    return Canonical(_pack(b"C", left, right), complex(real, imaginary))


def _str(vote: str) -> Canonical:
    written = _text(str.__str__(vote))
    return Canonical(_pack(b"S", written), written.decode("utf-8", "surrogatepass"))  # never the voter's own object


def _bytes(vote: bytes) -> Canonical:
    return Canonical(_pack(b"Y", bytes(vote)), bytes(memoryview(vote)))  # a copy, as of text


def _fraction(vote: Fraction) -> Canonical:
    value = Fraction(int(vote.numerator), int(vote.denominator))  # of numpy's integers they stay numpy's
    return Canonical(_pack(b"Q", _whole(value.numerator), _whole(value.denominator)), value)


def _decimal(vote: Decimal) -> Canonical:
    sign, digits, exponent = vote.as_tuple()
    if not isinstance(exponent, int):
        value = Decimal("NaN" if vote.is_nan() else "-Infinity" if sign else "Infinity")
        return Canonical(_pack(b"D", _text(str(value))), value)
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    sign, power = (sign, exponent + len(text) - len(kept)) if kept else (0, 0)
    value = Decimal((sign, tuple(map(int, kept or "0")), power))
    return Canonical(_pack(b"D", bytes([sign]), _text(kept), _whole(power)), value)


def _datetime(vote: datetime) -> Canonical:
    if type(vote) is not datetime:  # a subclass may hold more, or be no time at all
        _refuse(vote)
    offset = vote.utcoffset()
    since = None if offset is None else offset // timedelta(microseconds=1)
    zone = None if since is None else timezone(timedelta(microseconds=since))
    day = (vote.year, vote.month, vote.day, vote.hour, vote.minute, vote.second, vote.microsecond)
    key = _pack(b"M", *map(_whole, day), b"" if since is None else _whole(since))
    return Canonical(key, datetime(*day, tzinfo=zone))


def _date(vote: date) -> Canonical:
    if type(vote) is not date:
        _refuse(vote)
    value = date(vote.year, vote.month, vote.day)
    return Canonical(_pack(b"d", *map(_whole, (vote.year, vote.month, vote.day))), value)


def _has_fields(vote: object) -> bool:
    """Whether this is an instance of a frozen dataclass or of a named tuple."""
    kind = type(vote)
    if is_dataclass(kind):
        frozen = bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined] # not in typeshed
        return frozen and not issubclass(kind, Enum)
    return issubclass(kind, tuple) and kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


def _record(vote: Any, read: _Reading) -> Canonical:  # noqa: ANN401 - any dataclass or named tuple
    names = [field.name for field in fields(vote)] if is_dataclass(vote) else vote._fields
    parts = {name: read(getattr(vote, name)) for name in names}
    key = _pack(b"R", _class_name(vote), *(_pack(b"=", _text(name), part.key) for name, part in parts.items()))
    if not is_dataclass(vote):
        return Canonical(key, vote._make(part.value for part in parts.values()))
    value = object.__new__(type(vote))
    store(value, **{name: part.value for name, part in parts.items()})
    return Canonical(key, value)


def _time_scalar(vote: np.datetime64 | np.timedelta64) -> Canonical:
    value = vote.astype(vote.dtype.newbyteorder("<"))
    return Canonical(_pack(b"t", _text(value.dtype.str), value.tobytes()), value)


def _row(vote: NDArray[Any]) -> Canonical:
    value = _canonical_array(vote)
    if vote.ndim == 0 and value is not None:
        return canonical(value[()])
    if value is None:
        _refuse(vote)
    value.flags.writeable = False
    key = _pack(b"A", _text(repr(value.dtype.descr)), *map(_whole, value.shape), value.tobytes())
    return Canonical(key, value)


def _structured(vote: np.void) -> Canonical:
    value = _canonical_array(np.array([vote]))
    if value is None:
        _refuse(vote)
    value.flags.writeable = False  # so that its entry can be hashed
    return Canonical(_pack(b"V", _text(repr(value.dtype.descr)), value.tobytes()), value[0])


def _canonical_array(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return a packed little-endian copy with one zero and one NaN; None if its entries have no canonical form."""
    if array.dtype.names is not None:
        columns = {name: _canonical_array(array[name]) for name in array.dtype.names}
        whole = {name: column for name, column in columns.items() if column is not None}
        if len(whole) < len(columns):
            return None
        layout = [(name, column.dtype, column.shape[array.ndim :]) for name, column in whole.items()]
        packed = np.zeros(array.shape, dtype=layout)
        for name, column in whole.items():
            packed[name] = column
        return packed
    if array.dtype.kind not in "biufcSUmM" or (array.dtype.kind in "fc" and array.dtype.char in "gG"):
        return None
    if array.dtype.kind == "b":
        return np.array(array.view(np.uint8) != 0, order="C")  # a byte of 2 is True as well
    if array.dtype.kind in "SU":  # as wide as its own longest text: an array of all votes is as wide as anybody's
        array = array.astype(f"{array.dtype.kind}{max(1, int(np.char.str_len(array).max(initial=0)))}")
    value = np.array(array, dtype=np.dtype(array.dtype.newbyteorder("<").str), order="C", subok=False)
    if value.dtype.kind in "fc":
        parts = value.view(value.real.dtype)
        parts += 0
        parts[np.isnan(parts)] = np.nan
    return value


_EXACT = frozenset((NoneType, bool, int, float, complex, str, bytes, Fraction, Decimal, datetime, date, np.ndarray))


def _is_numpy_scalar(vote: object) -> bool:
    return isinstance(vote, np.generic) and type(vote).__module__ == "numpy"


_RULES: tuple[tuple[type | tuple[type, ...], Callable[[Any], Canonical]], ...] = (
    # The first rule that fits is taken: members of an Enum may be ints, bools are ints, datetimes are dates, and a
    # numpy duration calls itself an integer.
    (Enum, _enum),
    (NoneType, _none),
    ((bool, np.bool_), _bool),
    ((np.datetime64, np.timedelta64), _time_scalar),
    ((int, np.integer), _int),
    ((float, np.floating), _float),
    ((complex, np.complexfloating), _complex),
    (str, _str),
    (bytes, _bytes),
    (Fraction, _fraction),
    (Decimal, _decimal),
    (datetime, _datetime),
    (date, _date),
    (np.ndarray, _row),
    (np.void, _structured),
)


def law_of(outcomes: Iterable[tuple[Any, Any, Fraction]]) -> dict[Any, Fraction]:
    """Return the law of (value, stand-in if the value cannot be a key, probability); `NoAnswer` gets the rest."""
    law: dict[Any, Fraction] = {}
    for value, stand_in, probability in outcomes:
        if probability > 0:
            key = value if _can_be_key(value) else stand_in
            law[key] = law.get(key, Fraction(0)) + probability
    law[NoAnswer] = 1 - sum(law.values(), Fraction(0))
    return law


def _can_be_key(value: Hashable) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
