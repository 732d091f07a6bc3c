"""Fit one block so that no other block can notice. Part of the trusted core."""

import copy
import importlib
import io
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol, final, runtime_checkable

from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.alone import alone, turn
from accord.core.coupling import ABSTAIN, Abstain, Coupled, Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.points import Ballots, points_of, votes_on
from accord.core.shared import SharedRandomness

__all__ = [
    "FarBlocks",
    "Fitted",
    "Isolation",
    "SealedLaw",
    "Workers",
    "couple_apart",
    "in_child",
    "plain",
]


_LONGEST = 1e6
_LEAST_MEMORY, _MOST_MEMORY = 1 << 20, 1 << 50


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


@runtime_checkable
class Workers(Protocol):
    """Other processes, here or on other machines, that may hold records; `accord.workers.DaskWorkers` are some."""

    def packed(self, value: object, /) -> bytes:
        """Return a public value as bytes that ``pickle.loads`` reads on a worker, or raise `InvalidParameter`."""

    def answers(
        self, task: Callable[[bytes], bytes | None], given: Iterable[bytes], /
    ) -> Iterator[tuple[int, bytes | None]]:
        """Yield the place and ``task(one)`` of each one given, in any order.

        A task may run again, on another worker, if its first one is lost: so it must be a function of what it is given.
        """


@runtime_checkable
class FarBlocks(Protocol):
    """The records of blocks, where workers hold them."""

    def __len__(self) -> int:
        """Return how many blocks there are."""

    def of_columns(self, columns: Sequence[int], /) -> "FarBlocks":
        """Return the same blocks with some of the columns."""

    def answers(
        self, task: Callable[[NDArray[Any], bytes], bytes | None], given: Sequence[bytes], /
    ) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number of each block and ``task(its records, given[number])``, in any order.

        As of `Workers`, a task may run again.
        """


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
    - With ``workers`` the same happens on another process or machine: a worker forks a child for each fit, and does not
      read what it is sent or sends back. Laws, failures and votes are those of ``"process"`` without workers.
    - Either way, whatever goes wrong is this block's `ABSTAIN`, a `KeyboardInterrupt` that the learner raises itself
      included; a person's ends the run.
    - What a fit prints, warns or logs through Python is dropped.
    - Threads: fits take turns, so that two releases at once in one process give what they give alone.
    - Not promised, with ``"copy"``: votes that are free of what another law keeps outside itself.
    - Not promised: a release when workers are lost again and again; that is an error, and the budget is spent.
    - Not promised: an end of a fit that waits for threads of its own which ask accord for something; protection
      from a learner that means harm (files, sockets, laws that run code when they are read).

    Parameters
    ----------
    kind
        ``"copy"``, or ``"process"`` where the system can fork.
    seconds
        Time limit of one fit, with ``"process"`` only; None for no limit.
    memory
        Bytes that one fit may take, with ``"process"`` only, where the system can limit it (Linux); None for no limit.
    workers
        Where the fits of blocks run, with ``"process"`` only; None for here. Trusted: they see the records.

    """

    kind: Literal["copy", "process"] = "copy"
    seconds: float | None = None
    memory: int | None = None
    workers: Workers | None = None

    def __post_init__(self) -> None:
        if self.kind not in {"copy", "process"}:
            raise InvalidParameter("isolation must be 'copy' or 'process'.")
        if self.kind == "process" and "fork" not in multiprocessing.get_all_start_methods():
            raise InvalidParameter("isolation 'process' needs a system that can fork; use 'copy'.")
        if self.kind != "process" and (self.memory is not None or self.workers is not None):
            raise InvalidParameter("a limit of memory, and workers, need isolation 'process'.")
        if self.memory is not None:
            memory = _check.integer("memory", self.memory, least=_LEAST_MEMORY, most=_MOST_MEMORY)
            _check.store(self, memory=memory)
        if self.seconds is None:
            return
        limit = float(_check.exact("seconds", self.seconds))
        if self.kind != "process" or not 0 < limit <= _LONGEST:
            raise InvalidParameter(f"a time limit is from 0 to {_LONGEST:.0f} seconds and needs isolation 'process'.")
        _check.store(self, seconds=limit)

    def fit(self, learner: Learner, records: NDArray[Any], *, seed: int) -> Distribution | Abstain:
        """Fit a copy of ``learner`` to ``records``, which the caller does not use again; for what is public already."""
        law = self.fit_block(learner, records, seed=seed)
        return law.opened() if type(law) is SealedLaw else law

    def fit_block(self, learner: Learner, records: NDArray[Any], *, seed: int) -> Fitted:
        """Do the same for one block among others: the law of a child process is not read if that runs code."""
        if self.kind == "copy":
            return _fit(learner, records, seed)

        sent = in_child(partial(_sent_fit, learner, records, seed), seconds=self.seconds, memory=self.memory)
        return ABSTAIN if sent is None else _read(sent)

    def fit_blocks(
        self, learner: Learner, tables: Iterable[NDArray[Any]], *, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Fitted]]:
        """Yield the number and the law of each block, in any order; what a law may be is as in `fit_block`.

        Parameters
        ----------
        learner
            As in `fit_block`.
        tables
            The records of each block, which the caller does not use again.
        seeds
            One a block.

        """
        if self.workers is None:
            for block, (table, seed) in enumerate(zip(tables, seeds, strict=True)):
                yield block, self.fit_block(learner, table, seed=seed)
            return
        travels = self.workers.packed(learner)
        given = (
            pickle.dumps((travels, pickle.dumps((table, seed)))) for table, seed in zip(tables, seeds, strict=True)
        )
        task = partial(_fit_given, seconds=self.seconds, memory=self.memory)
        for block, sent in self.workers.answers(task, given):
            yield block, ABSTAIN if sent is None else _read(sent)

    def fit_far(self, learner: Learner, blocks: FarBlocks, *, seeds: Sequence[int]) -> Iterator[tuple[int, Fitted]]:
        """Do the same with records that the workers hold: they stay there, and laws come.

        Raises
        ------
        InvalidParameter
            Without workers.

        """
        if self.workers is None:
            raise InvalidParameter("records on workers need isolation 'process' with these workers.")
        travels = self.workers.packed(learner)
        task = partial(_fit_held, seconds=self.seconds, memory=self.memory)
        for block, sent in blocks.answers(task, [pickle.dumps((travels, seed)) for seed in seeds]):
            yield block, ABSTAIN if sent is None else _read(sent)

    def check(self, learner: Learner) -> None:
        """Refuse a learner that cannot be sent to the workers, or not be read there; before anything is spent.

        Raises
        ------
        InvalidParameter
            If it cannot.

        """
        if self.workers is None:
            return
        if any(answer is None for _, answer in self.workers.answers(_is_read, [self.workers.packed(learner)])):
            raise InvalidParameter(
                f"a {type(learner).__name__} cannot be read by the workers: they need accord and the learner's own "
                f"packages, in the versions of this machine. Nothing was spent."
            )


@lru_cache(maxsize=4)
def _learner(travels: bytes) -> Any:  # noqa: ANN401 - a learner, or None
    """Return the learner that was sent to this worker, which is public: what it imports is imported once."""
    return alone(lambda: pickle.loads(travels), failed=None)  # noqa: S301 - the client's


def _is_read(travels: bytes) -> bytes | None:
    return None if _learner(travels) is None else b"yes"


def _sent_fit(learner: Learner, records: NDArray[Any], seed: int) -> bytes:
    return pickle.dumps(_fit(learner, records, seed))


def _fit_given(given: bytes, *, seconds: float | None, memory: int | None) -> bytes | None:
    """Do on a worker what `Isolation.fit_block` does, in a child that alone reads the records."""
    travels, rest = pickle.loads(given)  # noqa: S301 - two bytes of the client's
    learner = _learner(travels)

    def send() -> bytes:
        records, seed = pickle.loads(rest)  # noqa: S301 - the client's
        return _sent_fit(learner, records, seed)

    return None if learner is None else in_child(send, seconds=seconds, memory=memory)


def _fit_held(records: NDArray[Any], given: bytes, *, seconds: float | None, memory: int | None) -> bytes | None:
    """Do the same with records that this worker holds."""
    travels, seed = pickle.loads(given)  # noqa: S301 - the client's
    learner = _learner(travels)
    if learner is None:
        return None
    return in_child(partial(_sent_fit, learner, records, seed), seconds=seconds, memory=memory)


def in_child(task: Callable[[], bytes], *, seconds: float | None = None, memory: int | None = None) -> bytes | None:
    """Return ``task()``, computed in a process forked for it alone; None if nothing comes.

    Not by `multiprocessing.Process`, whose children may have no children of their own: workers of a cluster often are
    such children.
    """
    try:
        with turn(), warnings.catch_warnings():  # no child starts with what another thread has changed for a moment
            warnings.simplefilter("ignore")  # of a fork among threads
            receiver, sender = multiprocessing.Pipe(duplex=False)
            child = os.fork()
            if child == 0:
                _child(sender, task, memory=memory)
            sender.close()
    except OSError:  # no process, no pipe
        return None
    limit = None if seconds is None else threading.Timer(seconds, _end, (child,))
    try:
        if limit is not None:
            limit.start()
        return receiver.recv_bytes()
    except (OSError, EOFError):  # it ended before, or in the middle
        return None
    finally:
        if limit is not None:
            limit.cancel()
        _end(child)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
        receiver.close()


def _child(sender: Connection, task: Callable[[], bytes], *, memory: int | None) -> None:
    """Send what the task gives, or nothing; say nothing, whatever happens, and end."""
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        if memory is not None:
            _limit_memory(memory)
        sent = alone(task, failed=None)
        if sent is not None:
            sender.send_bytes(sent)
    finally:
        os._exit(0)


def _limit_memory(size: int) -> None:
    """Let this process take so many bytes more than it has, where the system can tell and limit it."""
    with suppress(ImportError, OSError, ValueError):
        resource = importlib.import_module("resource")
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])  # data and stack
        most = pages * resource.getpagesize() + size
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _end(child: int) -> None:
    """End a child and whatever it has started."""
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)  # its own group, see _child
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)


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
