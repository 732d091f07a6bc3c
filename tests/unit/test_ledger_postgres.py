"""A ledger in PostgreSQL. Runs against ``ACCORD_TEST_POSTGRES`` (a URL of a scratch database) or a server of its own.

The own server is started where PostgreSQL's programs and a user that may run them are at hand, and skipped otherwise.
"""

import multiprocessing
import os
import pickle
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accord.errors import BudgetExceeded, InvalidParameter, LedgerError
from accord.ledger import Ledger, verify_ledger
from accord.privacy import ApproxDP, PureDP

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (the extra 'postgres')")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of Python 3.12, beside threads

PLACES = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/local/bin"), Path("/usr/bin")]


def server_user() -> str | None:
    """The user that may run a server: this one, or (for root, which PostgreSQL refuses) another."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user to run it as")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a database in which everything may be dropped."""
    given = os.environ.get("ACCORD_TEST_POSTGRES")
    if given:
        yield given
        return
    programs = next((place for place in PLACES if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)
    if programs is None:
        pytest.skip("no PostgreSQL server: set ACCORD_TEST_POSTGRES, or install its programs")
    user = server_user()
    folder = Path(tempfile.mkdtemp(prefix="accord-pg-", dir="/tmp"))  # a socket's path must be short
    if user is not None:
        shutil.chown(folder, user)

    def run(program: str, *words: str) -> None:
        subprocess.run([programs / program, *words], user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    data = str(folder / "data")
    try:
        run("initdb", "-D", data, "-U", "accord", "-A", "trust", "-E", "UTF8", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -h ''", "start")
        try:
            yield f"postgresql://accord@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str) -> str:
    execute(server, "DROP TABLE IF EXISTS accord_entries, accord_head CASCADE")
    names = ["in_order", "moves_head", "no_change", "head_stays", "head_is_last"]
    for name in names:
        execute(server, f"DROP FUNCTION IF EXISTS accord_{name}()")
    return server


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


CHARGE_UNTIL_FULL = """
import sys
from accord.errors import BudgetExceeded
from accord.ledger import Ledger
from accord.privacy import PureDP

count = 0
with Ledger(sys.argv[1]) as ledger:
    while True:
        try:
            ledger.charge(PureDP("0.1"), what="race")
        except BudgetExceeded:
            break
        count += 1
print(count)
"""


def test_charge_confirm_cap_and_totals(url: str) -> None:
    with Ledger.create(url, epsilon=1, delta="1e-5", unit="patient", who="ana") as ledger:
        charge = ledger.charge(ApproxDP("0.3", "1e-6", unit="patient"), what="mean")
        ledger.confirm(charge)
        with pytest.raises(BudgetExceeded):
            ledger.charge(ApproxDP("0.8", 0, unit="patient"), what="too much")
        with pytest.raises(InvalidParameter, match="patient"):
            ledger.charge(PureDP("0.1"), what="wrong unit")
        ledger.set_cap(epsilon=2, delta="1e-5", who="bo", why="agreed")
        assert ledger.remaining == ApproxDP("1.7", "9e-6", unit="patient")
        assert [entry.kind for entry in ledger.entries()] == ["create", "charge", "confirm", "cap"]
        assert ledger.verify(head=ledger.statement().head).holds
        with pickle.loads(pickle.dumps(ledger)) as again:  # noqa: S301 - our own
            assert again.spent.epsilon == Fraction(3, 10)


def test_a_second_ledger_and_none_at_all_are_refused(url: str) -> None:
    with pytest.raises(LedgerError, match="create one first"):
        Ledger(url)
    Ledger.create(url, epsilon=1, delta=0).close()
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(url, epsilon=1, delta=0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accord_entries SET epsilon = '0/1' WHERE sequence = 2",
        "DELETE FROM accord_entries WHERE sequence = 2",
        "TRUNCATE accord_entries",
        "UPDATE accord_head SET sequence = 1",
        "DELETE FROM accord_head",
        "UPDATE accord_entries SET digest = previous",
        "INSERT INTO accord_entries (sequence, kind, time, previous, digest) VALUES (7, 'charge', '', '', '')",
    ],
)
def test_the_server_refuses_changes_and_verify_finds_forced_ones(url: str, statement: str) -> None:
    with Ledger.create(url, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP("0.5"), what="a")
        with pytest.raises(psycopg.Error):
            execute(url, statement)
        assert ledger.verify().holds
        execute(url, "SET session_replication_role = replica", statement)
        found = verify_ledger(url)
        assert not found.holds
        assert found.problem is not None


def test_switched_off_triggers_are_refused(url: str) -> None:
    Ledger.create(url, epsilon=1, delta=0).close()
    execute(url, "ALTER TABLE accord_entries DISABLE TRIGGER accord_no_change")
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(url)


def test_processes_never_go_over_the_cap(url: str) -> None:
    Ledger.create(url, epsilon=6, delta=0).close()
    command = [sys.executable, "-c", CHARGE_UNTIL_FULL, url]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    total = sum(int(worker.communicate(timeout=100)[0]) for worker in workers)
    with Ledger(url) as ledger:
        assert total == 60
        assert ledger.spent.epsilon == 6
        assert ledger.verify().holds


def test_a_lost_connection_is_an_error_and_then_made_again(url: str) -> None:
    with Ledger.create(url, epsilon=1, delta=0) as ledger:
        execute(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND pid > 0")
        with pytest.raises(LedgerError):
            ledger.charge(PureDP("0.5"), what="a")
        ledger.charge(PureDP("0.5"), what="b")
        assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_locked_ledger_is_an_error(url: str) -> None:
    Ledger.create(url, epsilon=1, delta=0).close()
    with psycopg.connect(url) as other, Ledger(url, timeout=0.2) as ledger:
        other.execute("SELECT 1 FROM accord_head FOR UPDATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.charge(PureDP("0.5"), what="a")
        other.rollback()
        ledger.charge(PureDP("0.5"), what="a")


def test_a_child_uses_a_connection_of_its_own(url: str) -> None:
    with Ledger.create(url, epsilon=1, delta=0) as ledger:
        ledger.charge(PureDP("0.25"), what="parent")
        child = multiprocessing.get_context("fork").Process(
            target=ledger.charge, args=(PureDP("0.25"),), kwargs={"what": "child"}
        )
        child.start()
        ledger.charge(PureDP("0.25"), what="parent")
        child.join()
        assert child.exitcode == 0
        assert ledger.spent.epsilon == Fraction(3, 4)


def test_no_password_is_taken() -> None:
    for url in ("postgresql://a:secret@localhost/x", "postgresql://localhost/x?password=secret"):
        with pytest.raises(InvalidParameter, match="PGPASSWORD") as refused:
            Ledger(url)
        assert "secret" not in str(refused.value)


def test_an_unreachable_server_is_an_error() -> None:
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger("postgresql://nobody@127.0.0.1:9/none")
