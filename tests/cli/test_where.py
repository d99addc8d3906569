"""Where accounts, access control lists and quotas are: a broker that cannot be reached, or that refuses."""

from __future__ import annotations

import pytest
from cli.tools import running
from click.testing import CliRunner

from dafka.cli import main, where

COMMANDS = [("acl", "list"), ("user", "list"), ("quota", "list")]


def invoked(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.exception
    return result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_is_not_there_is_one_line(command, monkeypatch):
    monkeypatch.setattr(where, "PATIENCE", 0.2)
    (said,) = invoked(*command, "--bootstrap-server", "127.0.0.1:1").splitlines()
    assert said.startswith("Error: no broker answers within 0.2 s: ")


def test_what_a_broker_refuses_is_one_line(tmp_path):
    with running(
        "broker", "--listen", "127.0.0.1:0", "--authorizer", "--data", str(tmp_path / "data")
    ) as broker:
        address = broker.stderr.readline().split(" ")[1]
        for command in COMMANDS:
            (said,) = invoked(*command, "--bootstrap-server", address).splitlines()
            assert said.startswith("Error: ") and "ClusterAuthorizationFailedError" in said
