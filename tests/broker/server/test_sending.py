"""Sending buffers: every octet, in order, however few a socket takes at a time."""

from __future__ import annotations

import errno
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from socket import socketpair

import gevent
import gevent.socket
import pytest

from dafka.broker.server.sending import BUFFERS_AT_ONCE, JOINED_BYTES, SMALL_BUFFER_BYTES, joined, send
from dafka.log import StoredBatches


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


@pytest.fixture
def stored(tmp_path):
    """Batches in the middle of a file, and their octets."""
    octets = random.Random(2).randbytes(3_000_000)
    path = tmp_path / "value"
    path.write_bytes(b"before" + octets + b"behind")
    return StoredBatches(os.open(path, os.O_RDONLY), 6, len(octets)), octets, path


@contextmanager
def connected():
    """A socket of gevent, and one of the system at its other end."""
    ours, theirs = socketpair()
    ours.setblocking(False)
    with gevent.socket.socket(fileno=ours.detach()) as here, theirs:
        theirs.settimeout(30)
        yield here, theirs


def received(theirs, size, slowly):
    """So many octets, some at a time."""
    taken = bytearray()
    while len(taken) < size and (some := theirs.recv(min(slowly, size - len(taken)))):
        taken += some
    return bytes(taken)


@pytest.mark.parametrize("slowly", [7_001, 1 << 20])
def test_batches_in_files_are_sent_between_other_buffers(stored, slowly):
    batches, octets, _ = stored
    buffers = [b"head", bytearray(b"of it"), batches, b"middle" * 50_000, b"tail"]
    with connected() as (ours, theirs), ThreadPoolExecutor(1) as pool:
        size = sum(map(len, buffers))
        green = gevent.spawn(send, ours, buffers, size)
        reading = pool.submit(received, theirs, size, slowly)
        green.get(timeout=30)
        assert reading.result(30) == b"headof it" + octets + b"middle" * 50_000 + b"tail"
    assert batches.descriptor < 0


def test_files_that_cannot_be_sent_are_read(stored, monkeypatch):
    batches, octets, _ = stored

    def refuse(*arguments):
        raise OSError(errno.EINVAL, "not from this file system")

    monkeypatch.setattr("os.sendfile", refuse)
    with connected() as (ours, theirs), ThreadPoolExecutor(1) as pool:
        green = gevent.spawn(send, ours, [b"head", batches], 4 + len(octets))
        reading = pool.submit(received, theirs, 4 + len(octets), 1 << 20)
        green.get(timeout=30)
        assert reading.result(30) == b"head" + octets


def test_a_file_that_ends_too_early_is_an_error_and_closed(stored):
    batches, _, path = stored
    os.truncate(path, 1000)
    with connected() as (ours, _), pytest.raises(OSError, match="ends 2999006 octets before"):
        send(ours, [b"head", batches], 4 + len(batches))
    assert batches.descriptor < 0


def test_closing_the_socket_ends_the_sending(stored):
    batches, _, _ = stored
    with connected() as (ours, _):
        green = gevent.spawn(send, ours, [b"head", batches], 4 + len(batches))
        gevent.sleep(0)  # it sends until the other end is full
        assert not green.dead
        ours.close()
        with pytest.raises(OSError):
            green.get(timeout=30)
    assert batches.descriptor < 0


def test_many_small_buffers_are_joined_and_large_ones_are_not_copied():
    small: list[bytes] = [b"%d" % number for number in range(2 * BUFFERS_AT_ONCE)]
    assert joined(small) == [b"".join(small)]
    few = small[:BUFFERS_AT_ONCE]
    assert joined(few) == few
    large = [bytes(2 * SMALL_BUFFER_BYTES)] * (BUFFERS_AT_ONCE + 1)
    found = joined(large)
    assert len(found) == len(large) and found[0] is large[0]
