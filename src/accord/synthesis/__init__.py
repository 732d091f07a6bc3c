"""The front room: from a table to a release, to rows and to an account."""

from accord.synthesis.by_votes import SamplePlan, Synthesis, sample_plan, sample_rows, synthesise
from accord.synthesis.outlook import Outlook
from accord.synthesis.synthetic import Marginal, SyntheticTable
from accord.synthesis.table import plan_table, synthesise_table

__all__ = [
    "Marginal",
    "Outlook",
    "SamplePlan",
    "Synthesis",
    "SyntheticTable",
    "plan_table",
    "sample_plan",
    "sample_rows",
    "synthesise",
    "synthesise_table",
]
