"""The brokers of this process, and how a client finds one by its ``bootstrap_servers``.

Everything here is touched in the hub only, so there is nothing to lock. A broker is known from its start to
its stop; those that still run when the interpreter exits are stopped then, so that their folders are left
in order and temporary ones go away. A forked child starts with none: the hub did not come along.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent.event
from gevent.lock import RLock
from kafka.cluster import collect_hosts
from kafka.errors import KafkaTimeoutError

from dafka.broker.core import EmbeddedBroker
from dafka.broker.interface import BrokerInterface
from dafka.mesh.hub import Hub, get_hub

if TYPE_CHECKING:
    from dafka.broker.broker import Broker

log = logging.getLogger(__name__)

EMBEDDED = "DAFKA_EMBEDDED"  # the environment variable that names a folder

_STARTED_IN = os.getcwd()  # a relative folder stays the same one when the program changes its directory

_LOOPBACK = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}


class Connection(NamedTuple):
    """A broker, and the hub in which its methods are called."""

    hub: Hub
    broker: BrokerInterface

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the broker's interface from any thread and wait for its result."""
        return self.hub.run(getattr(self.broker, method), *args, **kwargs)


class _Known(NamedTuple):
    core: EmbeddedBroker
    path: str


_brokers: dict[Broker, _Known] = {}
_started = gevent.event.Event()
changing = RLock()  # held while a broker starts or stops


def connect(bootstrap_servers: str | Iterable[str], timeout: float | None = None) -> Connection:
    """Find the broker that ``bootstrap_servers`` names: ``host:port``, several with commas, or a list.

    Addresses are tried in their order. A broker that is not there yet is waited for, at most ``timeout``
    seconds (None: for ever). With the environment variable ``DAFKA_EMBEDDED=DIR`` every address that names
    no running broker of this process means the one on the folder DIR, which is started when first asked for
    and runs until the interpreter exits.

    Raises ValueError for a port that is not a number, ``kafka.errors.KafkaTimeoutError``, and what
    :meth:`dafka.Broker.start` raises.
    """
    servers = bootstrap_servers if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
    addresses = [(_host(host), port) for host, port, _ in collect_hosts(servers, randomize=False)]
    folder = os.environ.get(EMBEDDED)
    hub = get_hub()
    core = hub.run(_find, addresses, folder, timeout)
    if core is None:
        raise KafkaTimeoutError(
            f"Unable to bootstrap from {bootstrap_servers}: no broker of this process has that address. "
            f"Start a dafka.Broker and use its bootstrap_servers, or set the environment variable {EMBEDDED} "
            "to a folder, and every address means a broker on it"
        )
    return Connection(hub, core)


def successor(broker: BrokerInterface) -> BrokerInterface:
    """The broker that runs now at the address of one that was stopped; that one itself if there is none."""
    address = getattr(broker, "host", None), getattr(broker, "port", None)
    for core, _ in list(_brokers.values()):
        if core.running and (core.host, core.port) == address:
            return core
    return broker


def add(broker: Broker, core: EmbeddedBroker, path: str) -> None:
    """Note a broker that has started."""
    if not _brokers:
        # Exit handlers run last in, first out: registered now, this one runs before the hub's own.
        atexit.unregister(_stop_all)
        atexit.register(_stop_all)
    _brokers[broker] = _Known(core, os.path.realpath(path))
    _started.set()


def remove(broker: Broker) -> None:
    """Forget a broker that has stopped."""
    _brokers.pop(broker, None)


def _host(host: str) -> str:
    host = host.lower()
    return _LOOPBACK.get(host, host)


def _find(
    addresses: list[tuple[str, int]], folder: str | None, timeout: float | None
) -> EmbeddedBroker | None:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        by_address = {(core.host, core.port): core for core, _ in _brokers.values() if core.running}
        for address in addresses:
            if address in by_address:
                return by_address[address]
        if folder:
            return _embedded(folder)
        _started.clear()
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and (left <= 0 or not _started.wait(left)):
            return None
        if left is None:
            _started.wait()


def _embedded(folder: str) -> EmbeddedBroker:
    from dafka.broker.broker import Broker

    folder = os.path.join(_STARTED_IN, os.path.expanduser(folder))
    path = os.path.realpath(folder)
    with changing:
        for known in _brokers.values():
            if known.path == path and known.core.running:
                return known.core
        broker = Broker(folder).start()
        return _brokers[broker].core


def _stop_all() -> None:
    for broker in list(_brokers):
        try:
            broker.stop()
        except Exception:
            log.exception("stopping %r at exit failed", broker)


def _forget_after_fork() -> None:
    global _started, changing
    _brokers.clear()
    _started = gevent.event.Event()
    changing = RLock()


os.register_at_fork(after_in_child=_forget_after_fork)
