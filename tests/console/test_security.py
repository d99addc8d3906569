"""The rights that requests to a console need."""

from __future__ import annotations

import http.client
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from broker import users
from console.asking import SECONDS, Client

import dafka.broker
from dafka.console import Console, ConsoleOptions, doors, limits
from dafka.console.doors import Accounts
from dafka.console.errors import ForbiddenError
from dafka.console.security import check_host
from dafka.security import ServerAcls
from dafka.testing import TestBroker


def test_hosts_are_addresses_this_machine_or_named():
    for host in ("127.0.0.1:8080", "localhost", "[::1]:80", "10.0.0.7", "kafka.example:80"):
        check_host(host, frozenset({"kafka.example"}))
    for host in ("evil.example", "", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::1"):
        with pytest.raises(ForbiddenError, match="is not this console"):
            check_host(host, frozenset())


def test_a_name_that_leads_here_is_not_enough(local):
    answer = local.ask("GET", "/api/topics", headers={"Host": "rebound.example"})
    assert answer.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Dafka-Console": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_change_nothing(local, shared, headers):
    name = f"t-{uuid4()}"
    for header, value in headers.items():
        if value is None:
            del local.headers[header]
        else:
            local.headers[header] = value
    assert local.ask("POST", "/api/topics", {"name": name}).status == 403
    assert name not in shared.topics()


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://["},
    ],
)
def test_pages_of_other_sites_start_no_search(local, headers):
    assert local.ask("GET", "/api/topics", headers=headers).status == 403
    assert local.ask("GET", "/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200  # a link


def test_a_body_that_is_nested_too_deeply_is_not_a_mistake_of_the_console(local):
    address = local.url + "/api/session"
    headers = {**local.headers, "Content-Type": "application/json"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(address, b"[" * 200_000, headers), timeout=SECONDS)
    with refused.value as answer:
        assert answer.code == 400 and b"nested more than 300 deep" in answer.read()


def test_forms_and_preflights_of_other_sites_are_not_taken(local):
    assert local.ask("POST", "/api/topics", {"name": "x"}, {"Content-Type": "text/plain"}).status == 415
    answer = local.ask("OPTIONS", "/api/topics")
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_read_only_console_changes_nothing(read_only, shared):
    name = f"t-{uuid4()}"
    answer = read_only.ask("POST", "/api/topics", {"name": name})
    assert answer.status == 403 and "read-only" in answer.json["message"]
    assert not read_only.get("/api/session")["writes"] and name not in shared.topics()


def test_a_console_beyond_loopback_is_read_only_unless_told():
    assert ConsoleOptions("127.0.0.1:0").writes and ConsoleOptions("[::1]:0").writes
    assert not ConsoleOptions("0.0.0.0:0").writes and ConsoleOptions("0.0.0.0:0", write=True).writes
    for listen in ("8080", "SSL://127.0.0.1:8080", "127.0.0.1:1,127.0.0.1:2"):
        with pytest.raises(ValueError, match="listen"):
            ConsoleOptions(listen)
    with pytest.raises(ValueError, match="list of names"):
        ConsoleOptions(hosts="kafka.example")


def test_every_answer_says_what_a_browser_may_load(local):
    for path in ("/", "/topics/x", "/health", "/api/topics", "/api/nothing", "/static/nothing"):
        headers = local.ask("GET", path).headers
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_files_outside_the_package_are_not_served(local):
    host = local.url.removeprefix("http://")
    for path in ("/static/../options.py", "/static/%2e%2e/options.py", "/static//etc/passwd"):
        connection = http.client.HTTPConnection(host, timeout=SECONDS)
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 404 or b"<!doctype html>" in answer.read()[:20]
        connection.close()


def test_too_large_a_body_is_not_read(local):
    host, port = local.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), SECONDS) as one:
        one.sendall(
            f"POST /api/topics HTTP/1.1\r\nHost: {host}\r\nX-Dafka-Console: 1\r\n"
            "Content-Type: application/json\r\nContent-Length: 999999999\r\n\r\n".encode()
        )
        assert b" 413 " in one.recv(1000)


def test_many_connections_without_a_request_keep_nobody_out_for_ever(shared, monkeypatch):
    monkeypatch.setattr(limits, "SOCKET_SECONDS", 2.0)
    monkeypatch.setattr(limits, "CONNECTIONS", 4)
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection) as console:
        host, port = console.url.removeprefix("http://").rstrip("/").split(":")
        idle = [socket.create_connection((host, int(port)), SECONDS) for _ in range(4)]
        try:
            assert Client(console.url).get("/health")["ready"] is True
        finally:
            for one in idle:
                one.close()


def test_a_broker_without_access_control_lists_says_so(local):
    assert local.get("/api/access")["acls"] is None


@pytest.fixture
def with_accounts():
    """A broker with accounts, and a console in which everybody logs in."""
    with TestBroker(
        listen="SASL_PLAINTEXT://127.0.0.1:0", acls=ServerAcls(super_users=("User:admin",))
    ) as broker:
        users.add(broker, "admin", "secret")
        users.add(broker, "reader", "secret")
        broker.create_topic("orders", 1)
        host, port = broker.listeners["SASL_PLAINTEXT"].split(":")
        with Console(None, None, Accounts(((host, int(port)),), "SCRAM-SHA-256")) as console:
            yield console.url


def test_accounts_log_in_and_see_what_they_may(with_accounts):
    client = Client(with_accounts)
    assert client.ask("GET", "/api/topics").status == 401
    assert client.get("/api/session") == {"login": True, "user": None, "writes": False}
    assert client.get("/health")["ready"] is True
    began = time.monotonic()
    assert client.ask("POST", "/api/session", {"user": "admin", "password": "wrong"}).status == 401
    assert time.monotonic() - began > 0.9
    answer = client.ask("POST", "/api/session", {"user": "admin", "password": "secret"})
    cookie = answer.headers["Set-Cookie"]
    assert answer.status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    client.headers["Cookie"] = cookie.split(";")[0]
    assert client.get("/api/topics")["matching"] == 1
    found = client.get("/api/access", search="read")
    assert found["accounts"] == [{"user": "reader", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}]
    assert found["acls"] == []
    reader = Client(with_accounts)
    answer = reader.ask("POST", "/api/session", {"user": "reader", "password": "secret"})
    reader.headers["Cookie"] = answer.headers["Set-Cookie"].split(";")[0]
    assert reader.get("/api/topics")["matching"] == 0
    assert reader.ask("GET", "/api/access").status == 403
    assert reader.ask("DELETE", "/api/topics/orders").status in (403, 404)
    assert client.ask("DELETE", "/api/session").status == 200
    assert client.ask("GET", "/api/topics").status == 401
    assert reader.get("/api/session")["user"] == "reader"


@pytest.mark.parametrize(
    ("user", "password"), [("admin", "x" * 1001), ("x" * 1001, "secret"), ("admin", "\ud800")]
)
def test_anything_but_a_name_and_password_never_reaches_the_broker(with_accounts, user, password):
    answer = Client(with_accounts).ask("POST", "/api/session", {"user": user, "password": password})
    assert answer.status == 400, answer.content


def test_one_account_takes_no_session_of_another(with_accounts, monkeypatch):
    monkeypatch.setattr(limits, "SESSIONS", 4)
    monkeypatch.setattr(limits, "SESSIONS_OF_ONE", 2)
    admin, readers = Client(with_accounts), [Client(with_accounts) for _ in range(5)]
    for client, user in ((admin, "admin"), *((one, "reader") for one in readers)):
        answer = client.ask("POST", "/api/session", {"user": user, "password": "secret"})
        client.headers["Cookie"] = answer.headers["Set-Cookie"].split(";")[0]
    assert admin.get("/api/session")["user"] == "admin"
    assert [one.get("/api/session")["user"] for one in readers] == [None, None, None, "reader", "reader"]


def logged_in(url, user):
    client = Client(url)
    answer = client.ask("POST", "/api/session", {"user": user, "password": "secret"})
    assert answer.status == 200, answer.content
    client.headers["Cookie"] = answer.headers["Set-Cookie"].split(";")[0]
    return client


def test_passwords_cannot_be_guessed_for_long(with_accounts, monkeypatch):
    monkeypatch.setattr(limits, "ATTEMPTS_OF_ACCOUNT", 3)
    monkeypatch.setattr(doors, "_REFUSED_PAUSE", 0.0)
    client = Client(with_accounts)
    given = {"user": "admin", "password": "wrong"}
    assert [client.ask("POST", "/api/session", given).status for _ in range(5)] == [401, 401, 401, 429, 429]
    answer = client.ask("POST", "/api/session", {"user": "admin", "password": "secret"})
    assert answer.status == 429 and "try again" in answer.json["message"]
    assert logged_in(with_accounts, "reader").get("/api/session")["user"] == "reader"


def test_wrong_passwords_at_the_same_time_are_counted_too(with_accounts, monkeypatch):
    monkeypatch.setattr(limits, "ATTEMPTS_OF_ACCOUNT", 3)
    given = {"user": "admin", "password": "wrong"}
    with ThreadPoolExecutor(10) as pool:
        tries = [pool.submit(Client(with_accounts).ask, "POST", "/api/session", given) for _ in range(10)]
        assert sorted(one.result().status for one in tries) == [401] * 3 + [429] * 7


def test_guesses_keep_nobody_waiting(with_accounts, monkeypatch):
    monkeypatch.setattr(doors, "_REFUSED_PAUSE", 30.0)
    given = {"user": "admin", "password": "wrong"}
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(Client(with_accounts).ask, "POST", "/api/session", given) for _ in range(8)]
        began = time.monotonic()
        assert logged_in(with_accounts, "reader").get("/api/session")["user"] == "reader"
        assert time.monotonic() - began < 25
        monkeypatch.setattr(doors, "_REFUSED_PAUSE", 0.0)
        assert not any(one.done() for one in tries)


def test_a_login_ends_the_session_before_and_takes_no_token_of_a_stranger(with_accounts):
    client = logged_in(with_accounts, "reader")
    before = client.headers["Cookie"]
    answer = client.ask("POST", "/api/session", {"user": "admin", "password": "secret"})
    after = answer.headers["Set-Cookie"].split(";")[0]
    assert after != before and client.get("/api/session")["login"]
    name = after.partition("=")[0]
    client.headers["Cookie"] = f"{name}=chosen-by-a-stranger"
    answer = client.ask("POST", "/api/session", {"user": "admin", "password": "secret"})
    assert "chosen" not in answer.headers["Set-Cookie"]


def test_consoles_at_several_ports_of_a_host_have_cookies_of_their_own(with_accounts):
    answer = Client(with_accounts).ask("POST", "/api/session", {"user": "admin", "password": "secret"})
    port = with_accounts.rstrip("/").rpartition(":")[2]
    assert answer.headers["Set-Cookie"].startswith(f"dafka-console-{port}=")
    assert "Path=/" in answer.headers["Set-Cookie"] and "Domain" not in answer.headers["Set-Cookie"]


def test_one_logs_out_everywhere_and_nobody_else_does(with_accounts):
    here, there, other = (logged_in(with_accounts, user) for user in ("reader", "reader", "admin"))
    assert here.ask("DELETE", "/api/session", everywhere="true").status == 200
    assert [one.get("/api/session")["user"] for one in (here, there, other)] == [None, None, "admin"]


def test_a_session_ends_also_when_it_is_used(with_accounts, monkeypatch):
    client = logged_in(with_accounts, "reader")
    assert client.get("/api/session")["user"] == "reader"
    monkeypatch.setattr(limits, "SESSION_LONGEST", 0.0)
    assert client.get("/api/session")["user"] is None


def test_one_account_takes_no_stream_of_another(with_accounts, monkeypatch):
    monkeypatch.setattr(limits, "STREAMS_OF_ONE", 2)
    admin, other = logged_in(with_accounts, "admin"), logged_in(with_accounts, "admin")
    streams = [one.open("GET", "/api/topics/orders/follow") for one in (admin, other)]
    try:
        refused = admin.ask("GET", "/api/topics/orders/follow")
        assert refused.status == 503 and "2 searches" in refused.json["message"]
    finally:
        for one in streams:
            one.close()


def test_only_an_operator_names_schemas_of_the_registry(with_accounts):
    reader, admin = logged_in(with_accounts, "reader"), logged_in(with_accounts, "admin")
    assert reader.ask("GET", "/api/topics/orders/search", decode="schema:1").status == 403
    assert admin.ask("GET", "/api/topics/orders/search", decode="schema:1").status == 200
