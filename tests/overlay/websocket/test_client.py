"""The client for Python, beside an endpoint and beside a server that another package serves."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
import time

import pytest
from ports import LOOPBACK, free_port
from timing import SECONDS, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from dafka.overlay import Closed, Empty, Endpoint, Event, Overloaded
from dafka.overlay.errors import InvalidValue
from dafka.overlay.values import Count
from dafka.overlay.websocket import Client, Message, WebSocketError

PATIENCE = SECONDS


@pytest.fixture
def endpoint():
    with Endpoint(websocket="127.0.0.1:0") as one:
        yield one


def url(endpoint):
    return f"ws://{endpoint.websocket_address}"


@contextlib.contextmanager
def server(handle, port=0):
    """A server of the package websockets, with a thread for each connection."""

    def carefully(connection):
        with contextlib.suppress(ConnectionClosed):
            handle(connection)

    with serve(carefully, "127.0.0.1", port, close_timeout=0.2) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        try:
            yield one.socket.getsockname()[1]
        finally:
            one.shutdown()
            thread.join()


def acknowledge(connection):
    connection.recv()
    connection.send('{"type":"ack","endpoint":"e","version":"2.8.0-dev"}')


def test_clients_publish_and_subscribe(endpoint):
    with Client(url(endpoint), "/a", "/b") as one, Client(url(endpoint)) as other:
        assert one.endpoint == str(endpoint.id)
        other.publish("/a/x", {"k": [Count(1), 2.5]})
        other.publish("/c", 1)
        other.publish("/b", Event("ping", ("x",)))
        assert one.get(PATIENCE) == Message("/a/x", {"k": (Count(1), 2.5)})
        assert one.get(PATIENCE).value == (1, 1, ("ping", ("x",)))


def test_messages_come_one_by_one_all_at_once_or_in_a_loop(endpoint):
    with Client(url(endpoint), "/") as client:
        endpoint.publish_batch([("/n", number) for number in range(10)])
        assert client.get(PATIENCE).value == 0
        until(lambda: client.available == 9)
        assert [message.value for message in client.poll()] == list(range(1, 10))
        assert client.poll() == []
        with pytest.raises(Empty):
            client.get(timeout=0.01)
        endpoint.publish("/n", "last")
        for message in client:
            assert message == Message("/n", "last")
            client.close()


def test_a_client_can_be_waited_for_with_select_and_asyncio(endpoint):
    with Client(url(endpoint), "/") as client:
        assert not select.select([client], [], [], 0)[0]
        endpoint.publish("/n", 1)
        assert select.select([client], [], [], PATIENCE)[0]

        async def get():
            readable = asyncio.Event()
            asyncio.get_running_loop().add_reader(client.fileno(), readable.set)
            await asyncio.wait_for(readable.wait(), PATIENCE)
            asyncio.get_running_loop().remove_reader(client.fileno())
            return client.get(0)

        assert asyncio.run(get()).value == 1


def test_a_large_value_goes_there_and_back(endpoint):
    value = ["ä" * 10_000] * 30
    with Client(url(endpoint), "/") as one, Client(url(endpoint)) as other:
        other.publish("/", value)
        assert one.get(PATIENCE).value == tuple(value)


def test_anything_but_a_value_is_refused_at_once(endpoint):
    with Client(url(endpoint)) as client:
        for wrong in (object(), 2**64, {"a": {1j}}):
            with pytest.raises(InvalidValue):
                client.publish("/", wrong)


def test_messages_the_server_refuses_are_kept_and_logged(endpoint, caplog):
    with Client(url(endpoint)) as client:
        client.publish("<$>/local/x", 1)
        until(lambda: client.refused)
        assert client.refused[0].code == "invalid_data"
    assert "did not take a message" in caplog.text


def test_a_message_that_is_too_large_for_the_server_is_told_and_others_go_on(endpoint, caplog):
    subscriber = endpoint.subscribe("/")
    with Client(url(endpoint)) as client:
        client.publish("/", "x" * 2_000_000)
        until(lambda: client.refused and client.is_connected)
        assert "exceeds limit" in client.refused[0].context
        client.publish("/", "behind it")
        assert subscriber.get(PATIENCE).value == "behind it"
    assert "did not take a message" in caplog.text


def test_a_closed_client_says_so(endpoint):
    client = Client(url(endpoint), "/")
    endpoint.publish("/", 1)
    client.close()
    client.close()
    with pytest.raises(Closed):
        client.publish("/", 1)
    with pytest.raises(Closed):
        client.get()


def test_published_messages_are_sent_before_a_client_closes(endpoint):
    with endpoint.subscribe("/", capacity=5000) as subscriber:
        with Client(url(endpoint)) as client:
            for number in range(1000):
                client.publish("/n", number)
        assert [subscriber.get(PATIENCE).value for _ in range(1000)] == list(range(1000))


@pytest.mark.parametrize("wrong", ["http://127.0.0.1:1", "127.0.0.1:9997", "", "ws://"])
def test_anything_but_a_url_is_refused(wrong):
    with pytest.raises(ValueError, match="is not the address of a WebSocket server"):
        Client(wrong)


def test_a_server_that_is_not_there_or_something_else_is_named(endpoint):
    port = free_port()
    with (
        socket.create_server((LOOPBACK, port)),
        pytest.raises(WebSocketError, match=r"no answer within 0\.2 s"),
    ):
        Client(f"ws://{LOOPBACK}:{port}", timeout=0.2)
    with pytest.raises(WebSocketError, match="refused"):
        Client(f"ws://{LOOPBACK}:{port}")
    with pytest.raises(WebSocketError, match=r"HTTP 400 .*invalid path"):
        Client(f"{url(endpoint)}/v2")
    with pytest.raises(WebSocketError, match="closed in the TLS handshake"):
        Client(url(endpoint).replace("ws:", "wss:"))
    with (
        server(lambda connection: connection.send("{}")) as port,
        pytest.raises(WebSocketError, match="message of type"),
    ):
        Client(f"ws://127.0.0.1:{port}")


def test_a_lost_connection_is_replaced_and_nothing_new_is_lost():
    address = f"{LOOPBACK}:{free_port()}"
    with Endpoint(websocket=address) as endpoint, Client(url(endpoint), "/") as client:
        endpoint.close()
        until(lambda: not client.is_connected)
        client.publish("/later", 1)
        with Endpoint(websocket=address) as again, again.subscribe("/later") as subscriber:
            assert subscriber.get(PATIENCE).value == 1
            again.publish("/n", 2)
            assert client.get(PATIENCE).value == 2
            assert client.connections >= 2
            assert client.endpoint == str(again.id)


def test_without_reconnecting_the_end_is_an_error_behind_the_last_message():
    def handle(connection):
        acknowledge(connection)
        connection.send('{"type":"data-message","topic":"/t","@data-type":"count","data":1}')
        connection.close(4000, "enough")

    with server(handle) as port:
        client = Client(f"ws://127.0.0.1:{port}", "/t", reconnect=False)
        assert client.get(PATIENCE) == Message("/t", Count(1))
        with pytest.raises(WebSocketError, match=r"enough .code 4000") as error:
            client.get(PATIENCE)
        assert error.value.code == 4000
        with pytest.raises(WebSocketError):
            client.publish("/t", 1)
        client.close()


def test_messages_of_libbroker_are_read():
    def handle(connection):
        acknowledge(connection)
        for data in (
            '"real","data":inf',
            '"string","data":"\x01\\v"',
            '"nonsense","data":1',
            '"count","data":7',
        ):
            connection.send(f'{{"type":"data-message","topic":"/t","@data-type":{data}}}')
        connection.recv()

    with server(handle) as port, Client(f"ws://127.0.0.1:{port}", "/t") as client:
        assert [client.get(PATIENCE).value for _ in range(3)] == [float("inf"), "\x01\v", Count(7)]


def test_a_server_that_does_not_read_slows_publishers_down(monkeypatch):
    monkeypatch.setattr("dafka.overlay.node.limits.PENDING_MESSAGES", 10)
    done = threading.Event()

    def handle(connection):
        acknowledge(connection)
        done.wait(PATIENCE)

    with server(handle) as port, Client(f"ws://127.0.0.1:{port}", timeout=PATIENCE) as client:
        with pytest.raises(Overloaded):
            for _ in range(10_000):
                client.publish("/t", "x" * 100_000, timeout=0.3)
        client.close(timeout=0.1)
        done.set()


def test_a_client_that_does_not_get_slows_its_server_down():
    sent = 0

    def handle(connection):
        nonlocal sent
        acknowledge(connection)
        data = "x" * 10_000
        while True:
            connection.send(f'{{"type":"data-message","topic":"/t","@data-type":"string","data":"{data}"}}')
            sent += 1

    with server(handle) as port, Client(f"ws://127.0.0.1:{port}", "/t", capacity=10) as client:
        until(lambda: client.available >= 10)
        before = -1
        while before != sent:
            before = sent
            time.sleep(0.2)
        assert sent < 10_000
        for _ in range(2 * sent):
            client.get(PATIENCE)


def test_prefixes_in_a_list_are_refused_before_anything_is_connected():
    with pytest.raises(TypeError, match="a string is a str or bytes, not list"):
        Client("ws://127.0.0.1:1", ["/t"])
