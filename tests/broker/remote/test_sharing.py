"""Finding brokers by address when they are not in this process, and sharing the connections to them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time

import forking
import pytest
from broker.remote.fake_broker import CLOSE, HANG
from kafka.errors import KafkaConfigurationError, KafkaTimeoutError
from ports import LOOPBACK
from timing import until

from dafka import Broker
from dafka.broker import connect
from dafka.broker.embedded.broker import EmbeddedBroker
from dafka.broker.remote.remote import Remote

API_VERSIONS = 18


def address(cluster) -> str:
    return f"{LOOPBACK}:{cluster.brokers[0].port}"


def test_an_address_of_no_broker_here_is_connected_to(fake):
    connection = connect(address(fake), 100)
    assert isinstance(connection.broker, Remote)
    assert set(connection.call("metadata", None).topics) == {"t"}
    connection.close()


def test_clients_of_one_address_share_connections_until_the_last_is_gone(fake):
    first, second = connect(address(fake), 100), connect(address(fake), 100)
    assert first.broker is second.broker
    open_connections = fake.brokers[0]._sockets
    first.close()
    second.call("metadata", None)
    count = fake.brokers[0].connections
    second.call("metadata", None)
    assert fake.brokers[0].connections == count
    second.close()
    until(lambda: not open_connections)


def test_a_client_that_comes_right_after_the_last_is_gone_goes_on_with_its_connections(fake):
    connect(address(fake), 100).close()
    count = fake.brokers[0].connections
    connection = connect(address(fake), 100)
    connection.call("metadata", None)
    assert fake.brokers[0].connections <= count + 1
    connection.close()


def test_a_broker_of_this_process_that_listens_is_used_directly(listening):
    port = listening.bootstrap_servers.rpartition(":")[2]
    for name in ("127.0.0.1", "localhost"):
        assert isinstance(connect(f"{name}:{port}", 100).broker, EmbeddedBroker)


def test_also_by_an_address_it_does_not_know_itself_by():
    with Broker(listen="127.0.0.1:0", advertised="broker.example.com") as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        assert isinstance(connect(f"127.0.0.1:{port}", 100).broker, EmbeddedBroker)


def test_a_broker_that_starts_later_in_this_process_is_found(tmp_path):
    broker = Broker(tmp_path).start()
    there = broker.bootstrap_servers
    broker.stop()
    found = []
    thread = threading.Thread(target=lambda: found.append(connect(there, 100)))
    thread.start()
    time.sleep(0.2)  # it has asked by TCP meanwhile
    with broker.start():
        thread.join()
        assert isinstance(found[0].broker, EmbeddedBroker)


def test_a_broker_that_starts_later_elsewhere_is_found(fake):
    broker = fake.brokers[0]
    broker.stop()
    found = []
    thread = threading.Thread(target=lambda: found.append(connect(address(fake), 100)))
    thread.start()
    time.sleep(0.2)
    broker.restart()
    thread.join()
    assert isinstance(found[0].broker, Remote)
    found[0].close()


def test_the_next_address_is_tried_when_one_is_down_or_does_not_answer(trio, monkeypatch):
    monkeypatch.setattr("dafka.broker.connecting.CONNECT_TIMEOUT", 0.5)
    trio.brokers[0].stop()
    trio.brokers[1].answers[API_VERSIONS] = lambda request: HANG
    servers = [f"{LOOPBACK}:{broker.port}" for broker in trio.brokers]
    started = time.monotonic()
    connection = connect(servers, 60)
    assert time.monotonic() - started < 50
    connection.close()


@pytest.mark.parametrize("answer", [HANG, CLOSE, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_other_than_kafka_is_a_timeout_that_says_what_was_wrong(fake, answer):
    fake.brokers[0].answers[API_VERSIONS] = lambda request: answer
    started = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match=f"over TCP: .*{LOOPBACK}:{fake.brokers[0].port}"):
        connect(address(fake), 0.5)
    assert 0.5 <= time.monotonic() - started < 30
    assert fake.brokers[0].connections < 10  # with pauses in between


def test_clients_that_have_to_log_in_say_how(fake):
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        with pytest.raises(KafkaConfigurationError, match=f"security_protocol='{protocol}'"):
            connect(address(fake), 100, security_protocol=protocol)
    assert fake.brokers[0].connections == 0


def test_a_broker_here_does_not_care_for_security_protocols(listening):
    assert connect(listening.bootstrap_servers, 100, security_protocol="SSL").call("metadata", ())


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_address():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    script = """
        import sys
        from dafka import Broker
        with Broker(listen="[::1]:0") as broker:
            print(broker.bootstrap_servers, flush=True)
            sys.stdin.read()
    """
    with forking.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        servers = process.stdout.readline().strip()
        connection = connect(servers, 100)
        assert isinstance(connection.broker, Remote)
        assert connection.call("metadata", ()).brokers[0][1] == "::1"
        connection.close()
        process.stdin.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_its_own_connections(fake):
    script = f"""
        import os
        from dafka.broker import connect
        from dafka.hub.hub import ForkedError

        parents = connect("{address(fake)}", 100)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                parents.call("metadata", ())
            except ForkedError:
                own = connect("{address(fake)}", 100)
                code = 0 if own.broker is not parents.broker and own.call("metadata", None).topics else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert parents.call("metadata", None).topics
        parents.close()
    """
    ended = forking.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent(script),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
