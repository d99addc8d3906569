"""``dafka zper``: the persistence broker for ZeroMQ programs, and small clients of it."""

from __future__ import annotations

import click

from dafka.cli.lazy import LazyGroup

_HOMES = {
    "run": "dafka.cli.zper.server:run_",
    "start": "dafka.cli.zper.server:start_",
    "stop": "dafka.cli.zper.server:stop_",
    "import": "dafka.cli.zper.importing:import_",
    "produce": "dafka.cli.zper.clients:produce_",
    "fetch": "dafka.cli.zper.clients:fetch_",
    "offsets": "dafka.cli.zper.clients:offsets_",
    "relay": "dafka.cli.zper.clients:relay_",
    "acks": "dafka.cli.zper.clients:acks_",
    "nodes": "dafka.cli.zper.clients:nodes_",
    "count": "dafka.cli.zper.clients:count_",
}


@click.group(cls=LazyGroup, homes=_HOMES)
def zper() -> None:
    """ZPER: ZeroMQ programs persist messages by connecting a socket.

    Without a server.properties (CONFIG) everything listens on ZPER's ports, 5555 to 5559, of this machine.
    """
