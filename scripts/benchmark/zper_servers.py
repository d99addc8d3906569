"""ZPER's servers measured: rates of plain pyzmq clients that write and fetch, beside a ROUTER that does
nothing else.

A server and its clients are processes of their own. The reference is the shortest loop in which a pyzmq
ROUTER receives what the same client sends.
"""

from __future__ import annotations

import socket
import struct
import tempfile
import time
import uuid
from multiprocessing.connection import Connection
from time import perf_counter, process_time

import zmq
from processes import Figures

TOPIC = "bench"
SUPER_FRAME = 4 * 1024 * 1024
ZMTP_2_DEALER = b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05"  # signature, revision, socket type
ENCODED = 1000  # messages that are sent with one call


def identity(mode: int) -> bytes:
    return bytes([0, mode, len(TOPIC)]) + TOPIC.encode() + uuid.uuid4().bytes


# -- writing ------------------------------------------------------------------------------------


def write(link: Connection, *, count: int, size: int, mode: int) -> Figures:
    """A client that sends as fast as it can."""
    value = bytes(size)
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.SNDHWM, 10_000)
        client.setsockopt(zmq.IDENTITY, identity(mode))
        client.connect(link.recv())
        send = client.send
        for _ in range(count):
            send(value)
        link.recv()
    return ()


def write_encoded(link: Connection, *, count: int, size: int) -> Figures:
    """A DEALER of ZMTP 2.0 whose frames were encoded before: its messages cost it next to nothing."""
    name = identity(0)
    frame = (struct.pack(">BB", 0, size) if size < 256 else struct.pack(">BQ", 2, size)) + bytes(size)
    messages = frame * ENCODED
    host, port = link.recv().removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(ZMTP_2_DEALER + bytes([0, len(name)]) + name)
        for _ in range(count // ENCODED):
            client.sendall(messages)
        link.recv()
    return ()


def receive_plain(link: Connection, *, count: int) -> Figures:
    """Messages that a ROUTER receives in a second."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.RCVHWM, 10_000)
        link.send(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
        receive = router.recv_multipart
        receive()
        began = perf_counter()
        for _ in range(count - 1):
            receive()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def take(link: Connection, *, count: int) -> Figures:
    """Messages that a ZPWriter commits in a second; the longest turn of the hub in processor time; messages
    in a second of the server's processor time."""
    from dafka import Broker
    from dafka.hub.hub import get_hub
    from dafka.zper import ZperOptions

    with tempfile.TemporaryDirectory() as folder, Broker(folder, zper=ZperOptions()) as broker:
        link.send(broker.zper.writer_address)
        metrics = broker.zper.metrics
        while not metrics()["zper_unflushed_messages"]:
            time.sleep(0.001)
        began, used = perf_counter(), process_time()
        get_hub().turns.reset()
        while metrics()["zper_messages_in"] < count:
            time.sleep(0.002)
        ended, used = perf_counter(), process_time() - used
        longest = get_hub().turns.longest_cpu
        link.send("done")
    return count / (ended - began), longest, count / used


# -- reading ------------------------------------------------------------------------------------


def filled(link: Connection, *, count: int, size: int) -> Figures:
    """A server with messages for clients that read; the longest turn of its hub in processor time; messages
    in a second of the server's processor time."""
    from dafka import Broker
    from dafka.hub.hub import get_hub
    from dafka.zper import ZperOptions

    with tempfile.TemporaryDirectory() as folder, Broker(folder, zper=ZperOptions()) as broker:
        with zmq.Context() as context, context.socket(zmq.DEALER) as client:
            client.setsockopt(zmq.IDENTITY, identity(0))
            client.connect(broker.zper.writer_address)
            for _ in range(count):
                client.send(bytes(size))
            while broker.zper.metrics()["zper_messages_in"] < count:
                time.sleep(0.01)
        get_hub().turns.reset()
        used = process_time()
        link.send(broker.zper.reader_address)
        link.recv()
        used = process_time() - used
        longest = get_hub().turns.longest_cpu
    return longest, count / used


def fetch(link: Connection, *, count: int, size: int) -> Figures:
    """Messages that arrive in super frames in a second; the client asks for the next when it has one."""
    stored = count * (size + (2 if size < 255 else 9))
    position = 0
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.IDENTITY, identity(0))
        client.connect(link.recv())
        began = perf_counter()
        while position < stored:
            client.send_multipart([b"FETCH", struct.pack(">q", position), struct.pack(">q", SUPER_FRAME)])
            status, octets = client.recv_multipart(copy=False)
            assert status.bytes == b"d"
            position += len(octets)
        ended = perf_counter()
    link.send("done")
    return (count / (ended - began),)


def stream(link: Connection, *, count: int, size: int) -> Figures:
    """Messages that a client receives from a stream in a second."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.IDENTITY, identity(0))
        client.connect(link.recv())
        client.send_multipart([b"FETCH", struct.pack(">q", 0), struct.pack(">q", -1)])
        receive = client.recv
        receive()
        began = perf_counter()
        for _ in range(count):
            receive()
        ended = perf_counter()
    link.send("done")
    return (count / (ended - began),)
