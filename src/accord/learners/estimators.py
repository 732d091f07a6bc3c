"""What estimators of scikit-learn and scipy give, as laws."""

import copy
import hashlib
import importlib
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import turn
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator, SharedRandomness
from accord.distributions import Mixture, Normal

__all__ = [
    "as_law",
    "check_estimator",
    "fresh_copy",
    "identity",
    "is_made_of_records",
    "is_mixture",
    "is_scikit",
    "one_thread",
    "parameters",
    "quiet",
    "reseed",
    "scikit_module",
]


_NEEDED = ("fit", "score_samples", "sample")
_SEEDS = ("random_state", "random_seed")
_MOST_PARTS = 10_000
_INSTALL = 'scikit-learn is not installed: pip install "accord[sklearn]".'
_INSTEAD = (
    "Estimators with all three are GaussianMixture and BayesianGaussianMixture of scikit-learn; accord's own learners "
    "are MixtureLearner, GaussianLearner, HistogramLearner, ScipyLearner and EmpiricalLearner"
)


def scikit_module(name: str) -> Any:  # noqa: ANN401 - modules have no public type of their own
    """Return a module of scikit-learn, or say how to install it."""
    try:
        return importlib.import_module(f"sklearn.{name}")
    except ImportError:
        raise InvalidParameter(_INSTALL) from None


def is_scikit(value: object, *names: str) -> bool:
    """Return whether ``value`` is of one of these classes of scikit-learn, and of no subclass."""
    kind = type(value)
    return kind.__name__ in names and kind.__module__.partition(".")[0] == "sklearn"


def check_estimator(estimator: object, *, drawn_by: object) -> None:
    """Refuse by name what cannot be fitted, scored and drawn from, or has no law that blocks could agree on.

    Parameters
    ----------
    estimator
        What was given.
    drawn_by
        The part of it that scores and draws: the last step of a pipeline, else the same.

    """
    kind = getattr(estimator, "__name__", None) if isinstance(estimator, type) else None
    if kind is not None:
        raise InvalidParameter(f"estimator is the class {kind}, not an instance: write {kind}(...).")
    if is_made_of_records(estimator):
        raise InvalidParameter(
            f"{type(estimator).__name__} estimates by KernelDensity, which cannot be released from blocks: its law is "
            "made of the records themselves, so the laws of two blocks hardly overlap, blocks never agree, and a "
            "released value would lie next to somebody's record. Use MixtureLearner, or HistogramLearner with bins."
        )
    missing = [name for name in _NEEDED if not callable(getattr(drawn_by, name, None))]
    if missing:
        raise InvalidParameter(
            f"{type(drawn_by).__name__} has no method {' and no method '.join(missing)}: an estimator must have "
            f"fit(X), score_samples(X), the log density at each row, and sample(n), n independent rows. {_INSTEAD}."
        )


def is_made_of_records(estimator: object) -> bool:
    """Return whether the estimator, one of its parameters or one of its attributes is a kernel density estimate."""
    parts = [estimator, *getattr(estimator, "__dict__", {}).values()]
    with suppress(Exception):  # another library's convention
        parts += estimator.get_params(deep=True).values()  # type: ignore[attr-defined]
    return any(base.__name__ in {"KernelDensity", "gaussian_kde"} for part in parts for base in type(part).__mro__)


def fresh_copy(estimator: Any) -> Any:  # noqa: ANN401 - another library's object
    """Return an unfitted copy, as scikit-learn clones; a deep copy of what does not follow its conventions."""
    if not hasattr(estimator, "get_params") or not hasattr(estimator, "set_params"):
        return copy.deepcopy(estimator)
    try:
        base = importlib.import_module("sklearn.base")
    except ImportError:
        return copy.deepcopy(estimator)
    return base.clone(estimator)


def reseed(value: object, seed: int) -> None:
    """Give every generator inside an object, at any depth, its own seed: a function of ``seed`` and of its place.

    Set are attributes named ``seed``, ``..random_state`` or ``..random_seed`` that hold a number or None, and
    generators of numpy wherever they are. The object must be nobody else's.
    """
    _reseed(value, SharedRandomness(seed), (), set())


def _reseed(value: object, source: SharedRandomness, path: tuple[str, ...], seen: set[int]) -> None:
    if id(value) in seen or len(seen) > _MOST_PARTS:
        return
    seen.add(id(value))
    holder = value.__dict__ if isinstance(getattr(value, "__dict__", None), dict) else value
    for name, part in _named(holder):
        place = (*path, name)
        if isinstance(part, Generator):
            with suppress(Exception):
                _put(value, name, source.stream(*place))
        elif type(part).__name__ in {"RandomState", "Random"} and callable(getattr(part, "seed", None)):
            part.seed(source.seed(*place))
        elif _is_seed(name, part):
            with suppress(Exception):
                _put(value, name, source.seed(*place))
        elif not isinstance(part, (np.ndarray, np.generic, str, bytes, int, float, type(None), type)):
            _reseed(part, source, place, seen)


def _named(holder: object) -> list[tuple[str, Any]]:
    """Return what a dictionary, a list or a tuple holds, with names."""
    if isinstance(holder, dict):
        return [(str(key), part) for key, part in list(holder.items())]
    if isinstance(holder, (list, tuple)):
        return [(str(place), part) for place, part in enumerate(holder)]
    return []


def _is_seed(name: str, part: object) -> bool:
    whole = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
    return (name == "seed" or name.endswith(_SEEDS)) and (whole or part is None)


def _put(value: object, name: str, new: object) -> None:
    if isinstance(value, dict):
        value[name] = new
    elif isinstance(value, list):
        value[int(name)] = new
    else:
        setattr(value, name, new)


def identity(value: object) -> bytes:
    """Return a digest that equal objects share; of one that cannot be pickled, its address."""
    try:
        text = pickle.dumps(value, protocol=5)
    except Exception:  # noqa: BLE001 - another library's object
        text = f"{type(value).__qualname__} at {id(value)}".encode()
    return hashlib.blake2b(text, digest_size=16).digest()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread inside the block: sums of several threads depend on who is first."""
    with turn():
        try:
            limits = importlib.import_module("threadpoolctl").threadpool_limits(limits=1)
        except ImportError:
            limits = nullcontext()
        with limits:
            yield


@contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings, which may quote data, inside the block."""
    with turn(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


_Floats = NDArray[np.float64]


def is_mixture(estimator: object) -> bool:
    """Return whether a law can be written down: a subclass may score and draw in its own way."""
    return is_scikit(estimator, "GaussianMixture", "BayesianGaussianMixture")


def parameters(estimator: Any) -> tuple[_Floats, _Floats, _Floats]:  # noqa: ANN401 - another library's object
    """Return weights (k,), means (k, d) and covariances (k, d, d) of a fitted mixture."""
    means = np.asarray(estimator.means_, dtype=np.float64)
    found = np.asarray(estimator.covariances_, dtype=np.float64)
    count, dimension = means.shape
    match estimator.covariance_type:
        case "full":
            covariances = found
        case "tied":
            covariances = np.broadcast_to(found, (count, dimension, dimension))
        case "diag":
            covariances = found[:, :, None] * np.eye(dimension)
        case _:
            covariances = found[:, None, None] * np.eye(dimension)
    return np.asarray(estimator.weights_, dtype=np.float64), means, covariances


def as_law(weights: _Floats, means: _Floats, covariances: _Floats) -> Mixture:
    """Return the law with these parameters."""
    return Mixture([Normal(*pair) for pair in zip(means, covariances, strict=True)], weights)
