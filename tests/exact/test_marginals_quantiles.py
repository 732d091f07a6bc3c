"""What one unit can change in the choices of edges, by enumeration."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.errors import InvalidParameter
from accord.marginals import NumericBinning
from accord.marginals._counts import WHOLE
from accord.marginals._quantiles import Sorted, check_quantiles, dyadic_grid, split_scores
from accord.mechanisms import DiscreteLaplace, Exponential
from accord.testing import ReplayRandomness


def test_the_scores_of_halves_move_together_by_twice_the_weight() -> None:
    """All parts of a level of `quantile_edges` at once: losses add up over parts."""
    edges = [(-10.0, 0.0), (0.0, 2.0), (2.0, 10.0)]
    grid = np.linspace(-9.5, 9.5, 20)
    rest = [-3.0, 0.5, 1.0, 4.0, 4.0]

    def scores(values: list[float]) -> list[NDArray[np.int64]]:
        numbers = Sorted.of(np.array(values), None, 1)
        return [split_scores(numbers, grid, part=part, share=Fraction(1, 2)) for part in edges]

    places = [-20.0, -9.0, -0.1, 0.0, 1.5, 2.0, 9.0, 30.0, math.nan]
    worst = 0
    for old, new in product(places, places):
        pairs = zip(scores([old, *rest]), scores([new, *rest]), strict=True)
        worst = max(worst, sum(int(np.abs(one - other).max()) for one, other in pairs))
    assert worst == 2


def test_the_grid_of_all_scales_is_even() -> None:
    grid = dyadic_grid()
    assert (np.diff(grid) > 0).all()
    positive = grid[grid > 0]
    assert (positive[1:] / positive[:-1]).max() <= 1 + 1 / 4096
    assert positive[0] == 2.0**-66


PARTS = 2048


def loss_of_a_level(epsilon: Fraction) -> float:
    """The loss of all choices of a level together, from their exact laws, for a unit with a record in every part.

    Part j is [j, j + 1), with points at a quarter and three quarters; others' weights 12 and 4 lie at j + 0.1 and
    0.5. A record of weight 1 at j + 0.6 takes the scores (-8, -16) to (-7, -17).
    """
    starts = np.arange(PARTS, dtype=np.float64)
    others = np.concatenate([starts + 0.1, starts + 0.5])
    weights = np.concatenate([np.full(PARTS, 12), np.full(PARTS, 4), np.ones(PARTS, dtype=np.int64)])
    with_unit, without = (
        Sorted.of(np.concatenate([others, own]), weights, WHOLE) for own in (starts + 0.6, starts + 2.0 * PARTS)
    )
    mechanism = Exponential(sensitivity=2 * WHOLE, epsilon=epsilon)
    total = 0.0
    laws: dict[tuple[int, ...], float] = {}
    for start in starts:
        part, grid = (start, start + 1.0), start + np.array([0.25, 0.75])
        pair = [split_scores(numbers, grid, part=part, share=Fraction(1, 2)) for numbers in (with_unit, without)]
        key = (*pair[0].tolist(), *pair[1].tolist())
        if key not in laws:
            p, q = mechanism.law(pair[0]), mechanism.law(pair[1])
            laws[key] = max(abs(math.log1p(float(p[at] / q[at] - 1))) for at in p)
        total += laws[key]
    return total


def test_A11_whole_scores_are_not_rounded_where_choices_run_in_parallel() -> None:
    for epsilon in (Fraction(1, 10**7), Fraction(1, 1000), Fraction(1)):
        check_quantiles(levels=12, whole=WHOLE, epsilon=12 * (epsilon + Fraction(PARTS + 1, 1 << 46)))
        assert Exponential(sensitivity=2 * WHOLE, epsilon=epsilon).step <= 1
        assert loss_of_a_level(epsilon) <= epsilon


def test_A11_a_coarser_grid_is_caught_and_refused_before_anything_is_drawn() -> None:
    """The mutant of 0.1.0: at these budgets scores are rounded to multiples of 16, in every part on its own."""
    epsilon = Fraction(1, 1 << 29)
    assert Exponential(sensitivity=2 * WHOLE, epsilon=epsilon).step == 16
    assert loss_of_a_level(epsilon) > 1.5 * epsilon
    asked = 12 * (epsilon + Fraction(PARTS + 1, 1 << 46))
    with pytest.raises(InvalidParameter, match="epsilon is too small"):
        check_quantiles(levels=12, whole=WHOLE, epsilon=asked)
    check_quantiles(levels=12, whole=1, epsilon=asked)  # one record a unit: never coarser than 1
    values, names = np.arange(8.0), list("aabbccdd")
    for how in ({"bounds": (0.0, 9.0)}, {"around": (4.0, 3.0)}, {}):
        source, untouched = ReplayRandomness(3), ReplayRandomness(3)
        with pytest.raises(InvalidParameter, match="epsilon"):
            NumericBinning.private(values, epsilon=asked, cells=4096, units=names, randomness=source, **how)  # type: ignore[arg-type]
        noise = DiscreteLaplace(sensitivity=1, scale=10**9)
        assert noise.release(0, randomness=source).value == noise.release(0, randomness=untouched).value
