"""What every road shares, and a reviewer reads first. It imports nothing of accord above it."""

from accord.core.verdict import Verdict, VerdictWarning, tell

__all__ = ["Verdict", "VerdictWarning", "tell"]
