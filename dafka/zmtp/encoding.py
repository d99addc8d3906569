"""Messages to octets. ZMTP 2.0 and 3.x write frames of messages in the same way."""

from __future__ import annotations

from collections.abc import Sequence

MORE, LONG = 0x01, 0x02
JOINED_OCTETS = 16 * 1024  # a longer frame is not copied behind its header

_LAST = [bytes((0, size)) for size in range(256)]
_MORE = [bytes((MORE, size)) for size in range(256)]

Message = Sequence[bytes]


def header(size: int, more: bool) -> bytes:
    """The header of a frame of ``size`` octets."""
    if size < 256:
        return _MORE[size] if more else _LAST[size]
    return bytes((LONG | more,)) + size.to_bytes(8, "big")


def encode(message: Message) -> list[bytes]:
    """A message, in buffers to be sent one behind the other."""
    return _joined(_buffers([message]))


def encode_all(messages: Sequence[Message]) -> list[bytes]:
    """Messages, in as few buffers as are worth copying."""
    if not messages:
        return []
    if set(map(len, messages)) == {1}:
        frames = [message[0] for message in messages]
        sizes = set(map(len, frames))
        if len(sizes) == 1:
            size = sizes.pop()
            if size <= JOINED_OCTETS:
                before = header(size, False)
                return [before + before.join(frames)]
    return _joined(_buffers(messages))


def _buffers(messages: Sequence[Message]) -> list[bytes]:
    buffers: list[bytes] = []
    add = buffers.append
    for message in messages:
        last = len(message) - 1
        if last < 0:
            raise ValueError("a message without frames cannot be sent")
        for index, frame in enumerate(message):
            size = len(frame)
            if size < 256:
                add(_MORE[size] if index < last else _LAST[size])
            else:
                add(header(size, index < last))
            add(frame)
    return buffers


def _joined(buffers: list[bytes]) -> list[bytes]:
    """The same octets, with the small buffers between large ones joined."""
    if max(map(len, buffers)) <= JOINED_OCTETS:
        return [b"".join(buffers)]
    joined: list[bytes] = []
    small: list[bytes] = []
    for buffer in buffers:
        if len(buffer) <= JOINED_OCTETS:
            small.append(buffer)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(buffer)
    if small:
        joined.append(b"".join(small))
    return joined
