"""``accord check``: whether what a file claims is true."""

import json
import sys
import tomllib
from collections.abc import Hashable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import typer

from accord import __version__
from accord.accounting.figures import as_float, exact_text
from accord.cli.document import as_json
from accord.cli.guard import REFUTED, Stop, guarded
from accord.cli.rounds import relation_named
from accord.core.errors import InvalidParameter
from accord.laws import DPCheck, FiniteKernel, FiniteLaw, check_dp
from accord.reports import RELEASE_FORMAT, check_release, release_json, taken_at_word
from accord.synthesis import SyntheticTable
from accord.theory.planning import Certificate, Plan

__all__ = ["check"]

_LARGEST_FILE = 64 << 20
_ROWS = 1000
_MECHANISM = {"epsilon", "delta", "neighbours", "rows"}


def check(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="A mechanism (TOML or JSON with its law on each input), plans as accord plan --json prints them, a "
            "release.json, or a model.",
            show_default=False,
        ),
    ],
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Repeat the simulations behind plans of method C.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Check a claim for certain: a finite mechanism in rationals, the certificates of plans, the sums of a release.

    Exit codes: 0 it holds; 2 the file is not of these kinds, or is a release of format 1, which has too little to be
    worked out; 4 the claim is refuted.
    """
    with guarded():
        content = _of_model(file) if is_zipfile(file) else _read(file)
        if content.get("format") == RELEASE_FORMAT:
            found = _release(content)
        elif "plans" in content or "inequalities" in content:
            found = _plans(content, recompute=recompute)
        elif content.keys() >= _MECHANISM:
            found = _mechanism(content)
        else:
            raise InvalidParameter(
                "the file is neither a mechanism (it needs epsilon, delta, neighbours and rows), nor a plan, nor a "
                "release: see docs/check-and-audit.md."
            )
        if json:
            sys.stdout.write(as_json({"accord": __version__, **found}))
        else:
            for line in found["lines"]:
                print(line)
        sys.stdout.flush()
        if not found["holds"]:
            raise Stop(REFUTED, "the claim is refuted.")


def _read(file: Path) -> dict[str, Any]:
    is_json = file.suffix.lower() == ".json"
    try:
        text = _text(file)
        content = json.loads(text, object_pairs_hook=_once) if is_json else tomllib.loads(text)
    except OSError as error:
        raise InvalidParameter(f"the file cannot be read: {error.strerror}.") from None
    except InvalidParameter:
        raise
    except (ValueError, RecursionError):
        raise InvalidParameter(f"the file is not {'JSON' if is_json else 'TOML'} in UTF-8.") from None
    if not isinstance(content, dict):
        raise InvalidParameter("the file must hold one table or object.")
    return content


def _of_model(file: Path) -> dict[str, Any]:
    """Return what release.json would say of a kept release."""
    synthetic = SyntheticTable.load(file)
    report = synthetic.report_of(synthetic.cells(_ROWS, seed=1))
    found: dict[str, Any] = json.loads(release_json(report))
    return found


def _text(file: Path) -> str:
    if file.stat().st_size > _LARGEST_FILE:
        raise InvalidParameter("the file is larger than 64 MiB: it is no claim.")
    return file.read_text(encoding="utf-8")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; readers differ in what they take of a key that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidParameter("a key stands twice in one object of the file: it says two things at once.")
    return found


# --- plans ------------------------------------------------------------------------------------------------------------


def _plans(content: Mapping[str, Any], *, recompute: bool) -> dict[str, Any]:
    entries = content.get("plans", [content])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidParameter("plans must be a list of objects.")
    verdicts = []
    for entry in entries:
        named = {"method": entry.get("name", entry.get("method"))}
        parts = {key: entry.get(key) for key in ("numbers", "inequalities", "premises")}
        certificate = Certificate.from_json(json.dumps({**named, **parts}))
        holds = certificate.verify(recompute=recompute)
        stated = entry.get("records", certificate.numbers.get("records_needed"))
        wrong = _contradictions(entry, content, certificate)
        verdicts.append({"method": certificate.method, "records": stated, "holds": holds and not wrong, "wrong": wrong})
    lines = [
        f"{entry['method']}: {entry['records']} records: {'holds' if entry['holds'] else 'REFUTED'}"
        + (f" ({', '.join(entry['wrong'])}: not what its certificate says)" if entry["wrong"] else "")
        for entry in verdicts
    ]
    return {"kind": "plans", "holds": all(v["holds"] for v in verdicts), "plans": verdicts, "lines": lines}


_SIZES = ("records", "blocks", "block_size", "synthetic_records", "draws", "parts")
_ASKED = ("alpha", "beta", "epsilon", "delta")
_BESIDES = {"accord", "learner", "plans", "recomputed", "name", "method", "numbers", "inequalities", "premises"}


def _contradictions(entry: Mapping[str, Any], content: Mapping[str, Any], certificate: Certificate) -> list[str]:
    """Return the keys of a plan, and of the file around it, that say something else than the plan's certificate."""
    numbers = certificate.numbers
    if entry is content and "blocks" not in entry:  # a certificate by itself
        return []
    plan = Plan.of(certificate)
    wrong = [key for key in _SIZES if key in entry and entry[key] != getattr(plan, key)]
    if "name" in entry and entry.get("method") != plan.method:
        wrong.append("method")
    for key in _ASKED:
        for place in (entry, content):
            if key in place and not _is_number(place[key], numbers.get(key)) and key not in wrong:
                wrong.append(key)
    known = {*_BESIDES, *_SIZES, *_ASKED}
    return wrong + sorted({key for place in (entry, content) for key in place if key not in known})


def _is_number(text: object, number: object) -> bool:
    try:
        return isinstance(text, (str, int)) and Fraction(text) == Fraction(str(number))
    except (ValueError, ZeroDivisionError):
        return False


def _release(content: Mapping[str, Any]) -> dict[str, Any]:
    try:
        faults = check_release(content)
    except InvalidParameter:
        raise
    except (ValueError, ArithmeticError):  # numbers beyond what can be worked with
        faults = ("a number is out of range",)
    words = () if faults else taken_at_word(content)
    lines = [f"release: {fault}" for fault in faults] or [_good_release(content)]
    return {
        "kind": "release",
        "holds": not faults,
        "faults": list(faults),
        "warnings": [verdict.document() for verdict in words],
        "lines": [*lines, *(f"release: {verdict}" for verdict in words)],
    }


def _good_release(content: Mapping[str, Any]) -> str:
    """Return what was found to be true, and what was not looked at."""
    guarantee = content["guarantee"]
    count = len(content["stages"])
    return (
        f"release: well formed; its {count} stages, worked out again, compose to at most ({guarantee['epsilon']}, "
        f"{guarantee['delta']}); that it was made as it says, and that no stage is missing, is the word of whoever ran "
        f"it"
    )


# --- mechanisms -------------------------------------------------------------------------------------------------------


def _mechanism(content: Mapping[str, Any]) -> dict[str, Any]:
    rows = content["rows"]
    if not isinstance(rows, list) or not rows:
        raise InvalidParameter("rows must be a list, each with an input and a law.")
    inputs = [_input(row) for row in rows]
    kernel = FiniteKernel.of(inputs, laws=[_law(row) for row in rows])
    given = content["neighbours"]
    neighbours = relation_named(given) if isinstance(given, str) else [_pair(pair) for pair in _list(given)]
    epsilon, delta = (_number(content[name]) for name in ("epsilon", "delta"))
    found = check_dp(kernel, neighbours=neighbours, epsilon=epsilon, delta=delta)
    return {
        "kind": "mechanism",
        "holds": found.holds,
        "epsilon": str(epsilon),
        "delta": str(delta),
        "smallest_delta": exact_text(found.delta, up=True),
        "smallest_delta_float": as_float(found.delta, up=True),
        "worst": {"pair": [_plain(one) for one in found.witness.pair], "event": [*map(str, found.witness.event)]},
        "lines": _told(found, epsilon=str(epsilon), delta=str(delta)),
    }


def _told(found: DPCheck, *, epsilon: str, delta: str) -> list[str]:
    first, second = (str(_plain(one)) for one in found.witness.pair)
    event = ", ".join(str(outcome) for outcome in found.witness.event) or "none"
    return [
        f"({epsilon}, {delta}): {'holds' if found.holds else 'REFUTED'}",
        f"  smallest delta at this epsilon: {as_float(found.delta, up=True):.9g}",
        f"  worst: input {first} against {second}, output in {{{event}}}",
    ]


def _list(given: object) -> list[Any]:
    if not isinstance(given, list):
        raise InvalidParameter(
            "neighbours must be a list of pairs of inputs, 'replace one', 'replace one in place' or 'add or remove "
            "one'."
        )
    return given


def _pair(pair: object) -> tuple[Hashable, Hashable]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InvalidParameter("neighbours must consist of pairs of inputs.")
    return _hashable(pair[0]), _hashable(pair[1])


def _input(row: object) -> Hashable:
    if not isinstance(row, dict) or not {"input", "law"} <= row.keys():
        raise InvalidParameter("each row must have an input and a law.")
    return _hashable(row["input"])


def _hashable(value: object) -> Hashable:
    """Return an input; a list is a tuple of records."""
    if isinstance(value, list):
        return tuple(_hashable(entry) for entry in value)
    if not isinstance(value, (str, int, float, bool)):
        raise InvalidParameter("an input must be text, a number, a boolean, or a list of these.")
    return value


def _plain(value: object) -> object:
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _law(row: Mapping[str, Any]) -> FiniteLaw:
    law = row["law"]
    if not isinstance(law, dict):
        raise InvalidParameter("a law must be a table of outcomes and weights, such as { yes = '3/4', no = '1/4' }.")
    return FiniteLaw({outcome: _number(weight) for outcome, weight in law.items()})


def _number(value: object) -> int | float | str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidParameter("numbers are written as 1, 0.5 or '3/4'.")
    return value
