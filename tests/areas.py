"""Tests of one area: ``python tests/areas.py couplings -n auto``, which ``make test AREA=couplings`` runs.

An area is a room of ``src/accord``, and ``house`` is what holds for the repository. A test file belongs to the areas
whose patterns its name matches; a file that none matches belongs to every room that it imports from.
"""

import ast
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "accord"
TESTS = ROOT / "tests"

FACES = {"mechanisms": "noise", "privacy": "accounting", "randomness": "core", "planning": "theory", "errors": "core"}
"""Public names of rooms, and the room behind each."""

# Patterns of the path below tests/, without .py.
AREAS: dict[str, tuple[str, ...]] = {
    "accounting": (
        "*/test_accounting*",
        "*/test_privacy*",
        "*/test_filters",
        "*/test_session",
        "*/test_*composition*",
        "*/test_pure_approximation*",
        "laws/test_divergences",
    ),
    "audit": ("*/test_audit*", "*/test_check_dp*", "*/test_check_audit*"),
    "cli": ("*/test_*cli", "contract/test_silence*", "contract/test_input_files*"),
    "core": (
        "*/test_*_randomness",
        "*/test_coins",
        "*/test_core*",
        "*/test_records*",
        "*/test_verdict*",
        "*/test_exact_numbers",
        "*/test_stages*",
        "*/test_release",
    ),
    "couplings": (
        "*/test_coupling*",
        "*/test_dyadic*",
        "*/test_*_coupling*",
        "*/test_tuple_poisson*",
        "*/test_hashed_lattice*",
        "*/test_normal_lattice*",
        "*/test_shift_rounding*",
        "*/test_statistics*",
        "*/test_race*",
        "*/test_two_stage_law",
        "*/test_waiting*",
    ),
    "synthesis": (
        "*/test_discovery*",
        "*/test_table_learner*",
        "*/test_mixed_cli",
        "contract/test_silence*",
        "*/test_declared*",
    ),
    "density": (
        "*/test_private_density*",
        "*/test_refine*",
        "*/test_sklearn*",
        "*/test_estimator_input",
        "exact/test_partition",
    ),
    "distributions": ("*/test_*distributions*", "*/test_families", "*/test_waiting*", "*/test_parametric*"),
    "location": ("*/test_locat*", "*/test_discovery*"),
    "evaluation": ("*/test_evaluation*",),
    "house": ("guards/*", "docs/*"),
    "laws": ("*/test_laws*", "laws/test_*divergences", "*/test_parametric*"),
    "learners": ("*/test_learner*", "*/test_*_learner", "*/test_minimum_distance", "*/test_estimator_learners"),
    "learning": (
        "*/test_private_learner*",
        "*/test_learning*",
        "*/test_isolation*",
        "*/test_partition*",
        "*/test_two_stage*",
        "*/test_end_to_end",
        "*/test_records*",
        "*/test_*replay*",
        "*/test_private_sampler*",
    ),
    "ledger": ("*/test_ledger*",),
    "marginals": ("*/test_marginals*", "exact/test_cells.py", "exact/test_engine.py"),
    "noise": (
        "*/test_*mechanism*",
        "*/test_exponential*",
        "*/test_laplace*",
        "*/test_noise*",
        "*/test_clamped_sum",
        "*/test_stable_mode*",
        "*/test_votes*",
        "*/test_above_threshold",
        "*/test_best_of_draws",
        "*/test_selection*",
        "*/test_thresholded_counts",
        "*/test_release_law",
    ),
    "theory": (
        "*/test_plan*",
        "*/test_private_learner*",
        "*/test_minimum_distance",
        "*/test_tuple_poisson*",
        "*/test_poisson*",
        "*/test_premises",
    ),
    "reports": ("*/test_report*",),
    "tables": (
        "*/test_reader*",
        "*/test_writer*",
        "*/test_schema*",
        "*/test_round_trips",
        "contract/test_input_files*",
    ),
    "testing": ("*/test_*replay*", "contract/test_mechanisms", "contract/test_couplings"),
}


def imported(path: Path) -> set[str]:
    """Areas that a test file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for parts in (name.split(".") for name in names if name.startswith("accord.")):
            found.add(FACES.get(parts[1], parts[1]))
    return found & AREAS.keys()


def areas_of(path: Path) -> set[str]:
    """Areas that a test file belongs to."""
    name = path.relative_to(TESTS).with_suffix("").as_posix()
    return {
        area for area, patterns in AREAS.items() if any(fnmatch(name, pattern) for pattern in patterns)
    } or imported(path)


def files_of(area: str) -> list[Path]:
    """Test files of an area."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if area in areas_of(path)]


def sources_of(area: str) -> list[Path]:
    """Source of an area, whose examples are tests, too."""
    if area == "core":
        return [SOURCE / "core", *sorted(SOURCE.glob("*.py"))]
    folder = SOURCE / area
    return [path for path in sorted(folder.glob("*")) if path.name != "__pycache__"] if folder.is_dir() else []


def main() -> int:
    """Run one area with the options of pytest that follow it."""
    area, *options = [*sys.argv[1:], ""]
    if area not in AREAS:
        sys.stderr.write(f"no area {area!r}: choose one of {', '.join(AREAS)}\n")
        return 2
    paths = [str(path.relative_to(ROOT)) for path in [*files_of(area), *sources_of(area)]]
    return pytest.main([*(option for option in options if option), *paths])


if __name__ == "__main__":
    sys.exit(main())
