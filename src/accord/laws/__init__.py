"""Finite laws and kernels in exact arithmetic, divergences, and certain answers about privacy."""

from accord.laws.divergences import hellinger, kl_divergence, total_variation
from accord.laws.estimate import Estimate, estimate_total_variation
from accord.laws.finite import FiniteLaw
from accord.laws.hockey_stick import hockey_stick, smallest_delta, smallest_epsilon, smallest_exp_epsilon
from accord.laws.kernel import DPCheck, FiniteKernel, Witness, check_dp
from accord.laws.pure_bounds import (
    PureApproximation,
    pure_approximation,
    pure_kl_bound,
    pure_symmetric_kl_bound,
    pure_total_variation_bound,
)

__all__ = [
    "DPCheck",
    "Estimate",
    "FiniteKernel",
    "FiniteLaw",
    "PureApproximation",
    "Witness",
    "check_dp",
    "estimate_total_variation",
    "hellinger",
    "hockey_stick",
    "kl_divergence",
    "pure_approximation",
    "pure_kl_bound",
    "pure_symmetric_kl_bound",
    "pure_total_variation_bound",
    "smallest_delta",
    "smallest_epsilon",
    "smallest_exp_epsilon",
    "total_variation",
]
