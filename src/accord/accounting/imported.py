"""Mechanisms that accord does not have, through the dp-accounting package (the extra ``accord[accounting]``)."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.accounting.curve_loss import CurveLoss
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import Neighbouring

__all__ = ["imported_loss"]

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
