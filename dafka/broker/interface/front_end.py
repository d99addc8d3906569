"""Front ends: other protocols on the broker, beside Kafka's.

A front end translates its clients' requests into calls of the one broker interface and keeps no records of
its own. The broker knows none by name: it opens what its options hold, and closes it before itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.hub import Hub
from dafka.security.keys import ServerKeys


class FrontEnd(ABC):
    """A front end that serves. Hub side; its properties may be read from any thread."""

    @property
    def url(self) -> str | None:
        """The address for a browser, of a front end that has pages."""
        return None

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """The address that each of its servers is bound to, by the server's name."""

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Figures since the start, by the names of :mod:`dafka.mesh.metrics`."""

    @property
    @abstractmethod
    def discarded(self) -> Mapping[str, int]:
        """Counts of discarded messages, by cause."""

    @abstractmethod
    def close(self) -> None:
        """Hand over to the broker what clients have been promised, and disconnect them; waits."""


class Beside(NamedTuple):
    """Parts of a broker beside its interface, for a front end that shows them."""

    listener: Callable[[], Mapping[str, int]] | None = None
    """Figures of the listener for Kafka's clients."""
    listeners: Mapping[str, str] = {}
    """``host:port`` of each listener by its protocol, as this machine reaches it."""
    zper: FrontEnd | None = None


NOTHING = Beside()


class FrontEndOptions(ABC):
    """The options of a front end, as a :class:`dafka.Broker` takes them."""

    @abstractmethod
    def open(
        self,
        hub: Hub,
        broker: BrokerInterface,
        before: Mapping[str, str],
        keys: ServerKeys | None = None,
        beside: Beside = NOTHING,
    ) -> FrontEnd:
        """Serve from now on. Hub side; raises OSError if an address cannot be listened on.

        ``before`` is :attr:`FrontEnd.addresses` of this broker's last run, and empty in its first. Where any
        port will do, these are taken again if they are free: ZeroMQ's sockets reconnect to the address that
        they know. ``keys``: by which it knows its clients; None: it takes in everybody.
        """
