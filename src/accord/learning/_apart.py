"""Couple laws of which some are sealed: these are read, and vote, in their own processes. Part of the trusted core."""

import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

from accord._abstain import ABSTAIN
from accord.couplings import Coupled, Coupling
from accord.learning.isolation import Fitted, SealedLaw, in_child, plain
from accord.randomness import SharedRandomness

__all__ = ["couple_apart"]


def couple_apart(
    coupling: Coupling, laws: Sequence[Fitted], *, isolated: bool, records: int, draws: int, shared: SharedRandomness
) -> Coupled:
    """Return what ``coupling.couple`` does, without reading a sealed law in this process.

    Formal guarantees
    -----------------
    - Isolated couplings: each sealed law votes in a process forked for it, with all others abstaining. Its vote is a
      function of what its fit sent, public values and the shared key, whatever the code of laws leaves in memory.
    - Other couplings: sealed laws are read in one process, as votes depend on all laws.
    - A process that ends without votes is an abstention: of its law, or of all where they vote together.

    Parameters
    ----------
    coupling, records, draws, shared
        As in `Coupling.couple`.
    laws
        What `fit_blocks` returned.
    isolated
        What the coupling says of itself.

    """

    def votes(given: Sequence[Fitted], blocks: Sequence[int]) -> list[list[bytes | None]] | None:
        sent = in_child(partial(_votes, coupling, given, blocks, records=records, draws=draws, shared=shared))
        return None if sent is None else list(plain(sent))

    sealed = {block for block, law in enumerate(laws) if type(law) is SealedLaw}
    apart = sealed if isolated or not sealed else set(range(len(laws)))
    here: list[Any] = [ABSTAIN if block in apart else law for block, law in enumerate(laws)]
    coupled = coupling.couple(here, records=records, draws=draws, shared=shared)
    keys = coupled.keys.copy() if apart else coupled.keys
    for blocks in [[block] for block in sorted(apart)] if isolated else [sorted(apart)] if apart else []:
        given = [law if place in blocks else ABSTAIN for place, law in enumerate(laws)]
        found = votes(given, blocks)
        for block, column in zip(blocks, found or [], strict=False):
            keys[:, block] = [ABSTAIN if key is None else key for key in column]
    return Coupled(keys=keys, decode=coupled.decode)


def _votes(
    coupling: Coupling,
    laws: Sequence[Fitted],
    blocks: Sequence[int],
    *,
    records: int,
    draws: int,
    shared: SharedRandomness,
) -> bytes:
    """Read the laws, which is done in a child only, and write down what these blocks vote; None for an abstention."""
    opened: list[Any] = [law.opened() if type(law) is SealedLaw else law for law in laws]
    keys = coupling.couple(opened, records=records, draws=draws, shared=shared).keys
    return pickle.dumps([[key if type(key) is bytes else None for key in keys[:, block].tolist()] for block in blocks])
