"""Ask foreign code alone: whatever it raises, prints, or leaves in the process reaches nothing else."""

import contextlib
import decimal
import gc
import io
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, final

import numpy as np

__all__ = [
    "Interrupts",
    "alone",
    "ambient_seed",
    "silence",
    "turn",
    "watched",
]


class _Mine(threading.local):
    """How often this thread has taken the turn that it holds."""

    depth = 0


@final
class _Turns:
    __slots__ = ("door", "mine", "room")

    def __init__(self) -> None:
        self.mine = _Mine()
        self.room = threading.Lock()
        self.door = threading.Lock()

    def after_fork(self) -> None:
        """Give a child locks that no thread holds which it does not have."""
        self.door = threading.Lock()
        if not self.mine.depth:
            self.room = threading.Lock()


_TURNS = _Turns()
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_TURNS.after_fork)


@contextmanager
def turn() -> Iterator[None]:
    """Hold the only turn of the process inside the block; a thread that holds it already goes on.

    Python's and numpy's global generators, the warning filters, the streams of `sys`, the logging level and the threads
    of linear algebra belong to the process. Code that changes one of them and puts it back does so within a turn, or
    two threads would see each other's changes and put back the wrong state. A turn is short, one fit or one question to
    a law: threads that wait get in between, as whoever has just had a turn stands behind those that wait.

    Code inside that waits for a thread of its own which asks for a turn would wait for ever.

    Examples
    --------
    >>> with turn(), turn():
    ...     threading.active_count() >= 1
    True

    """
    mine, room = _TURNS.mine, _TURNS.room
    if mine.depth == 0:
        with _TURNS.door:  # held by the first that waits: nobody who comes later is before it
            room.acquire()
    mine.depth += 1
    try:
        yield
    finally:
        mine.depth -= 1
        if mine.depth == 0:
            room.release()


@contextmanager
def silence() -> Iterator[None]:
    """Drop what is printed or logged through Python inside the block: it may hold data. Within a turn."""
    with turn():
        before = logging.root.manager.disable
        if before < logging.CRITICAL:  # it empties a cache of every logger
            logging.disable(logging.CRITICAL)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                yield
        finally:
            if logging.root.manager.disable != before:
                logging.disable(before)


@contextmanager
def _settings() -> Iterator[None]:
    """Put back what foreign code may set in the interpreter, in numpy and of the process. Within a turn."""
    limit, collects = sys.getrecursionlimit(), gc.isenabled()
    traced, profiled = sys.gettrace(), sys.getprofile()
    folder = _folder()
    with decimal.localcontext(), np.printoptions(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            if sys.getprofile() is not profiled:
                with contextlib.suppress(TypeError):  # a compiled profiler cannot be put back from here
                    sys.setprofile(profiled)
            if sys.gettrace() is not traced:
                with contextlib.suppress(TypeError):
                    sys.settrace(traced)
            (gc.enable if collects else gc.disable)()
            if sys.getrecursionlimit() != limit:
                sys.setrecursionlimit(limit)
            if folder is not None and _folder() != folder:
                os.chdir(folder)


def _folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it is gone
        return None


@final
class Interrupts:
    """What the handlers of a person's signals raised, if they did."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised: BaseException | None = None


@contextmanager
def watched() -> Iterator[Interrupts]:
    """Note inside the block what handlers of SIGINT and SIGTERM raise.

    A learner may raise `KeyboardInterrupt` itself, and then it is a failure like others. A person's comes through the
    handler of the signal, which Python runs in the main thread only.
    """
    noted = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        try:
            handlers[signal.Signals(number)](number, frame)
        except BaseException as error:
            noted.raised = error
            raise

    with contextlib.ExitStack() as stack:
        for number, handler in handlers.items():
            with contextlib.suppress(ValueError):  # an interpreter inside another has no signals
                signal.signal(number, note)
                stack.callback(signal.signal, number, handler)
        yield noted


_legacy: Any = np.random  # these functions are in some versions of its stubs and not in others
_WORDS = 624
"""Of the state of a Mersenne twister."""


@lru_cache(maxsize=64)
def _words(seed: int) -> Any:  # noqa: ANN401 - an array, whose type numpy states in another way in each version
    return np.random.SeedSequence(seed).generate_state(_WORDS)


@final
class _Remembered(np.random.SeedSequence):
    """A seed whose words for a Mersenne twister are worked out once: that takes longer than most questions."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:  # noqa: ANN401 - as numpy has it
        if n_words != _WORDS or dtype is not np.uint32 or self.spawn_key:
            return super().generate_state(n_words, dtype)
        return _words(self.entropy).copy()


@contextmanager
def ambient_seed(seed: int) -> Iterator[None]:
    """Seed Python's and numpy's global generators inside the block, and restore them afterwards.

    A learner that reads them in secret then depends on its own seed alone, not on how much the learner of another block
    has read. Both belong to the whole process, so this is done within a `turn`. Every call makes a new generator: one
    that somebody keeps is read by nobody else.

    Parameters
    ----------
    seed
        From 0 to 2^32 - 1.

    Examples
    --------
    >>> with ambient_seed(3):
    ...     first = random.random()
    >>> with ambient_seed(3):
    ...     first == random.random()
    True

    """
    with turn():
        python_state, numpy_generator = random.getstate(), _legacy.get_bit_generator()
        numpy_state = _legacy.get_state(legacy=False)  # a normal number that is kept for the next call, besides
        random.seed(seed)
        _legacy.set_bit_generator(np.random.MT19937(_Remembered(seed)))
        try:
            yield
        finally:
            random.setstate(python_state)
            _legacy.set_bit_generator(numpy_generator)
            if numpy_state["has_gauss"]:  # else the generator that is put back is as it was
                _legacy.set_state(numpy_state)


_Answer = TypeVar("_Answer")
_Failed = TypeVar("_Failed")

_SEED = 0
"""Of the global generators while a law is asked: public, and the same for all."""


def alone(ask: Callable[[], _Answer], *, failed: _Failed, seed: int = _SEED) -> _Answer | _Failed:
    """Return ``ask()``, or ``failed`` if that raises anything at all but a person's interrupt.

    A law or a learner may be anybody's class. Whatever its methods do to numpy's error handling and print options, to
    the warning filters, the decimal context, the limit of recursion, the collection of garbage, the tracing and
    profiling of this thread, the working folder and the global generators of Python and numpy is undone; and if they
    read a global generator, they get the same numbers however much others have read. What they print, warn of or log is
    dropped. What is no `Exception` counts too: `SystemExit`, the panics of compiled extensions, and a
    `KeyboardInterrupt` that they raise themselves. A person's interrupt, which comes through the handler of a signal,
    is raised even where they caught it.

    What they do to other modules, to the environment and to files stays: `accord.core.Isolation` can give each block a
    process of its own.

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
        _settings(),
        ambient_seed(seed),
    ):
        try:
            answer = ask()
        except BaseException:  # noqa: BLE001 - theory 9: whatever it is, it is this law's failure alone
            answer = failed
    if interrupts.raised is not None:
        raise interrupts.raised from None
    return answer
