"""The ledger: exact totals, a chain that shows every change, refusals that cost nothing, any file system weather."""

import copy
import functools
import gc
import json
import multiprocessing
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.accounting import figures
from accord.core import VerdictWarning
from accord.errors import BudgetExceeded, InvalidParameter, LedgerError
from accord.ledger import Ledger, spending, verify_ledger
from accord.ledger import sqlite as _sqlite_file
from accord.ledger.account import Account
from accord.ledger.entry import COLUMNS, Entry
from accord.ledger.sqlite import SqliteStore
from accord.privacy import ApproxDP, Neighbouring, PureDP, best_composition

NOBODY = 65534

# Python 3.12 warns of every fork beside threads; that it is safe here is what some of these tests show.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "patients.ledger"


def filled(path: Path) -> str:
    """A ledger with one entry of every kind; its head."""
    head, content = filled_once()
    path.write_bytes(content)
    return head


@functools.cache
def filled_once() -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        head = fill(Path(folder) / "x")
        return head, (Path(folder) / "x").read_bytes()


def fill(path: Path) -> str:
    with Ledger.create(path, epsilon=5, delta="1e-5", who="ana", why="study 7") as ledger:
        first = ledger.charge(ApproxDP("0.1", "1e-6"), what="mean", note="seen by the board")
        ledger.confirm(first)
        ledger.abandon(ledger.charge(PureDP("0.25"), what="count"), why="stopped")
        ledger.set_cap(epsilon=6, delta="1e-5", who="bo", why="second study")
        ledger.charge(PureDP(1), what="median")
        return ledger.statement().head


def force(path: Path, *statements: str) -> None:
    """Change a ledger's file past its triggers."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


def run(code: str, *words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


# --- amounts ----------------------------------------------------------------------------------------------------------


def test_totals_are_exact(path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta="1e-6") as ledger:
        for _ in range(10):
            ledger.charge(ApproxDP("0.1", "1e-7"), what="tenth")
        assert ledger.spent == ApproxDP(1, "1e-6")
        assert ledger.remaining == ApproxDP(0, 0)
        with pytest.raises(BudgetExceeded):
            ledger.charge(PureDP("1e-300"), what="the last straw")


def test_A14_ten_charges_of_a_tenth_fit_into_one(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=1.0, delta=1e-6)
    for _ in range(10):
        ledger.charge(ApproxDP(0.1, 1e-7), what="a tenth")
    assert ledger.spent == ApproxDP(1, "1e-6")
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureDP(1e-9), what="more")


def test_a_subnormal_charge_is_not_lost(path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP(5e-324), what="tiny")
        assert ledger.spent.epsilon == Fraction(5, 10**324) > 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(PureDP(1), what="whole")


@settings(max_examples=15)
@given(st.lists(st.tuples(st.fractions(0, 3), st.fractions(0, Fraction(1, 10))), max_size=12))
def test_admitted_means_within_the_cap(tmp_path_factory: pytest.TempPathFactory, pairs: list) -> None:
    path = tmp_path_factory.mktemp("ledger") / "x"
    cap, spent = (Fraction(5), Fraction(1, 5)), (Fraction(0), Fraction(0))
    with Ledger.create(path, epsilon=cap[0], delta=cap[1]) as ledger:
        for pair in pairs:
            total = spent[0] + pair[0], spent[1] + pair[1]
            try:
                ledger.charge(ApproxDP(*pair), what="any")
            except BudgetExceeded as error:
                refused = (error.requested, error.spent, error.cap)
                assert total[0] > cap[0] or total[1] > cap[1]
                assert refused == (ApproxDP(*pair), ApproxDP(*spent), ApproxDP(*cap))
            else:
                assert total[0] <= cap[0]
                assert total[1] <= cap[1]
                spent = total
        assert ledger.spent == ApproxDP(*spent)
    with Ledger(path) as again:
        assert again.spent == ApproxDP(*spent)
        assert again.totals()[0].guarantee == ApproxDP(*spent)


def test_a_refusal_rounds_to_the_careful_side_and_shows_amounts_of_any_size(path: Path) -> None:
    with Ledger.create(path, epsilon=Fraction(2, 3), delta="1e-300") as ledger:
        ledger.charge(ApproxDP(5e-324, Fraction(1, 3 * 10**300)), what="a")
        with pytest.raises(BudgetExceeded) as refused:
            ledger.charge(PureDP(10**6), what="b")
    assert str(refused.value).startswith(
        "a charge of (1000000, 0) would go over the cap of (0.666666666666, 1e-300): (5e-324, "
        "3.33333333334e-301) is spent and (0.666666666666, 6.66666666666e-301) is left"
    )


def test_figures_of_any_size_are_bounds() -> None:
    huge, tiny = Fraction(10**5000, 3), Fraction(1, 3**9100)
    for value in (huge, tiny, Fraction(1, 3), Fraction(0.1), Fraction(5e-324) / 3, Fraction(10**300) + Fraction(1, 3)):
        for write in (figures.short_text, figures.exact_text):
            low, high = (Fraction(write(value, up=up)) for up in (False, True))
            assert 0 < low <= value <= high < value * (1 + Fraction(1, 10**10))
        above = figures.as_float(value, up=True)
        assert (above is None) == (value == huge)
        assert above is None or 0 < value <= above
    assert figures.exact_text(Fraction(1, 3), up=True) == "1/3"
    assert figures.as_float(Fraction("1e-5"), up=False) == 1e-5
    assert [figures.short_text(Fraction(0), up=True), figures.as_float(Fraction(0), up=True)] == ["0", 0.0]


def test_a_refusal_survives_the_way_back_from_a_worker(path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger, pytest.raises(BudgetExceeded) as refused:
        ledger.charge(PureDP(2), what="a")
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - our own
    assert (str(again), again.requested, again.cap) == (str(refused.value), PureDP(2), ApproxDP(1, 0))


def test_a_refused_request_writes_nothing_and_the_ledger_stays_usable(path: Path) -> None:
    with Ledger.create(path, epsilon=2, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        before = ledger.entries()
        with pytest.raises(BudgetExceeded, match=r"\(10, 0\) would go over the cap of \(2, 0\): \(1, 0\) is spent"):
            ledger.charge(PureDP(10), what="b")
        with pytest.raises(BudgetExceeded):
            ledger.check(PureDP(10))
        assert ledger.entries() == before
        ledger.check(PureDP(1))
        ledger.charge(PureDP(1), what="c")
        assert ledger.spent == ApproxDP(2, 0)


def test_confirmation_and_abandonment_never_refund(path: Path) -> None:
    with Ledger.create(path, epsilon=2, delta=0) as ledger:
        first, second = ledger.charge(PureDP(1), what="a"), ledger.charge(PureDP(1), what="b")
        assert ledger.statement().unconfirmed == 2
        ledger.confirm(first)
        ledger.abandon(second, why="stopped")
        assert ledger.statement().unconfirmed == 0
        assert ledger.remaining == ApproxDP(0, 0)
        for settle in (ledger.confirm, ledger.abandon):
            with pytest.raises(InvalidParameter, match="already"):
                settle(first)
            with pytest.raises(InvalidParameter, match="no charge 77"):
                settle(77)
            with pytest.raises(InvalidParameter):
                settle(0)


def test_cap_can_be_changed_by_an_entry_with_who_and_why(path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        for who, why in (("", "reason"), ("ana", ""), ("ana", " ")):
            with pytest.raises(InvalidParameter, match="needed"):
                ledger.set_cap(epsilon=2, delta=0, who=who, why=why)
        ledger.set_cap(epsilon="0.5", delta=0, who="ana", why="too much")
        assert ledger.remaining == ApproxDP(0, 0)
        with pytest.raises(BudgetExceeded):
            ledger.charge(PureDP("0.1"), what="b")
        ledger.set_cap(epsilon=2, delta=0, who="ana", why="agreed")
        ledger.charge(PureDP(1), what="b")
        assert [entry.why for entry in ledger.entries() if entry.kind == "cap"] == ["too much", "agreed"]


def test_the_least_total_is_shown_with_its_condition_and_not_enforced(path: Path) -> None:
    with Ledger.create(path, epsilon=10, delta="1e-5") as ledger:
        assert [total.rule for total in ledger.totals()] == ["basic"]
        for _ in range(100):
            ledger.charge(PureDP("0.1"), what="tenth")
        basic, best = ledger.totals()
        assert (basic.rule, basic.guarantee, basic.enforced) == ("basic", ApproxDP(10, 0), True)
        assert best.guarantee == best_composition([PureDP("0.1")] * 100, delta="1e-5")
        assert (best.rule, best.enforced) == ("optimal", False)
        assert "fixed in advance" in best.condition
        with pytest.raises(BudgetExceeded):
            ledger.charge(PureDP("0.1"), what="one more")


def test_every_commit_is_written_through(path: Path) -> None:
    with Ledger.create(path, epsilon=10, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        store = ledger._store
        assert isinstance(store, SqliteStore)
        connection = store._connected()
        pragmas = {"synchronous": 2, "fullfsync": 1, "checkpoint_fullfsync": 1, "journal_mode": "wal"}
        assert {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas} == pragmas


def test_the_file_alone_holds_every_charge_whatever_becomes_of_its_log(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path, epsilon=10, delta=0) as ledger, Ledger(path) as other:
        for count in range(1, 4):
            (ledger, other)[count % 2].charge(PureDP(1), what="a")
            alone = tmp_path / f"alone{count}"
            shutil.copy(path, alone)
            assert verify_ledger(alone, head=ledger.statement().head).holds


def test_a_reader_holds_the_fold_up_only_until_the_next_commit(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path, epsilon=10, delta=0) as ledger:
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        ledger.charge(PureDP(1), what="a")
        ledger.charge(PureDP(1), what="b")
        assert ledger.spent == ApproxDP(2, 0)
        reader.execute("COMMIT")
        reader.close()
        ledger.charge(PureDP(1), what="c")
        shutil.copy(path, tmp_path / "alone")
        assert verify_ledger(tmp_path / "alone", head=ledger.statement().head).holds


# --- terms ------------------------------------------------------------------------------------------------------------


def test_another_relation_or_unit_is_refused_with_the_reason(path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0, unit="patient") as ledger:
        with pytest.raises(InvalidParameter, match=r"'replace one'.*'add or remove one'.*cannot be added"):
            ledger.charge(PureDP("0.1", Neighbouring.ADD_OR_REMOVE_ONE, "patient"), what="a")
        with pytest.raises(InvalidParameter, match=r"each patient .* each record: .* cannot be added"):
            ledger.charge(PureDP("0.1"), what="a")
        ledger.charge(PureDP("0.1", unit="patient"), what="a")
        assert ledger.cap.unit == "patient"


def test_A6_a_ledger_of_replacing_anywhere_refuses_in_place_and_the_other_takes_both(tmp_path: Path) -> None:
    in_place = PureDP("0.1", Neighbouring.REPLACE_ONE_IN_PLACE)
    with Ledger.create(tmp_path / "anywhere.db", epsilon=1, delta=0) as ledger:
        with pytest.raises(InvalidParameter, match="says nothing of records that stand elsewhere in the file"):
            ledger.charge(in_place, what="a")
        assert ledger.spent.epsilon == 0
    with Ledger.create(tmp_path / "in place.db", epsilon=1, delta=0, neighbouring=in_place.neighbouring) as ledger:
        ledger.charge(in_place, what="a")
        ledger.charge(PureDP("0.2"), what="b")
        assert (ledger.spent.epsilon, ledger.spent.neighbouring) == (Fraction(3, 10), in_place.neighbouring)
    with Ledger(tmp_path / "in place.db") as again:
        assert again.spent.epsilon == Fraction(3, 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.charge((1, 0), what="a"),
        lambda ledger: ledger.charge(1, what="a"),
        lambda ledger: ledger.charge(PureDP(1), what=""),
        lambda ledger: ledger.charge(PureDP(1), what="two\nlines"),
        lambda ledger: ledger.charge(PureDP(1), what="nul \0"),
        lambda ledger: ledger.charge(PureDP(1), what="half \ud800"),
        lambda ledger: ledger.charge(PureDP(1), what="x" * 1001),
        lambda ledger: ledger.charge(PureDP(1), what="a", who=3),
        lambda ledger: ledger.charge(PureDP(Fraction(1, 3**9000)), what="a"),
        lambda ledger: ledger.charge(PureDP(Fraction(1, 2**1100)), what="a"),
        lambda ledger: ledger.charge(PureDP(10**400), what="a"),
        lambda ledger: ledger.check(PureDP(10**6 + 1)),
        lambda ledger: ledger.set_cap(epsilon=10**400, delta=0, who="a", why="b"),
        lambda ledger: ledger.set_cap(epsilon=Fraction(10**400, 10**400 - 1), delta=0, who="a", why="b"),
        lambda ledger: ledger.set_cap(epsilon=-1, delta=0, who="a", why="b"),
        lambda ledger: ledger.set_cap(epsilon=1, delta=1, who="a", why="b"),
        lambda ledger: ledger.set_cap(epsilon=float("nan"), delta=0, who="a", why="b"),
        lambda ledger: ledger.verify(head="3"),
    ],
)
def test_bad_arguments_are_refused_and_leave_no_entry(path: Path, call: Callable[[Ledger], object]) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger:
        with pytest.raises(InvalidParameter):
            call(ledger)
        assert len(ledger.entries()) == 1


def test_bad_creations_are_refused_and_leave_no_file(path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"epsilon": -1},
        {"epsilon": 10**400},
        {"delta": 1},
        {"epsilon": "x"},
        {"unit": ""},
        {"unit": "a\nb"},
    ]
    for options in wrong:
        with pytest.raises(InvalidParameter):
            Ledger.create(path, **{"epsilon": 1, "delta": 0, **options})
    with pytest.raises(InvalidParameter):
        Ledger("")
    assert list(path.parent.iterdir()) == []


def test_any_printable_text_is_kept_as_it_is(path: Path) -> None:
    text = "Ä 'quoted' \"too\"; DROP TABLE entries; -- 試験 😀"
    with Ledger.create(path, epsilon=1, delta=0, unit=text) as ledger:
        ledger.charge(PureDP(1, unit=text), what=text, who=text, why=text, note=text)
    with Ledger(path) as ledger:
        last = ledger.entries()[-1]
        assert [last.what, last.who, last.why, last.note, last.unit] == [text] * 5
        assert ledger.verify().holds


# --- the chain --------------------------------------------------------------------------------------------------------


def test_an_untouched_ledger_verifies(path: Path) -> None:
    head = filled(path)
    found = verify_ledger(path, head=head)
    assert found.holds
    assert (found.entries, found.head, found.problem) == (7, head, None)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sequence", range(1, 8))
def test_a_changed_field_is_found_at_its_entry(path: Path, column: str, sequence: int) -> None:
    filled(path)
    value = (
        "sequence + 100" if column == "sequence" else f"CASE WHEN {column} IS NULL THEN '1' ELSE {column} || '0' END"
    )
    force(path, f"UPDATE entries SET {column} = {value} WHERE sequence = {sequence}")  # noqa: S608
    found = verify_ledger(path)
    assert not found.holds
    assert found.entries == sequence - 1
    assert found.problem is not None
    assert str(sequence) in found.problem
    with pytest.raises(LedgerError):
        Ledger(path)


@pytest.mark.parametrize(
    ("statement", "entries", "problem"),
    [
        ("DELETE FROM entries WHERE sequence = 3", 2, "entry 3 is missing"),
        ("DELETE FROM entries WHERE sequence = 1", 0, "entry 1 is missing"),
        ("DELETE FROM entries WHERE sequence = 7", 6, "after 6 are missing"),
        ("DELETE FROM entries WHERE sequence > 2", 2, "after 2 are missing"),
        ("DELETE FROM entries", 0, "after 0 are missing"),
        ("UPDATE entries SET epsilon = '2/20' WHERE sequence = 2", 1, "entry 2 is not as accord writes it"),
        ("UPDATE entries SET epsilon = '1/0' WHERE sequence = 2", 1, "entry 2 is not as accord writes it"),
        ("UPDATE entries SET epsilon = 0.1 WHERE sequence = 2", 1, "entry 2 is not as accord writes it"),
        ("UPDATE entries SET what = x'00' WHERE sequence = 2", 1, "entry 2 is not as accord writes it"),
        ("UPDATE head SET sequence = 3", 7, "after 7 are missing"),
        ("DELETE FROM head", 7, "after 7 are missing"),
    ],
)
def test_removed_and_odd_entries_are_found(path: Path, statement: str, entries: int, problem: str) -> None:
    filled(path)
    force(path, statement)
    found = verify_ledger(path)
    assert not found.holds
    assert found.entries == entries
    assert problem in str(found.problem)
    with pytest.raises(LedgerError):
        Ledger(path)


def test_exchanged_entries_are_found(path: Path) -> None:
    filled(path)
    force(
        path,
        "UPDATE entries SET sequence = 99 WHERE sequence = 4",
        "UPDATE entries SET sequence = 4 WHERE sequence = 6",
        "UPDATE entries SET sequence = 6 WHERE sequence = 99",
    )
    assert verify_ledger(path).entries == 3


def test_a_ledger_forged_as_a_whole_is_caught_by_a_head_noted_elsewhere(path: Path) -> None:
    head = filled(path)
    path.unlink()
    other = fill(path)
    assert verify_ledger(path).holds
    assert verify_ledger(path, head=other).holds
    found = verify_ledger(path, head=head)
    assert not found.holds
    assert "given head" in str(found.problem)


def test_an_entry_resealed_over_the_cap_or_out_of_place_is_refused() -> None:
    def account() -> Account:
        made = Account()
        first = made.next(
            "create", epsilon=Fraction(1), delta=Fraction(0), neighbouring=made.neighbouring, unit="record"
        )
        made.follow(first)
        return made

    terms: dict[str, Any] = {"neighbouring": Neighbouring.REPLACE_ONE, "unit": "record"}
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("charge", {"epsilon": Fraction(2), "delta": Fraction(0), **terms}, "over the cap"),
        ("charge", {"epsilon": Fraction(-1), "delta": Fraction(0), **terms}, "no epsilon"),
        ("charge", {"epsilon": Fraction(1), "delta": Fraction(0), **terms, "unit": "x"}, "another relation"),
        ("charge", terms, "no epsilon"),
        ("create", {"epsilon": Fraction(9), "delta": Fraction(0), **terms}, "out of place"),
        ("confirm", {"charge": 1}, "out of place"),
        ("abandon", {"charge": 5}, "out of place"),
    ]
    for kind, content, problem in wrong:
        made = account()
        with pytest.raises(LedgerError, match=problem):
            made.follow(made.next(kind, **content))
        assert made.sequence == 1
        assert made.spent == (Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = '0/1'",
        "DELETE FROM entries",
        "REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2",
        "INSERT INTO entries (sequence, kind, time, previous, digest) VALUES (8, 'charge', '', '', '')",
        "INSERT INTO entries (sequence, kind, time, previous, digest) SELECT 9, 'cap', '', digest, '' FROM head",
        "UPDATE head SET sequence = 2",
        "UPDATE head SET digest = 'x'",
        "DELETE FROM head",
        "REPLACE INTO head VALUES (1, 1, 'x')",
    ],
)
def test_the_file_itself_refuses_changes(path: Path, statement: str) -> None:
    head = filled(path)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        connection.execute(statement)
    connection.close()
    assert verify_ledger(path, head=head).holds


@pytest.mark.parametrize("name", ["no_change", "no_removal", "in_order", "moves_head", "head_is_last"])
def test_a_dropped_trigger_is_found(path: Path, name: str) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TRIGGER {name}")
    connection.close()
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(path)
    assert not verify_ledger(path).holds


def test_a_flipped_byte_is_found_or_changes_nothing(path: Path) -> None:
    filled(path)
    with Ledger(path) as ledger:
        truth = ledger.entries()
    content = path.read_bytes()
    places = np.random.default_rng(7).choice(len(content), size=250, replace=False)
    found = 0
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(place) % 8
        copied = path.with_name("flipped")
        copied.write_bytes(flipped)
        if verify_ledger(copied).holds:
            with Ledger(copied) as ledger:
                assert ledger.entries() == truth
        else:
            found += 1
        for left in path.parent.glob("flipped*"):
            left.unlink()
    assert found > 20


def test_every_byte_of_the_entries_is_covered(path: Path) -> None:
    """Flipping any bit inside the text of an entry, wherever it stands in the file, is found."""
    filled(path)
    content = path.read_bytes()
    start = content.index(b"seen by the board")
    for place in range(start, start + 17):
        flipped = bytearray(content)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        assert verify_ledger(path).entries == 1


# --- one running process and the rest of the world -------------------------------------------------------------------


def test_a_roll_back_to_an_older_copy_is_refused_by_who_saw_the_later_one(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        ledger.close()
        older = tmp_path / "older"
        shutil.copy(path, older)
        ledger.charge(PureDP(1), what="b")
        ledger.close()
        shutil.copy(older, path)
        with pytest.raises(LedgerError, match="lost entries"):
            ledger.charge(PureDP(1), what="c")


@pytest.mark.parametrize("instead", ["nothing", "another"])
def test_a_file_deleted_or_replaced_in_use_is_refused(path: Path, tmp_path: Path, instead: str) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        path.rename(tmp_path / "moved")
        if instead == "another":
            Ledger.create(tmp_path / "another", epsilon=5, delta=0).close()
            (tmp_path / "another").rename(path)
        with pytest.raises(LedgerError, match="replaced"):
            ledger.charge(PureDP(1), what="b")
        with pytest.raises(LedgerError):
            ledger.charge(PureDP(1), what="b")


def test_a_hard_link_gives_no_second_budget(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP("0.5"), what="a")
        second = tmp_path / "second"
        second.hardlink_to(path)
        with pytest.raises(LedgerError, match="second name"):
            Ledger(second)
        with pytest.raises(LedgerError, match="second name"):
            Ledger(path)
        assert "second name" in str(verify_ledger(second).problem)
        with pytest.raises(LedgerError, match="second name"):  # also on a connection that is open already
            ledger.charge(PureDP("0.5"), what="b")
        second.unlink()
        ledger.charge(PureDP("0.5"), what="b")
        assert ledger.remaining == ApproxDP(0, 0)


def test_the_draft_is_gone_before_a_new_ledger_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    opened = Ledger.__init__

    def spy(self: Ledger, where: Path, **options: Any) -> None:
        seen.append(where.stat().st_nlink)
        opened(self, where, **options)

    monkeypatch.setattr(Ledger, "__init__", spy)
    Ledger.create(path, epsilon=1, delta=0).close()
    assert seen == [1]


@pytest.mark.parametrize("name", ["x", "two words", "tab\tback\\slash#", "return\r"])
def test_a_file_listed_as_a_mount_point_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_bytes(b"")
    monkeypatch.setattr(_sqlite_file, "_MOUNTS", listed)
    Ledger.create(tmp_path / name, epsilon=1, delta=0).close()
    escaped = os.fsencode(tmp_path.resolve() / name)
    for letter in (b"\\", b" ", b"\t", b"#"):
        escaped = escaped.replace(letter, b"\\%03o" % ord(letter))
    rest = b"/data rw,relatime shared:1 - ext4 /dev/vda rw\n"
    listed.write_bytes(b"22 1 254:0 / %s %s23 1 254:0 / / %s" % (os.fsencode(tmp_path), rest, rest))
    Ledger(tmp_path / name).close()  # the folder may be mounted
    listed.write_bytes(b"23 1 254:0 / / %s22 1 254:0 /y %s %s" % (rest, escaped, rest))
    (tmp_path / "link").symlink_to(tmp_path / name)
    for where in (tmp_path / name, tmp_path / "link"):
        with pytest.raises(LedgerError, match="mount its folder"):
            Ledger(where)
    listed.unlink()
    Ledger(tmp_path / name).close()


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("mount") is None, reason="needs the right to mount")
def test_a_ledger_mounted_as_a_single_file_is_refused(path: Path, tmp_path: Path) -> None:
    with Ledger.create(path, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP(1), what="a")
        second = tmp_path / "second name"
        second.touch()
        if subprocess.run(["mount", "--bind", path, second], check=False, capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            with pytest.raises(LedgerError, match="mount its folder"):
                Ledger(second)
        finally:
            subprocess.run(["umount", "-l", second], check=True)


def test_two_ledgers_of_one_file_see_each_other(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as one, Ledger(path) as two:
        number = one.charge(PureDP(1), what="a")
        two.charge(PureDP(1), what="b")
        two.confirm(number)
        assert one.spent == two.spent == ApproxDP(2, 0)
        with pytest.raises(InvalidParameter, match="already"):
            one.confirm(number)


def test_reading_does_not_wait_for_a_writer(path: Path) -> None:
    Ledger.create(path, epsilon=5, delta=0).close()
    with Ledger(path, timeout=0) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert ledger.spent == ApproxDP(0, 0)
        with pytest.raises(LedgerError):  # what has to wait is refused here
            ledger.charge(PureDP(1), what="a")
        other.execute("ROLLBACK")
        other.close()


def test_threads_share_a_ledger(path: Path) -> None:
    with Ledger.create(path, epsilon=4, delta=0) as ledger:
        successes: list[int] = []

        def charge() -> None:
            for _ in range(20):
                try:
                    successes.append(ledger.charge(PureDP("0.1"), what="thread"))
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=charge) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(successes)) == 40
        assert ledger.remaining == ApproxDP(0, 0)
        assert ledger.verify().holds


CHARGE_UNTIL_FULL = """
    import sys
    from accord.errors import BudgetExceeded
    from accord.ledger import Ledger
    from accord.privacy import ApproxDP

    numbers = []
    with Ledger(sys.argv[1]) as ledger:
        while True:
            try:
                numbers.append(ledger.charge(ApproxDP("0.1", "1e-8"), what="race"))
            except BudgetExceeded:
                break
    print(*numbers)
"""


def test_eight_processes_charge_until_the_cap_and_never_over_it(path: Path) -> None:
    Ledger.create(path, epsilon=20, delta="1e-5").close()
    command = [sys.executable, "-c", textwrap.dedent(CHARGE_UNTIL_FULL), str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    numbers = [int(word) for worker in workers for word in worker.communicate(timeout=100)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sorted(numbers) == list(range(2, 202))
    with Ledger(path) as ledger:
        assert ledger.spent == ApproxDP(20, "2e-6")
        assert ledger.verify().holds


def test_a_forked_child_has_a_connection_of_its_own(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        ledger.charge(PureDP(1), what="parent")
        child = multiprocessing.get_context("fork").Process(
            target=ledger.charge, args=(PureDP(1),), kwargs={"what": "child"}
        )
        child.start()
        ledger.charge(PureDP(1), what="parent")
        child.join()
        assert child.exitcode == 0
        assert ledger.spent == ApproxDP(3, 0)
        assert ledger.verify().holds


def test_forks_while_threads_charge(path: Path) -> None:
    with Ledger.create(path, epsilon=500, delta=0) as ledger:
        threads = [
            threading.Thread(target=lambda: [ledger.charge(PureDP(1), what="t") for _ in range(25)]) for _ in "ab"
        ]
        for thread in threads:
            thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    ledger.charge(PureDP(1), what="child")
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for thread in threads:
            thread.join()
        assert ledger.spent == ApproxDP(60, 0)
        assert ledger.verify().holds


def test_copies_and_pickles_open_the_same_ledger_and_hold_nothing_of_it(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0, who="ana") as ledger:
        ledger.charge(PureDP(1), what="CANARY")
        pickled = pickle.dumps(ledger)
        assert b"CANARY" not in pickled
        for again in (pickle.loads(pickled), copy.copy(ledger), copy.deepcopy(ledger)):  # noqa: S301
            with again:
                assert again.spent == ApproxDP(1, 0)
                assert again.who == "ana"
        assert repr(ledger) == f"Ledger({str(path)!r})"


def test_a_ledger_that_is_dropped_closes_its_file(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=5, delta=0)
    ledger.charge(PureDP(1), what="a")
    assert path.with_name(f"{path.name}-wal").exists()
    del ledger
    gc.collect()
    assert not path.with_name(f"{path.name}-wal").exists()


def test_the_file_stays_where_it_was_when_the_folder_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with Ledger.create(path.name, epsilon=5, delta=0) as ledger:
        ledger.close()
        monkeypatch.chdir("/")
        ledger.charge(PureDP(1), what="a")


def test_odd_file_names_work(tmp_path: Path) -> None:
    for name in ("a b", "50%.ledger", "what?x=1#y", "ünï", "'quote"):
        with Ledger.create(tmp_path / name, epsilon=5, delta=0) as ledger:
            ledger.charge(PureDP(1), what="a")
            assert ledger.verify().holds


# --- the weather ------------------------------------------------------------------------------------------------------


def test_nothing_is_created_silently(path: Path) -> None:
    with pytest.raises(LedgerError, match="accord ledger create"):
        Ledger(path)
    assert not path.exists()


def test_a_ledger_is_created_once(path: Path) -> None:
    head = filled(path)
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(path, epsilon=1, delta=0)
    assert verify_ledger(path, head=head).holds
    assert [child.name for child in path.parent.iterdir()] == [path.name]


def test_creation_in_an_impossible_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place in (tmp_path / "none" / "x", tmp_path / "file" / "x", tmp_path / ("x" * 300), tmp_path):
        with pytest.raises(LedgerError):
            Ledger.create(place, epsilon=1, delta=0)
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def make_foreign(path: Path, kind: str) -> None:
    connection = sqlite3.connect(path) if kind not in {"empty", "text", "folder", "zeros"} else None
    match kind:
        case "empty":
            path.touch()
        case "text":
            path.write_text("name,age\nCANARY,3\n" * 100, encoding="utf-8")
        case "zeros":
            path.write_bytes(bytes(8192))
        case "folder":
            path.mkdir()
        case "database" if connection:
            connection.execute("CREATE TABLE entries (a)")
        case "newer" | "older" if connection:
            connection.execute("PRAGMA application_id = 0x41434C47")
            connection.execute(f"PRAGMA user_version = {9 if kind == 'newer' else 0}")
            connection.execute("CREATE TABLE entries (a)")
        case "hollow" if connection:
            connection.execute("PRAGMA application_id = 0x41434C47")
            connection.execute("PRAGMA user_version = 1")
            connection.execute("CREATE TABLE entries (a)")
    if connection:
        connection.commit()
        connection.close()


@pytest.mark.parametrize("kind", ["empty", "text", "zeros", "folder", "database", "newer", "older", "hollow"])
def test_a_foreign_file_is_refused_and_left_alone(path: Path, kind: str) -> None:
    make_foreign(path, kind)
    before = None if kind == "folder" else path.read_bytes()
    with pytest.raises(LedgerError) as refused:
        Ledger(path)
    assert "CANARY" not in str(refused.value)
    assert not verify_ledger(path).holds
    assert kind == "folder" or path.read_bytes() == before


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_half_written_file_is_refused(path: Path, share: float) -> None:
    with Ledger.create(path, epsilon=500, delta=0) as ledger:
        for _ in range(100):
            ledger.charge(PureDP(1), what="a" * 200)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(LedgerError):
        Ledger(path)
    assert not verify_ledger(path).holds


def test_a_locked_ledger_is_an_error_and_then_usable(path: Path) -> None:
    Ledger.create(path, epsilon=5, delta=0).close()
    with Ledger(path, timeout=0.1) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked by another process"):
            ledger.charge(PureDP(1), what="a")
        other.execute("ROLLBACK")
        other.close()
        ledger.charge(PureDP(1), what="a")
        assert ledger.spent == ApproxDP(1, 0)


def test_write_ahead_logging_cannot_be_switched_off_unseen(path: Path) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    with pytest.raises(LedgerError, match="write-ahead"):
        Ledger(path)


LIMITED = """
    import resource, sys
    from accord.errors import LedgerError
    from accord.ledger import Ledger
    from accord.privacy import PureDP

    with Ledger(sys.argv[1]) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
        done = 0
        try:
            while done < 2000:
                ledger.charge(PureDP("0.001"), what="w" * 300)
                done += 1
        except LedgerError as error:
            print(error, file=sys.stderr)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(done, round(1000 * ledger.spent.epsilon))
        ledger.charge(PureDP("0.001"), what="room again")
"""


@pytest.mark.parametrize("limit", [20_000, 60_000, 150_000])
def test_a_full_disk_is_an_error_without_a_lost_or_invented_charge(path: Path, limit: int) -> None:
    Ledger.create(path, epsilon=5, delta=0).close()
    done = run(LIMITED, path, str(limit))
    assert done.returncode == 0, done.stderr
    assert "disk" in done.stderr
    charged, spent = map(int, done.stdout.split())
    assert charged < 2000
    assert spent in {charged, charged + 1}  # an entry may have reached the disk although its charge was refused
    assert verify_ledger(path).holds


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("mount") is None, reason="needs the right to mount")
def test_a_full_tmpfs_is_an_error_and_usable_after(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with Ledger.create(disk / "x", epsilon=5, delta=0) as ledger:
            ledger.charge(PureDP("0.001"), what="a")
            (disk / "filler").write_bytes(bytes(disk_space(disk)))
            charged = 1
            with pytest.raises(LedgerError, match="disk"):  # noqa: PT012 - one of many fails
                for _ in range(500):
                    ledger.charge(PureDP("0.001"), what="w" * 300)
                    charged += 1
            (disk / "filler").unlink()
            ledger.charge(PureDP("0.001"), what="a")
            assert ledger.spent.epsilon == Fraction(charged + 1, 1000)
            assert ledger.verify().holds
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def disk_space(folder: Path) -> int:
    status = os.statvfs(folder)
    return max(0, (status.f_bavail - 6) * status.f_bsize)


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder that anybody may enter; for root, act as somebody else, whom read-only files bind."""
    place = Path(tempfile.mkdtemp(prefix="accord-"))
    yield place
    if os.getuid() == 0:
        os.seteuid(0)
    place.chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.parametrize("folder_too", [True, False])
def test_a_read_only_ledger_is_readable_and_refuses_charges(ordinary_user: Path, *, folder_too: bool) -> None:
    path = ordinary_user / "x"
    filled(path)
    path.chmod(0o444)
    ordinary_user.chmod(0o555 if folder_too else 0o777)
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    assert verify_ledger(path).holds
    with Ledger(path) as ledger:
        assert ledger.spent == ApproxDP("1.35", "1e-6")
        with pytest.raises(LedgerError, match="read-only"):
            ledger.charge(PureDP(1), what="a")
    with pytest.raises(LedgerError):
        Ledger.create(ordinary_user / "x", epsilon=1, delta=0)


def test_an_unreadable_ledger_is_refused(ordinary_user: Path) -> None:
    path = ordinary_user / "x"
    filled(path)
    path.chmod(0)
    ordinary_user.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(path)
    with pytest.raises(LedgerError, match="cannot be"):
        Ledger.create(ordinary_user / "y", epsilon=1, delta=0)


def test_creation_refuses_the_log_of_another_ledger(path: Path) -> None:
    path.with_name(f"{path.name}-wal").write_bytes(b"x")
    with pytest.raises(LedgerError, match="left there"):
        Ledger.create(path, epsilon=1, delta=0)
    assert not path.exists()


# --- charge, compute, confirm -----------------------------------------------------------------------------------------


def test_spending_charges_before_and_confirms_after(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        with spending(ledger, PureDP(1), what="a"):
            assert [entry.kind for entry in ledger.entries()] == ["create", "charge"]
        assert [entry.kind for entry in ledger.entries()] == ["create", "charge", "confirm"]


def test_a_failing_step_stays_charged_and_its_own_error_comes_out(path: Path) -> None:
    class Strange(Exception):
        pass

    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        for _ in range(2):
            with pytest.raises(Strange, match="CANARY"), spending(ledger, PureDP(1), what="a"):
                raise Strange("CANARY")
        assert ledger.spent == ApproxDP(2, 0)
        assert [entry.kind for entry in ledger.entries()][1:] == ["charge", "abandon"] * 2
        assert ledger.entries()[-1].why == "failed: Strange"
        ledger.close()
    assert b"CANARY" not in path.read_bytes()


@pytest.mark.parametrize("name", ["two\nlines", "x" * 5000, "bell \a", ""])
def test_an_error_of_any_name_comes_out_as_it_is_and_is_noted(path: Path, name: str) -> None:
    strange = type(name, (Exception,), {})
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        with pytest.raises(strange), spending(ledger, PureDP(1), what="a"):
            raise strange
        assert ledger.statement().unconfirmed == 0
        assert str(ledger.entries()[-1].why).startswith(f"failed: {name[:3]}")
        assert ledger.verify().holds


def test_a_step_that_settles_its_own_charge_loses_neither_value_nor_error(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        with pytest.warns(VerdictWarning, match="abandoned already"), spending(ledger, PureDP(1), what="a"):
            ledger.confirm(2)
        with pytest.raises(ZeroDivisionError), spending(ledger, PureDP(1), what="a"):  # noqa: PT012
            ledger.abandon(4)
            raise ZeroDivisionError
        assert [entry.kind for entry in ledger.entries()][1:] == ["charge", "confirm", "charge", "abandon"]


def test_who_and_why_cannot_be_set_past_their_checks(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0, who="ana", why="study 7") as ledger:
        for name in ("who", "why"):
            with pytest.raises(AttributeError):
                setattr(ledger, name, "two\nlines")
        assert (ledger.who, ledger.why) == ("ana", "study 7")


def test_an_error_of_the_step_is_not_masked_by_one_of_the_ledger(path: Path) -> None:
    ledger = Ledger.create(path, epsilon=5, delta=0)
    with ledger, pytest.raises(ZeroDivisionError), spending(ledger, PureDP(1), what="a"):  # noqa: PT012
        path.unlink()
        raise ZeroDivisionError


def test_a_value_stands_if_only_its_confirmation_fails(path: Path) -> None:
    with Ledger.create(path, epsilon=5, delta=0) as ledger:
        with pytest.warns(VerdictWarning, match="could not be confirmed"), spending(ledger, PureDP(1), what="a"):
            path.rename(path.with_name("moved"))
        path.with_name("moved").rename(path)
        assert ledger.statement().unconfirmed == 1


def test_a_refused_charge_never_begins_the_step(path: Path) -> None:
    with Ledger.create(path, epsilon="0.5", delta=0) as ledger:
        with pytest.raises(BudgetExceeded), spending(ledger, PureDP(1), what="a"):
            pytest.fail("the step began")
        path.unlink()
        with pytest.raises(LedgerError), spending(ledger, PureDP("0.1"), what="a"):
            pytest.fail("the step began")


def test_an_entry_is_plain_data(path: Path) -> None:
    filled(path)
    with Ledger(path) as ledger:
        for entry in ledger.entries():
            assert Entry.from_row(entry.row()) == entry
            assert json.loads(json.dumps(entry.row())) == list(entry.row())
