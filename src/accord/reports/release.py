"""``release.json``: a release for machines, with a stable format, and the check of one."""

import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from accord._exact import to_fraction
from accord.errors import InvalidParameter
from accord.ledger.figures import as_float
from accord.privacy import Neighbouring
from accord.reports.report import Report

__all__ = ["RELEASE_FORMAT", "check_release", "release_json"]

RELEASE_FORMAT = "accord release"
_VERSION = 1
_NEAR = 1e-6


def release_json(report: Report) -> str:
    """Return the report as one JSON object, in ASCII.

    Its keys are listed in docs/report.md; they stay, and new ones may come, as long as ``format_version`` is 1.
    """
    content = {
        "format": RELEASE_FORMAT,
        "format_version": _VERSION,
        "accord": report.version,
        "guarantee": {
            "epsilon": report.epsilon,
            "epsilon_float": as_float(report.guarantee.epsilon, up=True),
            "delta": report.delta,
            "delta_float": as_float(report.guarantee.delta, up=True),
            "neighbouring": report.guarantee.neighbouring.value,
            "unit": report.guarantee.unit,
            "unit_column": report.unit_column,
            "units": report.units,
            "composition": report.composition,
            "noise_seeded": False,
        },
        "stages": [
            {
                "what": stage.what,
                "mechanism": stage.mechanism,
                "epsilon": stage.epsilon or None,
                "delta": stage.delta or None,
                "detail": stage.detail,
            }
            for stage in report.stages
        ],
        "claims": [{"what": claim.what, "by": claim.by} for claim in report.claims],
        "learner": report.learner,
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
        "warnings": [verdict.document() for verdict in report.warnings],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


# --- the check --------------------------------------------------------------------------------------------------------


def check_release(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is wrong with the content of a ``release.json``; nothing if it is well formed and adds up.

    Formal guarantees
    -----------------
    - Found: missing keys, values of another type or range, shares that do not sum to 1, tables whose shape is not that
      of their labels, and stages whose sum is above the promise where the total is said to be a sum.
    - Not promised: that the release was made as it says. That is the word of whoever ran it.

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
    if content.get("format_version") != _VERSION:
        raise InvalidParameter(f"this release has a format that this accord does not know: it knows {_VERSION}.")
    faults = list(_shape_faults(content, _SHAPE, at=""))
    if faults:
        return tuple(faults)
    return (*_number_faults(content), *_table_faults(content))


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: type(value) in kinds


_TEXT, _FLAG, _NONE = _is(str), _is(bool), _is(type(None))
_COUNT: Callable[[object], bool] = lambda value: type(value) is int and value >= 0  # noqa: E731
_SHARE: Callable[[object], bool] = lambda value: type(value) in {int, float} and math.isfinite(float(value))  # type: ignore[arg-type]  # noqa: E731


def _or_none(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or test(value)


_SHAPE: dict[str, Any] = {
    "accord": _TEXT,
    "guarantee": {
        "epsilon": _TEXT,
        "epsilon_float": _SHARE,
        "delta": _TEXT,
        "delta_float": _SHARE,
        "neighbouring": _TEXT,
        "unit": _TEXT,
        "unit_column": _or_none(_TEXT),
        "units": _COUNT,
        "composition": _TEXT,
        "noise_seeded": lambda value: value is False,
    },
    "stages": [
        {
            "what": _TEXT,
            "mechanism": _TEXT,
            "epsilon": _or_none(_TEXT),
            "delta": _or_none(_TEXT),
            "detail": _TEXT,
        }
    ],
    "claims": [{"what": _TEXT, "by": _TEXT}],
    "learner": _TEXT,
    "seeded": _FLAG,
    "rows": _COUNT,
    "columns": [
        {"name": _TEXT, "kind": _TEXT, "labels": [_TEXT], "shares": [_SHARE], "expected_error": _or_none(_SHARE)}
    ],
    "pairs": [{"names": [_TEXT], "labels": [[_TEXT]], "shares": [[_SHARE]], "expected_error": _or_none(_SHARE)}],
    "budget": {},
    "warnings": [{"code": _TEXT, "text": _TEXT}],
}


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


def _number_faults(content: Mapping[str, Any]) -> list[str]:
    guarantee = content["guarantee"]
    faults = []
    for name, least in (("epsilon", 0), ("delta", 0)):
        number = _fraction(guarantee[name])
        if number is None or number < least:
            faults.append(f"guarantee.{name} is no number that can be promised")
        elif abs(float(number) - guarantee[f"{name}_float"]) > _NEAR * max(float(number), 1e-300):
            faults.append(f"guarantee.{name} and {name}_float differ")
        elif guarantee["composition"].startswith("basic"):
            parts = [_fraction(stage[name]) for stage in content["stages"] if stage[name] is not None]
            if None in parts:
                faults.append(f"a stage's {name} is no number")
            elif sum((part for part in parts if part is not None), Fraction(0)) > number:
                faults.append(f"the stages spend more {name} than is promised")
    if guarantee["neighbouring"] not in {relation.value for relation in Neighbouring}:
        faults.append("guarantee.neighbouring is no relation")
    return faults


def _fraction(text: str) -> Fraction | None:
    try:
        return to_fraction(text)
    except (TypeError, ValueError):
        return None


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
