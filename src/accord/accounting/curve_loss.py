"""A mechanism that is known by a curve of (epsilon, delta) pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.losses import GridLaw, share_out
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring

__all__ = [
    "CurveLoss",
    "imported_loss",
]


Floats = NDArray[np.float64]
Point = tuple[Fraction, Fraction]


@final
@dataclass(frozen=True, slots=True, init=False)
class CurveLoss:
    """The worst case of a mechanism that is (epsilon_j, delta_j)-DP for every point of a list, negative epsilons too.

    At a negative epsilon delta is about ``1 - e^epsilon``; without such points the trivial bound stands there.

    Formal guarantees
    -----------------
    - If every point is an upper bound of the mechanism's curve, the pair of laws made from them dominates it. The
      lower convex hull (in e^epsilon) of the points is taken, exactly; the mechanism's own curve is convex, so it stays
      below.

    Parameters
    ----------
    epsilons
        In rising order, at least one above 0.
    deltas
        One for each epsilon, from 0 to 1; the last one below 1.

    Source
    ------
    Zhu, Dong and Wang (2022), Proposition 9; docs/proofs/privacy-loss.md.

    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    guarantee: ApproxDP
    neighbouring: Neighbouring
    unit: str

    def __init__(
        self,
        epsilons: Sequence[float],
        deltas: Sequence[Number],
        *,
        neighbouring: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        if len(epsilons) != len(deltas) or not epsilons or max(epsilons) <= 0:
            raise InvalidParameter("epsilons and deltas must be lists of one length, with an epsilon above 0.")
        if not all(-700 < low < high < 700 for low, high in zip([-699.0, *epsilons], [*epsilons, 699.0], strict=True)):
            raise InvalidParameter("epsilons must be in rising order, from -699 to 699.")
        points: list[Point] = [(Fraction(0), Fraction(1))]
        for epsilon, delta in zip(epsilons, deltas, strict=True):
            height = _check.exact("delta", delta)
            if not 0 <= height <= 1:
                raise InvalidParameter("deltas must be from 0 to 1.")
            points.append((_exp_above(epsilon), height))
        hull = _hull(points)
        losses, masses = _atoms(hull)
        rest = hull[-1][1]
        if not rest < 1:
            raise InvalidParameter("the last delta must be below 1: at 1 nothing is promised.")
        top = Fraction(max(0.0, losses[-1] * (1 + 2**-50)))  # computed, so at its binary value
        _check.store(
            self,
            losses=losses,
            masses=tuple(float(mass / (1 - rest)) for mass in masses),
            guarantee=ApproxDP(top, rest, neighbouring, unit),
            neighbouring=neighbouring,
            unit=unit,
        )

    def moments(self, orders: Floats) -> Floats:
        """Sums over the atoms, at most ``order epsilon``."""
        losses, masses = np.array(self.losses), np.array(self.masses)
        top = float(losses[-1])
        grown = np.exp(np.multiply.outer(orders, losses - top)) @ masses
        slack = 2.0**-53 * (masses.size + 64) * (1 + (orders + 1) * float(np.abs(losses).max()))
        mixed = np.maximum(orders * top + np.log(grown), 0.0) + slack
        return np.asarray(np.minimum(orders * float(self.guarantee.epsilon), mixed))

    def on_grid(self, step: float) -> GridLaw:
        """The atoms."""
        return share_out(np.array(self.losses), np.array(self.masses), step=step, error=4)


def _exp_above(epsilon: float) -> Fraction:
    """Return a number not below ``exp(epsilon)``: the curve falls, so a point may move to the right."""
    return Fraction(math.exp(epsilon) * (1 + 2.0**-50))


def _hull(points: list[Point]) -> list[Point]:
    """Return the lower convex hull of points in rising order, ending where it stops falling."""
    hull: list[Point] = []
    for x, y in points:
        while hull and y <= hull[-1][1] and len(hull) > 1 and _below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        if not hull or y < hull[-1][1]:
            hull.append((x, y))
    return hull


def _below(first: Point, second: Point, third: Point) -> bool:
    """Say whether the second point is on or above the line from the first to the third."""
    rise = (second[1] - first[1]) * (third[0] - first[0])
    return rise >= (third[1] - first[1]) * (second[0] - first[0])


def _atoms(hull: list[Point]) -> tuple[tuple[float, ...], list[Fraction]]:
    """Return losses and masses: where the slope in x = e^epsilon changes by q, mass q x at loss log x."""
    slopes = [(high[1] - low[1]) / (high[0] - low[0]) for low, high in pairwise(hull)]
    slopes.append(Fraction(0))
    losses, masses = [], []
    for (x, _), before, after in zip(hull[1:], slopes, slopes[1:], strict=False):
        losses.append(math.log(x))
        masses.append((after - before) * x)
    return tuple(losses), masses


_LARGEST = 600.0
_ROUNDING = 1e-9


def imported_loss(
    distribution: Any,  # noqa: ANN401
    *,
    neighbouring: Neighbouring,
    unit: str = "record",
    claimed_error: Number = "1e-12",
    points: int = 2000,
) -> CurveLoss:
    """Return the loss of one release that dp-accounting describes by a ``PrivacyLossDistribution``.

    Its curve is read at ``points`` epsilons on either side of 0, ``claimed_error`` is added to each delta, and the rest
    is exact. Both of its directions are covered, since it reports the larger delta of the two.

    Formal guarantees
    -----------------
    - If every delta that dp-accounting reports for this single release falls short of the truth by at most
      ``claimed_error``, the loss dominates the release. That it does is the caller's claim: dp-accounting computes in
      floats and gives no bound. It must be a pessimistic estimate, of one release, not composed.
    - Not promised: totals below (releases * claimed_error): the error is spent at every release.

    Parameters
    ----------
    distribution
        From ``dp_accounting.pld.privacy_loss_distribution``, made with ``pessimistic_estimate=True``.
    neighbouring, unit
        What it was made for: dp-accounting does not say.
    claimed_error
        From 0 to below 1.
    points
        More make it sharper.

    Raises
    ------
    InvalidParameter
        If dp-accounting is not installed, ``distribution`` is not one of its distributions, or a delta that it reports
        is no probability.

    Source
    ------
    docs/proofs/privacy-loss.md, docs/decisions/0005-dp-accounting.md.

    """
    try:
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution  # noqa: PLC0415
    except ImportError:
        raise InvalidParameter("dp-accounting is not installed: pip install 'accord[accounting]'.") from None
    if not isinstance(distribution, PrivacyLossDistribution):
        raise InvalidParameter("distribution must be a PrivacyLossDistribution of dp-accounting.")
    error = _check.exact("claimed_error", claimed_error)
    if not 0 <= error < 1:
        raise InvalidParameter("claimed_error must be at least 0 and below 1.")
    points = _check.integer("points", points, least=2, most=100_000)
    largest = _reach(distribution, float(error))
    side = np.linspace(0, largest, points + 1)[1:]
    epsilons = np.concatenate([-side[::-1], [0.0], side])
    deltas = np.asarray(distribution.get_delta_for_epsilon(epsilons), dtype=np.float64)
    _refuse_odd(deltas)
    exact = [min(Fraction(max(0.0, float(delta))) + error, Fraction(1)) for delta in deltas]
    return CurveLoss([float(epsilon) for epsilon in epsilons], exact, neighbouring=neighbouring, unit=unit)


def _refuse_odd(deltas: NDArray[np.float64]) -> None:
    """Refuse NaN, infinities and what is far from any probability; floats may be a hair outside 0 to 1."""
    if not np.all((deltas >= -_ROUNDING) & (deltas <= 1 + _ROUNDING)):
        raise InvalidParameter(
            "a delta that dp-accounting reports for this distribution is not from 0 to 1: make the distribution with "
            "another discretisation."
        )


def _reach(distribution: Any, error: float) -> float:  # noqa: ANN401
    """Return an epsilon beyond which delta hardly falls."""
    rest = float(distribution.get_delta_for_epsilon(_LARGEST))
    _refuse_odd(np.array([rest]))
    largest = 2.0**-10
    while largest < _LARGEST and float(distribution.get_delta_for_epsilon(largest)) > rest + max(error, 1e-15) / 10:
        largest *= 2
    return min(largest, _LARGEST)
