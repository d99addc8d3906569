"""The common part of both sides of a WebSocket connection: joining frames to messages, and the end.

The protocol itself is that of the package websockets, in its form without I/O. Compression
(permessage-deflate) is neither offered nor accepted: a window for each connection would take more memory than
everything else here, and a few octets could stand for a megabyte.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol

# Its lines about every connection are for the package's own servers.
protocol_log = logging.getLogger("dafka.overlay.websocket.protocol")
protocol_log.setLevel(logging.WARNING)

_REASON_OCTETS = 120
_SERVED = Opcode.TEXT, Opcode.BINARY, Opcode.CONT


class Opened(NamedTuple):
    """The WebSocket handshake is complete."""


class Text(NamedTuple):
    """A message."""

    text: str


class Ended(NamedTuple):
    """Nothing more will come. ``code`` is that of the peer's close frame, None without one."""

    code: int | None
    reason: str


Event = Opened | Text | Ended


class Frames:
    """The frames of ``protocol``, which is open."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._message = bytearray()
        self._in_message = False
        self._failed = self._ended = False

    @property
    def held(self) -> int:
        """Octets of a message in progress."""
        return len(self._message) + len(self._protocol.reader.buffer)

    def let_go(self) -> None:
        """Forget a message in progress: this object may live on until the next garbage collection."""
        self._message.clear()
        self._protocol.reader.discard()

    def taken(self) -> list[Event]:
        """The events since the last call."""
        events: list[Event] = []
        for frame in self._protocol.events_received():
            if isinstance(frame, Frame) and frame.opcode in _SERVED and not self._failed:
                self._take(frame, events)
        if not self._ended and self._is_over():
            self._ended = True
            self._message.clear()
            events.append(self._end())
        return events

    def fail(self, code: int, reason: str) -> None:
        """Close with a code and a reason for the peer; a server does not wait for its answer."""
        self._failed = True
        cut = reason.encode()[:_REASON_OCTETS].decode(errors="ignore")
        self._protocol.fail(CloseCode(code) if code < 3000 else code, cut)

    def _take(self, frame: Frame, events: list[Event]) -> None:
        if frame.opcode is Opcode.BINARY:
            self.fail(CloseCode.UNSUPPORTED_DATA, "messages are JSON in text frames")
            return
        if frame.fin and not self._in_message:
            octets: Any = frame.data
        else:
            self._message += frame.data
            self._in_message = not frame.fin
            if self._in_message:
                return
            octets, self._message = self._message, bytearray()
        try:
            events.append(Text(octets.decode()))
        except UnicodeDecodeError as error:
            self.fail(CloseCode.INVALID_DATA, f"text that is not UTF-8 at octet {error.start}")

    def _is_over(self) -> bool:
        protocol = self._protocol
        return protocol.eof_sent or protocol.close_rcvd is not None or protocol.reader.eof

    def _end(self) -> Ended:
        protocol = self._protocol
        close = protocol.close_rcvd
        if close is not None:
            return Ended(int(close.code), close.reason)
        return Ended(None, str(protocol.parser_exc or protocol.handshake_exc or "connection lost"))


def text_frame(octets: bytes) -> bytes:
    """A frame from a server to any client: it can be sent to all of them."""
    return Frame(Opcode.TEXT, octets).serialize(mask=False)


def output_of(protocol: Protocol) -> bytes:
    """The octets to send now."""
    return b"".join(protocol.data_to_send())
