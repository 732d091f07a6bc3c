"""Try a learner and a coupling on made-up tables before anything is spent. Reads no record of anybody."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.cells import Cells, labels_in, numbers_in
from accord.core.coupling import ABSTAIN, Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.isolation import Fitted, Isolation, SealedLaw, couple_apart
from accord.core.points import is_isolated
from accord.core.records import cells_read_by
from accord.core.shared import SharedRandomness
from accord.couplings import TupleReference

__all__ = ["MOST_ROWS", "continuous_tables", "rehearse_votes"]

_KEY = SharedRandomness(0)
MOST_ROWS = 64
_WORDS = ("a", "b", "c")
_FAULTS = (TypeError, AttributeError, NameError, NotImplementedError, ImportError)
"""What code raises that cannot work: no number in a table of this shape would help."""


def continuous_tables(rows: int, columns: int) -> tuple[NDArray[np.float64], ...]:
    """Return made-up normal, log-normal and uniform records, each of shape (rows, columns): always the same."""
    normal = _KEY.stream("rehearsal").standard_normal((rows, columns))
    return normal, np.exp(normal), _KEY.stream("rehearsal", 1).random((rows, columns))


def rehearse_votes(
    learner: Learner,
    *,
    coupling_about: Callable[[Fitted], Coupling | None],
    coupling_name: str,
    records: int,
    columns: int,
    rows: int,
    isolation: Isolation,
) -> None:
    """Refuse a coupling that takes no law which a learner fits to made-up tables, and a learner of broken code.

    Formal guarantees
    -----------------
    - A function of the arguments, all public, and of fixed keys: neither a record nor the release's key is read.
    - Refused is only where laws were fitted and none got a vote, or where a learner of numbers raised, on each table, a
      `TypeError`, `AttributeError`, `NameError`, `NotImplementedError` or `ImportError`. A learner that fails
      otherwise is not refused: it may fit other records.
    - The tables: the learner's own `example`, if it has that method; draws from its public ``candidates``,
      ``categories`` or between its ``edges``; the public labels or the public reference of the coupling; normal records
      of several places, log-normal and uniform ones, whole numbers, words. At most 64 rows.
    - Not promised: that real blocks vote.

    Parameters
    ----------
    learner, isolation
        As for the blocks.
    coupling_about
        Gives the coupling, which may hang on a law that the learner fitted; None for a law about which there is none.
    coupling_name
        The coupling's class, for the refusal.
    records
        Of a tuple.
    columns
        Of the table.
    rows
        Of a table, at most `MOST_ROWS`: no more than a block may have.

    Raises
    ------
    InvalidParameter
        Naming the classes; nothing has been spent.

    """
    known = alone(lambda: coupling_about(ABSTAIN), failed=None)  # one that hangs on no law
    reads, outcomes = cells_read_by(learner), list[str | None]()
    failure: Exception | None = None
    law_name: str | None = None
    for number, table in enumerate(_tables(learner, known, rows=min(rows, MOST_ROWS), columns=columns, cells=reads)):
        key = _KEY.child("rehearsal", number)
        law = isolation.fit_block(_Noting(learner), table, seed=key.seed("learner"))
        fault = str(law) if isinstance(law, str) else None
        if law is ABSTAIN or law is None or fault is not None:
            outcomes.append(fault)
            continue
        law_name = "its law" if type(law) is SealedLaw else type(law).__name__
        try:
            coupling = coupling_about(law)
            if coupling is None or _votes(coupling, law, records=records, key=key):
                return
        except Exception as error:  # noqa: BLE001 - of the coupling: another table may still pass
            failure = error
    if isinstance(failure, InvalidParameter):  # it says itself what it needs, such as another length of tuples
        raise failure
    if law_name is not None:
        raise InvalidParameter(_cannot_couple(learner, law_name, coupling_name)) from failure
    if reads == "numbers" and outcomes and None not in outcomes:
        raise InvalidParameter(_broken(learner, str(outcomes[-1]), columns))


def _cannot_couple(learner: Learner, law_name: str, coupling_name: str) -> str:
    name = type(learner).__name__
    return (
        f"{coupling_name} cannot couple {law_name}, which {name} fits to made-up tables: every block would abstain. "
        f"Pass as coupling= one for these laws, or if it takes those of other records, give {name} a method "
        f"example(size, columns) that returns made-up records like them. Nothing was spent."
    )


def _broken(learner: Learner, fault: str, columns: int) -> str:
    return (
        f"{type(learner).__name__} fits no table of {columns} column{'s' if columns > 1 else ''}: on each one that was "
        f"made up to try it, its fit ends with {fault}. Mend its fit. Nothing was spent."
    )


@final
@dataclass(frozen=True, slots=True)
class _Noting:
    """The learner, with the name of the fault in its code for a law, which a child process can send too."""

    learner: Learner

    def fit(self, records: NDArray[Any], *, seed: int) -> Any:  # noqa: ANN401 - a law, or a name
        try:
            return self.learner.fit(records, seed=seed)
        except _FAULTS as error:
            return next(kind.__name__ for kind in _FAULTS if isinstance(error, kind))


def _votes(coupling: Coupling, law: Fitted, *, records: int, key: SharedRandomness) -> bool:
    """Whether a block with this law has a vote, among two that have it."""
    coupled = couple_apart(
        coupling,
        [law, law],
        isolated=is_isolated(coupling),
        records=records,
        draws=1,
        shared=key.child("coupling"),
    )
    return any(isinstance(vote, bytes) for vote in coupled.keys.flat)


def _tables(
    learner: Learner, coupling: Coupling | None, *, rows: int, columns: int, cells: Cells
) -> Iterator[NDArray[Any]]:
    """Yield made-up tables as the learner reads them, those that public facts suggest first."""
    for make in (_own_examples, _drawn_examples, _reference_examples, _plain_examples):
        for table in make(learner, coupling, rows, columns):
            read = alone(partial(_read, table, cells), failed=None)
            if read is not None and read.shape == (len(read), columns) and 0 < len(read) <= rows:
                yield read


def _read(table: Any, cells: Cells) -> NDArray[Any]:  # noqa: ANN401 - what a learner gave
    found = np.asarray(table) if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    shaped = found[:, None] if found.ndim == 1 else found
    return numbers_in(shaped) if cells == "numbers" else labels_in(shaped)


def _own_examples(learner: Learner, _: Coupling | None, rows: int, columns: int) -> Iterator[Any]:
    example = alone(lambda: learner.example(rows, columns), failed=None)  # type: ignore[attr-defined]
    if example is not None:
        yield example


def _drawn_examples(learner: Learner, coupling: Coupling | None, rows: int, columns: int) -> Iterator[Any]:
    stream = _KEY.stream("rehearsal", "drawn")
    for source in (learner, *_layers(coupling)):
        for law in _listed(source, "candidates")[:2]:
            if isinstance(law, Distribution):
                yield alone(partial(law.sample, rows, stream), failed=None)
        labels = _listed(source, "categories")
        if labels:
            column = np.empty(len(labels), dtype=object)
            column[:] = labels
            yield column[stream.integers(0, len(labels), (rows, columns))]
    edges = _listed(learner, "edges")
    if len(edges) > 1 and all(isinstance(edge, (int, float)) for edge in edges):
        yield edges[0] + (edges[-1] - edges[0]) * stream.random((rows, columns))


def _listed(source: object, name: str) -> list[Any]:
    """Return what is listed under a name; an iterator is left alone, as it may be read once or never end."""
    found = alone(lambda: getattr(source, name, None), failed=None)
    if isinstance(found, np.ndarray):
        return list(found.tolist()) if found.ndim == 1 else []
    return list(found) if isinstance(found, (list, tuple)) else []


def _reference_examples(_: Learner, coupling: Coupling | None, rows: int, __: int) -> Iterator[Any]:
    """Yield records of the coupling's public reference, which laws of other places may not reach."""
    for layer in _layers(coupling):
        reference = alone(partial(getattr, layer, "reference", None), failed=None)
        if isinstance(reference, TupleReference):
            yield alone(partial(_of_reference, reference, rows), failed=None)


def _of_reference(reference: TupleReference, rows: int) -> NDArray[Any]:
    key = _KEY.child("rehearsal", "reference")
    points = reference.points(0, 0, records=rows, shared=key)
    return reference.decode(points[0], draw=0, number=0, records=rows, shared=key)


def _plain_examples(_: Learner, __: Coupling | None, rows: int, columns: int) -> Iterator[Any]:
    normal, positive, uniform = continuous_tables(rows, columns)
    yield normal
    yield _KEY.stream("rehearsal", "counts").poisson(3.0, (rows, columns)).astype(float)
    yield positive
    yield uniform
    yield (uniform < 0.5).astype(float)
    yield normal * 100.0
    yield normal * 10.0 + 100.0
    yield np.zeros((rows, columns))
    yield np.array(_WORDS, dtype=object)[(uniform * len(_WORDS)).astype(int)]
    yield uniform < 0.5


def _layers(coupling: Any) -> list[Any]:  # noqa: ANN401 - anybody's coupling
    """Return the coupling and those that it is made of."""
    found: list[Any] = []
    while coupling is not None and len(found) < 4:
        found.append(coupling)
        coupling = alone(partial(_inner, coupling), failed=None)
    return found


def _inner(coupling: Any) -> Any:  # noqa: ANN401
    return getattr(coupling, "single", None) or getattr(coupling, "inner", None)
