"""Sending buffers: every octet, in order, however few a socket takes at a time."""

from __future__ import annotations

from itertools import cycle

import pytest

from dafka.broker.server.sending import BUFFERS_AT_ONCE, JOINED_BYTES, send


class Socket:
    """Takes one of these numbers of octets at a time, over and over."""

    def __init__(self, *takes):
        self._takes = cycle(takes)
        self.taken = bytearray()

    def send(self, octets):
        return self.sendmsg([octets])

    def sendmsg(self, buffers):
        assert 0 < len(buffers) <= BUFFERS_AT_ONCE
        some = b"".join(buffers)[: next(self._takes)]
        self.taken += some
        return len(some)


@pytest.mark.parametrize("takes", [(10**9,), (1, 7, 100_000), (99_999,)])
@pytest.mark.parametrize(
    "sizes",
    [
        [1],
        [3, 0, 5, 400],
        [JOINED_BYTES, 1],
        [5, 200_000, 0, 1, 100_000],
        [100] * (BUFFERS_AT_ONCE * 4),
        [5000] * (BUFFERS_AT_ONCE + 1),
    ],
    ids=["one", "small", "joined and one", "large", "many small", "many large"],
)
def test_every_octet_is_sent(takes, sizes):
    buffers = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    socket = Socket(*takes)
    send(socket, list(buffers), sum(sizes))
    assert socket.taken == b"".join(buffers)
