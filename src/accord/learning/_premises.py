"""Whether a theorem may rest on a coupling: what it states of its marginals and its agreement."""

from accord.core.coupling import Coupling, Premises, StatesPremises
from accord.core.errors import InvalidParameter

__all__ = ["require_premises", "stated_premises"]


def stated_premises(coupling: Coupling, *, records: int) -> Premises:
    """Return what a coupling states; nothing for one that is silent."""
    if not isinstance(coupling, StatesPremises):
        return Premises(marginals=False, agreement=None)
    stated: object = coupling.premises(records=records)
    if not isinstance(stated, Premises):
        raise InvalidParameter("a coupling's premises(records=...) must return Premises.")
    return stated


def require_premises(coupling: Coupling, *, records: int, whole_tuples: bool = False) -> None:
    """Refuse a coupling on which a promise of accuracy cannot rest.

    Parameters
    ----------
    coupling
        That was passed for this promise.
    records
        Of a tuple.
    whole_tuples
        Whether sizes rest on the total variation of whole tuples, and not on that of one record.

    Raises
    ------
    InvalidParameter
        Naming what is missing.

    Source
    ------
    theory 4 (G1, G2), L9, L10, L12; proof page ``docs/proofs/private-learners.md``.

    """
    stated = stated_premises(coupling, records=records)
    missing = []
    if not stated.marginals:
        missing.append("that a block's tuple has the law of its own records (marginals)")
    if stated.agreement is None:
        missing.append("that two blocks part with probability at most 2 l TV (agreement)")
    elif whole_tuples and stated.agreement != "tuples":
        missing.append("that two blocks part as the total variation of whole tuples says (agreement in tuples)")
    if not missing:
        return
    message = (
        f"{type(coupling).__name__} does not state {' and '.join(missing)} for tuples of {records}, and sizes from "
        f"alpha and beta rest on it: leave coupling out, pass one whose premises(records=...) states it, or give "
        f"blocks and records, without a promise of accuracy."
    )
    raise InvalidParameter(message)
