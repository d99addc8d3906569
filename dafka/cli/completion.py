"""``dafka completion``: programs with which shells complete command lines."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Completion of command lines for bash, zsh and fish.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what has SHELL complete the command lines of dafka.

    \b
      bash   source <(dafka completion bash)                       in ~/.bashrc
      zsh    source <(dafka completion zsh)                        in ~/.zshrc, behind compinit
      fish   dafka completion fish >~/.config/fish/completions/dafka.fish
    """
    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(root, {}, "dafka", "_DAFKA_COMPLETE").source())
