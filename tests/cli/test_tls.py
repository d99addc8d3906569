"""The options of a server's certificate, at ``dafka broker``."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from cli.tools import refused, running
from kafka import KafkaProducer
from security.certificates import Authority

LISTEN = ("--listen", "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0")


def test_a_daemon_with_tls_says_its_addresses_and_lets_known_clients_in(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, client = authority.sign("server"), authority.sign("client")
    files = ("--ssl-certfile", server.certfile, "--ssl-keyfile", server.keyfile)
    rights = ("--ssl-cafile", authority.cafile, "--ssl-client-auth", "required")
    with running("broker", *LISTEN, *files, *rights, "--data", str(tmp_path / "data")) as daemon:
        assert daemon.stderr is not None
        said = daemon.stderr.readline()
        assert said.startswith("broker: PLAINTEXT://127.0.0.1:")
        producer = KafkaProducer(
            bootstrap_servers=said.split("SSL://")[1].split(" ")[0],
            security_protocol="SSL",
            ssl_cafile=authority.cafile,
            ssl_certfile=client.certfile,
            ssl_keyfile=client.keyfile,
        )
        try:
            assert producer.send("topic", b"one").get(20).offset == 0
        finally:
            producer.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ssl-cafile", "a.pem"], "need --ssl-certfile"),
        (["--ssl-certfile", "none.pem", *LISTEN], "certfile='none.pem' cannot be read"),
        (["--ssl-certfile", "none.pem"], "no listener has it"),
        (LISTEN, "SSL needs tls"),
    ],
)
def test_options_that_make_no_sense_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = refused("broker", "--data", str(tmp_path / "data"), *arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP here")
def test_sighup_reads_new_files_and_ends_nothing(tmp_path):
    authority = Authority(tmp_path)
    signed = authority.sign("server")
    command = ["broker", "-v", "--listen", "SSL://127.0.0.1:0", "--data", str(tmp_path / "data")]
    with running(*command, "--ssl-certfile", signed.certfile, "--ssl-keyfile", signed.keyfile) as daemon:
        assert "is started" in daemon.stderr.readline()
        daemon.send_signal(signal.SIGHUP)  # before it has said where it listens
        while not (line := daemon.stderr.readline()).startswith("broker: "):
            assert line  # it has ended
        authority.sign("server")
        daemon.send_signal(signal.SIGHUP)
        while "is in use from now on" not in (line := daemon.stderr.readline()):
            assert line  # it has ended
