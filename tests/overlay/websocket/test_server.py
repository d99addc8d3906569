"""An endpoint's WebSocket server on real sockets: its promises to clients, and hostile ones."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import ExitStack, closing, contextmanager

import pytest
from overlay.websocket.certificates import client_context, server_context
from overlay.websocket.test_connections import REQUEST, frame
from ports import LOOPBACK
from timing import SECONDS, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Opcode
from websockets.sync.client import connect

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint
from dafka.overlay.limits import MOST_PREFIXES
from dafka.overlay.values import Count
from dafka.overlay.websocket import Client, limits
from dafka.overlay.websocket.server_connection import PATH

PATIENCE = SECONDS


@pytest.fixture
def endpoint():
    with Endpoint(websocket=f"{LOOPBACK}:0") as one:
        yield one


def url(endpoint):
    return f"ws://{endpoint.websocket_address}{PATH}"


def metrics(endpoint):
    (server,) = endpoint._websockets
    return get_hub().run(server.metrics)


@contextmanager
def subscribed(endpoint, *prefixes, max_size=None):
    """A foreign client."""
    with connect(url(endpoint), compression=None, max_size=max_size) as client:
        client.send(json.dumps(prefixes))
        ack = json.loads(client.recv(PATIENCE))
        assert ack.keys() == {"type", "endpoint", "version"}
        yield client


def raw(endpoint):
    """A socket that has room for little, connected."""
    host, _, port = endpoint.websocket_address.rpartition(":")
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(PATIENCE)
    one.connect((host, int(port)))
    return one


def count(topic, number):
    return f'{{"type":"data-message","topic":"{topic}","@data-type":"count","data":{number}}}'


# -- who gets what ----------------------------------------------------------------------------------


def test_the_ack_names_the_endpoint(endpoint):
    with connect(url(endpoint)) as client:
        client.send("[]")
        assert json.loads(client.recv(PATIENCE)) == {
            "type": "ack",
            "endpoint": str(endpoint.id),
            "version": "0.1.0",
        }


def test_messages_of_a_client_reach_subscribers_peers_and_other_clients_but_not_itself(endpoint):
    with (
        Endpoint(listen="127.0.0.1:0") as peer,
        peer.subscribe("/t") as far,
        endpoint.subscribe("/t") as near,
        subscribed(endpoint, "/t") as publisher,
        subscribed(endpoint, "/t/x") as other,
        subscribed(endpoint, "/u") as stranger,
    ):
        assert endpoint.peer(peer.address, timeout=PATIENCE)
        publisher.send(count("/t/x", 1))
        assert other.recv(PATIENCE) == count("/t/x", 1)
        assert near.get(PATIENCE)[:2] == far.get(PATIENCE)[:2] == ("/t/x", Count(1))
        stranger.send(count("/t/y", 2))
        assert publisher.recv(PATIENCE) == count("/t/y", 2)
        stranger.send(count("/u/y", 3))
        publisher.send(count("/u/y", 4))
        assert stranger.recv(PATIENCE) == count("/u/y", 4)


def test_a_client_s_prefixes_are_announced_to_peers_and_taken_back(endpoint):
    with Endpoint(listen="127.0.0.1:0") as middle, Endpoint(peers=[middle.address]) as far:
        assert endpoint.peer(middle.address, timeout=PATIENCE)
        assert far.await_peer(endpoint.id, PATIENCE)

        def wanted():
            table = get_hub().run(lambda: dict(far._carrier.role.core.peer.flooding.table.peers))
            return table[bytes(endpoint.id)].filter

        with subscribed(endpoint, "/ws", "") as client:
            until(lambda: wanted() == (b"",))
            far.publish("/anything", Count(5))  # no other subscriber anywhere
            assert client.recv(PATIENCE) == count("/anything", 5)
        until(lambda: wanted() == ())


def test_a_client_gets_what_its_endpoint_publishes(endpoint):
    with subscribed(endpoint, "/t") as client:
        endpoint.publish("/t", Count(1))
        assert client.recv(PATIENCE) == count("/t", 1)


def test_many_clients_get_the_same_message_in_order(endpoint):
    with ExitStack() as stack:
        clients = [stack.enter_context(subscribed(endpoint, "/t")) for _ in range(20)]
        endpoint.publish_batch([("/t", Count(number)) for number in range(200)])
        for client in clients:
            assert [client.recv(PATIENCE) for _ in range(200)] == [count("/t", n) for n in range(200)]


def test_errors_have_the_number_of_the_message_and_the_connection_goes_on(endpoint):
    with subscribed(endpoint) as client, endpoint.subscribe("/t") as subscriber:
        for text, context in (
            ("How is it going?", "input #1 contained malformed JSON -> caf::pec::unexpected_character(1, 1)"),
            ("[1,2]", "input #2 expected a JSON object"),
            (count("/t", -1), "input #3 contained invalid data"),
            (count("<$>/local/x", 1), "input #4 is on <$>/local/, where no client may publish"),
        ):
            client.send(text)
            assert json.loads(client.recv(PATIENCE))["context"] == context
        client.send(count("/t", 6))
        assert subscriber.get(PATIENCE).value == Count(6)


def test_an_endpoint_that_closes_says_goodbye():
    endpoint = Endpoint(websocket="127.0.0.1:0")
    address = url(endpoint)
    with subscribed(endpoint) as client:
        endpoint.close()
        with pytest.raises(ConnectionClosed) as error:
            client.recv(PATIENCE)
        assert error.value.rcvd.code == 1001
    with pytest.raises(ConnectionRefusedError), connect(address):
        pass


def test_an_endpoint_without_websocket_clients_has_no_address_for_them():
    with Endpoint() as endpoint, pytest.raises(ValueError, match="does not listen for WebSocket"):
        _ = endpoint.websocket_address


# -- what is refused --------------------------------------------------------------------------------


def test_another_path_is_refused(endpoint):
    with pytest.raises(InvalidStatus, match="HTTP 400"), connect(f"ws://{endpoint.websocket_address}/"):
        pass


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("{}", "must be a JSON array"),
        ("x", "malformed JSON"),
        (json.dumps(["/a"] * (MOST_PREFIXES + 1)), f"at most {MOST_PREFIXES}"),
    ],
    ids=["an object", "no JSON", "too many"],
)
def test_a_client_that_does_not_begin_with_its_subscriptions_is_told_so(endpoint, first, reason):
    with connect(url(endpoint)) as client:
        client.send(first)
        assert reason in json.loads(client.recv(PATIENCE))["context"]
        with pytest.raises(ConnectionClosed) as error:
            client.recv(PATIENCE)
    assert error.value.rcvd.code == 1008
    assert reason in error.value.rcvd.reason


def test_a_binary_message_is_refused_with_a_reason(endpoint):
    with subscribed(endpoint) as client:
        client.send(b"{}")
        with pytest.raises(ConnectionClosed) as error:
            client.recv(PATIENCE)
    assert error.value.rcvd.code == 1003


def test_a_message_that_is_too_large_is_refused_before_it_is_there(endpoint):
    with subscribed(endpoint) as client, pytest.raises(ConnectionClosed) as error:
        client.send("x" * (limits.MESSAGE_OCTETS + 1))
        client.recv(PATIENCE)
    assert error.value.rcvd.code == 1009


def test_a_slow_handshake_ends(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 1.0)
    with closing(raw(endpoint)) as silent, closing(raw(endpoint)) as trickling:
        trickling.sendall(b"GET /v1/messages/json HTTP/1.1\r\n")
        assert silent.recv(1000) == b""
        assert trickling.recv(1000) == b""
    with connect(url(endpoint)) as client, pytest.raises(ConnectionClosed) as error:
        client.recv(PATIENCE)  # it never says what it wants
    assert error.value.rcvd.code == 1008
    assert metrics(endpoint)["closed_handshake_slow"] == 3


def test_half_open_handshakes_by_the_hundred_keep_nobody_out(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "HANDSHAKES", 50)
    monkeypatch.setattr(limits, "HANDSHAKE_LEAST_SECONDS", 0.1)
    half_open = [raw(endpoint) for _ in range(200)]
    try:
        with subscribed(endpoint, "/t") as client:
            endpoint.publish("/t", Count(1))
            assert client.recv(PATIENCE) == count("/t", 1)
        assert metrics(endpoint)["closed_handshakes"] >= 150
    finally:
        for one in half_open:
            one.close()


def test_there_is_a_bound_on_connections(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "CONNECTIONS", 3)
    with subscribed(endpoint), subscribed(endpoint):
        with subscribed(endpoint), closing(raw(endpoint)) as more:
            assert more.recv(1000) == b""
        until(lambda: metrics(endpoint)["connections"] == 2)
        with subscribed(endpoint):
            pass


# -- clients that are slow --------------------------------------------------------------------------


def test_a_client_that_does_not_read_is_disconnected_and_nobody_else_notices(endpoint):
    with closing(raw(endpoint)) as stuck, subscribed(endpoint, "/t") as reading:
        stuck.sendall(REQUEST + b"\r\n" + frame(Opcode.TEXT, b'["/t"]'))
        until(lambda: metrics(endpoint)["clients"] == 2)
        big = "x" * 100_000
        got = 0
        ends = time.monotonic() + PATIENCE
        while "closed_slow" not in metrics(endpoint):
            assert time.monotonic() < ends
            endpoint.publish("/t", big)
            assert len(reading.recv(PATIENCE)) > len(big)
            got += 1
        assert metrics(endpoint)["queued_octets"] < 40 * 1024 * 1024
        assert got > 100  # some megabytes were queued for it
        endpoint.publish("/t", Count(1))
        assert reading.recv(PATIENCE) == count("/t", 1)


def test_a_client_that_reads_nothing_of_its_errors_is_not_read_either(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 0.5)
    with closing(raw(endpoint)) as flood:
        flood.sendall(REQUEST + b"\r\n" + frame(Opcode.TEXT, b"[]"))
        until(lambda: metrics(endpoint)["clients"] == 1)
        rubbish = frame(Opcode.TEXT, b"x") * 10_000
        with pytest.raises(OSError):
            while True:
                flood.sendall(rubbish)
                assert metrics(endpoint)["queued_octets"] < 3 * 1024 * 1024
        assert metrics(endpoint)["closed_unread"] == 1


@pytest.mark.parametrize("there", [False, True], ids=["here", "elsewhere"])
def test_a_client_is_slowed_down_by_subscribers_that_do_not_get(endpoint, there):
    text = count("/t", 1)
    with Endpoint(listen="127.0.0.1:0") as peer, subscribed(endpoint) as client:
        assert endpoint.peer(peer.address, timeout=PATIENCE)
        subscriber = (peer if there else endpoint).subscribe("/t", capacity=10)
        until(lambda: not there or wants(endpoint, peer, b"/t"))
        sent = 0
        while client.ping().wait(1.0):  # until it is not read any more
            for _ in range(1000):
                client.send(text)
            sent += 1000
            assert sent < 50_000
        for _ in range(sent):
            assert subscriber.get(PATIENCE).value == Count(1)


def wants(endpoint, peer, topic):
    table = get_hub().run(lambda: dict(endpoint._carrier.role.core.peer.flooding.table.peers))
    return topic.startswith(table[bytes(peer.id)].filter or (b"nothing",))


# -- TLS --------------------------------------------------------------------------------------------


def test_wss_with_a_foreign_client_and_ours():
    with Endpoint() as endpoint:
        endpoint.listen_websocket("127.0.0.1:0", ssl_context=server_context())
        address = f"wss://{endpoint.websocket_address}{PATH}"
        with (
            connect(address, ssl=client_context()) as foreign,
            Client(address, "/t", ssl_context=client_context()) as ours,
        ):
            foreign.send("[]")
            assert "ack" in foreign.recv(PATIENCE)
            foreign.send('{"topic":"/t","@data-type":"string","data":"' + "ä" * 200_000 + '"}')
            assert ours.get(PATIENCE).value == "ä" * 200_000


def test_a_client_without_tls_is_refused_and_counted():
    with Endpoint() as endpoint:
        endpoint.listen_websocket("127.0.0.1:0", ssl_context=server_context())
        with closing(raw(endpoint)) as plain:
            plain.sendall(b"GET /v1/messages/json HTTP/1.1\r\n\r\n")
            plain.recv(1000)
            until(lambda: metrics(endpoint).get("closed_tls") == 1)


def test_an_endpoint_with_tls_has_it_for_websocket_clients_too():
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
    anonymous.set_ciphers("AECDH-AES256-SHA@SECLEVEL=0")
    with Endpoint(websocket="127.0.0.1:0", tls="anonymous") as endpoint:
        address = f"wss://{endpoint.websocket_address}{PATH}"
        with Client(address, ssl_context=anonymous) as client, endpoint.subscribe("/t") as subscriber:
            client.publish("/t", 1)
            assert subscriber.get(PATIENCE).value == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"capacity": 0}, ValueError),
        ({"capacity": float("nan")}, TypeError),
        ({"capacity": "5"}, TypeError),
        ({"overflow": "grow"}, ValueError),
    ],
    ids=str,
)
def test_a_queue_that_cannot_be_is_refused_where_its_options_enter(options, error):
    """Not by the first client, which would be refused; and NaN would be no bound."""
    with Endpoint() as endpoint:
        with pytest.raises(error, match=r"a queue has room for|overflow is one of"):
            endpoint.listen_websocket("127.0.0.1:0", **options)
        with pytest.raises(error, match=r"a queue has room for|overflow is one of"):
            endpoint.subscribe("t", **options)
