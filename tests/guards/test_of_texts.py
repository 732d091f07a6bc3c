"""What the pages name exists, where they say it is."""

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
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_module_file_and_name_on_a_page_exists(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["see `accord.learning.density`", "in accord.core.votes.Gone", "`_chart.py`", "`no_such_room/`", "`_chart`"]
)
def test_a_name_that_is_gone_is_seen(text: str) -> None:
    assert len(missing(text)) == 1


def test_only_the_core_calls_itself_trusted() -> None:
    said = {path for path in SOURCE.rglob("*.py") if "rusted core" in path.read_text(encoding="utf-8")}
    assert said
    assert {path for path in said if path.parent != SOURCE / "core"} == set()
