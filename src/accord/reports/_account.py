"""Whether what a ``release.json`` says of its promise in several places is one thing."""

from collections.abc import Mapping, Sequence
from typing import Any

from accord.accounting.account import rows_stand_for, statement_of
from accord.accounting.verdicts import WEIGHTED, of_delta, of_sizes
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.unit_names import RECORD, unit_word
from accord.core.verdict import Verdict
from accord.marginals.verdicts import NOISE
from accord.tables.names import shown

__all__ = ["account_faults"]


def account_faults(content: Mapping[str, Any]) -> list[str]:
    """Return the contradictions between the numbers of a promise that can be made and all that is said about it."""
    guarantee = content["guarantee"]
    try:
        promise = ApproxDP(
            guarantee["epsilon"], guarantee["delta"], Neighbouring(guarantee["neighbouring"]), guarantee["unit"]
        )
    except InvalidParameter:
        return ["guarantee.unit is no word for a unit"]
    words = statement_of(guarantee["epsilon"], guarantee["delta"], neighbouring=promise.neighbouring, unit=promise.unit)
    contradictions = {
        "guarantee.statement says something else than the numbers": guarantee["statement"] != words,
        "rows_stand_for says another unit than guarantee.unit": content["rows_stand_for"]
        != rows_stand_for(promise.unit),
        "units and guarantee.units differ": content["units"] != guarantee["units"],
        "guarantee.unit and unit_column contradict each other": not _of_column(promise.unit, guarantee["unit_column"]),
    }
    found = [fault for fault, is_so in contradictions.items() if is_so]
    if (guarantee["units"] is None) != (promise.neighbouring is Neighbouring.ADD_OR_REMOVE_ONE):
        found.append("guarantee.units is secret under this relation, or public and missing")
    return found + _warning_faults(content, promise)


def _of_column(unit: str, column: str | None) -> bool:
    """Return whether a guarantee for units of this word can come from this column."""
    if column is None:
        return unit in {RECORD, "voter", unit_word(None, named=True)}
    return unit == unit_word(column, named=True)


def _warning_faults(content: Mapping[str, Any], promise: ApproxDP) -> list[str]:
    said = [(warning["code"], warning["text"]) for warning in content["warnings"]]
    found = []
    for place, (code, text) in enumerate(said):
        try:
            Verdict(code, text)
        except InvalidParameter:
            found.append(f"warnings.{place} is no verdict")
    of_code = {code: [text for one, text in said if one == code] for code, _ in said}
    due = [] if not content["units"] else of_delta(promise, units=content["units"])
    if of_code.get("delta-too-large", []) != [verdict.text for verdict in due]:
        found.append("warnings must say that delta is too large for so many units, exactly if it is")
    if not set(of_code.get(WEIGHTED.code, [])) <= ({WEIGHTED.text} if promise.unit != RECORD else set()):
        found.append("warnings say something else of how units weigh than the unit of the promise")
    return found + _error_warning_faults(content["expected_errors"], of_code)


def _error_warning_faults(errors: Mapping[str, float], said: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what the expected errors make due and no warning says."""
    if not all(isinstance(error, int | float) for error in errors.values()):
        return []  # found as errors that are not those of the columns
    few = [verdict.text for verdict in of_sizes(errors)]
    found = ["warnings do not say that n is not enough"] if not set(few) <= set(said.get("too-few-records", [])) else []
    noise = [name for name, error in errors.items() if error >= NOISE]
    told = said.get("column-is-noise", [])
    if not all(any(f"column {shown(name)} is mostly noise" in text for text in told) for name in noise):
        found.append("warnings do not name a column that is noise")
    return found
