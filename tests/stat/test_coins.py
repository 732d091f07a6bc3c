"""Exact coins: ties and rejections with a scripted source, laws with the real one.

Every statistical test accepts the truth but for a chance below 1e-6, and its size is such that a law 10 % off would be
accepted with a chance below 1e-6 (both computed here, exactly, from the binomial law).
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from scipy import stats

from accord.errors import InvalidParameter
from accord.randomness import PrivateRandomness, bernoulli, geometric, two_sided_geometric, uniform_below

RATE = 1e-6
BLOCK = 2**64


class Scripted(PrivateRandomness):
    """Gives the numbers of a list, and complains when asked for other sizes or for more."""

    __slots__ = ("_script",)

    def __init__(self, *script: tuple[int, int]) -> None:
        super().__init__()
        self._script = list(script)

    def bits(self, count: int) -> int:
        size, value = self._script.pop(0)
        assert size == count
        return value

    @property
    def used_up(self) -> bool:
        return not self._script


def check_frequency(hits: int, tries: int, chance: float) -> None:
    """Accept the truth, and show that 0.9 and 1.1 times the chance would not have been accepted."""
    low, high = stats.binom.ppf(RATE / 4, tries, chance) - 1, stats.binom.ppf(1 - RATE / 4, tries, chance) + 1
    for wrong in (0.9 * chance, 1.1 * chance):
        inside = stats.binom.cdf(high, tries, wrong) - stats.binom.cdf(low - 1, tries, wrong)
        assert inside < RATE, "the test is too small to see a law 10 % off"
    assert low <= hits <= high


# --- scripted ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "draws", "answer"),
    [
        (Fraction(1, 2), [BLOCK // 2 - 1], True),
        (Fraction(1, 2), [BLOCK // 2], False),  # U = 1/2 exactly so far, and no digits left: not below
        (Fraction(1, 3), [BLOCK // 3 - 1], True),
        (Fraction(1, 3), [BLOCK // 3 + 1], False),
        (Fraction(1, 3), [BLOCK // 3, BLOCK // 3 - 1], True),
        (Fraction(1, 3), [BLOCK // 3, BLOCK // 3, BLOCK // 3 + 1], False),
        (Fraction(1, BLOCK**2), [0, 0], True),
        (Fraction(1, BLOCK**2), [0, 1], False),
        (Fraction(1, BLOCK), [0], True),
        (Fraction(1), [BLOCK - 1], True),
        (Fraction(0), [0], False),
    ],
)
def test_bernoulli_compares_exactly_and_reads_on_after_a_tie(
    probability: Fraction, draws: list[int], *, answer: bool
) -> None:
    source = Scripted(*((64, draw) for draw in draws))
    assert bernoulli(probability, randomness=source) is answer
    assert source.used_up


def test_bernoulli_chance_is_exact_for_short_uniforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks of 2 bits, all uniforms of three blocks are enumerated: p is met to less than a cell."""
    from accord.core import secret

    monkeypatch.setattr(secret, "_BLOCK", 2)
    for probability in (Fraction(k, 7) for k in range(8)):
        yes = 0
        for draw in range(64):
            source = Scripted((2, draw >> 4), (2, draw >> 2 & 3), (2, draw & 3), (2, 3), (2, 3), (2, 3))
            yes += bernoulli(probability, randomness=source)
        assert abs(Fraction(yes, 64) - probability) < Fraction(1, 64)


def test_uniform_below_rejects_and_never_folds() -> None:
    source = Scripted((3, 7), (3, 5), (3, 4))
    assert uniform_below(5, randomness=source) == 4
    assert source.used_up
    assert uniform_below(1, randomness=Scripted((0, 0))) == 0
    assert uniform_below(2**80, randomness=Scripted((80, 2**80 - 1))) == 2**80 - 1


def test_two_sided_geometric_rejects_minus_zero() -> None:
    half, high, low = Fraction(1, 2), (64, BLOCK - 1), (64, 0)
    source = Scripted(high, (1, 1), low, high, (1, 1))  # -0: again; then -1
    assert two_sided_geometric(half, randomness=source) == -1
    assert source.used_up
    assert two_sided_geometric(half, randomness=Scripted(high, (1, 0))) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda source: bernoulli(Fraction(-1, 2), randomness=source),
        lambda source: bernoulli(Fraction(3, 2), randomness=source),
        lambda source: uniform_below(0, randomness=source),
        lambda source: geometric(Fraction(1), randomness=source),
        lambda source: geometric(Fraction(-1, 2), randomness=source),
        lambda source: two_sided_geometric(Fraction(1), randomness=source),
    ],
)
def test_refusals_read_no_bits(call: Callable[[PrivateRandomness], object]) -> None:
    with pytest.raises(InvalidParameter):
        call(Scripted())


# --- with the real source ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)])
def test_bernoulli_law(probability: Fraction) -> None:
    source, tries = PrivateRandomness(), 40_000
    hits = sum(bernoulli(probability, randomness=source) for _ in range(tries))
    check_frequency(hits, tries, float(probability))


def test_uniform_below_law() -> None:
    source, tries, bound = PrivateRandomness(), 90_000, 5
    counts = Counter(uniform_below(bound, randomness=source) for _ in range(tries))
    assert sorted(counts) == list(range(bound))
    for count in counts.values():
        check_frequency(count, tries, 1 / bound)


def test_geometric_law() -> None:
    source, tries, ratio = PrivateRandomness(), 90_000, Fraction(1, 2)
    counts = Counter(geometric(ratio, randomness=source) for _ in range(tries))
    for z in range(3):
        check_frequency(counts[z], tries, float((1 - ratio) * ratio**z))


def test_two_sided_geometric_law() -> None:
    source, tries, ratio = PrivateRandomness(), 90_000, Fraction(1, 2)
    counts = Counter(two_sided_geometric(ratio, randomness=source) for _ in range(tries))
    for z in (-1, 0, 1):
        check_frequency(counts[z], tries, float((1 - ratio) / (1 + ratio) * ratio ** abs(z)))
    at_least_one = sum(count for z, count in counts.items() if z >= 1)
    check_frequency(at_least_one, tries, float(ratio / (1 + ratio)))


def test_bits_are_balanced() -> None:
    source, tries = PrivateRandomness(), 40_000
    for place in (0, 1, 63, 127):
        hits = sum(source.bits(128) >> place & 1 for _ in range(tries))
        check_frequency(hits, tries, 0.5)


def test_the_frequency_check_refuses_a_law_ten_percent_off() -> None:
    for wrong in (0.45, 0.55):
        with pytest.raises(AssertionError):
            check_frequency(round(40_000 * wrong), 40_000, 0.5)
    with pytest.raises(AssertionError, match="too small"):
        check_frequency(50, 100, 0.5)
