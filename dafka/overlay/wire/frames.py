"""Messages in a stream of octets: each has its length in front, four octets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from dafka.protocol.errors import MalformedMessage

LENGTH = struct.Struct(">I")

_length_at = LENGTH.unpack_from
_HEAD = LENGTH.size


def frame(message: bytes) -> bytes:
    """A message with its length."""
    return LENGTH.pack(len(message)) + message


class Run(list[bytes]):
    """Messages with their lengths, one behind the other. The same run may go to several neighbours."""

    def __init__(self, frames: Iterable[bytes]) -> None:
        super().__init__(frames)
        self._octets: bytes | None = None

    @property
    def octets(self) -> bytes:
        """All of it, which is put together once."""
        if self._octets is None:
            self._octets = self[0] if len(self) == 1 else b"".join(self)
        return self._octets


class FrameReader:
    """Cuts what arrives into messages of up to ``limit`` octets.

    The limit may change between two messages: it is larger behind the handshake.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._octets = b""
        self._position = 0
        self._partial = bytearray()  # of a message of which more is missing than came at once
        self._missing = 0

    @property
    def held(self) -> int:
        """Octets of messages that are not complete, or not taken."""
        return len(self._octets) - self._position + len(self._partial)

    def feed(self, octets: bytes) -> None:
        """Append what has arrived."""
        if self._missing > len(octets):
            if not self._partial:
                self._partial += memoryview(self._octets)[self._position :]
                self._octets, self._position = b"", 0
            self._partial += octets
            self._missing -= len(octets)
            return
        if self._partial:
            self._octets = bytes(self._partial) + octets
            self._partial = bytearray()
        else:
            self._octets = self._octets[self._position :] + octets
        self._position = self._missing = 0

    def take(self, most: int) -> list[bytes]:
        """The next messages that are complete, at most so many.

        Raises :class:`MalformedMessage` for one that is empty or longer than the limit, as soon as its length
        is known and those before it are taken; nothing can be read behind it.
        """
        octets, position, limit = self._octets, self._position, self.limit
        size = len(octets)
        last = size - _HEAD
        sure = size if size <= limit else 0  # a message that ends before this is not too long
        messages: list[bytes] = []
        append = messages.append
        for _ in range(most):
            if position > last:
                break
            (length,) = _length_at(octets, position)
            begin = position + _HEAD
            end = begin + length
            if not begin < end <= sure:
                if not 0 < length <= limit:
                    if messages:
                        break
                    raise MalformedMessage("frame-length", f"a message of {length} octets, at most {limit}")
                if end > size:
                    self._missing = end - size
                    break
            append(octets[begin:end])
            position = end
        self._position = position
        return messages

    def messages(self) -> Iterator[bytes]:
        """The messages that are complete, each once. Raises as :meth:`take` does."""
        while taken := self.take(1):
            yield taken[0]
