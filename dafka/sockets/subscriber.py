"""SUB: a client that connects to any number of publishers, and hears what it has subscribed to.

::

    class Handler:
        def joined(self, peer): ...              # connected, and told of all subscriptions
        def messages(self, peer, messages): ...  # [(frame, ...), ...], in order
        def left(self, peer): ...                # disconnected; it is connected to again

    subscriber = Subscriber(hub, handler=Handler())
    subscriber.connect("tcp://127.0.0.1:5555"); subscriber.disconnect("tcp://127.0.0.1:5555")
    subscriber.subscribe(b"topic"); subscriber.unsubscribe(b"topic")
    subscriber.metrics(); subscriber.discarded; subscriber.close()

While ``messages`` waits, that publisher is not read, and no other one is held up: its messages wait in the
kernel's buffers, then in its own queue. Messages that a publisher had sent before it heard of
:meth:`Subscriber.unsubscribe` still come. How connections are made again is in
:mod:`dafka.sockets.connecting`.

With ``make_taker`` each connection has a :class:`~dafka.zmtp.cutting.Taker` of its own, ``peer.taker``:
messages that it takes in bulk are not among the ``messages``, which may then be empty.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import gevent

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.sockets import limits
from dafka.sockets.connecting import Connecting
from dafka.sockets.endpoints import to_connect
from dafka.sockets.peer import Peer
from dafka.sockets.router import Handler
from dafka.sockets.shared import USUAL, Bounds, Shared
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.connection import Options
from dafka.zmtp.cutting import Taker
from dafka.zmtp.mechanisms import MakeMechanism


class Subscriber:
    """Subscribes at publishers. Hub side. ``max_message``: octets of a message over all of its frames.

    ``mechanism``: how it shows who it is (:mod:`dafka.zmtp.mechanisms`); None: not at all.
    ``expect(endpoint, began, lost)`` waits until a publisher that was lost is to be connected to again
    (:mod:`dafka.sockets.connecting`); None: for no more than a pause.
    """

    def __init__(
        self,
        hub: Hub,
        *,
        handler: Handler,
        max_message: int = zmtp_limits.MESSAGE_OCTETS,
        make_taker: Callable[[], Taker] | None = None,
        bounds: Bounds = USUAL,
        mechanism: MakeMechanism | None = None,
        expect: Callable[[str, float, float], object] | None = None,
    ) -> None:
        self._hub = hub
        self._shared = Shared(hub, self._established, bounds)
        self._pattern = _Pattern(self, handler)
        self._expect = expect
        self._options = Options(
            (b"SUB",), accepts=False, max_octets=max_message, mechanism=mechanism, make_taker=make_taker
        )
        self._subscriptions: Counter[bytes] = Counter()
        self._connecting: dict[str, Connecting] = {}  # by endpoint
        self._leaving: dict[
            str, tuple[float, float]
        ] = {}  # endpoint: since when, for how long it must be quiet
        self._telling: dict[Peer, list[tuple[bool, bytes]]] = {}  # changes that a new peer is to be told
        self._connected = 0
        self._closed = False
        self._tending = hub.keep(self._tend)
        self.discarded = self._shared.discarded

    @property
    def peers(self) -> list[Peer]:
        """The publishers that are connected."""
        peers = (connecting.established for connecting in self._connecting.values())
        return [peer for peer in peers if peer is not None]

    def connect(self, endpoint: str) -> None:
        """Connect to a publisher, ``tcp://host:port``, unless that was done. Raises EndpointError.

        One that is about to be left is connected to anew.
        """
        address = to_connect(endpoint)
        if self._leaving.pop(endpoint, None) is not None:
            self.disconnect(endpoint)
        if endpoint not in self._connecting and not self._closed:
            expect = None if self._expect is None else partial(self._expect, endpoint)
            self._connecting[endpoint] = Connecting(
                self._hub, address, self._shared, self._pattern, self._options, endpoint, expect
            )

    def disconnect(self, endpoint: str, quiet: float = 0.0) -> None:
        """Leave a publisher; with ``quiet``, once nothing has come from it for so many seconds."""
        connecting = self._connecting.get(endpoint)
        if connecting is None:
            return
        if quiet and connecting.established is not None:
            self._leaving[endpoint] = time.monotonic(), quiet
            gevent.spawn_later(quiet + 0.01, self._leave)
            return
        self._leaving.pop(endpoint, None)
        del self._connecting[endpoint]
        connecting.close()

    def subscribe(self, prefix: bytes) -> None:
        """Hear messages whose first frame begins with ``prefix``. Subscriptions add up."""
        self._subscriptions[prefix] += 1
        if self._subscriptions[prefix] == 1:
            for peer in self.peers:
                if peer in self._telling:
                    self._telling[peer].append((True, prefix))
                else:
                    peer.subscribe(prefix)

    def unsubscribe(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""
        if prefix not in self._subscriptions:
            return
        self._subscriptions[prefix] -= 1
        if not self._subscriptions[prefix]:
            del self._subscriptions[prefix]
            for peer in self.peers:
                if peer in self._telling:
                    self._telling[peer].append((False, prefix))
                else:
                    peer.cancel(prefix)

    def metrics(self) -> dict[str, int]:
        """Figures by the names of :mod:`dafka.sockets.metrics`."""
        return {
            "connections": sum(one.peer is not None for one in self._connecting.values()),
            "peers": len(self.peers),
            "accepted": self._connected,
            "subscriptions": len(self._subscriptions),
            **self._shared.metrics(),
        }

    def close(self) -> None:
        """Leave all publishers. Does not wait: ``left`` of the peers may come later."""
        if self._closed:
            return
        self._closed = True
        if self._tending is not gevent.getcurrent():
            self._tending.kill(block=False)
        connecting, self._connecting = self._connecting, {}
        self._leaving.clear()
        for one in connecting.values():
            one.close()
        self._shared.reasons.close()

    def _established(self, peer: Peer) -> None:
        self._connected += 1

    def _tell_all(self, peer: Peer) -> None:
        """Tell a new peer of all subscriptions; changes made meanwhile come behind them."""
        changes = self._telling[peer] = [(True, prefix) for prefix in self._subscriptions]
        told, pace = 0, Pace()
        try:
            while told < len(changes):
                some = changes[told : told + limits.TOLD_AT_ONCE]
                peer.tell_subscriptions(some)
                told += len(some)
                pace.rest()
        finally:
            del self._telling[peer]

    def _tend(self) -> None:
        while True:
            gevent.sleep(limits.TEND_SECONDS)
            now = time.monotonic()
            for connecting in Pace().over(list(self._connecting.values())):
                connecting.tend(now)
            self._leave()

    def _leave(self) -> None:
        """Disconnect from those that have been quiet for long enough, while they were read."""
        now = time.monotonic()
        for endpoint, (since, quiet) in list(self._leaving.items()):
            peer = self._connecting[endpoint].established
            if peer is None or (peer.waits_since and now - max(since, peer.waits_since) >= quiet):
                self.disconnect(endpoint)


class _Pattern:
    def __init__(self, subscriber: Subscriber, handler: Handler) -> None:
        self._subscriber = subscriber
        self._handler = handler
        self.messages = handler.messages
        self.left = handler.left

    def joined(self, peer: Peer) -> None:
        self._subscriber._tell_all(peer)
        self._handler.joined(peer)

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        pass  # at a SUB nobody subscribes

    cancelled = subscribed
