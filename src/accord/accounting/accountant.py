"""Count releases one at a time or all at once, and ask for their total at any time."""

import math
import threading
from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.accounting.best import Bound, CompositionTable, counted_table
from accord.accounting.composition import LARGEST_EPSILON, NoGuarantee, Relation, common_relation, rounded_up, slack
from accord.accounting.gaussian import gaussian_total
from accord.accounting.losses import PrivacyLoss
from accord.accounting.noise_losses import ConcentratedLoss, GaussianLoss
from accord.accounting.numerical import numerical_epsilon
from accord.accounting.of_mechanisms import loss_of
from accord.accounting.optimal import left_over
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, PureDP

__all__ = [
    "ORDERS",
    "PrivacyAccountant",
    "epsilon_of_moments",
    "log_share",
]


Floats = NDArray[np.float64]

ORDERS: Floats = np.exp(np.linspace(math.log(1e-3), math.log(1e6), 400))
"""The orders that are kept, from 0.001 to a million."""

_SLACK = 2.0**-40


def log_share(orders: Floats) -> Floats:
    """Return ``log(order^order / (order + 1)^(order + 1))``, the largest value of ``log((1 - e^-y) e^(-order y))``."""
    return np.asarray(-orders * np.log1p(1 / orders) - np.log1p(orders))


def epsilon_of_moments(moments: Floats, log_delta: float) -> tuple[float, float]:
    """Return an epsilon at which delta is at most ``exp(log_delta)``, and the order that gave it.

    ``delta <= exp(moment + log_share - order epsilon)`` for every order, so ``epsilon = (moment + log_share -
    log_delta) / order``. All terms are inflated by 2^-40 of their size, far more than their rounding errors.
    """
    share = log_share(ORDERS)
    size = np.abs(moments) + np.abs(share) + abs(log_delta) + 1
    bounds = (moments + share - log_delta + _SLACK * size) / ORDERS
    best = int(np.argmin(bounds))
    return max(0.0, float(bounds[best])), float(ORDERS[best])


_SMALLEST_LEFT = 1e-270
_UNIT = 2.0**60  # moments are added in whole numbers, so that neither order nor grouping changes a bit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What has been counted at one moment. Never changed: a charge makes a new one, so readers see all of it or none.

    Parameters
    ----------
    losses, deltas
        Losses, and deltas of their guarantees, and how often each was counted.
    moments
        Sums of the log moments, in units of 1 / `_UNIT`.
    epsilons
        Sum of the epsilons; None once a loss without one was counted.
    relation
        None as long as nothing was counted.

    """

    losses: dict[PrivacyLoss, int] = field(default_factory=dict)
    deltas: dict[Fraction, int] = field(default_factory=dict)
    moments: tuple[int, ...] = (0,) * ORDERS.size
    epsilons: Fraction | None = Fraction(0)
    relation: Relation | None = None

    def after(self, loss: PrivacyLoss, *, times: int, grown: list[int]) -> "_Counted":
        """Return this with one loss more, so many times; ``grown`` are its log moments."""
        relation = Relation(loss.neighbouring, loss.unit)
        if self.relation is not None:
            relation = common_relation([relation.guarantee(Fraction(0), Fraction(0)), self.nothing()])
        losses, deltas, guarantee = dict(self.losses), self.deltas, loss.guarantee
        losses[loss] = losses.get(loss, 0) + times
        if guarantee is not None:
            deltas = {**deltas, guarantee.delta: deltas.get(guarantee.delta, 0) + times}
        epsilons = None
        if self.epsilons is not None and guarantee is not None:
            epsilons = self.epsilons + times * guarantee.epsilon
        return _Counted(
            losses=losses,
            deltas=deltas,
            moments=tuple(total + times * one for total, one in zip(self.moments, grown, strict=True)),
            epsilons=epsilons,
            relation=relation,
        )

    def nothing(self) -> PureDP | ApproxDP:
        if self.relation is None:
            raise InvalidParameter("nothing has been charged: there is no relation yet to state a total for.")
        return self.relation.guarantee(Fraction(0), Fraction(0))

    def left(self, delta: Number) -> tuple[Relation, Fraction, float | str]:
        """Return the relation, delta, and what is left of it for the pure parts, or why nothing is."""
        nothing = self.nothing()
        allowed = slack(delta)
        relation = Relation(nothing.neighbouring, nothing.unit)
        left = left_over(self.deltas, allowed=allowed)
        if isinstance(left, str):
            return relation, allowed, left
        return relation, allowed, float(Context(prec=16, rounding=ROUND_FLOOR).plus(left)) * (1 - 2.0**-50)

    def by_moments(self, left: float) -> tuple[float, float]:
        return epsilon_of_moments(np.array(self.moments, dtype=np.float64) / _UNIT, math.log(left))


@final
class PrivacyAccountant:
    """The total privacy loss of releases that are counted as they come.

    Formal guarantees
    -----------------
    - Privacy: releases with these losses, the kinds and numbers of which are fixed in advance, each mechanism free to
      depend on all earlier outputs, have every total that `bound`, `total` and `table` return. All are upper bounds:
      roundings are directed, or bounded and added.
    - n charges of one loss are one charge with ``times=n``; order does not matter.
    - A charge is counted whole or, if it raises, not at all, from any number of threads; a total is one of one moment.
    - A release counts as one of any number of numbers, unless its number is given.
    - Not promised: a total for losses chosen on the way by what came out: that is a `PrivacyFilter`.

    Source
    ------
    Theory C4; docs/proofs/privacy-loss.md.

    Examples
    --------
    >>> from accord.mechanisms import Laplace
    >>> accountant = PrivacyAccountant()
    >>> accountant.charge(Laplace(sensitivity=1, epsilon="0.05"), times=1000)
    >>> round(float(accountant.bound(delta="1e-6").epsilon), 3)
    8.734
    >>> round(float(accountant.total(delta="1e-6").epsilon), 4)
    8.2044

    """

    __slots__ = ("_counted", "_lock")

    def __init__(self) -> None:
        self._counted = _Counted()
        self._lock = threading.Lock()

    def charge(self, what: Any, *, times: int = 1, dimension: int | None = None) -> None:  # noqa: ANN401
        """Count releases.

        Parameters
        ----------
        what
            A mechanism, a guarantee, or a `PrivacyLoss`.
        times
            How many releases, at least 1.
        dimension
            For a mechanism: how many numbers each release holds, if that is certain. None, the default, is right for
            any number; with ``dimension=1`` discrete Gaussian noise on a single integer costs less. See `loss_of`.

        Raises
        ------
        InvalidParameter
            If it has no known loss, or is for another relation or unit than what was counted before.

        """
        loss = _read(what, dimension=dimension)
        times = _check.integer("times", times, least=1)
        grown = [int(one) for one in np.ceil(loss.moments(ORDERS) * _UNIT)]
        with self._lock:
            self._counted = self._counted.after(loss, times=times, grown=grown)

    @property
    def losses(self) -> dict[PrivacyLoss, int]:
        """What has been counted, and how often."""
        return dict(self._counted.losses)

    def bound(self, *, delta: Number) -> PureDP | ApproxDP | NoGuarantee:
        """Return a total at once: the smaller of the sum and the bound from exponential moments.

        Some percent above `total`, in a time that does not grow with the number of charges.
        """
        return _bound(self._counted, delta=delta)

    def total(self, *, delta: Number) -> PureDP | ApproxDP | NoGuarantee:
        """Return the least total of all bounds that are valid."""
        return self.table(delta=delta).best.total

    def table(self, *, delta: Number) -> CompositionTable:
        """Return every rule side by side: those for guarantees alone, moments, and the law of the privacy loss."""
        counted = self._counted
        relation, allowed, left = counted.left(delta)
        bounds: list[Bound] = []
        stated: Counter[PureDP | ApproxDP] = Counter()
        for loss, count in counted.losses.items():
            if loss.guarantee is not None:
                stated[loss.guarantee] += count
        if stated.total() == sum(counted.losses.values()):
            bounds.extend(counted_table(stated, allowed=allowed).bounds)
        bounds.append(Bound(rule="moments", source="C4", total=_bound(counted, delta=allowed)))
        bounds.append(Bound(rule="privacy loss", source="C4", total=_by_law(counted, relation, allowed, left)))
        return CompositionTable(bounds=tuple(bounds))

    def __getstate__(self) -> _Counted:
        return self._counted

    def __setstate__(self, counted: _Counted) -> None:
        self._counted = counted
        self._lock = threading.Lock()


def _bound(counted: _Counted, *, delta: Number) -> PureDP | ApproxDP | NoGuarantee:
    relation, allowed, left = counted.left(delta)
    if isinstance(left, str):
        return relation.none(delta=allowed, reason=left)
    bounds = [] if counted.epsilons is None else [counted.epsilons]
    if left > 0:
        bounds.append(rounded_up(Fraction(counted.by_moments(left)[0])))
    if not bounds:
        return relation.none(delta=allowed, reason="without slack a Gaussian has no finite epsilon")
    return relation.guarantee(min(bounds), allowed)


def _by_law(
    counted: _Counted, relation: Relation, allowed: Fraction, left: float | str
) -> PureDP | ApproxDP | NoGuarantee:
    reason = left if isinstance(left, str) else _no_law(counted, left)
    if isinstance(left, str) or reason:
        return relation.none(delta=allowed, reason=reason)
    gaussians = [loss for loss in counted.losses if isinstance(loss, GaussianLoss)]
    if len(gaussians) == len(counted.losses):
        squared = sum((loss.squared * counted.losses[loss] for loss in gaussians), start=Fraction(0))
        try:
            return gaussian_total(gaussians, squared=squared, delta=allowed)
        except InvalidParameter as refusal:
            return relation.none(delta=allowed, reason=str(refusal).rstrip("."))
    guess, order = counted.by_moments(left)
    found = numerical_epsilon(counted.losses, left=left, order=order, guess=guess)
    if not math.isfinite(found):
        return relation.none(delta=allowed, reason="the law of the loss is too wide for the grid")
    return relation.guarantee(rounded_up(Fraction(found)), allowed)


def _no_law(counted: _Counted, left: float) -> str:
    if any(isinstance(loss, ConcentratedLoss) and loss.rho for loss in counted.losses):
        return "a loss is known by its moments alone, as discrete Gaussian noise on several integers is"
    if left < _SMALLEST_LEFT:
        return "the delta that is left is too small for floats"
    if any(loss.guarantee is not None and loss.guarantee.epsilon > LARGEST_EPSILON for loss in counted.losses):
        return "an epsilon is above 1000, beyond the grid: add up"
    return ""


def _read(what: Any, *, dimension: int | None = None) -> PrivacyLoss:  # noqa: ANN401
    """Return a loss as it is, that of anything else by `loss_of`."""
    if all(hasattr(what, name) for name in ("moments", "on_grid", "neighbouring", "unit")):
        found: PrivacyLoss = what
        return found
    return loss_of(what, dimension=dimension)
