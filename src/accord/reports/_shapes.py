"""What a ``release.json`` must look like: a test for each value."""

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["SHAPE", "SHAPE_1"]


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: type(value) in kinds


_TEXT, _FLAG, _NONE = _is(str), _is(bool), _is(type(None))
_COUNT: Callable[[object], bool] = lambda value: type(value) is int and value >= 0  # noqa: E731
_NUMBER = _is(int, float)


def _share(value: Any) -> bool:  # noqa: ANN401
    """Tell finite numbers; an int beyond all floats is none."""
    return _NUMBER(value) and abs(value) <= sys.float_info.max


def _or_none(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or test(value)


def _list_of(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


SHAPE_1: dict[str, Any] = {
    "accord": _TEXT,
    "guarantee": {
        "epsilon": _TEXT,
        "epsilon_float": _share,
        "delta": _TEXT,
        "delta_float": _share,
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
        {"name": _TEXT, "kind": _TEXT, "labels": [_TEXT], "shares": [_share], "expected_error": _or_none(_share)}
    ],
    "pairs": [{"names": [_TEXT], "labels": [[_TEXT]], "shares": [[_share]], "expected_error": _or_none(_share)}],
    "budget": {},
    "warnings": [_TEXT],
}

SHAPE: dict[str, Any] = {
    **SHAPE_1,
    "rows_stand_for": _TEXT,
    "units": _or_none(_COUNT),
    "composition": {},
    "guarantee": {**SHAPE_1["guarantee"], "statement": _TEXT, "units": _or_none(_COUNT)},
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
    "columns": [
        {
            **SHAPE_1["columns"][0],
            "merged_error": _or_none(_share),
            "low": _or_none(_list_of(_share)),
            "high": _or_none(_list_of(_share)),
        }
    ],
    "pairs": [{**SHAPE_1["pairs"][0], "merged_share": _or_none(_share)}],
    "expected_errors": {},
    "expected_pair_errors": [{"names": [_TEXT], "expected_error": _share, "merged_share": _share}],
    "warnings": [{"code": _TEXT, "text": _TEXT}],
}
