"""Every statement of the texts has its entry in docs/statements.md, and the lines of each entry run by themselves."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accord import theory
from accord.theory import planning

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "statements.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PREAMBLE, ENTRIES = TEXT.split("\n## ", 1)
ENTRIES = ENTRIES.split("\n## Beyond the texts", 1)[0]
MOST_LINES = 3

STATEMENTS = {
    *(f"M {number}" for number in range(1, 11)),
    "C 1",
    *(f"L {number}" for number in ("1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.1", "2.2", "2.3", "2.4", "2.5")),
    *(f"L {number}" for number in ("3.1", "3.2", "3.3", "4.1", "4.3", "4.4", "5.1", "6.1", "6.2")),
    *(f"L A.{number}" for number in range(1, 9)),
    *(f"L B.{number}" for number in range(1, 8)),
    *(f"L C.{number}" for number in range(1, 6)),
    *(f"L Algorithm {number}" for number in range(1, 8)),
}
"""Numbers of the texts: definitions, lemmas, theorems, corollaries, remarks, constructions and algorithms."""


class Entry(NamedTuple):
    number: str
    words: str
    lines: str


def entries() -> list[Entry]:
    found = []
    for part in ENTRIES.split("\n### ")[1:]:
        heading, body = part.split("\n", 1)
        number = re.match(r"[MCL] (?:Algorithm )?[\w.]*\d", heading)
        assert number, heading
        fences = FENCE.findall(body)
        assert len(fences) == 1, heading
        found.append(Entry(number[0], body.split("```", 1)[0].strip(), fences[0]))
    return found


def test_every_statement_has_one_entry() -> None:
    numbers = [entry.number for entry in entries()]
    assert set(numbers) == STATEMENTS
    assert len(numbers) == len(STATEMENTS)


def test_every_entry_names_something_and_takes_three_lines() -> None:
    for number, words, lines in entries():
        assert words, number
        assert len([line for line in lines.splitlines() if line.strip()]) <= MOST_LINES, number
        assert "assert" in lines, number


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.number)
def test_lines_run_alone_after_the_first(entry: Entry) -> None:
    names: dict[str, Any] = {}
    (first,) = FENCE.findall(PREAMBLE)
    exec(compile(first, "the first lines", "exec"), names)  # noqa: S102 - this is what the test is for
    exec(compile(entry.lines, entry.number, "exec"), names)  # noqa: S102 - this is what the test is for


def test_every_public_name_of_the_theory_is_on_the_page() -> None:
    assert [name for name in theory.__all__ if not re.search(rf"\b{name}\b", TEXT)] == []
    assert [name for name in planning.__all__ if not re.search(rf"\b{name}\b", TEXT)] == []
