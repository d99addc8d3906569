"""Dafka for Python: decentralised streaming on ZeroMQ, and a Kafka broker that lives inside your process.

``Tower``, ``Store``, ``Producer`` and ``Consumer`` are the nodes of 46/DAFKA and need no broker; a
``Broker`` adds Kafka's topics, partitions and offsets on top of them, and ``compat.kafka`` gives it
kafka-python's classes.

The public names are imported on first use (PEP 562). ``import dafka`` takes no time, and a program that
needs one part of the package, like a Spark worker, never loads gevent or ZeroMQ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dafka.lazy_names import lazy_names

if TYPE_CHECKING:
    from dafka.broker.broker import Broker
    from dafka.mesh.consumer import Consumer
    from dafka.mesh.producer import Producer
    from dafka.mesh.record import Record
    from dafka.mesh.store import Store
    from dafka.mesh.tower import Tower

__version__ = "0.1.0"

__all__ = ["Broker", "Consumer", "Producer", "Record", "Store", "Tower"]

_HOMES = {
    "Broker": "dafka.broker.broker",
    "Consumer": "dafka.mesh.consumer",
    "Producer": "dafka.mesh.producer",
    "Record": "dafka.mesh.record",
    "Store": "dafka.mesh.store",
    "Tower": "dafka.mesh.tower",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
