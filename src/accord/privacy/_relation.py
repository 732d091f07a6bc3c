"""One relation and one unit for all guarantees that are put together."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.privacy.no_guarantee import NoGuarantee

__all__ = ["Relation", "common_relation", "read_guarantees", "refuse_other_relation", "slack"]


@final
@dataclass(frozen=True, slots=True)
class Relation:
    """Which datasets are neighbours, and what one position of them is."""

    neighbouring: Neighbouring
    unit: str

    def guarantee(self, epsilon: Fraction, delta: Fraction) -> PureDP | ApproxDP:
        """Return the guarantee with these numbers; pure if delta is 0."""
        if delta == 0:
            return PureDP(epsilon, self.neighbouring, self.unit)
        return ApproxDP(epsilon, delta, self.neighbouring, self.unit)

    def none(self, *, delta: Fraction, reason: str) -> NoGuarantee:
        """Return the absence of a guarantee."""
        return NoGuarantee(delta=delta, reason=reason, neighbouring=self.neighbouring, unit=self.unit)


def read_guarantees(guarantees: Iterable[PureDP | ApproxDP]) -> list[PureDP | ApproxDP]:
    """Return the guarantees as a list, or refuse anything else."""
    if isinstance(guarantees, PureDP | ApproxDP):
        raise InvalidParameter("guarantees must be a collection: for one guarantee write [guarantee].")
    found = list(guarantees)
    _check.at_least_one("guarantees", found)
    for guarantee in found:
        if isinstance(guarantee, NoGuarantee):
            raise InvalidParameter(f"guarantees holds one that is infinite: {guarantee.reason}.")
        if not isinstance(guarantee, PureDP | ApproxDP):
            raise InvalidParameter("guarantees must hold PureDP and ApproxDP values only, such as PureDP('0.1').")
    return found


def common_relation(guarantees: Collection[PureDP | ApproxDP]) -> Relation:
    """Return the strongest relation that all imply, and the unit that all share; or refuse the mixture and say why."""
    relations = {guarantee.neighbouring for guarantee in guarantees}
    common = [relation for relation in relations if all(each.implies(relation) for each in relations)]
    if not common:
        raise InvalidParameter(
            "guarantees mix the relations 'replace one' and 'add or remove one': replacing a record is removing one "
            "and adding one, so their epsilons measure different things. State all under one relation first: "
            "(epsilon, delta) under 'add or remove one' gives (2 epsilon, (1 + e^epsilon) delta) under 'replace one'; "
            "the other way nothing follows."
        )
    units = {guarantee.unit for guarantee in guarantees}
    if len(units) > 1:
        raise InvalidParameter(
            f"guarantees are for different units of privacy ({', '.join(sorted(units))}): a total speaks about one "
            "unit. Restate all for the same one; a person with several records is not protected by a promise for one."
        )
    return Relation(common[0], units.pop())


def refuse_other_relation(cap: PureDP | ApproxDP, guarantee: PureDP | ApproxDP) -> None:
    """Refuse a guarantee that says nothing under the relation of a cap, or nothing about its unit."""
    common_relation([cap, guarantee])
    if not guarantee.neighbouring.implies(cap.neighbouring):
        raise InvalidParameter(
            f"the cap counts under '{cap.neighbouring.value}' and this guarantee holds under "
            f"'{guarantee.neighbouring.value}' only: it says nothing of records that stand elsewhere in the file. A "
            f"cap under '{guarantee.neighbouring.value}' takes both."
        )


def slack(value: Number, *, name: str = "delta") -> Fraction:
    """Return a delta from 0 to below 1."""
    result = _check.exact(name, value)
    if not 0 <= result < 1:
        raise InvalidParameter(f"{name} must be at least 0 and below 1: at 1 nothing is promised.")
    return result
