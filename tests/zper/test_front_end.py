"""ZPER's servers beside a broker: their addresses, their figures, and how they close."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
import zmq
from ports import free_port
from timing import until
from zper.clients import identity

from dafka import Broker
from dafka.mesh.metrics import DESCRIPTIONS
from dafka.testing import TestBroker
from dafka.zper import ZperOptions


def test_in_a_program_everything_listens_on_loopback_on_free_ports():
    with Broker(zper=ZperOptions()) as broker:
        assert broker.zper.addresses["writer"] == broker.zper.writer_address
        for address in broker.zper.addresses.values():
            assert address.startswith("tcp://127.0.0.1:")
            host, port = address.removeprefix("tcp://").split(":")
            socket.create_connection((host, int(port))).close()


def test_a_server_without_an_address_is_not_there():
    with Broker(zper=ZperOptions(writer_bind=None)) as broker:
        assert "writer" not in broker.zper.addresses


def test_an_address_that_is_taken_is_named_and_nothing_stays_behind(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        for _ in range(2):
            with pytest.raises(OSError, match=str(port)):
                Broker(tmp_path, zper=ZperOptions(writer_bind=f"tcp://127.0.0.1:{port}")).start()
    with Broker(tmp_path, zper=ZperOptions(writer_bind=f"tcp://127.0.0.1:{port}")) as broker:
        assert broker.zper.writer_address == f"tcp://127.0.0.1:{port}"


def test_a_broker_that_starts_again_has_the_same_addresses_and_clients_reconnect(tmp_path, clients):
    broker = TestBroker(tmp_path, zper=ZperOptions())
    with broker:
        addresses = dict(broker.zper.addresses)
        sock = clients.req(broker.zper.writer_address, "events", 2)
        left = sock.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        sock.send(b"a")
        assert sock.recv() == b"a"
    assert left.poll(100_000)  # or it might still send to the connection that has ended
    sock.disable_monitor()
    with broker:
        assert dict(broker.zper.addresses) == addresses
        sock.send(b"b")
        assert sock.recv() == b"b"
        assert broker.values("events") == [b"a", b"b"]


def test_accepted_messages_are_flushed_when_the_broker_stops(tmp_path, clients):
    broker = TestBroker(tmp_path, zper=ZperOptions(flush_interval=3_600_000, flush_messages=10**6))
    with broker:
        sock = clients.dealer(broker.zper.writer_address, "events", 1)
        for number in range(1000):
            sock.send(b"%d" % number)
        until(lambda: broker.metrics()["zper_unflushed_messages"] == 1000)
    assert sock.recv() == b"999"  # answered before its connection was closed
    with broker:
        assert broker.values("events") == [b"%d" % number for number in range(1000)]


def test_figures_have_descriptions_and_say_what_was_written(clients):
    with TestBroker(zper=ZperOptions()) as broker:
        sock = clients.req(broker.zper.writer_address, "events", 2)
        sock.send_multipart([b"id", b"body"])
        sock.recv()
        metrics = broker.metrics()
        figures = {name: value for name, value in metrics.items() if name.startswith("zper_")}
        assert set(figures) < set(DESCRIPTIONS)
        assert figures["zper_messages_in"] == figures["zper_flushes"] == figures["zper_connections"] == 1
        assert figures["zper_bytes_in"] == 10
        assert figures["zper_unflushed_messages"] == figures["zper_unflushed_bytes"] == 0
        sock.close()
        until(lambda: broker.metrics()["zper_connections"] == 0)


def test_clients_of_every_version_of_the_protocol_are_told_apart_by_their_identity(clients):
    """A PUSH socket does not tell its identity in ZMTP 3: it is spoken to in ZMTP 2."""
    with TestBroker(zper=ZperOptions(flush_interval=0)) as broker:
        for kind, name in ((zmq.PUSH, "push"), (zmq.DEALER, "dealer"), (zmq.REQ, "req")):
            clients.connect(kind, broker.zper.writer_address, identity(name)).send(b"hello")
            assert broker.wait_for_records(name)[0].value == b"hello"


def test_starting_takes_no_long_turn_of_the_hub():
    """What the servers import is imported with the options, in the thread of the program."""
    program = (
        "import sys; from dafka import Broker; from dafka.zper import ZperOptions\n"
        "options = ZperOptions(); before = set(sys.modules)\n"
        "with Broker(zper=options): new = set(sys.modules) - before\n"
        "print([name for name in new if 'zper' in name])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert found.stdout.strip() == "[]", found.stderr
