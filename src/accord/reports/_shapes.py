"""What a ``release.json`` must look like: a test for each value."""

import math
from collections.abc import Callable
from typing import Any

__all__ = ["SHAPE", "SHAPE_1"]


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: type(value) in kinds


_TEXT, _FLAG, _NONE = _is(str), _is(bool), _is(type(None))
_COUNT: Callable[[object], bool] = lambda value: type(value) is int and value >= 0  # noqa: E731
_SHARE: Callable[[object], bool] = lambda value: type(value) in {int, float} and math.isfinite(float(value))  # type: ignore[arg-type]  # noqa: E731


def _or_none(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or test(value)


SHAPE_1: dict[str, Any] = {
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
    "warnings": [_TEXT],
}

SHAPE: dict[str, Any] = {
    **SHAPE_1,
    "rows_stand_for": _TEXT,
    "units": _COUNT,
    "composition": {},
    "stages": [
        {
            "what": _TEXT,
            "mechanism": _TEXT,
            "parameters": {},
            "epsilon": _or_none(_TEXT),
            "delta": _or_none(_TEXT),
            "detail": _TEXT,
            "claimed": _FLAG,
        }
    ],
    "expected_errors": {},
    "expected_pair_errors": [{}],
    "warnings": [{"code": _TEXT, "text": _TEXT}],
}
