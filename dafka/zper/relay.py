"""ZPRelay: sends new messages of a topic to each client that connects, from the end as it is then.

A client, DEALER or PULL, says nothing but its identity. It knows no positions, so its stream goes on whatever
becomes of the topic: with the first message that is there when those that come next were removed, with
another topic of the same name when its own was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dafka.sockets.peer import Peer
from dafka.zper.connected import Connected
from dafka.zper.discarded import Discarded
from dafka.zper.identity import InvalidIdentityError, parse
from dafka.zper.places import Places
from dafka.zper.singles import Frames
from dafka.zper.streams import Stream, Streams


class Relay:
    """Handles the clients of a :class:`dafka.sockets.router.Router`. Hub side."""

    def __init__(self, places: Places, streams: Streams, discarded: Discarded) -> None:
        self._places = places
        self._streams = streams
        self._discarded = discarded
        self._clients: dict[Peer, Stream] = {}

    def clients(self) -> Iterator[Connected]:
        """The connected clients whose identity could be read."""
        for peer, stream in list(self._clients.items()):
            yield Connected("relay", peer.address, stream.topic, 0, position=stream.position)

    def joined(self, peer: Peer) -> None:
        """A client has connected: from now on it gets what is written."""
        if peer.socket_type == b"PUSH":
            self._discarded.report("socket-type", f"{peer} at the ZPRelay cannot receive anything")
            return
        try:
            place = self._places.of(parse(peer.identity))
        except InvalidIdentityError as error:
            self._discarded.report("identity", f"a client of the ZPRelay is ignored: {error}")
            return
        self._clients[peer] = self._streams.start(peer, place, None, False)

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """Messages of clients of the relay are ignored."""

    def left(self, peer: Peer) -> None:
        """A client has gone."""
        stream = self._clients.pop(peer, None)
        if stream is not None:
            stream.kill()
