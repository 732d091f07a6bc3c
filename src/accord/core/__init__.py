"""What every road shares, and a reviewer reads first. It imports nothing of accord above it."""

from accord.core.curator import CuratorOnly
from accord.core.records import Cells, Records, cells_read_by, table_of_numbers
from accord.core.verdict import Verdict, VerdictWarning, collected, judge, tell, within_larger

__all__ = [
    "Cells",
    "CuratorOnly",
    "Records",
    "Verdict",
    "VerdictWarning",
    "cells_read_by",
    "collected",
    "judge",
    "table_of_numbers",
    "tell",
    "within_larger",
]
