"""``dafka config``: the list of what can be set in the environment and in a file."""

from __future__ import annotations

import pytest
from cli.tools import COMMANDS, refused
from click.testing import CliRunner

from dafka.cli import keys, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_variable_and_every_key_is_listed(name: str) -> None:
    listed = CliRunner().invoke(main, ["config", *name.split()]).output.split()
    for one in keys.settings(COMMANDS[name], tuple(name.split())):
        assert {one.variable, one.key} - {None} <= {*listed}


def test_the_list_of_all_commands_has_those_of_each() -> None:
    listed = refused("config").stdout
    for name in COMMANDS:
        assert f"dafka {name}\n" in listed
    assert "DAFKA_EMBEDDED" in listed
    assert refused("config", "nonsense").returncode == 2
    assert refused("config", "perf", "nonsense").returncode == 2
