"""How a command ends: an exit code and one line on stderr, whatever happened."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from accord.core.errors import AccordError, NothingReleased
from accord.core.spending import SPENT

__all__ = ["BAD_INPUT", "NO_ANSWER", "REFUTED", "UNEXPECTED", "Stop", "guarded", "say"]

UNEXPECTED = 1
BAD_INPUT = 2
NO_ANSWER = 3
REFUTED = 4
_INTERRUPTED = 130


class Stop(Exception):
    """End the command with a code and a line."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    """Print one line on stderr."""
    line = " ".join(f"accord: {message}".split())
    encoding = sys.stderr.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


@contextmanager
def guarded() -> Iterator[None]:
    """Turn every exception of a command into its exit code and one line.

    What accord refuses is printed as it stands, since its errors hold no data. Of any other exception only the type is
    named, because its text may hold data; ``ACCORD_DEBUG=1`` shows it all.
    """
    try:
        yield
    except typer.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        code, message = _ending(error)
        late = _spent(error) and not isinstance(error, NothingReleased)
        foreign = error.__cause__ is not None if isinstance(error, Stop) else code == UNEXPECTED or late
        if foreign and os.environ.get("ACCORD_DEBUG") == "1":
            traceback.print_exc()
        say(message)
    else:
        return
    raise typer.Exit(code)


def _ending(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the line for an exception."""
    match error:
        case Stop():
            return error.code, str(error)
        case NothingReleased():
            return NO_ANSWER, str(error)
        case AccordError():
            return _spent_ending(error) if _spent(error) else (BAD_INPUT, str(error))
        case KeyboardInterrupt():
            known = "" if _spent(error) else "if the release had begun, "
            return _INTERRUPTED, f"interrupted: nothing was written; {known}count its budget as spent."
        case OSError():
            return UNEXPECTED, f"the operating system reports: {error.strerror or type(error).__name__}{_too(error)}."
        case _:
            message = f"unexpected {type(error).__name__}: a fault of accord{_too(error)} "
            return UNEXPECTED, message + "(ACCORD_DEBUG=1 shows where; it may show data)."


def _spent(error: BaseException) -> bool:
    """Return whether the release had begun."""
    return SPENT in getattr(error, "__notes__", ())


def _too(error: BaseException) -> str:
    return "; the release had begun, so its budget is spent" if _spent(error) else ""


def _spent_ending(error: AccordError) -> tuple[int, str]:
    """Return the ending for a refusal that came too late; its text is left out, since it may depend on the data."""
    message = f"no answer: {type(error).__name__} after the release had begun; nothing was written, and the budget is "
    return NO_ANSWER, message + "spent all the same (ACCORD_DEBUG=1 shows where; it may show data)."
