"""What a release tells the world, as plain data, JSON and one HTML page; and a page for its curator alone."""

from accord.reports.page import curator_page, report_page
from accord.reports.release import RELEASE_FORMAT, check_release, release_json, taken_at_word
from accord.reports.report import Claim, Report
from accord.reports.tables import ColumnTable, PairTable, tables_of

__all__ = [
    "RELEASE_FORMAT",
    "Claim",
    "ColumnTable",
    "PairTable",
    "Report",
    "check_release",
    "curator_page",
    "release_json",
    "report_page",
    "tables_of",
    "taken_at_word",
]
