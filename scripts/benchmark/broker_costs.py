"""Costs of a broker: processor time of its process for the work of clients, however fast those are."""

from __future__ import annotations

import selectors
import socket
import struct
from contextlib import ExitStack
from statistics import median
from time import perf_counter

import psutil
from kafka_clients import consume_all, fill, new_topic
from processes import Figures

WARMING_ROUNDS = 3  # in which Java still compiles what runs often; they do not count
ROUNDS = 5
QUEUED_OCTETS = 1000  # that librdkafka takes at most for a record that waits, besides its own
IDLE_WAIT_MS = 500  # that a consumer gives a broker to wait for records, by default
SETTLING_SECONDS = 5.0  # each client has asked some times
IDLE_SECONDS = 4.0


def processor_seconds(pid: int) -> float:
    """Of a process and its children so far, in user and system mode."""
    return sum(_modes(pid))


def _modes(pid: int) -> tuple[float, float]:
    """Seconds in user mode, and in the kernel."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user for one in times), sum(one.system for one in times)


def records(*, servers: str, pid: int, size: int, count: int) -> Figures:
    """Seconds for each GB of values that librdkafka writes to six partitions; those of them in the kernel;
    and seconds for each GB that it reads.

    Medians of some rounds, behind those that warm the broker up.
    """
    gigabytes = size * count / 1e9
    rounds = []
    for _ in range(WARMING_ROUNDS + ROUNDS):
        topic = new_topic(servers, 6)
        _use_memory((2 * size + QUEUED_OCTETS) * count)
        user, kernel = _modes(pid)
        fill(servers, topic, size, count)
        user_then, kernel_then = _modes(pid)
        consume_all(servers, topic, 6, count)
        written = user_then - user + kernel_then - kernel
        rounds.append((written, kernel_then - kernel, processor_seconds(pid) - user_then - kernel_then))
    return tuple(median(one) / gigabytes for one in zip(*rounds[WARMING_ROUNDS:], strict=True))


def _use_memory(octets: int) -> None:
    """Have the system get so much memory, if it has plenty, and give it back: it is written to next.

    A virtual machine has pages that its host gives it only when they are written to, and soon takes back when
    nobody uses them. For a broker that writes a GB to such pages the kernel takes 1 to 2 s more.
    """
    held = b"\1" * min(octets, psutil.virtual_memory().available // 4)
    del held


def waiting_fetches(*, servers: str, pid: int, partitions: int, clients: int) -> Figures:
    """Seconds for each Fetch of so many partitions that ends without a record, sent by so many clients."""
    request = _fetch(new_topic(servers, partitions), partitions)
    host, port = servers.rsplit(":", 1)
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(clients):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            selector.register(connection, selectors.EVENT_READ, bytearray())
            connection.sendall(request)
        _answer_all(selector, request, SETTLING_SECONDS)
        before = processor_seconds(pid)
        rounds = _answer_all(selector, request, IDLE_SECONDS)
        return ((processor_seconds(pid) - before) / max(rounds, 1),)


def _answer_all(selector: selectors.BaseSelector, request: bytes, seconds: float) -> int:
    """Send the request again after each response; how many there were."""
    rounds, ends = 0, perf_counter() + seconds
    while perf_counter() < ends:
        for key, _ in selector.select(0.1):
            connection, received = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            received += connection.recv(65536)
            if len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4], "big"):
                received.clear()
                connection.sendall(request)
                rounds += 1
    return rounds


def _fetch(topic: str, partitions: int) -> bytes:
    """A Fetch, version 4, from the end of an empty topic."""
    name = topic.encode()
    head = struct.pack(">hhih", 1, 4, 1, -1) + struct.pack(">iiiib", -1, IDLE_WAIT_MS, 1, 50 << 20, 0)
    body = struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iqi", number, 0, 1 << 20) for number in range(partitions))
    return struct.pack(">i", len(head) + len(body)) + head + body
