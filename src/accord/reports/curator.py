"""A page that compares with the real data: for the eyes of whoever holds them."""

from collections.abc import Sequence

from accord.evaluation import Evaluation, Utility
from accord.reports.page import environment
from accord.reports.report import Report

__all__ = ["curator_page"]


def curator_page(report: Report, *, evaluation: Evaluation, utilities: Sequence[Utility] = ()) -> str:
    """Return the page for the curator, who must not pass it on: it says so at the head of every printed page.

    Formal guarantees
    -----------------
    - None. Distances to the real data are functions of the real data, outside the guarantee.

    Parameters
    ----------
    report
        Of the release that is compared.
    evaluation
        Of `accord.evaluation.evaluate`.
    utilities
        Of `accord.evaluation.train_synthetic_test_real`.

    """
    template = environment().get_template("curator.html")
    return template.render(report=report, evaluation=evaluation, utilities=utilities)
