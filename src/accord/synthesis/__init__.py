"""The front room: from a table to a release, to rows and to an account."""

from accord.synthesis.by_votes import SamplePlan, Synthesis, sample_plan, sample_rows, synthesise

__all__ = ["SamplePlan", "Synthesis", "sample_plan", "sample_rows", "synthesise"]
