"""Secret randomness: no bit twice, no seed, no exchange with shared randomness (E16)."""

import copy
import os
import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from accord.errors import WrongRandomness
from accord.mechanisms import BestOfDraws, StableMode
from accord.randomness import PrivateRandomness, SharedRandomness, require_private, require_shared
from accord.testing import ReplayRandomness

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 16
CHUNKS = 64


def chunks(source: PrivateRandomness, count: int = CHUNKS) -> list[bytes]:
    return [source.bytes(CHUNK) for _ in range(count)]


# --- forks ------------------------------------------------------------------------------------------------------------


def forked(source: PrivateRandomness, *, generations: int) -> list[bytes]:
    """What a child, and its child, and so on, read from ``source`` while everyone goes on reading."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # in the child: no test code may run on from here
        try:
            os.close(reader)
            seen = chunks(source)
            if generations > 1:
                seen += forked(source, generations=generations - 1)
            seen += chunks(source)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(b"".join(seen))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # other tests may have left threads behind
def test_parent_child_and_grandchild_never_share_bits() -> None:
    source = PrivateRandomness()
    seen = chunks(source)  # fills the buffer that a careless child would read on from
    other = forked(source, generations=2)
    seen += chunks(source)
    assert len(other) == 4 * CHUNKS
    assert len({*seen, *other}) == len(seen) + len(other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_fork_test_sees_a_source_that_keeps_its_buffer() -> None:
    """Replay is such a source: after a fork, parent and child go on alike."""
    source = ReplayRandomness("fork")
    child = forked(source, generations=1)
    assert set(child) & {source._source(CHUNK * 4096)[start : start + CHUNK] for start in range(0, CHUNK * 4096, CHUNK)}


# --- copies and threads -----------------------------------------------------------------------------------------------


def test_copies_and_pickles_are_fresh() -> None:
    source = PrivateRandomness()
    seen = chunks(source)
    family = [copy.copy(source), copy.deepcopy(source), pickle.loads(pickle.dumps(source))]  # noqa: S301
    for other in family:
        assert type(other) is PrivateRandomness
        seen += chunks(other)
    seen += chunks(source)
    assert len(set(seen)) == len(seen)


def test_a_pickle_holds_no_bits() -> None:
    source = PrivateRandomness()
    before = pickle.dumps(source)
    next_bytes = source.bytes(CHUNK)
    assert next_bytes not in pickle.dumps(source)
    assert pickle.dumps(source) == before


def test_threads_never_share_bytes() -> None:
    source, each = PrivateRandomness(), 8000  # 4 * 8000 * 16 bytes: the buffer is refilled several times
    seen: list[list[bytes]] = [[] for _ in range(4)]
    gate = threading.Barrier(4)

    def read(mine: list[bytes]) -> None:
        gate.wait()
        mine.extend(chunks(source, each))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read, args=(mine,)) for mine in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    together = [chunk for mine in seen for chunk in mine]
    assert len(together) == 4 * each
    assert len(set(together)) == len(together)


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 128, 1000])
def test_bits_stay_below_their_bound_and_reach_the_top(count: int) -> None:
    source = PrivateRandomness()
    draws = [source.bits(count) for _ in range(200)]
    assert all(0 <= draw < 2**count for draw in draws)
    if count:
        assert any(draw >> (count - 1) for draw in draws)
        assert not all(draw >> (count - 1) for draw in draws)


@pytest.mark.parametrize("count", [0, 1, 65_536, 65_537, 1_000_000])
def test_bytes_have_the_length_asked_for(count: int) -> None:
    assert len(PrivateRandomness().bytes(count)) == count


def test_words_are_64_bits_wide() -> None:
    words = PrivateRandomness().words(1000)
    assert words.dtype == np.uint64
    assert words.shape == (1000,)
    assert words.max() > 2**63 > words.min()


def test_repr_shows_nothing() -> None:
    assert repr(PrivateRandomness()) == "PrivateRandomness()"


# --- no seed ----------------------------------------------------------------------------------------------------------


def test_E16_global_seeds_do_not_matter() -> None:
    seen = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - the global generator is what this is about
        random.seed(0)
        seen += chunks(PrivateRandomness(), 4)
        mode = StableMode(epsilon="0.5", delta="0.05")
        seen.append(repr([mode.release(["a"] * 4).value for _ in range(128)]).encode())
    assert len(set(seen)) == len(seen)


def test_E16_there_is_no_place_for_a_seed() -> None:
    with pytest.raises(TypeError):
        PrivateRandomness(0)  # type: ignore[call-arg]


# --- the two kinds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [0, 1.0, "seed", b"seed", SharedRandomness(0), np.random.default_rng(0), random, PrivateRandomness]
)
def test_only_secret_sources_are_secret(wrong: object) -> None:
    with pytest.raises(WrongRandomness, match="leave 'randomness' out"):
        require_private(wrong)


def test_a_source_that_is_given_is_used() -> None:
    source = PrivateRandomness()
    assert require_private(source) is source
    assert require_private(None) is not require_private(None)


@pytest.mark.parametrize("wrong", [0, "key", PrivateRandomness(), ReplayRandomness(1), np.random.default_rng(0)])
def test_blocks_read_from_shared_randomness_only(wrong: object) -> None:
    with pytest.raises(WrongRandomness):
        require_shared(wrong)


def test_release_refuses_shared_randomness_and_seeds() -> None:
    for wrong in (SharedRandomness(1), 1, 0):
        with pytest.raises(WrongRandomness):
            StableMode(epsilon=1, delta="0.1").release(["a"], randomness=wrong)  # type: ignore[arg-type]
        with pytest.raises(WrongRandomness):
            BestOfDraws(epsilon=1, delta="0.1", draws=1).release([["a"]], randomness=wrong)  # type: ignore[arg-type]


SNIPPET = """
from accord.mechanisms import BestOfDraws, StableMode
from accord.randomness import PrivateRandomness, SharedRandomness

mode = StableMode(epsilon=1, delta="0.1")
best = BestOfDraws(epsilon=1, delta="0.1", draws=1)
source = {source}
mode.release(["a"], randomness=source)
best.release([["a"]], randomness=source)
"""


@pytest.mark.parametrize(
    ("source", "errors"), [("PrivateRandomness()", 0), ("SharedRandomness(1)", 2), ("7", 2), ('"seed"', 2)]
)
def test_the_type_checker_tells_them_apart(source: str, errors: int, tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET.format(source=source), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    found = subprocess.run([*command, str(snippet)], capture_output=True, text=True, cwd=ROOT, check=False)
    lines = [line for line in found.stdout.splitlines() if "error:" in line]
    assert found.stderr == ""
    assert len(lines) == errors, found.stdout
    assert all('Argument "randomness" to "release"' in line for line in lines)
    assert found.returncode == (1 if errors else 0)


# --- replay, for tests ------------------------------------------------------------------------------------------------


def test_replay_depends_on_its_key_alone() -> None:
    def read(source: PrivateRandomness) -> tuple[int, bytes, list[int]]:
        return source.bits(77), source.bytes(100_000), source.words(9000).tolist()

    first = read(ReplayRandomness("key"))
    assert first == read(ReplayRandomness("key")) == read(pickle.loads(pickle.dumps(ReplayRandomness("key"))))  # noqa: S301
    others = [read(ReplayRandomness(key)) for key in ("kez", b"key", 1, "1", b"1")]
    assert len({repr(found) for found in [first, *others]}) == 6


def test_replay_does_not_repeat_itself() -> None:
    seen = chunks(ReplayRandomness(5), 20_000)
    assert len(set(seen)) == len(seen)


def test_replay_says_what_it_is() -> None:
    assert "not private" in repr(ReplayRandomness(5))
    assert "5" not in repr(ReplayRandomness(5))
    assert isinstance(ReplayRandomness(5), PrivateRandomness)
