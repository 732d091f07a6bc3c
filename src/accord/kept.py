"""Values in one file for later: a zip of JSON and arrays of numbers. Reading one runs nothing that the file says."""

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from accord.core.errors import InvalidParameter

__all__ = ["Kind", "Kinds", "checked", "content_of", "fields_of", "kept", "restored"]

T = TypeVar("T")
_HEAD, _DIGEST, _ARRAYS = "content.json", "content.json.sha256", "arrays/"
_MOST_BYTES: Final = 1 << 30
_MOST_WHOLE: Final = 1 << 63
_TYPES: Final = ("<f8", "<i8")
_DAMAGED = "the file is damaged, or was changed by hand: use the one that was written."


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of one class are kept.

    Parameters
    ----------
    type
        The class.
    parts
        ``parts(value)`` returns what it is made of, by name; the fields of a dataclass by default.
    make
        ``make(**parts)`` returns a value; the class by default. It must refuse what is no such value.

    """

    type: type
    parts: Callable[[Any], Mapping[str, Any]] | None = None
    make: Callable[..., Any] | None = None


Kinds = Mapping[str, Kind]
"""By the names that stand in files: names stay, whatever becomes of the classes."""


def kept(value: object, *, kinds: Kinds, format: str, version: int, shown: Mapping[str, Any]) -> bytes:  # noqa: A002
    """Return the content of a file; equal values give equal bytes.

    Parameters
    ----------
    value
        Of numbers, texts, fractions, tuples, mappings, enumerations, arrays of float64 and int64, and of ``kinds``.
    kinds
        What else it is made of.
    format, version
        What the file says that it is.
    shown
        Plain data for people who open it.

    Raises
    ------
    InvalidParameter
        If a part is of no such kind.

    """
    writing = _Writing({kind.type: (name, kind) for name, kind in kinds.items()}, [])
    content = writing.plain(value)
    arrays = [_array_bytes(array) for array in writing.arrays]
    head = {
        "format": format,
        "format_version": version,
        "about": shown,
        "arrays": [hashlib.sha256(one).hexdigest() for one in arrays],
        "value": content,
    }
    text = (json.dumps(head, indent=1, allow_nan=False) + "\n").encode("ascii")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(zipfile.ZipInfo(_HEAD), text)  # as it is, for whoever looks into the file
        file.writestr(zipfile.ZipInfo(_DIGEST), hashlib.sha256(text).hexdigest())
        for place, data in enumerate(arrays):
            file.writestr(zipfile.ZipInfo(_array_name(place)), data, compress_type=zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def content_of(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    InvalidParameter
        If there is none, or it is larger than any that is written.

    """
    try:
        if not path.is_file():
            raise InvalidParameter("there is no such file.")
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidParameter("the file is larger than any that is written: it is not read.")
        return path.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"the file cannot be read: {error.strerror}.") from None


def restored(content: bytes, *, kinds: Kinds, format: str, versions: Sequence[int], what: object) -> tuple[Any, Any]:  # noqa: A002
    """Return the value that a file holds, and what the file shows to people.

    Formal guarantees
    -----------------
    - Nothing of the file is run, and no class but those of ``kinds`` is made. At most a gibibyte is unpacked, and no
      array is larger than its bytes.
    - Each part has the type that the class it belongs to declares for it.

    Parameters
    ----------
    content
        Of the file.
    kinds
        Which classes there may be.
    format, versions
        What the file must say that it is.
    what
        The type of the value.

    Raises
    ------
    InvalidParameter
        If it is no such file: one sentence.

    """
    try:
        return _restored(content, kinds=kinds, format=format, versions=versions, what=what)
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - a file may be wrong in any way, and its words are not repeated
        raise InvalidParameter(_DAMAGED) from None


def _restored(content: bytes, *, kinds: Kinds, format: str, versions: Sequence[int], what: object) -> tuple[Any, Any]:  # noqa: A002
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise InvalidParameter(f"the file is no {format}.")
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        entries = _Entries(file, room=_MOST_BYTES)
        head = entries.head(format=format, versions=versions)
        arrays = [_array(entries.take(_array_name(place), digest)) for place, digest in enumerate(head["arrays"])]
        entries.must_be_all_taken()
    value = _Reading(kinds, arrays).value(head["value"])
    if not _fits(value, what):
        raise InvalidParameter(_DAMAGED)
    return value, head["about"]


class _Entries:
    """The entries of an open file, unpacked no further than the room that is left."""

    def __init__(self, file: zipfile.ZipFile, *, room: int) -> None:
        self._file, self._room = file, room
        self._left = [entry.filename for entry in file.infolist()]

    def head(self, *, format: str, versions: Sequence[int]) -> dict[str, Any]:  # noqa: A002
        """Return what the file says of itself."""
        if _HEAD not in self._left or _DIGEST not in self._left:
            raise InvalidParameter(f"the file is no {format}.")
        text = self.take(_HEAD, self.take(_DIGEST).decode("ascii"))
        head = json.loads(text)
        if not isinstance(head, dict) or head.get("format") != format:
            raise InvalidParameter(f"the file is no {format}.")
        if type(head.get("format_version")) is not int or head["format_version"] not in versions:
            raise InvalidParameter(f"the file is an {format} of another version: read it by a newer accord.")
        return head

    def take(self, name: str, digest: str | None = None) -> bytes:
        """Return an entry that has this digest."""
        self._left.remove(name)
        with self._file.open(name) as source:
            data = source.read(self._room + 1)
        self._room -= len(data)
        if self._room < 0:
            raise InvalidParameter("the file unpacks to more than is ever written: it is not read.")
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            raise InvalidParameter(_DAMAGED)
        return data

    def must_be_all_taken(self) -> None:
        """Refuse a file with entries that nothing names."""
        if self._left:
            raise InvalidParameter(_DAMAGED)


def _array_name(place: int) -> str:
    return f"{_ARRAYS}{place}.npy"


def _array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    kind = array.dtype.newbyteorder("<")
    np.lib.format.write_array(buffer, np.ascontiguousarray(array, dtype=kind), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes) -> np.ndarray[Any, Any]:
    """Return the array of a .npy file, which takes as much memory as the file's bytes, whatever shape it states."""
    source = io.BytesIO(data)
    if np.lib.format.read_magic(source) != (1, 0):
        raise InvalidParameter(_DAMAGED)
    shape, fortran, kind = np.lib.format.read_array_header_1_0(source)
    rest = data[source.tell() :]
    if fortran or kind.str not in _TYPES or min(shape, default=0) < 0 or math.prod(shape) * 8 != len(rest):
        raise InvalidParameter(_DAMAGED)
    return np.frombuffer(rest, dtype=kind).astype(kind.newbyteorder("=")).reshape(shape)


@dataclass(frozen=True, slots=True)
class _Writing:
    """Values as plain data, with the arrays in a list."""

    kinds: Mapping[type, tuple[str, Kind]]
    arrays: list[np.ndarray[Any, Any]]

    def plain(self, value: Any) -> Any:  # noqa: ANN401, PLR0911 - JSON, by kind
        if type(value) in self.kinds:
            name, kind = self.kinds[type(value)]
            parts = fields_of(value) if kind.parts is None else kind.parts(value)
            return {"is": name, **{key: self.plain(part) for key, part in parts.items()}}
        if isinstance(value, (tuple, list, Mapping, np.ndarray)):
            return self._container(value)
        match value:
            case None | bool() | str():
                return value
            case Enum():
                return self.plain(value.value)
            case Fraction():
                return {"is": "fraction", "of": f"{value.numerator}/{value.denominator}"}
            case int() | np.integer():
                return int(value)
            case float() | np.floating():
                number = float(value)
                return number if math.isfinite(number) else {"is": "float", "of": repr(number)}
            case _:
                raise InvalidParameter(f"a {type(value).__name__} cannot be kept in a file.")

    def _container(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        match value:
            case tuple():
                return [self.plain(one) for one in value]
            case list():
                return {"is": "list", "of": [self.plain(one) for one in value]}
            case Mapping():
                return {"is": "mapping", "of": [[self.plain(key), self.plain(one)] for key, one in value.items()]}
            case _:
                if value.dtype.newbyteorder("<").str not in _TYPES:
                    raise InvalidParameter(f"an array of {value.dtype} cannot be kept in a file.")
                self.arrays.append(value)
                return {"is": "array", "of": len(self.arrays) - 1}


def fields_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """Return the fields of a dataclass by name, as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


@dataclass(frozen=True, slots=True)
class _Reading:
    """Plain data as values."""

    kinds: Kinds
    arrays: Sequence[np.ndarray[Any, Any]]

    def value(self, plain: Any) -> Any:  # noqa: ANN401 - of any kind
        if isinstance(plain, list):
            return tuple(self.value(one) for one in plain)
        return self._of_kind(dict(plain)) if isinstance(plain, dict) else plain

    def _of_kind(self, parts: dict[str, Any]) -> Any:  # noqa: ANN401 - of any kind
        match parts.pop("is"):
            case "fraction":
                top, bottom = parts["of"].split("/")
                return Fraction(int(top), int(bottom))
            case "float":
                return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[parts["of"]]
            case "list":
                return [self.value(one) for one in parts["of"]]
            case "mapping":
                return {self.value(key): self.value(one) for key, one in parts["of"]}
            case "array":
                return self.arrays[parts["of"]]
            case name:
                kind = self.kinds[name]
                made = (kind.make or checked(kind.type))(**{key: self.value(part) for key, part in parts.items()})
                if not isinstance(made, kind.type):
                    raise InvalidParameter(_DAMAGED)
                return made


def checked(kind: type[T]) -> Callable[..., T]:
    """Return a maker of a dataclass that refuses a part of another type than is declared."""

    def make(**parts: Any) -> T:  # noqa: ANN401 - of any kind
        hints = _hints(kind)  # type: ignore[arg-type]  # classes are hashable
        for name, part in parts.items():
            if isinstance(hints[name], type) and issubclass(hints[name], Enum):
                parts[name] = hints[name](part)
            elif not _fits(part, hints[name]):
                raise InvalidParameter(_DAMAGED)
        return kind(**parts)

    return make


@cache
def _hints(kind: type) -> dict[str, Any]:
    if not is_dataclass(kind):
        raise InvalidParameter(_DAMAGED)
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:  # noqa: ANN401, PLR0911 - of any kind, by kind
    """Return whether a value is of a declared type, and its parts are of theirs."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or hint is None or hint is NoneType:
        return hint is Any or value is None
    if origin in {Union, UnionType}:
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inner)
    if isinstance(origin, type):
        return isinstance(value, origin) and _holds(value, inner)
    if hint is float and type(value) is int:
        return abs(value) <= _MOST_WHOLE
    if hint in {bool, int, float, str}:
        return type(value) is hint
    return isinstance(hint, type) and isinstance(value, hint)


def _holds(value: Any, inner: tuple[Any, ...]) -> bool:  # noqa: ANN401 - an array, a tuple or a mapping
    """Return whether what is in a container is of the types that are declared for it."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype == np.dtype(get_args(inner[1])[0]))
    if isinstance(value, Mapping):
        return all(_fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items())
    if len(inner) == 2 and inner[1] is Ellipsis:
        return all(_fits(one, inner[0]) for one in value)
    return len(value) == len(inner) and all(map(_fits, value, inner))
