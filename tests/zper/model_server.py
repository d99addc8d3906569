"""A ZPER server as a model, against which clients are tested: on pyzmq, with everything in memory.

It does what the wire document says and nothing else: no durability, one message a flush. A test can make it
lose its connections, cut segments, and answer late.
"""

from __future__ import annotations

import struct
import threading
from collections import defaultdict
from types import TracebackType

import zmq
from contexts import new_context
from ports import free_port
from timing import until

from dafka.protocol.raw import decode_messages, encode_message
from dafka.zper import commands, identity
from dafka.zper.commands import Fetch, Offset, Status

ROLES = {"writer": zmq.ROUTER, "reader": zmq.ROUTER, "relay": zmq.ROUTER, "ack": zmq.PUB}


class ModelServer:
    """Serves the roles of a ZPER server on free ports, from a thread of its own."""

    def __init__(self, segment_size: int = 1 << 29) -> None:
        self.topics: defaultdict[str, bytearray] = defaultdict(bytearray)
        self.first: defaultdict[str, int] = defaultdict(int)
        self.segment_size = segment_size
        self.silent = False
        """Whether requests and messages are taken without a response."""
        self.received = 0
        self.requests: list[Offset | Fetch] = []
        self._streams: dict[bytes, tuple[bool, str, int]] = {}
        self._relays: dict[bytes, str] = {}
        self._context = new_context()
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        self._addresses = {role: f"tcp://127.0.0.1:{free_port()}" for role in ROLES}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._bind()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def writer(self) -> str:
        return self._addresses["writer"]

    @property
    def reader(self) -> str:
        return self._addresses["reader"]

    @property
    def relay(self) -> str:
        return self._addresses["relay"]

    @property
    def ack(self) -> str:
        return self._addresses["ack"]

    def append(self, topic: str, *frames: bytes) -> None:
        self.extend(topic, encode_message(frames), frames[0])

    def extend(self, topic: str, octets: bytes, identifier: bytes = b"") -> None:
        """Append octets as they are."""
        with self._lock:
            self._append(topic, octets, identifier)

    def stop(self) -> None:
        """End all connections; stored messages stay."""
        with self._lock:
            for socket in self._sockets.values():
                socket.close(0)
            self._sockets = {}
            self._streams = {}

    def start(self) -> None:
        """Listen again where it did."""
        with self._lock:
            self._bind()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.stop()
        self._context.destroy(0)

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the thread -------------------------------------------------------------------------------

    def _bind(self) -> None:
        for role, kind in ROLES.items():
            socket = self._context.socket(kind)
            self._sockets[role] = socket
            socket.setsockopt(zmq.LINGER, 0)
            socket.set_hwm(0)
            until(lambda: _bound(socket, self._addresses[role]))  # noqa: B023
            self._addresses[role] = socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()

    def _run(self) -> None:
        while not self._ended.wait(0.001):
            with self._lock:
                for role, take in (("writer", self._write), ("reader", self._read), ("relay", self._join)):
                    while role in self._sockets:
                        try:
                            message = self._sockets[role].recv_multipart(zmq.DONTWAIT)
                        except zmq.Again:
                            break
                        take(*_opened(message))

    def _write(self, client: bytes, delimiter: list[bytes], message: list[bytes]) -> None:
        named = identity.parse(client)
        self.received += 1
        if self.silent:
            return
        self._append(named.topic, encode_message(message), message[0])
        if named.mode:
            self._sockets["writer"].send_multipart([client, *delimiter, message[-1]])

    def _append(self, topic: str, octets: bytes, identifier: bytes) -> None:
        position = len(self.topics[topic])
        self.topics[topic] += octets
        if not self._sockets:
            return
        self._sockets["ack"].send_multipart([topic.encode(), identifier, struct.pack(">q", position)])
        for client, (_, named, _) in list(self._streams.items()):
            if named == topic:
                self._go_on(client)
        for client, named in self._relays.items():
            if named == topic:
                for message in decode_messages(octets)[0]:
                    self._sockets["relay"].send_multipart([client, *message])

    def _join(self, client: bytes, delimiter: list[bytes], message: list[bytes]) -> None:
        self._relays[client] = identity.parse(client).topic

    def _read(self, client: bytes, delimiter: list[bytes], message: list[bytes]) -> None:
        topic = identity.parse(client).topic
        self._streams.pop(client, None)
        try:
            request = commands.parse_request(message)
        except commands.InvalidCommandError as error:
            self._sockets["reader"].send_multipart([client, *delimiter, commands.status(error.status)])
            return
        self.requests.append(request)
        if self.silent:
            return
        if isinstance(request, Offset):
            response = commands.offsets_response(self._offsets(topic, request))
        elif not self.first[topic] <= request.position <= len(self.topics[topic]):
            response = [commands.status(Status.INVALID_OFFSET)]
        elif request.size is None:
            response = [commands.status(Status.OK)]
            self._streams[client] = (bool(delimiter), topic, request.position)
        else:
            segment_end = (request.position // self.segment_size + 1) * self.segment_size
            end = min(request.position + request.size, segment_end)
            response = commands.fetch_response(bytes(self.topics[topic][request.position : end]))
        self._sockets["reader"].send_multipart([client, *delimiter, *response])
        if client in self._streams:
            self._go_on(client)

    def _offsets(self, topic: str, request: Offset) -> list[int]:
        first, end = self.first[topic], len(self.topics[topic])
        starts = [first, *range((first // self.segment_size + 1) * self.segment_size, end, self.segment_size)]
        if request.time == commands.EARLIEST:
            return [first]
        return (
            [starts[-1], end]
            if request.time == commands.LATEST
            else [*starts[-(request.entries or 0) :], end]
        )

    def _go_on(self, client: bytes) -> None:
        delimited, topic, position = self._streams[client]
        messages, end = decode_messages(bytes(self.topics[topic]), position)
        for message in messages:
            self._sockets["reader"].send_multipart([client, *([b""] if delimited else []), *message])
        self._streams[client] = (delimited, topic, end)


def _bound(socket: zmq.Socket[bytes], address: str) -> bool:
    """Whether it could be bound: ZeroMQ closes the socket before in the background."""
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        if error.errno != zmq.EADDRINUSE:
            raise
        return False
    return True


def _opened(message: list[bytes]) -> tuple[bytes, list[bytes], list[bytes]]:
    client, *frames = message
    if not frames[0] and len(frames) > 1:
        return client, frames[:1], frames[1:]
    return client, [], frames
