"""Rules of the house that no other tool holds."""

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import is_dataclass
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import accord
from accord import distributions, mechanisms
from accord.accounting.of_stages import KNOWN
from accord.distributions import Atoms, Mixture, Product, ScipyLaw
from accord.distributions.stack import _LEAVES
from accord.tables.column import COLUMN_KINDS, LABEL_KINDS, NUMBER_KINDS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "accord"
MOST_LINES = 600
MOST_IN_CORE = 30
PROMISING = {"release", "select", "couple", "points"}
CHECKS = ("ruff check", "ruff format --check", "mypy", "lint-imports", "pytest")


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def makefile_recipes() -> dict[str, list[str]]:
    """Lines of the recipe of each named target."""
    recipes: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines():
        target = re.match(r"([a-z]+):(?!=)", line)
        if target:
            lines = recipes.setdefault(target[1], [])
        elif line.startswith("\t"):
            lines.append(line.strip())
        elif line.strip():
            lines = []
    return recipes


def complaints(code: str, *, at: str) -> set[str]:
    """Ruff's codes for a file that would stand at ``at``, under the project's own configuration."""
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json", "--stdin-filename", at, "-"],
        input=code,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert ruff.returncode in {0, 1}, ruff.stderr
    return {str(found["code"]) for found in json.loads(ruff.stdout)}


# --- one command each -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, flags=re.MULTILINE))
    assert {"test"} <= named
    assert named <= makefile_recipes().keys()


def test_readme_names_the_first_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^make demo$", text, flags=re.MULTILINE)
    assert re.search(r"^make test$", text, flags=re.MULTILINE)


def test_make_test_runs_every_check_and_none_may_fail_unseen() -> None:
    recipe = makefile_recipes()["test"]
    for check in CHECKS:
        assert any(check in line for line in recipe), check
    for line in recipe:
        assert not line.startswith("-"), line
        assert not re.search(r"\|\||;|--exit-zero", line), line


# --- source -----------------------------------------------------------------------------------------------------------


def test_no_source_file_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): path.read_text(encoding="utf-8").count("\n") for path in python_files(SOURCE)}
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def promising_classes() -> set[str]:
    """Public classes that couple laws, or release something: what the proof pages are about."""
    found = set()
    for path in python_files(SOURCE):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            bases = {part.id for base in node.bases for part in ast.walk(base) if isinstance(part, ast.Name)}
            methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            if "Protocol" not in bases and methods & PROMISING:
                found.add(node.name)
    return found


def test_every_class_that_couples_or_releases_has_a_proof_page() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "proofs").glob("*.md"))
    named = set(re.findall(r"`(?:accord\.)?(?:\w+\.)*(\w+)(?:\([^`]*\))?`", pages))
    found = promising_classes()
    assert len(found) > 25
    assert found - named == set(), "name it in docs/proofs/<page>.md"


@pytest.mark.parametrize("method", ["release", "select", "couple", "points"])
def test_a_class_without_a_proof_page_is_seen(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.py").write_text(f"class Unproved:\n    def {method}(self): ...\n", encoding="utf-8")
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    assert promising_classes() == {"Unproved"}


# --- walls ------------------------------------------------------------------------------------------------------------


def loaded_by(code: str) -> list[str]:
    """Modules of accord that ``code`` loads, in a process of its own."""
    show = "import sys; print(*(name for name in sys.modules if name.partition('.')[0] == 'accord'))"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_the_core_loads_at_most_thirty_modules_and_none_but_its_own() -> None:
    loaded = loaded_by("import accord.core")
    assert "accord.core.votes" in loaded
    assert len(loaded) <= MOST_IN_CORE
    assert [name for name in loaded if name != "accord" and not name.startswith("accord.core")] == []


@pytest.mark.parametrize(
    "room", ["accord.synthesis", "accord.density.estimator", "accord.learning", "accord.marginals"]
)
def test_the_product_loads_no_theory(room: str) -> None:
    assert [name for name in loaded_by(f"import {room}") if name.startswith("accord.theory")] == []


def running_mechanisms() -> set[str]:
    offered = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
    return {
        name for name, one in offered.items() if inspect.isclass(one) and {"release", "select", "start"} & set(dir(one))
    }


def test_the_account_can_build_every_mechanism_again() -> None:
    assert running_mechanisms() == KNOWN


def test_every_family_is_asked_as_accords_own() -> None:
    offered = (getattr(distributions, name) for name in distributions.__all__)
    families = {one for one in offered if inspect.isclass(one) and is_dataclass(one) and hasattr(one, "sample")}
    of_parts_or_foreign = {Atoms, Mixture, Product, ScipyLaw}
    assert families - of_parts_or_foreign == set(_LEAVES), "accord.distributions.stack lists the families"


def test_every_mechanism_has_a_mutant_that_the_tests_catch() -> None:
    running = running_mechanisms()
    caught = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "audit").glob("test_*_mutants.py"))
    assert {"AboveThreshold", "StableMode", "TopK"} <= running
    assert {name for name in running if not re.search(rf"\b{name}\b", caught)} == set()


def test_every_kind_of_column_has_a_row_in_the_docs_and_a_case() -> None:
    rows = re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "schema.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    cases = (ROOT / "tests" / "unit" / "test_schema_kinds.py").read_text(encoding="utf-8")
    assert set(COLUMN_KINDS) - set(rows) == set()
    assert {kind for kind in COLUMN_KINDS if f'kind = "{kind}"' not in cases} == set()
    trips = (ROOT / "tests" / "contract" / "test_round_trips.py").read_text(encoding="utf-8")
    assert {kind for kind in (*NUMBER_KINDS, *LABEL_KINDS) if f'kind = "{kind}"' not in trips} == set()


def test_version_is_the_same_in_code_and_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert accord.__version__ == project["version"]


SLOW = {"scipy.optimize", "scipy.stats", "sklearn", "numba", "matplotlib", "jinja2", "dp_accounting"}


@pytest.mark.parametrize("room", ["accord", "accord.core", "accord.synthesis", "accord.learning"])
def test_nothing_slow_is_loaded_before_it_is_needed(room: str) -> None:
    show = f"import sys; import {room}; print(*sorted({SLOW!r} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


# --- banned imports ---------------------------------------------------------------------------------------------------

GLOBAL_RANDOMNESS = [
    "import numpy.random\n",
    "from numpy.random import default_rng\n",
    "from numpy import random\n",
    "import numpy as np\n\nnp.random.default_rng(0)\n",
    "import random\n",
    "from random import random\n",
]


@pytest.mark.parametrize("code", GLOBAL_RANDOMNESS)
@pytest.mark.parametrize("at", ["src/accord/x.py", "src/accord/noise/x.py", "src/accord/learners/x.py"])
def test_global_randomness_is_banned(code: str, at: str) -> None:
    assert "TID251" in complaints(code, at=at)


@pytest.mark.parametrize("code", GLOBAL_RANDOMNESS)
def test_randomness_is_where_generators_live(code: str) -> None:
    assert "TID251" not in complaints(code, at="src/accord/core/shared.py")


def test_the_name_of_a_generator_is_free_for_annotations() -> None:
    code = "from accord.randomness import Generator\n\nKIND: type = Generator\n"
    assert "TID251" not in complaints(code, at="src/accord/distributions/x.py")


# --- what is shipped --------------------------------------------------------------------------------------------------


def pins(lock: str) -> list[tuple[Requirement, list[str]]]:
    """Each requirement of a lock with its hashes."""
    whole = [line for line in lock.replace("\\\n", " ").splitlines() if line and not line.lstrip().startswith("#")]
    return [(Requirement(line.split(" --hash=")[0]), line.split(" --hash=")[1:]) for line in whole]


def test_every_pin_of_the_lock_has_hashes_and_none_names_an_index() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "http" not in text
    assert not re.search(r"^\s*-|index|find-links|file:|://| @ ", re.sub(r"--hash=\S+", "", text), flags=re.MULTILINE)
    locked = pins(text)
    assert len(locked) > 50
    for requirement, hashes in locked:
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        for found in hashes:
            assert re.fullmatch(r"sha256:[0-9a-f]{64}", found.strip()), requirement


def test_the_lock_holds_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked: dict[str, list[str]] = {}
    for requirement, _ in pins((ROOT / "requirements.txt").read_text(encoding="utf-8")):
        version = str(requirement.specifier).removeprefix("==")
        locked.setdefault(canonicalize_name(requirement.name), []).append(version)
    extras = project["project"]["optional-dependencies"].values()
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"], *chain.from_iterable(extras)]
    for text in [*asked, *project["build-system"]["requires"]]:
        requirement = Requirement(text)
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{text} is not in the lock: make lock"
        assert all(requirement.specifier.contains(version) for version in versions), f"{text}: make lock"


def test_example_table_is_whole_small_and_bare() -> None:
    path = ROOT / "examples" / "flights.parquet"
    assert path.stat().st_size < 4_000_000
    assert pq.read_metadata(path).num_rows == 336_776
    assert pq.read_schema(path).metadata is None


@pytest.mark.parametrize("schema", ["flights.toml", "carrier.toml"])
def test_example_schemas_name_columns_of_the_example_table(schema: str) -> None:
    columns = tomllib.loads((ROOT / "examples" / schema).read_text(encoding="utf-8"))["columns"]
    assert {column["name"] for column in columns} <= set(pq.read_schema(ROOT / "examples" / "flights.parquet").names)
