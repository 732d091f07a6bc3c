"""What the pages name exists, where they say it is."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "accord"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DOTTED = re.compile(r"\baccord(?:\.\w+)+")
FILE = re.compile(r"`([\w./-]*\w\.py)`")
PATH = re.compile(r"\b(?:docs|tests|examples|benchmarks)/[\w./-]*\w\.(?:md|py|toml|parquet)\b")
FOLDER = re.compile(r"`(\w+)/`")
INNER = re.compile(r"`(_[a-z]\w*)(?!\.py`)(?:\.\w+)*`")


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@cache
def file_names() -> frozenset[str]:
    return frozenset(
        path.name for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
    )


@cache
def defined_names() -> frozenset[str]:
    """Names with a leading underscore that some source file defines."""
    definition = re.compile(r"^\s*(?:def |class )?(_[a-z]\w*)\b(?=\(|:| =)", re.MULTILINE | re.IGNORECASE)
    return frozenset(name for path in SOURCE.rglob("*.py") for name in definition.findall(path.read_text("utf-8")))


def missing(text: str) -> list[str]:
    """Names in a text that nothing answers to."""
    rooms = {path.name for folder in (ROOT, SOURCE) for path in folder.iterdir() if path.is_dir()}
    return [
        *(name for name in DOTTED.findall(text) if not exists(name)),
        *(name for name in FILE.findall(text) if Path(name).name not in file_names()),
        *(name for name in FOLDER.findall(text) if name not in rooms),
        *(name for name in INNER.findall(text) if name not in defined_names()),
        *(name for name in PATH.findall(text) if not (ROOT / name).exists()),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_module_file_and_name_on_a_page_exists(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def docstrings(path: Path) -> list[str]:
    """Texts of a file that document something, without the code in them."""
    nodes = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Expr))
    texts = (node.value.value for node in nodes if isinstance(node.value, ast.Constant))
    return [re.sub(r"^\s*(?:>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE) for text in texts if isinstance(text, str)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_module_file_and_name_in_a_docstring_exists() -> None:
    written = {path: docstrings(path) for folder in (SOURCE, ROOT / "tests") for path in folder.rglob("*.py")}
    found = {path.relative_to(ROOT): missing("\n".join(texts)) for path, texts in written.items()}
    assert len(found) > 300
    assert {path: names for path, names in found.items() if names} == {}


def test_a_docstring_is_read_without_its_code(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text('"""See `_gone`.\n\n>>> _here`_there`\n"""\n\nX = 1\n"""Of `_chart.py`."""\n')
    assert missing("\n".join(docstrings(tmp_path / "x.py"))) == ["_chart.py", "_gone"]


@pytest.mark.parametrize(
    "text",
    [
        "see `accord.learning.density`",
        "in accord.core.votes.Gone",
        "`_chart.py`",
        "`no_such_room/`",
        "`_chart`",
        "docs/gone.md",
    ],
)
def test_a_name_that_is_gone_is_seen(text: str) -> None:
    assert len(missing(text)) == 1


def test_only_the_core_calls_itself_trusted() -> None:
    said = {path for path in SOURCE.rglob("*.py") if "rusted core" in path.read_text(encoding="utf-8")}
    assert said
    assert {path for path in said if path.parent != SOURCE / "core"} == set()


def test_the_guide_names_every_file_of_the_core_and_no_other() -> None:
    page = (ROOT / "docs" / "reading-the-core.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+\.py)` \|", page, flags=re.MULTILINE)
    assert sorted(rows) == sorted(path.name for path in (SOURCE / "core").glob("*.py"))
