"""Buffers of a response, from the first to the last octet to a socket.

Batches that are still in files go from there to the socket without coming through this process.
"""

from __future__ import annotations

import errno
import os
import socket as sockets
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from dafka.broker.codec.framing import Buffers
from dafka.log import StoredBatches

JOINED_BYTES = 128 * 1024  # a response of at most this size is copied into one buffer
BUFFERS_AT_ONCE = 512  # for one sendmsg; systems allow 1024
SMALL_BUFFER_BYTES = 4096  # many buffers are joined if they are smaller on average
_MORE = (getattr(sockets, "MSG_MORE", 0),)  # only Linux has it
_NOT_FROM_HERE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # a file system that cannot do it


def joined(buffers: Buffers) -> Buffers:
    """The same octets in fewer buffers, if there are many small ones; files stay as they are.

    To be called beside the hub, which would take 20 ms for those of 40 000 partitions.
    """
    fewer: Buffers = []
    for stored, group in groupby(buffers, _is_stored):
        some = list(group)
        many = not stored and len(some) > BUFFERS_AT_ONCE
        if many and sum(map(len, some)) // len(some) < SMALL_BUFFER_BYTES:
            some = [b"".join(some)]
        fewer += some
    return fewer


def send_now(socket: Any, buffers: Buffers, size: int) -> Buffers:
    """Send what a plain socket takes at once, of a small response; returns the rest. Raises OSError."""
    if size > JOINED_BYTES or any(map(_is_stored, buffers)):
        return buffers
    octets = b"".join(buffers)
    try:
        sent = socket.send(octets, 0, 0.0)  # the time it may wait
    except BlockingIOError:
        sent = 0
    return [memoryview(octets)[sent:]] if sent < size else []


def send(socket: Any, buffers: Buffers, size: int) -> None:
    """Send all of it; ``size`` is the sum of their lengths. Waits as a green thread. Raises OSError.

    Files are closed as soon as they are sent, or when that fails.
    """
    if not any(map(_is_stored, buffers)):
        _send_octets(socket, buffers, size)
        return
    try:
        for stored, group in groupby(buffers, _is_stored):
            some: list[Any] = list(group)
            if stored:
                for batches in some:
                    size -= len(batches)
                    _send_file(socket, batches)
            else:
                length = sum(map(len, some))
                size -= length
                _send_octets(socket, some, length, _MORE if size else ())
    finally:
        for buffer in buffers:
            if isinstance(buffer, StoredBatches):
                buffer.close()


def _is_stored(buffer: object) -> bool:
    return type(buffer) is StoredBatches


def _send_octets(socket: Any, buffers: Sequence[Any], size: int, flags: tuple[int, ...] = ()) -> None:
    if size <= JOINED_BYTES:
        buffers = [b"".join(buffers)]
        sent = socket.send(buffers[0], *flags)
        if sent == size:
            return
        buffers = [memoryview(buffers[0])[sent:]]
    elif len(buffers) > BUFFERS_AT_ONCE and size // len(buffers) < SMALL_BUFFER_BYTES:
        buffers = [b"".join(buffers)]
    views = deque(memoryview(buffer) for buffer in buffers)
    while views:
        some = [views[index] for index in range(min(len(views), BUFFERS_AT_ONCE))]
        sent = socket.sendmsg(some, (), *flags) if flags else socket.sendmsg(some)
        while views and sent >= len(views[0]):
            sent -= len(views.popleft())
        if sent:
            views[0] = views[0][sent:]


def _send_file(socket: Any, batches: StoredBatches) -> None:
    position, end = batches.position, batches.position + len(batches)
    while position < end:
        try:
            # The number of the socket anew each time: it may have been closed, and another have its number.
            sent = os.sendfile(socket.fileno(), batches.descriptor, position, end - position)
        except BlockingIOError:
            socket._wait(socket._write_event)  # which ends when the socket is closed
            continue
        except OSError as error:
            if error.errno not in _NOT_FROM_HERE:
                raise
            octets = memoryview(batches.read())[position - batches.position :]
            _send_octets(socket, [octets], len(octets))
            break
        if not sent:
            raise OSError(f"a value's file ends {end - position} octets before its batches do")
        position += sent
    batches.close()
