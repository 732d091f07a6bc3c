"""Pictures of plans: n against epsilon and against alpha, all methods."""

import importlib
from fractions import Fraction
from pathlib import Path
from typing import Any

from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.theory.planning.plan import all_plans
from accord.theory.planning.verify import Proof

__all__ = ["plot_plans"]

_EPSILONS = ("0.1", "0.25", "0.5", "1", "2", "4")
_ALPHAS = ("0.05", "0.1", "0.2", "0.3")
_FORMATS = {".png", ".svg"}


def plot_plans(
    path: Path, sample_complexity: object, *, alpha: Number, beta: Number, epsilon: Number, delta: Number
) -> None:
    """Write a picture with two panels: n against epsilon at this alpha, and against alpha at this epsilon.

    Raises
    ------
    InvalidParameter
        If the name ends in neither .png nor .svg, or matplotlib is not installed.

    """
    if path.suffix.lower() not in _FORMATS:
        raise InvalidParameter("the name of a plot must end in .png or .svg.")
    if not path.absolute().parent.is_dir():
        raise InvalidParameter("the plot cannot be written: its folder does not exist.")
    figure_module = _matplotlib()
    figure = figure_module.Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    fixed: dict[str, Any] = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": delta}
    _draw(left, "epsilon", _with(_EPSILONS, epsilon), sample_complexity, fixed)
    _draw(right, "alpha", _with(_ALPHAS, alpha), sample_complexity, fixed)
    left.set_ylabel("records n")
    right.legend()
    try:
        figure.savefig(path)
    except OSError:
        raise InvalidParameter("the plot cannot be written there: choose another name for --plot.") from None


def _with(values: tuple[str, ...], own: Number) -> list[Fraction]:
    return sorted({*map(Fraction, values), Fraction(str(own))})


def _draw(axes: Any, name: str, values: list[Fraction], source: object, fixed: dict[str, Any]) -> None:  # noqa: ANN401
    lines: dict[str, list[tuple[float, int]]] = {}
    for value in values:
        for method, found in all_plans(source, **(fixed | {name: value})).items():
            lines.setdefault(method, []).append((float(value), found.records))
    for method, points in sorted(lines.items()):
        axes.plot(*zip(*points, strict=True), marker="o", label=Proof(method).words)
    axes.set(xscale="log", yscale="log", xlabel=name)


def _matplotlib() -> Any:  # noqa: ANN401
    try:
        return importlib.import_module("matplotlib.figure")
    except ImportError:
        raise InvalidParameter("plots need matplotlib: pip install 'accord[plots]'.") from None
