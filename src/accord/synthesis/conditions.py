"""Conditions on rows, such as ``"state = 'CA' and age >= 65"``, as clauses that exclude each other."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.tables import Column, Schema
from accord.tables.dates import seconds_of
from accord.tables.names import listed, shown

__all__ = ["Allowed", "Clause", "clauses_of", "holds"]

Bools = NDArray[np.bool_]
_MOST_CASES: Final = 4096
_MOST_TEXT: Final = 10_000
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")*\")"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|!=|==|<>|=|<|>|\(|\)|,))"
)
_KEYWORDS = {"and", "or", "not", "in", "is", "missing"}
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "=": lambda cell, value: cell == value,
    "!=": lambda cell, value: cell != value,
    "<": lambda cell, value: cell < value,
    "<=": lambda cell, value: cell <= value,
    ">": lambda cell, value: cell > value,
    ">=": lambda cell, value: cell >= value,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@final
@dataclass(frozen=True, slots=True)
class Allowed:
    """What the cells of one column may be.

    Parameters
    ----------
    ranges
        Of numbers: pairs of ends, both inside, increasing and apart. Of labels: pairs of their positions.
    missing
        Whether a missing cell is allowed.

    """

    ranges: tuple[tuple[float, float], ...]
    missing: bool

    def holds(self, cells: NDArray[np.float64]) -> Bools:
        """Return which cells are allowed: numbers or positions, NaN where missing."""
        found = np.isnan(cells) & self.missing
        for low, high in self.ranges:
            found |= (cells >= low) & (cells <= high)
        return found


Clause = Mapping[int, Allowed]
"""What the columns of some positions may be, all at once; the others may be anything."""


def holds(clauses: Sequence[Clause], cells: Sequence[NDArray[np.float64]]) -> Bools:
    """Return which rows fulfil one of the clauses; of each column numbers or positions, NaN where missing."""
    found = np.zeros(len(cells[0]), dtype=np.bool_)
    for clause in clauses:
        one = np.ones(len(found), dtype=np.bool_)
        for place, allowed in clause.items():
            one &= allowed.holds(cells[place])
        found |= one
    return found


def clauses_of(text: str, *, schema: Schema) -> tuple[Clause, ...]:
    """Return the clauses of a condition; at most one of them holds for any row.

    Comparisons with ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, chains of them (``18 <= age < 65``), ``in (...)``,
    ``not in (...)``, ``is missing``, ``is not missing``, ``and``, ``or``, ``not`` and brackets. Texts stand between
    single quotation marks, names of columns that are no words between double ones. A comparison with a missing cell
    does not hold, so that its ``not`` does.

    Parameters
    ----------
    text
        The condition.
    schema
        Of the columns; dates are texts in their format, labels of an ordinal compare in their order.

    Raises
    ------
    InvalidParameter
        If it cannot be read, names no column that is learnt, compares what cannot be compared, or has too many cases.

    Examples
    --------
    >>> from accord.tables import Column
    >>> sex = Column(name="sex", kind="category", categories=("f", "m"))
    >>> schema = Schema(columns=(Column(name="age", kind="integer"), sex))
    >>> clauses_of("age >= 80 and sex = 'f'", schema=schema)
    ({0: Allowed(ranges=((80.0, inf),), missing=False), 1: Allowed(ranges=((0.0, 0.0),), missing=False)},)

    """
    if not isinstance(text, str) or not text.strip() or len(text) > _MOST_TEXT:
        raise InvalidParameter("where must be a condition, such as \"state = 'CA' and age >= 65\".")
    reading = _Reading(tuple(_tokens(text)), schema)
    rule = reading.rule()
    return tuple(_clauses(rule, reading.marks))


@final
@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            raise InvalidParameter(f"where cannot be read from character {place + 1} on: {shown(text[place:][:20])}.")
        place = found.end()
        kind = str(found.lastgroup)
        word = found[kind]
        if kind == "word" and word.lower() in _KEYWORDS:
            yield _Token(word.lower(), word)
        elif kind == "sign":
            sign = {"==": "=", "<>": "!="}.get(word, word)
            yield _Token("compare" if sign in _SIGNS else sign, sign)
        elif kind in {"text", "name"}:
            yield _Token("text" if kind == "text" else "word", word[1:-1].replace(word[0] * 2, word[0]))
        else:
            yield _Token(kind, word)


Rule = Callable[[Mapping[int, float]], bool]
"""Whether it holds, of a number or position for each column that is named, NaN for a missing cell."""


class _Reading:
    """The tokens that are left, and the values that each column is compared with."""

    def __init__(self, tokens: Sequence[_Token], schema: Schema) -> None:
        self._tokens, self._place = tokens, 0
        self._columns = {column.name: (place, column) for place, column in enumerate(schema.read)}
        self.marks: dict[int, tuple[Column, set[float]]] = {}

    def rule(self) -> Rule:
        """Return the whole condition."""
        found = self._either()
        if self._place < len(self._tokens):
            raise InvalidParameter(f"where has something behind its end: {shown(self._tokens[self._place].text)}.")
        return found

    def _next(self, *kinds: str) -> _Token | None:
        """Return the next token, taken, if it is of one of these kinds."""
        if self._place < len(self._tokens) and self._tokens[self._place].kind in kinds:
            self._place += 1
            return self._tokens[self._place - 1]
        return None

    def _must(self, *kinds: str, what: str) -> _Token:
        found = self._next(*kinds)
        if found is None:
            here = shown(self._tokens[self._place].text) if self._place < len(self._tokens) else "its end"
            raise InvalidParameter(f"where needs {what} before {here}.")
        return found

    def _either(self) -> Rule:
        rules = [self._both()]
        while self._next("or"):
            rules.append(self._both())
        return rules[0] if len(rules) == 1 else lambda cells: any(rule(cells) for rule in rules)

    def _both(self) -> Rule:
        rules = [self._one()]
        while self._next("and"):
            rules.append(self._one())
        return rules[0] if len(rules) == 1 else lambda cells: all(rule(cells) for rule in rules)

    def _one(self) -> Rule:
        if self._next("not"):
            inner = self._one()
            return lambda cells: not inner(cells)
        if self._next("("):
            found = self._either()
            self._must(")", what="a closing bracket")
            return found
        first = self._must("word", "number", "text", what="a column, not, or a bracket")
        if first.kind != "word":
            turned = _TURNED[self._must("compare", what="a comparison").text]
            place, column = self._column(self._must("word", what="the name of a column"))
            found = self._compared(place, column, turned, first)
        else:
            place, column = self._column(first)
            found = self._about(place, column)
        while (sign := self._next("compare")) is not None:  # 18 <= age < 65
            before, other = found, self._compared(place, column, sign.text, self._value())
            found = _and(before, other)
        return found

    def _column(self, token: _Token) -> tuple[int, Column]:
        if token.text not in self._columns:
            raise InvalidParameter(f"where names {shown(token.text)}: the columns are {listed(list(self._columns))}.")
        place, column = self._columns[token.text]
        self.marks.setdefault(place, (column, set()))
        return place, column

    def _value(self) -> _Token:
        return self._must("number", "text", what="a number, or a text between single quotation marks,")

    def _about(self, place: int, column: Column) -> Rule:
        if self._next("is"):
            absent = self._next("not") is None
            self._must("missing", what="missing")
            return lambda cells: math.isnan(cells[place]) == absent
        turned = self._next("not") is not None
        if self._next("in"):
            rule = self._among(place, column)
            return (lambda cells: not rule(cells) and not math.isnan(cells[place])) if turned else rule
        sign = self._must("compare", what="a comparison, in, or is")
        return self._compared(place, column, sign.text, self._value())

    def _among(self, place: int, column: Column) -> Rule:
        self._must("(", what="an opening bracket")
        rules = [self._compared(place, column, "=", self._value())]
        while self._next(","):
            rules.append(self._compared(place, column, "=", self._value()))
        self._must(")", what="a closing bracket")
        return lambda cells: any(rule(cells) for rule in rules)

    def _compared(self, place: int, column: Column, sign: str, token: _Token) -> Rule:
        number = _number_of(token, column)
        if sign not in {"=", "!="} and column.is_label and column.kind != "ordinal":
            raise InvalidParameter(f"where compares {shown(column.name)} by order: its labels have none.")
        self.marks[place][1].add(number)
        compare = _SIGNS[sign]
        return lambda cells: not math.isnan(cells[place]) and compare(cells[place], number)


def _and(left: Rule, right: Rule) -> Rule:
    return lambda cells: left(cells) and right(cells)


def _number_of(token: _Token, column: Column) -> float:
    """Return the number or position that a token stands for in a column."""
    name = shown(column.name)
    if column.is_label:
        label = token.text
        spellings = dict.fromkeys(column.true, 1) | dict.fromkeys(column.false, 0)
        spellings |= {one: place for place, one in enumerate(column.categories)}
        if label not in spellings:
            raise InvalidParameter(f"where compares {name} with {shown(label)}, which is none of its labels.")
        return float(spellings[label])
    if column.format is not None:
        found = seconds_of(token.text, pattern=column.format, kind=column.kind) if token.kind == "text" else None
        if found is None:
            raise InvalidParameter(f"where must write dates of {name} as texts in its format, {shown(column.format)}.")
        return found
    if token.kind != "number" or not math.isfinite(float(token.text)):
        raise InvalidParameter(f"where must compare {name} with a number.")
    return float(token.text)


def _clauses(rule: Rule, marks: Mapping[int, tuple[Column, set[float]]]) -> Iterator[Clause]:
    """Return clauses that exclude each other: cases of all columns but one, each with all that this one may be."""
    cases = {place: _cases(column, values) for place, (column, values) in marks.items()}
    places = sorted(cases, key=lambda place: len(cases[place]))
    if math.prod(len(cases[place]) for place in places) > _MOST_CASES:
        raise InvalidParameter("where has too many cases: ask in several parts.")
    *others, last = places
    for chosen in product(*(cases[place] for place in others)):
        fixed = {place: low for place, (low, _) in zip(others, chosen, strict=True)}
        kept = [case for case in cases[last] if rule({**fixed, last: _inside(case)})]
        if kept:
            clause = {place: _allowed([case]) for place, case in zip(others, chosen, strict=True)}
            yield dict(sorted({**clause, last: _allowed(kept)}.items()))


Case = tuple[float, float]
"""The ends of what is alike for the condition, both inside; NaN for a missing cell."""


def _inside(case: Case) -> float:
    return case[0]


def _cases(column: Column, values: set[float]) -> list[Case]:
    """Return what a condition can tell apart in a column; the lower end stands for all of a case."""
    found: list[Case] = [(math.nan, math.nan)]
    if column.is_label:
        return [*found, *((float(place), float(place)) for place in range(len(column.categories)))]
    low = -math.inf
    for value in sorted(values):
        if low < value:
            found.append((low, math.nextafter(value, -math.inf)))
        found.append((value, value))
        low = math.nextafter(value, math.inf)
    return [*found, (low, math.inf)]


def _allowed(cases: Sequence[Case]) -> Allowed:
    """Return all that some cases allow; neighbouring ones are one."""
    ranges: list[Case] = []
    for low, high in cases:
        if math.isnan(low):
            continue
        if ranges and math.nextafter(ranges[-1][1], math.inf) == low:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return Allowed(tuple(ranges), any(math.isnan(low) for low, _ in cases))
