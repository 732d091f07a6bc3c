"""Whoever changes what a whole process shares takes turns: one lock, and a person's interrupts while it is held."""

import contextlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import final

__all__ = ["Interrupts", "silence", "turn", "watched"]


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
