"""Compiled loops, and the hash of `accord.randomness` bit for bit inside them. Imported at its first use only: slow."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

__all__ = ["absorb", "compiled", "mix_word", "uniform_word", "word_number"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile a loop at its first call, and keep the machine code beside the source where that can be written.

    While it runs, other threads of the interpreter run too. Where neither the install nor the user's cache folder can
    be written, the code is compiled anew in each process.
    """
    try:
        return cast("Callable[_Arguments, _Result]", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba: "no locator available", no place to keep it
        return cast("Callable[_Arguments, _Result]", numba.njit(nogil=True)(function))


@compiled
def mix_word(word: np.uint64) -> np.uint64:
    """Scramble one word: `accord.randomness.mix`."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@compiled
def absorb(state: np.uint64, entry: int) -> np.uint64:
    """Take one more entry of a row into its hash: one step of `SharedRandomness.hash_rows`."""
    return mix_word((state + _GOLDEN) ^ mix_word(np.uint64(entry)))


@compiled
def word_number(stream: np.uint64, counter: int) -> np.uint64:
    """Return word number ``counter`` of a stream: `accord.randomness.word_at`."""
    return mix_word(stream + np.uint64(counter + 1) * _GOLDEN)


@compiled
def uniform_word(word: np.uint64) -> float:
    """Return a float on the open interval (0, 1): `accord.randomness.uniform_open`."""
    return (float(word >> _12) + 0.5) * 2.0**-52
