"""Rules for the tests themselves: what they must not depend on."""

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "accord"
PROFILE = TESTS / "conftest.py"
CLOCKS = {
    "time": {"monotonic", "perf_counter", "process_time", "thread_time", "time", "clock_gettime"},
    "timeit": {"default_timer", "timeit", "repeat", "Timer"},
}


def clocks_read(code: str) -> list[str]:
    """Clocks that ``code`` names: a test that reads none can assert no seconds."""
    tree = ast.parse(code)
    names = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }

    def found() -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
                known = CLOCKS[node.module]
                yield from (alias.name for alias in node.names if alias.name.removesuffix("_ns") in known)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                known = CLOCKS.get(names.get(node.value.id, ""), set())
                if node.attr.removesuffix("_ns") in known:
                    yield node.attr

    return sorted(found())


def deadlines_set(code: str) -> list[str]:
    """What ``code`` says about deadlines and profiles of hypothesis."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    keywords = [keyword.arg for call in calls for keyword in call.keywords if keyword.arg == "deadline"]
    profiles = [
        call.func.attr
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"register_profile", "load_profile"}
    ]
    return [*keywords, *profiles]


@pytest.mark.parametrize(
    ("code", "clocks"),
    [
        ("import time\n\nassert time.perf_counter() - start < 1\n", ["perf_counter"]),
        (
            "import time as t\n\nstart = t.process_time_ns()\nassert t.monotonic() - start < 1\n",
            ["monotonic", "process_time_ns"],
        ),
        ("from time import time\n\nassert time() < 3\n", ["time"]),
        ("import timeit\n\nassert timeit.timeit('1') < 3\n", ["timeit"]),
        ("import time\n\ntime.sleep(1)\nmonkeypatch.setattr(time, 'monotonic', lambda: 0)\n", []),
    ],
)
def test_the_guard_sees_clocks(code: str, clocks: list[str]) -> None:
    assert clocks_read(code) == clocks


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("@settings(max_examples=5, deadline=None)\ndef test(): ...\n", ["deadline"]),
        ("hypothesis.settings.register_profile('x', deadline=200)\n", ["deadline", "register_profile"]),
        ("@settings(max_examples=5)\ndef test(): ...\n", []),
    ],
)
def test_the_guard_sees_deadlines(code: str, said: list[str]) -> None:
    assert deadlines_set(code) == said


def test_J13_no_test_reads_a_clock() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 50
    reading = {str(path.relative_to(TESTS)): clocks_read(path.read_text(encoding="utf-8")) for path in files}
    assert {name: clocks for name, clocks in reading.items() if clocks} == {}, "count calls (work) or write a benchmark"


def test_J13_one_profile_without_deadlines_holds_for_all() -> None:
    profile = settings()
    assert profile.deadline is None
    assert profile.print_blob
    assert HealthCheck.too_slow in profile.suppress_health_check  # it reads a clock, too
    files = [path for path in sorted(TESTS.rglob("*.py")) if path != PROFILE]
    said = {str(path.relative_to(TESTS)): deadlines_set(path.read_text(encoding="utf-8")) for path in files}
    assert {name: words for name, words in said.items() if words} == {}, "the profile stands in tests/conftest.py"


# --- areas ------------------------------------------------------------------------------------------------------------


def areas() -> ModuleType:
    """``tests/areas.py``, which is a script."""
    specification = importlib.util.spec_from_file_location("areas", TESTS / "areas.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_test_file_belongs_to_an_area_and_every_room_is_one() -> None:
    module = areas()
    files = sorted(TESTS.rglob("test_*.py"))
    homeless = [str(path.relative_to(TESTS)) for path in files if not module.areas_of(path)]
    assert homeless == [], "give it a pattern in tests/areas.py"
    rooms = {path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))}
    assert rooms | {"house"} == module.AREAS.keys()
    for area in module.AREAS:
        assert module.files_of(area), area
    sources = {path for area in module.AREAS for path in module.sources_of(area)}
    seen = {found for path in sources for found in ([path] if path.suffix == ".py" else path.rglob("*.py"))}
    assert seen == set(SOURCE.rglob("*.py"))  # each example is in some area


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("exact/test_race.py", {"couplings"}),
        ("contract/test_couplings.py", {"couplings", "testing"}),
        ("unit/test_refine.py", {"density"}),
        ("guards/test_house.py", {"house"}),
    ],
)
def test_an_area_is_found_by_the_name_of_a_file(file: str, found: set[str]) -> None:
    assert areas().areas_of(TESTS / file) == found


def test_a_file_that_no_pattern_names_belongs_to_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = areas()
    monkeypatch.setattr(module, "TESTS", tmp_path)
    path = tmp_path / "test_x.py"
    path.write_text("import accord.laws\nfrom accord.errors import FitFailed\nfrom accord.density import x\n")
    assert module.areas_of(path) == {"core", "laws", "density"}


def test_one_area_runs_alone_and_an_unknown_one_is_refused() -> None:
    command = [sys.executable, str(TESTS / "areas.py")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    run: dict[str, Any] = {
        "capture_output": True,
        "text": True,
        "cwd": TESTS.parent,
        "env": environment,
    }
    done = subprocess.run([*command, "evaluation", "--collect-only", "-q"], check=False, **run)
    assert done.returncode == 0
    names = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert "tests/unit/test_evaluation.py" in names
    assert all(name == "tests/unit/test_evaluation.py" or name.startswith("src/accord/evaluation/") for name in names)
    refused = subprocess.run([*command, "coupling"], check=False, **run)
    assert refused.returncode == 2
    assert "no area 'coupling': choose one of accounting," in refused.stderr
