"""Stand-ins for the secret source: one that nothing may be read from, and one that counts what is read."""

from accord.core.secret import PrivateRandomness
from accord.testing._fault import MechanismFault

__all__ = ["CountingRandomness", "UntouchedRandomness"]


class UntouchedRandomness(PrivateRandomness):
    """A source that nothing may be read from."""

    __slots__ = ()

    def bytes(self, count: int) -> bytes:
        message = f"{count} bytes of noise were drawn before the input was refused"
        raise MechanismFault(message)


class CountingRandomness(PrivateRandomness):
    """Another source's bytes; ``taken`` says how many have been read."""

    __slots__ = ("_inner", "taken")

    def __init__(self, inner: PrivateRandomness) -> None:
        super().__init__()
        self._inner = inner
        self.taken = 0

    def bytes(self, count: int) -> bytes:
        self.taken += count
        return self._inner.bytes(count)
