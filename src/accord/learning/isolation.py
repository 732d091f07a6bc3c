"""Fit one block so that no other block can notice. Part of the trusted core."""

import copy
import io
import logging
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from accord import _check
from accord._abstain import ABSTAIN, Abstain
from accord.distributions import Distribution
from accord.errors import InvalidParameter
from accord.learners import Learner
from accord.randomness import ambient_seed

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
    - Either way, whatever goes wrong is this block's `ABSTAIN`.
    - What a fit prints, warns or logs through Python is dropped.
    - Not promised: protection from a learner that means harm (files, sockets, laws that run code when they are read).

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
        with warnings.catch_warnings(), _silence():
            warnings.simplefilter("ignore")
            try:
                if self.kind == "copy":
                    return _fit(learner, records, seed)
                return self._fit_in_child(learner, records, seed)
            except KeyboardInterrupt:  # a person's, not a learner's
                raise
            except BaseException:  # noqa: BLE001 - theory 9: whatever it is, it is the block's abstention
                return ABSTAIN

    def _fit_in_child(self, learner: Learner, records: NDArray[Any], seed: int) -> Distribution | Abstain:
        forking = multiprocessing.get_context("fork")
        receiver, sender = forking.Pipe(duplex=False)
        child = forking.Process(target=_child, args=(sender, learner, records, seed), daemon=True)
        child.start()
        sender.close()
        limit = None if self.seconds is None else threading.Timer(self.seconds, _end, (child,))
        try:
            if limit is not None:
                limit.start()
            wait([receiver, child.sentinel])
            return pickle.loads(receiver.recv_bytes()) if receiver.poll(0) else ABSTAIN  # noqa: S301 - from our own child
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


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what a learner prints or logs from coming out: it may hold data."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _fit(learner: Learner, records: NDArray[Any], seed: int) -> Distribution:
    if records.dtype == object:
        records = copy.deepcopy(records)  # a cell may be a list that other rows share
    with np.errstate(all="ignore"), ambient_seed(seed):
        return copy.deepcopy(learner).fit(records, seed=seed)


def _child(sender: Connection, learner: Learner, records: NDArray[Any], seed: int) -> None:
    """Send the law, or nothing; say nothing, whatever happens."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        sender.send_bytes(pickle.dumps(_fit(learner, records, seed)))
    finally:
        os._exit(0)
