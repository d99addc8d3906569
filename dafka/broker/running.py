"""The brokers of this process, and how a client finds one by its ``bootstrap_servers``.

An address that is none of theirs is looked for over TCP (:mod:`dafka.broker.remote`). All clients of this
process that name the same addresses share the connections, which are closed when the last one is gone.

Everything here is touched in the hub only, so there is nothing to lock. A broker is known from its start to
its stop; those that still run when the interpreter exits are stopped then, so that their folders are left
in order and temporary ones go away. Being known keeps no broker alive, a client's connection does. A forked
child starts with none: the hub did not come along.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent
import gevent.event
from gevent.lock import RLock
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaTimeoutError

from dafka.broker.embedded.broker import EmbeddedBroker
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.remote.limits import CONNECT_TIMEOUT, REQUEST_TIMEOUT, UNUSED_SECONDS
from dafka.hub.hub import Hub, get_hub

if TYPE_CHECKING:
    from dafka.broker.broker import Broker
    from dafka.broker.remote.remote import Remote

log = logging.getLogger(__name__)

EMBEDDED = "DAFKA_EMBEDDED"  # the environment variable that names a folder

_STARTED_IN = os.getcwd()  # a relative folder stays the same one when the program changes its directory

_LOOPBACK = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}


class Connection(NamedTuple):
    """A broker, and the hub in which its methods are called.

    Who has no more use for it calls :meth:`close`, once.
    """

    hub: Hub
    broker: BrokerInterface
    owner: Broker | None = None  # of a broker of this process, which is stopped when nobody has it any more

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the broker's interface from any thread and wait for its result."""
        return self.hub.run(getattr(self.broker, method), *args, **kwargs)

    def close(self) -> None:
        """End the use: a broker of this process does not care, TCP connections are closed. Any thread."""
        if not isinstance(self.broker, EmbeddedBroker):
            self.hub.post(_release, self.broker)


class _Known(NamedTuple):
    """A broker that runs, as long as :meth:`owner` still has it."""

    path: str
    stop: Callable[[], None]
    owner: Callable[[], Broker | None]


class _Shared:
    """A remote broker and how many clients use it."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.users = 0


_Key = tuple[tuple[tuple[str, int], ...], float]

_brokers: dict[EmbeddedBroker, _Known] = {}
_embedded: dict[str, Broker] = {}  # those of DAFKA_EMBEDDED, which nobody else has
_remotes: dict[_Key, _Shared] = {}
_started = gevent.event.Event()
changing = RLock()  # held while a broker starts or stops
_left_by_parent: list[dict[_Key, _Shared]] = []

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two looks for a broker that is not there


def connect(
    bootstrap_servers: str | Iterable[str],
    timeout: float | None = None,
    *,
    request_timeout: float = REQUEST_TIMEOUT,
    security_protocol: str = "PLAINTEXT",
    wait: bool = True,
) -> Connection:
    """Find the broker that ``bootstrap_servers`` names: ``host:port``, several with commas, or a list.

    A broker of this process is used directly. Other addresses are connected to by TCP, in their order:
    a broker of another process, or Apache Kafka. A broker that is not there yet, here or elsewhere, is
    waited for, at most ``timeout`` seconds (None: for ever; 0: only brokers of this process are found). With
    the environment variable ``DAFKA_EMBEDDED=DIR`` every address that names no running broker of this
    process means the one on the folder DIR, which is started when first asked for and runs until the
    interpreter exits. Without ``wait`` a broker that is none of this process is not looked for before it is
    called.

    ``request_timeout`` (seconds) and ``security_protocol`` are for TCP; nothing but PLAINTEXT is built.

    Raises ValueError for a port that is not a number, ``kafka.errors.KafkaTimeoutError`` (its cause is what
    came of TCP, where that was tried), ``kafka.errors.KafkaConfigurationError`` for another security
    protocol, and what :meth:`dafka.Broker.start` raises.
    """
    # Brings kafka-python's networking along, which a broker by itself has no use for.
    from kafka.cluster import collect_hosts

    servers = bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
    addresses = [(host, port) for host, port, _ in collect_hosts(servers, randomize=False)]
    folder = os.environ.get(EMBEDDED)
    hub = get_hub()
    search = _Search(hub, addresses, timeout, request_timeout, security_protocol)
    broker = hub.run(search.run, folder, wait)
    if broker is None:
        elsewhere = "" if search.failure is None else f", and over TCP: {search.failure.args[0]}"
        raise KafkaTimeoutError(
            f"Unable to bootstrap from {bootstrap_servers}: no broker of this process has that address"
            f"{elsewhere}. Start a dafka.Broker and use its bootstrap_servers, or set the environment "
            f"variable {EMBEDDED} to a folder, and every address means a broker on it"
        ) from search.failure
    return Connection(hub, broker, search.owner)


def successor(broker: BrokerInterface) -> tuple[BrokerInterface, Broker | None]:
    """The broker of this process that runs now at the address of ``broker``, with its owner.

    ``broker`` was stopped, or has never been reached. If there is none, that one itself.
    """
    known = (getattr(broker, "host", ""), getattr(broker, "port", 0))
    return _here(getattr(broker, "addresses", (known,))) or (broker, None)


def add(broker: Broker, core: EmbeddedBroker, path: str, stop: Callable[[], None]) -> None:
    """Note a broker that has started; ``stop`` stops it and does not refer to ``broker``."""
    if not _brokers:
        # Exit handlers run last in, first out: registered now, this one runs before the hub's own.
        atexit.unregister(_stop_all)
        atexit.register(_stop_all)
    _brokers[core] = _Known(os.path.realpath(path), stop, weakref.ref(broker))
    _started.set()


def remove(core: EmbeddedBroker) -> None:
    """Forget a broker that has stopped."""
    _brokers.pop(core, None)


def _running() -> list[tuple[EmbeddedBroker, Broker]]:
    """The brokers that run and are not about to be stopped, because nobody has them any more."""
    owned = ((core, known.owner()) for core, known in list(_brokers.items()) if core.running)
    return [(core, owner) for core, owner in owned if owner is not None]


def _here(addresses: Iterable[tuple[str, int]]) -> tuple[EmbeddedBroker, Broker] | None:
    """The broker of this process that has the first of these addresses that any has."""
    if not _brokers:
        return None
    by_address = {(_host(core.host), core.port): (core, owner) for core, owner in _running()}
    found = (by_address.get((_host(host), port)) for host, port in addresses)
    return next((one for one in found if one is not None), None)


def _host(host: str) -> str:
    host = host.lower()
    return _LOOPBACK.get(host, host)


class _Search:
    """A search for the broker behind one of the addresses. Hub side."""

    def __init__(
        self,
        hub: Hub,
        addresses: list[tuple[str, int]],
        timeout: float | None,
        request_timeout: float,
        security_protocol: str,
    ) -> None:
        self._hub = hub
        self._addresses = addresses
        self._timeout = timeout
        self._request_timeout = request_timeout
        self._security_protocol = security_protocol
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.failure: KafkaConnectionError | TimeoutError | None = None
        self.owner: Broker | None = None  # of the broker that was found

    def run(self, folder: str | None, wait: bool) -> BrokerInterface | None:
        """The broker; None when the time is over."""
        core = self._here()
        if core is not None:
            return core
        if folder:
            self.owner, core = _start_embedded(folder)
            return core
        shared: _Shared | None = None
        found: BrokerInterface | None = None
        pause = FIRST_PAUSE
        try:
            while found is None:
                _started.clear()
                if self._left is not None and self._left <= 0 and wait:
                    return None
                shared = shared or self._share()  # the same one until the end: it knows what has failed
                found = self._elsewhere(shared.remote) if wait else shared.remote
                if found is None:
                    left = self._left
                    _started.wait(pause if left is None else max(min(pause, left), 0.0))
                    pause = min(pause * 2, LONGEST_PAUSE)
                    found = self._here()
            return found
        finally:
            if shared is not None and found is not shared.remote:
                _release(shared.remote)

    @property
    def _left(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()

    def _here(self) -> EmbeddedBroker | None:
        found = _here(self._addresses)
        if found is None:
            return None
        core, self.owner = found
        return core

    def _share(self) -> _Shared:
        """What all clients of these addresses share; this one uses it until it is released."""
        if self._security_protocol != "PLAINTEXT":
            raise KafkaConfigurationError(
                f"security_protocol={self._security_protocol!r}: no broker of this process has the address "
                f"{self._addresses}, and others are reached by PLAINTEXT only"
            )
        key = tuple(self._addresses), self._request_timeout
        shared = _remotes.get(key)
        if shared is None:
            shared = _remotes[key] = _Shared(self._new_remote())
        shared.users += 1
        return shared

    def _elsewhere(self, remote: Remote) -> BrokerInterface | None:
        """The remote broker if it answers, or the one of this process that does."""
        try:
            with gevent.Timeout(self._left, TimeoutError("no answer in time")):
                cluster_id = remote.metadata(()).cluster_id
            with changing:  # a broker of this process that was starting is known now
                return self._here() or self._of_cluster(cluster_id) or remote
        except (KafkaConnectionError, TimeoutError) as error:
            if self.failure is None or not isinstance(error, TimeoutError):
                self.failure = error
            return None

    def _of_cluster(self, cluster_id: str) -> EmbeddedBroker | None:
        """The broker of this process that has answered by TCP under an address that is not its own."""
        for core, owner in _running():
            if core.cluster_id == cluster_id:
                self.owner = owner
                return core
        return None

    def _new_remote(self) -> Remote:
        # Brings a client of the protocol along, which a broker by itself has no use for.
        from dafka.broker.remote.remote import Remote

        connect_timeout = CONNECT_TIMEOUT
        if self._timeout is not None:  # one address that does not answer leaves time for the others
            connect_timeout = min(connect_timeout, max(self._timeout / (len(self._addresses) + 1), 0.1))
        return Remote(self._hub, self._addresses, self._request_timeout, connect_timeout)


def _release(remote: BrokerInterface) -> None:
    """One client less uses it; the last one's connections are closed soon."""
    for shared in _remotes.values():
        if shared.remote is remote:
            shared.users -= 1
            if shared.users == 0:
                gevent.spawn_later(UNUSED_SECONDS, _close_unused, shared)


def _close_unused(shared: _Shared) -> None:
    if shared.users:
        return
    for key, known in list(_remotes.items()):
        if known is shared:
            del _remotes[key]
    shared.remote.close()


def _start_embedded(folder: str) -> tuple[Broker, EmbeddedBroker]:
    """The broker on a folder: the one that runs already, or one that runs until the interpreter exits."""
    from dafka.broker.broker import Broker

    folder = os.path.join(_STARTED_IN, os.path.expanduser(folder))
    path = os.path.realpath(folder)
    with changing:
        broker = next((owner for core, owner in _running() if _brokers[core].path == path), None)
        if broker is None:
            broker = _embedded[path] = Broker(folder).start()
        return broker, next(core for core, owner in _running() if owner is broker)


def _stop_all() -> None:
    hub = get_hub()
    for core, known in list(_brokers.items()):
        try:
            hub.run(known.stop)
        except Exception:
            log.exception("stopping %r at exit failed", core)


def _forget_after_fork() -> None:
    global _started, changing
    _brokers.clear()
    _embedded.clear()
    # Closing the parent's sockets would need its hub: they stay as they are, unused.
    _left_by_parent.append(dict(_remotes))
    _remotes.clear()
    _started = gevent.event.Event()
    changing = RLock()


os.register_at_fork(after_in_child=_forget_after_fork)
