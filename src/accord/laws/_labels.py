"""Outcomes in canonical form: what counts as the same outcome of two laws."""

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from types import NoneType
from typing import Any

import numpy as np

from accord.core.errors import InvalidParameter

__all__ = ["key_of", "labelled"]

_PLAIN = frozenset({int, str, bytes, NoneType})


class _Truth(Enum):
    """Stands for True and False in keys, which Python calls equal to 1 and 0."""

    TRUE = True
    FALSE = False


def labelled(outcomes: Iterable[Any]) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return outcomes as plain Python values, and the key of each: equal keys are the same outcome.

    True and 1 differ, also inside tuples and frozen sets; 1 and 1.0 do not; a numpy scalar is the value it holds.

    Raises
    ------
    InvalidParameter
        If an outcome is not hashable or not equal to itself (NaN).

    """
    if isinstance(outcomes, (str, bytes)) or not isinstance(outcomes, Iterable):
        raise InvalidParameter("outcomes must be a list of labels, not a single value.")
    given = tuple(outcomes)
    if _PLAIN.issuperset(map(type, given)):
        return given, given
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
    return plain, tuple(map(key_of, plain))


def key_of(outcome: Any) -> Hashable:  # noqa: ANN401 - an outcome is any hashable value
    """Return the key of one outcome; the rules are those of `labelled`."""
    label = outcome.item() if isinstance(outcome, np.generic) else outcome
    if isinstance(label, bool):
        return _Truth(label)
    parts = _PARTS.get(type(label))
    if parts is not None:
        return parts(map(key_of, label))
    if not _is_usable(label):
        raise InvalidParameter("outcomes must be hashable and equal to themselves: text, numbers, tuples ..., not NaN.")
    key: Hashable = label
    return key


_PARTS: dict[type, Callable[[Iterable[Hashable]], Hashable]] = {tuple: tuple, frozenset: frozenset}


def _is_usable(label: object) -> bool:
    copy = label
    try:
        hash(label)
        return bool(label == copy)
    except (TypeError, ValueError, ArithmeticError):
        return False
