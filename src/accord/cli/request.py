"""What was asked for on the command line, checked before any file is opened."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import final

from accord.cli.learner import check_name, takes_blocks
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import exp_lower
from accord.synthesis.by_votes import FEWEST_DRAWS, MOST_DRAWS

__all__ = ["Numbers", "Request"]

_LEAST_EPSILON = Fraction(1, 10**9)
_MOST_ROWS = 10_000_000
_MOST = 10**9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of a synthesis as they were written; an option that was not given is None.

    The meaning of each is in the help of ``accord synth``.
    """

    data: Path
    schema: Path | None
    epsilon: str
    delta: str
    rows: str
    out: Path
    learner: str | None = None
    unit: str | None = None
    blocks: str | None = None
    draws: str | None = None
    records: str | None = None
    model: Path | None = None
    report: Path | None = None
    release: Path | None = None
    curator_report: Path | None = None
    seed: str | None = None
    ledger: str | None = None
    who: str | None = None
    why: str | None = None
    force: bool = False

    def numbers(self) -> "Numbers":
        """Return the numbers among them.

        Raises
        ------
        InvalidParameter
            Naming the option and what it accepts.

        """
        check_name(self.learner)
        epsilon, delta = _epsilon(self.epsilon), _delta(self.delta)
        if takes_blocks(self.learner):
            _refuse_too_large(delta, epsilon=epsilon)
        elif any(option is not None for option in (self.blocks, self.draws, self.records)):
            raise InvalidParameter("--blocks, --draws and --records belong to --learner blocks, gaussian or empirical.")
        return Numbers(
            epsilon=epsilon,
            delta=delta,
            rows=_check.integer("--rows", self.rows, least=1, most=_MOST_ROWS),
            blocks=_count("--blocks", self.blocks),
            draws=_count("--draws", self.draws, least=FEWEST_DRAWS, most=MOST_DRAWS),
            records=_count("--records", self.records),
            seed=None if self.seed is None else _check.integer("--seed-for-tests", self.seed, least=0, most=2**63 - 1),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a request, exact."""

    epsilon: Fraction
    delta: Fraction
    rows: int
    blocks: int | None
    draws: int | None
    records: int | None
    seed: int | None


def _epsilon(text: str) -> Fraction:
    try:
        value = _check.epsilon(text, name="--epsilon")
    except InvalidParameter:
        value = Fraction(0)
    if value < _LEAST_EPSILON:
        raise InvalidParameter(
            '--epsilon must be a number from 1e-9 to 1000, written like 0.5 (0 is not "off": a release always has a '
            "privacy loss)."
        )
    return value


def _delta(text: str) -> Fraction:
    try:
        return _check.delta(text, name="--delta")
    except InvalidParameter:
        raise InvalidParameter(
            '--delta must be a number from 2^-100 to below 1, written like 1e-6 (0 is not "off": a release of what the '
            "blocks agree on needs a positive delta; choose it well below 1 / number of records)."
        ) from None


def _count(option: str, text: str | None, *, least: int = 1, most: int = _MOST) -> int | None:
    return None if text is None else _check.integer(option, text, least=least, most=most)


def _refuse_too_large(delta: Fraction, *, epsilon: Fraction) -> None:
    """Refuse what the selection could not work with, before any file is opened."""
    most = exp_lower(epsilon / 2) - 1
    if delta > most:
        raise InvalidParameter(
            f"--delta must be at most exp(epsilon / 2) - 1, which is {float(most):.3g} at this --epsilon: choose it "
            f"well below 1 / number of records."
        )
