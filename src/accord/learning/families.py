"""Which coupling belongs to which learner, and how few records it can work with; public facts only."""

from dataclasses import dataclass
from typing import final

from accord.core.coupling import Coupling, Learner
from accord.core.errors import InvalidParameter
from accord.couplings import NormalLattice, RaceCoupling, ShiftRounding
from accord.learners import EmpiricalLearner, GaussianLearner

__all__ = ["Family", "family_of"]

_LATTICE_MOST = 2
_FEW_DRAWS, _MANY_DRAWS = 32, 1000  # a draw of rounding costs next to nothing
_NORMAL_RATIO = {1: 0.6, 2: 0.3, 3: 0.35, 4: 0.22, 5: 0.11, 6: 0.06, 7: 0.035, 8: 0.025}
_NORMAL_BLOCK = {6: 140, 7: 260, 8: 400}
_NORMAL_ERROR = {1: 0.45, 2: 0.76, 3: 0.5, 4: 0.85, 5: 1.1, 6: 1.45, 7: 1.75, 8: 2.0}
"""By number of columns, found by simulation (``benchmarks/sizes.py``)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the learning layer needs to know about a learner's laws.

    Parameters
    ----------
    coupling
        An isolated coupling of tuples of these laws.
    least_block
        Fewer units than this in a block never give a fit.
    usual_block
        Fewer units than this in a block rarely agree; the default sizes refuse them.
    usual_draws
        R where a person has not chosen it.
    least_tuple
        Fewer records than this in a tuple are not coupled.
    agreeing_ratio
        Records per vote that can be hoped for, per record of a block, at the usual number of blocks and draws.
    typical_error
        Mean total variation of the learner from l records is about ``typical_error / sqrt(l)`` on data of its family.

    """

    coupling: Coupling
    least_block: int
    usual_block: int
    usual_draws: int
    least_tuple: int
    agreeing_ratio: float
    typical_error: float


def family_of(learner: Learner, *, dimension: int) -> Family:
    """Return the family of a learner shipped with accord, for records of ``dimension`` columns.

    Raises
    ------
    InvalidParameter
        For other learners: say which coupling their laws need by ``coupling=``; if the learner has another number of
        columns, so that no block could be fitted.

    """
    match learner:
        case GaussianLearner(dimension=int(columns)) if columns != dimension:
            raise InvalidParameter(f"data must have {columns} columns, as many as the learner.")
        case EmpiricalLearner() if dimension != 1:
            raise InvalidParameter("data must have 1 column for EmpiricalLearner.")
        case GaussianLearner():
            if dimension not in _NORMAL_RATIO:
                most = max(_NORMAL_RATIO)
                message = f"GaussianLearner is coupled for one to {most} columns by default, not for {dimension}."
                raise InvalidParameter(message)
            coupling = (NormalLattice if dimension <= _LATTICE_MOST else ShiftRounding)(dimension=dimension)
            ratio = _NORMAL_RATIO[dimension]
            return Family(
                coupling=coupling,
                least_block=dimension + 2,
                usual_block=_NORMAL_BLOCK.get(dimension, 20 * dimension),
                usual_draws=_FEW_DRAWS if dimension <= _LATTICE_MOST else _MANY_DRAWS,
                least_tuple=coupling.least_records,
                agreeing_ratio=ratio,
                typical_error=_NORMAL_ERROR[dimension],
            )
        case EmpiricalLearner(categories=categories):
            return Family(
                coupling=RaceCoupling(categories),
                least_block=1,
                usual_block=5,
                usual_draws=_FEW_DRAWS,
                least_tuple=1,
                agreeing_ratio=min(3.0, 10.0 / max(1, len(categories) - 1) ** 2),
                typical_error=0.5 * max(1, len(categories) - 1) ** 0.5,
            )
        case _:
            message = f"{type(learner).__name__} has no coupling of its own: pass one that fits its laws as coupling=."
            raise InvalidParameter(message)
