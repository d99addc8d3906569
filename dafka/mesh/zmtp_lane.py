"""A lane on our own SUB socket: a node that has no room leaves the octets in the kernel's buffers.

As with :mod:`dafka.mesh.lane`, which is for libzmq, nothing that has arrived is dropped, and each node
that may stop reading has connections of its own. Here each connection is read by itself: messages of a peer
come in its order, and records of several peers wait for room side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.mesh import limits
from dafka.mesh.speakers import Speakers
from dafka.mesh.transport import Deliver, Lend, Note
from dafka.protocol.runs import Inbound, RunReader
from dafka.protocol.stretches import Stretches
from dafka.sockets.peer import Peer
from dafka.sockets.shared import Bounds
from dafka.sockets.subscriber import Subscriber
from dafka.zmtp.cutting import Frames
from dafka.zmtp.mechanisms import MakeMechanism


class ZmtpLane:
    """``note`` is told of what was read, ``deliver(item)`` gives back what there was no room for."""

    def __init__(
        self,
        hub: Hub,
        peers: list[str],
        note: Note,
        deliver: Deliver,
        bounds: Bounds,
        mechanism: MakeMechanism | None = None,
        speakers: Speakers | None = None,
        expect: Callable[[str, float, float], object] | None = None,
        lend: Lend | None = None,
    ) -> None:
        self._note = note
        self._deliver = deliver
        self._lend = lend
        self._speakers = speakers
        self._room = Changes()
        self._holding: set[Peer] = set()  # peers whose records wait for room
        self._closed = False
        reader = RunReader()
        self._subscriber = Subscriber(
            hub,
            handler=self,
            max_message=limits.MESSAGE_OCTETS,
            make_taker=lambda: Stretches(reader),
            bounds=bounds,
            mechanism=mechanism,
            expect=expect,
        )
        for peer in peers:
            self._subscriber.connect(peer)

    def connect(self, peer: str) -> None:
        """Hear a peer. One that was silent and is back is connected to anew: the connection may be one that
        only this end still believes in."""
        self._subscriber.connect(peer)

    def disconnect(self, peer: str) -> None:
        """Hear a peer no longer, but for what it has sent already."""
        self._subscriber.disconnect(peer, limits.LANE_LEAVE_SECONDS)

    def subscribe(self, prefix: bytes) -> None:
        """Hear what begins with ``prefix``."""
        self._subscriber.subscribe(prefix)

    def unsubscribe(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""
        self._subscriber.unsubscribe(prefix)

    def resume(self) -> None:
        """There may be room again."""
        if self._holding:
            self._room.tell()

    @property
    def behind(self) -> bool:
        """Whether something may have waited here for longer than ``LANE_BEHIND_SECONDS``."""
        if self._holding:
            return True
        since = time.monotonic() - limits.LANE_BEHIND_SECONDS
        return any(peer.waits_since is None and peer.emptied < since for peer in self._subscriber.peers)

    def close(self) -> None:
        """Hear nothing any more."""
        if not self._closed:
            self._closed = True
            self._holding.clear()
            self._room.tell()
            self._subscriber.close()

    # -- of the subscriber ----------------------------------------------------------------------

    def joined(self, peer: Peer) -> None:
        peer.emptied = time.monotonic()  # nothing has come yet
        if self._speakers is None:
            peer.express = self._lone

    def messages(self, peer: Peer, messages: list[Frames]) -> None:
        taker = peer.taker
        assert isinstance(taker, Stretches)
        inbound = taker.read(messages)
        if self._speakers is not None:
            inbound = self._speakers.heard(peer.key, inbound)
        self._hear(peer, inbound)

    def _lone(self, peer: Peer, octets: bytes) -> bool:
        taker = peer.taker
        assert isinstance(taker, Stretches)
        inbound = taker.lone(octets)
        if inbound is None:
            return False
        self._hear(peer, inbound)
        if self._lend is not None and not peer.is_closed:
            self._lend(peer, inbound.runs[0].address)
        return True

    def _hear(self, peer: Peer, inbound: Inbound) -> None:
        self._note(inbound)
        items = (*inbound.runs, *inbound.commands)
        paced = Pace().over(items, every=limits.DELIVERED_AT_ONCE) if len(items) > 1 else items
        for item in paced:
            rest = self._deliver(item)
            while rest is not None and not self._closed:
                self._holding.add(peer)
                try:
                    self._room.wait()
                finally:
                    self._holding.discard(peer)
                if not self._closed:
                    rest = self._deliver(rest)
            if self._closed:
                return

    def left(self, peer: Peer) -> None:
        self._holding.discard(peer)
