"""What a clip does to the scores of candidates, as far as the current model can tell. Post-processing."""

from collections.abc import Sequence

import numpy as np

from accord.core.shared import Generator
from accord.distributions import Distribution
from accord.learning.density.refine._log_ratios import STEPS, log_density_rows

__all__ = ["clip_shifts"]

_SAMPLE = 16_384
_WIDE = 8.0
_LARGEST = 2.0**61


def clip_shifts(
    current: Distribution, near: Sequence[Distribution], *, clip: float, units: int, generator: Generator
) -> list[int]:
    """Return what is to be added to the score of each candidate, in steps, for what the clip takes from it.

    A clip takes more from the losses of a candidate than from its gains, the more so the further it is from the current
    model. How much is found on records of the current model: it is public.
    """
    records = np.asarray(current.sample(_SAMPLE, generator), dtype=np.float64)
    base = log_density_rows(current, records)
    shifts = []
    for law in near:
        with np.errstate(invalid="ignore"):
            ratios = np.nan_to_num((log_density_rows(law, records) - base) / clip, posinf=_WIDE, neginf=-_WIDE)
        shift = float((np.clip(ratios, -_WIDE, _WIDE) - np.clip(ratios, -1, 1)).mean())
        shifts.append(int(max(min(shift * units * STEPS, _LARGEST), -_LARGEST)))
    return shifts
