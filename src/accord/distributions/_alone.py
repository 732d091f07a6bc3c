"""Ask one law alone: what its code raises, warns of or leaves behind reaches no other law and not the run."""

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from accord.core.turns import silence, turn, watched
from accord.randomness import ambient_seed

__all__ = ["alone"]

_Answer = TypeVar("_Answer")
_Failed = TypeVar("_Failed")

_SEED = 0
"""Of the global generators while a law is asked: public, and the same for all."""


def alone(ask: Callable[[], _Answer], *, failed: _Failed, seed: int = _SEED) -> _Answer | _Failed:
    """Return ``ask()``, or ``failed`` if that raises anything at all but a person's interrupt.

    A law or a learner may be anybody's class. Whatever its methods do to numpy's error handling, to the warning filters
    and to the global generators of Python and numpy is undone; and if they read a global generator, they get the same
    numbers however much others have read. What they print, warn of or log is dropped. What is no `Exception` counts
    too: `SystemExit`, the panics of compiled extensions, and a `KeyboardInterrupt` that they raise themselves. A
    person's interrupt, which comes through the handler of a signal, is raised even where they caught it.

    All of that belongs to the whole process, so threads take turns.

    Parameters
    ----------
    ask
        Asks one law only, or fits one block.
    failed
        What stands for a failure.
    seed
        Of the global generators meanwhile.

    Examples
    --------
    >>> def panics():
    ...     raise SystemExit(3)
    >>> alone(lambda: 2, failed=None), alone(panics, failed=None)
    (2, None)

    """
    answer: _Answer | _Failed = failed
    with (
        turn(),
        watched() as interrupts,
        silence(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        ambient_seed(seed),
    ):
        warnings.simplefilter("ignore")
        try:
            answer = ask()
        except BaseException:  # noqa: BLE001 - theory 9: whatever it is, it is this law's failure alone
            answer = failed
    if interrupts.raised is not None:
        raise interrupts.raised from None
    return answer
