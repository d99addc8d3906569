"""The endpoint: the presence of one program, or of a part of it, in the overlay. Any thread may use it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from dafka.hub.completion import run_to_completion
from dafka.hub.hub import get_hub
from dafka.hub.waits import wait_of
from dafka.overlay.node import limits
from dafka.overlay.node.carrier import Carrier
from dafka.overlay.node.connections.tls import Secured, Security
from dafka.overlay.node.errors import AddressError
from dafka.overlay.node.publisher import Publisher, payload_of, topic_octets
from dafka.overlay.node.stores.disk import Disk, Memory
from dafka.overlay.node.stores.store import Store, attach
from dafka.overlay.node.subscriber import StatusSubscriber, Subscriber, text_of
from dafka.overlay.node.types import EndpointId, PeerInfo, parse_address
from dafka.overlay.peering.handshake import VERSIONS, check_versions
from dafka.overlay.peering.statuses import Error, Status
from dafka.overlay.values import Value
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.zeek import ZeekMessage
from dafka.sockets.hosts import host_and_port

Peer = str | bytes
"""An address (``"host:port"``), or an endpoint's id: its 16 octets, or a UUID's text."""


class Endpoint:
    """Peers with other endpoints, publishes, subscribes and has data stores.

    ::

        with Endpoint(listen="127.0.0.1:0", peers=["host:port"]) as endpoint:
            subscriber = endpoint.subscribe("/zeek/event")
            endpoint.publish("/topic", ("any", 1, "value"))
            message = subscriber.get(timeout=10)

    ``listen``: an address to accept peers on, or several. ``peers``: addresses to connect to, again after
    each disconnect. ``id``: 16 octets or a UUID's text; by default a new one. Raises ValueError for an
    invalid id or address, OSError when it cannot listen.

    ``tls`` says how connections are secured: :class:`Tls` with certificates, ``"anonymous"`` (encrypted, but
    neither end proves who it is; Zeek's way without certificates), ``"plain"``. Both ends have to agree. By
    default they are plain, and lead to loopback addresses only; others raise
    :class:`~dafka.overlay.node.errors.InsecureAddress`. Raises :class:`~dafka.security.TlsError` for files
    that cannot be used.

    ``websocket``: an address for WebSocket clients, or several, see :meth:`listen_websocket`.

    ``overflow`` says what happens when a peer reads more slowly than this endpoint publishes: ``wait``
    (:meth:`publish` does), ``disconnect`` (it is left), ``drop_newest``, ``drop_oldest``.

    Timeouts are in seconds; None and infinity are for ever. NaN is a ValueError.
    """

    def __init__(
        self,
        listen: str | Iterable[str] = (),
        peers: Iterable[str] = (),
        *,
        id: str | bytes | None = None,
        tls: Secured = None,
        overflow: str = "wait",
        versions: tuple[int, int] = VERSIONS,
        websocket: str | Iterable[str] = (),
    ) -> None:
        check_versions(versions)
        listens, websockets = _addresses("listen", listen), _addresses("websocket", websocket)
        connects = _addresses("peers", peers)
        self.id = EndpointId.random() if id is None else EndpointId.parse(id)
        self._security = Security(tls)
        self._hub = get_hub()
        self._carrier: Carrier = self._hub.run(
            Carrier, self._hub, bytes(self.id), versions, self._security, overflow
        )
        self._callbacks: StatusSubscriber | None = None
        self._websockets: list[Any] = []
        try:
            for address in listens:
                self.listen(address)
            for address in websockets:
                self.listen_websocket(address)
            for address in connects:
                self.peer_nosync(address)
        except BaseException:
            self.close()
            raise

    # -- peers --------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The first address that it listens on, ``"host:port"``. Raises ValueError if there is none."""
        addresses = self._hub.run(lambda: self._carrier.addresses)
        if not addresses:
            raise ValueError("this endpoint does not listen")
        return host_and_port(*addresses[0])

    def listen(self, address: str = "127.0.0.1:0") -> int:
        """Accept peers on an address; port 0 is any free one. The port. Raises OSError, InsecureAddress."""
        where = parse_address(address)
        return self._hub.run(self._carrier.listen, where.address, where.port)

    def listen_websocket(self, address: str = "127.0.0.1:0", **options: Any) -> int:
        """Serve WebSocket clients on an address (``/v1/messages/json``); port 0 is any free one. The port.

        ``options`` are ``ssl_context`` for wss, by default that of the endpoint's ``tls``; ``origins`` of web
        pages from elsewhere that may connect, None for all; ``tokens`` that clients show, a list of them, a
        :class:`pathlib.Path` of a file, or :class:`dafka.security.OAuthTokens`; ``capacity``, messages that
        wait for each client, and ``overflow``, what happens beyond, as in :meth:`subscribe` but by default
        ``disconnect``.

        Raises OSError, and :class:`~dafka.overlay.websocket.errors.MissingLibrary` where the package
        websockets is not installed.
        """
        where = parse_address(address)
        if options.setdefault("ssl_context", self._security.server_context) is None:
            self._security.check(where.address)
        # By its name: it is above this package, and what it needs may be missing.
        make = import_module("dafka.overlay.websocket.server").Server
        server = self._hub.run(make, self._carrier, where.address, where.port, **options)
        self._websockets.append(server)
        return int(server.address[1])

    @property
    def websocket_address(self) -> str:
        """The first address for WebSocket clients, ``"host:port"``. Raises ValueError if there is none."""
        if not self._websockets:
            raise ValueError("this endpoint does not listen for WebSocket clients")
        return host_and_port(*self._websockets[0].address)

    def peer(self, address: str, retry: float = limits.RETRY_SECONDS, timeout: float | None = None) -> bool:
        """Connect to an endpoint and wait until the two are peers; whether they are.

        It stays connected: a lost connection is made again at once, a failed attempt is repeated after
        ``retry`` seconds; 0: there is one attempt. False means that the endpoint has refused, that the only
        attempt has failed, or that ``timeout`` seconds are over; attempts go on unless ``retry`` is 0.
        Messages published from then on reach all nodes that this endpoint knew, see :meth:`await_routes`.
        """
        return self._hub.run(self._carrier.peer, parse_address(address, retry), True, wait_of(timeout))

    def peer_nosync(self, address: str, retry: float = limits.RETRY_SECONDS) -> None:
        """:meth:`peer` without waiting."""
        self._hub.run(self._carrier.peer, parse_address(address, retry), False, None)

    def unpeer(self, peer: Peer) -> bool:
        """Say goodbye to a peer, by its address or id, and do not connect to it again.

        Waits until the connection has ended. False if there was no such peer or address.
        """
        try:
            where = parse_address(peer) if isinstance(peer, str) else None
        except AddressError:
            where = None
        if where is not None:
            return self._hub.run(self._carrier.unpeer_address, where.address, where.port)
        return self._hub.run(self._carrier.unpeer, bytes(EndpointId.parse(peer)))

    def peers(self) -> list[PeerInfo]:
        """All peers: direct ones, addresses that it tries to connect to, and those behind other peers."""
        return self._hub.run(self._carrier.peers)

    def paths(self) -> dict[EndpointId, list[list[EndpointId]]]:
        """The paths to each known peer, the shortest first: their hops, the last of which is the peer."""
        known = self._hub.run(lambda: self._carrier.role.core.paths)
        return {
            EndpointId(peer): [list(map(EndpointId, hops)) for hops in paths] for peer, paths in known.items()
        }

    def filters(self) -> dict[EndpointId, list[str]]:
        """The prefixes of topics that the known peers want, by their ids."""
        known = self._hub.run(lambda: self._carrier.role.core.filters)
        return {EndpointId(peer): list(map(text_of, prefixes)) for peer, prefixes in known.items()}

    def ask_links(self, id: str | bytes) -> bool:
        """Ask a peer whom it is peered with; it answers as :mod:`dafka.overlay.wire.links` says.

        False for a peer that never answers, one of libbroker's.
        """
        return self._hub.run(self._carrier.ask_links, bytes(EndpointId.parse(id)))

    def await_peer(
        self,
        id: str | bytes,
        timeout: float | None = None,
        callback: Callable[[bool], object] | None = None,
    ) -> bool:
        """Wait until a peer is reachable, directly or over others; False after ``timeout`` seconds.

        With a ``callback``: returns whether it is now, and calls it with the outcome in another thread.
        """
        peer = bytes(EndpointId.parse(id))
        limit = wait_of(timeout)
        if callback is None:
            return self._hub.run(self._carrier.await_peer, peer, limit)

        def wait() -> None:
            callback(self._hub.run(self._carrier.await_peer, peer, limit))

        threading.Thread(target=wait, name="dafka-await-peer", daemon=True).start()
        return self._hub.run(self._carrier.is_reachable, peer)

    def await_routes(self, timeout: float | None = None) -> bool:
        """Wait until all direct peers have told whom they know now, and what those want.

        False after ``timeout`` seconds.
        """
        return self._hub.run(self._carrier.await_routes, wait_of(timeout))

    def await_subscriber(
        self, topic: str | bytes, id: str | bytes | None = None, timeout: float | None = None
    ) -> bool:
        """Wait until what is published here on a topic reaches another endpoint, or the one with this id.

        A new subscription takes a moment to be known everywhere; messages published before that do not reach
        it. False after ``timeout`` seconds. Subscribers of this endpoint itself do not count.
        """
        peer = None if id is None else bytes(EndpointId.parse(id))
        return self._hub.run(self._carrier.await_subscriber, topic_octets(topic), peer, wait_of(timeout))

    def statuses(
        self, errors: bool = True, capacity: int = limits.STATUSES, statuses: bool = True
    ) -> StatusSubscriber:
        """The events of peers from now on, or ``errors`` or ``statuses`` alone.

        The oldest are dropped if nobody gets them.
        """
        kinds = [kind for kind, wanted in ((Error, errors), (Status, statuses)) if wanted]
        subscriber = StatusSubscriber(self._hub, tuple(kinds), capacity, self._forget_statuses)
        self._hub.run(self._carrier.add_listener, subscriber)
        return subscriber

    def on_status(self, callback: Callable[[Status | Error], object]) -> None:
        """Have ``callback(status_or_error)`` called for what happens to peers, in a thread of its own."""
        subscriber = self.statuses()

        def call() -> None:
            for news in subscriber:
                callback(news)

        threading.Thread(target=call, name="dafka-on-status", daemon=True).start()

    # -- messages -----------------------------------------------------------------------------------

    def publish(self, topic: str | bytes, value: Value | ZeekMessage, timeout: float | None = None) -> None:
        """Send a value to all subscribers of its topic, wherever they are.

        Waits while somebody who gets this topic is too slow, for ``timeout`` seconds at most: then the
        message is not sent, and :class:`~dafka.overlay.node.errors.Overloaded` is raised. Raises
        :class:`~dafka.overlay.errors.InvalidValue` for anything but a value, ValueError for a topic of more
        than 65 535 octets.
        """
        self._carrier.pending.put(topic_octets(topic), payload_of(value), timeout)

    def publish_batch(
        self, messages: Iterable[tuple[str | bytes, Value | ZeekMessage]], timeout: float | None = None
    ) -> None:
        """:meth:`publish` for each ``(topic, value)``; ``timeout`` is for each of them."""
        for topic, value in messages:
            self._carrier.pending.put(topic_octets(topic), payload_of(value), timeout)

    def publisher(self, topic: str | bytes) -> Publisher:
        """Publishes on one topic, and tells when it can do so without waiting."""
        return Publisher(self._carrier.pending, topic)

    def publish_to(self, id: str | bytes, topic: str | bytes, value: Value | ZeekMessage) -> None:
        """Send a value to one endpoint, whose subscribers of the topic get it; lost if it is unreachable."""
        receiver = bytes(EndpointId.parse(id))
        self._hub.run(self._carrier.publish_to, receiver, topic_octets(topic), payload_of(value))

    def subscribe(
        self,
        *prefixes: str | bytes,
        capacity: int = limits.SUBSCRIBER_MESSAGES,
        overflow: str = "wait",
        own: bool = False,
    ) -> Subscriber:
        """The messages whose topics begin with one of ``prefixes``, from now on.

        ``capacity``: messages that may wait in it. ``overflow`` says what happens beyond:
        ``wait`` (publishers are slowed down), ``disconnect`` (the subscriber is closed), ``drop_newest``,
        ``drop_oldest``. ``own``: also what this endpoint publishes.

        Raises :class:`~dafka.overlay.errors.TooManyPrefixes` if the subscribers of this endpoint had more
        than 5000 different ones, or more than 1 MiB of them; none is added then.
        """
        subscriber = Subscriber(self._hub, prefixes, capacity, overflow, own, self._change)
        self._hub.run(self._carrier.add_subscriber, subscriber)
        return subscriber

    def forward(self, prefixes: str | Iterable[str | bytes]) -> None:
        """Take part in topics without a subscriber: messages of libbroker's peers on them come here, and go
        on to others."""
        some = [prefixes] if isinstance(prefixes, str) else prefixes
        self._hub.run(self._carrier.forward, [octets_of(prefix) for prefix in some])

    # -- stores -------------------------------------------------------------------------------------

    def attach_master(self, name: str, backend: Memory | Disk | None = None) -> Store:
        """The one that decides about the store. ``backend``: where its content is, by default in memory.

        Raises :class:`~dafka.overlay.stores.errors.StoreRefused` if the store is known to have a master,
        :class:`~dafka.overlay.stores.errors.BackendFailure` if its folder cannot be opened.
        """
        return self._hub.run(attach, self._carrier, "master", name, backend)

    def attach_clone(self, name: str) -> Store:
        """A copy of a store, whose master may be any number of hops away."""
        return self._hub.run(attach, self._carrier, "clone", name)

    def attach_proxy(self, name: str) -> Store:
        """A store without content: its master, any number of hops away, is asked each time."""
        return self._hub.run(attach, self._carrier, "proxy", name)

    # -- the end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send what was published, say goodbye to all peers, and close everything.

        Waits for the peers' answers, for some seconds at most. Subscribers can still get what waits for them.
        """
        self._hub.run(run_to_completion, self._hub, self._carrier.close)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Endpoint {self.id}>"

    def _change(self, subscriber: Subscriber) -> None:
        self._hub.run(self._carrier.change_subscriber, subscriber)

    def _forget_statuses(self, subscriber: StatusSubscriber) -> None:
        self._hub.run(self._carrier.remove_listener, subscriber)


def _addresses(option: str, given: str | Iterable[str]) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"{option} is an address 'HOST:PORT' or a list of these, not {given!r:.100}")
    return list(given)
