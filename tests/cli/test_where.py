"""Where accounts, access control lists and quotas are: a broker that cannot be reached, or that refuses."""

from __future__ import annotations

import pytest
from cli.tools import running
from click.testing import CliRunner

from dafka.broker.looking import silence
from dafka.cli import main, where

COMMANDS = [("acl", "list"), ("user", "list"), ("quota", "list")]


@pytest.fixture(autouse=True)
def _no_silence(monkeypatch):
    """On a busy machine it may take two seconds until a broker answers, or that it does not."""
    monkeypatch.setattr(silence, "SILENCE", 1000.0)


def invoked(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.exception
    return result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_is_not_there_is_one_line(command, monkeypatch):
    monkeypatch.setattr(where, "PATIENCE", 0.2)
    (said,) = invoked(*command, "--bootstrap-server", "127.0.0.1:1").splitlines()
    assert said.startswith("Error: no broker answers within 0.2 s at 127.0.0.1:1: ")


def test_a_folder_with_a_wrong_name_is_not_made(tmp_path):
    for command in (*COMMANDS, ("user", "remove", "anna"), ("quota", "remove", "--user", "anna")):
        assert (
            invoked(*command, "--data", str(tmp_path / "typo"))
            == f"Error: there is no folder {tmp_path}/typo\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_silence_is_told_before_the_time_is_over(monkeypatch):
    monkeypatch.setattr(where, "PATIENCE", 0.5)
    monkeypatch.setattr(silence, "SILENCE", 0.01)
    waiting, said = invoked("kafka", "topics", "list", "-b", "127.0.0.1:1").splitlines()
    assert waiting.startswith("no answer from 127.0.0.1:1 yet; trying until ") and "0.5 s in all" in waiting
    assert said.startswith("Error: no broker answers within 0.5 s at 127.0.0.1:1: ")


def test_refusals_of_a_broker_are_one_line(tmp_path):
    with running(
        "broker", "--listen", "127.0.0.1:0", "--authorizer", "--data", str(tmp_path / "data")
    ) as broker:
        address = broker.stderr.readline().split(" ")[1]
        for command in COMMANDS:
            (said,) = invoked(*command, "--bootstrap-server", address).splitlines()
            assert said.startswith("Error: ") and "ClusterAuthorizationFailedError" in said


def test_a_wrong_password_is_one_line_and_is_not_tried_again(tmp_path):
    password = tmp_path / "password"
    password.write_text("right")
    data = ["--data", str(tmp_path / "data")]
    added = CliRunner().invoke(main, ["user", "add", "alice", "--password-file", str(password), *data])
    assert added.exit_code == 0, added.output
    password.write_text("wrong")
    login = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-username", "alice", "--sasl-password-file"]
    with running("broker", "--listen", "SASL_PLAINTEXT://127.0.0.1:0", *data) as broker:
        address = broker.stderr.readline().split(" ")[1]
        for command in COMMANDS:
            (said,) = invoked(*command, "--bootstrap-server", address, *login, str(password)).splitlines()
            assert said.startswith("Error: SaslAuthenticationFailedError: ")
            assert address in said or "invalid" in said.lower() or "failed" in said


def test_below_kafka_they_look_where_the_other_commands_look(tmp_path, monkeypatch):
    with running("broker", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")) as broker:
        address = broker.stderr.readline().split(" ")[1]
        config = tmp_path / "client.properties"
        config.write_text("security.protocol=PLAINTEXT\n")
        added = ["users", "add", "anna", "--password-file", str(config)]
        for words in (added, ["users", "list"], ["quotas", "list"], ["users", "list", "-b", address]):
            done = CliRunner().invoke(main, ["kafka", *words], env={"DAFKA_KAFKA_BOOTSTRAP_SERVER": address})
            assert done.exit_code == 0, done.output
        assert done.stdout.startswith("anna")
        words = ["user", "list", "-b", address, "--command-config", str(config)]
        assert CliRunner().invoke(main, words).exit_code == 0
        monkeypatch.setattr(where, "PATIENCE", 0.2)
        config.write_text("security.protocol=SASL_PLAINTEXT\n")
        assert CliRunner().invoke(main, words).exit_code == 1
        elsewhere = {"DAFKA_KAFKA_BOOTSTRAP_SERVER": "127.0.0.1:1"}
        done = CliRunner().invoke(main, ["kafka", "users", "list"], env=elsewhere)
        assert done.exit_code == 1 and "127.0.0.1:1" in done.output
    assert "give --data" in CliRunner().invoke(main, ["user", "list"]).output
