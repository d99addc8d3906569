"""Groups of commands, each of which is imported when it is asked for: none waits for another's imports."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """``homes``: for each command the module and the name in it, as ``package.module:name``."""

    def __init__(self, *args: Any, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = self.homes.get(cmd_name)
        return None if home is None else self.load(home)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names alone: the words about each command would have to be imported."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name) for name in self.homes if name.startswith(incomplete)]

    def load(self, home: str) -> click.Command:
        """The command at ``package.module:name``."""
        module, _, name = home.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command
