"""The tables behind the noise: every cell has its exact chance, ties included. No luck, no floats."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from accord.errors import AccordError
from accord.noise import samplers as gaussian
from accord.noise import samplers as laplace
from accord.noise.cell_table import CellTable, cut_floors, exp_bounds, is_below_exp
from accord.randomness import PrivateRandomness, discrete_gaussian, discrete_laplace

SCALES = [Fraction(1, 3), Fraction(1), Fraction(20), Fraction(1000), Fraction(2**41, 3)]
Pair = tuple[Fraction, Fraction]


class Script(PrivateRandomness):
    """Hand out the given 64-bit words, then refuse."""

    def __init__(self, words: Iterable[int]) -> None:
        super().__init__()
        self.left = [byte for word in words for byte in word.to_bytes(8, "little")]

    def bytes(self, count: int) -> bytes:
        assert count <= len(self.left), "read more than expected"
        taken, self.left = self.left[:count], self.left[count:]
        return bytes(taken)


class Stuck(PrivateRandomness):
    """Hand out one byte, or one pair of bytes, for ever."""

    def __init__(self, pattern: bytes) -> None:
        super().__init__()
        self.pattern = pattern

    def bytes(self, count: int) -> bytes:
        return (self.pattern * count)[:count]


def exp_minus(x: Fraction) -> Pair:
    """Enclose exp(-x) by its alternating series and repeated squaring: a second route to `exp_bounds`."""
    halvings = max(0, int(2 * x).bit_length())
    small = x / 2**halvings
    term, partial = Fraction(1), [Fraction(1)]
    for n in range(1, 90):
        term *= -small / n
        partial.append(partial[-1] + term)
    low, high = sorted(partial[-2:])
    for _ in range(halvings + 1):
        low, high = Fraction(int(low * 2**500), 2**500), Fraction(-int(-high * 2**500 // 1), 2**500)
        if _ < halvings:
            low, high = low**2, high**2
    return low, high


def assert_cut(found: int, numerator: Pair, denominator: Pair, bits: int) -> None:
    low, high = numerator[0] / denominator[1], numerator[1] / denominator[0]
    assert int(low * 2**bits) == int(high * 2**bits) == found


def plus(left: Pair, right: Pair) -> Pair:
    return left[0] + right[0], left[1] + right[1]


def one_minus(x: Pair) -> Pair:
    return 1 - x[1], 1 - x[0]


def times(left: Pair, right: Pair) -> Pair:
    return left[0] * right[0], left[1] * right[1]


# --- each cut is what the closed form says ----------------------------------------------------------------------------


@pytest.mark.parametrize("x", ["0", "1/1000000000000", "1/3", "1", "44.25", "300"])
def test_exp_bounds_enclose_the_series(x: str) -> None:
    value = Fraction(x)
    low, high = exp_bounds(value, 256)
    other_low, other_high = exp_minus(value)
    assert low <= other_high * 2**256
    assert other_low * 2**256 <= high
    assert high - low <= 2


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("scale", SCALES)
def test_digits_are_cut_where_the_closed_form_says(scale: Fraction, few: bool) -> None:  # noqa: FBT001
    digits, _ = laplace._tables(scale, few)
    unit = 1
    for digit in reversed(digits):
        size = 1 << digit.width
        whole = one_minus(exp_minus(unit * size / scale))
        for j in {1, 2, size // 2, size - 1} | set(range(1, size, max(1, size // 12))):
            assert_cut(int(digit.table.cuts[j - 1]), one_minus(exp_minus(j * unit / scale)), whole, 64)
        unit *= size


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("scale", SCALES)
def test_sign_and_top_are_cut_where_the_closed_form_says(scale: Fraction, few: bool) -> None:  # noqa: FBT001
    digits, top = laplace._tables(scale, few)
    unit = 1 << sum(digit.width for digit in digits)
    q = exp_minus(1 / scale)
    whole, most, cuts = plus((Fraction(1), Fraction(1)), q), top.most, top.table.cuts
    assert len(cuts) == 2 * most + 1
    for j in {1, 2, most // 2, most} & set(range(1, most + 1)):
        power = exp_minus(j * unit / scale)
        assert_cut(int(cuts[j - 1]), times(q, one_minus(power)), whole, 64)
        assert_cut(int(cuts[2 * most + 1 - j]), plus(q, power), whole, 64)
    assert_cut(int(cuts[most]), q, whole, 64)


# --- the pieces multiply to the law -----------------------------------------------------------------------------------


def cell_chances(table: CellTable, bits: int = 256) -> list[Fraction]:
    """Each cell's chance up to 2^-bits, from the certified cuts."""
    ends = [0, *cut_floors(table.cells, bits), 1 << bits]
    return [Fraction(end - start, 1 << bits) for start, end in pairwise(ends)]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(40)])
def test_every_integer_has_its_exact_chance(scale: Fraction) -> None:
    digits, top = laplace._tables(scale, few=True)
    tops = cell_chances(top.table)
    low: list[Fraction] = [Fraction(1)]
    for digit in reversed(digits):
        low = [chance * other for chance in cell_chances(digit.table) for other in low]
    q = exp_minus(1 / scale)
    for z in range(-200, 200):
        size = z if z >= 0 else ~z
        high, rest = divmod(size, len(low))
        if high >= top.most:
            continue
        found = tops[high if z < 0 else 2 * top.most + 1 - high] * low[rest]
        lower, upper = ((1 - a) / (1 + a) * power for a, power in zip(q[::-1], exp_minus(abs(z) / scale), strict=True))
        assert lower - Fraction(1, 2**240) <= found <= upper + Fraction(1, 2**240)


def test_the_rest_goes_on_where_the_table_ends() -> None:
    scale = Fraction(1)
    _, top = laplace._tables(scale, few=True)
    middle = [int(cut) + 1 for cut in top.table.cuts]
    # A cell is named by the first word above its lower cut; "rest" stands at most (negative) and most + 1.
    first = [middle[top.most - 1], middle[top.most]]
    again = [middle[top.most], middle[2]]  # the first draws once more from the rest, then (negative, 3) counts 3
    last = [middle[2 * top.most]]  # (other, 0)
    script = Script([*first, *again, *last])
    found = discrete_laplace(scale, size=2, randomness=script)
    assert found.tolist() == [~(top.most + top.most + 0), top.most + 3]
    assert not script.left


@pytest.mark.parametrize("variance", [Fraction(1, 5), Fraction(9, 4), Fraction(50_000)])
def test_every_gaussian_proposal_has_its_exact_chance(variance: Fraction) -> None:
    sampler = gaussian._sampler(variance, few=True)
    chances = cell_chances(sampler.table)
    scale_of_law = chances[-1] / sampler.unit / 2  # the chance of the proposal +0
    coarse = sampler.coarse
    assert coarse * sampler.unit**2 == variance
    for z in range(0, 7 * (int(variance**0.5) + 1), max(1, int(variance**0.5) // 9)):
        a, r = divmod(z, sampler.unit)
        kept = exp_minus((2 * sampler.unit * a * r + r * r) / (2 * variance))
        if a <= sampler.most:
            before = chances[a - 1 if a else -1]
            found = tuple(before / sampler.unit / 2 * x for x in kept)
        else:  # the rest: a geometric excess, thinned
            excess, rate = a - sampler.most - 1, (sampler.most + 1) / coarse
            geometric = times(one_minus(exp_minus(rate)), exp_minus(rate * excess))
            thinned = times(geometric, times(exp_minus(Fraction(excess**2) / (2 * coarse)), kept))
            found = tuple(chances[sampler.most] / sampler.unit / 2 * x for x in thinned)
        truth = exp_minus(Fraction(z * z) / (2 * variance))
        assert found[0] <= scale_of_law * truth[1] + Fraction(1, 2**240)
        assert scale_of_law * truth[0] <= found[1] + Fraction(1, 2**240)


def test_gaussian_rest_goes_on_where_the_table_ends() -> None:
    sampler = gaussian._sampler(Fraction(1), few=True)
    rest = int(sampler.table.cuts[sampler.most - 1]) + 1
    # In the rest; excess: (other, 0) -> 0; its coin is sure; the sign: not negative.
    script = Script([rest, 2**64 - 1, 12345, 2**63])
    assert discrete_gaussian(Fraction(1), size=1, randomness=script).tolist() == [sampler.most + 1]


def test_gaussian_rest_is_thinned_by_its_own_coin() -> None:
    """Beyond the table by 1 at variance 1: kept with chance exp(-1/2) = 0.607 and not, say, exp(-1) = 0.368."""
    sampler = gaussian._sampler(Fraction(1), few=True)
    rest = int(sampler.table.cuts[sampler.most - 1]) + 1
    excess = laplace._tables(Fraction(1, sampler.most + 1), few=True)[1]
    beyond_by_one = int(excess.table.cuts[2 * excess.most - 1]) + 1  # the cell (other, 1)
    zero = 2**64 - 1
    kept = Script([rest, beyond_by_one, int(0.60 * 2**64), zero])
    assert discrete_gaussian(Fraction(1), size=1, randomness=kept).tolist() == [sampler.most + 2]
    dropped = Script([rest, beyond_by_one, int(0.61 * 2**64), zero, zero, zero])
    assert discrete_gaussian(Fraction(1), size=1, randomness=dropped).tolist() == [0]


def test_gaussian_coins_are_the_exact_comparison() -> None:
    """Also beside exp(-x) of the entry at hand, whatever the largest entry of the batch lets pass at once."""
    sampler = gaussian._sampler(Fraction(2**40), few=True)
    high = np.array([0, 1, 5, sampler.most], dtype=np.int64)
    for r in (0, 1, sampler.unit // 2, sampler.unit - 1):
        low = np.full(len(high), r, dtype=np.int64)
        cuts = []
        for a in high.tolist():
            x = Fraction((2 * sampler.unit * a + r) * r) / (2 * sampler.variance)
            cuts.append(exp_bounds(x, 128)[0] >> 64)
        for side, kept in ((-1, True), (1, False)):
            words = [min(cut + side, 2**64 - 1) for cut in cuts]
            found = sampler._coins(high, low, Script(words))
            assert found.tolist() == [kept or r == 0] * len(high)


# --- ties -------------------------------------------------------------------------------------------------------------

TABLES = [
    laplace._tables(Fraction(1), few=True)[1].table,
    laplace._tables(Fraction(1000), few=False)[1].table,
    laplace._tables(Fraction(2**41), few=False)[0][1].table,
    gaussian._sampler(Fraction(400), few=False).table,
]


@pytest.mark.parametrize("table", TABLES)
def test_a_tie_is_decided_by_further_bits(table: CellTable) -> None:
    deep, deeper = cut_floors(table.cells, 128), cut_floors(table.cells, 192)
    for i in {0, 1, len(deep) // 2, len(deep) - 1}:
        first, second = int(table.cuts[i]), deep[i] & (2**64 - 1)
        assert deep[i] >> 64 == first
        third = deeper[i] & (2**64 - 1)
        same = int(np.sum(table.cuts[:i] == table.cuts[i]))
        assert same == 0
        assert table.draw(1, randomness=Script([first, second - 1])).tolist() == [i]
        assert table.draw(1, randomness=Script([first, second + 1])).tolist() == [i + 1]
        assert table.draw(1, randomness=Script([first, second, third - 1])).tolist() == [i]
        assert table.draw(1, randomness=Script([first, second, third + 1])).tolist() == [i + 1]


@pytest.mark.parametrize("table", TABLES)
def test_the_guide_finds_the_cell_that_plain_search_finds(table: CellTable) -> None:
    cuts = table.cuts.tolist()
    beside = {cut + side for cut in cuts for side in (-1, 1) if 0 <= cut + side < 2**64} - set(cuts)
    words = sorted(beside | {0, 2**64 - 1}) + PrivateRandomness().words(2000).tolist()
    found = table.draw(len(words), randomness=Script(words))
    assert found.tolist() == np.searchsorted(table.cuts, np.array(words, dtype=np.uint64)).tolist()


@pytest.mark.parametrize("bits", [64, 128, 192])
def test_cuts_at_more_bits_continue_those_at_fewer(bits: int) -> None:
    for table in TABLES:
        assert [cut >> 64 for cut in cut_floors(table.cells, bits + 64)] == list(cut_floors(table.cells, bits))


def test_a_coin_is_the_exact_comparison() -> None:
    x = Fraction(1, 3)
    digits = exp_bounds(x, 400)[0] >> 400 - 192
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)
    assert is_below_exp(first - 1, x, randomness=Script([]))
    assert not is_below_exp(first + 1, x, randomness=Script([]))
    assert is_below_exp(first, x, randomness=Script([second - 1]))
    assert not is_below_exp(first, x, randomness=Script([second + 1]))
    assert is_below_exp(first, x, randomness=Script([second, third - 1]))
    assert is_below_exp(2**64 - 1, Fraction(0), randomness=Script([]))
    assert not is_below_exp(1, Fraction(10**9), randomness=Script([]))


# --- E03: sources that are stuck --------------------------------------------------------------------------------------

PATTERNS = [b"\x00", b"\xff", b"\xaa", b"\x00\xff", b"\x01"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 50), Fraction(2**90)])
def test_E03_laplace_from_a_stuck_source_is_an_integer(scale: Fraction, pattern: bytes) -> None:
    for size in (1, 3000):
        found = discrete_laplace(scale, size=size, randomness=Stuck(pattern))
        assert found.shape == (size,)
        assert all(int(value) == value for value in found[:3])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(1), Fraction(400)])
def test_E03_gaussian_from_a_stuck_source_is_an_integer(variance: Fraction, pattern: bytes) -> None:
    assert discrete_gaussian(variance, size=2, randomness=Stuck(pattern)).dtype == np.int64


def test_E03_a_source_that_never_decides_is_refused() -> None:
    with pytest.raises(AccordError, match="repeats itself"):
        discrete_laplace(Fraction(1, 10**9), size=1, randomness=Stuck(b"\x00"))
    with pytest.raises(AccordError, match="repeats itself"):
        is_below_exp(0, Fraction(10**9), randomness=Stuck(b"\x00"))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1)])
def test_a_scale_that_is_not_positive_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="scale must be above 0"):
        discrete_laplace(scale, size=1, randomness=PrivateRandomness())
    with pytest.raises(ValueError, match="variance must be above 0"):
        discrete_gaussian(scale, size=1, randomness=PrivateRandomness())
