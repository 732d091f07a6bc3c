"""``release.json``: a release for machines, with a stable format, and the check of one."""

import json
import math
from collections.abc import Mapping
from typing import Any

from accord.errors import InvalidParameter
from accord.reports._shapes import SHAPE, SHAPE_1
from accord.reports._stages import number_faults, stage_faults, sum_faults
from accord.reports.report import Report

__all__ = ["RELEASE_FORMAT", "check_release", "release_json"]

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
    - Found: missing keys, values of another type or range, shares that do not sum to 1, tables whose shape is not that
      of their labels; a float below the number it stands for; a stage that states less than its mechanism with these
      parameters has; and stages whose total, worked out from them as they are said to compose, is above the promise.
    - Files of format 1 have no parameters: what their stages state is added up, and nothing more can be found out.
    - Not promised: that the release was made as it says, or that no stage is missing. That is the word of whoever ran
      it.

    Parameters
    ----------
    content
        What ``json.loads`` gave.

    Raises
    ------
    InvalidParameter
        If it is no release, or one of a newer format.

    """
    if content.get("format") != RELEASE_FORMAT:
        raise InvalidParameter("this is not the JSON of a release.")
    version = content.get("format_version")
    if type(version) is not int or version not in {1, _VERSION}:
        raise InvalidParameter(f"this release has a format that this accord does not know: it knows 1 and {_VERSION}.")
    faults = list(_shape_faults(content, SHAPE_1 if version == 1 else SHAPE, at=""))
    if faults:
        return tuple(faults)
    stages = sum_faults(content) if version == 1 else stage_faults(content)
    return (*number_faults(content, near=_NEAR if version == 1 else None), *stages, *_table_faults(content))


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


def _table_faults(content: Mapping[str, Any]) -> list[str]:
    faults = []
    for place, table in enumerate(content["columns"]):
        if len(table["labels"]) != len(table["shares"]):
            faults.append(f"columns.{place} has not one share a label")
        elif not _sums_to_one(table["shares"]):
            faults.append(f"the shares of columns.{place} do not sum to 1")
    for place, table in enumerate(content["pairs"]):
        rows, shape = table["shares"], [len(labels) for labels in table["labels"]]
        if (
            len(table["names"]) != 2
            or len(shape) != 2
            or [len(rows), *map(len, rows)] != [shape[0], *shape[1:] * shape[0]]
        ):
            faults.append(f"pairs.{place} has not one share a pair of labels")
        elif not _sums_to_one([share for row in rows for share in row]):
            faults.append(f"the shares of pairs.{place} do not sum to 1")
    return faults


def _sums_to_one(shares: list[float]) -> bool:
    return all(share >= 0 for share in shares) and abs(math.fsum(shares) - 1) <= _NEAR
