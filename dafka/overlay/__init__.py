"""Zeek Broker's overlay: endpoints that peer with each other, publish, subscribe and share data stores.

:class:`Endpoint` is what a program uses. Below it are state machines without I/O (``role.py`` and what it is
made of): inputs are method calls that carry the time (``now``, float seconds of any monotonic clock) where
time matters; outputs are lists of small values that the caller carries out. There, ids of endpoints are 16
octets, topics and prefixes are ``bytes``, because prefixes match by octets.

The public names are imported on first use (PEP 562): the state machines need neither gevent nor sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dafka.lazy_names import lazy_names

if TYPE_CHECKING:
    from dafka.overlay.bridge.bridge import Bridge
    from dafka.overlay.bridge.rules import ToKafka, ToOverlay
    from dafka.overlay.errors import TooManyPrefixes
    from dafka.overlay.node.connections.tls import Tls
    from dafka.overlay.node.endpoint import Endpoint
    from dafka.overlay.node.errors import (
        AddressError,
        Closed,
        Empty,
        InsecureAddress,
        Overloaded,
        SlowSubscriber,
    )
    from dafka.overlay.node.publisher import Publisher
    from dafka.overlay.node.stores.disk import Disk, Memory
    from dafka.overlay.node.stores.events import StoreEvent, StoreEvents
    from dafka.overlay.node.stores.store import Store
    from dafka.overlay.node.subscriber import StatusSubscriber, Subscriber
    from dafka.overlay.node.types import EndpointId, Message, PeerInfo
    from dafka.overlay.peering.statuses import EndpointInfo, Error, NetworkInfo, Status
    from dafka.overlay.stores.errors import (
        BackendFailure,
        NoSuchKey,
        NotAnswered,
        StoreError,
        StoreRefused,
        WrongType,
    )
    from dafka.overlay.wire.codes import ErrorCode, StatusCode
    from dafka.overlay.wire.zeek import Event
    from dafka.security.errors import TlsError

_HOMES = {
    "AddressError": "dafka.overlay.node.errors",
    "Bridge": "dafka.overlay.bridge.bridge",
    "BackendFailure": "dafka.overlay.stores.errors",
    "Closed": "dafka.overlay.node.errors",
    "Disk": "dafka.overlay.node.stores.disk",
    "Empty": "dafka.overlay.node.errors",
    "Endpoint": "dafka.overlay.node.endpoint",
    "EndpointId": "dafka.overlay.node.types",
    "EndpointInfo": "dafka.overlay.peering.statuses",
    "Error": "dafka.overlay.peering.statuses",
    "ErrorCode": "dafka.overlay.wire.codes",
    "Event": "dafka.overlay.wire.zeek",
    "InsecureAddress": "dafka.overlay.node.errors",
    "Memory": "dafka.overlay.node.stores.disk",
    "Message": "dafka.overlay.node.types",
    "NetworkInfo": "dafka.overlay.peering.statuses",
    "NoSuchKey": "dafka.overlay.stores.errors",
    "NotAnswered": "dafka.overlay.stores.errors",
    "Overloaded": "dafka.overlay.node.errors",
    "PeerInfo": "dafka.overlay.node.types",
    "Publisher": "dafka.overlay.node.publisher",
    "SlowSubscriber": "dafka.overlay.node.errors",
    "Status": "dafka.overlay.peering.statuses",
    "StatusCode": "dafka.overlay.wire.codes",
    "StatusSubscriber": "dafka.overlay.node.subscriber",
    "Store": "dafka.overlay.node.stores.store",
    "StoreError": "dafka.overlay.stores.errors",
    "StoreEvent": "dafka.overlay.node.stores.events",
    "StoreEvents": "dafka.overlay.node.stores.events",
    "StoreRefused": "dafka.overlay.stores.errors",
    "Subscriber": "dafka.overlay.node.subscriber",
    "Tls": "dafka.overlay.node.connections.tls",
    "TlsError": "dafka.security.errors",
    "ToKafka": "dafka.overlay.bridge.rules",
    "ToOverlay": "dafka.overlay.bridge.rules",
    "TooManyPrefixes": "dafka.overlay.errors",
    "WrongType": "dafka.overlay.stores.errors",
}

__all__ = [
    "AddressError",
    "BackendFailure",
    "Bridge",
    "Closed",
    "Disk",
    "Empty",
    "Endpoint",
    "EndpointId",
    "EndpointInfo",
    "Error",
    "ErrorCode",
    "Event",
    "InsecureAddress",
    "Memory",
    "Message",
    "NetworkInfo",
    "NoSuchKey",
    "NotAnswered",
    "Overloaded",
    "PeerInfo",
    "Publisher",
    "SlowSubscriber",
    "Status",
    "StatusCode",
    "StatusSubscriber",
    "Store",
    "StoreError",
    "StoreEvent",
    "StoreEvents",
    "StoreRefused",
    "Subscriber",
    "Tls",
    "TlsError",
    "ToKafka",
    "ToOverlay",
    "TooManyPrefixes",
    "WrongType",
]

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
