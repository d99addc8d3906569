"""PUB and XPUB: a server that sends each message to those who subscribe to what its first frame begins with.

::

    publisher = Publisher(hub, listening.bind("127.0.0.1", 0))
    publisher.send([b"topic", b"more"])        # or send_many([...]), in a green thread
    publisher.endpoint; publisher.metrics(); publisher.discarded; publisher.close()

A subscriber whose queue is full loses messages, as with libzmq's PUB; they are counted as ``dropped``.
Nobody waits for a subscriber. The subscriptions of each and of all are bounded
(:class:`~dafka.zmtp.subscriptions.Most`); beyond, the subscriber is disconnected (cause ``subscriptions``).
Other messages of subscribers are ignored.

With a ``watcher`` it is an XPUB, which tells of each subscription (as libzmq's does with XPUB_VERBOSE) and of
each prefix that nobody is subscribed to any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.sockets import limits
from dafka.sockets.accepting import Accepting
from dafka.sockets.batches import batches
from dafka.sockets.leases import IS_SAFE, Lease
from dafka.sockets.peer import Peer
from dafka.sockets.shared import USUAL, Bounds
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.connection import Options
from dafka.zmtp.cutting import Frames
from dafka.zmtp.encoding import Message
from dafka.zmtp.mechanisms import MakeMechanism
from dafka.zmtp.subscriptions import USUAL as USUAL_SUBSCRIPTIONS
from dafka.zmtp.subscriptions import Most, Subscriptions


class Watcher(Protocol):
    """The user of a publisher, told of subscriptions in the peer's green thread, which may wait."""

    def allows(self, peer: Peer, prefix: bytes) -> bool:
        """Whether a peer may subscribe; other subscriptions are ignored."""

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        """A peer has subscribed, maybe not as the first one."""

    def cancelled(self, prefix: bytes) -> None:
        """Nobody is subscribed any more."""


class Publisher:
    """Serves subscribers on ``socket``, from :func:`dafka.sockets.listening.bind`. Hub side.

    ``mechanism``: decides which peers may connect (:mod:`dafka.zmtp.mechanisms`); None: all.
    """

    def __init__(
        self,
        hub: Hub,
        socket: Any,
        *,
        watcher: Watcher | None = None,
        most: Most = USUAL_SUBSCRIPTIONS,
        bounds: Bounds = USUAL,
        mechanism: MakeMechanism | None = None,
    ) -> None:
        self._subscriptions: Subscriptions[Peer] = Subscriptions(most)
        shown = b"PUB" if watcher is None else b"XPUB"
        options = Options((shown,), accepts=True, max_octets=zmtp_limits.COMMAND_OCTETS, mechanism=mechanism)
        pattern = _Pattern(self._subscriptions, watcher, self.revoke)
        self._accepting = Accepting(hub, socket, pattern, options, bounds)
        self._pace = Pace()
        self.endpoint = self._accepting.endpoint
        self.discarded = self._accepting.shared.discarded

    def send(self, message: Message) -> None:
        """Publish a message."""
        self.send_many([message])

    def send_many(self, messages: Sequence[Message]) -> None:
        """Publish messages; faster than one by one if many in a row have the same first frame."""
        for first, alike in groupby(messages, key=_first):
            peers = self._subscriptions.matching(first)
            if peers:
                self._send(peers, list(alike))

    def send_encoded(self, first: bytes, buffers: list[bytes], count: int) -> None:
        """Publish ``count`` encoded messages, whose first frames begin with ``first`` as far as anybody's
        subscription matches. Does not wait."""
        octets = sum(map(len, buffers))
        shared = self._accepting.shared
        for peer in self._subscriptions.matching(first):
            if not peer.offer_encoded(buffers, count, octets):
                shared.dropped += count

    def lease(self, first: bytes) -> Lease | None:
        """The right to send messages whose first frames begin with ``first`` without the hub.

        None: nobody gets them, or too many do, or their connections do not allow it.
        """
        peers = self._subscriptions.matching(first)
        if not IS_SAFE or not 0 < len(peers) <= limits.LEASED_PEERS:
            return None
        outboxes = [peer.outbox for peer in peers]
        leased = [outbox for outbox in outboxes if outbox is not None]
        return Lease(self._accepting.shared.queued, leased) if len(leased) == len(peers) else None

    def revoke(self) -> None:
        """Take all leases back: somebody else may have to get what is sent from now on."""
        self._accepting.shared.queued.version += 1

    def count_flight(self, peers: int, octets: int) -> None:
        """Count a message of so many octets that was sent by a lease to so many peers; the rest of one that
        they did not take is sent."""
        shared = self._accepting.shared
        shared.messages_out += peers
        shared.queued.count_flight(peers * octets)

    def has_subscribers(self, first: bytes) -> bool:
        """Whether anybody gets a message with that first frame."""
        return bool(self._subscriptions.matching(first))

    def metrics(self) -> dict[str, int]:
        """Figures by the names of :mod:`dafka.sockets.metrics`."""
        return {**self._accepting.metrics(), "subscriptions": len(self._subscriptions)}

    def close(self) -> None:
        """Close the port and all connections; queued octets are sent first, for LINGER_SECONDS at most."""
        self._accepting.close()

    def _send(self, peers: list[Peer], messages: list[Message]) -> None:
        shared = self._accepting.shared
        for buffers, count, octets in batches(messages):
            for peer in peers:
                if not peer.offer_encoded(buffers, count, octets):
                    shared.dropped += count
                if shared.turns.elapsed > limits.TURN_SECONDS:
                    self._pace.pause()


class _Pattern:
    def __init__(
        self, subscriptions: Subscriptions[Peer], watcher: Watcher | None, changed: Callable[[], None]
    ) -> None:
        self._subscriptions = subscriptions
        self._watcher = watcher
        self._changed = changed

    def joined(self, peer: Peer) -> None:
        pass  # it gets nothing before it subscribes

    def messages(self, peer: Peer, messages: list[Frames]) -> None:
        pass  # a PUB has no use for them

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        if peer.is_closed:
            return  # it had sent this before it was closed
        if self._watcher is not None and not self._watcher.allows(peer, prefix):
            return
        self._subscriptions.add(peer, prefix)
        self._changed()
        if self._watcher is not None:
            self._watcher.subscribed(peer, prefix)

    def cancelled(self, peer: Peer, prefix: bytes) -> None:
        self._changed()
        if self._subscriptions.cancel(peer, prefix) and self._watcher is not None:
            self._watcher.cancelled(prefix)

    def left(self, peer: Peer) -> None:
        self._changed()
        for prefix in Pace().over(self._subscriptions.forget(peer)):
            if self._watcher is not None and not self._subscriptions.has(prefix):
                self._watcher.cancelled(prefix)


def _first(message: Message) -> bytes:
    return message[0]
