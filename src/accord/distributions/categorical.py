"""A law on a public list of labels."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions.measured import Flags, Points, inside_atoms, normalised
from accord.distributions.protocol import Rows

__all__ = ["Categorical", "as_labels", "label_array", "label_indices", "label_keys"]

_Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class Categorical:
    """Independent labels from a public list, each with its probability.

    Formal guarantees
    -----------------
    - Value: immutable; equal lists and probabilities are equal laws with equal hashes. True is not 1.
    - Labels come back from `sample` exactly as given: never shortened, rounded or changed in type.
    - Not promised: that two laws on differently ordered lists are equal.

    Parameters
    ----------
    categories
        Distinct hashable labels (text, numbers, booleans ...), public: they must not be read off the data.
    probabilities
        Non-negative weights, one for each label, with a positive sum; normalised here.

    Raises
    ------
    InvalidParameter
        If labels repeat, are missing (None, NaN) or not hashable, or the weights are not as above.

    Examples
    --------
    >>> law = Categorical(["no", "yes"], [1, 3])
    >>> law.probabilities
    (0.25, 0.75)
    >>> law.log_density(["yes", "perhaps"]).round(3).tolist()
    [-0.288, -inf]

    """

    categories: tuple[Hashable, ...]
    probabilities: tuple[float, ...]

    def __init__(self, categories: Iterable[Hashable], probabilities: ArrayLike) -> None:
        labels = as_labels(categories)
        _check.store(
            self,
            categories=labels,
            probabilities=normalised("probabilities", probabilities, count=len(labels), each="category"),
        )

    @property
    def dimension(self) -> int:
        """Number of columns of a record: 1."""
        return 1

    @property
    def measure(self) -> Measure:
        """Counting measure on the labels."""
        return Measure.COUNTING

    def sample(self, size: int, generator: Generator) -> Rows:
        """Return ``size`` independent labels, shape (size, 1).

        Parameters
        ----------
        size
            At least 0.
        generator
            Read for ``size`` uniform numbers.

        """
        count = _check.integer("size", size, least=0)
        steps = np.cumsum(self.probabilities)
        picks = np.searchsorted(steps / steps[-1], generator.random(count), side="right")
        records: Rows = label_array(self.categories)[picks][:, None]
        return records

    def log_density(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each label, shape (n,); -inf for a foreign one.

        Parameters
        ----------
        x
            Labels, shape (n, 1) or (n,).

        """
        return self.log_mass(x)

    def log_mass(self, x: ArrayLike | Sequence[Any]) -> _Floats:
        """Return the log probability of each label, shape (n,); -inf for a foreign one."""
        return self._log_masses(Points(x, dimension=1))

    def atom_columns(self, points: Points) -> Flags:
        """Return where the records are labels of positive probability."""
        met = self._log_masses(points) > -np.inf
        return met[:, None] if met.any() else None

    def log_density_at(self, points: Points, atoms: Flags) -> _Floats:
        """Return the log density with respect to the measure that counts in the columns given, shape (n,)."""
        return inside_atoms(self._log_masses(points), atoms)

    def _log_masses(self, points: Points) -> _Floats:
        keys = tuple(label_keys(self.categories))
        places = points.remember("labels", keys, lambda: label_indices(self.categories, points.raw.ravel()))
        with np.errstate(divide="ignore"):
            logs = np.log([*self.probabilities, 0.0])
        values: _Floats = logs[places]
        return values

    def _key(self) -> tuple[Any, ...]:
        return (*label_keys(self.categories), self.probabilities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categorical):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def as_labels(categories: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return a public list of labels as a tuple of plain Python values, or refuse it.

    Raises
    ------
    InvalidParameter
        If it is empty, a text, or holds a repeated, missing or unhashable label.

    """
    if isinstance(categories, (str, bytes)) or not isinstance(categories, Iterable):
        raise InvalidParameter("categories must be a list of labels, not a single value.")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in categories)
    _check.at_least_one("categories", labels)
    try:
        distinct = len(set(label_keys(labels)))
    except TypeError:
        distinct = -1
    if distinct < 0:
        raise InvalidParameter("categories must be hashable labels such as text, numbers or booleans.")
    if any(_is_missing(label) for label in labels):
        raise InvalidParameter("categories must not hold None or NaN: give a missing level a name, such as 'missing'.")
    if distinct < len(labels):
        raise InvalidParameter("categories must be distinct.")
    return labels


def label_keys(labels: Iterable[Any]) -> list[tuple[bool, Any]]:
    """Return a key for each label under which True and 1 differ (Python calls them equal), while 1 and 1.0 do not."""
    return [(isinstance(label, (bool, np.bool_)), label) for label in labels]


def label_indices(categories: Sequence[Hashable], labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each label in ``categories``, -1 for one that is not there, shape (n,).

    Bytes, such as numpy's arrays of dtype "S" hold, stand for their text where no category is bytes.

    Parameters
    ----------
    categories
        As returned by `as_labels`.
    labels
        Shape (n,).

    """
    table = {key: position for position, key in enumerate(label_keys(categories))}
    values = labels.tolist()
    if labels.dtype.kind in "SO" and not any(isinstance(label, bytes) for label in categories):
        values = [_text(value) if isinstance(value, bytes) else value for value in values]
    keys = label_keys(values)
    try:
        found = [table.get(key, -1) for key in keys]
    except TypeError:  # an unhashable record is foreign, and must not hide the others
        found = [table.get(key, -1) if _is_hashable(key) else -1 for key in keys]
    return np.array(found, dtype=np.int64)


def label_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """Return labels as an array that keeps each exactly, shape (n,): bool, int64, float64, or else objects."""
    kinds = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= label < 2**63 for label in labels if isinstance(label, int)):
        return np.array(labels, dtype=np.int64)
    if kinds in ({bool}, {float}):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    for position, label in enumerate(labels):
        array[position] = label
    return array


def _is_missing(label: object) -> bool:
    """Return whether this is None, or like NaN not equal to itself (some missing values even refuse to answer)."""
    copy = label
    try:
        return label is None or bool(label != copy)
    except (TypeError, ValueError):
        return True


def _text(value: bytes) -> str | bytes:
    """Return the text of UTF-8, other bytes as they are."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
