"""What a learner says of itself in public: how it reads cells, its columns, its laws, and how blocks agree on them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Coupling, Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.core.records import Records, cells_read_by
from accord.couplings.two_stage import WideReference

__all__ = [
    "Family",
    "Traits",
    "columns_of",
    "family_of",
    "least_records",
    "listed_laws",
    "read_for",
    "refuse_other_columns",
    "traits_of",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What blocks need to know to agree on a learner's laws.

    Parameters
    ----------
    coupling
        An isolated coupling of tuples of these laws.
    least_block
        Fewer units than this in a block never give a fit.
    usual_block
        Fewer units than this in a block rarely agree; the default sizes refuse them.
    usual_draws
        R where a person has not chosen it.
    least_tuple
        Fewer records than this in a tuple are not coupled.
    agreeing_ratio
        Records per vote that can be hoped for, per record of a block, at the usual number of blocks and draws.
    typical_error
        Mean total variation of the learner from l records is about ``typical_error / sqrt(l)`` on data of its family.

    """

    coupling: Coupling
    least_block: int
    usual_block: int
    usual_draws: int
    least_tuple: int
    agreeing_ratio: float
    typical_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is known in public of a learner and its laws. As it stands, nothing is.

    A learner that knows more has a property ``traits`` and returns an instance of a class of its own, made from its
    public parameters alone. Nobody else asks which class a learner is of.

    Parameters
    ----------
    columns
        How many columns its records have; None where they tell.
    labels
        The public list on which all its laws are; None where there is none.
    components
        How many normal laws its laws are mixtures of; None where they are others.
    covariance
        Of the components, as scikit-learn says it.
    formulas
        Whether the total variation of any two of its laws is worked out by formula.
    pivotal
        Whether it fits normal laws by the mean and the unbiased covariance, so that the law of its error is the same
        whatever the truth.
    seeded
        Whether a fit depends on its seed.
    quick
        Whether a fit takes milliseconds.
    words
        What a ledger writes beside the name of its class.
    own_reference
        Whether `reference` makes one about a law that such a learner fits.

    """

    columns: int | None = None
    labels: tuple[Hashable, ...] | None = None
    components: int | None = None
    covariance: Literal["full", "diag", "spherical", "tied"] = "full"
    formulas: bool = False
    pivotal: bool = False
    seeded: bool = True
    quick: bool = False
    words: str = ""
    own_reference: bool = False

    def family(self, columns: int) -> Family | None:  # noqa: ARG002 - nothing is known
        """Return how blocks agree on records of so many columns; None where it is not known.

        Raises
        ------
        InvalidParameter
            If the learner has another number of columns, so that no block could be fitted.

        """
        return None

    def joint_coupling(self, records: int) -> Coupling | None:  # noqa: ARG002 - nothing is known
        """Return a coupling of tuples: two blocks part with probability at most ``2 t / (1 + t)``, t of tuples."""
        return None

    def single_coupling(self, *, record_by_record: bool) -> Coupling | None:  # noqa: ARG002 - nothing is known
        """Return a coupling of records in which two blocks part with probability at most ``2 TV``, TV of one record.

        With ``record_by_record`` tuples are as many independent copies of it.
        """
        return None

    def reference(self, coarse: Distribution, *, strength: Fraction) -> WideReference | None:  # noqa: ARG002 - as above
        """Return what a second stage votes about, near a released law; None where the learner must be asked."""
        return None

    def check_reference(self, columns: int, *, records: int, strength: Fraction) -> None:
        """Refuse public sizes at which `reference` has nothing to vote about."""

    def reached(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points, shape (m, d), one of its laws can reach, shape (m,)."""
        return np.ones(len(points), dtype=bool)


def traits_of(learner: object) -> Traits:
    """Return what a learner says of itself; of one that has no traits, what its public list of laws says."""
    known = getattr(learner, "traits", None)
    if isinstance(known, Traits):
        return known
    candidates = listed_laws(learner)
    return Traits(columns=candidates[0].dimension if candidates else None)


def listed_laws(learner: object) -> tuple[Distribution, ...]:
    """Return the public list of laws that a learner chooses from, if it has one and all are of one dimension."""
    listed = getattr(learner, "candidates", ())
    laws = tuple(listed) if isinstance(listed, Sequence) else ()
    if not all(isinstance(law, Distribution) for law in laws) or len({law.dimension for law in laws}) > 1:
        return ()
    return laws


def columns_of(learner: Learner) -> int | None:
    """Return how many columns a learner's records have, where that is public; None where it is not known."""
    return traits_of(learner).columns


def refuse_other_columns(learner: Learner, columns: int) -> None:
    """Refuse records of another number of columns than the learner has, where that is public."""
    known = columns_of(learner)
    if known is not None and known != columns:
        raise InvalidParameter(f"data must have {known} columns, as many as the learner.")


def family_of(learner: Learner, *, dimension: int) -> Family:
    """Return the family of a learner that knows it, for records of ``dimension`` columns.

    Raises
    ------
    InvalidParameter
        For other learners: say which coupling their laws need by ``coupling=``; if the learner has another number of
        columns, so that no block could be fitted.

    """
    family = traits_of(learner).family(dimension)
    if family is None:
        message = f"{type(learner).__name__} has no coupling of its own: pass one that fits its laws as coupling=."
        raise InvalidParameter(message)
    return family


def read_for(learner: Learner, data: object, *, units: object, unit: str | None) -> Records:
    """Return records as a learner declares to read them: numbers or labels, and of how many columns if it is known.

    A row of a list that is of another length than the learner is missing cells, and decides nothing about others.
    """
    return Records.of(data, units=units, unit=unit, cells=cells_read_by(learner), columns=columns_of(learner))


def least_records(learner: Learner, *, columns: int) -> int:
    """Return what the learner's method ``least_records(columns)`` says, 0 for one that has no such method.

    Raises
    ------
    InvalidParameter
        If it is no count, or the learner refuses so many columns.

    Examples
    --------
    >>> from accord.learners import EmpiricalLearner, GaussianLearner
    >>> least_records(GaussianLearner(), columns=3), least_records(EmpiricalLearner(["a"]), columns=1)
    (4, 0)

    """
    stated = getattr(learner, "least_records", None)
    return _check.integer("least_records", stated(columns), least=0) if callable(stated) else 0
