"""``dafka zper``: the persistence broker for ZeroMQ programs, and small clients of it."""

from __future__ import annotations

from importlib import import_module

import click

_HOMES = {
    "run": "server",
    "start": "server",
    "stop": "server",
    "import": "importing",
    "produce": "clients",
    "fetch": "clients",
    "offsets": "clients",
    "relay": "clients",
    "acks": "clients",
    "nodes": "clients",
    "count": "clients",
}


class _Commands(click.Group):
    """A client does not wait for the imports of a server."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return None
        module = import_module(f"{__name__}.{_HOMES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_")
        return command


@click.group(cls=_Commands)
def zper() -> None:
    """ZPER: ZeroMQ programs persist messages by connecting a socket.

    Without a server.properties (CONFIG) everything listens on ZPER's ports, 5555 to 5559, of this machine.
    """
