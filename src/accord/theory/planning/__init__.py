"""How many records are needed: the theorems' numbers, far better ones with certificates, and inverse questions."""

from accord.theory.planning.certificate import Certificate
from accord.theory.planning.inverse import needed_epsilon, reachable_alpha
from accord.theory.planning.pivots import certify_normal
from accord.theory.planning.plan import Plan, all_plans, plan
from accord.theory.planning.theorems import (
    TheoremSizes,
    agnostic_sizes,
    boosted_sizes,
    orders,
    sampler_sizes,
    theorem_sizes,
    yatracos_sizes,
)

__all__ = [
    "Certificate",
    "Plan",
    "TheoremSizes",
    "agnostic_sizes",
    "all_plans",
    "boosted_sizes",
    "certify_normal",
    "needed_epsilon",
    "orders",
    "plan",
    "reachable_alpha",
    "sampler_sizes",
    "theorem_sizes",
    "yatracos_sizes",
]
