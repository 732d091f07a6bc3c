"""Say on the terminal how far a fit is: public numbers only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import TaskID

from accord.core.blocks import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(*, verbose: int) -> Iterator[Progress | None]:
    """Give a function to report progress to, or None unless ``verbose`` is above 0. Writes to standard error.

    Examples
    --------
    >>> with progress_bar(verbose=0) as progress:
    ...     progress is None
    True

    """
    if not verbose > 0:
        yield None
        return
    with Bars(console=Console(stderr=True), transient=verbose == 1) as bars:
        known: dict[str, TaskID] = {}

        def progress(done: int, total: int, what: str) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done, total=total)

        yield progress
