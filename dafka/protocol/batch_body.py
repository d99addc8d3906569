"""The body of a record batch, a piece at a time, and how much work may be spent on it.

A batch of kilobytes may unfold to hundreds of megabytes. Of those one piece is in memory. A caller that has
little time gives an :class:`Allowance`; one in a thread a :class:`Work` that lets others have their turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dafka.protocol.compression import STEP
from dafka.protocol.errors import DafkaError

_PIECE_WORK = 8  # of each piece, also of one without octets
_SMALL_PIECE = 64 * 1024  # octets unfolded at a time where there is an allowance


class TooMuchWorkError(DafkaError):
    """There is more to examine than the allowance has left."""


class Work:
    """What counts the work of an examination, in microseconds by estimate. This one only counts it."""

    __slots__ = ("left",)

    piece = STEP
    """Octets that are unfolded at a time, at most."""

    def __init__(self, microseconds: int = 0) -> None:
        self.left = microseconds

    def spend(self, microseconds: int) -> None:
        """So much more is done now."""
        self.left -= microseconds


class Allowance(Work):
    """How much work may be done. It may be shared by many batches."""

    __slots__ = ()

    piece = _SMALL_PIECE

    def spend(self, microseconds: int) -> None:
        """Raise TooMuchWorkError if there was less left."""
        self.left -= microseconds
        if self.left < 0:
            raise TooMuchWorkError


class Plain:
    """The octets of a body that is not compressed, a window at a time."""

    def __init__(self, body: memoryview, window: int) -> None:
        self._body = body
        self._window = window
        self._position = 0

    def more(self, skip: int) -> bytes:
        """Pass over so many octets; the next ones, none at the end. Raises ValueError beyond it."""
        begin = self._position + skip
        if begin > len(self._body):
            raise _ends_early(begin - len(self._body))
        self._position = min(begin + self._window, len(self._body))
        return bytes(self._body[begin : self._position])


class Unfolding:
    """The octets of a compressed body, a piece at a time."""

    def __init__(self, pieces: Iterator[bytes], work: Work) -> None:
        self._pieces = pieces
        self._work = work

    def more(self, skip: int) -> bytes:
        """Pass over so many octets; the next ones, none at the end. Raises ValueError beyond it."""
        for piece in self._pieces:
            self._work.spend(_PIECE_WORK + (len(piece) >> 8))
            if len(piece) > skip:
                return piece[skip:] if skip else piece
            skip -= len(piece)
        if skip:
            raise _ends_early(skip)
        return b""


def _ends_early(octets: int) -> ValueError:
    return ValueError(f"a record ends {octets} octets behind the end of the batch")


class Source:
    """Octets one after the other, of which a buffer is in memory.

    Errors are ValueError.
    """

    def __init__(self, octets: Plain | Unfolding) -> None:
        self._octets = octets
        self.buffer = octets.more(0)
        self.position = 0
        self._before = 0

    @property
    def passed(self) -> int:
        """How many octets were read or passed over."""
        return self._before + self.position

    def is_at_end(self) -> bool:
        if self.position < len(self.buffer):
            return False
        self._turn_to(len(self.buffer))
        return not self.buffer

    def skip(self, octets: int) -> None:
        """Pass over so many octets."""
        self.position += octets
        if self.position > len(self.buffer):
            self._turn_to(self.position)

    def varint(self, decode: Callable[[bytes, int], tuple[int, int]]) -> int:
        """The number that comes next."""
        while True:
            try:
                number, self.position = decode(self.buffer, self.position)
            except IndexError:  # it lies across the end of the buffer
                rest = self.buffer[self.position :]
                piece = self._octets.more(0)
                if not piece:
                    raise ValueError("a record ends behind the end of the batch") from None
                self._before += self.position
                self.buffer, self.position = rest + piece, 0
            else:
                return number

    def _turn_to(self, position: int) -> None:
        """Go on with a new buffer, which begins at a position behind the end of the old one."""
        self._before += position
        self.buffer = self._octets.more(position - len(self.buffer))
        self.position = 0
