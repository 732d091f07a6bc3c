"""Which learners there are by name, and which one fits the declared columns: public facts only."""

from accord.core.coupling import Learner
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.density.family import DensityFamily
from accord.learners import EmpiricalLearner, GaussianLearner
from accord.tables import Schema

__all__ = ["NAMES", "block_learner", "check_name", "density_family", "takes_blocks"]

_BLOCKS = ("blocks", "gaussian", "empirical")
_MIXTURE, _SCIPY = "gaussian-mixture", "scipy"
NAMES = ("auto", "tables", *_BLOCKS, f"{_MIXTURE}:K", f"{_SCIPY}:FAMILY")
"""Names that ``learner`` takes: "auto" is the tables, "blocks" the law that fits the columns."""

_MOST_NUMBERS = 8
_MOST_COMPONENTS = 100


def check_name(name: str | None, *, option: str) -> None:
    """Refuse what is no learner; ``option`` is what a refusal calls the choice, here and below.

    Raises
    ------
    InvalidParameter
        Listing what is accepted.

    """
    if name is None or name in NAMES[:2] or name in _BLOCKS or name == _MIXTURE:
        return
    kind, colon, rest = name.partition(":")
    if colon and kind == _MIXTURE and rest.isdecimal() and 1 <= int(rest) <= _MOST_COMPONENTS:
        return
    if colon and kind == _SCIPY and _scipy_family(rest) is not None:
        return
    raise InvalidParameter(
        f"{option} must be one of {', '.join(NAMES)}, with K from 1 to {_MOST_COMPONENTS} components and FAMILY a "
        f"continuous family of scipy.stats such as lognorm."
    )


def takes_blocks(name: str | None) -> bool:
    """Return whether a learner of this name is fitted to blocks that must agree."""
    return name in _BLOCKS


def block_learner(schema: Schema, *, name: str | None, option: str) -> Learner:
    """Return the learner of blocks for the declared columns; ``name`` must agree with them.

    Raises
    ------
    SchemaMismatch
        If there is no such learner for these columns, or the named one is for others.

    """
    numbers = sum(column.is_number for column in schema.read)
    labels = len(schema.read) - numbers
    if not ((1 <= numbers <= _MOST_NUMBERS and not labels) or (numbers, labels) == (0, 1)):
        raise SchemaMismatch(
            f"blocks learn one to {_MOST_NUMBERS} number columns, or exactly one category column; the schema "
            f"declares {numbers} number and {labels} category: use {option} tables, or delete columns from it."
        )
    fitting = "gaussian" if numbers else "empirical"
    if name not in {"blocks", fitting}:
        raise SchemaMismatch(f"{option} {name} does not fit the declared columns: leave it out, or say {fitting}.")
    return GaussianLearner() if numbers else EmpiricalLearner(schema.read[0].categories)


def density_family(schema: Schema, *, name: str | None, option: str) -> DensityFamily | None:
    """Return the density that a name stands for, None for names of other learners.

    Raises
    ------
    SchemaMismatch
        If the schema declares labels, or several columns for a family of one.
    InvalidParameter
        If scikit-learn is needed and not installed.

    """
    kind, _, rest = (name or "").partition(":")
    if kind not in {_MIXTURE, _SCIPY}:
        return None
    if not all(column.is_number for column in schema.read):
        raise SchemaMismatch(
            f"{option} {name} learns columns of numbers alone: use {option} tables for the others too."
        )
    if kind == _SCIPY and len(schema.read) > 1:
        raise SchemaMismatch(f"{option} {name} learns one column, and the schema declares {len(schema.read)}.")
    try:  # loaded when asked for: optional, and slow
        from sklearn.mixture import GaussianMixture  # noqa: PLC0415

        from accord.density.estimators import family_of_estimator  # noqa: PLC0415
        from accord.learners import ScipyLearner  # noqa: PLC0415
    except ImportError:
        message = f'{option} {name} needs scikit-learn: pip install "accord[sklearn]".'
        raise InvalidParameter(message) from None
    return family_of_estimator(ScipyLearner(_scipy_family(rest)) if kind == _SCIPY else GaussianMixture(int(rest or 3)))


def _scipy_family(name: str) -> object | None:
    import scipy.stats  # noqa: PLC0415 - takes its time

    found = getattr(scipy.stats, name, None) if name.isidentifier() else None
    return found if isinstance(found, scipy.stats.rv_continuous) else None
