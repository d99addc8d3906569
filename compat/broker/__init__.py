"""The Python bindings of Zeek's Broker: ``import broker`` becomes ``from compat import broker``.

    with broker.Endpoint() as endpoint, endpoint.make_subscriber("/topic") as subscriber:
        endpoint.peer("127.0.0.1", 9999)
        endpoint.publish("/topic", broker.zeek.Event("ping", 1))
        topic, message = subscriber.get()

Names, arguments, results and exceptions are those of libbroker's bindings; there is nothing to build, and
underneath is :mod:`dafka.overlay`. Differences are in compat/README.md.
"""

from __future__ import annotations

from datetime import timezone

from compat.broker import zeek
from compat.broker._configuration import BrokerOptions, Configuration
from compat.broker._endpoint import Endpoint
from compat.broker._enums import EC, SC, APIFlags, Backend, Frontend, PeerFlags, PeerStatus
from compat.broker._publisher import Publisher
from compat.broker._status import EndpointInfo, Error, NetworkInfo, PeerInfo, Status
from compat.broker._store import Store
from compat.broker._subscribers import SafeSubscriber, StatusSubscriber, Subscriber
from compat.broker._topic import Topic
from compat.broker._values.data import Data, ImmutableData
from compat.broker._values.native import Set, Table, Vector
from compat.broker._values.scalars import Address, Count, Enum, Port, Subnet
from compat.broker._values.times import Timespan, Timestamp, now
from compat.broker._version import Version

utc = timezone.utc

__all__ = [
    "EC",
    "SC",
    "APIFlags",
    "Address",
    "Backend",
    "BrokerOptions",
    "Configuration",
    "Count",
    "Data",
    "Endpoint",
    "EndpointInfo",
    "Enum",
    "Error",
    "Frontend",
    "ImmutableData",
    "NetworkInfo",
    "PeerFlags",
    "PeerInfo",
    "PeerStatus",
    "Port",
    "Publisher",
    "SafeSubscriber",
    "Set",
    "Status",
    "StatusSubscriber",
    "Store",
    "Subnet",
    "Subscriber",
    "Table",
    "Timespan",
    "Timestamp",
    "Topic",
    "Vector",
    "Version",
    "now",
    "utc",
    "zeek",
]
