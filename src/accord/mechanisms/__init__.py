"""Mechanisms: what turns votes into a release. Exact integers and exact coins."""

from accord._abstain import ABSTAIN
from accord.mechanisms.best_of_draws import BestOfDraws
from accord.mechanisms.stable_mode import StableMode

__all__ = ["ABSTAIN", "BestOfDraws", "StableMode"]
