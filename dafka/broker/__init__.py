"""The embedded broker: Kafka's topics, partitions and offsets on Dafka's nodes.

:class:`~dafka.broker.broker.Broker` is what users start; :func:`connect` is how clients find it;
:class:`~dafka.broker.interface.broker.BrokerInterface` is what both sides agree on.
"""

from __future__ import annotations

from dafka.broker.connecting import Connection, connect
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.errors import BrokerStoppedError

__all__ = ["BrokerInterface", "BrokerStoppedError", "Connection", "connect"]
