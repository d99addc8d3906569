"""Messages in a stream of octets: each has its length in front, four octets."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dafka.protocol.errors import MalformedMessage

LENGTH = struct.Struct(">I")


def frame(message: bytes) -> bytes:
    """A message with its length."""
    return LENGTH.pack(len(message)) + message


class FrameReader:
    """Cuts what arrives into messages of up to ``limit`` octets.

    The limit may change between two messages: it is larger behind the handshake.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._octets = b""
        self._position = 0

    def feed(self, octets: bytes) -> None:
        """Append what has arrived."""
        self._octets = self._octets[self._position :] + octets
        self._position = 0

    def messages(self) -> Iterator[bytes]:
        """The messages that are complete, each once.

        Raises :class:`MalformedMessage` for one that is empty or longer than the limit, as soon as its length
        is known; nothing can be read behind it.
        """
        while len(self._octets) - self._position >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._octets, self._position)
            if not 0 < length <= self.limit:
                raise MalformedMessage("frame-length", f"a message of {length} octets, at most {self.limit}")
            start = self._position + LENGTH.size
            if len(self._octets) - start < length:
                return
            self._position = start + length
            yield self._octets[start : self._position]
