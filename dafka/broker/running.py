"""The brokers of this process.

A broker is listed from its start to its stop. Brokers that still run when the interpreter exits are stopped
then, so that their folders are closed properly and temporary ones are removed. The list does not keep a
broker alive; the connection of a client does. A forked child starts with an empty list, because the hub does
not run there.

All of this runs in the hub only, so it needs no locks.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import gevent.event
from gevent.lock import RLock

from dafka.hub.hub import get_hub

if TYPE_CHECKING:  # a client of a broker elsewhere has no use for all that a broker is made of
    from dafka.broker.embedded.broker import EmbeddedBroker

log = logging.getLogger(__name__)

_LOOPBACK = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}


class Running(NamedTuple):
    """A running broker; ``owner`` is the program's Broker object, which keeps it running."""

    core: EmbeddedBroker
    path: str
    owner: object


class _Known(NamedTuple):
    path: str
    stop: Callable[[], None]
    owner: Callable[[], object | None]


_brokers: dict[EmbeddedBroker, _Known] = {}
started = gevent.event.Event()  # set by every start
changing = RLock()  # held while a broker starts or stops


def add(owner: object, core: EmbeddedBroker, path: str, stop: Callable[[], None]) -> None:
    """Add a broker that has started; ``stop`` stops it and must not refer to ``owner``."""
    if not _brokers:
        # The handler registered last runs first, so this one runs before that of the hub.
        atexit.unregister(_stop_all)
        atexit.register(_stop_all)
    _brokers[core] = _Known(os.path.realpath(path), stop, weakref.ref(owner))
    started.set()


def remove(core: EmbeddedBroker) -> None:
    """Remove a broker that has stopped."""
    _brokers.pop(core, None)


def brokers() -> list[Running]:
    """The running brokers, without those whose owner is gone and which are about to stop."""
    owned = [
        Running(core, known.path, known.owner()) for core, known in list(_brokers.items()) if core.running
    ]
    return [one for one in owned if one.owner is not None]


def at(addresses: Iterable[tuple[str, int]]) -> Running | None:
    """The running broker at the first of these addresses that belongs to one; None if none does."""
    if not _brokers:
        return None
    by_address = {(_host(one.core.host), one.core.port): one for one in brokers()}
    found = (by_address.get((_host(host), port)) for host, port in addresses)
    return next((one for one in found if one is not None), None)


def _host(host: str) -> str:
    host = host.lower()
    return _LOOPBACK.get(host, host)


def _stop_all() -> None:
    for core, known in list(_brokers.items()):  # none in a forked child, where the hub would have to start
        try:
            get_hub().run(known.stop)
        except Exception:
            log.exception("stopping %r at exit failed", core)


def _forget_after_fork() -> None:
    global started, changing
    _brokers.clear()
    started = gevent.event.Event()
    changing = RLock()


os.register_at_fork(after_in_child=_forget_after_fork)
