"""Every command shows in its help how it is used, in a way that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from cli.test_lazy import all_commands

from dafka.cli.examples import EXAMPLES


def shown(context: click.Context, command: click.Command) -> Iterator[list[str]]:
    """The words behind the names of a command, in each of the examples of its help."""
    example = re.compile(rf" +(?:.*\| |source <\()?{context.command_path}\b(?P<words>[^>]*?)\)?(?: > \S+)?")
    for line in command.get_help(context).splitlines()[1:]:
        if (found := example.fullmatch(line)) is not None:
            yield shlex.split(found["words"])


COMMANDS = {
    name: (context, command)
    for name, context, command in all_commands()
    if not isinstance(command, click.Group)
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_an_example_that_it_takes(name):
    context, command = COMMANDS[name]
    examples = list(shown(context, command))
    assert examples
    for words in examples:
        values, rest, _ = command.make_parser(context).parse_args(list(words))
        assert not rest
        for parameter in command.params:
            value = values.get(parameter.name)
            if value is None or repr(value).startswith("Sentinel"):  # what click has for nothing
                assert not parameter.required, (parameter.name, words)
            elif not isinstance(parameter.type, click.Path | click.File):
                parameter.type_cast_value(context, value)


def test_there_are_no_examples_of_commands_that_do_not_exist():
    assert {f"dafka {path}" for path in EXAMPLES} <= COMMANDS.keys()
