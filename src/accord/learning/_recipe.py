"""From a plan to what is run: which learner fits the blocks, which coupling compares them, what is made of a tuple."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from accord.core.coupling import Coupling, Learner
from accord.core.errors import InvalidParameter
from accord.couplings import ParameterRounding, ShiftRounding
from accord.learners import EmpiricalLearner
from accord.learning._grand import joint_coupling, tuple_coupling
from accord.learning._premises import require_premises
from accord.learning._rounded_labels import CellModel, Frequencies, RootModel, Roots
from accord.planning import Plan

__all__ = ["Recipe", "recipe_for"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that a plan decides about a release, public.

    Parameters
    ----------
    fitted
        The learner of the blocks.
    again
        The learner of the released tuple.
    coupling
        The coupling on which the plan's promise rests.
    epsilon, delta
        Of the selection. A stored simulation that is stricter than what was asked is run with its own numbers.

    """

    fitted: Learner
    again: Learner
    coupling: Coupling
    epsilon: Fraction
    delta: Fraction


def recipe_for(
    learner: Learner, *, plan: Plan, epsilon: Fraction, delta: Fraction, coupling: Coupling | None
) -> Recipe:
    """Return what a plan of theory L9, or of method A, B, C or D, runs.

    Raises
    ------
    InvalidParameter
        If ``coupling`` is given where the promise is for another one, or missing where none is known.

    """
    numbers = plan.certificate.numbers
    method = plan.certificate.method
    if method in {"B", "C", "D"}:
        if coupling is not None:
            raise InvalidParameter(f"coupling must be left out: sizes certified by method {method} have their own.")
        return {"B": _rounded, "C": _pivotal, "D": _roots}[method](learner, numbers)
    if method == "L9":
        delta = Fraction(numbers["delta_used"])
        chosen = coupling or tuple_coupling(learner, records=plan.synthetic_records)
    else:
        chosen = coupling or _joint(learner, records=plan.synthetic_records)
    if coupling is not None:
        by_tuples = method != "L9" and callable(getattr(learner, "tuple_total_variation", None))
        require_premises(coupling, records=plan.synthetic_records, whole_tuples=by_tuples)
    return Recipe(fitted=learner, again=learner, coupling=chosen, epsilon=epsilon, delta=delta)


def _joint(learner: Learner, *, records: int) -> Coupling:
    """Return a coupling for method A, whose total variation is of whole tuples unless the learner states none."""
    found = joint_coupling(learner, records=records)
    if found is not None:
        return found
    if not callable(getattr(learner, "tuple_total_variation", None)):
        return tuple_coupling(learner, records=records)
    message = (
        f"method='certified' needs coupling=, one for tuples of {records} records that agrees as their total variation "
        f"says: none is known for {type(learner).__name__} at this size."
    )
    raise InvalidParameter(message)


def _rounded(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    if not isinstance(learner, EmpiricalLearner):
        raise InvalidParameter("sizes certified by method B are for EmpiricalLearner.")
    frequencies = Frequencies(learner.categories)
    return Recipe(
        fitted=frequencies,
        again=CellModel(learner.categories),
        coupling=ParameterRounding(widths=[float(numbers["width"])] * frequencies.coordinates),
        epsilon=Fraction(numbers["epsilon"]),
        delta=Fraction(numbers["delta"]),
    )


def _roots(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    if not isinstance(learner, EmpiricalLearner):
        raise InvalidParameter("sizes certified by method D are for EmpiricalLearner.")
    mean_size, floor = float(numbers["mean_size"]), float(numbers["floor"])
    return Recipe(
        fitted=Roots(learner.categories, mean_size, floor),
        again=RootModel(learner.categories, mean_size, floor),
        coupling=ParameterRounding(widths=[float(numbers["width"])] * len(learner.categories)),
        epsilon=Fraction(numbers["epsilon"]),
        delta=Fraction(numbers["delta"]),
    )


def _pivotal(learner: Learner, numbers: Any) -> Recipe:  # noqa: ANN401 - plain data
    return Recipe(
        fitted=learner,
        again=learner,
        coupling=ShiftRounding(dimension=int(numbers["dimension"]), step=float(numbers["step"])),
        epsilon=Fraction(numbers["epsilon_simulated"]),
        delta=Fraction(numbers["delta_simulated"]),
    )
