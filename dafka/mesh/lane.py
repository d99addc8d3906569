"""A lane: the socket through which one node hears published records and heads, and which it can stop reading.

A consumer whose user is slow, or a store whose disk is, leaves records without room in ZeroMQ's queue. When
that is full the sender's queue fills up, so nothing that has arrived has to be fetched later. (C nodes do the
same and rely on it: a C producer answers FETCH with wrong contents.) Each such node has a lane of its own and
holds up nobody else. Records and the heads behind them come in the order in which the producer sent them: a
record that a head names and that has not come before it is lost.

Messages addressed to a node, such as fetched records and hellos, do not come through its lane and are never
held up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

import gevent
import gevent.event
import zmq

from dafka.hub.hub import Hub
from dafka.hub.turns import next_turn
from dafka.mesh import limits
from dafka.mesh.sockets import Socket
from dafka.protocol.commands import Command
from dafka.protocol.runs import Inbound, Run, RunReader


class Lane:
    """``note`` is called with everything read, ``deliver(item)`` gives back the records without room."""

    def __init__(
        self,
        hub: Hub,
        peers: Iterable[str],
        note: Callable[[Inbound], None],
        deliver: Callable[[Run | Command], Run | None],
    ) -> None:
        self._note = note
        self._deliver = deliver
        self._ready = gevent.event.Event()
        self._reader = RunReader()
        self._held: deque[Run | Command] = deque()  # read, and waiting for room
        # Peers to disconnect from, and since when nothing has been there to read while there was room: their
        # messages may be on their way through the kernel's buffers.
        self._leaving: dict[str, float | None] = {}
        self._closed = False
        self._emptied = time.monotonic()  # when all that had come was read and delivered
        self._socket = Socket(hub.context, zmq.SUB, self._ready.set, limits.LANE_MESSAGES)
        self._socket.set(zmq.MAXMSGSIZE, limits.RECORD_OCTETS)
        for peer in peers:
            self._socket.connect(peer)
        self._green = hub.keep(self._loop)

    def connect(self, peer: str) -> None:
        """Hear a peer."""
        if peer in self._leaving:
            # It was silent and is back: the connection may be one that only this end still believes in.
            del self._leaving[peer]
            self._socket.disconnect(peer)
        self._socket.connect(peer)
        self._ready.set()

    def disconnect(self, peer: str) -> None:
        """Hear a peer no longer, but for what it has sent already."""
        self._leaving[peer] = None
        self._ready.set()

    def subscribe(self, prefix: bytes) -> None:
        """Hear what begins with ``prefix``."""
        self._socket.set(zmq.SUBSCRIBE, prefix)
        self._ready.set()

    def unsubscribe(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""
        self._socket.set(zmq.UNSUBSCRIBE, prefix)
        self._ready.set()

    def resume(self) -> None:
        """There may be room again."""
        if self._held:
            self._ready.set()

    @property
    def behind(self) -> bool:
        """Whether something may have waited here for longer than ``LANE_BEHIND_SECONDS``."""
        if self._held:
            return True
        unread = self._socket.readable()
        if unread:
            self._ready.set()  # to have asked may have used up the descriptor's edge
        return unread and time.monotonic() - self._emptied > limits.LANE_BEHIND_SECONDS

    def close(self) -> None:
        """Hear nothing any more."""
        if not self._closed:
            self._closed = True
            self._socket.close()
            self._held.clear()
            if self._green is not gevent.getcurrent():
                self._green.kill(block=False)

    def _loop(self) -> None:
        while not self._closed:
            if self._hand_over() and self._read():
                next_turn()
            else:
                self._ready.wait(limits.LANE_LEAVE_SECONDS if self._leaving else None)
                self._ready.clear()

    def _hand_over(self) -> bool:
        """Deliver what was read; False when there is no room for all of it."""
        held = self._held
        while held:
            rest = self._deliver(held[0])
            if self._closed:
                return False
            if rest is not None:
                held[0] = rest
                self._leaving = dict.fromkeys(self._leaving)
                return False
            held.popleft()
        return True

    def _read(self) -> bool:
        messages = self._socket.receive(limits.ROUND_MESSAGES, limits.LANE_BYTES)
        if not messages:
            self._emptied = time.monotonic()
            self._leave(self._emptied)
            return self._socket.readable()
        inbound = self._reader.read(messages)
        self._note(inbound)
        self._held.extend(inbound.runs)
        self._held.extend(inbound.commands)
        return True

    def _leave(self, now: float) -> None:
        for peer, since in list(self._leaving.items()):
            if since is None:
                self._leaving[peer] = now
            elif now - since >= limits.LANE_LEAVE_SECONDS:
                del self._leaving[peer]
                self._socket.disconnect(peer)
