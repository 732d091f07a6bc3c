"""Nobody asks which class a learner is of: its traits say what must be known. Frozen fields are set in one place."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "accord"


def learners_of(tree: ast.AST) -> set[str]:
    """Return the classes of a file that are learners: those with a fit that takes a seed."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(base) for base in node.bases):
            fits = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "fit"]
            if any("seed" in {each.arg for each in fit.args.kwonlyargs} for fit in fits):
                found.add(node.name)
    return found


def questions(tree: ast.AST, learners: set[str]) -> set[str]:
    """Return the learners whose class a file asks for: isinstance, a case of a match, ``type(x) is ...``."""
    found: set[str] = set()

    def add(node: ast.AST) -> None:
        found.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
        found.update(part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "issubclass"}:
            add(node.args[1])
        elif isinstance(node, ast.MatchClass):
            add(node.cls)
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            add(node)
    return found & learners


FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
LEARNERS = set().union(*map(learners_of, TREES.values()))


def test_the_guard_knows_the_learners() -> None:
    assert {"EmpiricalLearner", "GaussianLearner", "HistogramLearner", "MixtureLearner", "ScipyLearner"} <= LEARNERS
    assert {"SklearnLearner", "MinimumDistanceLearner", "CellModel"} <= LEARNERS


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_asks_which_class_a_learner_is_of(path: Path) -> None:
    asked = questions(TREES[path], LEARNERS) - learners_of(TREES[path])
    assert not asked, f"{asked}: let the learner say it, in its traits."


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, GaussianLearner)",
        "isinstance(x, (int, learners.GaussianLearner))",
        "type(x) is GaussianLearner",
        "type(x) not in (EmpiricalLearner, GaussianLearner)",
        "match x:\n    case GaussianLearner(dimension=d):\n        pass",
    ],
)
def test_the_guard_sees_a_ladder(text: str) -> None:
    assert "GaussianLearner" in questions(ast.parse(text), LEARNERS)


def test_frozen_instances_are_set_in_one_place() -> None:
    found = {str(path.relative_to(SOURCE)) for path, tree in TREES.items() if "object.__setattr__" in ast.unparse(tree)}
    assert found == {"core/check.py"}
