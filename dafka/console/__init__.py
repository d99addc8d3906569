"""The console: topics, records, groups and the mesh in a browser, through the broker interface alone.

``Broker(console=ConsoleOptions("127.0.0.1:8080"))`` shows one broker, and :class:`Console` any, also Apache
Kafka. README.md tells more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dafka.lazy_names import lazy_names

if TYPE_CHECKING:
    from dafka.console.console import Console
    from dafka.console.decoding.options import SchemaRegistry
    from dafka.console.networks.networks import NetworkOptions
    from dafka.console.options import ConsoleOptions

__all__ = ["Console", "ConsoleOptions", "NetworkOptions", "SchemaRegistry"]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "Console": "dafka.console.console",
        "ConsoleOptions": "dafka.console.options",
        "NetworkOptions": "dafka.console.networks.networks",
        "SchemaRegistry": "dafka.console.decoding.options",
    },
)
