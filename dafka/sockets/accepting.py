"""The peers of a socket that listens: accepted, counted, looked after and closed together."""

from __future__ import annotations

import time
from typing import Any

import gevent

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.sockets import limits, listening
from dafka.sockets.endpoints import Endpoint
from dafka.sockets.greetings import Greetings
from dafka.sockets.peer import Pattern, Peer
from dafka.sockets.shared import USUAL, Bounds, Shared
from dafka.zmtp.connection import Options


class Accepting:
    """Accepts peers on ``socket``, a bound socket from :func:`dafka.sockets.listening.bind`. Hub side."""

    def __init__(
        self,
        hub: Hub,
        socket: Any,
        pattern: Pattern,
        options: Options,
        bounds: Bounds = USUAL,
    ) -> None:
        self.shared = Shared(hub, self._established, bounds)
        self.accepted = 0
        self._hub = hub
        self._pattern = pattern
        self._options = options
        self._peers: dict[Peer, gevent.Greenlet] = {}
        self._greetings: Greetings[Peer] = Greetings(limits, Peer.close)
        self._port = listening.Port(hub, socket, self._accept)
        host, port = self._port.address
        self.endpoint = str(Endpoint(host, port))
        self._tending = hub.keep(self._tend)

    def metrics(self) -> dict[str, int]:
        """By the names of :mod:`dafka.sockets.metrics`."""
        return {
            "connections": len(self._peers),
            "peers": len(self._peers) - len(self._greetings),
            "accepted": self.accepted,
            **self.shared.metrics(),
        }

    def close(self) -> None:
        """Close the port and all connections; queued octets are sent first, for LINGER_SECONDS at most."""
        self._port.close()
        ends = time.monotonic() + limits.LINGER_SECONDS
        while self._is_sending and time.monotonic() < ends:
            gevent.sleep(0.005)
        self._tending.kill(block=False)
        greens = [green for green in self._peers.values() if green is not gevent.getcurrent()]
        for peer in Pace().over(list(self._peers), every=16):
            peer.close()
        for green in Pace().over(greens):
            green.kill(block=False)
        gevent.joinall(greens, timeout=limits.LINGER_SECONDS)
        self.shared.reasons.close()

    @property
    def _is_sending(self) -> bool:
        return not self.shared.queued.is_free() or any(peer.queued for peer in self._peers)

    def _accept(self, socket: Any, address: Any) -> None:
        self.accepted += 1
        if len(self._peers) >= limits.CONNECTIONS:
            detail = f"{address[0]}:{address[1]} refused: there are {limits.CONNECTIONS} connections"
            self.shared.reasons.report("connections", detail)
            listening.close(socket)
            return
        self._greetings.make_room()
        peer = Peer(self.shared, self._pattern, self._options, socket, address)
        self._greetings.add(peer)
        self._peers[peer] = self._hub.spawn(self._run, peer)

    def _run(self, peer: Peer) -> None:
        try:
            peer.run()
        finally:
            self._peers.pop(peer, None)
            self._greetings.remove(peer)

    def _established(self, peer: Peer) -> None:
        self._greetings.remove(peer)

    def _tend(self) -> None:
        while True:
            gevent.sleep(limits.TEND_SECONDS)
            now = time.monotonic()
            self._greetings.end_late()
            if self._options.mechanism is not None:
                for peer in Pace().over(list(self._peers)):
                    if not peer.is_welcome():
                        peer.close("key", "its key was taken off the list")
            for peer in Pace().over(list(self.shared.with_ttl)):
                if peer.silent(now) > peer.ttl:
                    peer.close("silent", f"nothing was received for the {peer.ttl:g} s of its last PING")
            if self.shared.queued.waiting:
                for peer in Pace().over(list(self._peers)):
                    if peer.stuck(now) > limits.UNREAD_SECONDS:
                        peer.close("unread", f"it has read nothing for {limits.UNREAD_SECONDS:g} s")
            if self.shared.budget.waiting:
                for slow in self.shared.budget.held_since(now - limits.MESSAGE_SECONDS):
                    if isinstance(slow, Peer) and slow.waits_since is not None:
                        detail = f"a message took longer than {limits.MESSAGE_SECONDS:g} s to arrive"
                        slow.close("slow", detail)
