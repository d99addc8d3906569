"""Groups of commands that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from click.testing import CliRunner

from dafka.cli import main
from dafka.cli.lazy import LazyGroup


def test_a_command_is_imported_when_it_is_asked_for_and_not_before(tmp_path, monkeypatch):
    for name in ("quick", "slow"):
        (tmp_path / f"lazy_{name}.py").write_text(
            f"import click\n\n\n@click.command()\ndef {name}_():\n    click.echo('{name} ran')\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    group = LazyGroup("some", homes={name: f"lazy_{name}:{name}_" for name in ("quick", "slow")})
    answer = CliRunner().invoke(group, ["quick"])
    assert (answer.output, answer.exit_code) == ("quick ran\n", 0)
    assert "lazy_quick" in sys.modules and "lazy_slow" not in sys.modules


def test_all_are_listed_and_an_unknown_one_is_named():
    group = LazyGroup("some", homes={"one": "nowhere:one", "two": "nowhere:two"})
    assert group.list_commands(click.Context(group)) == ["one", "two"]
    answer = CliRunner().invoke(group, ["three"])
    assert answer.exit_code == 2 and "No such command 'three'" in answer.output
    assert "Did you mean" not in answer.output
    answer = CliRunner().invoke(group, ["tow"])
    assert answer.exit_code == 2 and "No such command 'tow'. Did you mean 'two'?" in answer.output


def test_names_are_completed_without_importing_anything():
    group = LazyGroup("some", homes={"one": "nowhere:one", "two": "nowhere:two", "three": "nowhere:three"})
    assert [one.value for one in group.shell_complete(click.Context(group), "t")] == ["two", "three"]


def test_the_help_of_every_command_shows_none_of_the_marks_for_its_layout():
    marked = [name for name, context, command in all_commands() if "\\b" in command.get_help(context)]
    assert not marked


def all_commands() -> Iterator[tuple[str, click.Context, click.Command]]:
    """Names, contexts and commands below ``dafka``, those of groups in groups too."""
    left: list[tuple[click.Context, click.Command]] = [(click.Context(main, info_name="dafka"), main)]
    while left:
        context, command = left.pop()
        yield context.command_path, context, command
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None, name
                left.append((click.Context(inner, info_name=name, parent=context), inner))
