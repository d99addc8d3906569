"""The console as a whole: health, errors, streams, and how it starts and ends."""

from __future__ import annotations

import threading
import time
import urllib.error
from uuid import uuid4

import pytest
from console.asking import SECONDS, Client
from gevent.hub import Hub

import dafka.broker
from dafka import Broker
from dafka.console import Console, ConsoleOptions
from dafka.testing import TestBroker


def test_health_is_up_while_the_broker_answers(client):
    assert client.get("/health")["ready"] is True


def test_health_is_down_when_it_does_not():
    with TestBroker() as broker:
        connection = dafka.broker.connect(broker.bootstrap_servers, SECONDS)
        with Console(connection) as console:
            client = Client(console.url)
            assert client.ask("GET", "/health").status == 200
            broker.stop()
            for path in ("/health", "/health/ready"):
                answer = client.ask("GET", path)
                assert answer.status == 503 and answer.json["status"] == "down" and not answer.json["ready"]
            assert client.get("/health/live") == {"alive": True}
            assert client.ask("GET", "/api/topics").status == 503


def test_a_brokers_console_starts_and_ends_with_it():
    with Broker(console=ConsoleOptions()) as broker:
        first = broker.console
        assert Client(first).get("/api/cluster")["embedded"]
        broker.stop()
        with pytest.raises(OSError):  # nobody listens, or it is being closed
            Client(first).ask("GET", "/health")
        broker.start()
        assert broker.console == first and Client(first).get("/health")["status"] == "up"
    with Broker() as broker:
        assert broker.console is None
    with pytest.raises(ValueError, match="ConsoleOptions"):
        Broker(console="127.0.0.1:8080")


def test_an_address_that_is_taken_is_an_error(shared):
    taken = shared.console.removeprefix("http://").rstrip("/")
    with pytest.raises(OSError, match="cannot listen on"):
        Broker(console=ConsoleOptions(taken)).start()
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with pytest.raises(OSError, match="cannot listen on"):
        Console(connection, ConsoleOptions(taken))


def test_errors_are_json_with_a_status(local):
    for method, path, status in [
        ("GET", "/api/nothing", 404),
        ("PUT", "/api/topics", 405),
        ("GET", "/api/topics?x=1", 400),
        ("GET", "/api/topics?limit=1&limit=2", 400),
        ("GET", "/api/topics?limit=none", 400),
        ("GET", "/api/group", 400),
        ("GET", "/api/configs?kind=cat&name=x", 400),
    ]:
        answer = local.ask(method, path)
        assert answer.status == status, path
        assert set(answer.json) == {"error", "message"}
    answer = local.ask("POST", "/api/topics/x/partitions", {"total": 5.0})  # found by schemathesis
    assert answer.status == 400 and "5.0 is not of type 'integer'" in answer.json["message"]
    answer = local.ask("POST", "/api/topics", {"name": 1})
    assert answer.status == 400 and "body['name']: 1 is not of type 'string'" in answer.json["message"]


def test_every_path_is_described(local):
    description = local.get("/api/openapi.json")
    assert description["openapi"] == "3.1.0"
    assert "get" in description["paths"]["/api/topics/{topic}/records"]
    ids = [one["operationId"] for path in description["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids))


def test_so_many_streams_at_once_and_no_more(shared, monkeypatch):
    from dafka.console import limits

    monkeypatch.setattr(limits, "STREAMS", 2)
    topic = f"t-{uuid4()}"
    shared.create_topic(topic)
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection) as console:
        client = Client(console.url)
        path = f"/api/topics/{topic}/follow"
        streams = [client.open("GET", path) for _ in range(2)]
        for stream in streams:
            assert stream.readline()
        answer = client.ask("GET", path)
        assert answer.status == 503 and answer.json["error"] == "busy"
        streams[0].close()
        deadline = time.monotonic() + SECONDS
        while True:  # the console notices with what it sends next
            shared.preload(topic, [b"x"])
            try:
                client.open("GET", path).close()
                break
            except urllib.error.HTTPError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        streams[1].close()


def test_a_console_that_ends_while_topics_are_followed_says_nothing(capfd):
    with TestBroker(console=True) as broker:
        broker.create_topic("orders")
        client = Client(broker.console)
        streams = [client.open("GET", "/api/topics/orders/follow") for _ in range(5)]
        for stream in streams:
            assert stream.readline() == b"event: following\n"
        time.sleep(0.2)  # they wait for records now, in the hub
    for stream in streams:
        stream.close()
    assert capfd.readouterr().err == ""


def test_a_browser_that_does_not_read_holds_nobody_up(shared):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic)
    shared.preload(topic, [b"x" * 1000] * 50_000)
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection) as console:
        client = Client(console.url)
        slow = [client.open("GET", f"/api/topics/{topic}/download?format=jsonl") for _ in range(3)]
        done = threading.Event()
        threading.Thread(target=lambda: [client.get("/health"), done.set()], daemon=True).start()
        assert done.wait(SECONDS)
        for one in slow:
            one.close()


def test_no_thread_is_left_that_would_crash_the_end_of_a_program(monkeypatch, shared):
    """An interpreter that ends while the console's loop is taken down ends with a signal."""
    destroy, destroyed = Hub.destroy, []

    def slowly(hub, destroy_loop=None):
        time.sleep(0.2)
        destroy(hub, destroy_loop)
        destroyed.append(hub)

    monkeypatch.setattr(Hub, "destroy", slowly)
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection) as console:
        pass
    assert len(destroyed) == 1
    with pytest.raises(OSError, match="cannot listen on"):
        Console(connection, ConsoleOptions(shared.console.removeprefix("http://").rstrip("/")))
    assert len(destroyed) == 2
    with pytest.raises(OSError):  # nobody listens, or it is being closed
        Client(console.url).ask("GET", "/health")
