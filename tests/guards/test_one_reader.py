"""Containers of records and names of units are read in accord.core alone."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "accord"
READERS = {"asarray", "asanyarray", "array", "ascontiguousarray", "unique", "tolist", "fromiter", "list", "to_numpy"}
NAMES = {"units", "groups"}
GONE = {"as_records", "as_unit_names", "unit_numbers", "count_units", "take_in", "Intake"}
KNOWN = {
    "density/refine/projections.py": {"asarray"},  # numbers of units that the core made, for compiled code
    "learning/on_workers.py": {"unique"},  # numbers of units that were given out for names
    "couplings/lattice/hashed.py": {"asarray"},  # units of measurement
    "marginals/placing.py": {"asarray"},  # groups of cells
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


TABLES = {"X", "data", "table", "records", "rows", "values", "frame"}
LOOSE = ("Any", "object", "ArrayLike")
TABLE_READERS = READERS | {
    "tuple",
    "atleast_2d",
    "column_stack",
    "hstack",
    "vstack",
    "stack",
    "validate_data",
    "check_array",
}
KNOWN_OF_TABLES = {
    "distributions/measured.py": {"asarray"},  # values that a law was asked about
    "density/columns_in.py": {"validate_data"},  # names of a frame; its cells are read by the core
    "density/refine/projections.py": {"asarray"},  # records that the core read, for compiled code
    "learning/rehearsal.py": {"asarray", "array"},  # tables that nobody's records are in
    "noise/clamped_sum.py": {"asarray"},  # takes an array of numbers and says so
    "tables/cells.py": {"list"},  # spellings that a schema lists
}


def readings_of_tables(tree: ast.AST) -> set[str]:
    """Return by what functions of a file take a table apart that came to them in any container.

    Such a table is a parameter that is not annotated as an array, and whatever a loop takes out of it.
    """
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {
            argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg) and _any(argument)
        }
        for _ in range(3):  # rows of a table, cells of a row
            for loop in ast.walk(function):
                if isinstance(loop, (ast.For, ast.comprehension)) and names & _names(loop.iter):
                    names |= _names(loop.target)
        found |= {called for called, read in _calls(function) if called in TABLE_READERS and names & read}
    return found


def _any(argument: ast.arg) -> bool:
    written = "" if argument.annotation is None else ast.unparse(argument.annotation)
    return argument.arg in TABLES and "NDArray" not in written and any(word in written for word in LOOSE)


def _names(tree: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}


def _calls(function: ast.FunctionDef) -> list[tuple[str, set[str]]]:
    """Return what is called, and the names handed to it, or whose method it is: what another call made is not."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            method = node.func if isinstance(node.func, ast.Attribute) else None
            called = getattr(node.func, "id", "") if method is None else method.attr
            handed = _handed(node.args if method is None else [*node.args, method.value])
            found.append((called, handed))
    return found


def _handed(parts: list[ast.expr]) -> set[str]:
    names: set[str] = set()
    waiting: list[ast.AST] = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif not isinstance(part, ast.Call):
            waiting.extend(ast.iter_child_nodes(part))
    return names


def test_A15_no_file_but_the_core_takes_a_table_apart() -> None:
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in others()}
    found = {path: readings_of_tables(tree) for path, tree in trees.items()}
    assert {path: by for path, by in found.items() if by - KNOWN_OF_TABLES.get(path, set())} == {}
    assert {path for path, by in KNOWN_OF_TABLES.items() if by - found[path]} == set()  # none is excused for nothing


@pytest.mark.parametrize(
    "code",
    [
        "rows = [list(row) for row in table]",
        "np.asarray(table)",
        "table.to_numpy()",
        "[[float(cell) for cell in tuple(row)] for row in table]",
        "validate_data(self, table)",
    ],
)
def test_A15_a_second_reader_of_tables_is_caught(code: str) -> None:
    assert readings_of_tables(ast.parse(f"def read(table: Any):\n    {code}"))
    assert not readings_of_tables(ast.parse(f"def read(table: NDArray[Any]):\n    {code}"))
    assert not readings_of_tables(ast.parse("def read(table: Any):\n    np.asarray(Records.of(table).rows)"))


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
