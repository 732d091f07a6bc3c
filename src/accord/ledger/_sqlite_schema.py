"""The tables and triggers of a ledger in SQLite: rows can be added at the end and never changed."""

from typing import Final

from accord.ledger.entry import FORMAT, GENESIS

__all__ = ["APPLICATION", "SCRIPT", "STRUCTURE"]

APPLICATION: Final = 0x41434C47  # "ACLG", in the header of the file

_OBJECTS: Final = {
    "entries": """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL,
        epsilon TEXT, delta TEXT, neighbouring TEXT, unit TEXT, charge INTEGER, what TEXT, who TEXT, why TEXT,
        note TEXT, previous TEXT NOT NULL, digest TEXT NOT NULL)""",
    "head": """CREATE TABLE head (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), sequence INTEGER NOT NULL,
        digest TEXT NOT NULL)""",
    "in_order": """CREATE TRIGGER in_order BEFORE INSERT ON entries
        WHEN NEW.sequence IS NOT (SELECT sequence + 1 FROM head) OR NEW.previous IS NOT (SELECT digest FROM head)
        BEGIN SELECT RAISE(ABORT, 'only grows'); END""",
    "moves_head": """CREATE TRIGGER moves_head AFTER INSERT ON entries
        BEGIN UPDATE head SET sequence = NEW.sequence, digest = NEW.digest; END""",
    "no_change": "CREATE TRIGGER no_change BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "no_removal": "CREATE TRIGGER no_removal BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "one_head": "CREATE TRIGGER one_head BEFORE INSERT ON head BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "head_stays": "CREATE TRIGGER head_stays BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'only grows'); END",
    "head_is_last": """CREATE TRIGGER head_is_last BEFORE UPDATE ON head
        WHEN NEW.sequence IS NOT (SELECT max(sequence) FROM entries)
            OR NEW.digest IS NOT (SELECT digest FROM entries WHERE sequence = NEW.sequence)
        BEGIN SELECT RAISE(ABORT, 'only grows'); END""",
}

STRUCTURE: Final = frozenset(_OBJECTS.items())
"""Name and SQL of every object, as SQLite's own catalogue must list them."""

_FIRST: Final = ("entries", "head")
SCRIPT: Final = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
    *(_OBJECTS[name] for name in _FIRST),
    f"INSERT INTO head VALUES (1, 0, '{GENESIS}')",  # noqa: S608 - a constant
    *(sql for name, sql in _OBJECTS.items() if name not in _FIRST),
)
"""Statements that make an empty ledger."""
