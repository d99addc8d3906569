"""Endpoints: peers, messages and data stores."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from compat.broker._backends import backend_of
from compat.broker._configuration import Configuration
from compat.broker._enums import Backend, PeerFlags, PeerStatus
from compat.broker._publisher import Publisher
from compat.broker._status import EndpointInfo, NetworkInfo, PeerInfo
from compat.broker._store import Store
from compat.broker._subscribers import SafeSubscriber, StatusSubscriber, Subscriber
from compat.broker._topic import AnyTopic, Topic, topic_text, topic_texts
from compat.broker._values.conversion import to_value
from dafka import overlay
from dafka.hub.waits import bounded_wait
from dafka.overlay.node.types import parse_address
from dafka.sockets.hosts import host_and_port

log = logging.getLogger(__name__)

AWAIT_PEER_SECONDS = 10.0

E = TypeVar("E", bound="Endpoint")
S = TypeVar("S")

_EVERYWHERE = "0.0.0.0"


class Endpoint:
    """Peers with others, publishes, subscribes and has data stores. Any thread may call it.

    Connections are TLS, without certificates, unless the configuration says something else.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        configuration = Configuration() if configuration is None else configuration
        if not isinstance(configuration, Configuration):
            raise TypeError(f"an Endpoint is made of a Configuration, not of {type(configuration).__name__}")
        self._endpoint = overlay.Endpoint(**configuration.endpoint_options)
        self._unless_shut_down = weakref.finalize(self, _close_aside, self._endpoint)
        self._unless_shut_down.atexit = False

    # -- peers --------------------------------------------------------------------------------------

    def node_id(self) -> str:
        """A UUID."""
        return str(self._endpoint.id)

    def listen(self, addr: str, port: int) -> int:
        """Accept peers on an address ("": on all of this machine) and a port (0: any free one). The port.

        0 if that cannot be done; the log says why.
        """
        try:
            return self._endpoint.listen(_address(_EVERYWHERE if addr == "" else addr, port))
        except OSError as error:
            log.warning("cannot listen on %s:%s: %s", addr, port, error)
            return 0

    def peer(self, addr: str, port: int, retry: float = 10.0) -> bool:
        """Connect to an endpoint and wait until it is a peer; whether it is.

        A failed attempt is repeated after ``retry`` seconds, of which the fraction does not count; 0: never.
        """
        return self._endpoint.peer(_address(addr, port), retry=_whole(retry))

    def peer_nosync(self, addr: str, port: int, retry: float = 10.0) -> None:
        """:meth:`peer` without waiting."""
        self._endpoint.peer_nosync(_address(addr, port), retry=_whole(retry))

    def unpeer(self, addr: str, port: int) -> bool:
        """Say goodbye to the peer at an address, and wait for its answer; whether it was one."""
        return self._endpoint.unpeer(_address(addr, port))

    def unpeer_nosync(self, addr: str, port: int) -> None:
        """:meth:`unpeer` without waiting."""
        _aside(self._endpoint.unpeer, _address(addr, port))

    def peers(self) -> list[PeerInfo]:
        """The direct peers."""
        return [
            PeerInfo(EndpointInfo(str(info.id), _network(info.address)), PeerFlags.Remote, PeerStatus.Peered)
            for info in self._endpoint.peers()
            if info.status == "peered"
        ]

    def peer_subscriptions(self) -> list[Topic]:
        """The topics that the direct peers want."""
        wanted = self._endpoint.filters()
        peers = [info.id for info in self._endpoint.peers() if info.status == "peered"]
        topics = {topic for peer in peers if peer is not None for topic in wanted.get(peer, [])}
        return [Topic(topic) for topic in sorted(topics)]

    def await_peer(self, node: str, timeout: float | None = None) -> bool:
        """Wait until an endpoint can be reached, over others or not; for 10 seconds, if nothing is said.

        Raises ValueError if ``node`` is not an id.
        """
        return self._endpoint.await_peer(node, timeout or AWAIT_PEER_SECONDS)

    # -- messages -----------------------------------------------------------------------------------

    def publish(self, topic: AnyTopic, data: Any) -> None:
        """Send an object to all subscribers of a topic; waits while one of them is too slow."""
        self._endpoint.publish(topic_text(topic), to_value(data))

    def publish_batch(self, *batch: tuple[AnyTopic, Any]) -> None:
        """Pairs of topic and object, one after the other; or none, if one of them has no data type."""
        self._endpoint.publish_batch([(topic_text(topic), to_value(data)) for topic, data in batch])

    def forward(self, topics: AnyTopic | Iterable[AnyTopic]) -> None:
        """Pass on what peers publish on these topics, without a subscriber."""
        self._endpoint.forward(topic_texts(topics))

    def make_publisher(self, topic: AnyTopic) -> Publisher:
        return Publisher(self._endpoint.publisher(topic_text(topic)))

    def make_subscriber(
        self,
        topics: AnyTopic | Iterable[AnyTopic],
        qsize: int = 20,
        subscriber_class: Callable[[Any], S] = Subscriber,  # type: ignore[assignment]
    ) -> S:
        """The messages on some topics, from now on.

        More than ``qsize`` of them wait in it, as in libbroker; then publishers wait.
        """
        return subscriber_class(self._endpoint.subscribe(*topic_texts(topics)))

    def make_safe_subscriber(self, topics: AnyTopic | Iterable[AnyTopic], qsize: int = 20) -> SafeSubscriber:
        """The same with immutable objects, which can express all data."""
        return self.make_subscriber(topics, qsize, SafeSubscriber)

    def make_status_subscriber(self, receive_statuses: bool = False) -> StatusSubscriber:
        """Errors from now on, and with ``receive_statuses`` statuses; the oldest are dropped after many."""
        return StatusSubscriber(self._endpoint.statuses(statuses=receive_statuses))

    # -- stores -------------------------------------------------------------------------------------

    def attach_master(
        self, name: str, type: Backend | None = None, opts: Mapping[str, Any] | None = None
    ) -> Store | None:
        """The master of a store, in memory or in the folder ``opts["path"]``. None if that cannot be done."""
        return self._attach(lambda: self._endpoint.attach_master(name, backend_of(type, opts or {})))

    def attach_clone(self, name: str) -> Store | None:
        """A copy of a store. None if that cannot be done."""
        return self._attach(lambda: self._endpoint.attach_clone(name))

    def _attach(self, attach: Callable[[], overlay.Store]) -> Store | None:
        try:
            return Store(attach(), self)
        except overlay.StoreError as error:
            log.warning("%s", error)
            return None

    # -- the end ------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Say goodbye to all peers and close everything."""
        self._unless_shut_down.detach()
        self._endpoint.close()

    def __enter__(self: E) -> E:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return self.node_id()


def _address(host: str, port: int) -> str:
    if not isinstance(host, str) or not isinstance(port, int) or not 0 <= port <= 0xFFFF:
        raise TypeError(f"no address and port: {host!r}, {port!r}")
    return host_and_port(host, port)


def _whole(retry: float) -> int:
    return max(0, int(bounded_wait(retry, "retry")))


def _network(address: str | None) -> NetworkInfo | None:
    if address is None:
        return None
    where = parse_address(address)
    return NetworkInfo(where.address, where.port)


def _aside(call: Callable[..., object], *arguments: Any) -> None:
    threading.Thread(target=call, args=arguments, name="compat-broker", daemon=True).start()


def _close_aside(endpoint: overlay.Endpoint) -> None:
    """For an endpoint that is gone without having been shut down; no place to wait."""
    _aside(endpoint.close)
