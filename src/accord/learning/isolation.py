"""Fit one block so that no other block can notice. Part of the trusted core."""

import copy
import multiprocessing
import os
import pickle
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
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
    - Not promised: protection from a learner that writes to files or sockets on purpose.

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
        if self.seconds is not None and (self.kind != "process" or not _check.exact("seconds", self.seconds) > 0):
            raise InvalidParameter("a time limit must be positive and needs isolation 'process'.")

    def fit(self, learner: Learner, records: NDArray[Any], *, seed: int) -> Distribution | Abstain:
        """Fit a copy of ``learner`` to ``records``, which the caller does not use again."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if self.kind == "copy":
                    return _fit(learner, records, seed)
                return self._fit_in_child(learner, records, seed)
            except (Exception, SystemExit):  # noqa: BLE001 - theory 9: this is the block's abstention
                return ABSTAIN

    def _fit_in_child(self, learner: Learner, records: NDArray[Any], seed: int) -> Distribution | Abstain:
        forking = multiprocessing.get_context("fork")
        receiver, sender = forking.Pipe(duplex=False)
        child = forking.Process(target=_child, args=(sender, learner, records, seed), daemon=True)
        child.start()
        sender.close()
        try:
            answered = receiver.poll(self.seconds)
            return pickle.loads(receiver.recv_bytes()) if answered else ABSTAIN  # noqa: S301 - from our own child
        finally:
            receiver.close()
            child.kill()
            child.join()


def _fit(learner: Learner, records: NDArray[Any], seed: int) -> Distribution:
    with np.errstate(all="ignore"), ambient_seed(seed):
        return copy.deepcopy(learner).fit(records, seed=seed)


def _child(sender: Connection, learner: Learner, records: NDArray[Any], seed: int) -> None:
    """Send the law, or nothing; say nothing, whatever happens."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        sender.send_bytes(pickle.dumps(_fit(learner, records, seed)))
    finally:
        os._exit(0)
