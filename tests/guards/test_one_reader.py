"""Containers of records and names of units are read in accord.core alone."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "accord"
READERS = {"asarray", "asanyarray", "array", "ascontiguousarray", "unique", "tolist", "fromiter", "list", "to_numpy"}
NAMES = {"units", "groups"}
GONE = {"as_records", "as_unit_names", "unit_numbers", "count_units", "take_in", "Intake"}
KNOWN = {
    "learning/density/refine/_units.py": {"asarray"},  # numbers of units that the core made, for compiled code
    "couplings/hashed_lattice.py": {"asarray"},  # units of measurement
    "marginals/_placing.py": {"asarray"},  # groups of cells
    "tables/column.py": {"list"},  # groups of labels
}


def readings(tree: ast.AST) -> set[str]:
    """Return by what a file reads something called units."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in READERS:
            continue
        parts = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        names = {part.id for one in parts for part in ast.walk(one) if isinstance(part, ast.Name)}
        if names & NAMES and not all(isinstance(part, ast.Attribute) for part in parts[:1]):
            found.add(called)
    return found


def others() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name != "core"]


def test_A4_no_file_but_the_core_reads_names_of_units() -> None:
    found = {path.relative_to(SOURCE).as_posix(): readings(ast.parse(path.read_text("utf-8"))) for path in others()}
    assert len(found) > 100
    assert {path: by for path, by in found.items() if by - KNOWN.get(path, set())} == {}


def test_A7_the_readers_of_old_are_gone() -> None:
    for path in others():
        names = {node.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)}
        assert not names & GONE, path


@pytest.mark.parametrize(
    "code",
    ["np.unique(np.asarray(units))", "list(units)", "units.tolist()", "np.array([one for one in units])"],
)
def test_a_second_reader_is_caught(code: str) -> None:
    assert readings(ast.parse(code))
    assert not readings(ast.parse("Records.of(data, units=units)"))
