"""Rounds as people write them: ``0.1x1000`` on the command line, or a TOML or JSON file."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, final

from accord.accounting.losses import ExponentialLoss, LaplaceLoss
from accord.accounting.noise_losses import DiscreteGaussianLoss, DiscreteLaplaceLoss, GaussianLoss
from accord.core import check as _check
from accord.core.errors import AccordError, InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP

__all__ = ["KINDS", "Plan", "Rounds", "from_file", "from_flag", "relation_named"]

_MOST_ROUNDS = 1_000_000
_LARGEST_FILE = 1 << 20
_COUNT = re.compile(r"^(.*?)\s*,?\s*x\s*(\d+)$", re.DOTALL)

Make = Callable[[list[str], Neighbouring, str], Any]

KINDS: dict[str, tuple[tuple[str, ...], Make]] = {
    "pure": (("epsilon",), lambda n, relation, unit: PureDP(n[0], relation, unit)),
    "approx": (("epsilon", "delta"), lambda n, relation, unit: ApproxDP(n[0], n[1], relation, unit)),
    "laplace": (("epsilon",), lambda n, relation, unit: LaplaceLoss(n[0], relation, unit)),
    "exponential": (("epsilon",), lambda n, relation, unit: ExponentialLoss(n[0], relation, unit)),
    # The discrete ones: noise on an integer that moves by at most 1.
    "discrete-laplace": (("epsilon",), lambda n, relation, unit: DiscreteLaplaceLoss(n[0], 1, relation, unit)),
    "discrete-gaussian": (
        ("sigma",),
        lambda n, relation, unit: DiscreteGaussianLoss(sigma=n[0], neighbouring=relation, unit=unit),
    ),
    "gaussian": (("sigma",), lambda n, relation, unit: GaussianLoss(sigma=n[0], neighbouring=relation, unit=unit)),
}
"""Kinds of rounds: the names of their numbers, and how to make one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Equal rounds, as written."""

    kind: str
    numbers: tuple[str, ...]
    count: int

    def loss(self, neighbouring: Neighbouring, unit: str) -> Any:  # noqa: ANN401
        """Return the guarantee or loss of one of them."""
        try:
            return KINDS[self.kind][1](list(self.numbers), neighbouring, unit)
        except AccordError as error:
            raise InvalidParameter(f"{self.kind} {','.join(self.numbers)}: {error}") from None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a file says; None where it says nothing."""

    rounds: tuple[Rounds, ...]
    delta: str | None = None
    neighbouring: str | None = None
    unit: str | None = None


def relation_named(name: str) -> Neighbouring:
    """Return the relation with this name."""
    for relation in Neighbouring:
        if name.replace("-", " ").strip() == relation.value:
            return relation
    names = " or ".join(repr(relation.value) for relation in Neighbouring)
    raise InvalidParameter(f"neighbouring must be {names}.")


def from_flag(kind: str, text: str) -> Rounds:
    """Read ``0.1x1000``, ``0.1,1e-10x1000`` or ``sigma=50,x1000``; without a count it is one round."""
    found = _COUNT.match(text.strip())
    body, count = (found[1], found[2]) if found else (text, "1")
    names = KINDS[kind][0]
    parts = [part.strip() for part in body.split(",")]
    shape = ",".join(name.upper() for name in names)
    if len(parts) != len(names):
        raise InvalidParameter(f"--{kind} must be written {shape}xCOUNT, such as --{kind} {_example(kind)}.")
    numbers = []
    for name, part in zip(names, parts, strict=True):
        key, equals, value = part.rpartition("=")
        if equals and key.strip() != name:
            raise InvalidParameter(f"--{kind} must be written {shape}xCOUNT, such as --{kind} {_example(kind)}.")
        numbers.append(value.strip())
    return _checked(kind, numbers, count)


def _example(kind: str) -> str:
    return {"approx": "0.1,1e-10x1000", "gaussian": "50x1000"}.get(kind, "0.1x1000")


def _checked(kind: str, numbers: list[str], count: object) -> Rounds:
    total = _check.integer(f"the count of {kind}", count, least=1, most=_MOST_ROUNDS)
    return Rounds(kind=kind, numbers=tuple(numbers), count=total)


def from_file(path: Path) -> Plan:
    """Read a file: ``delta``, ``neighbouring``, ``unit``, and a list ``rounds`` of tables with ``kind`` and numbers."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InvalidParameter("the file of rounds is larger than 1 MB: is it the right one?")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"the file of rounds cannot be read: {error.strerror}.") from None
    try:
        text = data.decode("utf-8")
        # Decimals as written: 0.1 is one tenth here, as it is on the command line.
        if path.suffix == ".json":
            content = json.loads(text, parse_float=Decimal)
        else:
            content = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise InvalidParameter("the file of rounds is no TOML (or, if it ends in .json, no JSON) in UTF-8.") from None
    if not isinstance(content, dict):
        raise InvalidParameter("the file of rounds must be a table with a list 'rounds'.")
    _known(content, {"delta", "neighbouring", "unit", "rounds"}, where="the file")
    listed = content.get("rounds")
    if not isinstance(listed, list) or not listed:
        raise InvalidParameter("the file of rounds needs a list 'rounds' with at least one entry.")
    return Plan(
        rounds=tuple(_entries(listed)),
        delta=_text(content, "delta"),
        neighbouring=_text(content, "neighbouring"),
        unit=_text(content, "unit"),
    )


def _entries(listed: list[Any]) -> Iterator[Rounds]:
    for number, entry in enumerate(listed, start=1):
        where = f"entry {number} of rounds"
        if not isinstance(entry, dict) or entry.get("kind") not in KINDS:
            raise InvalidParameter(f"{where} needs a kind: {', '.join(KINDS)}.")
        kind = entry["kind"]
        names = KINDS[kind][0]
        _known(entry, {"kind", "count", *names}, where=where)
        numbers = [_text(entry, name) for name in names]
        if None in numbers:
            raise InvalidParameter(f"{where} needs {' and '.join(names)}.")
        yield _checked(kind, [number for number in numbers if number is not None], entry.get("count", 1))


def _known(table: dict[str, Any], names: set[str], *, where: str) -> None:
    if unknown := sorted(set(table) - names):
        raise InvalidParameter(f"{where} has an unknown key {unknown[0]!r}; known are {', '.join(sorted(names))}.")


def _text(table: dict[str, Any], name: str) -> str | None:
    value = table.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise InvalidParameter(f"{name} must be a number or a word.")
    return str(value)
