"""A report as one HTML page that needs nothing else: no script, no font, no address of another host."""

import importlib.resources
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from accord.evaluation import Evaluation, Utility
from accord.reports.report import Report

if TYPE_CHECKING:
    import jinja2

__all__ = [
    "curator_page",
    "environment",
    "report_page",
]


@cache
def environment() -> "jinja2.Environment":
    """Return the templates; every value is escaped, and a misspelt name is an error."""
    import jinja2  # noqa: PLC0415 - takes its time

    folder = importlib.resources.files("accord.reports") / "templates"
    sources = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.is_file()}
    made = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = _percent
    made.filters["short"] = lambda value: f"{value:.3g}"
    return made


def report_page(report: Report) -> str:
    """Return the page for the world.

    Formal guarantees
    -----------------
    - A function of ``report`` alone.
    - Self-contained: the page's own policy forbids scripts and everything from elsewhere.

    """
    return environment().get_template("report.html").render(report=report)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "< 0.1 %"


def curator_page(report: Report, *, evaluation: Evaluation | None, utilities: Sequence[Utility] = ()) -> str:
    """Return the page for the curator, who must not pass it on: it says so at the head of every printed page.

    Formal guarantees
    -----------------
    - None. Distances to the real data are functions of the real data, outside the guarantee.

    Parameters
    ----------
    report
        Of the release that is compared.
    evaluation
        Of `accord.evaluation.evaluate`; None where the tables could not be compared, which the page then says.
    utilities
        Of `accord.evaluation.train_synthetic_test_real`.

    """
    template = environment().get_template("curator.html")
    return template.render(report=report, evaluation=evaluation, utilities=utilities)
