"""The checker of certificates: every inequality from its numbers, by code of its own.

Nothing here is imported from the search. Binomial tails are sums of their terms, the exclusive curve is checked by the
definition of privacy, and the Clopper-Pearson bound is a binomial tail. All in double precision: what is close to its
limit is trusted to about nine digits. (The mechanism asserts the privacy of its curve itself, in whole numbers.)
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord.theory.planning.pivots import PivotDesign, simulate

__all__ = [
    "THEOREMS",
    "Proof",
    "check_numbers",
    "far_cells",
    "resimulate",
    "shifts_that_do",
    "too_many",
]


_Floats = NDArray[np.float64]
_STEP = 0.04
_BINS, _LOSSES = 4096, 3.0
_HAIR = 1e-9
_ADDED = 0.25
_ROUNDING = 1e-12
_LEAST_HALF = 25


@final
class Proof(StrEnum):
    """Which proof makes sizes enough; its value is what certificates and commands write.

    ``L9``, ``L10`` and ``L11`` are the theorems. The certified proofs are of sizes that were found by search: one
    draw for any class, rounded frequencies and rounded roots of counts for laws on labels, and a simulation of the
    pivotal error of normal laws.
    """

    BLACK_BOX = "L9"
    BOOSTED = "L10"
    AGNOSTIC = "L11"
    ONE_DRAW = "A"
    FREQUENCIES = "B"
    PIVOTAL = "C"
    ROOTS = "D"

    @property
    def words(self) -> str:
        """What people read."""
        return _WORDS[self]


THEOREMS = frozenset({Proof.BLACK_BOX, Proof.BOOSTED, Proof.AGNOSTIC})
"""The proofs whose sizes are the paper's, to the letter."""
_WORDS = {
    Proof.BLACK_BOX: "theorem (L9)",
    Proof.BOOSTED: "theorem, boosted (L10)",
    Proof.AGNOSTIC: "theorem, agnostic (L11)",
    Proof.ONE_DRAW: "certified A: one draw",
    Proof.FREQUENCIES: "certified B: frequencies",
    Proof.PIVOTAL: "certified C: pivotal",
    Proof.ROOTS: "certified D: roots",
}


def shifts_that_do(numbers: Mapping[str, Any]) -> float:
    """Return a lower bound of P[the shift of one draw lets a block vote for the truth's cell with chance >= q]."""
    missed, _ = _one_label(*(float(numbers[name]) for name in ("width", "mean_size", "floor")))
    if not missed.max() < 1:
        raise ValueError
    places = [math.ceil(-math.log1p(-miss) / _LOSSES * _BINS) for miss in missed]
    one = np.bincount([place for place in places if place < _BINS], minlength=_BINS) / len(places)
    total = np.zeros(_BINS)
    total[0] = 1.0
    left, power = int(numbers["labels"]), one
    while left:
        if left % 2:
            total = np.convolve(total, power)[:_BINS]
        power, left = np.convolve(power, power)[:_BINS], left // 2
    last = math.floor(-math.log(float(numbers["agreement"])) / _LOSSES * _BINS)
    return float(total[: last + 1].sum())


def far_cells(numbers: Mapping[str, Any], alpha: float, epsilon: float) -> tuple[float, float]:
    """Bound the weight of cells further than alpha, a cell with n0 votes being 1: those of chance above q0; others."""
    _, hit = _one_label(*(float(numbers[name]) for name in ("width", "mean_size", "floor")))
    width, tilt, power = (float(numbers[name]) for name in ("width", "tilt", "power"))
    small, mean = float(numbers["small"]), float(numbers["mean_size"])
    labels, blocks = int(numbers["labels"]), int(numbers["blocks"])
    beyond = 1.5 * width - 0.5
    fall = 2 * power * beyond - 4 * tilt * width
    if not (0 < small < 1 and 0 < tilt < power and power >= 1 and beyond > 0 and fall > 0):
        raise ValueError
    near = sum(
        math.exp(power * math.log(chance) + tilt * (max(abs(place), abs(place + 1)) * _STEP) ** 2)
        for place, chance in zip(range(-len(hit) // 2, len(hit) // 2), hit, strict=True)
    )
    far = 2 * math.exp(4 * tilt * width**2 - power * beyond**2) / fall
    one = (near * _STEP + far) / width
    gain = math.expm1(epsilon / 2)
    top = max(blocks * math.log1p(small * gain) - power * math.log(small), blocks * math.log1p(gain))
    square = mean**2 / (mean + labels * float(numbers["floor"]))
    scale = math.log(int(numbers["draws"])) - epsilon / 2 * int(numbers["good_votes"])
    likely = top + labels * math.log(one) - tilt * alpha**2 * square + scale
    rest = math.log(math.expm1(blocks * math.log1p(small * gain)) / small + blocks) + scale
    return _exponential(likely), _exponential(rest)


def too_many(numbers: Mapping[str, Any]) -> float:
    """Return P[Poisson(b') > b], by its terms."""
    mean, size = float(numbers["mean_size"]), int(numbers["block_size"])
    counts = np.arange(size + 1, dtype=np.float64)
    return 1.0 - float(np.exp(counts * math.log(mean) - mean - gammaln(counts + 1)).sum())


def _exponential(value: float) -> float:
    return math.exp(min(value, 1.0))


@lru_cache(maxsize=32)
def _one_label(width: float, mean: float, floor: float) -> tuple[_Floats, _Floats]:
    """Bound, over all means: the chance to miss the truth's cell, and to hit any cell, by the offset of its centre."""
    half = round(width / _STEP / 2)
    if half < _LEAST_HALF or abs(half * 2 * _STEP - width) > _HAIR or not 0 < floor <= mean:
        raise ValueError
    inside = np.arange(-half, half) * _STEP
    wide = np.arange(-4 * half, 4 * half) * _STEP
    missed, missing = np.zeros(2 * half), np.ones(8 * half)
    row = math.floor(math.sqrt(floor) / _STEP)
    lower = _Count(row * _STEP, reach=3 * width)
    while row * _STEP < math.sqrt(mean + floor):
        upper = _Count((row + 1) * _STEP, reach=3 * width)
        left, right = row * _STEP, (row + 1) * _STEP
        miss = upper.above(left + inside + width / 2 - _HAIR) + lower.below(right + inside + _STEP - width / 2 + _HAIR)
        other = lower.above(right + wide + _STEP + width / 2 + _HAIR) + upper.below(left + wide - width / 2 - _HAIR)
        missed, missing = np.maximum(missed, miss), np.minimum(missing, other)
        row, lower = row + 1, upper
    return np.minimum(missed, 1.0), np.minimum(1.0, 1 - missing + _ROUNDING)


class _Count:
    """The law of the root of a Poisson count plus 1/4, for counts whose roots are near that of the mean."""

    def __init__(self, root: float, *, reach: float) -> None:
        self._start = math.floor(max(0.0, root - reach) ** 2)
        counts = np.arange(self._start, math.ceil((root + reach + 1) ** 2) + 2, dtype=np.float64)
        terms = np.exp(2 * counts * math.log(root) - root**2 - gammaln(counts + 1)) if root > 0 else counts == 0
        self._sums = np.concatenate([[0.0], np.cumsum(terms)])

    def below(self, value: NDArray[Any]) -> _Floats:
        """Return P[V <= value]; counts below the reach, chance under 1e-12, are left out."""
        counts = np.floor(np.where(value > 0, value * value - _ADDED, -1.0)).astype(np.int64)
        return np.asarray(self._sums[np.clip(counts - self._start + 1, 0, len(self._sums) - 1)], dtype=np.float64)

    def above(self, value: NDArray[Any]) -> _Floats:
        """Return P[V > value], likewise."""
        return np.asarray(np.maximum(0.0, 1.0 - self.below(value)), dtype=np.float64)


Line = tuple[str, float, float]
_GRID_ATOMS = 2000
_GRID_SINGLE = 1000
_ABOVE = 1 + 1e-12
_CHANCES = 1 << 128
_LARGEST = 1 << 27


def check_numbers(method: str, numbers: Mapping[str, Any]) -> tuple[Line, ...]:
    """Return the inequalities of a proof, (text, left, right), for these numbers.

    Raises
    ------
    KeyError
        If the method is no `Proof`, or a number is missing.

    """
    checks: dict[str, Callable[[Mapping[str, Any]], list[Line]]] = {
        Proof.BLACK_BOX: _theorem_black_box,
        Proof.BOOSTED: _theorem_boosted,
        Proof.AGNOSTIC: _theorem_agnostic,
        Proof.ONE_DRAW: _single,
        Proof.FREQUENCIES: _rounded,
        Proof.PIVOTAL: _pivotal,
        Proof.ROOTS: _roots,
    }
    return tuple(checks[method](numbers))


def resimulate(numbers: Mapping[str, Any]) -> bool:
    """Return whether the stored seed gives the stored number of successes again."""
    design = PivotDesign(
        dimension=int(numbers["dimension"]),
        alpha=Fraction(numbers["alpha_simulated"]),
        epsilon=Fraction(numbers["epsilon_simulated"]),
        delta=Fraction(numbers["delta_simulated"]),
        blocks=int(numbers["blocks"]),
        block_size=int(numbers["block_size"]),
        records=int(numbers["records"]),
        draws=int(numbers["draws"]),
        step=float(numbers["step"]),
    )
    return simulate(design, runs=int(numbers["runs"]), seed=int(numbers["seed"])) == int(numbers["successes"])


def _request(numbers: Mapping[str, Any]) -> tuple[float, float, Fraction, Fraction]:
    alpha, beta, epsilon, delta = (Fraction(numbers[name]) for name in ("alpha", "beta", "epsilon", "delta"))
    if not (0 < alpha < 1 and 0 < beta < 1 and epsilon > 0 and 0 < delta < 1):
        raise ValueError
    return float(alpha), float(beta), epsilon, delta


def _equal(text: str, left: float, right: float) -> list[Line]:
    return [(f"{text}, at most", left, right), (f"{text}, at least", right, left)]


def _sizes(numbers: Mapping[str, Any]) -> list[Line]:
    parts = int(numbers.get("parts", 1))
    total = int(numbers["blocks"]) * int(numbers["block_size"]) * parts
    if min(int(numbers[name]) for name in ("blocks", "block_size", "records", "draws")) < 1:
        raise ValueError
    return [
        *[(f"0 <= {name}", 0.0, float(Fraction(numbers[name]))) for name in ("alpha", "beta", "epsilon", "delta")],
        ("1 <= l", 1, int(numbers["records"])),
        ("1 <= R", 1, int(numbers["draws"])),
        *_equal("n = k b T", total, int(numbers["records_needed"])),
    ]


# --- the theorems -----------------------------------------------------------------------------------------------------


def _asked(numbers: Mapping[str, Any], alpha: float, beta: float) -> int:
    """Return what m answered at (alpha, beta)."""
    for first, second, answer in numbers["calls"]:
        if math.isclose(first, alpha, rel_tol=1e-12) and math.isclose(second, beta, rel_tol=1e-12):
            return int(answer)
    raise KeyError


def _slack(text: str, numbers: Mapping[str, Any], right: float) -> list[Line]:
    """Compare the delta of the selection, both ways: less of it would need more blocks."""
    left = float(Fraction(numbers["delta_used"]))
    return [(f"{text}, at most", left, right * _ABOVE), (f"{text}, at least", right, left * _ABOVE)]


def _theorem_black_box(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    return _black_box(numbers, alpha, beta, float(epsilon), float(delta)) + _sizes(numbers)


def _black_box(numbers: Mapping[str, Any], alpha: float, beta: float, epsilon: float, delta: float) -> list[Line]:
    records, blocks = int(numbers["records"]), int(numbers["blocks"])
    return [
        *_equal("l = m(alpha, beta / 4)", _asked(numbers, alpha, beta / 4), records),
        *_equal("b = m(beta / (64 l), 1 / 16)", _asked(numbers, beta / 64 / records, 0.0625), numbers["block_size"]),
        (
            "8 log(4 / (beta delta)) / epsilon <= k",
            8 * (math.log(4) - math.log(beta) - math.log(delta)) / epsilon,
            blocks,
        ),
        ("128 log(4 / beta) <= k", 128 * (math.log(4) - math.log(beta)), blocks),
        *_slack("delta0 = min(delta, beta / 4)", numbers, min(delta, beta / 4)),
        ("epsilon <= 1", epsilon, 1),
    ]


def _theorem_boosted(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    lines = _black_box(numbers, alpha / 3, 0.125, float(epsilon), min(float(delta), 1 / 32))
    return [*lines, ("128 log(1 / beta) <= T", -128 * math.log(beta), int(numbers["parts"])), *_sizes(numbers)]


def _theorem_agnostic(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    share = alpha / (float(Fraction(numbers["agnostic_factor"])) + 3)
    slack, blocks = float(Fraction(numbers["delta_used"])), int(numbers["blocks"])
    return [
        *_equal("T = m(2 a, beta)", _asked(numbers, 2 * share, beta), numbers["parts"]),
        *_equal("b = m(a / 16, 1 / 16)", _asked(numbers, share / 16, 0.0625), numbers["block_size"]),
        ("16 log(1 / delta0) / epsilon <= k", -16 * math.log(slack) / float(epsilon), blocks),
        ("128 log(4 / a) <= k", 128 * (math.log(4) - math.log(share)), blocks),
        *_slack("delta0 = min(delta, a / 4)", numbers, min(float(delta), share / 4)),
        ("epsilon <= 1", float(epsilon), 1),
        *_sizes(numbers),
    ]


# --- A: one draw ------------------------------------------------------------------------------------------------------


def _single(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    votes, variation = int(numbers["blocks"]), float(numbers["variation"])
    curve = [int(chance) for chance in numbers["curve"]]
    if len(curve) != votes + 1 or not 0 <= variation <= 1:
        raise ValueError
    height, slope = float(numbers["height"]), float(numbers["slope"])
    rho = 2 * variation / (1 + variation)
    failure = float(numbers["relearning"]) + height + slope * rho
    return [
        (
            "the curve of exclusive selection is (epsilon, delta)-DP",
            _curve_delta(curve, epsilon),
            float(delta) * _ABOVE,
        ),
        ("no answer at u <= height + slope u, for every u", _above_line(curve, height, slope), 0.0),
        ("0 <= slope", 0.0, slope),
        *_equal("l = m(alpha, relearning)", _asked(numbers, alpha, float(numbers["relearning"])), numbers["records"]),
        ("0 <= failure of learning again", 0.0, float(numbers["relearning"])),
        ("failure <= beta", failure, beta),
        *_sizes(numbers),
    ]


def _curve_delta(curve: list[int], epsilon: Fraction) -> float:
    """Return the delta that the curve needs, by theory S8 as it stands, over all moves of one vote."""
    ratio = math.exp(float(epsilon)) * (1 - 1e-15)
    chance = np.array([value / _CHANCES for value in curve])
    most = np.zeros(len(chance))
    for total in range(1, len(chance)):
        most[total] = max(chance[part] + most[total - part] for part in range(1, total + 1))
    if curve[0] != 0 or most[-1] > 1 + 1e-12 or (np.diff(chance) < 0).any():
        return math.inf
    votes, worst = len(chance) - 1, 0.0
    for n in range(1, votes + 1):
        m = np.arange(votes - n + 1)
        rest = most[votes - n - m]
        before, after = 1 - chance[n] - chance[m] - rest, 1 - chance[n - 1] - chance[m + 1] - rest
        gain = np.maximum(0, chance[m + 1] - ratio * chance[m]) + max(0.0, chance[n - 1] - ratio * chance[n])
        worst = max(worst, float((gain + np.maximum(0, after - ratio * before)).max()))
    return worst * (1 - 1e-9) - 1e-15


def _above_line(curve: list[int], height: float, slope: float) -> float:
    """Return how far the chance of no answer can be above the line; it rises with u, so right ends bound it."""
    votes = len(curve) - 1
    released = np.array([curve[votes - missed] / _CHANCES for missed in range(votes + 1)])
    worst = -math.inf
    for cell in range(_GRID_SINGLE):
        left, right = cell / _GRID_SINGLE, (cell + 1) / _GRID_SINGLE
        failure = 1.0 - float(_binomial(votes, right) @ released)
        worst = max(worst, min(1.0, failure) - height - slope * left)
    return worst


# --- B: rounded frequencies -------------------------------------------------------------------------------------------


def _rounded(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    k, draws = int(numbers["blocks"]), int(numbers["draws"])
    good, stray = int(numbers["good_votes"]), int(numbers["stray_votes"])
    if not 2 <= stray <= good <= k or int(numbers["labels"]) < 2:
        raise ValueError
    half, slack = float(epsilon) / 2, float(delta)
    top = math.log(slack / draws) + half * (good - 1)
    leak = slack * k * max(1.0, math.exp(half * (stray - 2)) / (stray - 1))
    silent = (1 + leak) / (1 + leak + math.exp(top))
    parts = _two_labels(numbers, alpha) if int(numbers["labels"]) == 2 else _many_labels(numbers, alpha)
    failures, lines = parts
    return [
        ("2 <= d", 2, int(numbers["labels"])),
        ("delta <= exp(epsilon / 2) - 1", slack, math.expm1(half)),
        *lines,
        ("the sum of all failures <= beta", silent + sum(failures), beta),
        *_sizes(numbers),
    ]


def _two_labels(numbers: Mapping[str, Any], alpha: float) -> tuple[list[float], list[Line]]:
    k, block, draws = int(numbers["blocks"]), int(numbers["block_size"]), int(numbers["draws"])
    width, near, far = (float(numbers[name]) for name in ("width", "good_radius", "stray_radius"))
    missed = _tail(k, _worst(block, near, both=True), k - int(numbers["good_votes"]) + 1)
    strayed = 2 * _tail(k, _worst(block, far, both=False), int(numbers["stray_votes"]))
    shifted = min(1.0, 2 * near / width) ** draws
    return [missed, strayed, shifted], [("w / 2 + s_b <= alpha", width / 2 + far, alpha)]


def _many_labels(numbers: Mapping[str, Any], alpha: float) -> tuple[list[float], list[Line]]:
    k, block, draws, labels = (int(numbers[name]) for name in ("blocks", "block_size", "draws", "labels"))
    good, width = int(numbers["good_votes"]), float(numbers["width"])
    mean, far, square = (float(numbers[name]) for name in ("good_radius", "stray_radius", "shift_square"))
    spread = math.sqrt((1 - 1 / labels) / block)
    if mean < spread or far < spread or square <= 0:
        raise ValueError
    distant = math.exp(-k * block * (mean - spread) ** 2)
    missed = min(1.0, math.sqrt(labels) * mean * k / (width * (k - good + 1))) ** draws
    strayed = _tail(k, math.exp(-block * (far - spread) ** 2), int(numbers["stray_votes"]))
    shifted = draws * _long_shift(labels, square)
    shift = width * math.sqrt(square)
    reach = shift + 2 * far
    if far <= width / 2:
        reach = min(reach, math.sqrt(shift**2 + 2 * width * math.sqrt(labels) * far))
    return [distant, missed, strayed, shifted], [("sqrt(d) / 2 reach <= alpha", math.sqrt(labels) / 2 * reach, alpha)]


def _long_shift(labels: int, square: float) -> float:
    """Bound P[|U|^2 > square] by Chernoff; the moment E exp(s U^2) by its power series, term by term."""
    if square >= labels / 4:
        return 0.0
    best = 1.0
    for tilt in np.linspace(0.5, 200, 800):
        moment = sum(math.exp(j * math.log(tilt / 4) - math.lgamma(j + 1)) / (2 * j + 1) for j in range(1, 250))
        best = min(best, math.exp(min(0.0, labels * math.log1p(moment) - tilt * square)))
    return best


def _worst(block: int, radius: float, *, both: bool) -> float:
    """Bound P[|X / b - p| > s] (or X / b - p > s) over all p: each side is monotone in p on each interval."""
    worst = 0.0
    cells = _GRID_ATOMS if both else 2 * _GRID_ATOMS
    for cell in range(cells):
        first, last = cell / (2 * _GRID_ATOMS), (cell + 1) / (2 * _GRID_ATOMS)
        start = math.floor(block * (first + radius) - 1e-9) + 1
        tail = float(_binomial(block, last)[start:].sum())
        if both:
            end = math.ceil(block * (last - radius) + 1e-9)
            tail += float(_binomial(block, first)[: max(0, end)].sum())
        worst = max(worst, tail)
    return worst


# --- D: rounded roots -------------------------------------------------------------------------------------------------


def _roots(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    k, draws, good = (int(numbers[name]) for name in ("blocks", "draws", "good_votes"))
    agreement = float(numbers["agreement"])
    if int(numbers["labels"]) < 2 or not 1 <= good <= k or not 0 < agreement < 1:
        raise ValueError
    half, slack = float(epsilon) / 2, float(delta)
    enough = shifts_that_do(numbers)
    cut = too_many(numbers)
    silent = 1 / (1 + math.exp(math.log(slack / draws) + half * (good - 1)))
    missed = (1 - enough) ** draws
    fewer = _tail(k, 1 - max(0.0, agreement - cut), k - good + 1)
    likely, rest = far_cells(numbers, alpha, float(epsilon))
    return [
        ("delta <= exp(epsilon / 2) - 1", slack, math.expm1(half)),
        ("no answer <= beta", silent, beta),
        ("no shift will do in any draw <= beta", missed, beta),
        ("fewer than n0 votes <= beta", fewer, beta),
        ("far cells of chance above q0 <= beta", likely, beta),
        ("other far cells <= beta", rest, beta),
        ("the sum of all failures <= beta", silent + missed + fewer + likely + rest, beta),
        *_sizes(numbers),
    ]


# --- C: pivotal simulation --------------------------------------------------------------------------------------------


def _pivotal(numbers: Mapping[str, Any]) -> list[Line]:
    alpha, beta, epsilon, delta = _request(numbers)
    runs, successes = int(numbers["runs"]), int(numbers["successes"])
    doubt = 1 - float(numbers["confidence"])
    if not (0 <= successes <= runs and 0 < doubt <= 0.001 * _ABOVE and float(numbers["step"]) > 0):
        raise ValueError
    simulated = [Fraction(numbers[f"{name}_simulated"]) for name in ("alpha", "epsilon", "delta")]
    return [
        ("1 <= d", 1, int(numbers["dimension"])),
        ("0 <= step", 0.0, float(numbers["step"])),
        ("0 <= seed", 0, int(numbers["seed"])),
        ("simulated alpha <= alpha", float(simulated[0]), alpha),
        ("simulated epsilon <= epsilon", float(simulated[1]), float(epsilon)),
        ("simulated delta <= delta", float(simulated[2]), float(delta)),
        ("delta <= exp(epsilon / 2) - 1", float(simulated[2]), math.expm1(float(simulated[1]) / 2)),
        ("P[so many successes] at 1 - beta <= 1 - confidence", _tail(runs, 1 - beta, successes), doubt * _ABOVE),
        *_sizes(numbers),
    ]


# --- binomial tails ---------------------------------------------------------------------------------------------------


def _binomial(size: int, chance: float) -> NDArray[np.float64]:
    """Return the probabilities of 0 .. size, from logarithms of factorials."""
    if size > _LARGEST:
        raise ValueError
    outcomes = np.arange(size + 1)
    if chance <= 0 or chance >= 1:
        return np.asarray(outcomes == (0 if chance <= 0 else size), dtype=np.float64)
    steps = np.log(np.arange(1, size + 1, dtype=np.float64))
    factorials = np.concatenate([[0.0], np.cumsum(steps)])
    logs = factorials[-1] - factorials - factorials[::-1]
    law = np.exp(logs + outcomes * math.log(chance) + (size - outcomes) * math.log1p(-chance))
    return np.asarray(law, dtype=np.float64)


def _tail(size: int, chance: float, least: int) -> float:
    """Return P[Bin(size, chance) >= least]."""
    return float(_binomial(size, min(1.0, chance))[max(0, least) :].sum())
