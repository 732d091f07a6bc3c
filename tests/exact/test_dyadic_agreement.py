"""The dyadic coupling's agreement against its exact value: in rationals on a few atoms, down the whole tree, and for
normal laws by another road to their probabilities.

Frequencies lie within 5.5 standard errors (4e-8 each, under 20 of them), and a tenth more or less does not.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from accord.couplings import DyadicCoupling, SharedRandomness
from accord.distributions import Measure, Normal

LINE = 5.5
Floats = NDArray[np.float64]
Weights = dict[float, Fraction]

ATOMS = (-2.5, -0.0, 5e-324, 1.0, 1.0000000000000002, 1.75, 3e200)
FIRST = dict(zip(ATOMS, (Fraction(n, 64) for n in (8, 16, 4, 12, 10, 6, 8)), strict=True))
SECOND = dict(zip(ATOMS, (Fraction(n, 64) for n in (4, 20, 8, 6, 16, 9, 1)), strict=True))
THIRD = dict(zip(ATOMS, (Fraction(n, 64) for n in (0, 32, 0, 16, 16, 0, 0)), strict=True))


@dataclass
class OfAtoms:
    """A law of a few atoms whose weights are whole 64ths, so that floats hold every probability exactly."""

    weights: Weights
    dimension: int = 1
    measure: Measure = Measure.COUNTING

    def sample(self, size: int, generator: Any) -> Any:
        raise NotImplementedError

    def log_density(self, x: Any) -> Any:
        raise NotImplementedError

    def cdf(self, x: Any) -> Floats:
        places = np.asarray(x, dtype=np.float64)
        return np.asarray(sum(np.where(places >= atom, float(weight), 0.0) for atom, weight in self.weights.items()))

    def interval(self, low: Any, high: Any) -> Floats:
        return self.cdf(high) - self.cdf(low)


def word(value: float) -> str:
    """Return the 64 bits of a double's place in the order of all doubles, written out."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", abs(value)))
    return format((1 << 63) + (bits if value >= 0 else -bits), "064b")


def summand(first: Sequence[Fraction], second: Sequence[Fraction], child: int) -> Fraction:
    """Return the probability that two laws both take ``child`` in one race (S1); weights need not be normalised."""
    if first[child] == 0 or second[child] == 0:
        return Fraction(0)
    ratios = [max(p / first[child], q / second[child]) for p, q in zip(first, second, strict=True)]
    return 1 / Fraction(sum(ratios))


def exact_agreement(first: Weights, second: Weights, *, bits: int, depth: int = 0) -> Fraction:
    """Return the probability that two laws on atoms end at one double: a recursion over the nodes of the tree."""
    if depth == 64:
        return Fraction(1)
    width = min(bits, 64 - depth)
    children: dict[str, list[float]] = {}
    for atom in first:
        children.setdefault(word(atom)[depth : depth + width], []).append(atom)
    totals = [
        [sum((law[atom] for atom in atoms), Fraction(0)) for atoms in children.values()] for law in (first, second)
    ]
    result = Fraction(0)
    for place, atoms in enumerate(children.values()):
        if (taken := summand(totals[0], totals[1], place)) > 0:
            below = [{atom: law[atom] for atom in atoms} for law in (first, second)]
            result += taken * exact_agreement(below[0], below[1], bits=bits, depth=depth + width)
    return result


def apart(first: Any, second: Any, *, draws: int, key: int, bits: int) -> float:
    coupling = DyadicCoupling(node_bits=bits)
    keys = coupling.couple([first, second], records=1, draws=draws, shared=SharedRandomness(key)).keys
    return float((keys[:, 0] != keys[:, 1]).mean())


@pytest.mark.parametrize("bits", [1, 5, 8])
@pytest.mark.parametrize("other", [SECOND, THIRD])
def test_S1_atoms_agree_as_the_recursion_in_rationals_says(bits: int, other: Weights) -> None:
    draws = 12_000
    expected = float(1 - exact_agreement(FIRST, other, bits=bits))
    found = apart(OfAtoms(FIRST), OfAtoms(other), draws=draws, key=21, bits=bits)
    error = math.sqrt(expected * (1 - expected) / draws)
    assert abs(found - expected) < LINE * error, (found, expected)
    assert min(abs(found - 0.9 * expected), abs(found - 1.1 * expected)) > LINE * error


def test_L4_atoms_have_their_weights() -> None:
    draws = 20_000
    coupled = DyadicCoupling().couple([OfAtoms(FIRST)], records=1, draws=draws, shared=SharedRandomness(22))
    found = np.array([coupled.decode(draw, coupled.keys[draw, 0])[0, 0] for draw in range(draws)])
    for atom, weight in FIRST.items():
        share = float((found == atom).mean())
        p = float(weight)
        assert abs(share - p) < LINE * math.sqrt(p * (1 - p) / draws)
    share, p = float((found == 0.0).mean()), float(FIRST[0.0])
    assert min(abs(share - 0.9 * p), abs(share - 1.1 * p)) > LINE * math.sqrt(p * (1 - p) / draws)


def test_S1_the_recursion_is_never_worse_than_the_bound_of_the_sum_over_levels() -> None:
    """Wider nodes agree better here, and one node with all atoms is one race."""
    by_width = [exact_agreement(FIRST, SECOND, bits=bits) for bits in (1, 2, 4, 8, 16, 64)]
    whole = sum(
        (summand(list(FIRST.values()), list(SECOND.values()), place) for place in range(len(ATOMS))), Fraction(0)
    )
    distance = sum((abs(FIRST[atom] - SECOND[atom]) for atom in ATOMS), Fraction(0)) / 2
    assert by_width[-1] == whole
    assert whole >= (1 - distance) / (1 + distance)
    assert all(agreement <= 1 - distance for agreement in by_width)


def node_chances(words: NDArray[np.uint64], *, depth: int, mean: float, scale: float) -> Floats:
    """Return the probabilities of the 256 children of nodes under a normal law, by scipy and in real numbers."""
    children = (words[:, None] << np.uint64(8)) | np.arange(256, dtype=np.uint64)
    lowest = (children << np.uint64(56 - depth)).astype(np.uint64)

    def numbers(places: NDArray[np.uint64]) -> Floats:
        up = places >= np.uint64(1 << 63)
        bits = np.where(up, places - np.uint64(1 << 63), np.uint64(1 << 63) - places)
        bits = np.minimum(bits, np.uint64(0x7FF0_0000_0000_0000))
        return np.asarray(np.where(up, 1.0, -1.0) * bits.view(np.float64))

    low = numbers(lowest)
    high = numbers(lowest + np.uint64((1 << (56 - depth)) - 1))
    law: Any = norm(mean, scale)
    chances = np.where(low >= mean, law.sf(low) - law.sf(high), law.cdf(high) - law.cdf(low))
    return np.asarray(chances, dtype=np.float64)


def races(p: Floats, q: Floats) -> Floats:
    """Return the summands of S1 in each row of two lists of weights: sums on either side of each ratio p / q."""
    order = np.argsort(np.log(p) - np.log(q), axis=1)
    p, q = np.take_along_axis(p, order, axis=1), np.take_along_axis(q, order, axis=1)
    from_here = p[:, ::-1].cumsum(axis=1)[:, ::-1]
    before = q.cumsum(axis=1) - q
    found = np.empty_like(p)
    np.put_along_axis(found, order, 1 / (from_here / p + before / q), axis=1)
    return found


def normal_agreement(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the agreement down to nodes of 24 bits; inside them the laws differ too little to part (below 1e-3)."""
    reached, nodes, rare = np.ones(1), np.zeros(1, dtype=np.uint64), 0.0
    for depth in (0, 8, 16):
        p, q = (node_chances(nodes, depth=depth, mean=mean, scale=scale) for mean, scale in (first, second))
        p, q = (chances / chances.sum(axis=1, keepdims=True) + 1e-300 for chances in (p, q))
        reached = (reached[:, None] * races(p, q)).ravel()
        nodes = ((nodes[:, None] << np.uint64(8)) | np.arange(256, dtype=np.uint64)).ravel()
        kept = reached > 1e-6
        rare += float(reached[~kept].sum())
        reached, nodes = reached[kept], nodes[kept]
    return float(reached.sum()) + rare


@pytest.mark.parametrize(("first", "second"), [((0.0, 1.0), (0.7, 1.4)), ((40.0, 1.0), (40.7, 1.2))])
def test_S1_normal_laws_agree_as_the_recursion_says(first: tuple[float, float], second: tuple[float, float]) -> None:
    draws = 9_000
    expected = 1 - normal_agreement(first, second)
    found = apart(Normal(first[0], first[1] ** 2), Normal(second[0], second[1] ** 2), draws=draws, key=23, bits=8)
    error = math.sqrt(expected * (1 - expected) / draws) + 3e-4
    assert abs(found - expected) < LINE * error, (found, expected)
    assert min(abs(found - 0.9 * expected), abs(found - 1.1 * expected)) > LINE * error
