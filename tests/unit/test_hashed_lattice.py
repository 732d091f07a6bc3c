"""The hashed lattice against brute force, on neighbours and on odd laws; the compiled hash against that of the library.

Everything here is exact: no tolerance for chance.
"""

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord._compiled import absorb, mix_word, uniform_word, word_number
from accord.core.coupling import ABSTAIN
from accord.couplings import HashedLattice
from accord.couplings.lattice.hashed import _POINTS_A_CELL, BoundedLaw, _Points
from accord.distributions import Categorical, Measure, Mixture, Normal, PointMass, Product, Uniform
from accord.errors import FitFailed, InvalidParameter
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
        "from accord._compiled import mix_word\n"
        "raise SystemExit(int(mix_word(np.uint64(0))) != 0 or bool(mix_word.stats.cache_path))\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path / "none")}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)


ONE = Normal([0.0, 0.3], [[1.0, 0.6], [0.6, 1.0]])
LAWS: dict[str, Any] = {
    "line": Normal(0.4, 2.0),
    "plane": ONE,
    "mixture": Mixture([ONE, Uniform([-4, 1], [1, 2.5])], [0.7, 0.3]),
    "product": Product([Normal(0.0, 0.1), Uniform(-1, 1)]),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_search_finds_the_least_score_of_all_points(name: str) -> None:
    """A second route: every point of every cell and layer around the law, without bounds, pruning or an order."""
    law = LAWS[name]
    shared, d = SharedRandomness(name), law.dimension
    lattice = HashedLattice(dimension=d)
    for draw in range(6):
        points = _Points(lattice, records=1, draws=draw + 1, shared=shared)
        best, key = math.inf, b""
        for layer in range(-24, 7):
            side, shift = points._side(layer), points._shift(layer)
            assert math.isclose(side**d * 2.0**layer, _POINTS_A_CELL)
            axis = [np.arange(math.floor(-6 / side - 1), math.ceil(6 / side + 1)) for _ in range(d)]
            cells = np.stack(np.meshgrid(*axis, indexing="ij"), axis=-1).reshape(-1, d).astype(np.int64)
            streams = mix(points._tags(layer, cells) ^ points._words[draw])
            waited = np.zeros(len(cells))
            for number in range(12):
                waited -= np.log(uniform_open(word_at(streams, np.array([number * (d + 1)]))))
                within = np.flatnonzero(waited < _POINTS_A_CELL)
                which = np.full(len(within), number, dtype=np.int64)
                counters = number * (d + 1) + 1 + np.arange(d)
                place = (cells[within] + (uniform_open(word_at(streams[within, None], counters)) + shift)) * side
                assert np.array_equal(place, points._places(streams[within], which, cells[within], layer))
                if len(within) == 0:
                    break
                score = np.log(2.0**layer * (1 + waited[within] / _POINTS_A_CELL)) - law.log_density(place)
                if score.min() < best:
                    best, winner = float(score.min()), int(score.argmin())
                    key = np.concatenate([[layer], cells[within][winner], [number]]).astype("<i8").tobytes()
        assert lattice.couple([law], records=1, draws=draw + 1, shared=shared).keys[draw, 0] == key


@dataclass(frozen=True)
class Foreign:
    """A law of one column that goes wrong in one way, or in none."""

    fault: str = ""

    @property
    def dimension(self) -> int:
        return 1

    @property
    def measure(self) -> Measure:
        return Measure.LEBESGUE

    def sample(self, size: int, generator: Any) -> Any:
        raise NotImplementedError

    def log_density(self, x: Any) -> NDArray[np.float64]:
        if self.fault == "raises":
            raise SystemError("no density")
        value = np.where(np.abs(np.asarray(x)[:, 0]) < 0.5, 0.0, -np.inf)
        return np.full(len(value), np.nan) if self.fault == "nan" else value

    def log_density_bound(self, low: Any, high: Any) -> NDArray[np.float64]:
        top = {"low bound": -1.0, "no bound": np.inf, "nan bound": np.nan}.get(self.fault, 0.0)
        return np.where((low[:, 0] < 0.5) & (high[:, 0] > -0.5), top, -np.inf)

    def reach(self) -> tuple[list[float], list[float]]:
        if self.fault == "no box":
            return [0.5], [-0.5]
        return [-0.5], [0.5]


def test_a_law_of_ones_own_takes_part_and_agrees_with_its_twin() -> None:
    keys = HashedLattice(dimension=1).couple(
        [Foreign(), Uniform(-0.5, 0.5)], records=1, draws=50, shared=SharedRandomness(2)
    )
    assert (keys.keys[:, 0] == keys.keys[:, 1]).all()
    assert all(abs(keys.decode(draw, keys.keys[draw, 0])[0, 0]) < 0.5 for draw in range(50))


FAULTS = ["raises", "nan", "low bound", "no bound", "nan bound", "no box"]
ODD: list[Any] = [
    *[Foreign(fault) for fault in FAULTS],
    ABSTAIN,
    Normal([0.0, 0.0], np.eye(2)),
    Normal(1e300, 1e-10),
    Categorical(["a"], [1.0]),
    PointMass([0.0]),
    None,
    "law",
]


def test_odd_laws_abstain_alone_and_neighbours_move_one_vote() -> None:
    """Replay: one law replaced by anything at all, every other key is the same byte for byte."""
    laws: list[Any] = [Normal(0.1 * place, 1.0 + place) for place in range(5)]
    lattice, shared = HashedLattice(dimension=1), SharedRandomness(7)
    before = lattice.couple(laws, records=1, draws=8, shared=shared).keys
    for place, odd in enumerate([*ODD, Normal(3.0, 0.5), Normal(-1e6, 1e9)]):
        block = place % 5
        changed = [*laws[:block], odd, *laws[block + 1 :]]
        after = lattice.couple(changed, records=1, draws=8, shared=shared).keys
        others = np.arange(5) != block
        assert (after[:, others] == before[:, others]).all()
        assert all((vote is ABSTAIN) == (place < len(ODD)) for vote in after[:, block])


def test_votes_follow_their_laws_and_their_draws() -> None:
    laws: list[Any] = [Normal(0.1 * place, 1.0 + place) for place in range(6)]
    lattice, shared = HashedLattice(dimension=1), SharedRandomness(8)
    keys = lattice.couple(laws, records=1, draws=6, shared=shared).keys
    order = [3, 0, 5, 1, 4, 2]
    assert (lattice.couple([laws[i] for i in order], records=1, draws=6, shared=shared).keys == keys[:, order]).all()
    assert (lattice.couple(laws, records=1, draws=2, shared=shared).keys == keys[:2]).all()
    assert len(set(keys[:, 0])) == 6


def test_units_are_nothing_but_units() -> None:
    """Laws and units scaled together by powers of two give the same keys and scaled records."""
    units = np.array([2.0**-20, 2.0**13])
    near, far = Normal([1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]]), Normal([1.1, 2.0], [[1.0, 0.4], [0.4, 2.0]])
    scaled = [
        Normal(np.array(law.mean) * units, np.array(law.covariance) * np.outer(units, units)) for law in (near, far)
    ]
    plain = HashedLattice(dimension=2).couple([near, far], records=1, draws=20, shared=SharedRandomness(4))
    other = HashedLattice(dimension=2, units=units).couple(scaled, records=1, draws=20, shared=SharedRandomness(4))
    assert (plain.keys == other.keys).all()
    for draw in range(20):
        key = plain.keys[draw, 0]
        assert np.allclose(other.decode(draw, key), plain.decode(draw, key) * units, rtol=1e-15)


@pytest.mark.parametrize("law", [Normal([1.0, 2.0, 3.0], np.diag([1.0, 1e-4, 1.0]) + 0.5), LAWS["mixture"]])
def test_no_cell_that_reaches_the_level_is_left_out(law: Any) -> None:
    d = law.dimension
    seen = BoundedLaw.seen(law, units=np.ones(d))
    generator = np.random.default_rng(3)
    for side, level in ((0.7, -6.0), (0.2, -3.0), (5.0, -9.0)):
        shift = generator.random(d)
        cells, bounds = seen.cells(side, shift, log_least=level, most=1 << 18)
        assert len(np.unique(cells, axis=0)) == len(cells)
        listed = dict(zip(map(tuple, cells.tolist()), bounds.tolist(), strict=True))
        x = law.sample(20_000, generator)
        density = law.log_density(x)
        inside = (density >= level) & (x >= seen.low).all(axis=1) & (x <= seen.high).all(axis=1)
        named = np.floor(x[inside] / side - shift).astype(np.int64)
        assert inside.sum() > 1_000
        assert all(listed[tuple(cell)] >= value for cell, value in zip(named.tolist(), density[inside], strict=True))
        assert min(bounds) >= level


def test_a_law_that_hits_the_cap_abstains_alone() -> None:
    thin = Normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1e-10]])
    lattice, shared = HashedLattice(dimension=2, most_cells=300), SharedRandomness(1)
    keys = lattice.couple([ONE, thin, ONE], records=1, draws=3, shared=shared).keys
    assert [isinstance(vote, bytes) for vote in keys[0]] == [True, False, True]
    alone = HashedLattice(dimension=2).couple([ONE], records=1, draws=3, shared=shared).keys
    assert (keys[:, 0] == alone[:, 0]).all()
    with pytest.raises(FitFailed, match="too many cells"):
        lattice.cells_read(thin, draws=3, shared=shared)
    assert (lattice.cells_read(ONE, draws=3, shared=shared) < 300).all()


def test_parameters_are_checked() -> None:
    lattice = HashedLattice(dimension=1)
    with pytest.raises(InvalidParameter, match="record_by_record"):
        lattice.couple([Normal(0, 1)], records=2, draws=1, shared=SharedRandomness(1))
    for wrong in (0, 13, 1.5, "x"):
        with pytest.raises(InvalidParameter):
            HashedLattice(dimension=wrong)  # type: ignore[arg-type]
    for units in ([1.0], [1.0, -1.0], [1.0, np.nan], "ab", [[1.0, 1.0]]):
        with pytest.raises(InvalidParameter):
            HashedLattice(dimension=2, units=units)
    assert HashedLattice(dimension=2).isolated
    assert lattice.couple([], records=1, draws=3, shared=SharedRandomness(1)).keys.shape == (3, 0)
