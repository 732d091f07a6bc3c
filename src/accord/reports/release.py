"""``release.json``: a release for machines, with a stable format, and the check of one."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from accord.accounting.account import detail_of, rule_of
from accord.accounting.figures import as_float
from accord.accounting.of_stages import GRAIN, KNOWN, rebuilt, total_of
from accord.core.errors import InvalidParameter
from accord.core.exact import to_fraction
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.release import SLACK, Composed, Parameter, Stage, leaves, parameters_of
from accord.core.verdict import Verdict
from accord.noise.discrete_gaussian import DiscreteGaussian
from accord.reports.faults import account_faults, consistency_faults, table_faults
from accord.reports.report import Report
from accord.tables.names import listed

__all__ = [
    "RELEASE_FORMAT",
    "SHAPE",
    "SHAPE_1",
    "check_release",
    "number_faults",
    "release_json",
    "stage_faults",
    "sum_faults",
    "taken_at_its_word",
    "taken_at_word",
]


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


_COUNTS = frozenset({"count", "draws", "entries", "threshold"})
_TEXTS = frozenset({"neighbouring", "rule", "coupling"})
_VOTES = frozenset({"BestOfDraws", "StableMode", SLACK})
_DEEPEST = 16
_ORDER = "composition does not name every stage once, in order"


def number_faults(content: Mapping[str, Any], *, near: float | None) -> list[str]:
    """Return what is wrong with the promise itself.

    ``near`` is how far a float may be off, relatively, in files of format 1; None for the least float not below.
    """
    guarantee = content["guarantee"]
    faults = []
    for name in ("epsilon", "delta"):
        number, stated = _fraction(guarantee[name]), guarantee[f"{name}_float"]
        if number is None or number < 0 or (name == "delta" and number >= 1):
            faults.append(f"guarantee.{name} is no number that can be promised")
        elif near is not None:
            if not math.isclose(float(number), stated, rel_tol=near, abs_tol=near * 1e-300):
                faults.append(f"guarantee.{name} and {name}_float differ")
        elif Fraction(stated) < number:
            faults.append(f"guarantee.{name}_float is below the {name} that it stands for: they differ")
        elif stated != as_float(number, up=True):
            faults.append(f"guarantee.{name} and {name}_float differ")
    if guarantee["neighbouring"] not in {relation.value for relation in Neighbouring}:
        faults.append("guarantee.neighbouring is no relation")
    return faults


def sum_faults(content: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the sum of what the stages of format 1 state: it is at most any total."""
    guarantee = content["guarantee"]
    faults: list[str] = []
    for name in ("epsilon", "delta"):
        promised = _fraction(guarantee[name])
        parts = [_fraction(stage[name]) for stage in content["stages"] if stage[name] is not None]
        if any(part is None or part < 0 for part in parts):
            faults.append(f"a stage's {name} is no number")
        elif promised is not None and sum((part for part in parts if part is not None), Fraction(0)) > promised:
            faults.append(f"the stages spend more {name} than is promised")
    return faults


def stage_faults(content: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with stages of format 2, with how they compose, and with their total."""
    faults: list[str] = []
    stages: list[Stage] = []
    for place, entry in enumerate(content["stages"]):
        try:
            stage = _stage(entry)
            stages.append(stage)
            wrong = _stage_fault(stage) or _words_fault(stage, entry)
        except (InvalidParameter, TypeError, ValueError, KeyError, OverflowError):
            wrong = "states numbers or parameters that its mechanism does not take"
        if wrong is not None:
            faults.append(f"stages.{place} {wrong}")
    return faults or _total_faults(content, stages)


def taken_at_its_word(content: Mapping[str, Any]) -> tuple[list[int], bool]:
    """Return the stages of a file without faults that nothing can be built from, and whether groups are parallel."""
    numbers = [
        place for place, stage in enumerate(content["stages"]) if stage["claimed"] or stage["mechanism"] == SLACK
    ]
    return numbers, any(node["how"] == "parallel" for node in _groups(content["composition"]))


def _groups(node: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - a number or a group
    if isinstance(node, Mapping):
        yield node
        for inner in node["stages"]:
            yield from _groups(inner)


# --- the total --------------------------------------------------------------------------------------------------------


def _total_faults(content: Mapping[str, Any], stages: list[Stage]) -> list[str]:
    guarantee = content["guarantee"]
    relations = {dict(stage.parameters).get("neighbouring", Neighbouring.REPLACE_ONE.value) for stage in stages}
    if not relations <= _implying(guarantee["neighbouring"]):
        return ["a stage holds under another relation than the promise"]
    numbers = iter(enumerate(stages))
    try:
        composed = _composed(content["composition"], numbers=numbers, depth=0)
    except (InvalidParameter, TypeError, ValueError, KeyError, StopIteration):
        return [_ORDER]
    if next(numbers, None) is not None or not isinstance(composed, Composed):
        return [_ORDER]
    return _group_faults(composed) or _spending_faults(guarantee, composed)


def _spending_faults(guarantee: Mapping[str, Any], composed: Composed) -> list[str]:
    if guarantee["composition"] != rule_of(composed):
        return ["guarantee.composition says another rule than composition"]
    try:
        total = total_of(composed)
    except InvalidParameter:
        return ["no total is known for the stages as they are said to compose"]
    return [
        f"the stages spend more {name} than is promised"
        for name, spent in zip(("epsilon", "delta"), total, strict=True)
        if spent > (_fraction(guarantee[name]) or Fraction(0))
    ]


def _implying(relation: str) -> set[str]:
    """Return the relations under which a stage's guarantee is one under this."""
    asked = [one for one in Neighbouring if one.value == relation]
    return {one.value for one in Neighbouring if asked and one.implies(asked[0])}


def _composed(node: Any, *, numbers: Iterator[tuple[int, Stage]], depth: int) -> Stage | Composed:  # noqa: ANN401
    if type(node) is int:
        place, stage = next(numbers)
        if place != node:
            raise InvalidParameter("the stages are out of order.")
        return stage
    if not isinstance(node, Mapping) or depth > _DEEPEST or node.get("how") not in {"basic", "numeric", "parallel"}:
        raise InvalidParameter("this is no composition.")
    own = {"numeric": {"delta"}, "parallel": {"surplus"}}.get(node["how"], set())
    if not node.keys() <= {"how", "stages"} | own or not isinstance(node["stages"], list):
        raise InvalidParameter("this group has parts that its kind has not.")
    surplus = _exact(node.get("surplus", "0"))
    if surplus < 0:
        raise InvalidParameter("a surplus is at least 0.")
    inner = [_composed(part, numbers=numbers, depth=depth + 1) for part in node["stages"]]
    delta = None if node.get("delta") is None else _exact(node["delta"])
    return Composed(how=node["how"], stages=tuple(inner), delta=delta, surplus=surplus)


def _group_faults(group: Composed) -> list[str]:
    """Return what no release of accord has: odd parallel groups, and curves at another delta than their group's."""
    if group.how == "parallel" and not _may_be_parallel(group):
        return ["a parallel group is of stages, or has a surplus, for which no theorem says that the largest counts"]
    alone = [one for one in group.stages if isinstance(one, Stage) and one.mechanism == "DiscreteGaussian"]
    if group.how == "numeric" and any(dict(one.parameters)["delta"] != group.delta for one in alone):
        return ["a stage in a numeric group has another delta than the group"]
    return [fault for inner in group.stages if isinstance(inner, Composed) for fault in _group_faults(inner)]


def _may_be_parallel(group: Composed) -> bool:
    """Return whether it is of choices with whole scores and their surplus, or of votes of different units."""
    alone = [one for one in group.stages if isinstance(one, Stage)]
    if len(alone) == len(group.stages) and all(one.mechanism == "Exponential" for one in alone):
        made = [rebuilt(one) for one in alone]
        whole = all(one.step <= 1 and not one.monotone for one in made)
        return group.surplus == GRAIN and whole and len({one.sensitivity for one in made}) == 1
    votes = all(one.claimed or one.mechanism in _VOTES for one in leaves(group))
    basic = all(one.how == "basic" for one in group.stages if isinstance(one, Composed))
    return group.surplus == 0 and votes and basic


# --- stages -----------------------------------------------------------------------------------------------------------


def _stage(entry: Mapping[str, Any]) -> Stage:
    epsilon, delta = entry["epsilon"], entry["delta"]
    if (epsilon is None) != (delta is None):
        raise InvalidParameter("a stage states both numbers, or none.")
    return Stage(
        mechanism=entry["mechanism"],
        parameters=tuple((name, _parameter(name, value)) for name, value in entry["parameters"].items()),
        guarantee=None if epsilon is None else ApproxDP(_exact(epsilon), _exact(delta)),
        what=entry["what"],
        claimed=entry["claimed"],
    )


def _parameter(name: str, value: object) -> Parameter:
    if isinstance(value, bool) or (isinstance(value, int) and name in _COUNTS):
        return value
    return value if isinstance(value, str) and name in _TEXTS else _exact(value)


def _exact(text: object) -> Fraction:
    found = _fraction(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidParameter("a number is not readable.")
    return found


def _stage_fault(stage: Stage) -> str | None:
    """Return what is wrong with a stage; of one that is somebody's word only that it states nothing."""
    if stage.claimed:
        if stage.mechanism in KNOWN or stage.mechanism == SLACK:
            return "is of a mechanism of accord and said to be somebody's word: accord's are worked out"
        return "states no guarantee" if stage.guarantee is None else None
    return _slack_fault(stage) if stage.mechanism == SLACK else _own_fault(stage)


def _own_fault(stage: Stage) -> str | None:
    """Return what a stage of a mechanism of accord says that this mechanism has not."""
    mechanism = rebuilt(stage)
    if mechanism is None:
        return "is of a mechanism that this accord does not know"
    own, given = dict(parameters_of(mechanism)), dict(stage.parameters)
    stated = stage.guarantee
    numbers = None if stated is None else (stated.epsilon, stated.delta)
    if isinstance(mechanism, DiscreteGaussian):
        total_of(stage)
        own |= {"entries": int(given["entries"]), "delta": Fraction(given["delta"])}
        fault = None if stated is None else "states a guarantee, and its mechanism has a curve"
    elif numbers == (mechanism.guarantee.epsilon, mechanism.guarantee.delta):
        fault = None
    else:
        fault = "states another guarantee than its mechanism has with these parameters"
    return fault if _typed(given) == _typed(own) else "states other parameters than its mechanism has"


def _typed(parameters: Mapping[str, Parameter]) -> dict[str, tuple[type, Parameter]]:
    return {name: (type(value), value) for name, value in parameters.items()}


def _slack_fault(stage: Stage) -> str | None:
    """Return what is wrong with the charge for a coupling: it is a delta, and names the coupling alone."""
    stated, own = stage.guarantee, dict(stage.parameters)
    if stated is None:
        return "states no guarantee"
    named = own.keys() == {"coupling"} and isinstance(own["coupling"], str)
    return None if named and stated.epsilon == 0 and stated.delta > 0 else "is no delta of a named coupling"


def _words_fault(stage: Stage, entry: Mapping[str, Any]) -> str | None:
    return None if entry["detail"] == detail_of(stage) else "has a detail that says other numbers than its parameters"


def _fraction(text: str) -> Fraction | None:
    try:
        return to_fraction(text)
    except (TypeError, ValueError):
        return None


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
