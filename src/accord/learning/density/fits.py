"""Say once that fits without a ledger add up: a search over a grid fits many clones, and none knows of the others."""

import threading

from accord.core.verdict import Verdict, tell

__all__ = ["tell_of_earlier_fits"]


class _Fits:
    """How many fits without a ledger this process has seen; it holds nothing of what they were fits of."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = 0


_FITS = _Fits()
_AGAIN = Verdict(
    "fitted-again",
    "a PrivateDensity was fitted before in this process without a ledger: every fit spends its epsilon and delta "
    "again, also those of clones, so a search over a grid or a cross-validation on the same records spends (folds x "
    "candidates) times what guarantee_ says; pass fit(..., ledger=...), which adds up and can refuse.",
)


def tell_of_earlier_fits() -> tuple[Verdict, ...]:
    """Count a fit without a ledger; warn at the second one of a process, and not again.

    Returned is what the account of this fit says: of the second one and of all later ones.
    """
    with _FITS.lock:
        _FITS.seen += 1
        seen = _FITS.seen
    if seen == 2:
        tell(_AGAIN, stacklevel=4)
    return (_AGAIN,) if seen >= 2 else ()
