"""Which references may be shown several laws at once."""

from accord.couplings._iid_reference import IidReference
from accord.couplings._model_reference import ModelReference
from accord.couplings._normal_reference import NormalReference
from accord.couplings.reference import TupleReference

__all__ = ["keeps_rows_apart"]

_OWN = frozenset({IidReference, ModelReference, NormalReference})


def keeps_rows_apart(reference: TupleReference) -> bool:
    """Return whether it is known that a row of the reference's ratios does not depend on the other laws.

    It is for accord's own, by their proofs. Any other reference is shown one law at a time, so that a coupling over it
    is isolated whatever it does with several.
    """
    return type(reference) in _OWN
