"""``dafka config``: the names that the options have in the environment and in configuration files."""

from __future__ import annotations

import click

from dafka.cli.keys import OTHERS, Setting, commands_of, settings

_HEADINGS = ("option", "variable", "key in a file", "default")


@click.command(short_help="List what can be set in the environment and in a file.")
@click.argument("command", nargs=-1)
@click.pass_context
def config(ctx: click.Context, command: tuple[str, ...]) -> None:
    """List the options of COMMAND, or of all: their variables, keys in a file (--config) and defaults.

    A key a/b is the name b below the name a: in ZPL each level is indented by four blanks more. Several
    values of one option have blanks between them.
    """
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    for name in (command[0],) if command else root.command.list_commands(root):
        try:
            found = [*commands_of(_command(root, name), (name,))]
        except click.ClickException as error:
            if command:
                raise
            click.echo(
                f"dafka {name}: {error.format_message()}\n", err=True
            )  # it needs packages that are not installed
            continue
        wanted = [(path, one) for path, one in found if path[: len(command)] == command or not command]
        if not wanted:
            raise click.UsageError(f"there is no command {' '.join(command)!r}")
        for path, one in wanted:
            rows = [_row(setting, root) for setting in settings(one, path)]
            if rows:
                _print(f"dafka {' '.join(path)}", rows)
    if not command:
        for variable, meaning in OTHERS.items():
            click.echo(f"{variable}: {meaning}")


def _command(root: click.Context, name: str) -> click.Command:
    assert isinstance(root.command, click.Group)
    found = root.command.get_command(root, name)
    if found is None:
        names = ", ".join(root.command.list_commands(root))
        raise click.UsageError(f"there is no command {name!r}: {names}")
    return found


def _row(setting: Setting, ctx: click.Context) -> tuple[str, str, str, str]:
    parameter = setting.parameter
    names = [*parameter.opts, *parameter.secondary_opts]
    shown = max(names, key=len) if isinstance(parameter, click.Option) else parameter.make_metavar(ctx)
    if parameter.secondary_opts:
        shown = "/".join((parameter.opts[-1], parameter.secondary_opts[-1]))
    default = parameter.get_default(ctx, call=False)
    text = "" if default in (None, "", ()) or not isinstance(default, (str, int, float)) else str(default)
    return shown, setting.variable, setting.key or "", text


def _print(title: str, rows: list[tuple[str, str, str, str]]) -> None:
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    click.echo(title)
    for row in (_HEADINGS, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(("  " + "  ".join(cells)).rstrip())
    click.echo()
