"""``--schema-registry`` of ``dafka console`` and ``dafka broker``."""

from __future__ import annotations

import click
import pytest
from cli.tools import refused
from click.testing import CliRunner

from dafka.cli.schema_registry import schema_registry_options
from dafka.console import SchemaRegistry


@pytest.fixture
def run(tmp_path):
    """What options make of a registry; or the error that ends the command."""
    found = []

    @click.command()
    @schema_registry_options
    def command(registry):
        found.append(registry)

    def run(*words):
        found.clear()
        outcome = CliRunner().invoke(command, words)
        return found[0] if found else outcome.output

    return run


def test_a_registry_is_made_of_the_options(run, tmp_path):
    secret, authority = tmp_path / "secret", tmp_path / "ca.pem"
    secret.write_text("p w\n")
    authority.write_text("")
    assert run() is None
    assert run("--schema-registry", "http://host:8081") == SchemaRegistry("http://host:8081")
    words = ["--schema-registry-user", "zoe", "--schema-registry-password", str(secret)]
    found = run("--schema-registry", "https://host", *words, "--schema-registry-cafile", str(authority))
    assert (found.user, found.password, found.tls.cafile) == ("zoe", "p w", str(authority))


def test_invalid_options_are_refused(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    assert "http://HOST:PORT" in run("--schema-registry", "host:8081")
    assert "need --schema-registry" in run("--schema-registry-user", "zoe")
    words = ["--schema-registry", "http://host", "--schema-registry-password", str(secret)]
    assert "needs --schema-registry-user" in run(*words)
    assert "does not exist" in run(*words[:3], str(tmp_path / "nothing"))


def test_a_broker_without_a_console_needs_none():
    words = ["broker", "--check", "--schema-registry", "http://host"]
    assert "for the records that --console shows" in refused(*words).stderr
