"""A Markov kernel between finite sets: one law for each input."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, compress
from types import MappingProxyType
from typing import Any, Self, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring
from accord.laws.finite import Event, FiniteLaw, best_event, key_of, labelled, side_by_side
from accord.laws.hockey_stick import Loss, loss

__all__ = [
    "DPCheck",
    "FiniteKernel",
    "Witness",
    "check_dp",
]


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
    _check.store(kernel, inputs=labels, laws=rows, index=MappingProxyType(index))


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


_Inputs = tuple[Hashable, Hashable]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Two neighbours D, D' and the event B with the largest ``P[K(D) in B] - e^epsilon P[K(D') in B]``.

    Attributes
    ----------
    pair
        ``(D, D')``: the order matters.
    event
        The outcomes in B, in the order of the row of D, then that of D'.

    """

    pair: _Inputs
    event: tuple[Hashable, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPCheck:
    """What `check_dp` found.

    Attributes
    ----------
    holds
        Whether the kernel is (epsilon, delta)-private for the pairs that were checked. Certain either way.
    delta
        The smallest delta for which it is: exact if e^epsilon is rational, otherwise a bound, at most 1e-50 too large.
    witness
        The worst pair and event. If the check failed, they violate the inequality, for certain.

    """

    holds: bool
    delta: Fraction
    witness: Witness


def check_dp(
    kernel: FiniteKernel,
    *,
    neighbours: Neighbouring | Iterable[tuple[Any, Any]],
    delta: Number,
    epsilon: Number | None = None,
    exp_epsilon: Number | None = None,
) -> DPCheck:
    """Check a kernel on all neighbours, in both directions, over all events.

    Formal guarantees
    -----------------
    - ``holds`` is certain. Whole numbers are compared; e^epsilon stands between rational bounds, and while they do not
      decide, they are computed again with twice as many digits. This ends: for a rational epsilon other than 0 the
      number e^epsilon is transcendental, so the two sides differ.
    - ``delta`` and ``witness`` are the worst over ordered pairs; ties go to the earlier pair.
    - Not promised: anything about pairs that were not listed.

    Parameters
    ----------
    kernel
        Dataset to law of the output.
    neighbours
        Pairs of inputs, each checked both ways; or a `Neighbouring`, for inputs that are tuples of records: all pairs
        of inputs under this relation.
    delta
        From 0 to 1.
    epsilon
        From 0 to 1000.
    exp_epsilon
        In place of ``epsilon``: e^epsilon itself, at least 1, such as 3.

    Raises
    ------
    InvalidParameter
        If an argument is outside its range, there are no pairs, or a pair names an input without a row.

    Source
    ------
    theory 1, M9; docs/proofs/laws.md.

    Examples
    --------
    >>> from accord.laws import FiniteLaw
    >>> response = FiniteKernel({0: FiniteLaw({"no": 3, "yes": 1}), 1: FiniteLaw({"no": 1, "yes": 3})})
    >>> check_dp(response, neighbours=[(0, 1)], epsilon="1.1", delta=0).holds
    True
    >>> found = check_dp(response, neighbours=[(0, 1)], exp_epsilon=2, delta="0.1")
    >>> found.holds, found.delta, found.witness.pair, found.witness.event
    (False, Fraction(1, 4), (0, 1), ('no',))

    """
    if not isinstance(kernel, FiniteKernel):
        raise InvalidParameter("kernel must be a FiniteKernel.")
    bounds = loss(epsilon, exp_epsilon)
    slack = _check.exact("delta", delta)
    if not 0 <= slack <= 1:
        raise InvalidParameter("delta must be from 0 to 1.")
    ordered = _both_ways(_listed(kernel, neighbours))
    for narrow in bounds.narrowing():
        verdict = _decided(kernel, ordered, bounds=narrow, slack=slack)
        if verdict is not None:
            return verdict
    raise AssertionError  # pragma: no cover - narrowing never ends


def _both_ways(pairs: Sequence[_Inputs]) -> list[_Inputs]:
    return [way for one, other in pairs for way in ((one, other), (other, one))]


def _decided(kernel: FiniteKernel, ordered: Sequence[_Inputs], *, bounds: Loss, slack: Fraction) -> DPCheck | None:
    """Return the verdict, or None if it depends on digits of e^epsilon beyond the bounds."""
    found = [(_best(kernel, pair, ratio=bounds.lower), pair) for pair in ordered]
    largest = max(event.excess(bounds.lower) for event, _ in found)
    if largest <= slack:
        suspects = found
    else:
        suspects = [(event, pair) for event, pair in found if event.excess(bounds.upper) > slack]
        if not suspects:
            return None
    event, pair = max(suspects, key=lambda suspect: suspect[0].excess(bounds.lower))
    outcomes = side_by_side(kernel(pair[0]), kernel(pair[1])).outcomes
    witness = Witness(pair=pair, event=tuple(compress(outcomes, event.members)))
    return DPCheck(holds=largest <= slack, delta=largest, witness=witness)


def _best(kernel: FiniteKernel, pair: _Inputs, *, ratio: Fraction) -> Event:
    return best_event(side_by_side(kernel(pair[0]), kernel(pair[1])), ratio=ratio)


def _listed(kernel: FiniteKernel, neighbours: Neighbouring | Iterable[tuple[Any, Any]]) -> list[_Inputs]:
    """Return the unordered pairs to check, each an input of the kernel."""
    if isinstance(neighbours, Neighbouring):
        pairs = _related(kernel, neighbours)
    elif isinstance(neighbours, (str, bytes)) or not isinstance(neighbours, Iterable):
        raise InvalidParameter("neighbours must be a Neighbouring, or a list of pairs of inputs.")
    else:
        pairs = [_as_pair(kernel, pair) for pair in neighbours]
    if all(key_of(one) == key_of(other) for one, other in pairs):
        raise InvalidParameter("neighbours must have a pair of different inputs: a check of no pair says nothing.")
    return pairs


def _as_pair(kernel: FiniteKernel, pair: object) -> _Inputs:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InvalidParameter("neighbours must consist of pairs of inputs.")
    if any(key_of(given) not in kernel.index for given in pair):
        raise InvalidParameter("neighbours must be inputs of the kernel, which has no row for one of them.")
    return (pair[0], pair[1])


def _related(kernel: FiniteKernel, neighbouring: Neighbouring) -> list[_Inputs]:
    if not all(isinstance(given, tuple) for given in kernel.inputs):
        raise InvalidParameter("neighbours must be a list of pairs, unless all inputs are tuples of records.")
    related = _RELATIONS[neighbouring]
    keyed = zip(kernel.index, kernel.inputs, strict=True)
    return [(one, other) for (key, one), (other_key, other) in combinations(keyed, 2) if related(key, other_key)]


def _replaced(one: Any, other: Any) -> bool:  # noqa: ANN401 - keys of tuples of records
    """Return whether both have the same length, and are equal without one record each, wherever the two stand."""
    if len(one) != len(other):
        return False
    rest = {one[:cut] + one[cut + 1 :] for cut in range(len(one))}
    return any(other[:cut] + other[cut + 1 :] in rest for cut in range(len(other)))


def _replaced_in_place(one: Any, other: Any) -> bool:  # noqa: ANN401 - keys of tuples of records
    """Return whether both have the same length and differ at one position."""
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def _added(one: Any, other: Any) -> bool:  # noqa: ANN401 - keys of tuples of records
    """Return whether the longer, without one record, is the shorter."""
    less, more = sorted((one, other), key=len)
    return len(more) == len(less) + 1 and any(more[:cut] + more[cut + 1 :] == less for cut in range(len(more)))


_RELATIONS = {
    Neighbouring.REPLACE_ONE: _replaced,
    Neighbouring.REPLACE_ONE_IN_PLACE: _replaced_in_place,
    Neighbouring.ADD_OR_REMOVE_ONE: _added,
}
