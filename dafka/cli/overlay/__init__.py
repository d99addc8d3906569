"""``dafka overlay``: nodes of Zeek Broker's overlay, and small tools that join it for a moment."""

from __future__ import annotations

import click

from dafka.cli.lazy import LazyGroup

_HOMES = {
    "node": "dafka.cli.overlay.node:node_",
    "publish": "dafka.cli.overlay.messages:publish_",
    "subscribe": "dafka.cli.overlay.messages:subscribe_",
    "store": "dafka.cli.overlay.store:store_",
    "peers": "dafka.cli.overlay.look:peers_",
    "topology": "dafka.cli.overlay.look:topology_",
    "record": "dafka.cli.overlay.recording:record_",
    "replay": "dafka.cli.overlay.recording:replay_",
}


@click.group(cls=LazyGroup, homes=_HOMES)
def overlay() -> None:
    """Zeek Broker's overlay: peers that publish, subscribe and share data stores, in any topology."""
