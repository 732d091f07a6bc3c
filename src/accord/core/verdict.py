"""A judgement about a release that its reader must see, by a code that stays and a sentence."""

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from accord.core.errors import InvalidParameter

__all__ = ["Verdict", "VerdictWarning", "collected", "judge", "tell", "within_larger"]

_CODE = re.compile(r"[a-z]+(-[a-z]+)*")
_WITHIN: ContextVar[bool] = ContextVar("within a larger release", default=False)
_COLLECTED: ContextVar["list[Verdict] | None"] = ContextVar("collected verdicts", default=None)


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that a release's reader must know, such as that a column is noise.

    Formal guarantees
    -----------------
    - Silence: a verdict follows from public facts and from what was released; it holds no cell and no count of records.

    Parameters
    ----------
    code
        For machines; lower-case words joined by hyphens, such as ``"not-enough-records"``. Codes stay.
    text
        One sentence for people, which says what to do next.

    Examples
    --------
    >>> print(Verdict("delta-too-large", "delta is not far below 1 / 100: choose 1e-4."))
    delta is not far below 1 / 100: choose 1e-4. [delta-too-large]

    """

    code: str
    text: str

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise InvalidParameter("code must be lower-case words joined by hyphens.")
        if not self.text:
            raise InvalidParameter("text must say something.")

    def __str__(self) -> str:
        return f"{self.text} [{self.code}]"

    def document(self) -> dict[str, str]:
        """Return it for JSON."""
        return {"code": self.code, "text": self.text}


class VerdictWarning(UserWarning):
    r"""A verdict as a Python warning; ``verdict`` keeps it.

    Filter one kind by ``warnings.filterwarnings("ignore", message=r".*\[its-code\]")``.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way back from a worker process."""
        return partial(type(self), self.verdict), ()


def tell(verdict: Verdict, *, stacklevel: int = 2) -> None:
    """Give a verdict as a Python warning, at the caller's caller by default, or to `collected` around it."""
    into = _COLLECTED.get()
    if into is None:
        warnings.warn(VerdictWarning(verdict), stacklevel=stacklevel + 1)
    elif verdict not in into:
        into.append(verdict)


def judge(verdicts: Iterable[Verdict], *, stacklevel: int = 2) -> None:
    """Tell the verdicts on a release, at the caller's caller by default; nothing inside `within_larger`."""
    if not _WITHIN.get():
        for verdict in verdicts:
            tell(verdict, stacklevel=stacklevel + 1)


@contextmanager
def within_larger() -> Iterator[None]:
    """Let no release inside be judged: it is a part of a larger one, which is judged once and as a whole.

    Other verdicts, such as those of a ledger, are told all the same.

    Examples
    --------
    >>> with collected() as verdicts, within_larger():
    ...     judge([Verdict("delta-too-large", "choose a smaller delta.")])
    >>> verdicts
    []

    """
    token = _WITHIN.set(True)
    try:
        yield
    finally:
        _WITHIN.reset(token)


@contextmanager
def collected() -> Iterator[list[Verdict]]:
    """Collect the verdicts that are told inside, each once, in place of warning: for accounts that show them.

    Examples
    --------
    >>> with collected() as verdicts:
    ...     tell(Verdict("delta-too-large", "choose a smaller delta."))
    >>> [verdict.code for verdict in verdicts]
    ['delta-too-large']

    """
    into: list[Verdict] = []
    token = _COLLECTED.set(into)
    try:
        yield into
    finally:
        _COLLECTED.reset(token)
