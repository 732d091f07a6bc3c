"""``accord audit``: how much epsilon is lost for certain."""

import math
import runpy
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from accord import __version__
from accord.accounting.figures import as_float, exact_text
from accord.audit import Evidence, audit_laws, audit_runs
from accord.cli.audit_targets import TARGETS, Target
from accord.cli.document import as_json
from accord.cli.guard import REFUTED, Stop, guarded, say
from accord.core import check as _check
from accord.core.errors import AccordError, InvalidParameter

__all__ = ["audit"]


def audit(
    *,
    target: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(TARGETS)}; or a Python FILE.py of yours.", show_default=False),
    ],
    epsilon: Annotated[str, typer.Option(help="The epsilon that is claimed.")] = "1",
    delta: Annotated[str | None, typer.Option(help="The delta that is claimed [default: the mechanism's].")] = None,
    runs: Annotated[str, typer.Option(help="Runs on each neighbour, where laws cannot be enumerated.")] = "20000",
    confidence: Annotated[str, typer.Option(help="Confidence of a bound from runs.")] = "0.999",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Look for a proof that a mechanism or a whole pipeline loses more privacy than it claims.

    By enumeration where the law of the output is known, else from runs on two neighbours, by Clopper and Pearson.
    FILE.py is run, so read it first: it defines pair (two neighbouring datasets) and run(dataset), or law(dataset).
    Exit codes: 0 the claim stands; 2 bad input; 4 the claim is refuted.
    """
    with guarded():
        claimed = _check.epsilon(epsilon)
        times = _check.integer("runs", _whole(runs), least=100, most=10**9)
        _check.probability("confidence", confidence)
        found_target = _target(target, epsilon=epsilon, delta=delta)
        with _progress(wanted=not json and found_target.law is None) as progress:
            found = _evidence(found_target, runs=times, confidence=confidence, progress=progress)
        refuted = found.contradicts(claimed)
        content = {"accord": __version__, "target": found_target.name, **_document(found, claimed=epsilon)}
        if json:
            sys.stdout.write(as_json({**content, "refuted": refuted}))
        else:
            _print(found, name=found_target.name, claimed=epsilon, refuted=refuted)
        sys.stdout.flush()
        if refuted:
            raise Stop(REFUTED, "the claim is refuted.")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter("--runs must be a whole number.") from None


def _target(name: str, *, epsilon: str, delta: str | None) -> Target:
    if name in TARGETS:
        return TARGETS[name](epsilon, delta)
    if name.endswith(".py"):
        return _from_file(Path(name), delta=delta)
    raise InvalidParameter(f"there is no such target: give one of {', '.join(TARGETS)}, or a file that ends in .py.")


def _from_file(file: Path, *, delta: str | None) -> Target:
    if not file.is_file():
        raise InvalidParameter("the Python file does not exist.")
    try:
        found = runpy.run_path(str(file))
    except AccordError:
        raise
    except Exception as error:
        raise InvalidParameter(f"the Python file could not be run: it raised {type(error).__name__}.") from error
    pair = found.get("pair")
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InvalidParameter("the Python file must define pair: two neighbouring datasets.")
    law, run, score = (found.get(part) for part in ("law", "run", "score"))
    if not callable(law) and not callable(run):
        raise InvalidParameter("the Python file must define run(dataset), or law(dataset).")
    return Target(
        name=file.stem,
        delta=delta or "0",
        pairs=[(pair[0], pair[1])],
        law=law if callable(law) else None,
        run=run if callable(run) else None,
        score=score if callable(score) else None,
    )


def _evidence(target: Target, *, runs: int, confidence: str, progress: Any) -> Evidence:  # noqa: ANN401
    if target.law is not None:
        return audit_laws(target.law, pairs=target.pairs, delta=target.delta)
    if target.run is None:  # pragma: no cover - a target has one of the two
        raise AssertionError
    return audit_runs(
        target.run,
        pair=target.pairs[0],
        runs=runs,
        delta=target.delta,
        confidence=confidence,
        score=target.score,
        progress=progress,
    )


class _Lines:
    """Progress where there is no terminal: a line at each tenth of the runs, with the time that is likely left."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told = -1

    def __call__(self, done: int, all_runs: int) -> None:
        """Tell on stderr."""
        tenth = 10 * done // max(1, all_runs)
        if tenth == self._told:
            return
        self._told = tenth
        left = (time.monotonic() - self._began) * (all_runs - done) / done if done else None
        about = "" if left is None else f", about {math.ceil(left)} s left"
        say(f"running on both neighbours: {done} of {all_runs}{about}")


@contextmanager
def _progress(*, wanted: bool) -> Iterator[Any]:
    if not wanted:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("running on both neighbours")
        yield lambda done, all_runs: bar.update(task, completed=done, total=all_runs)


def _document(found: Evidence, *, claimed: str) -> dict[str, Any]:
    return {
        "claimed_epsilon": claimed,
        "epsilon_at_least": None if found.epsilon == float("inf") else found.epsilon,
        "unbounded": found.epsilon == float("inf"),
        "delta": exact_text(found.delta, up=False),
        "delta_float": as_float(found.delta, up=False),
        "method": "enumeration" if found.runs == 0 else "runs",
        "confidence": found.confidence,
        "runs": found.runs,
        "event": found.event,
        "likelier": found.likelier,
        "rarer": found.rarer,
    }


def _print(found: Evidence, *, name: str, claimed: str, refuted: bool) -> None:
    how = "by enumeration, certain" if not found.runs else f"from {found.runs} runs, confidence {found.confidence:.6g}"
    print(f"{name}: epsilon is at least {found.epsilon:.6g} at delta {as_float(found.delta, up=False):.3g} ({how})")
    print(f"  claimed: {claimed}; {'REFUTED' if refuted else 'not refuted'}")
    if found.event:
        print(f"  event: {found.event}; probability {found.likelier:.6g} against {found.rarer:.6g}")
