"""Guarantees, sensitivities, releases and no answer, as values."""

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from accord.errors import AccordError, InvalidParameter
from accord.privacy import ApproxDP, Neighbouring, NoAnswer, NoAnswerType, PureDP, Release, Sensitivity

BAD_NUMBERS = [
    -1,
    "-1e-9",
    math.nan,
    math.inf,
    -math.inf,
    "nan",
    "one",
    "",
    "1/0",
    None,
    True,
    False,
    1j,
    [1],
    Decimal("NaN"),
]


# --- guarantees -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_guarantees_refuse_what_is_no_loss(bad: Any) -> None:
    for make in (lambda: PureDP(bad), lambda: ApproxDP(bad, "0.1"), lambda: ApproxDP(1, bad)):
        with pytest.raises(InvalidParameter):
            make()


@pytest.mark.parametrize("delta", [1, "1.0", 1.5, 10**9])
def test_a_delta_of_one_is_refused(delta: Any) -> None:
    with pytest.raises(InvalidParameter, match="nothing is promised"):
        ApproxDP(1, delta)


@pytest.mark.parametrize("relation", [None, "replace one", 1, Neighbouring])
def test_guarantees_refuse_an_unknown_relation(relation: Any) -> None:
    for make in (lambda: PureDP(1, relation), lambda: ApproxDP(1, 0, relation), lambda: Sensitivity(1, relation)):
        with pytest.raises(InvalidParameter, match="Neighbouring"):
            make()


@pytest.mark.parametrize("unit", ["", None, 1])
def test_guarantees_refuse_a_unit_without_a_name(unit: Any) -> None:
    for make in (lambda: PureDP(1, unit=unit), lambda: ApproxDP(1, 0, unit=unit)):
        with pytest.raises(InvalidParameter, match="unit"):
            make()


def test_numbers_are_exact() -> None:
    assert PureDP("0.1").epsilon == Fraction(1, 10)
    assert PureDP(0.1).epsilon == Fraction(1, 10)
    assert PureDP(Decimal("0.1")) == PureDP(Fraction(1, 10)) == PureDP("1/10")
    assert ApproxDP(0, 0).epsilon == ApproxDP(0, 0).delta == 0
    assert PureDP(3).delta == 0


def test_equality_and_hash_see_every_field() -> None:
    values: list[Any] = [
        PureDP(1),
        PureDP(2),
        PureDP(1, Neighbouring.ADD_OR_REMOVE_ONE),
        PureDP(1, unit="person"),
        ApproxDP(1, 0),
        ApproxDP(1, "0.1"),
        ApproxDP(2, "0.1"),
        ApproxDP(1, "0.1", Neighbouring.ADD_OR_REMOVE_ONE),
        ApproxDP(1, "0.1", unit="person"),
    ]
    assert len(set(values)) == len(values)
    assert {*values, PureDP("1.0"), ApproxDP(1.0, "1/10")} == set(values)
    for value in values:
        assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value  # noqa: S301


@pytest.mark.parametrize("value", [PureDP(1), ApproxDP(1, "0.1"), Sensitivity(1), Release(1, PureDP(1))], ids=repr)
def test_values_are_frozen(value: Any) -> None:
    for name in [field.name for field in dataclasses.fields(value)]:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    with pytest.raises((AttributeError, TypeError)):
        value.something_else = 1


def test_at() -> None:
    assert PureDP(2).at("1e-9") == 2
    assert PureDP(2).at(0) == 2
    guarantee = ApproxDP(2, "1e-6")
    assert guarantee.at("1e-6") == 2
    assert guarantee.at("0.1") == 2
    assert guarantee.at("1e-7") == math.inf
    assert guarantee.at(0) == math.inf


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_at_refuses_what_is_no_delta(bad: Any) -> None:
    for guarantee in (PureDP(1), ApproxDP(1, "0.1")):
        with pytest.raises(InvalidParameter):
            guarantee.at(bad)


# --- sensitivity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_sensitivity_refuses_what_is_no_bound(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity"):
        Sensitivity(bad)


def test_sensitivity_may_be_zero() -> None:
    assert Sensitivity(0).bound == 0
    assert Sensitivity(1) == Sensitivity("1.0") != Sensitivity(1, Neighbouring.ADD_OR_REMOVE_ONE)
    assert hash(Sensitivity(1)) == hash(Sensitivity("1.0"))


# --- neighbouring -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", list(Neighbouring))
def test_relations_are_singletons_with_a_readable_name(relation: Neighbouring) -> None:
    assert pickle.loads(pickle.dumps(relation)) is relation  # noqa: S301
    assert repr(relation) == f"Neighbouring.{relation.name}"
    assert eval(repr(relation), {"Neighbouring": Neighbouring}) is relation  # noqa: S307


# --- release and no answer --------------------------------------------------------------------------------------------


def test_map_keeps_the_guarantee_and_changes_the_value() -> None:
    guarantee = ApproxDP(1, "1e-6", unit="person")
    release = Release(20, guarantee).map(str)
    assert release == Release("20", guarantee)
    assert release.guarantee is guarantee


def test_map_does_not_touch_no_answer() -> None:
    calls: list[object] = []
    release: Release[int] = Release(NoAnswer, PureDP(1))
    assert release.map(calls.append).value is NoAnswer
    assert release.map(calls.append).guarantee == PureDP(1)
    assert calls == []


@pytest.mark.parametrize("value", [0, "", None, False, ()])
def test_a_falsy_value_is_an_answer(value: object) -> None:
    assert Release(value, PureDP(1)).map(lambda found: [found]).value == [value]


def test_no_answer_is_falsy_single_and_survives_copies() -> None:
    assert not NoAnswer
    assert repr(NoAnswer) == "NoAnswer"
    assert copy.copy(NoAnswer) is copy.deepcopy(NoAnswer) is pickle.loads(pickle.dumps(NoAnswer)) is NoAnswer  # noqa: S301
    assert isinstance(NoAnswer, NoAnswerType)
    assert list(NoAnswerType) == [NoAnswer]
    others: list[object] = [0, False, None, "", "NoAnswer"]
    assert NoAnswer not in others


def test_release_equality_and_hash() -> None:
    assert Release(1, PureDP(1)) == Release(1, PureDP("1.0"))
    assert Release(1, PureDP(1)) != Release(1, PureDP(2))
    assert len({Release(1, PureDP(1)), Release(1, PureDP(1)), Release(NoAnswer, PureDP(1))}) == 2


def test_refusals_are_value_errors_and_ours() -> None:
    assert issubclass(InvalidParameter, ValueError)
    assert issubclass(InvalidParameter, AccordError)
