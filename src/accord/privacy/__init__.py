"""What is promised, to whom, and about which data. Nothing here samples."""

from accord.privacy.guarantees import ApproxDP, PureDP
from accord.privacy.neighbouring import Neighbouring
from accord.privacy.release import NoAnswer, NoAnswerType, Release
from accord.privacy.sensitivity import Sensitivity

__all__ = ["ApproxDP", "Neighbouring", "NoAnswer", "NoAnswerType", "PureDP", "Release", "Sensitivity"]
