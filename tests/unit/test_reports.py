"""Reports: what they say, what they never say, and that a release.json is checked."""

import copy
import json
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accord.accounting.account import account
from accord.accounting.of_stages import settled
from accord.core import Verdict
from accord.core.release import composing
from accord.evaluation import evaluate, train_synthetic_test_real
from accord.marginals import PairError
from accord.marginals.verdicts import ColumnAccuracy, TableErrors
from accord.mechanisms import DiscreteGaussian, StableMode
from accord.privacy import ApproxDP, NoAnswer, Release
from accord.reports import Claim, Report, check_release, curator_page, release_json, report_page, tables_of
from accord.tables import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="<b>carrier</b>", kind="category", categories=("AA", "<script>alert(1)</script>", "UA")),
        Column(name="delay", kind="integer", decimals=0),
        Column(name="distance", kind="number"),
        Column(name="day", kind="date", format="%d.%m.%Y"),
        Column(name="late", kind="boolean", categories=("no", "yes"), true=("yes",), false=("no",)),
        Column(name="made up", kind="id"),
    )
)


def cells(rows: int = 2000, *, seed: int = 1) -> list[Any]:
    generator = np.random.default_rng(seed)
    carrier = generator.integers(-1, 3, size=rows).astype(np.int32)
    delay = np.round(generator.gamma(2, 15, size=rows) - 20)
    delay[: rows // 20] = np.nan
    late = np.where(np.isnan(delay), -1, delay > 10).astype(np.int32)
    return [carrier, delay, generator.normal(500, 100, rows), np.round(generator.uniform(18000, 18365, rows)), late]


def errors() -> TableErrors:
    """Made-up errors of every column of SCHEMA and of two pairs."""
    sizes = {"<b>carrier</b>": 4, "late": 3}
    columns = {}
    for column in SCHEMA.read:
        size = sizes.get(column.name, 11)
        shares = np.full(size, 1 / size)
        columns[column.name] = ColumnAccuracy(
            error=0.004,
            merged=0.001,
            shares=shares,
            low=shares - 0.01,
            high=shares + 0.01,
            edges=() if column.is_label else tuple(np.linspace(-60, 20000, 11).tolist()),
        )
    names = [column.name for column in SCHEMA.read]
    return TableErrors(
        columns=columns, pairs={(names[0], other): PairError(error=0.02, merged=0.3) for other in names[1:3]}
    )


def account_of(*, unit_column: str | None = "person", warnings: tuple[Verdict, ...] = ()) -> dict[str, Any]:
    with composing("basic") as run:
        StableMode(epsilon="0.4", delta="5e-7").release(["a"] * 100)
        with composing("numeric", what="counts", delta=Fraction(1, 2 * 10**6)):
            DiscreteGaussian(sensitivity=1, sigma=20).release([1, 2, 3], delta="5e-7")
    unit = "record" if unit_column is None else unit_column
    expected = errors()
    promise = ApproxDP(1, "1e-6", unit=unit)
    return account(
        Release(NoAnswer, promise, settled(run, promise)),
        units=5000,
        unit_column=unit_column,
        written=("1", "1e-6"),
        learner="tables of up to three columns",
        warnings=warnings,
        expected_errors={name: column.error for name, column in expected.columns.items()},
        expected_pair_errors=[
            {"names": list(names), "expected_error": pair.error, "merged_share": pair.merged}
            for names, pair in expected.pairs.items()
        ],
    )


def report(**changes: Any) -> Report:
    columns, pairs = tables_of(cells(), schema=SCHEMA, errors=errors())
    made = Report(
        version="0.1.0",
        account=account_of(),
        claims=(Claim(what="delay is from -60 to 1500", by="the schema"),),
        seeded=False,
        rows=2000,
        columns=columns,
        pairs=pairs,
    )
    return replace(made, **changes)


# --- tables -----------------------------------------------------------------------------------------------------------


def test_shares_are_those_of_the_rows() -> None:
    given = cells()
    columns, pairs = tables_of(given, schema=SCHEMA)
    assert [table.name for table in columns] == [column.name for column in SCHEMA.read]
    for table in columns:
        assert sum(table.shares) == pytest.approx(1)
        assert len(table.labels) == len(table.shares)
        assert table.error is None
    carrier = dict(zip(columns[0].labels, columns[0].shares, strict=True))
    assert carrier["AA"] == pytest.approx(np.mean(given[0] == 0))
    assert carrier["missing"] == pytest.approx(np.mean(given[0] == -1))
    assert dict(zip(columns[1].labels, columns[1].shares, strict=True))["missing"] == pytest.approx(0.05)
    assert columns[3].labels[0].startswith("from ")
    assert {pairs[0].names} <= {("delay", "late")}, "the most dependent pair comes first"
    for pair in pairs:
        assert np.sum(pair.shares) == pytest.approx(1)
        assert np.shape(pair.shares) == (len(pair.labels[0]), len(pair.labels[1]))


def test_many_labels_are_cut_to_the_frequent_ones() -> None:
    column = Column(name="c", kind="category", categories=tuple(f"c{place}" for place in range(100)))
    codes = np.minimum(np.random.default_rng(1).geometric(0.1, size=5000) - 1, 99).astype(np.int32)
    (table,), _ = tables_of([codes], schema=Schema(columns=(column,)))
    assert len(table.labels) == 30
    assert table.labels[0] == "c0"
    assert table.labels[-1] == "(other)"
    assert table.shares[-1] == pytest.approx(np.mean(~np.isin(codes, np.argsort(-np.bincount(codes))[:29])))


@pytest.mark.parametrize(
    ("values", "kind", "decimals"),
    [
        ([np.nan, np.nan], "number", None),
        ([3.0, 3.0], "number", None),
        ([3.0, 4.0], "integer", 0),
        ([1e300, -1e300], "number", None),
        ([0.0, 1e6, np.nan], "integer", 0),
        ([5e-324, 0.0], "number", None),
    ],
)
def test_odd_columns_have_tables(values: list[float], kind: Any, decimals: int | None) -> None:
    schema = Schema(columns=(Column(name="x", kind=kind, decimals=decimals),))
    (table,), pairs = tables_of([np.array(values)], schema=schema)
    assert sum(table.shares) == pytest.approx(1)
    assert pairs == ()
    missing = dict(zip(table.labels, table.shares, strict=True)).get("missing", 0)
    assert missing == pytest.approx(np.mean(np.isnan(values)))


# --- the page ---------------------------------------------------------------------------------------------------------


def test_E83_the_page_says_what_is_promised() -> None:
    page = report_page(report())
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    for words in (
        "(1, 1e-6)-differential privacy",
        "replace one",
        "the number of units is public (5000)",
        "composed numerically",
        "StableMode",
        "DiscreteGaussian",
        "sigma 20",
        "a random person&#39;s random record",
        "delay is from -60 to 1500",
        "not seeded",
        "it cannot be seeded",
        "accord 0.1.0",
        "What not to conclude",
    ):
        assert words in text, words
    assert "the whiskers" in text.lower()
    bare = report_page(
        report(
            claims=(),
            account=account_of(unit_column=None, warnings=(Verdict("note", "mind the gap"),)),
            budget={"words": "half is left"},
        )
    )
    for words in ("no part of the guarantee rests on", "one record", "mind the gap", "half is left"):
        assert words in bare


def test_names_are_escaped_and_nothing_comes_from_elsewhere() -> None:
    page = report_page(report())
    assert "<b>carrier" not in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)


def test_E81_E86_equal_releases_give_equal_bytes() -> None:
    """Nothing but the release goes in: no time, path, user or checksum."""
    one, other = report(), report()
    assert report_page(one) == report_page(other)
    assert release_json(one) == release_json(other)
    assert re.search(r"20\d\d-\d\d-\d\dT|sha256|/home|/tmp", report_page(one) + release_json(one)) is None


def test_the_curators_page_says_so_and_has_the_distances() -> None:
    real, synthetic = cells(seed=2), cells(seed=3)
    found = evaluate(real, synthetic, schema=SCHEMA)
    utility = train_synthetic_test_real(real, synthetic, schema=SCHEMA, target="late")
    page = curator_page(report(), evaluation=found, utilities=[utility])
    assert page.count("NOT FOR RELEASE") == 2
    assert "position: fixed" in page, "repeated on every printed page"
    assert f"{found.one_way:.3g}" in page
    assert f"{utility.from_synthetic:.3g}" in page
    assert "&lt;b&gt;carrier" in page
    assert "NOT FOR RELEASE" not in report_page(report())


# --- release.json -----------------------------------------------------------------------------------------------------


def content() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(release_json(report()))
    return loaded


def test_a_release_is_well_formed_and_adds_up() -> None:
    assert check_release(content()) == ()
    assert content()["guarantee"]["unit"] == "person"
    assert content()["format_version"] == 2


def broken(path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(content())
    place: Any = found
    *steps, last = path.split("/")
    for step in steps:
        place = place[int(step) if step.isdigit() else step]
    if value is KeyError:
        del place[last]
    else:
        place[int(last) if last.isdigit() else last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("guarantee", KeyError, "guarantee is missing"),
        ("guarantee/delta", KeyError, "guarantee.delta is missing"),
        ("guarantee/delta", 0.1, "guarantee.delta"),
        ("guarantee/epsilon", "-1", "guarantee.epsilon"),
        ("guarantee/epsilon", "much", "guarantee.epsilon"),
        ("guarantee/epsilon", "2", "differ"),
        ("guarantee/noise_seeded", True, "noise_seeded"),
        ("guarantee/neighbouring", "friends", "neighbouring"),
        ("guarantee/units", -1, "units"),
        ("guarantee/units", True, "units"),
        ("stages", {}, "stages must be a list"),
        ("stages/0/epsilon", "0.41", "stages.0 states another guarantee"),
        ("stages/0/delta", "6e-7", "stages.0 states another guarantee"),
        ("stages/0/epsilon", "x", "stages.0 states numbers"),
        ("stages/0/parameters/epsilon", "0.3", "stages.0 states another guarantee"),
        ("stages/0/parameters/epsilon", KeyError, "stages.0 states numbers or parameters"),
        ("stages/0/mechanism", "Magic", "does not know"),
        ("stages/1/parameters/sigma", "5", "stages.1 has a detail"),
        ("stages/1/delta", "1/2", "stages.1 states numbers"),
        ("stages/1/parameters/sigma", "0", "stages.1 states numbers or parameters"),
        ("stages/1/epsilon", "0.1", "stages.1 states numbers"),
        ("composition/stages", [0], "every stage once"),
        ("composition/stages/1/stages", [1, 1], "every stage once"),
        ("composition/stages/1/how", "magic", "every stage once"),
        ("composition/stages/1/delta", KeyError, "another delta than the group"),
        ("composition/stages/1/delta", "1e-6", "another delta than the group"),
        ("stages/1", "x", "stages.1"),
        ("columns/0/shares", [1.0], "one share a label"),
        ("columns/0/shares/0", 0.9, "sum to 1"),
        ("columns/0/shares/0", "x", "columns.0.shares.0"),
        ("pairs/0/labels", [["a"], ["b"]], "pair of labels"),
        ("pairs/0/shares/0/0", 0.9, "sum to 1"),
        ("rows", 1.5, "rows"),
        ("guarantee/epsilon_float", 0.9999999, "epsilon_float is below"),
        ("guarantee/epsilon_float", 1.0000001, "differ"),
        ("warnings", [{"code": "x", "text": "x"}, 3], "warnings.1"),
    ],
)
def test_a_release_that_was_changed_is_found(path: str, value: Any, words: str) -> None:
    assert any(words in fault for fault in check_release(broken(path, value)))


# --- in a browser -----------------------------------------------------------------------------------------------------

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here; continuous integration installs one")

MEASURE = """
<script>
const root = document.documentElement;
const wide = [...document.querySelectorAll("main *")].filter(
  e => !e.closest(".scroll, .track, svg") && e.getBoundingClientRect().right > innerWidth + 0.5);
document.title = "MEASURED" + JSON.stringify({
  width: innerWidth, scroll: root.scrollWidth, wide: wide.map(e => e.className || e.tagName),
  paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
  bars: document.querySelectorAll("svg rect").length, cards: document.querySelectorAll(".card").length,
}) + "END";
</script>
"""


def browse(page: Path, folder: Path, *options: str) -> str:
    profile = folder / "profile"
    done = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            f"--user-data-dir={profile}", *options, page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("night", [False, True])
@pytest.mark.parametrize("which", ["report", "curator"])
def test_the_page_fits_and_can_be_read(tmp_path: Path, *, width: int, night: bool, which: str) -> None:
    made = report()
    text = (
        report_page(made)
        if which == "report"
        else curator_page(made, evaluation=evaluate(cells(seed=1), cells(seed=2), schema=SCHEMA))
    )
    measured = re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", MEASURE + "</body>")
    page = tmp_path / "page.html"
    page.write_text(measured, encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if night else 1}"
    dom = browse(page, tmp_path, "--dump-dom", f"--window-size={width},900", scheme)
    found = re.search(r"<title>MEASURED(.*?)END</title>", dom)
    assert found is not None
    seen = json.loads(found[1].replace("&amp;", "&").replace("&quot;", '"'))
    assert seen["scroll"] <= seen["width"], "nothing is wider than the window"
    assert seen["wide"] == []
    paper, ink = luminance(seen["paper"]), luminance(seen["ink"])
    assert (paper < ink) == night
    contrast = (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05)
    assert contrast > 7
    if which == "report":
        assert seen["bars"] > 20
        assert seen["cards"] == len(made.columns) + len(made.pairs)


@needs_browser
def test_a_picture_of_the_page_is_not_empty(tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(report_page(report()), encoding="utf-8")
    browse(page, tmp_path, f"--screenshot={picture}", "--window-size=800,600")
    head = picture.read_bytes()
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == (800, 600)
    assert len(head) > 20_000
