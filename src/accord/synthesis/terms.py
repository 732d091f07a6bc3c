"""What a synthesis is asked to do, as exact numbers: checked before any file is opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, final

from accord.accounting.figures import short_text
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number, exp_lower
from accord.synthesis.by_votes import FEWEST_DRAWS, MOST_DRAWS
from accord.synthesis.choice import check_name, takes_blocks

__all__ = ["MOST_ROWS", "OPTIONS", "PARAMETERS", "Terms", "terms_of"]

MOST_ROWS: Final = 10_000_000
"""Rows that are drawn at once, at most."""

_LEAST_EPSILON = Fraction(1, 10**9)
_MOST = 10**9

PARAMETERS: Final = MappingProxyType(
    {name: name for name in ("epsilon", "delta", "learner", "blocks", "draws", "records_per_vote", "rows", "seed")}
)
"""What refusals call each parameter in Python."""
OPTIONS: Final = MappingProxyType(
    {name: f"--{name}" for name in PARAMETERS} | {"records_per_vote": "--records", "seed": "--seed-for-tests"}
)
"""What refusals call them on the command line."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Checked terms of one synthesis; make them by `terms_of`.

    Parameters
    ----------
    epsilon, delta
        Exact.
    written
        Both as a person wrote them.
    learner
        One of `accord.synthesis.choice.NAMES`, or None for the usual one.
    blocks, draws, records_per_vote
        k, R and l for a learner of blocks, where a person has chosen them.
    seed
        Of everything but the noise and the cut into blocks, for tests.
    option
        What a refusal calls the choice of a learner.

    """

    epsilon: Fraction
    delta: Fraction
    written: tuple[str, str]
    learner: str | None
    blocks: int | None
    draws: int | None
    records_per_vote: int | None
    seed: int | None
    option: str

    @property
    def takes_blocks(self) -> bool:
        """Whether the learner is fitted to blocks that must agree."""
        return takes_blocks(self.learner)


def terms_of(
    *,
    epsilon: Number,
    delta: Number,
    learner: str | None = None,
    blocks: int | str | None = None,
    draws: int | str | None = None,
    records_per_vote: int | str | None = None,
    seed: int | str | None = None,
    called: Mapping[str, str] = PARAMETERS,
) -> Terms:
    """Return checked terms.

    Raises
    ------
    InvalidParameter
        Naming what is wrong, as ``called`` names it, and what is accepted.

    """
    check_name(learner, option=called["learner"])
    loss, slack = _epsilon(epsilon, name=called["epsilon"]), _delta(delta, name=called["delta"])
    if takes_blocks(learner):
        _refuse_too_large(slack, epsilon=loss, called=called)
    elif any(size is not None for size in (blocks, draws, records_per_vote)):
        sizes = f"{called['blocks']}, {called['draws']} and {called['records_per_vote']}"
        raise InvalidParameter(f"{sizes} belong to {called['learner']} blocks, gaussian or empirical.")
    return Terms(
        epsilon=loss,
        delta=slack,
        written=(_as_written(epsilon, loss), _as_written(delta, slack)),
        learner=learner,
        blocks=_count(called["blocks"], blocks),
        draws=_count(called["draws"], draws, least=FEWEST_DRAWS, most=MOST_DRAWS),
        records_per_vote=_count(called["records_per_vote"], records_per_vote),
        seed=_count(called["seed"], seed, least=0, most=2**63 - 1),
        option=called["learner"],
    )


def _as_written(given: Number, value: Fraction) -> str:
    return given if isinstance(given, str) else short_text(value, up=True)


def _epsilon(given: Number, *, name: str) -> Fraction:
    try:
        value = _check.epsilon(given, name=name)
    except InvalidParameter:
        value = Fraction(0)
    if value < _LEAST_EPSILON:
        raise InvalidParameter(
            f'{name} must be a number from 1e-9 to 1000, written like 0.5 (0 is not "off": a release always has a '
            f"privacy loss)."
        )
    return value


def _delta(given: Number, *, name: str) -> Fraction:
    try:
        return _check.delta(given, name=name)
    except InvalidParameter:
        raise InvalidParameter(
            f'{name} must be a number from 2^-100 to below 1, written like 1e-6 (0 is not "off": a release of what the '
            f"blocks agree on needs a positive delta; choose it well below 1 / number of records)."
        ) from None


def _count(name: str, given: int | str | None, *, least: int = 1, most: int = _MOST) -> int | None:
    return None if given is None else _check.integer(name, given, least=least, most=most)


def _refuse_too_large(delta: Fraction, *, epsilon: Fraction, called: Mapping[str, str]) -> None:
    """Refuse what the selection could not work with."""
    most = exp_lower(epsilon / 2) - 1
    if delta > most:
        raise InvalidParameter(
            f"{called['delta']} must be at most exp(epsilon / 2) - 1, which is {float(most):.3g} at this "
            f"{called['epsilon']}: choose it well below 1 / number of records."
        )
