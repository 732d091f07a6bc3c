"""What holds for certain: form of keys, pure decoding, and votes that do not look at other blocks."""

import random  # noqa: TID251 - its state must not be touched
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import Interrupts, ambient_seed, watched
from accord.core.coupling import ABSTAIN, Coupled, Coupling
from accord.core.shared import SharedRandomness
from accord.distributions import Measure
from accord.testing._coupling_fault import CouplingFault

__all__ = [
    "check_form",
    "check_isolation",
    "check_poison",
    "check_prefix",
    "check_rare_influence",
    "check_replay",
    "poison",
    "run",
]

_legacy: Any = np.random  # noqa: TID251 - as above
_DRAWS = 16
_DECODED = 200


_GUARD = (
    "whatever goes wrong with one law must be that law's abstention and change nothing for the others, but couple "
    "raised {error} where one law {bad}. Ask each law inside alone(lambda: ..., failed=None) of accord.couplings, "
    "isinstance included (it asks for __class__), and vote ABSTAIN for a law that failed or is no law of yours."
)


def run(
    coupling: Coupling, laws: Sequence[Any], *, records: int, draws: int, key: str, bad: str | None = None
) -> Coupled:
    """Couple the laws; the suite's own call, which must not raise, whatever one law does: ``bad`` says what."""
    interrupts = Interrupts()
    try:
        with watched() as interrupts:
            return coupling.couple(list(laws), records=records, draws=draws, shared=SharedRandomness(key))
    except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        if interrupts.raised is not None:
            raise
        name = type(error).__name__
        if bad is None:
            message = (
                f"couple must give every law of the case a vote, and it raised {name}: laws, records and draws are "
                "those of the case, which the coupling must take."
            )
            raise CouplingFault(message) from error
        raise CouplingFault(_GUARD.format(error=name, bad=bad)) from error


# --- form -------------------------------------------------------------------------------------------------------------


def check_form(coupled: Coupled, *, laws: int, records: int, columns: Sequence[int], draws: int) -> None:
    """Refuse keys that are no bytes, abstentions of good laws, decoding that is not pure, two keys of one tuple."""
    keys = coupled.keys
    if not isinstance(keys, np.ndarray) or keys.shape != (draws, laws) or keys.dtype != object:
        raise CouplingFault("keys must be an array of objects of shape (draws, laws)")
    votes: list[Any] = list(keys.flat)
    if any(key is ABSTAIN for key in votes):
        raise CouplingFault("a law of the case abstained")
    if not all(type(key) is bytes for key in votes):
        raise CouplingFault("a key is neither bytes nor ABSTAIN")
    for draw in range(min(draws, _DECODED)):
        known: dict[bytes, bytes] = {}
        for block, key in enumerate(keys[draw]):
            first, again = coupled.decode(draw, key), coupled.decode(draw, key)
            if first.shape != (records, columns[block]):
                raise CouplingFault("decode does not give an array of shape (records, d)")
            name = _canonical(first)
            if name != _canonical(again) or known.setdefault(name, key) != key:
                raise CouplingFault("decode is not a function of draw and key, or two keys name one tuple")
    if (
        draws <= _DRAWS
        and len(set(columns)) == 1
        and _canonical(coupled.values[0, 0]) != _canonical(coupled.decode(0, keys[0, 0]))
    ):
        raise CouplingFault("values are not the decoded keys")


def _canonical(records: NDArray[Any]) -> bytes:
    """Return bytes that are equal for equal tuples: -0.0 is 0.0, True is not 1."""
    if records.dtype == object and all(type(value) is float for value in records.ravel().tolist()):
        records = records.astype(np.float64)
    if records.dtype.kind in "iuf":
        values = records.astype(np.float64) + 0.0
        if not np.isfinite(values).all():
            raise CouplingFault("a decoded record is not finite")
        return values.tobytes()
    return repr([(type(value).__name__, value) for value in records.ravel().tolist()]).encode()


# --- replay -----------------------------------------------------------------------------------------------------------


def check_replay(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse votes that depend on anything but laws, key and draw, and calls that touch global generators."""
    before = random.getstate(), _state()
    with ambient_seed(1):
        base = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    with ambient_seed(2):
        again = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    run(coupling, laws, records=records, draws=2, key="replay")
    if before != (random.getstate(), _state()):
        raise CouplingFault("a global generator was read or seeded")
    if not _same(base, again):
        raise CouplingFault("equal keys gave different votes: there is another source of randomness")


def check_prefix(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse draws that depend on how many are made."""
    many = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    few = run(coupling, laws, records=records, draws=_DRAWS // 3, key="replay").keys
    if not _same(many[: len(few)], few):
        raise CouplingFault("a draw depends on the number of draws")


def check_isolation(coupling: Coupling, laws: Sequence[Any], *, others: Sequence[Any], records: int) -> None:
    """Refuse votes that depend on other blocks' laws, on their number or on the place of the block."""
    base = run(coupling, laws, records=records, draws=_DRAWS, key="replay").keys
    count = len(laws)
    for place in range(count):
        rest = [block for block in range(count) if block != place]
        for other, bad in (
            *((other, None) for other in others),
            (ABSTAIN, "is ABSTAIN"),
            *(poison() if place == 0 else ()),
        ):
            changed = [other if block == place else law for block, law in enumerate(laws)]
            keys = run(coupling, changed, records=records, draws=_DRAWS, key="replay", bad=bad).keys
            if not _same(keys[:, rest], base[:, rest]):
                raise CouplingFault("a change of one law changed another block's vote")
        keys = run(coupling, [laws[block] for block in rest], records=records, draws=_DRAWS, key="replay").keys
        if not _same(keys, base[:, rest]):
            raise CouplingFault("votes depend on the number of laws")
    for order in (list(reversed(range(count))), [*range(1, count), 0]):
        keys = run(coupling, [laws[block] for block in order], records=records, draws=_DRAWS, key="replay").keys
        if not _same(keys, base[:, order]):
            raise CouplingFault("votes depend on the place of a block")
    keys = run(coupling, [laws[0]] * 3, records=records, draws=_DRAWS, key="replay").keys
    if not (
        _same(keys[:, [0]], base[:, [0]]) and _same(keys[:, [1]], keys[:, [0]]) and _same(keys[:, [2]], keys[:, [0]])
    ):
        raise CouplingFault("equal laws cast different votes")


def check_rare_influence(
    coupling: Coupling,
    laws: Sequence[Any],
    keys: NDArray[np.object_],
    *,
    other: Any,  # noqa: ANN401 - a law or anything
    records: int,
    key: str,
) -> None:
    """Refuse votes that depend on other blocks' laws in few of many draws, given the keys of these laws."""
    changes: list[dict[int, Any]] = [{0: other, len(laws) - 1: ABSTAIN}]
    if len(laws) == 2:
        changes = [{0: other}, {1: ABSTAIN}]
    for change in changes:
        rest = [block for block in range(len(laws)) if block not in change]
        changed = [change.get(block, own) for block, own in enumerate(laws)]
        found = run(coupling, changed, records=records, draws=len(keys), key=key).keys
        if not _same(found[:, rest], keys[:, rest]):
            raise CouplingFault("a change of one law changed another block's vote, in a few draws")


def check_poison(coupling: Coupling, laws: Sequence[Any], *, records: int) -> None:
    """Refuse couplings in which a law that cannot be used does anything but abstain, alone."""
    for law, bad in ((ABSTAIN, "is ABSTAIN"), *poison()):
        keys = run(coupling, [law, *laws], records=records, draws=_DRAWS, key="replay", bad=bad).keys
        if not all(key is ABSTAIN for key in keys[:, 0]):
            raise CouplingFault(f"a law that cannot be used does not abstain in every draw: one that {bad}")
        if any(key is ABSTAIN for key in keys[:, 1:].ravel().tolist()):
            raise CouplingFault(f"a law abstained because of another block's law, one that {bad}")


def _same(first: NDArray[np.object_], second: NDArray[np.object_]) -> bool:
    pairs: list[tuple[Any, Any]] = list(zip(first.ravel().tolist(), second.ravel().tolist(), strict=False))
    return first.shape == second.shape and all(
        one is two or (type(one) is bytes and type(two) is bytes and one == two) for one, two in pairs
    )


def _state() -> bytes:
    kind, words, *rest = _legacy.get_state()
    return repr((kind, words.tobytes(), rest)).encode()


# --- laws that cannot be used -----------------------------------------------------------------------------------------


def poison() -> Iterator[tuple[Any, str]]:
    """Yield laws that raise whatever is asked, one that answers NaN, things that are no laws; and what each does."""
    yield _Raising(ArithmeticError), "raises ArithmeticError at every question, __class__ included"
    yield _Raising(SystemExit), "raises SystemExit at every question, __class__ included"
    yield _Nan(), "answers NaN"
    yield object(), "is a plain object"
    yield "a law", "is a text"
    yield None, "is None"


@final
class _Raising:
    """Raises an error of its own at every question."""

    def __init__(self, error: type[BaseException]) -> None:
        object.__setattr__(self, "error", error)

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - it never returns
        raise object.__getattribute__(self, "error")


@final
class _Nan:
    """Has the form of a law, and no number to give."""

    dimension = 1
    measure = Measure.LEBESGUE

    def sample(self, size: int, generator: object) -> NDArray[Any]:  # noqa: ARG002 - as a law is asked
        return np.full((size, 1), np.nan)

    def log_density(self, x: Any) -> NDArray[Any]:  # noqa: ANN401 - as a law is asked
        return np.full(len(x), np.nan)

    def cdf(self, x: Any) -> NDArray[Any]:  # noqa: ANN401 - as a law is asked
        return np.full(np.shape(x), np.nan)

    def interval(self, low: Any, high: Any) -> NDArray[Any]:  # noqa: ANN401, ARG002 - as a law is asked
        return np.full(np.shape(low), np.nan)

    def log_density_bound(self, low: Any, high: Any) -> NDArray[Any]:  # noqa: ANN401, ARG002 - as a law is asked
        return np.full(len(low), np.nan)
