"""Fit one block so that no other block can notice. Part of the trusted core."""

import copy
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal, final

from numpy.typing import NDArray

from accord import _check
from accord._abstain import ABSTAIN, Abstain
from accord.core.turns import turn
from accord.distributions import Distribution
from accord.distributions._alone import alone
from accord.errors import InvalidParameter
from accord.learners import Learner

__all__ = ["Isolation"]

_LONGEST = 1e6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How the fit of one block is kept from the others.

    Formal guarantees
    -----------------
    - ``"copy"``: the learner is a fresh deep copy, the records are a copy, global generators are seeded for the
      block. The result is a function of records and seed if the learner keeps no state outside itself (module
      globals, files).
    - ``"process"``: besides, the fit runs in a child process forked for it alone, so that nothing it leaves in memory
      reaches another block; and a fit beyond ``seconds`` is ended.
    - Either way, whatever goes wrong is this block's `ABSTAIN`, a `KeyboardInterrupt` that the learner raises itself
      included; a person's ends the run.
    - What a fit prints, warns or logs through Python is dropped.
    - Threads: fits take turns, so that two releases at once in one process give what they give alone.
    - Not promised: an end of a fit that waits for threads of its own which ask accord for something; protection
      from a learner that means harm (files, sockets, laws that run code when they are read).

    Parameters
    ----------
    kind
        ``"copy"``, or ``"process"`` where the system can fork.
    seconds
        Time limit of one fit, with ``"process"`` only; None for no limit.

    """

    kind: Literal["copy", "process"] = "copy"
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in {"copy", "process"}:
            raise InvalidParameter("isolation must be 'copy' or 'process'.")
        if self.kind == "process" and "fork" not in multiprocessing.get_all_start_methods():
            raise InvalidParameter("isolation 'process' needs a system that can fork; use 'copy'.")
        if self.seconds is None:
            return
        limit = float(_check.exact("seconds", self.seconds))
        if self.kind != "process" or not 0 < limit <= _LONGEST:
            raise InvalidParameter(f"a time limit is from 0 to {_LONGEST:.0f} seconds and needs isolation 'process'.")
        object.__setattr__(self, "seconds", limit)

    def fit(self, learner: Learner, records: NDArray[Any], *, seed: int) -> Distribution | Abstain:
        """Fit a copy of ``learner`` to ``records``, which the caller does not use again."""
        if self.kind == "copy":
            return _fit(learner, records, seed)
        try:
            sent = self._fit_in_child(learner, records, seed)
        except Exception:  # noqa: BLE001 - no process, no pipe: the block abstains like others that fail
            return ABSTAIN
        return ABSTAIN if sent is None else alone(lambda: pickle.loads(sent), failed=ABSTAIN)  # noqa: S301 - our child's

    def _fit_in_child(self, learner: Learner, records: NDArray[Any], seed: int) -> bytes | None:
        """Return the law as it was sent by a child process, None if nothing came."""
        forking = multiprocessing.get_context("fork")
        receiver, sender = forking.Pipe(duplex=False)
        child = forking.Process(target=_child, args=(sender, learner, records, seed), daemon=True)
        with turn(), warnings.catch_warnings():  # no child starts with what another thread has changed for a moment
            warnings.simplefilter("ignore")  # of a fork among threads
            child.start()
        sender.close()
        limit = None if self.seconds is None else threading.Timer(self.seconds, _end, (child,))
        try:
            if limit is not None:
                limit.start()
            wait([receiver, child.sentinel])
            return receiver.recv_bytes() if receiver.poll(0) else None
        finally:
            if limit is not None:
                limit.cancel()
            _end(child)
            child.join()
            receiver.close()


def _end(child: BaseProcess) -> None:
    """End a child and whatever it has started."""
    with suppress(OSError):
        os.killpg(child.pid or 0, signal.SIGKILL)  # its own group, see _child
    with suppress(OSError, ValueError):
        child.kill()


def _fit(learner: Learner, records: NDArray[Any], seed: int) -> Distribution | Abstain:
    def ask() -> Distribution:
        # A cell may be a list that other rows share.
        own = copy.deepcopy(records) if records.dtype == object else records
        return copy.deepcopy(learner).fit(own, seed=seed)

    return alone(ask, failed=ABSTAIN, seed=seed)


def _child(sender: Connection, learner: Learner, records: NDArray[Any], seed: int) -> None:
    """Send the law, or nothing; say nothing, whatever happens."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        law = _fit(learner, records, seed)
        sent = alone(lambda: pickle.dumps(law), failed=None)
        if sent is not None:
            sender.send_bytes(sent)
    finally:
        os._exit(0)
