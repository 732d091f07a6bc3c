"""Fit one block so that no other block can notice. Part of the trusted core."""

import copy
import io
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal, final

from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import alone, turn
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.points import Ballots, points_of, votes_on
from accord.core.shared import SharedRandomness

__all__ = [
    "Fitted",
    "Isolation",
    "SealedLaw",
    "couple_apart",
    "in_child",
    "plain",
]


_LONGEST = 1e6


@final
@dataclass(frozen=True, slots=True)
class SealedLaw:
    """A law as a child process sent it, not read: reading may run code that leaves something for the next block."""

    sent: bytes

    def opened(self) -> Distribution | Abstain:
        """Read the law; where this is done nothing may be fitted afterwards but what is public."""
        return alone(lambda: pickle.loads(self.sent), failed=ABSTAIN)  # noqa: S301 - our child's


Fitted = Distribution | SealedLaw | Abstain
"""What a block's fit gives."""


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
      reaches another block; and a fit beyond ``seconds`` is ended. A law that is not made of accord's families and
      plain values stays unread here: it votes in a process of its own (`couple_apart`), so that what it keeps outside
      itself, such as a memo on its class or a registry that reading it fills, reaches no other block either. With a
      coupling that is not isolated such laws vote in one process together.
    - Either way, whatever goes wrong is this block's `ABSTAIN`, a `KeyboardInterrupt` that the learner raises itself
      included; a person's ends the run.
    - What a fit prints, warns or logs through Python is dropped.
    - Threads: fits take turns, so that two releases at once in one process give what they give alone.
    - Not promised, with ``"copy"``: votes that are free of what another law keeps outside itself.
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
        """Fit a copy of ``learner`` to ``records``, which the caller does not use again; for what is public already."""
        law = self.fit_block(learner, records, seed=seed)
        return law.opened() if type(law) is SealedLaw else law

    def fit_block(self, learner: Learner, records: NDArray[Any], *, seed: int) -> Fitted:
        """Do the same for one block among others: the law of a child process is not read if that runs code."""
        if self.kind == "copy":
            return _fit(learner, records, seed)

        def send() -> bytes:
            law = _fit(learner, records, seed)
            return pickle.dumps(law)

        sent = in_child(send, seconds=self.seconds)
        return ABSTAIN if sent is None else _read(sent)


def in_child(task: Callable[[], bytes], *, seconds: float | None = None) -> bytes | None:
    """Return ``task()``, computed in a process forked for it alone; None if nothing comes."""
    forking = multiprocessing.get_context("fork")
    try:
        receiver, sender = forking.Pipe(duplex=False)
        child = forking.Process(target=_child, args=(sender, task), daemon=True)
        with turn(), warnings.catch_warnings():  # no child starts with what another thread has changed for a moment
            warnings.simplefilter("ignore")  # of a fork among threads
            child.start()
    except OSError:  # no process, no pipe
        return None
    sender.close()
    limit = None if seconds is None else threading.Timer(seconds, _end, (child,))
    try:
        if limit is not None:
            limit.start()
        wait([receiver, child.sentinel])
        return receiver.recv_bytes() if receiver.poll(0) else None
    except (OSError, EOFError):  # it ended in the middle
        return None
    finally:
        if limit is not None:
            limit.cancel()
        _end(child)
        child.join()
        receiver.close()


def _child(sender: Connection, task: Callable[[], bytes]) -> None:
    """Send what the task gives, or nothing; say nothing, whatever happens."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        sent = alone(task, failed=None)
        if sent is not None:
            sender.send_bytes(sent)
    finally:
        os._exit(0)


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


def _read(sent: bytes) -> Fitted:
    """Return a law of accord's own families with numbers and plain labels in it; any other stays sealed."""
    try:
        law: Distribution | Abstain = plain(sent)
    except Exception:  # noqa: BLE001 - it names something else, or is none of ours: nothing of it has run
        return SealedLaw(sent)
    return law


def plain(sent: bytes) -> Any:  # noqa: ANN401 - whatever was sent
    """Read what a child sent, if it is made of accord's laws and plain values; else raise before any of it runs."""
    return _Plain(io.BytesIO(sent)).load()


class _Plain(pickle.Unpickler):
    """Reads accord's laws, numpy's arrays and plain values of the standard library; stops at anything else."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - a class or a function
        if (module.startswith("accord.distributions.") and "." not in name) or (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError


_PLAIN = frozenset(
    [("accord.core.coupling", "Abstain"), ("numpy", "ndarray"), ("numpy", "dtype"), ("fractions", "Fraction")]
    + [(f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")]
    + [(f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")]
    + [("decimal", "Decimal"), ("builtins", "complex"), ("builtins", "frozenset")]
    + [("datetime", name) for name in ("date", "datetime", "timedelta", "timezone")]
)


def couple_apart(
    coupling: Coupling, laws: Sequence[Fitted], *, isolated: bool, records: int, draws: int, shared: SharedRandomness
) -> Coupled:
    """Return what ``coupling.couple`` does, without reading a sealed law in this process.

    Formal guarantees
    -----------------
    - Isolated couplings: each sealed law votes in a process forked for it, with all others abstaining. Its vote is a
      function of what its fit sent, public values and the shared key, whatever the code of laws leaves in memory.
    - Other couplings: sealed laws are read in one process, as votes depend on all laws.
    - A process that ends without votes is an abstention: of its law, or of all where they vote together.

    Parameters
    ----------
    coupling, records, draws, shared
        As in `Coupling.couple`.
    laws
        What `fit_blocks` returned.
    isolated
        What the coupling says of itself.

    """
    points = points_of(coupling, records=records, draws=draws, shared=shared)

    def votes(blocks: Sequence[int]) -> list[list[bytes | None]] | None:
        given = [law if place in blocks else ABSTAIN for place, law in enumerate(laws)]
        sent = in_child(partial(_votes, points, given, blocks, draws=draws))
        return None if sent is None else list(plain(sent))

    sealed = {block for block, law in enumerate(laws) if type(law) is SealedLaw}
    apart = sealed if isolated or not sealed else set(range(len(laws)))
    here: list[Any] = [ABSTAIN if block in apart else law for block, law in enumerate(laws)]
    keys = votes_on(points, here, draws=draws)
    for blocks in [[block] for block in sorted(apart)] if isolated else [sorted(apart)] if apart else []:
        for block, column in zip(blocks, votes(blocks) or [], strict=False):
            keys[:, block] = [ABSTAIN if key is None else key for key in column]
    return Coupled(keys=keys, decode=points.decode)


def _votes(points: Ballots, laws: Sequence[Fitted], blocks: Sequence[int], *, draws: int) -> bytes:
    """Read the laws, which is done in a child only, and write down what these blocks vote; None for an abstention."""
    opened = [law.opened() if type(law) is SealedLaw else law for law in laws]
    keys = votes_on(points, opened, draws=draws)
    return pickle.dumps([[key if type(key) is bytes else None for key in keys[:, block].tolist()] for block in blocks])
