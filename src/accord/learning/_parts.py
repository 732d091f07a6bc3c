"""Cut the units of privacy into disjoint parts, one for each of several private mechanisms. Trusted core."""

from collections.abc import Iterator

from accord.core.blocks import Progress, partition, relation_of
from accord.core.guarantee import ApproxDP
from accord.core.records import Records
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.privacy import parallel_composition

__all__ = ["cut_into_parts", "of_one_part", "together"]


def cut_into_parts(
    given: Records, *, parts: int, in_place_key: SharedRandomness | None, randomness: PrivateRandomness
) -> Iterator[Records]:
    """Yield the parts: ``floor(units / parts)`` units each, whole units only, as `partition` cuts blocks.

    Formal guarantees
    -----------------
    - Every unit is in at most one part, with all its records (`partition`); so replacing one unit changes one part.
    """
    for rows in partition(given, blocks=parts, in_place_key=in_place_key, randomness=randomness):
        yield given.of_rows(rows)


def together(
    guarantee: ApproxDP, *, parts: int, word: str | None = None, in_place_key: SharedRandomness | None = None
) -> ApproxDP:
    """Return the guarantee of one mechanism on each of the disjoint parts of `cut_into_parts` (theory C1).

    ``word`` is what it calls a unit, if not what each part's does; a key under which the parts are cut makes it one in
    place.
    """
    found = parallel_composition([guarantee] * parts, claimed_disjoint=True)
    whole = found if isinstance(found, ApproxDP) else guarantee
    return ApproxDP(whole.epsilon, whole.delta, relation_of(in_place_key), word or whole.unit)


def of_one_part(progress: Progress | None, *, part: int, parts: int) -> Progress | None:
    """Return the progress that one part reports, as a share of all parts."""
    if progress is None:
        return None

    def report(done: int, total: int, what: str) -> None:
        progress(part * total + done, parts * total, what)

    return report
