"""Workers of a dask cluster: the only file that knows dask's scheduler."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, final

from accord.core import check as _check
from accord.core.errors import AccordError, DataError, InvalidParameter, WorkersLost

__all__ = ["DaskWorkers", "answers_by", "gathered", "is_dask_frame", "quietly"]

_T = TypeVar("_T")
_Given = TypeVar("_Given")
_AHEAD = 2
_TRIES = 3
_WAIT = "30s"
_NOT_INSTALLED = "workers need dask: pip install 'accord[dask]', or leave them out."
_LOST = (
    "workers of the cluster went away again and again, or its scheduler did: nothing is released. Give workers more "
    "memory, or a fit less of it by Isolation(memory=...)."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DaskWorkers:
    """The workers behind a scheduler of dask, which runs already.

    Scheduler, workers, their dashboard and the client are trusted: they hold records, or exact counts of them. Use TLS
    between machines. Each worker needs accord, in the client's version.

    Formal guarantees
    -----------------
    - A task is a function of what it is given, and draws no noise: one that is run again, as its worker was lost, gives
      what it gave.
    - Values are public: an address.
    - Not promised: an answer if workers are lost again and again.

    Parameters
    ----------
    scheduler
        Its address, such as "tls://10.0.0.1:8786".
    security
        A ``distributed.Security`` with the keys for TLS; by default what dask's own configuration says.

    Examples
    --------
    >>> DaskWorkers(scheduler="tls://10.0.0.1:8786")
    DaskWorkers(scheduler='tls://10.0.0.1:8786')

    """

    scheduler: str
    security: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.scheduler, str) or not self.scheduler.strip():
            raise InvalidParameter("scheduler must be the address of a scheduler of dask, such as tcp://host:8786.")

    @classmethod
    @contextmanager
    def local(cls, count: int) -> Iterator[Self]:
        """Start so many processes of one thread each on this machine, and end them behind the block.

        They speak TLS with keys that are made anew, so that others who can log in here cannot ask them for anything.

        Raises
        ------
        InvalidParameter
            If dask is not installed.

        """
        count = _check.integer("workers", count, least=1, most=1024)
        distributed = _distributed()
        security = distributed.Security.temporary()
        with distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            worker_dashboard_address=None,
            security=security,
            silence_logs=50,
        ) as cluster:
            yield cls(scheduler=str(cluster.scheduler_address), security=security)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Give a connection to the scheduler, which is closed behind the block.

        Raises
        ------
        InvalidParameter
            If dask is not installed, or there is no scheduler at the address.

        """
        distributed = _distributed()
        client = None
        with suppress(OSError, TimeoutError, ValueError):
            client = distributed.Client(self.scheduler, security=self.security, set_as_default=False, timeout=_WAIT)
        if client is None:
            raise InvalidParameter("no scheduler of dask answers at the address that was given.")
        try:
            yield client
        finally:
            client.close()

    def packed(self, value: object) -> bytes:
        """Return a public value as bytes; a class or function of a script or a notebook goes with it.

        Raises
        ------
        InvalidParameter
            If it cannot be sent.

        """
        _distributed()
        sent = None
        try:
            sent = importlib.import_module("cloudpickle").dumps(value)
        except Exception:  # noqa: BLE001 - its own code
            sent = None
        if not isinstance(sent, bytes):
            raise InvalidParameter(f"a {type(value).__name__} cannot be sent to workers: it does not pickle.")
        return sent

    def answers(
        self, task: Callable[[bytes], bytes | None], given: Iterable[bytes]
    ) -> Iterator[tuple[int, bytes | None]]:
        """Yield the place and ``task(one)`` of each one given, as they come; few are sent ahead.

        Raises
        ------
        WorkersLost
            If a task lost its worker again and again.

        """
        with self.client() as client:
            yield from answers_by(client, task, given)


def is_dask_frame(data: Any) -> bool:  # noqa: ANN401 - any container
    """Return whether this is a data frame of dask."""
    return type(data).__module__.partition(".")[0] == "dask" and hasattr(data, "to_delayed") and hasattr(data, "dtypes")


def quietly(task: Callable[[], _T], *, lost: str) -> _T | AccordError:
    """Return what a task on a worker gives, or its error as a value: dask logs what is raised, with what it was given.

    Parameters
    ----------
    task
        What to do.
    lost
        What to say of an error that is not accord's, whose text may hold cells.

    """
    try:
        return task()
    except AccordError as error:
        return error.with_traceback(None)
    except Exception:  # noqa: BLE001 - its text may hold cells
        return DataError(lost)


def gathered(
    client: Any,  # noqa: ANN401 - dask's
    futures: list[Any],
    *,
    lost: str,
    told: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Return results; whatever dask cannot give is a loss of workers, which ``lost`` tells.

    Parameters
    ----------
    client
        Of dask.
    futures
        No task of them raises.
    lost
        What to say where a result cannot come.
    told
        Called with how many have come, and how many there are.

    """
    found = None
    try:
        if told is not None:
            for done, _ in enumerate(_distributed().as_completed(futures, loop=client.loop), start=1):
                told(done, len(futures))
        found = client.gather(futures)
    except Exception:  # noqa: BLE001 - of dask: no task raises
        found = None
    if found is None:
        raise WorkersLost(lost)
    return list(found)


def answers_by(
    client: Any,  # noqa: ANN401 - dask's
    task: Callable[[_Given], bytes | None],
    given: Iterable[_Given],
) -> Iterator[tuple[int, bytes | None]]:
    """Do what `DaskWorkers.answers` does, by a client that is open; what is given may hold futures."""
    distributed = _distributed()
    source = enumerate(given)
    under_way: dict[Any, tuple[int, _Given, int]] = {}
    room = max(1, _AHEAD * sum(client.nthreads().values()))
    done = distributed.as_completed(loop=client.loop)

    def submit(place: int, one: _Given, tries: int) -> None:
        future = client.submit(task, one, pure=False)
        under_way[future] = (place, one, tries)
        done.add(future)

    for place, one in source:
        submit(place, one, 1)
        if len(under_way) >= room:
            break
    while under_way:
        future = next(done)
        place, one, tries = under_way.pop(future)
        if future.status == "finished":
            answer = future.result()
            future.release()
            yield place, answer
            following = next(source, None)
            if following is not None:
                submit(*following, 1)
        elif tries < _TRIES:  # its worker was lost more often than dask takes, perhaps by another's doing
            submit(place, one, tries + 1)
        else:
            raise WorkersLost(_LOST)


def _distributed() -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InvalidParameter(_NOT_INSTALLED) from None
