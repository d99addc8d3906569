"""Groups of commands, each of which is imported when it is asked for: none waits for another's imports."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """``homes``: for each command the module and the name in it, as ``package.module:name``."""

    def __init__(self, *args: Any, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.homes = homes

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.homes, 1)
            if near and "Did you mean" not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = self.homes.get(cmd_name)
        if home is None:
            return None
        command = self.load(home)
        show_examples(command)
        return command

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


def show_examples(command: click.Command) -> None:
    """Have the help of a command, or of those of a group, end with examples."""
    if isinstance(command, LazyGroup):
        return  # it does so itself
    if isinstance(command, click.Group):
        for one in command.commands.values():
            show_examples(one)
    else:
        setattr(command, "format_epilog", _format_examples)  # noqa: B010


def _format_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    import_module("dafka.cli.examples").format_examples(ctx, formatter)  # only for help
