"""How a client finds a broker by its ``bootstrap_servers``.

A broker of this process is called directly (:mod:`dafka.broker.running`). Any other address is looked for
over TCP (:mod:`dafka.broker.remote`). All clients of this process that name the same addresses share the
connections, which are closed when the last one is gone.

Everything here is touched in the hub only, so there is nothing to lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaTimeoutError

from dafka.broker import running
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.errors import LoginRefusedError
from dafka.broker.listening import PROTOCOLS, SASL_PLAINTEXT, SASL_SSL, SSL
from dafka.broker.remote.limits import CONNECT_TIMEOUT, REQUEST_TIMEOUT, UNUSED_SECONDS
from dafka.broker.running import Running
from dafka.hub.hub import Hub, get_hub
from dafka.hub.waits import interval_of, wait_of
from dafka.security.sasl.options import ClientSasl
from dafka.security.tls import ClientTls

if TYPE_CHECKING:
    from dafka.broker.embedded.broker import EmbeddedBroker
    from dafka.broker.remote.remote import Remote

EMBEDDED = "DAFKA_EMBEDDED"  # the environment variable that names a folder

_STARTED_IN = os.getcwd()  # a relative folder stays the same one when the program changes its directory


class Connection(NamedTuple):
    """A broker, and the hub in which its methods are called.

    Call :meth:`close` once, when it is no longer used.
    """

    hub: Hub
    broker: BrokerInterface
    owner: object | None = None  # of a broker of this process, which is stopped when its last owner is gone

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the broker's interface from any thread and wait for its result."""
        return self.hub.run(getattr(self.broker, method), *args, **kwargs)

    def close(self) -> None:
        """End the use: a broker of this process does not care, TCP connections are closed. Any thread."""
        if self.broker.is_remote:
            self.hub.post(_release, self.broker)


class _Shared:
    """A remote broker and how many clients use it."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.users = 0


_Key = tuple[tuple[tuple[str, int], ...], float, ClientTls | None, ClientSasl | None]

_embedded: dict[str, object] = {}  # those of DAFKA_EMBEDDED, which have no other owner
_remotes: dict[_Key, _Shared] = {}
_left_by_parent: list[dict[_Key, _Shared]] = []

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two looks for a broker that is not there


def connect(
    bootstrap_servers: str | Iterable[str],
    timeout: float | None = None,
    *,
    request_timeout: float = REQUEST_TIMEOUT,
    security_protocol: str = "PLAINTEXT",
    tls: ClientTls | None = None,
    sasl: ClientSasl | None = None,
    wait: bool = True,
    retry_login: bool = True,
) -> Connection:
    """Find the broker that ``bootstrap_servers`` names: ``host:port``, several with commas, or a list.

    A broker of this process is used directly. Other addresses are connected to by TCP, in their order:
    a broker of another process, or Apache Kafka. A broker that is not there yet, here or elsewhere, is
    waited for, at most ``timeout`` seconds (None: for ever; 0: only brokers of this process are found). With
    the environment variable ``DAFKA_EMBEDDED=DIR`` every address that names no running broker of this
    process means the one on the folder DIR, which is started when first asked for and runs until the
    interpreter exits. Without ``wait`` a broker of another process is not looked for before it is
    called. Without ``retry_login`` a refused login is not tried again: raises
    :class:`dafka.broker.interface.errors.LoginRefusedError`.

    ``request_timeout`` (seconds), ``security_protocol`` (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), ``tls``
    (trusted authorities, with SSL; None: those of the system) and ``sasl`` (the client's account) are for
    TCP.

    Raises ValueError and TypeError for other addresses, ValueError for a time that is NaN,
    ``kafka.errors.KafkaTimeoutError`` (its cause is what came of TCP, where that was tried),
    ``kafka.errors.KafkaConfigurationError`` for another security protocol,
    :class:`dafka.security.TlsError` for files of ``tls`` that cannot be used, and what
    :meth:`dafka.Broker.start` raises.
    """
    # Brings kafka-python's networking along, which a broker by itself has no use for.
    from kafka.cluster import collect_hosts

    timeout = wait_of(timeout)
    request_timeout = interval_of(request_timeout, "request_timeout")
    what = f"bootstrap_servers={bootstrap_servers!r:.200} is not HOST:PORT, several with commas or in a list"
    try:
        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
        addresses = [(host, port) for host, port, _ in collect_hosts(servers, randomize=False)]
    except TypeError as error:
        raise TypeError(what) from error
    except ValueError as error:
        raise ValueError(what) from error
    if not all(host for host, _ in addresses) or not addresses:
        raise ValueError(what)
    folder = os.environ.get(EMBEDDED)
    hub = get_hub()
    search = _Search(hub, addresses, timeout, request_timeout, security_protocol, tls or ClientTls(), sasl)
    search.retry_login = retry_login
    broker = hub.run(search.run, folder, wait)
    if broker is None:
        elsewhere = "" if search.failure is None else f", and over TCP: {search.failure.args[0]}"
        raise KafkaTimeoutError(
            f"Unable to bootstrap from {bootstrap_servers}: no broker of this process has that address"
            f"{elsewhere}. Start a dafka.Broker and use its bootstrap_servers, or set the environment "
            f"variable {EMBEDDED} to a folder, and every address means a broker on it"
        ) from search.failure
    return Connection(hub, broker, search.owner)


def successor(broker: BrokerInterface) -> tuple[BrokerInterface, object | None]:
    """The broker of this process that runs now at the address of ``broker``, with its owner.

    ``broker`` was stopped, or has never been reached. If there is none, ``broker`` itself.
    """
    found = running.at(broker.addresses)
    return (broker, None) if found is None else (found.core, found.owner)


class _Search:
    """A search for the broker behind one of the addresses. Hub side."""

    def __init__(
        self,
        hub: Hub,
        addresses: list[tuple[str, int]],
        timeout: float | None,
        request_timeout: float,
        security_protocol: str,
        tls: ClientTls,
        sasl: ClientSasl | None,
    ) -> None:
        self._hub = hub
        self._addresses = addresses
        self._timeout = timeout
        self._request_timeout = request_timeout
        self._security_protocol = security_protocol
        self._tls = tls if security_protocol in (SSL, SASL_SSL) else None
        self._sasl = sasl if security_protocol in (SASL_PLAINTEXT, SASL_SSL) else None
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.failure: KafkaConnectionError | TimeoutError | None = None
        self.owner: object | None = None  # of the broker that was found
        self.retry_login = True

    def run(self, folder: str | None, wait: bool) -> BrokerInterface | None:
        """The broker; None when the time is over."""
        core = self._here()
        if core is not None:
            return core
        if folder:
            return self._take(_start_embedded(folder))
        shared: _Shared | None = None
        found: BrokerInterface | None = None
        pause = FIRST_PAUSE
        try:
            while found is None:
                running.started.clear()
                if self._left is not None and self._left <= 0 and wait:
                    return None
                shared = shared or self._share()  # the same one until the end: it knows what has failed
                found = self._elsewhere(shared.remote) if wait else shared.remote
                if found is None:
                    left = self._left
                    running.started.wait(pause if left is None else max(min(pause, left), 0.0))
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
        return self._take(running.at(self._addresses))

    def _take(self, found: Running | None) -> EmbeddedBroker | None:
        if found is None:
            return None
        self.owner = found.owner
        return found.core

    def _share(self) -> _Shared:
        """The connections that all clients of these addresses share, until each has released them."""
        if self._security_protocol not in PROTOCOLS:
            raise KafkaConfigurationError(
                f"security_protocol={self._security_protocol!r}: no broker of this process has the address "
                f"{self._addresses}, and others are reached by {', '.join(PROTOCOLS)} only"
            )
        if self._sasl is None and self._security_protocol in (SASL_PLAINTEXT, SASL_SSL):
            raise KafkaConfigurationError(
                f"security_protocol={self._security_protocol!r} needs sasl_mechanism: how to log in"
            )
        key = tuple(self._addresses), self._request_timeout, self._tls, self._sasl
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
            with running.changing:  # a broker of this process that was starting is known now
                return self._here() or self._of_cluster(cluster_id) or remote
        except (KafkaConnectionError, TimeoutError) as error:
            if isinstance(error, LoginRefusedError) and not self.retry_login:
                raise
            if self.failure is None or not isinstance(error, TimeoutError):
                self.failure = error
            return None

    def _of_cluster(self, cluster_id: str) -> EmbeddedBroker | None:
        """The broker of this process that has answered by TCP under an address that is not its own."""
        same = (one for one in running.brokers() if one.core.cluster_id == cluster_id)
        return self._take(next(same, None))

    def _new_remote(self) -> Remote:
        # Brings a client of the protocol along, which a broker by itself has no use for.
        from dafka.broker.remote.remote import Remote

        connect_timeout = CONNECT_TIMEOUT
        if self._timeout is not None:  # one address that does not answer leaves time for the others
            connect_timeout = min(connect_timeout, max(self._timeout / (len(self._addresses) + 1), 0.1))
        context = None
        if self._tls is not None:
            from dafka.security.contexts import of_client  # brings ssl along

            context = of_client(self._tls)
        return Remote(self._hub, self._addresses, self._request_timeout, connect_timeout, context, self._sasl)


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


def _start_embedded(folder: str) -> Running:
    """The broker on a folder: the one that runs already, or one that runs until the interpreter exits."""
    # Brings the listener along, which a client of a broker elsewhere has no use for.
    from dafka.broker.broker import Broker

    folder = os.path.join(_STARTED_IN, os.path.expanduser(folder))
    path = os.path.realpath(folder)
    with running.changing:
        found = _on(path)
        if found is None:
            _embedded[path] = Broker(folder).start()
            found = _on(path)
        assert found is not None
        return found


def _on(path: str) -> Running | None:
    return next((one for one in running.brokers() if one.path == path), None)


def _forget_after_fork() -> None:
    _embedded.clear()
    # Closing the parent's sockets would need its hub: they stay as they are, unused.
    _left_by_parent.append(dict(_remotes))
    _remotes.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
