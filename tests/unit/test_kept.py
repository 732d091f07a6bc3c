"""Releases that are kept in files: the same law afterwards, and no file that does harm."""

import hashlib
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accord import SyntheticTable, synthesise_table
from accord.distributions import (
    Atoms,
    Categorical,
    Exponential,
    Gamma,
    Mixture,
    Normal,
    Piecewise,
    PointMass,
    Poisson,
    Product,
    ScipyLaw,
    Uniform,
)
from accord.errors import InvalidParameter
from accord.kept import kept, restored
from accord.synthesis.file import KINDS

pytestmark = pytest.mark.filterwarnings("ignore")
SCHEMA = """
version = 3
[[columns]]
name = "age"
kind = "integer"
bounds = [0, 120]
[[columns]]
name = "pay"
kind = "number"
decimals = 2
[[columns]]
name = "sex"
kind = "category"
categories = ["f", "m"]
required = true
[[columns]]
name = "country"
kind = "constant"
value = "x"
"""
LAWS = [
    Normal([0.1, 2.0], [[1.0, 0.3], [0.3, 2.0]]),
    Mixture([Normal([0.0], [[1.0]]), PointMass([3.0])], [0.3, 0.7]),
    Product([Exponential(0.3), Gamma(2.0, 0.1)]),
    Categorical(["a", "b"], [0.1, 0.9]),
    Atoms([1.0, 2.0], [0.25, 0.5], Uniform(0.0, 1.0)),
    Piecewise([0.0, 0.1, 7.0], [0.3, 0.7]),
    Poisson(3.3),
    PointMass("label"),
    ScipyLaw("lognorm", 0.5, loc=0.1, scale=2.0),
]


@pytest.fixture(scope="module")
def table() -> SyntheticTable:
    rng = np.random.default_rng(1)
    data = {
        "age": rng.integers(0, 100, 2000),
        "pay": np.round(rng.lognormal(8, 1, 2000), 2),
        "sex": rng.choice(["f", "m"], 2000),
    }
    return synthesise_table(data, SCHEMA, epsilon=1, delta="1e-6")


def same(left: Any, right: Any) -> bool:
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(left, right, strict=True))


def test_a_kept_release_is_the_release(table: SyntheticTable, tmp_path: Path) -> None:
    table.save(tmp_path / "m.accord")
    again = SyntheticTable.load(tmp_path / "m.accord")
    assert same(table.cells(3000, seed=2), again.cells(3000, seed=2))
    assert not same(table.cells(3000, seed=2), again.cells(3000, seed=3))
    assert again.account() == table.account()
    assert again.marginal(["age", "sex"]).shares == pytest.approx(table.marginal(["age", "sex"]).shares, abs=0)
    assert again.kept() == table.kept() == (tmp_path / "m.accord").read_bytes()
    assert type(again.sample(3)) is type(table.sample(3))


@pytest.mark.parametrize("learner", ["gaussian", "gaussian-mixture:2", "scipy:norm", "tables"])
def test_releases_of_every_learner_are_kept(learner: str) -> None:
    data = {"x": np.random.default_rng(2).normal(size=4000)}
    schema = 'version = 3\n[[columns]]\nname = "x"\nkind = "number"\n'
    found = synthesise_table(data, schema, epsilon=3, delta="1e-6", learner=learner)
    again = SyntheticTable.of_kept(found.kept())
    assert same(found.cells(100, seed=1), again.cells(100, seed=1))
    assert again.account() == found.account()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_laws_of_every_family_are_kept(law: Any) -> None:
    content = kept(law, kinds=KINDS, format="law", version=1, shown={})
    found, shown = restored(content, kinds=KINDS, format="law", versions=[1], what=type(law))
    assert shown == {}
    generator = np.random.default_rng
    assert np.array_equal(found.sample(50, generator(1)), law.sample(50, generator(1)))


def test_what_no_file_holds_is_refused_by_its_type(table: SyntheticTable) -> None:
    for odd in ({1, 2}, object(), np.array(["x"]), np.zeros(2, dtype=np.complex128)):
        with pytest.raises(InvalidParameter, match="cannot be kept"):
            kept((1, odd), kinds=KINDS, format="x", version=1, shown={})
    with pytest.raises(InvalidParameter, match="no accord model"):
        SyntheticTable.of_kept(kept(1, kinds=KINDS, format="x", version=1, shown={}))
    with pytest.raises(InvalidParameter, match="another version"):
        SyntheticTable.of_kept(kept(1, kinds=KINDS, format="accord model", version=99, shown={}))
    with pytest.raises(InvalidParameter, match="no accord model"):
        SyntheticTable.of_kept(b"no zip")


def test_a_path_of_the_machine_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "s.toml").write_text(
        'version = 3\n[[columns]]\nname = "x"\nkind = "category"\ncategories_file = "labels.txt"\n'
    )
    found = synthesise_table({"x": ["a", "b"] * 500}, tmp_path / "s.toml", epsilon=1, delta="1e-6")
    assert found.schema.label_files
    assert tmp_path.name.encode() not in unzipped(found.kept())["content.json"]
    assert b"labels.txt" not in unzipped(found.kept())["content.json"]
    assert SyntheticTable.of_kept(found.kept()).schema == found.schema


# --- files that others made -------------------------------------------------------------------------------------------


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(entries: dict[str, bytes]) -> bytes:
    """Return a file whose digests are right, whatever is in it."""
    head = json.loads(entries["content.json"])
    arrays = [entries[name] for name in entries if name.startswith("arrays/")]
    if isinstance(head, dict) and isinstance(head.get("arrays"), list):
        head["arrays"] = [hashlib.sha256(one).hexdigest() for one in arrays]
    text = json.dumps(head).encode()
    entries = {**entries, "content.json": text, "content.json.sha256": hashlib.sha256(text).hexdigest().encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return buffer.getvalue()


def tried(content: bytes) -> bool:
    """Return whether a file is read; then it gives rows and an account, and otherwise one short sentence."""
    try:
        found = SyntheticTable.of_kept(content)
    except InvalidParameter as error:
        return not 0 < len(str(error)) < 200
    assert len(found.cells(5, seed=1)[0]) == 5
    found.account()
    return True


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, one in inner for place in places(one, (*at, key)))]


ODD = [
    None, True, -1, 0, 1, 2**70, -0.5, 1e308, "", "x", "1/0", "a" * 1000, [], [0], {}, {"is": "array", "of": 99},
    {"is": "array", "of": 0}, {"is": "fraction", "of": "1/0"}, {"is": "float", "of": "nan"}, {"is": "terms"},
    {"is": "os.system"}, {"is": "mapping", "of": [[[], 1]]}, {"is": "normal", "mean": [0.0], "covariance": [[1.0]]},
]  # fmt: skip


def changed(head: dict[str, Any], rng: random.Random, known: list[tuple[Any, ...]]) -> dict[str, Any]:
    found: Any = json.loads(json.dumps(head))
    *way, last = rng.choice(known)
    inner = found["value"]
    for key in way:
        inner = inner[key]
    match rng.randrange(3):
        case 0:
            inner[last] = rng.choice(ODD)
        case 1:
            del inner[last]
        case _:
            *other, end = rng.choice(known)
            source = head["value"]
            for key in other:
                source = source[key]
            inner[last] = source[end]
    return found  # type: ignore[no-any-return]


def attacked(table: SyntheticTable, count: int, seed: int) -> None:
    rng = random.Random(seed)
    entries = unzipped(table.kept())
    head = json.loads(entries["content.json"])
    known = [place for place in places(head["value"]) if place]
    read = 0
    for _ in range(count):
        changes = {"content.json": json.dumps(changed(head, rng, known)).encode()}
        read += tried(zipped({**entries, **changes}))
    assert read < count / 2
    content = table.kept()
    for _ in range(count):
        spoilt = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        tried(bytes(spoilt[: rng.choice([len(spoilt), rng.randrange(len(spoilt))])]))


@pytest.mark.parametrize("seed", [1])
def test_changed_files_are_refused_in_a_sentence_or_are_releases(table: SyntheticTable, seed: int) -> None:
    attacked(table, 300, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [2])
def test_ten_thousand_changed_files(table: SyntheticTable, seed: int) -> None:
    attacked(table, 5000, seed)


def test_bombs_take_no_memory(table: SyntheticTable) -> None:
    entries = unzipped(table.kept())
    array = entries["arrays/0.npy"]
    header = array.index(b"'shape': (")
    huge = array.replace(array[header : array.index(b")", header)], b"'shape': (1000000000000000,"[: 10 + 15] + b",")
    assert not tried(zipped({**entries, "arrays/0.npy": huge}))
    head = json.loads(entries["content.json"])
    deep: Any = 0
    for _ in range(500):
        deep = [deep]
    assert not tried(zipped({**entries, "content.json": json.dumps({**head, "value": deep}).encode()}))
    text = b"[" * 200_000
    spoilt = {**entries, "content.json": text, "content.json.sha256": hashlib.sha256(text).hexdigest().encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in spoilt.items():
            file.writestr(name, data)
    assert not tried(buffer.getvalue())
    assert not tried(zipped({**entries, "more": b"1"}))


def test_a_larger_file_than_is_ever_written_is_not_unpacked(table: SyntheticTable, monkeypatch: Any) -> None:
    monkeypatch.setattr("accord.kept._MOST_BYTES", 10_000)
    with pytest.raises(InvalidParameter, match="unpacks to more"):
        SyntheticTable.of_kept(table.kept())


def test_an_account_that_is_not_that_of_the_parts_is_refused(table: SyntheticTable) -> None:
    entries = unzipped(table.kept())
    head = json.loads(entries["content.json"])
    head["about"]["guarantee"]["epsilon"] = "1/2"
    with pytest.raises(InvalidParameter, match="changed by hand"):
        SyntheticTable.of_kept(zipped({**entries, "content.json": json.dumps(head).encode()}))
