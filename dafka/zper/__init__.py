"""ZPER, the persistence broker for ZeroMQ programs, on the same broker that Kafka's clients use.

``identity`` and ``frames`` are what a program with sockets of its own needs; ``Writer``, ``Reader``,
``Relay`` and ``Acks`` are small clients on pyzmq. ``ZperOptions`` makes a ``Broker`` a ZPER server. README.md
tells more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dafka.lazy_names import lazy_names

if TYPE_CHECKING:
    from dafka.zper import frames, identity
    from dafka.zper.clients.acks import Acks
    from dafka.zper.clients.reader import Reader
    from dafka.zper.clients.relay import Relay
    from dafka.zper.clients.writer import Writer
    from dafka.zper.commands import EARLIEST, LATEST
    from dafka.zper.identity import Mode
    from dafka.zper.options import ZperOptions

__all__ = [
    "EARLIEST",
    "LATEST",
    "Acks",
    "Mode",
    "Reader",
    "Relay",
    "Writer",
    "ZperOptions",
    "frames",
    "identity",
]

_HOMES = {
    "Acks": "dafka.zper.clients.acks",
    "EARLIEST": "dafka.zper.commands",
    "LATEST": "dafka.zper.commands",
    "Mode": "dafka.zper.identity",
    "Reader": "dafka.zper.clients.reader",
    "Relay": "dafka.zper.clients.relay",
    "Writer": "dafka.zper.clients.writer",
    "ZperOptions": "dafka.zper.options",
}

_get, __dir__ = lazy_names(globals(), _HOMES)


def __getattr__(name: str) -> object:
    """Public names are imported on first use: building an identity needs no ZeroMQ."""
    return import_module(f"{__name__}.{name}") if name in ("frames", "identity") else _get(name)
