"""The compiled hash is that of the library, bit for bit, and compiled code needs no place to be kept."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from accord.couplings._compiled import absorb, mix_word, uniform_word, word_number
from accord.randomness import SharedRandomness, mix, uniform_open, word_at

WORDS = np.random.default_rng(5).integers(0, 2**64, size=500, dtype=np.uint64)
EDGES = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


def test_compiled_hash_is_the_shared_one_bit_for_bit() -> None:
    words = np.concatenate([WORDS, EDGES])
    assert [int(mix_word(word)) for word in words] == mix(words).tolist()
    assert [uniform_word(word) for word in words] == uniform_open(words).tolist()
    for counter in (0, 1, 17, 2**40):
        assert [int(word_number(word, counter)) for word in words] == word_at(words, np.array([counter])).tolist()
    rows = np.random.default_rng(6).integers(-(2**50), 2**50, size=(50, 4))
    shared = SharedRandomness("rows")
    expected = shared.hash_rows(rows, "cell")
    for row, word in zip(rows, expected, strict=True):
        state = shared.word("cell")
        for entry in row:
            state = np.uint64(absorb(state, entry))  # a Python int would be read as signed
        assert int(state) == int(word)


def test_import_does_not_import_numba() -> None:
    code = "import sys, accord, accord.couplings; raise SystemExit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_compiled_code_needs_no_place_to_be_kept(tmp_path: Path) -> None:
    """A read-only install without a home folder: `compiled` compiles anew instead of failing."""
    code = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import numpy as np\n"
        "from accord.couplings._compiled import mix_word\n"
        "raise SystemExit(int(mix_word(np.uint64(0))) != 0 or bool(mix_word.stats.cache_path))\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path / "none")}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)
