"""A console with TLS, and one in which the accounts of its own broker log in."""

from __future__ import annotations

import shutil
import socket
import ssl
import time
import urllib.request
from contextlib import suppress

import pytest
from broker import users
from console.asking import SECONDS, Client
from security.certificates import Authority

from dafka.console import ConsoleOptions, limits
from dafka.security import ServerAcls, ServerTls
from dafka.security.errors import TlsError
from dafka.testing import TestBroker


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(authority):
    """A broker with accounts and rights, whose console has TLS and lets its accounts in."""
    signed = authority.sign("console")
    tls = ServerTls(certfile=signed.certfile, keyfile=signed.keyfile)
    with TestBroker(
        listen="SASL_SSL://127.0.0.1:0",
        tls=tls,
        acls=ServerAcls(super_users=("User:admin",)),
        console=ConsoleOptions(tls=tls, login="SCRAM-SHA-256"),
    ) as broker:
        users.add(broker, "admin", "secret")
        users.add(broker, "reader", "secret")
        broker.create_topic("orders", 1)
        yield broker


@pytest.fixture
def opened(authority, secured, monkeypatch):
    """A client of it that trusts the authority."""
    context = ssl.create_default_context(cafile=authority.cafile)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    monkeypatch.setattr(urllib.request, "urlopen", lambda one, timeout: opener.open(one, timeout=timeout))
    return lambda: Client(secured.console)


def log_in(client: Client, user: str) -> Client:
    answer = client.ask("POST", "/api/session", {"user": user, "password": "secret"})
    assert answer.status == 200 and "Secure" in answer.headers["Set-Cookie"]
    client.headers["Cookie"] = answer.headers["Set-Cookie"].split(";")[0]
    return client


def test_accounts_of_its_own_broker_log_in_over_tls(opened, secured):
    assert secured.console.startswith("https://127.0.0.1:")
    client = opened()
    assert client.get("/health")["status"] == "up"
    assert client.ask("GET", "/api/topics").status == 401
    assert client.ask("POST", "/api/session", {"user": "admin", "password": "wrong"}).status == 401
    admin, reader = log_in(opened(), "admin"), log_in(opened(), "reader")
    assert admin.get("/api/topics")["matching"] == 1 and reader.get("/api/topics")["matching"] == 0


def test_pages_about_the_whole_broker_need_the_right_to_see_its_settings(opened):
    admin, reader = log_in(opened(), "admin"), log_in(opened(), "reader")
    for path in ("/api/mesh", "/api/overlay", "/api/zper", "/api/notices", "/api/mesh/nodes/x"):
        assert reader.ask("GET", path).status == 403, path
        assert admin.ask("GET", path).status in (200, 404), path
    assert admin.get("/api/rates")["records_in"] is not None
    assert reader.get("/api/rates")["records_in"] is None


def test_a_client_without_tls_is_disconnected(secured):
    host, port = secured.console.removeprefix("https://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), SECONDS) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        received = b""
        with suppress(ConnectionResetError):
            while some := plain.recv(1000):
                received += some
        assert b"200" not in received


def test_an_unfinished_handshake_keeps_nobody_out(authority, monkeypatch):
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 1.0)
    monkeypatch.setattr(limits, "CONNECTIONS", 4)
    signed = authority.sign("patient")
    tls = ServerTls(certfile=signed.certfile, keyfile=signed.keyfile)
    with TestBroker(console=ConsoleOptions(tls=tls)) as broker:
        host, port = broker.console.removeprefix("https://").rstrip("/").split(":")
        idle = [socket.create_connection((host, int(port)), SECONDS) for _ in range(4)]
        try:
            context = ssl.create_default_context(cafile=authority.cafile)
            with urllib.request.urlopen(broker.console + "health", timeout=SECONDS, context=context) as one:
                assert one.status == 200
        finally:
            for one in idle:
                one.close()


def test_a_certificate_that_is_renewed_is_used(authority, tmp_path):
    first, second = authority.sign("first"), authority.sign("second")
    used = [tmp_path / "used.pem", tmp_path / "used.key"]

    def put(signed):
        for target, source in zip(used, signed, strict=True):
            shutil.copy(source, target)

    def subject(broker):
        host, port = broker.console.removeprefix("https://").rstrip("/").split(":")
        context = ssl.create_default_context(cafile=authority.cafile)
        with (
            socket.create_connection((host, int(port)), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as one,
        ):
            return one.getpeercert()["serialNumber"]

    put(first)
    tls = ServerTls(certfile=used[0], keyfile=used[1])
    with TestBroker(console=ConsoleOptions(tls=tls)) as broker:
        before = subject(broker)
        put(second)
        for _ in range(100):
            if subject(broker) != before:
                return
            time.sleep(0.1)
        raise AssertionError("the certificate from before is still in use")


def test_options_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(ValueError, match="login"):
        ConsoleOptions(login="GSSAPI")
    with pytest.raises(ValueError, match="listener of the broker with SASL"):
        TestBroker(console=ConsoleOptions(login="SCRAM-SHA-256")).start()
    with pytest.raises(TlsError):
        TestBroker(console=ConsoleOptions(tls=ServerTls(certfile=tmp_path / "missing.pem"))).start()


def test_a_console_that_others_can_overhear_says_so(caplog):
    ConsoleOptions("127.0.0.1:0").warn_if_open()
    assert not caplog.text
    ConsoleOptions("0.0.0.0:0", login="PLAIN").warn_if_open()
    assert "records and passwords" in caplog.text
