"""Buffers of a response, from the first to the last octet to a socket."""

from __future__ import annotations

from collections import deque
from typing import Any

from dafka.broker.codec.framing import Buffers

JOINED_BYTES = 128 * 1024  # a response of at most this size is copied into one buffer
BUFFERS_AT_ONCE = 512  # for one sendmsg; systems allow 1024
SMALL_BUFFER_BYTES = 4096  # many buffers are joined if they are smaller on average


def send(socket: Any, buffers: Buffers, size: int) -> None:
    """Send all of it; ``size`` is the sum of their lengths. Waits as a green thread. Raises OSError."""
    if size <= JOINED_BYTES:
        buffers = [b"".join(buffers)]
        sent = socket.send(buffers[0])
        if sent == size:
            return
        buffers = [memoryview(buffers[0])[sent:]]
    elif len(buffers) > BUFFERS_AT_ONCE and size // len(buffers) < SMALL_BUFFER_BYTES:
        buffers = [b"".join(buffers)]
    views = deque(memoryview(buffer) for buffer in buffers)
    while views:
        some = [views[index] for index in range(min(len(views), BUFFERS_AT_ONCE))]
        sent = socket.sendmsg(some)
        while views and sent >= len(views[0]):
            sent -= len(views.popleft())
        if sent:
            views[0] = views[0][sent:]
