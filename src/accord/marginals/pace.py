"""How far a release is, in the time that its steps and fits are expected to take: for a bar, and for nothing else."""

from collections.abc import Callable
from typing import final

from accord.marginals.planning import CHOICE, CHOSEN, MarginalPlan

__all__ = ["Pace"]

_ROUNDS, _LAST = 5.0, 4.0
"""How long the fits between rounds and the last one take, where all steps before the rounds take 1 without records."""
_RECORDS = 300_000
"""So many records take a step as long as what it does besides."""
_PARTS = 1000
_FITTING = "fitting the model"


@final
class Pace:
    """Tells a bar the share of the expected time, where a run tells how many steps are done.

    Fits take most of the time where records are few, and no step; with them left out a bar stands at its end for nearly
    half of the time. Shares are measured ones, and rough: tables of 30 to 60 columns, and the example flights.

    Formal guarantees
    -----------------
    - What is told is a function of the plan and of which step is done: public.
    - Told numbers never fall, and the last call says that all is done.

    Parameters
    ----------
    plan
        Of the release.
    told
        Called with (done, all, what); ``all`` is 1000.

    """

    def __init__(self, plan: MarginalPlan, told: Callable[[int, int, str], None]) -> None:
        self._told = told
        choices = sum(step.times for step in plan.steps if step.what in {CHOICE, CHOSEN})
        before = sum(step.times for step in plan.steps) - choices
        fits = before or 1
        each = 1 + plan.units / _RECORDS
        self._before, self._each = before, each
        self._choice = each + _ROUNDS * fits / choices if choices else each
        last = _LAST * fits if choices else 0.0
        self._all = before * each + choices * self._choice + last
        self._shown = 0

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take what a run tells: steps done, all steps, and the name of the last one."""
        first = min(done, self._before)
        spent = first * self._each + (done - first) * self._choice
        self._show(spent / self._all, _FITTING if done == total > 1 else what)

    def finish(self) -> None:
        """Tell that all is done, also where rounds ended early for want of tables."""
        self._show(1.0, _FITTING)

    def _show(self, share: float, what: str) -> None:
        self._shown = max(self._shown, min(_PARTS, round(_PARTS * share)))
        self._told(self._shown, _PARTS, what)
