"""What one unit can change in the choices of edges, by enumeration."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from accord.marginals.quantiles import Sorted, dyadic_grid, split_scores


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
