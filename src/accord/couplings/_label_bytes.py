"""Labels as bytes and back, so that equal labels are equal bytes whoever holds them."""

import struct
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

__all__ = ["label_bytes", "label_of"]


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
