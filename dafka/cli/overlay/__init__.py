"""``dafka overlay``: nodes of Zeek Broker's overlay, and small tools that join it for a moment."""

from __future__ import annotations

from importlib import import_module

import click

_HOMES = {
    "node": "node",
    "publish": "messages",
    "subscribe": "messages",
    "store": "store",
    "peers": "look",
    "topology": "look",
    "record": "recording",
    "replay": "recording",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return None
        module = import_module(f"{__name__}.{_HOMES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_")
        return command


@click.group(cls=_Commands)
def overlay() -> None:
    """Zeek Broker's overlay: peers that publish, subscribe and share data stores, in any topology."""
