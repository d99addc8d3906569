"""Many partitions, many connections, clients that die."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import uuid
from contextlib import ExitStack

import forking
from clients.adapters import CLIENTS, Confluent
from clients.adapters.client import SECONDS
from clients.conftest import MakeTopic
from clients.records import Record
from descriptors import descriptors
from timing import until

PARTITIONS = 2000
CONNECTIONS = 1000

# Writes numbers with an idempotent producer and prints those that are acknowledged, until it is killed.
WRITER = """
import sys
from confluent_kafka import Producer
servers, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})
def delivered(error, message):
    if error is None:
        print(message.value().decode(), flush=True)
number = 0
while True:
    try:
        producer.produce(topic, str(number), partition=0, on_delivery=delivered)
        number += 1
    except BufferError:
        producer.poll(0.1)
    producer.poll(0)
"""


def test_thousands_of_partitions(servers: str, new_topic: MakeTopic) -> None:
    topic = new_topic(PARTITIONS)
    records = [Record(b"%d" % number, partition=number) for number in range(PARTITIONS)]
    Confluent().produce(servers, topic, records)
    read = Confluent().consume(servers, topic, PARTITIONS)
    assert sorted((record.partition, record.value) for record in read) == sorted(
        (record.partition, record.value) for record in records
    )


def test_a_thousand_idle_connections_do_not_matter(servers: str, topic: str) -> None:
    host, _, port = servers.rpartition(":")
    idle = []
    with descriptors(4 * CONNECTIONS), ExitStack() as stack:
        for _ in range(CONNECTIONS):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=SECONDS))
            idle.append(connection)
            connection.sendall(_api_versions())
        for connection in idle:
            assert len(connection.recv(4, socket.MSG_WAITALL)) == 4  # each is answered
        Confluent().produce(servers, topic, [Record(b"busy")])
        assert len(CLIENTS[0].consume(servers, topic, 3)) == 1


def test_clients_that_end_within_a_request_disturb_nobody(servers: str, topic: str) -> None:
    host, _, port = servers.rpartition(":")
    request = _api_versions()
    for length in range(len(request)):
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            connection.sendall(request[:length])
            if length % 2:  # a reset instead of an end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    Confluent().produce(servers, topic, [Record(b"undisturbed")])
    assert len(Confluent().consume(servers, topic, 3)) == 1


def test_records_acknowledged_to_a_killed_producer_are_there_once_and_in_order(
    servers: str, topic: str
) -> None:
    command = [sys.executable, "-c", WRITER, servers, topic]
    writer = forking.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(500)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.communicate()[0].splitlines()]
    read = [int(record.value or b"") for record in Confluent().consume(servers, topic, 3)]
    assert read == list(range(len(read)))
    assert len(read) >= len(acknowledged) and acknowledged == list(range(len(acknowledged)))


def test_a_consumer_that_dies_within_a_fetch_disturbs_nobody(servers: str, topic: str) -> None:
    """Killed while the broker holds its fetch back, and while it sends large ones."""
    Confluent().produce(servers, topic, [Record(bytes(500_000)) for _ in range(20)])
    for _ in range(5):
        member = CLIENTS[1].member(servers, f"group-{uuid.uuid4().hex[:8]}", topic)
        until(lambda member=member: member.assigned is not None, member)
        member.kill()
    assert len(Confluent().consume(servers, topic, 3)) == 20


def _api_versions() -> bytes:
    """ApiVersions, version 0, of a client named test."""
    body = struct.pack(">hhih", 18, 0, 1, 4) + b"test"
    return struct.pack(">i", len(body)) + body
