"""Frames under encryption: plain ZMTP in, the MESSAGE commands of CURVE out, and the other way round.

Input of sealing and output of opening are streams of plain frames, cut and encoded as everywhere else. Each
frame travels in a numbered box of its own, so that a frame cannot be changed, repeated, left out or put
elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

from nacl._sodium import ffi, lib
from nacl.bindings import crypto_box_beforenm

from dafka.zmtp.cutting import COMMAND, LONG, MORE
from dafka.zmtp.errors import FramingError, ProtocolError, TooLargeError

_NAME = b"\x07MESSAGE"
_NONCE = 8
_MAC = 16
OVERHEAD_OCTETS = len(_NAME) + _NONCE + _MAC + 1
"""Octets that a sealed frame has more than a plain one, besides a longer header."""
_INNER_MORE, _INNER_COMMAND = 0x01, 0x02
_ROOM_OCTETS = 64 * 1024

# PyNaCl's own functions make three objects for each box, and take three times as long.
_from_buffer = ffi.from_buffer
_seal = lib.crypto_secretbox_easy
_unseal = lib.crypto_secretbox_open_easy


class Sealing(NamedTuple):
    """The two directions of a connection."""

    sealer: Sealer
    opener: Opener


def sealing_of(public: bytes, secret: bytes, own: bytes, other: bytes, sent: int, received: int) -> Sealing:
    """The boxes between two short-term keys; ``own`` and ``other`` are ``C`` or ``S``, the numbers the last
    nonces of the handshake."""
    key = bytes(crypto_box_beforenm(public, secret))
    return Sealing(
        Sealer(key, b"CurveZMQMESSAGE" + own, sent), Opener(key, b"CurveZMQMESSAGE" + other, received)
    )


class Sealer:
    """Seals frames. Octets may come in pieces; those of a frame in progress are kept."""

    def __init__(self, key: bytes, prefix: bytes, sent: int) -> None:
        self._key = key
        self._prefix = prefix
        self._sent = sent
        self._kept = bytearray()

    def seal(self, octets: bytes) -> bytes:
        """The sealed form of all frames that are complete now."""
        if self._kept:
            self._kept += octets
            octets = bytes(self._kept)
            self._kept.clear()
        position, end = 0, len(octets)
        sealed: list[bytes] = []
        key, prefix, number = self._key, self._prefix, self._sent
        room = bytearray()  # boxes are written to it in a row, without an object for each
        into, written = _from_buffer(room), 0
        while end - position >= 2:
            flags, size, at = octets[position], octets[position + 1], position + 2
            if flags & LONG:
                at = position + 9
                if at > end:
                    break
                size = int.from_bytes(octets[position + 1 : at], "big")
            after = at + size
            if after > end:
                break
            number += 1
            nonce = number.to_bytes(_NONCE, "big")
            inner = (flags & MORE) | (_INNER_COMMAND if flags & COMMAND else 0)
            whole = size + OVERHEAD_OCTETS
            header = _HEADERS[whole] if whole < 256 else b"\x02" + whole.to_bytes(8, "big") + _NAME
            box_at = written + len(header) + _NONCE
            if box_at + _MAC + 1 + size > len(room):
                if written:
                    sealed.append(bytes(memoryview(room)[:written]))
                room = bytearray(max(_ROOM_OCTETS, len(header) + whole))
                into, written, box_at = _from_buffer(room), 0, len(header) + _NONCE
            room[written:box_at] = header + nonce
            _seal(into + box_at, _INNER[inner] + octets[at:after], size + 1, prefix + nonce, key)
            written = box_at + _MAC + 1 + size
            position = after
        self._sent = number
        if position < end:
            self._kept += memoryview(octets)[position:]
        sealed.append(bytes(memoryview(room)[:written]))
        return b"".join(sealed)


class Opener:
    """Opens what the other side's :class:`Sealer` has sealed. ``max_octets`` bounds a frame."""

    def __init__(self, key: bytes, prefix: bytes, received: int) -> None:
        self.max_octets = 0
        self.error: ProtocolError | None = None
        """The error that ended the stream, behind the frames that were returned."""
        self._key = key
        self._prefix = prefix
        self._received = received
        self._kept = bytearray()
        self._need = 0  # octets until the frame in progress may be complete

    @property
    def held(self) -> int:
        """Octets of a frame in progress."""
        return len(self._kept)

    def completes(self, octets: int) -> int:
        """The size of the long frame that so many further octets complete; 0 if they complete none."""
        return self._need if self._need and len(self._kept) + octets >= self._need else 0

    def open(self, octets: bytes) -> bytes:
        """The plain octets of all frames that are complete now, up to :attr:`error`."""
        if self.error is not None:
            return b""
        if self._kept:
            self._kept += octets
            if len(self._kept) < self._need:
                return b""
            octets = bytes(self._kept)
            self._kept.clear()
        self._need = 0
        # Opened frames are written in a row: no frame is longer than it was under encryption.
        room = bytearray(len(octets))
        written = 0
        try:
            position, written = self._open(octets, room)
        except _Broken as broken:
            written, self.error = broken.args
        else:
            if position < len(octets):
                self._kept += memoryview(octets)[position:]
        return bytes(memoryview(room)[:written])

    def _open(self, octets: bytes, room: bytearray) -> tuple[int, int]:
        """Where the last complete frame ends, and how much was written to ``room``. Raises _Broken."""
        position, end, written = 0, len(octets), 0
        key, prefix, received = self._key, self._prefix, self._received
        boxes, into = _from_buffer(octets), _from_buffer(room)
        try:
            while end - position >= 2:
                flags, size, at = octets[position], octets[position + 1], position + 2
                if flags & ~(LONG | COMMAND):
                    raise FramingError("flags", f"a frame under CURVE with the flags {flags:#04x}")
                if flags & LONG:
                    at = position + 9
                    if at > end:
                        break
                    size = int.from_bytes(octets[position + 1 : at], "big")
                if size > self.max_octets + OVERHEAD_OCTETS:
                    raise TooLargeError("message-size", f"a frame of {size} octets under CURVE")
                after = at + size
                if after > end:
                    self._need = after - position
                    break
                if size < OVERHEAD_OCTETS or octets[at : at + 8] != _NAME:
                    raise FramingError("curve", "a frame that is not a MESSAGE of CURVE")
                nonce = octets[at + 8 : at + 16]
                number = int.from_bytes(nonce, "big")
                if number <= received:
                    raise ProtocolError("curve", "a frame that has come already")
                # The first octet of what is opened has the flags; the header of a plain frame ends there.
                size -= OVERHEAD_OCTETS
                first = written + (1 if size < 256 else 8)
                if _unseal(into + first, boxes + (at + 16), size + 1 + _MAC, prefix + nonce, key):
                    raise ProtocolError("curve", "a frame that was changed on its way")
                received = number
                inner = room[first]
                outer = (inner & _INNER_MORE) | (COMMAND if inner & _INNER_COMMAND else 0)
                if size < 256:
                    room[written] = outer
                    room[first] = size
                else:
                    room[written] = outer | LONG
                    room[written + 1 : first + 1] = size.to_bytes(8, "big")
                written = first + 1 + size
                position = after
        except ProtocolError as error:
            raise _Broken(written, error) from None
        finally:
            self._received = received
        return position, written


class _Broken(Exception):
    """How much was written before an error, and the error."""


_INNER = [bytes((flags,)) for flags in range(4)]
_HEADERS = [bytes((0, size)) + _NAME for size in range(256)]
