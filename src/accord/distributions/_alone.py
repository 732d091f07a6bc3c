"""Ask one law alone: what its code raises, warns of or leaves behind reaches no other law and not the run."""

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from accord.randomness import ambient_seed

__all__ = ["alone"]

_Answer = TypeVar("_Answer")
_Failed = TypeVar("_Failed")

_SEED = 0
"""Of the global generators while a law is asked: public, and the same for all."""


def alone(ask: Callable[[], _Answer], *, failed: _Failed) -> _Answer | _Failed:
    """Return ``ask()``, or ``failed`` if that raises anything at all but a person's interrupt.

    A law may be anybody's class. Whatever its methods do to numpy's error handling, to the warning filters and to the
    global generators of Python and numpy is undone; and if they read a global generator, they get the same numbers
    however much other laws have read. Exceptions that are no `Exception` count too: `SystemExit`, and the panics of
    compiled extensions, which would end the run for all blocks.

    Parameters
    ----------
    ask
        Asks one law only.
    failed
        What stands for a failure.

    Examples
    --------
    >>> def panics():
    ...     raise SystemExit(3)
    >>> alone(lambda: 2, failed=None), alone(panics, failed=None)
    (2, None)

    """
    with warnings.catch_warnings(), np.errstate(all="ignore"), ambient_seed(_SEED):
        warnings.simplefilter("ignore")
        try:
            return ask()
        except KeyboardInterrupt:  # a person's
            raise
        except BaseException:  # noqa: BLE001 - theory 9: whatever it is, it is this law's failure alone
            return failed
