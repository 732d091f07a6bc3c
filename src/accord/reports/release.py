"""``release.json``: a release for machines, with a stable format, and the check of one."""

import json
from collections.abc import Mapping
from typing import Any

from accord.core.errors import InvalidParameter
from accord.core.verdict import Verdict
from accord.reports._account import account_faults
from accord.reports._shapes import SHAPE, SHAPE_1
from accord.reports._stages import number_faults, stage_faults, sum_faults, taken_at_its_word
from accord.reports._tables import consistency_faults, table_faults
from accord.reports.report import Report
from accord.tables.names import listed

__all__ = ["RELEASE_FORMAT", "check_release", "release_json", "taken_at_word"]

RELEASE_FORMAT = "accord release"
_VERSION = 2
_NEAR = 1e-6


def release_json(report: Report) -> str:
    """Return the report as one JSON object, in ASCII.

    Its keys are listed in docs/report.md; they stay, and new ones may come, as long as ``format_version`` is 2.
    """
    content = {
        "format": RELEASE_FORMAT,
        "format_version": _VERSION,
        "accord": report.version,
        **report.account,
        "claims": [{"what": claim.what, "by": claim.by} for claim in report.claims],
        "seeded": report.seeded,
        "rows": report.rows,
        "columns": [
            {
                "name": table.name,
                "kind": table.kind,
                "labels": list(table.labels),
                "shares": list(table.shares),
                "expected_error": table.error,
                "merged_error": table.merged,
                "low": list(table.low) or None,
                "high": list(table.high) or None,
            }
            for table in report.columns
        ],
        "pairs": [
            {
                "names": list(pair.names),
                "labels": [list(labels) for labels in pair.labels],
                "shares": [list(row) for row in pair.shares],
                "expected_error": pair.error,
                "merged_share": pair.merged,
            }
            for pair in report.pairs
        ],
        "budget": dict(report.budget),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


# --- the check --------------------------------------------------------------------------------------------------------


def check_release(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is wrong with the content of a ``release.json``; nothing if it is well formed and adds up.

    Formal guarantees
    -----------------
    - Found: missing keys, values of another type or range; numbers of the promise that differ from each other, from
      its sentence, its unit or its relation; a stage of accord's that states anything but what its mechanism has with
      exactly these parameters, or calls itself somebody's word; groups that no theorem composes so; stages whose total,
      worked out again, is above the promise; a delta too large for the number of units that the warnings do not name;
      shares that do not sum to 1, are not those of so many rows, or differ between tables; errors and intervals that
      contradict each other.
    - Not promised: that the release was made as it says: with these parameters, no stage missing, stages of a parallel
      group on different inputs, claims kept. That is the word of whoever ran it, and `taken_at_word` says what of it
      this file rests on.

    Parameters
    ----------
    content
        What ``json.loads`` gave.

    Raises
    ------
    InvalidParameter
        If it is no release, or one of a newer format; or one of format 1 in which nothing is wrong: its stages have no
        parameters, so that it cannot be worked out.

    """
    if content.get("format") != RELEASE_FORMAT:
        raise InvalidParameter("this is not the JSON of a release.")
    version = content.get("format_version")
    if type(version) is not int or version not in {1, _VERSION}:
        raise InvalidParameter(f"this release has a format that this accord does not know: it knows 1 and {_VERSION}.")
    faults = list(_shape_faults(content, SHAPE_1 if version == 1 else SHAPE, at=""))
    if faults:
        return tuple(faults)
    if version == 1:
        return _of_format_1(content)
    promise = number_faults(content, near=None)
    said = [] if promise else account_faults(content)
    tables = table_faults(content) or consistency_faults(content)
    return (*promise, *stage_faults(content), *said, *tables)


def _of_format_1(content: Mapping[str, Any]) -> tuple[str, ...]:
    faults = (*number_faults(content, near=_NEAR), *sum_faults(content), *table_faults(content))
    if not faults:
        raise InvalidParameter(
            "this release has format 1, which cannot be worked out: its stages have no parameters. What they state "
            "adds up to no more than the promise, and that is their word; make the release again to have it checked."
        )
    return faults


def taken_at_word(content: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """Return what a file in which `check_release` found nothing wrong rests on without saying why.

    ``stages-at-their-word``: stages of code that is not accord's, and charges for couplings that are not isolated: what
    they state was added, and cannot be worked out. ``parallel-at-its-word``: groups of which the largest counts.
    ``no-stages``: no mechanism ran.
    """
    stages, parallel = taken_at_its_word(content)
    found = []
    if not content["stages"]:
        found.append(
            Verdict(
                "no-stages",
                "no mechanism ran: what was released must follow from public facts alone, which is the word of whoever "
                "made the file.",
            )
        )
    if stages:
        named = listed(sorted({str(content["stages"][place]["mechanism"]) for place in stages}))
        found.append(
            Verdict(
                "stages-at-their-word",
                f"{len(stages)} of {len(content['stages'])} stages are taken at their word ({named}): nothing in the "
                f"file shows that they spend no more than they state, so ask whoever made it.",
            )
        )
    if parallel:
        found.append(
            Verdict(
                "parallel-at-its-word",
                "of parallel groups the largest counts: that no unit can move the inputs of all stages of such a group "
                "in full is taken at the word of whoever made the file.",
            )
        )
    return tuple(found)


def _shape_faults(value: object, shape: Any, *, at: str) -> list[str]:  # noqa: ANN401 - a table, list or test
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            return [f"{at or 'the file'} must be an object"]
        missing = [f"{at}{key} is missing" for key in shape if key not in value]
        return missing + [
            fault
            for key, part in shape.items()
            if key in value
            for fault in _shape_faults(value[key], part, at=f"{at}{key}.")
        ]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at.rstrip('.')} must be a list"]
        return [
            fault for place, entry in enumerate(value) for fault in _shape_faults(entry, shape[0], at=f"{at}{place}.")
        ]
    return [] if shape(value) else [f"{at.rstrip('.')} has a value that is not accepted"]
