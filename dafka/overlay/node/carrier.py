"""One endpoint on the hub: its role and its connector, with sockets, time and queues.

Everything here belongs to the hub's thread. The role and the connector decide; their outputs are carried out
in :meth:`Carrier.carry`, in order. Nothing here waits, but for what says so.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_later_turn
from dafka.overlay.connector import Connector, Open
from dafka.overlay.connector import Output as ConnectorOutput
from dafka.overlay.filters import reduced
from dafka.overlay.flow import Pause, Resume, Room
from dafka.overlay.limits import TICK_SECONDS
from dafka.overlay.node import limits
from dafka.overlay.node.connections.attempts import Attempts
from dafka.overlay.node.connections.congestion import Congestion
from dafka.overlay.node.connections.doors import Doors, Where
from dafka.overlay.node.connections.link import Link
from dafka.overlay.node.connections.links import Links
from dafka.overlay.node.connections.tls import Security
from dafka.overlay.node.errors import Closed
from dafka.overlay.node.publishing import Publishing
from dafka.overlay.node.questions import Questions
from dafka.overlay.node.receiving import Receiving
from dafka.overlay.node.subscriber import StatusSubscriber, Subscriber
from dafka.overlay.node.subscribers import Subscribers
from dafka.overlay.node.types import EndpointId, PeerInfo
from dafka.overlay.peering.outputs import Close, PeerDown, PeerUp, Pong, Refused, Send
from dafka.overlay.peering.statuses import (
    ERRORS,
    STATUSES,
    NetworkInfo,
    Status,
    error_value,
    status_value,
)
from dafka.overlay.role import EndpointRole, Output
from dafka.overlay.routing.outputs import Deliver, DeliverMany, Discovered, Unreachable
from dafka.overlay.stores.hosting import StoreOutput
from dafka.overlay.values import encode
from dafka.overlay.wire.handshake import WITH_ROUTING
from dafka.protocol.errors import MalformedMessage
from dafka.sockets import listening
from dafka.sockets.hosts import host_and_port

log = logging.getLogger(__name__)


class Carrier:
    """The endpoint ``me``."""

    def __init__(
        self,
        hub: Hub,
        me: bytes,
        versions: tuple[int, int],
        security: Security,
        overflow: str = "wait",
    ) -> None:
        self.hub = hub
        self.me = me
        self.role = EndpointRole(me, time.time_ns() // 1000, lambda: secrets.randbits(63), versions, overflow)
        self.subscribers = Subscribers(self._room)
        self.role.core.full = self.subscribers.full
        self._publishing = Publishing(hub, self.role, self.subscribers, self.carry)
        self.pending = self._publishing.pending
        self._receiving = Receiving(hub, self.role, self.carry)
        self._congestion = Congestion(hub, self.role.core, self.carry)
        self._statuses: list[StatusSubscriber] = []
        self.store_listeners: list[Callable[[StoreOutput], None]] = []
        """Called with what happens to stores."""
        self.on_close: list[Callable[[], None]] = []
        """Called when the endpoint is closed, before its peers are told; may wait."""
        self._connector = Connector()
        self._doors = Doors(hub, security, self._begin, self._failed)
        self._links = Links(hub, self)
        self._peers: dict[bytes, Link] = {}
        self._attempts = Attempts()
        self._forwarded: set[bytes] = set()
        self._changed = Changes()
        self._up: set[int] = set()  # links whose handshake is over
        self._questions = Questions()
        self._routes_of = 0  # how often routes had changed when it was looked at last
        self._goes_on = False  # with what the role is behind with
        self._is_closed = False
        self._ticking = hub.keep(self._tick)

    # -- connections --------------------------------------------------------------------------------

    def listen(self, host: str, port: int) -> int:
        """Accept peers; the port. Raises OSError, InsecureAddress."""
        self.check()
        return self._doors.listen(host, port)

    @property
    def addresses(self) -> list[Where]:
        """Where this endpoint listens."""
        return self._doors.addresses

    def peer(self, address: NetworkInfo, wait: bool, timeout: float | None) -> bool:
        """Connect, now and again. ``wait``: until the handshake is over; whether the two are peers then.

        Raises InsecureAddress.
        """
        self.check()
        where = address.address, address.port
        self._doors.security.check(where[0])
        if any(link.is_connector and link.address == where for link in self._peers.values()):
            self._carry_connector(self._connector.peer(address))
            return not wait or self.await_routes(timeout)
        if not wait:
            self._carry_connector(self._connector.peer(address))
            return False
        ends = None if timeout is None else self.now + timeout
        result = self._attempts.expect(where)
        self._carry_connector(self._connector.peer(address))
        if not self._attempts.wait(where, result, timeout):
            return False
        return self.await_routes(None if ends is None else max(0.0, ends - self.now))

    def unpeer_address(self, host: str, port: int) -> bool:
        """Leave the peer at an address, and do not connect to it again; waits for the goodbye."""
        peer, outputs = self._connector.unpeer(host, port)
        self._carry_connector(outputs)
        self._attempts.resolve((host, port), False)
        if peer is None:
            for link in self._links:
                if link.is_connector and link.address == (host, port) and link.number not in self._up:
                    self.carry(self.role.disconnected(self.now, link.number))
            return not outputs
        return self.unpeer(peer) or not outputs

    def unpeer(self, peer: bytes) -> bool:
        """Say goodbye to a direct peer, and wait for the end of the connection; whether it was one."""
        if peer not in self._peers:
            return False
        self.carry(self.role.unpeer(self.now, peer))
        self._wait_until(lambda: peer not in self._peers, limits.UNPEER_SECONDS)
        return True

    def await_peer(self, peer: bytes, timeout: float | None) -> bool:
        """Wait until a peer is reachable."""
        return (
            self._wait_until(lambda: self._is_closed or self.is_reachable(peer), timeout)
            and not self._is_closed
        )

    def await_routes(self, timeout: float | None) -> bool:
        """Wait until all direct peers have told whom they know, and what those want."""
        # Messages of a neighbour come in order, so nothing is left of it behind its answer. Those of version
        # 1 have told everything in the handshake.
        asked = [peer for peer, link in self._peers.items() if not link.is_plain]
        question, silent = self._questions.ask(asked)
        for peer in asked:
            self.carry(self.role.core.ping(peer, question))
        try:
            return self._wait_until(lambda: self._is_closed or not silent, timeout) and not self._is_closed
        finally:
            self._questions.end(question)

    def await_subscriber(self, topic: bytes, peer: bytes | None, timeout: float | None) -> bool:
        """Wait until what is published on a topic reaches somebody, or this peer."""
        core = self.role.core
        return (
            self._wait_until(lambda: self._is_closed or core.is_wanted(topic, peer), timeout)
            and not self._is_closed
        )

    def peers(self) -> list[PeerInfo]:
        """Direct peers, addresses that are tried, and those behind other peers."""
        infos = [
            PeerInfo(
                EndpointId(peer),
                host_and_port(*link.address),
                frozenset({"outbound" if link.is_connector else "inbound"}),
                "peered",
            )
            for peer, link in self._peers.items()
        ]
        at = {link.address for link in self._peers.values() if link.is_connector}
        for address in self._connector.addresses:
            where = address.address, address.port
            if where not in at:
                infos.append(PeerInfo(None, host_and_port(*where), frozenset({"outbound"}), "connecting"))
        for peer in self.role.core.peer.peers:
            if peer not in self._peers:
                infos.append(PeerInfo(EndpointId(peer), None, frozenset({"remote"}), "reachable"))
        return infos

    def is_reachable(self, peer: bytes) -> bool:
        return peer in self._peers or self.role.core.peer.is_reachable(peer)

    def _wait_until(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        ends = None if timeout is None else time.monotonic() + timeout
        while not condition():
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._changed.wait(left)
        return True

    # -- users --------------------------------------------------------------------------------------

    def announce(self) -> None:
        """The subscribers, or what is forwarded, have changed."""
        if not self._is_closed:
            self.carry(self.role.subscribe(self.subscribers.filter))

    def add_subscriber(self, subscriber: Subscriber) -> None:
        self.check()
        self.subscribers.add(subscriber)
        self.announce()

    def change_subscriber(self, subscriber: Subscriber) -> None:
        self.subscribers.change(subscriber)
        self.announce()

    def add_listener(self, subscriber: StatusSubscriber) -> None:
        self.check()
        self._statuses.append(subscriber)

    def remove_listener(self, subscriber: StatusSubscriber) -> None:
        if subscriber in self._statuses:
            self._statuses.remove(subscriber)

    def forward(self, prefixes: Iterable[bytes]) -> None:
        self.check()
        forwarded = self._forwarded | set(prefixes)
        self.subscribers.forward(reduced(forwarded))
        self._forwarded = forwarded
        self.announce()

    def publish_to(self, receiver: bytes, topic: bytes, payload: bytes) -> None:
        self.check()
        self.carry(self.role.core.publish_to(receiver, topic, payload))

    def ask_links(self, peer: bytes) -> bool:
        self.check()
        self.carry(self.role.ask_links(peer))
        return self.role.answers_links(peer)

    def check(self) -> None:
        """Raises :class:`Closed`."""
        if self._is_closed:
            raise Closed("the endpoint was closed")

    @property
    def now(self) -> float:
        return time.monotonic()

    def _room(self, subscriber: Subscriber) -> None:
        self.carry(self.role.core.room(subscriber))
        self._publishing.unblock()

    # -- outputs ------------------------------------------------------------------------------------

    def carry(self, outputs: Iterable[Output]) -> None:
        """Carry out what the role asks for."""
        links = self._links
        for output in outputs:
            match output:
                case Send(number, octets):
                    link = links.get(number)
                    if link is not None:
                        links.send(link, octets)
                        if link.is_plain and link.is_congested:
                            self._congestion.begin(link, self._peers)
                case DeliverMany(publisher, topic, payloads):
                    self.subscribers.deliver(topic, payloads, publisher)
                case Deliver(publisher, _, topic, payload):
                    self.subscribers.deliver(topic, [payload], publisher)
                case Close(number):
                    link = links.pop(number)
                    if link is not None:
                        link.finish()
                case Pause(number):
                    links[number].pause()
                case Resume(number):
                    links[number].resume()
                case Room():
                    self._publishing.unblock()
                case StoreOutput():
                    for listener in list(self.store_listeners):
                        listener(output)
                case _:
                    self._hear(output)
        if self._routes_of != self.role.core.changes:
            self._routes_of = self.role.core.changes
            self._changed.tell()
        if self.role.core.is_behind and not self._goes_on:
            self._goes_on = True
            in_later_turn(self._go_on)

    def _go_on(self, _: None) -> None:
        self._goes_on = False
        self.carry(self.role.go_on(self.now))
        if not self._goes_on:
            self._changed.tell()

    def _hear(self, output: Any) -> None:
        match output:
            case PeerUp(number, peer, version):
                link = self._links[number]
                link.is_plain = version < WITH_ROUTING
                link.established()
                self._peers[peer] = link
                self._up.add(number)
                self._attempts.resolve(link.address, True)
            case PeerDown(number, peer):
                self._peers.pop(peer, None)
                self._up.discard(number)
                self._questions.gone(peer)
            case Pong(peer, question):
                self._questions.answered(peer, question)
            case Refused(number, _, _, _, redundant):
                refused = self._links.get(number)
                if refused is not None and refused.is_connector:
                    self._attempts.resolve(refused.address, redundant)
            case Discovered() | Unreachable():
                pass
        self._carry_connector(self._connector.hear(self.now, output))
        self._changed.tell()

    def _carry_connector(self, outputs: Iterable[ConnectorOutput]) -> None:
        for output in outputs:
            if isinstance(output, Open):
                self._doors.dial(output.address)
                continue
            for subscriber in self._statuses:
                subscriber.tell(output)
            if isinstance(output, Status):
                topic, value = STATUSES, status_value(output)
            else:
                topic, value = ERRORS, error_value(output)
            if self.subscribers.has(topic):
                self.subscribers.deliver(topic, [encode(value)], self.me)

    # -- links --------------------------------------------------------------------------------------

    def _failed(self, address: NetworkInfo) -> None:
        self._carry_connector(self._connector.failed(self.now, address))
        if address.retry <= 0:
            self._attempts.resolve((address.address, address.port), False)

    def _begin(self, socket: Any, where: Where, opened: NetworkInfo | None) -> None:
        is_wanted = opened is None or where in [(one.address, one.port) for one in self._connector.addresses]
        if self._is_closed or not is_wanted:
            listening.close(socket)  # it was unpeered meanwhile
            return
        link = self._links.add(socket, where, opened is not None)
        if opened is not None:
            self._connector.opened(opened, link.number)
        else:
            self._connector.accepted(link.number, *where)
        self.hub.spawn(link.run)

    def began(self, link: Link) -> None:
        if link.is_connector and not self._connector.is_wanted(link.number):
            self._links.pop(link.number)  # it was unpeered before it began
            link.finish()
            return
        self.carry(self.role.connected(self.now, link.number, link.is_connector))

    def heard(self, link: Link, messages: list[bytes]) -> None:
        self._receiving.receive(link.number, messages)

    def malformed(self, link: Link, error: MalformedMessage) -> None:
        self.carry(self.role.malformed(self.now, link.number, error))

    def ended(self, link: Link) -> None:
        self.carry(self.role.disconnected(self.now, link.number))
        self._links.pop(link.number)

    # -- time and the end ---------------------------------------------------------------------------

    def _tick(self) -> None:
        due = self.now + TICK_SECONDS
        while True:
            expiry = self.role.next_expiry
            until = due if expiry is None else min(due, expiry)
            gevent.sleep(max(until - self.now, limits.EXPIRY_SECONDS))
            now = self.now
            if now < due:
                self.carry(self.role.expire(now))
                continue
            due = now + TICK_SECONDS
            self.carry(self.role.tick(now))
            self._carry_connector(self._connector.tick(now))
            self._links.tend()
            self._publishing.unblock()

    def close(self) -> None:
        """Say goodbye to all peers and close everything; waits for their answers for some seconds."""
        if self._is_closed:
            return
        self._is_closed = True
        for call in list(self.on_close):
            call()
        error = Closed("the endpoint was closed")
        self.pending.close(error)
        pace = Pace()
        while self._publishing.waiting:
            self._publishing.drain()
            pace.rest()
        self._doors.close_ports()
        with gevent.Timeout(limits.FLUSH_SECONDS, False):
            while self.role.core.flow.waiting:
                gevent.sleep(0.005)
        for output in Pace().over(self.role.shut_down(self.now), every=1):
            self.carry([output])
        self._wait_until(lambda: not (self._peers or self._goes_on), limits.UNPEER_SECONDS)
        self._ticking.kill(block=False)
        self._doors.close()
        self._links.close()
        self.subscribers.shut(error)
        for subscriber in self._statuses:
            subscriber.shut(error)
        self._attempts.close()
        self._changed.tell()
