"""One line of a ledger: immutable, exact, and sealed by a digest that covers the line before it."""

import hashlib
import json
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Final, final

from accord.core.errors import LedgerError
from accord.core.guarantee import Neighbouring

__all__ = ["COLUMNS", "FORMAT", "GENESIS", "KINDS", "Cell", "Entry"]

FORMAT: Final = 1
GENESIS: Final = "0" * 64
"""Stands for the digest before the first entry."""
KINDS: Final = ("create", "charge", "confirm", "abandon", "cap")
_TAG: Final = f"accord ledger {FORMAT}"

Cell = int | str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, as it is stored.

    Parameters
    ----------
    sequence
        1, 2, 3, ... without gaps.
    kind
        ``create`` (the first: cap, relation and unit), ``charge``, ``confirm`` and ``abandon`` (of an earlier charge),
        or ``cap``.
    time
        UTC, as the computer's clock had it; ISO 8601.
    epsilon, delta
        What a charge spends, or what a cap allows; None for the other kinds.
    neighbouring, unit
        As in the guarantee; None for the kinds that have no epsilon.
    charge
        The sequence number of the charge that is confirmed or abandoned.
    what, who, why, note
        What people said about it: one line each, or None.
    previous, digest
        SHA-256 in hexadecimal: of the entry before, and of this one with ``previous`` in it.

    """

    sequence: int
    kind: str
    time: str
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    neighbouring: Neighbouring | None = None
    unit: str | None = None
    charge: int | None = None
    what: str | None = None
    who: str | None = None
    why: str | None = None
    note: str | None = None
    previous: str = GENESIS
    digest: str = ""

    @classmethod
    def from_row(cls, row: tuple[Cell, ...]) -> "Entry":
        """Return the entry of a stored row; its digest is not checked here.

        Raises
        ------
        LedgerError
            If a cell is not of the kind that accord writes.

        """
        cells = dict(zip(COLUMNS, row, strict=True))
        try:
            entry = cls(
                sequence=_whole(cells["sequence"]),
                kind=_text(cells["kind"]),
                time=_text(cells["time"]),
                epsilon=_fraction(cells["epsilon"]),
                delta=_fraction(cells["delta"]),
                neighbouring=None if cells["neighbouring"] is None else Neighbouring(cells["neighbouring"]),
                unit=_optional(cells["unit"]),
                charge=None if cells["charge"] is None else _whole(cells["charge"]),
                what=_optional(cells["what"]),
                who=_optional(cells["who"]),
                why=_optional(cells["why"]),
                note=_optional(cells["note"]),
                previous=_text(cells["previous"]),
                digest=_text(cells["digest"]),
            )
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(f"entry {_shown(cells['sequence'])} is not as accord writes it.") from None
        if entry.kind not in KINDS or entry.row() != row:
            raise LedgerError(f"entry {entry.sequence} is not as accord writes it.")
        return entry

    def row(self) -> tuple[Cell, ...]:
        """Return the cells in the order of ``COLUMNS``; numbers as ``p/q``."""
        return (
            self.sequence,
            self.kind,
            self.time,
            _written(self.epsilon),
            _written(self.delta),
            None if self.neighbouring is None else self.neighbouring.value,
            self.unit,
            self.charge,
            self.what,
            self.who,
            self.why,
            self.note,
            self.previous,
            self.digest,
        )

    def seal(self) -> str:
        """Return the digest that this entry must have: of every other field, unambiguously written."""
        content = json.dumps([_TAG, *self.row()[:-1]], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def sealed(self) -> "Entry":
        """Return this entry with its digest."""
        return replace(self, digest=self.seal())


COLUMNS: Final = tuple(field.name for field in fields(Entry))


def _shown(cell: object) -> str:
    """Return a stored number for a message, or a question mark for anything else."""
    return str(cell) if isinstance(cell, int) else "?"


def _whole(cell: Cell) -> int:
    if not isinstance(cell, int):
        raise TypeError
    return cell


def _text(cell: Cell) -> str:
    if not isinstance(cell, str):
        raise TypeError
    return cell


def _optional(cell: Cell) -> str | None:
    return None if cell is None else _text(cell)


def _fraction(cell: Cell) -> Fraction | None:
    if cell is None:
        return None
    numerator, _, denominator = _text(cell).partition("/")
    return Fraction(int(numerator), int(denominator))


def _written(number: Fraction | None) -> str | None:
    return None if number is None else f"{number.numerator}/{number.denominator}"
