"""The one account of a release: what it promises, to whom, and what ran. Nothing else in accord writes a guarantee."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, Protocol

from accord.accounting.figures import as_float, exact_text, short_text
from accord.core.exact import to_fraction
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.release import Composed, Stage, leaves
from accord.core.verdict import Verdict

__all__ = ["Accounted", "account", "amounts", "detail_of", "rows_stand_for", "rule_of", "stage_lines", "statement_of"]

_BASIC = "basic: epsilons and deltas of the stages add up"
_NUMERIC = "the stages outside the numeric group add to the total of those in it, which is composed numerically"
_PARALLEL = "; of a parallel group the largest count, because no unit can move the inputs of all of its stages in full"
_IN_PARTS = {"neighbouring", "delta", "epsilon"}


class Accounted(Protocol):
    """What an account is of, such as a `Release`."""

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """The promise."""

    @property
    def stages(self) -> tuple[Stage | Composed, ...]:
        """What ran."""


def account(
    release: Accounted,
    *,
    units: int | None,
    unit_column: str | None = None,
    written: tuple[str, str] | None = None,
    learner: str = "",
    warnings: Sequence[Verdict] = (),
    expected_errors: Mapping[str, Any] | None = None,
    expected_pair_errors: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return the account of a release as plain data: text, JSON and pages are made of it.

    Formal guarantees
    -----------------
    - Silence: a function of public facts and of what was released.
    - No float in it is below the number that it stands for.

    Parameters
    ----------
    release
        With its guarantee and its stages.
    units
        How many records, or units of privacy, there are: public under "replace one".
    unit_column
        The column that named the units, if there was one.
    written
        Epsilon and delta as a person wrote them: used where they are what is promised.
    learner
        What was learnt, in words.
    warnings
        What the release's reader must know.
    expected_errors
        Of each column: how far what was learnt is expected to be from the records.
    expected_pair_errors
        The same of each pair of columns that was measured.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace
    >>> found = account(DiscreteLaplace(sensitivity=1, scale=10).release(7), units=100)
    >>> found["guarantee"]["epsilon"], found["guarantee"]["epsilon_float"] >= 0.1, found["rows_stand_for"]
    ('0.1', True, 'a random record')
    >>> found["stages"][0]["parameters"]["scale"], found["composition"]
    ('10', {'how': 'basic', 'stages': [0]})

    """
    root = _root(release.stages)
    ran = list(leaves(root))
    return {
        "guarantee": {
            **_guarantee(release.guarantee, unit_column=unit_column, written=written),
            "units": units,
            "composition": rule_of(root),
        },
        "rows_stand_for": rows_stand_for(release.guarantee.unit),
        "units": units,
        "composition": _composition(root, numbers=iter(range(len(ran)))),
        "stages": [_stage(stage) for stage in ran],
        "learner": learner,
        "expected_errors": dict(expected_errors or {}),
        "expected_pair_errors": list(expected_pair_errors),
        "warnings": [verdict.document() for verdict in warnings],
    }


def rows_stand_for(unit: str) -> str:
    """Return what one row of the released law stands for: each unit of privacy weighs the same.

    Examples
    --------
    >>> rows_stand_for("record"), rows_stand_for("person")
    ('a random record', "a random person's random record")

    """
    return "a random record" if unit == "record" else f"a random {unit}'s random record"


def amounts(guarantee: PureDP | ApproxDP, *, written: tuple[str, str] | None = None) -> dict[str, Any]:
    """Return epsilon and delta, exact as text and as floats that are not below."""
    epsilon, delta = written or ("", "")
    return {
        "epsilon": _amount(guarantee.epsilon, written=epsilon),
        "epsilon_float": as_float(guarantee.epsilon, up=True),
        "delta": _amount(guarantee.delta, written=delta),
        "delta_float": as_float(guarantee.delta, up=True),
    }


def _guarantee(
    guarantee: PureDP | ApproxDP, *, unit_column: str | None, written: tuple[str, str] | None
) -> dict[str, Any]:
    found = amounts(guarantee, written=written)
    words = statement_of(found["epsilon"], found["delta"], neighbouring=guarantee.neighbouring, unit=guarantee.unit)
    return {
        "statement": words,
        **found,
        "neighbouring": guarantee.neighbouring.value,
        "unit": guarantee.unit,
        "unit_column": unit_column,
        "noise_seeded": False,
    }


def statement_of(epsilon: str, delta: str, *, neighbouring: Neighbouring, unit: str) -> str:
    """Return the promise as a sentence: with these numbers, under this relation, for this unit.

    Examples
    --------
    >>> statement_of("1", "0", neighbouring=Neighbouring.REPLACE_ONE, unit="record")
    '(1, 0)-differential privacy, replacing one record; the number of records n is public'

    """
    relation, public = _relation(neighbouring, alone=unit == "record")
    return f"({epsilon}, {delta})-differential privacy, {relation}; {public}"


def _relation(neighbouring: Neighbouring, *, alone: bool) -> tuple[str, str]:
    """Return in words what is replaced, and what of it is public."""
    what, noun = ("one record", "records") if alone else ("all records of one unit", "units")
    number = f"the number of {noun} n is public"
    if neighbouring is Neighbouring.ADD_OR_REMOVE_ONE:
        return f"adding or removing {what}", f"the number of {noun} is secret"
    if neighbouring is Neighbouring.REPLACE_ONE_IN_PLACE:
        return f"replacing {what} at its place", f"{number}, and so is the order in which {noun} first appear"
    return f"replacing {what}" if alone else f"replacing {what}, wherever they stand", number


def _amount(value: Fraction, *, written: str) -> str:
    """Return a number as it was written, or short where that is exact, or else as p/q."""
    for text in (written.strip(), short_text(value, up=True)):
        try:
            if text and to_fraction(text) == value:
                return text
        except (TypeError, ValueError):
            continue
    return exact_text(value, up=True)


# --- stages -----------------------------------------------------------------------------------------------------------


def _root(stages: tuple[Stage | Composed, ...]) -> Composed:
    if len(stages) == 1 and isinstance(stages[0], Composed):
        return stages[0]
    return Composed(how="basic", stages=stages)


def rule_of(root: Composed) -> str:
    """Return in words how stages that are composed so make a total."""
    ways = {one.how for one in _nodes(root) if isinstance(one, Composed)}
    return (_NUMERIC if "numeric" in ways else _BASIC) + (_PARALLEL if "parallel" in ways else "")


def _nodes(node: Stage | Composed) -> list[Stage | Composed]:
    inner = node.stages if isinstance(node, Composed) else ()
    return [node, *(deeper for one in inner for deeper in _nodes(one))]


def _composition(node: Stage | Composed, *, numbers: Any) -> Any:  # noqa: ANN401 - an iterator; plain data
    """Return the structure: stages by their number in the list of stages."""
    if isinstance(node, Stage):
        return next(numbers)
    found: dict[str, Any] = {"how": node.how}
    if node.delta is not None:
        found["delta"] = str(node.delta)
    if node.surplus:
        found["surplus"] = str(node.surplus)
    return {**found, "stages": [_composition(inner, numbers=numbers) for inner in node.stages]}


def _stage(stage: Stage) -> dict[str, Any]:
    own = stage.guarantee
    return {
        "what": stage.what,
        "mechanism": stage.mechanism,
        "parameters": {name: str(value) if isinstance(value, Fraction) else value for name, value in stage.parameters},
        "epsilon": None if own is None else exact_text(own.epsilon, up=True),
        "delta": None if own is None else exact_text(own.delta, up=True),
        "detail": detail_of(stage),
        "claimed": stage.claimed,
    }


def detail_of(stage: Stage) -> str:
    """Return the parameters of a stage, and what it spends, for people."""
    shown = [f"{name.replace('_', ' ')} {_number(value)}" for name, value in stage.parameters if name not in _IN_PARTS]
    if stage.guarantee is not None:
        shown.append(f"epsilon {_number(stage.guarantee.epsilon)}")
        if stage.guarantee.delta:
            shown.append(f"delta {_number(stage.guarantee.delta)}")
    return ", ".join(shown)


def _number(value: object) -> str:
    return f"{as_float(value, up=True):.4g}" if isinstance(value, Fraction) else str(value)


def stage_lines(stages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages of an account for people: equal ones that follow each other are one line with their number."""
    lines = []
    for (what, mechanism, detail), equal in groupby(
        stages, key=lambda one: (one["what"], one["mechanism"], one["detail"])
    ):
        lines.append({"times": len(list(equal)), "what": what, "mechanism": mechanism, "detail": detail})
    return lines
