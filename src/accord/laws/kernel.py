"""A Markov kernel between finite sets: one law for each input."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, final

from accord.core.errors import InvalidParameter
from accord.laws._labels import key_of, labelled
from accord.laws.finite import FiniteLaw

__all__ = ["FiniteKernel"]


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class FiniteKernel:
    """A randomized map on finite sets; its rows may have different outcomes, the others having probability 0.

    Formal guarantees
    -----------------
    - Value: immutable; equal inputs with equal laws are equal kernels, in whatever order.
    - Post-processing: if this kernel is (epsilon, delta)-private, so is ``this.then(other)``, for every ``other``; the
      composition is exact, so `accord.laws.check_dp` of it returns a delta that is not larger.
    - Not promised: anything about inputs without a row.

    Parameters
    ----------
    rows
        Input to `FiniteLaw`, at least one.

    Raises
    ------
    InvalidParameter
        If it is no mapping, is empty, or a row is no `FiniteLaw`; or an input is not hashable or not equal to itself.

    Source
    ------
    theory 1 (Markov kernel), M6; docs/proofs/laws.md.

    Examples
    --------
    >>> response = FiniteKernel({0: FiniteLaw({0: 3, 1: 1}), 1: FiniteLaw({0: 1, 1: 3})})
    >>> response.then(response)(0)[0]
    Fraction(5, 8)

    """

    inputs: tuple[Hashable, ...]
    laws: tuple[FiniteLaw, ...]
    index: Mapping[Hashable, int] = field(repr=False)
    """Position of each input, by its canonical key."""

    def __init__(self, rows: Mapping[Any, FiniteLaw]) -> None:
        if not isinstance(rows, Mapping):
            raise InvalidParameter("rows must be a mapping from input to FiniteLaw, such as {0: law, 1: law}.")
        _fill(self, rows.keys(), rows.values())

    @classmethod
    def of(cls, inputs: Iterable[Any], *, laws: Iterable[FiniteLaw]) -> Self:
        """Return the kernel with these inputs and laws, side by side; a dict cannot hold both True and 1."""
        kernel = object.__new__(cls)
        _fill(kernel, inputs, laws)
        return kernel

    def __call__(self, given: Any) -> FiniteLaw:  # noqa: ANN401 - an input is any hashable value
        """Return the law of the outcome for one input.

        Raises
        ------
        InvalidParameter
            If the input has no row.

        """
        position = self.index.get(key_of(given))
        if position is None:
            raise InvalidParameter("the kernel has no row for this input.")
        return self.laws[position]

    def then(self, kernel: "FiniteKernel") -> "FiniteKernel":
        """Return this kernel followed by ``kernel``, which reads nothing but the outcome (post-processing, theory M6).

        Raises
        ------
        InvalidParameter
            If ``kernel`` is no kernel, or has no row for an outcome of positive probability.

        """
        if not isinstance(kernel, FiniteKernel):
            raise InvalidParameter("kernel must be a FiniteKernel.")
        return FiniteKernel.of(self.inputs, laws=[_mixture(law, kernel) for law in self.laws])

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def _rows(self) -> frozenset[tuple[Hashable, FiniteLaw]]:
        return frozenset(zip(self.index, self.laws, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteKernel):
            return NotImplemented
        return self._rows() == other._rows()

    def __hash__(self) -> int:
        return hash(self._rows())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.inputs, self.laws)


def _rebuilt(inputs: tuple[Hashable, ...], laws: tuple[FiniteLaw, ...]) -> FiniteKernel:
    return FiniteKernel.of(inputs, laws=laws)


def _fill(kernel: FiniteKernel, inputs: Iterable[Any], laws: Iterable[FiniteLaw]) -> None:
    """Check and set the fields of a new kernel."""
    labels, keys = labelled(inputs)
    rows = tuple(laws)
    if len(labels) == 0 or len(labels) != len(rows):
        raise InvalidParameter("rows must not be empty, and have one law for each input.")
    if not all(isinstance(law, FiniteLaw) for law in rows):
        raise InvalidParameter("rows must map every input to a FiniteLaw.")
    index = {key: position for position, key in enumerate(keys)}
    if len(index) != len(keys):
        raise InvalidParameter("rows must have distinct inputs.")
    object.__setattr__(kernel, "inputs", labels)
    object.__setattr__(kernel, "laws", rows)
    object.__setattr__(kernel, "index", MappingProxyType(index))


def _mixture(law: FiniteLaw, kernel: FiniteKernel) -> FiniteLaw:
    """Return the law of the second outcome when the first has law ``law``."""
    reached = [(key, number) for key, number in zip(law.index, law.numerators, strict=True) if number]
    if any(key not in kernel.index for key, _ in reached):
        raise InvalidParameter("kernel must have a row for every outcome of positive probability.")
    rows = [(kernel.laws[kernel.index[key]], number) for key, number in reached]
    common = math.lcm(*(row.denominator for row, _ in rows))
    numbers: dict[Hashable, int] = {}
    labels: dict[Hashable, Hashable] = {}
    for row, number in rows:
        factor = number * (common // row.denominator)
        for key, label, part in zip(row.index, row.outcomes, row.numerators, strict=True):
            numbers[key] = numbers.get(key, 0) + factor * part
            labels.setdefault(key, label)
    return FiniteLaw.of(labels.values(), weights=numbers.values())
