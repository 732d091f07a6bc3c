"""A budget that lasts: what was spent on one dataset, by every program that releases from it."""

from accord.core.spending import spending
from accord.ledger.account import Statement, Total
from accord.ledger.entry import Entry
from accord.ledger.ledger import Ledger
from accord.ledger.verification import Verification, verify_ledger

__all__ = ["Entry", "Ledger", "Statement", "Total", "Verification", "spending", "verify_ledger"]
