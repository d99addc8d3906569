"""Where the cluster is: the options that all commands have."""

from __future__ import annotations

import pytest


def test_the_address_comes_from_an_option_or_the_environment(terminal):
    assert terminal.rows("topics", "list", "-b", terminal.servers) == terminal.rows("topics", "list")


def test_properties_come_from_a_file_and_from_the_command_line(terminal, tmp_path, monkeypatch):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=NONE\n")
    config = ["--command-config", str(file)]
    with monkeypatch.context() as soon:
        soon.setattr("dafka.cli.where.PATIENCE", 0.3)
        assert "sasl.mechanism='NONE'" in terminal.refused("topics", "list", *config)
    assert "-X nothing: it is NAME=VALUE" in terminal.misused("topics", "list", "-X", "nothing")
    assert terminal.rows("cluster", "describe", *config, "-X", "security.protocol=PLAINTEXT")
    file.write_text("nonsense\n")
    assert "line 1: it is not name=value" in terminal.refused("topics", "list", *config)


@pytest.mark.parametrize("address", ["a:b:c", "", "a,", "a:", ":1", "a:99999", "a:0", "http://a:1/"])
def test_an_invalid_address_is_refused_at_once(terminal, address):
    assert "is not HOST:PORT" in terminal.misused("topics", "list", "-b", address)


def test_several_addresses_are_given_with_commas(terminal):
    assert terminal.rows("cluster", "describe", "-b", f"{terminal.servers}, [::1]:1,localhost")
