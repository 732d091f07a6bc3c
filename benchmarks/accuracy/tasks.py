"""Tables with public columns, what a user may know of them, and their training and test rows."""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from accuracy import made_up
from accuracy.made_up import Columns, schema_text

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
CUTS, COLOURS = ["Fair", "Good", "Very Good", "Premium", "Ideal"], list("DEFGHIJ")
CLARITIES = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]


@dataclass(frozen=True)
class Label:
    """A column of labels; rows hold their positions."""

    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many codes of the measure it has."""
        return len(self.labels)

    def codes(self, cells: np.ndarray) -> np.ndarray:
        """Return the codes of the measure."""
        return cells.astype(int)

    def decode(self, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:  # noqa: ARG002 - as of numbers
        """Return positions of labels."""
        return codes

    def lines(self, knowledge: str) -> list[str]:  # noqa: ARG002 - labels are always known
        """Return what a schema says of it."""
        return ['kind = "category"', f"categories = {list(self.labels)!r}".replace("'", '"')]


@dataclass(frozen=True)
class Number:
    """A column of numbers with public bounds, decimals, and the bins of the measure, which peers are given."""

    edges: tuple[float, ...]
    bounds: tuple[float, float]
    decimals: int

    @property
    def size(self) -> int:
        """How many codes of the measure it has."""
        return len(self.edges) - 1

    def codes(self, cells: np.ndarray) -> np.ndarray:
        """Return the codes of the measure."""
        return np.searchsorted(np.array(self.edges[1:-1]), cells, side="right")

    def decode(self, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Spread codes evenly over the declared multiples of their bins."""
        ends, step = np.array(self.edges), 10.0**-self.decimals
        low, high = ends[codes], ends[codes + 1]
        first, last = np.ceil(low / step - 1e-9), np.ceil(high / step - 1e-9) - 1
        drawn = np.floor(first + generator.random(len(codes)) * np.maximum(last - first + 1, 1))
        return np.round(np.clip(drawn, first, np.maximum(first, last)) * step, self.decimals)

    def lines(self, knowledge: str) -> list[str]:
        """Return what a schema says of it."""
        kind = ['kind = "integer"'] if self.decimals == 0 else ['kind = "number"', f"decimals = {self.decimals}"]
        if knowledge == "n":
            return kind
        bins = [f"edges = {[float(edge) for edge in self.edges]}"] if knowledge == "e" else []
        return [*kind, f"bounds = {list(self.bounds)}", *bins]


Spec = Label | Number


@dataclass(frozen=True)
class Task:
    """A table: its columns, its rows for a split, and what synthetic rows are measured by.

    ``known`` maps each knowledge to a schema: "e" (the bins of the measure too), "b" (bounds and decimals), "n" (no
    bounds), or the word of a made-up table. Peers are given the bins of ``columns``; where ``chosen`` has better ones
    than a user could know, those too.
    """

    name: str
    columns: dict[str, Spec]
    rows: Callable[[Path, int], tuple[Columns, Columns]]
    known: dict[str, str]
    target: str | None = None
    peers: tuple[str, ...] = ("AIM",)
    deciles: bool = False
    special: Callable[[Columns, Columns], dict[str, float]] | None = None
    needs_data: bool = True
    table_errors: bool = True
    truth: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Spec] = field(default_factory=dict)

    def given(self, rows: Columns) -> dict[str, np.ndarray]:
        """Return rows as a user holds them: labels as texts."""
        return {
            name: np.array(spec.labels)[rows[name]] if isinstance(spec, Label) else rows[name]
            for name, spec in self.columns.items()
        }


def whole(low: int, high: int) -> Number:
    """Whole numbers, a bin each."""
    return Number(tuple((np.arange(low, high + 2) - 0.5).tolist()), (float(low), float(high)), 0)


def equal(low: float, high: float, *, cells: int, decimals: int) -> Number:
    return Number(tuple(np.linspace(low, high, cells + 1).tolist()), (low, high), decimals)


def by_logs(low: float, high: float, *, cells: int, decimals: int) -> Number:
    ends = np.exp(np.linspace(math.log(low), math.log(high), cells + 1))
    ends[0], ends[-1] = low, high
    return Number(tuple(ends.tolist()), (low, high), decimals)


def split_rows(rows: Columns, *, name: str, split: int) -> tuple[Columns, Columns]:
    """Return 80 % of the rows to learn from and the rest to test on."""
    size = len(next(iter(rows.values())))
    order = np.random.default_rng([split, zlib.crc32(name.encode())]).permutation(size)
    cut = size * 4 // 5
    return tuple({key: cells[part] for key, cells in rows.items()} for part in (order[:cut], order[cut:]))  # type: ignore[return-value]


def from_file(name: str, columns: dict[str, Spec], read: Callable[[Path], Columns], **more: Any) -> Task:
    def rows(data: Path, split: int) -> tuple[Columns, Columns]:
        found = read(data)
        for key, spec in columns.items():
            if isinstance(spec, Number):
                found[key] = np.clip(found[key], *spec.bounds)
        return split_rows(found, name=name, split=split)

    schemas = {
        knowledge: schema_text(
            [
                [f'name = "{key}"', *spec.lines(knowledge), "required = true"]
                for key, spec in columns.items()
            ]
        )
        for knowledge in ("e", "b", "n")
    }  # fmt: skip
    if not any(isinstance(spec, Number) for spec in columns.values()):
        schemas = {"e": schemas["e"]}
    return Task(name, columns, rows, schemas, **more)


def numbers_of(table: Any, name: str) -> np.ndarray:
    return np.array([math.nan if cell is None else cell for cell in table[name].to_pylist()], dtype=float)


def codes_of(table: Any, name: str, levels: Sequence[str]) -> np.ndarray:
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[str(cell)] for cell in table[name].to_pylist()])


def flights5(data: Path) -> Columns:
    table = pq.read_table(data / "flights.parquet", columns=["month", "carrier", "origin", "hour", "arr_delay"])
    delay = numbers_of(table, "arr_delay")
    return {
        "month": numbers_of(table, "month"),
        "carrier": codes_of(table, "carrier", CARRIERS),
        "origin": codes_of(table, "origin", ["EWR", "JFK", "LGA"]),
        "hour": numbers_of(table, "hour"),
        "status": np.where(np.isnan(delay), 4, np.digitize(np.nan_to_num(delay), [0.5, 15.5, 60.5])),
    }


def cps5(data: Path) -> Columns:
    table = pq.read_table(data / "cps_sw8.parquet")
    return {
        "gender": codes_of(table, "gender", ["male", "female"]),
        "region": codes_of(table, "region", ["Northeast", "Midwest", "South", "West"]),
        "education": numbers_of(table, "education"),
        "age": numbers_of(table, "age"),
        "earnings": numbers_of(table, "earnings").round(2),
    }


def minutes(name: str) -> Callable[[Path], Columns]:
    def read(data: Path) -> Columns:
        cells = numbers_of(pq.read_table(data / "flights.parquet", columns=[name]), name)
        return {name: cells[~np.isnan(cells)]}

    return read


def in_bins(name: str, low: float, high: float, *, cells: int) -> Callable[[Columns, Columns], dict[str, float]]:
    """Return the measure of a column on equal bins, beside that of each whole number."""
    edges = np.linspace(low, high, cells + 1)

    def measure(fake: Columns, real: Columns) -> dict[str, float]:
        first, second = (np.histogram(rows[name], edges)[0] / len(rows[name]) for rows in (real, fake))
        return {f"{cells} bins": float(np.abs(first - second).sum() / 2)}

    return measure


def diamonds(*names: str) -> Callable[[Path], Columns]:
    def read(data: Path) -> Columns:
        table = pq.read_table(data / "diamonds.parquet")
        levels = {"cut": CUTS, "color": COLOURS, "clarity": CLARITIES}
        kept = numbers_of(table, "x") > 0
        return {
            name: (codes_of(table, name, levels[name]) if name in levels else numbers_of(table, name))[kept]
            for name in names
        }

    return read


MILITARY = {
    "grade": ["enlisted", "officer", "warrant officer"],
    "branch": ["air force", "army", "marine corps", "navy"],
    "gender": ["female", "male"],
    "race": ["ami/aln", "asian", "black", "multi", "p/i", "unk", "white"],
    "hisp": ["False", "True"],
}


def military6(data: Path) -> Columns:
    table = pq.read_table(data / "us_military.parquet")
    return {
        **{name: codes_of(table, name, levels) for name, levels in MILITARY.items()},
        "rank": numbers_of(table, "rank"),
    }


ADULT_NUMBERS = {
    "age": 85,
    "fnlwgt": 100,
    "education-num": 16,
    "capital-gain": 100,
    "capital-loss": 100,
    "hours-per-week": 99,
}
ADULT_LABELS = {
    "workclass": 9, "marital-status": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2, "native-country": 42,
    "income>50K": 2,
}  # fmt: skip


def adult(data: Path) -> Columns:
    table = pa_csv.read_csv(data / "adult.csv")
    return {name: table[name].to_numpy() for name in (*ADULT_NUMBERS, *ADULT_LABELS)}


PRICE, CARAT = (300.0, 20000.0), (0.2, 5.2)
LEVELS: dict[str, Spec] = {
    "cut": Label(tuple(CUTS)),
    "color": Label(tuple(COLOURS)),
    "clarity": Label(tuple(CLARITIES)),
}


def numbered(size: int) -> Label:
    return Label(tuple(str(code) for code in range(size)))


FILES = [
    from_file(
        "flights5",
        {
            "month": whole(1, 12),
            "carrier": Label(tuple(CARRIERS)),
            "origin": Label(("EWR", "JFK", "LGA")),
            "hour": whole(0, 23),
            "status": Label(("early", "in time", "late", "very late", "cancelled")),
        },
        flights5,
    ),
    from_file(
        "cps5",
        {
            "gender": Label(("male", "female")),
            "region": Label(("Northeast", "Midwest", "South", "West")),
            "education": whole(6, 20),
            "age": whole(21, 64),
            "earnings": equal(0, 80, cells=20, decimals=2),
        },
        cps5,
    ),
    from_file(
        "diam4",
        {**LEVELS, "price": by_logs(*PRICE, cells=10, decimals=0)},
        diamonds("cut", "color", "clarity", "price"),
    ),
    from_file(
        "military6",
        {**{name: Label(tuple(levels)) for name, levels in MILITARY.items()}, "rank": whole(1, 11)},
        military6,
    ),
    from_file(
        "diamonds5",
        {
            "carat": by_logs(*CARAT, cells=40, decimals=2),
            "depth": equal(50, 75, cells=40, decimals=1),
            "table": equal(50, 75, cells=40, decimals=1),
            "price": by_logs(*PRICE, cells=40, decimals=0),
            "x": by_logs(3, 11, cells=40, decimals=2),
        },
        diamonds("carat", "depth", "table", "price", "x"),
    ),
    from_file(
        "diamonds mixed",
        {
            **LEVELS,
            "carat": by_logs(*CARAT, cells=20, decimals=2),
            "depth": equal(50, 75, cells=20, decimals=1),
            "table": equal(50, 75, cells=20, decimals=1),
            "price": by_logs(*PRICE, cells=20, decimals=0),
        },
        diamonds("cut", "color", "clarity", "carat", "depth", "table", "price"),
    ),
    from_file(
        "adult",
        {
            **{name: whole(0, size - 1) for name, size in ADULT_NUMBERS.items()},
            **{name: numbered(size) for name, size in ADULT_LABELS.items()},
        },
        adult,
        target="income>50K",
    ),
    *(
        from_file(
            f"{name} by minute",
            {name: whole(low, high)},
            minutes(name),
            special=in_bins(name, low, high, cells=50),
            peers=(),
        )
        for name, low, high in (("arr_delay", -100, 400), ("air_time", 0, 700))
    ),
]


def made(
    name: str, columns: dict[str, Spec], maker: Callable[..., Columns], known: dict[str, str], **more: Any
) -> Task:
    """Return a made-up table: rows to learn from and fresh rows of the same law to test on."""

    def rows(data: Path, split: int) -> tuple[Columns, Columns]:  # noqa: ARG001 - no file is read
        both = maker(split, n=2 * more.get("truth", {}).get("n", 20_000))
        size = len(next(iter(both.values()))) // 2
        return tuple({key: cells[part] for key, cells in both.items()} for part in (slice(size), slice(size, None)))  # type: ignore[return-value]

    return Task(name, columns, rows, known, needs_data=False, **more)


def parity_task(features: int, *, numbers: bool) -> Task:
    def maker(seed: int, *, n: int) -> Columns:
        return made_up.parity(seed, n=n, features=features, numbers=numbers)

    cell: Spec = equal(0, 1, cells=16, decimals=3) if numbers else numbered(2)
    columns: dict[str, Spec] = {**{f"x{c}": cell for c in range(features + 3)}, "y": numbered(2)}
    entries = [[f'name = "{key}"', *spec.lines("b"), "required = true"] for key, spec in columns.items()]
    name = f"parity of {features} {'numbers' if numbers else 'binary'}"
    return made(name, columns, maker, {"b": schema_text(entries)}, target="y", table_errors=False, peers=())


def amounts_task() -> Task:
    def schema(bounds: str) -> str:
        paid = ['name = "paid"', 'kind = "number"', "decimals = 2", *([f"bounds = {bounds}"] if bounds else [])]
        group = ['name = "group"', 'kind = "category"', 'categories = ["a", "b", "c"]', "required = true"]
        return schema_text([group, [*paid, "required = true"]])

    columns: dict[str, Spec] = {"group": Label(("a", "b", "c")), "paid": equal(0, 2e6, cells=32, decimals=2)}
    known = {"b": schema("[0, 2000000]"), "far": schema("[0, 1000000000000]"), "n": schema("")}
    return made("amounts", columns, made_up.amounts, known, special=made_up.far_off, table_errors=False, peers=())


def places_task() -> Task:
    def schema(lat: str, lon: str) -> str:
        return schema_text(
            [
                [
                    f'name = "{name}"',
                    'kind = "number"',
                    "decimals = 5",
                    *([f"bounds = {ends}"] if ends else []),
                    "required = true",
                ]
                for name, ends in (("lat", lat), ("lon", lon))
            ]
        )

    columns: dict[str, Spec] = {
        "lat": equal(-90, 90, cells=32, decimals=5),
        "lon": equal(-180, 180, cells=32, decimals=5),
    }
    known = {
        "globe": schema("[-90, 90]", "[-180, 180]"),
        "continent": schema("[35, 60]", "[-12, 30]"),
        "n": schema("", ""),
    }
    return made("places", columns, made_up.places, known, special=made_up.near_towns, table_errors=False, peers=())


def wide_task(columns: int) -> Task:
    """Measured on deciles; MST is given 32 plain public cells a number, and chosen ones, accord bounds and decimals."""

    def maker(seed: int, *, n: int) -> Columns:
        return made_up.wide(seed, n=n, columns=columns)

    def specs(number: Spec, whole_number: Spec) -> dict[str, Spec]:
        kinds = (None, number, whole_number)
        return {
            f"c{place}": kinds[place % 3] or Label(tuple(f"L{label}" for label in range(made_up.labels_of_wide(place))))
            for place in range(columns)
        }

    far, whole_far = (-100.0, 200.0), (0.0, 5000.0)
    plain = specs(equal(*far, cells=32, decimals=1), Number(tuple(np.linspace(0, 200, 33).tolist()), whole_far, 0))
    logs = tuple(np.round(np.geomspace(1, 501, 33) - 1, 1).tolist())
    chosen = specs(Number(tuple(np.linspace(0, 100, 33).tolist()), far, 1), Number(logs, whole_far, 0))
    entries = [[f'name = "{key}"', *spec.lines("b")] for key, spec in plain.items()]
    return made(
        f"wide {columns}",
        plain,
        maker,
        {"b": schema_text(entries)},
        peers=("MST", "MST with chosen cells"),
        deciles=True,
        truth={"n": 50_000},
        chosen=chosen,
    )


MADE = [
    *(parity_task(features, numbers=False) for features in (2, 3, 4, 5)),
    *(parity_task(features, numbers=True) for features in (2, 3)),
    amounts_task(),
    places_task(),
    wide_task(60),
]
TASKS = {task.name.replace(" ", "-"): task for task in (*FILES, *MADE)}
