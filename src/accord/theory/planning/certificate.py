"""What a plan promises, with every inequality and its numbers, as plain data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from accord.core.errors import InvalidParameter
from accord.theory.planning.verify import Proof, check_numbers, resimulate

__all__ = ["Certificate"]


_TRUE_COMPLEXITY = ("the learner's sample complexity is true",)
_PREMISES: dict[str, tuple[str, ...]] = {
    Proof.BLACK_BOX: _TRUE_COMPLEXITY,
    Proof.BOOSTED: _TRUE_COMPLEXITY,
    Proof.AGNOSTIC: _TRUE_COMPLEXITY,
    Proof.ONE_DRAW: (
        "the learner's sample complexity at (alpha, relearning) is true",
        "the learner's total variation of tuples at (l, b) is at most variation",
    ),
    Proof.PIVOTAL: ("the stored number of successes came from the stored seed",),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A checkable reason for a sample size.

    Formal guarantees
    -----------------
    - If `verify` is true, then every inequality of the named proof holds for the numbers kept here, by code that shares
      nothing with the search that found them.
    - Not promised: the premises, which are named: that a learner's stated sample complexity or total variation is true
      (L9 to L11, A), or that the stored counts came from the stored seed (C; `verify` with ``recompute=True`` repeats
      the simulation).

    Parameters
    ----------
    method
        A `Proof`: ``L9``, ``L10``, ``L11`` (the theorems), ``A`` (one draw), ``B`` (rounded frequencies), ``C``
        (pivotal simulation), ``D`` (rounded roots of counts). Any other text proves nothing.
    numbers
        Plain data: ints, floats, text (fractions as "p/q") and lists of them.
    inequalities
        Texts of what is checked, in order, with the two sides: (text, left, right), left <= right.
    premises
        What the proof takes from elsewhere.

    Source
    ------
    theory 5, 6, S6 to S11; proof page ``docs/proofs/planning.md``.

    """

    method: str
    numbers: Mapping[str, Any]
    inequalities: tuple[tuple[str, float, float], ...]
    premises: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: str, numbers: Mapping[str, Any]) -> "Certificate":
        """Return the certificate of these numbers; its inequalities are worked out by the checker."""
        lines = tuple((text, float(left), float(right)) for text, left, right in check_numbers(method, numbers))
        return cls(method=method, numbers=dict(numbers), inequalities=lines, premises=_PREMISES.get(method, ()))

    @property
    def records(self) -> int:
        """The certified number of records n."""
        return int(self.numbers["records_needed"])

    def verify(self, *, recompute: bool = False) -> bool:
        """Return whether every inequality holds, worked out again from ``numbers`` alone, and no premise is hidden.

        Parameters
        ----------
        recompute
            Repeat the simulation of method C from its seed as well: under a minute at d = 1, ten minutes at d = 5.

        """
        try:
            found = check_numbers(self.method, self.numbers)
        except (KeyError, TypeError, ValueError, ArithmeticError, IndexError):
            return False
        if len(found) != len(self.inequalities) or tuple(self.premises) != _PREMISES.get(self.method, ()):
            return False
        for (text, left, right), (kept, kept_left, kept_right) in zip(found, self.inequalities, strict=True):
            same = text == kept and _close(left, kept_left) and _close(right, kept_right)
            if not (same and left <= right):
                return False
        return not (recompute and self.method == Proof.PIVOTAL) or resimulate(self.numbers)

    def to_json(self) -> str:
        """Return the certificate as one JSON object."""
        content = {
            "method": self.method,
            "numbers": dict(self.numbers),
            "inequalities": [list(line) for line in self.inequalities],
            "premises": list(self.premises),
        }
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what `to_json` wrote; call `verify` before believing it.

        Raises
        ------
        InvalidParameter
            If the text is no certificate.

        """
        try:
            content = json.loads(text)
            return cls(
                method=_proof(str(content["method"])),
                numbers=dict(content["numbers"]),
                inequalities=tuple((str(t), float(a), float(b)) for t, a, b in content["inequalities"]),
                premises=tuple(str(premise) for premise in content["premises"]),
            )
        except (ValueError, KeyError, TypeError):
            raise InvalidParameter("this is not the JSON of a certificate.") from None


def _proof(text: str) -> str:
    """Return the proof of this name; one that a later version may know stays a text, and does not verify."""
    return Proof(text) if text in set(Proof) else text


def _close(first: float, second: float) -> bool:
    return first == second or abs(first - second) <= 1e-9 * max(abs(first), abs(second))
