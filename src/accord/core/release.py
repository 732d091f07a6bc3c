"""What comes out, what was promised for it, and what ran: each mechanism writes down its own run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, final

from accord.core.guarantee import ApproxDP, PureDP, Sensitivity

__all__ = [
    "Composed",
    "Composing",
    "Composition",
    "NoAnswer",
    "NoAnswerType",
    "Release",
    "Stage",
    "composing",
    "leaves",
    "named",
    "note",
    "parameters_of",
    "ran",
]


G = TypeVar("G", PureDP, ApproxDP, None)
N = TypeVar("N", "Stage", "Composed", "Stage | Composed")
Parameter: TypeAlias = Fraction | int | str | bool
Composition: TypeAlias = Literal["basic", "numeric", "parallel"]
SLACK = "coupling slack"
"""The stage that pays in delta for a coupling that is not isolated."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run of a mechanism, written down by the mechanism that ran.

    Parameters
    ----------
    mechanism
        Name of its class.
    parameters
        All of them, exact, in the order of its fields: enough to build it again.
    guarantee
        Of this run; None for noise whose guarantee is a curve: its loss follows from the parameters.
    what
        What it was for, in words; empty if nobody said.
    claimed
        Whether the guarantee is the word of code that is not accord's.

    Examples
    --------
    >>> from accord.mechanisms import DiscreteLaplace
    >>> (stage,) = DiscreteLaplace(sensitivity=1, scale=20).release(3).stages
    >>> stage.mechanism, stage.guarantee.epsilon, dict(stage.parameters)["scale"]
    ('DiscreteLaplace', Fraction(1, 20), Fraction(20, 1))

    """

    mechanism: str
    parameters: tuple[tuple[str, Parameter], ...]
    guarantee: PureDP | ApproxDP | None
    what: str = ""
    claimed: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """Stages and how their losses make one total.

    Parameters
    ----------
    how
        "basic": epsilons and deltas add up. "numeric": the law of the total loss, at ``delta``. "parallel": a unit of
        privacy moves the inputs of all of them together no further than the input of one, so the largest counts.
    stages
        In the order in which they ran.
    what
        In words.
    delta
        Of a numeric total.
    surplus
        What is added to a parallel epsilon for each stage: the rounding of its weights.

    """

    how: Composition
    stages: "tuple[Stage | Composed, ...]"
    what: str = ""
    delta: Fraction | None = None
    surplus: Fraction = Fraction(0)


Node: TypeAlias = Stage | Composed


@final
class Composing:
    """The stages of a release that is under way, as they come."""

    __slots__ = ("_delta", "_how", "_nodes", "_surplus", "_what")

    def __init__(self, how: Composition, *, what: str, delta: Fraction | None, surplus: Fraction) -> None:
        self._how: Composition = how
        self._what, self._delta, self._surplus = what, delta, surplus
        self._nodes: list[Node] = []

    def add(self, node: Node) -> None:
        """Take down what ran."""
        self._nodes.append(node)

    @property
    def composed(self) -> Composed:
        """What ran so far."""
        return Composed(
            how=self._how, stages=tuple(self._nodes), what=self._what, delta=self._delta, surplus=self._surplus
        )


_OPEN: ContextVar[Composing | None] = ContextVar("open stages", default=None)
_WHAT: ContextVar[str] = ContextVar("what a stage is for", default="")


@contextmanager
def composing(
    how: Composition,
    *,
    what: str = "",
    delta: Fraction | None = None,
    surplus: Fraction = Fraction(0),
    apart: bool = False,
) -> Iterator[Composing]:
    """Take down every mechanism that runs inside, in order; it is one stage of whatever is being taken down outside.

    Unless ``apart``: then it is for whoever asked to hand it on by `note`. What runs in another thread is not inside.
    """
    run = Composing(how, what=what, delta=delta, surplus=surplus)
    outer = None if apart else _OPEN.get()
    opened, worded = _OPEN.set(run), _WHAT.set(_within(what))
    try:
        yield run
    finally:
        _OPEN.reset(opened)
        _WHAT.reset(worded)
        if outer is not None and run.composed.stages:
            outer.add(run.composed)


@contextmanager
def named(what: str) -> Iterator[None]:
    """Say in words what the mechanisms that run inside are for, behind what is said outside."""
    worded = _WHAT.set(_within(what))
    try:
        yield
    finally:
        _WHAT.reset(worded)


def _within(what: str) -> str:
    return ": ".join(filter(None, (_WHAT.get(), what)))


def note(node: N) -> N:
    """Take a stage down wherever stages are being taken down, and return it."""
    run = _OPEN.get()
    if run is not None:
        run.add(node)
    return node


def ran(mechanism: Any, guarantee: G, **more: Parameter) -> tuple[G, tuple[Stage]]:  # noqa: ANN401
    """Take down a mechanism that has just run; return its guarantee and its one stage, as a `Release` keeps them.

    Parameters
    ----------
    mechanism
        Its fields are the parameters.
    guarantee
        Of this run; None if it is a curve.
    more
        What else decides about the loss, such as the number of entries.

    """
    name, own = type(mechanism).__name__, (*parameters_of(mechanism), *more.items())
    return guarantee, (note(Stage(mechanism=name, parameters=own, guarantee=guarantee, what=_WHAT.get())),)


def parameters_of(mechanism: Any) -> tuple[tuple[str, Parameter], ...]:  # noqa: ANN401
    """Return the fields of a mechanism as the parameters of its stage."""
    parameters: list[tuple[str, Parameter]] = []
    for entry in fields(mechanism):
        value = getattr(mechanism, entry.name)
        if isinstance(value, Sensitivity):
            parameters += [(entry.name, value.bound), ("neighbouring", value.neighbouring.value)]
        else:
            parameters.append((entry.name, value.value if isinstance(value, Enum) else value))
    return tuple(parameters)


def leaves(node: Node) -> Iterator[Stage]:
    """Return the stages of a composition in the order in which they ran."""
    if isinstance(node, Stage):
        yield node
    else:
        for inner in node.stages:
            yield from leaves(inner)


T = TypeVar("T")
U = TypeVar("U")


class NoAnswerType(Enum):
    """Type of `NoAnswer`. A singleton; it survives copying and pickling; compare with ``is``."""

    NO_ANSWER = "NoAnswer"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NoAnswer"

    __str__ = __repr__


NoAnswer: Final = NoAnswerType.NO_ANSWER
"""The mechanism ran and released nothing. Falsy. The budget is spent all the same."""


@final
@dataclass(frozen=True, slots=True)
class Release(Generic[T]):
    """A released value, what was promised for it, and what ran.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, for the mechanisms that made ``value``; `map` keeps it (theory M6).
    - ``stages`` are written by the mechanisms that ran, each with its parameters. Of a release made by several they
      compose to at most ``guarantee``.
    - Not promised: anything about other releases from the same data. Budgets add up.

    Parameters
    ----------
    value
        What came out.
    guarantee
        The promise.
    stages
        One for a mechanism, one composition of them for a release by several; none for a release that was made by hand.

    Examples
    --------
    >>> from accord.privacy import PureDP
    >>> Release(20, PureDP(1)).map(lambda count: count / 2).value
    10.0
    >>> Release(NoAnswer, PureDP(1)).map(len).value
    NoAnswer

    """

    value: T | NoAnswerType
    guarantee: PureDP | ApproxDP
    stages: tuple[Stage | Composed, ...] = field(default=(), compare=False, repr=False)

    def map(self, function: "Callable[[T], U]") -> "Release[U]":
        """Apply ``function`` to the value (post-processing, free of charge); `NoAnswer` stays `NoAnswer`.

        ``function`` must not look at the data again.
        """
        if isinstance(self.value, NoAnswerType):
            return Release(self.value, self.guarantee, self.stages)
        return Release(function(self.value), self.guarantee, self.stages)
