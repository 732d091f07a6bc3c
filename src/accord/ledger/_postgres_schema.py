"""The tables and triggers of a ledger in PostgreSQL: rows can be added at the end and never changed."""

from typing import Final

from accord.ledger.entry import GENESIS

__all__ = ["SCRIPT", "TRIGGERS"]

_REFUSE: Final = "BEGIN RAISE EXCEPTION 'a ledger only grows'; END"
_IN_ORDER: Final = """BEGIN
    IF NEW.sequence IS DISTINCT FROM (SELECT sequence + 1 FROM accord_head)
            OR NEW.previous IS DISTINCT FROM (SELECT digest FROM accord_head) THEN
        RAISE EXCEPTION 'a ledger only grows';
    END IF;
    RETURN NEW;
END"""
_MOVES_HEAD: Final = """BEGIN
    UPDATE accord_head SET sequence = NEW.sequence, digest = NEW.digest;
    RETURN NULL;
END"""
_HEAD_IS_LAST: Final = """BEGIN
    IF NEW.sequence IS DISTINCT FROM (SELECT max(sequence) FROM accord_entries)
            OR NEW.digest IS DISTINCT FROM (SELECT digest FROM accord_entries WHERE sequence = NEW.sequence) THEN
        RAISE EXCEPTION 'a ledger only grows';
    END IF;
    RETURN NEW;
END"""

_WHEN: Final = {
    "accord_in_order": ("BEFORE INSERT ON accord_entries FOR EACH ROW", _IN_ORDER),
    "accord_moves_head": ("AFTER INSERT ON accord_entries FOR EACH ROW", _MOVES_HEAD),
    "accord_no_change": ("BEFORE UPDATE OR DELETE OR TRUNCATE ON accord_entries FOR EACH STATEMENT", _REFUSE),
    "accord_head_stays": ("BEFORE INSERT OR DELETE OR TRUNCATE ON accord_head FOR EACH STATEMENT", _REFUSE),
    "accord_head_is_last": ("BEFORE UPDATE ON accord_head FOR EACH ROW", _HEAD_IS_LAST),
}

TRIGGERS: Final = frozenset((name, body) for name, (_, body) in _WHEN.items())
"""Name and body of every trigger, as PostgreSQL's catalogue must list them, switched on."""

SCRIPT: Final = (
    """CREATE TABLE accord_entries (sequence bigint PRIMARY KEY, kind text NOT NULL, time text NOT NULL,
        epsilon text, delta text, neighbouring text, unit text, charge bigint, what text, who text, why text,
        note text, previous text NOT NULL, digest text NOT NULL)""",
    """CREATE TABLE accord_head (only_row integer PRIMARY KEY CHECK (only_row = 1), sequence bigint NOT NULL,
        digest text NOT NULL)""",
    f"INSERT INTO accord_head VALUES (1, 0, '{GENESIS}')",  # noqa: S608 - a constant
    *(
        sql
        for name, (when, body) in _WHEN.items()
        for sql in (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$",
            f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()",
        )
    ),
)
"""Statements that make an empty ledger."""
