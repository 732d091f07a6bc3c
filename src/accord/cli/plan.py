"""``accord plan``."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accord import __version__
from accord.cli.document import as_json
from accord.cli.guard import guarded
from accord.core.coupling import Learner
from accord.core.errors import InvalidParameter
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.theory.planning import Plan, all_plans
from accord.theory.planning import plan as one_plan
from accord.theory.planning.plots import plot_plans
from accord.theory.planning.verify import Proof

__all__ = ["plan"]

_COLUMNS = ("method", "n", "k", "b", "l", "R", "T")


def plan(
    *,
    learner: Annotated[
        str, typer.Option(help="'normal' (with --dimension) or 'categorical' (with --categories).")
    ] = "normal",
    dimension: Annotated[int, typer.Option(help="Number of columns of the normal law.")] = 1,
    categories: Annotated[int, typer.Option(help="Number of labels.")] = 2,
    alpha: Annotated[str, typer.Option(help="Total variation to be reached.")] = "0.1",
    beta: Annotated[str, typer.Option(help="Chance of failure.")] = "0.1",
    epsilon: Annotated[str, typer.Option(help="Privacy loss.")] = "1",
    delta: Annotated[str, typer.Option(help="Slack of the privacy promise.")] = "1e-6",
    method: Annotated[str, typer.Option(help="'all', 'theorem' or 'certified' (the best one only).")] = "all",
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Repeat the simulation behind method C, or certify a new setting.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw n against epsilon and alpha: a .png or .svg.", show_default=False)
    ] = None,
) -> None:
    """Say how many records a private learner needs: every method side by side, each with a checked certificate.

    n = k b T records, in k blocks of b, for l synthetic records, best of R draws, T parts. Exit codes: 0 done; 2 bad
    input.
    """
    with guarded():
        source, described = _learner(learner, dimension=dimension, categories=categories)
        asked = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": delta}
        plans = _plans(source, asked, method=method, recompute=recompute)
        repeated = _repeat(plans) if recompute else None
        if plot is not None:
            plot_plans(plot, source, **asked)
        if json:
            content = {
                "accord": __version__,
                "learner": described,
                **asked,
                "plans": [_document(name, one) for name, one in plans.items()],
                "recomputed": repeated,
            }
            sys.stdout.write(as_json(content))
        else:
            _print(f"{described}, " + ", ".join(f"{k} {v}" for k, v in asked.items()), plans, repeated)


def _learner(name: str, *, dimension: int, categories: int) -> tuple[Learner, str]:
    """Return the learner, and what its laws are in words."""
    if name == "normal":
        return GaussianLearner(dimension=dimension), f"normal laws on R^{dimension}"
    if name != "categorical":
        raise InvalidParameter("--learner must be 'normal' or 'categorical'.")
    if not 2 <= categories <= 100_000:
        raise InvalidParameter("--categories must be from 2 to 100000.")
    return EmpiricalLearner(range(categories)), f"laws on {categories} labels"


def _plans(source: Learner, asked: dict[str, str], *, method: str, recompute: bool) -> dict[str, Plan]:
    if method == "all":
        plans = all_plans(source, **asked, recompute=recompute)
        if not plans:
            raise InvalidParameter("no method found sizes: allow a larger alpha, beta, epsilon or delta.")
        return plans
    kind: Literal["theorem", "certified"]
    if method == "theorem":
        kind = "theorem"
    elif method == "certified":
        kind = "certified"
    else:
        raise InvalidParameter("--method must be 'all', 'theorem' or 'certified'.")
    found = one_plan(
        source,
        alpha=asked["alpha"],
        beta=asked["beta"],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        method=kind,
        recompute=recompute,
    )
    return {found.certificate.method: found}


def _repeat(plans: dict[str, Plan]) -> str | None:
    """Run the simulation behind method C again, from its seed."""
    pivotal = plans.get(Proof.PIVOTAL)
    if pivotal is None:
        return None
    start = time.perf_counter()
    if not pivotal.certificate.verify(recompute=True):
        raise InvalidParameter("the stored certificate does not come out again on this machine: do not rely on it.")
    numbers = pivotal.certificate.numbers
    took = time.perf_counter() - start
    return f"{numbers['successes']} of {numbers['runs']} simulated releases succeeded, as stored ({took:.0f} s)"


def _document(name: str, one: Plan) -> dict[str, Any]:
    return {
        "name": name,
        "method": one.method,
        "records": one.records,
        "blocks": one.blocks,
        "block_size": one.block_size,
        "synthetic_records": one.synthetic_records,
        "draws": one.draws,
        "parts": one.parts,
        "numbers": dict(one.certificate.numbers),
        "inequalities": [list(line) for line in one.certificate.inequalities],
        "premises": list(one.certificate.premises),
    }


def _print(title: str, plans: dict[str, Plan], repeated: str | None) -> None:
    best = min(plans, key=lambda name: plans[name].records)
    rows = [
        (
            Proof(name).words,
            *map(_number, (p.records, p.blocks, p.block_size, p.synthetic_records, p.draws, p.parts)),
        )
        for name, p in plans.items()
    ]
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        print(title)
        for name, row in zip(plans, rows, strict=True):
            mark = "*" if name == best else " "
            print(f"{mark} {row[0]}: " + ", ".join(f"{c} {v}" for c, v in zip(_COLUMNS[1:], row[1:], strict=True)))
    else:
        grid = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
        for name in _COLUMNS:
            grid.add_column(name, justify="left" if name == "method" else "right")
        for name, row in zip(plans, rows, strict=True):
            grid.add_row(*(Text(cell) for cell in row), style="bold" if name == best else None)
        console.print(grid)
    asked = plans[Proof.BLACK_BOX].certificate.numbers["calls"] if Proof.BLACK_BOX in plans else []
    for accuracy, failure, answer in asked:
        print(f"  m({accuracy:.3g}, {failure:.3g}) = {_number(answer)}")
    if repeated:
        print(f"  {repeated}")


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ") if value < 10**12 else f"{value:.3e}"
