"""The transport of libzmq: one XPUB and two SUB sockets of pyzmq's, and a SUB socket for each lane.

Their descriptors are edge triggered: they tell of news once, and any call on the socket may be the one that
hears it. Hence the endpoint's loop looks at the sockets again before each wait, and every place that sends or
subscribes has it look again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import zmq

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.mesh import limits
from dafka.mesh.lane import Lane
from dafka.mesh.options import EndpointOptions
from dafka.mesh.sockets import Socket
from dafka.mesh.transport import Deliver, EndpointBindError, Lend, Note, Sink
from dafka.protocol.commands import Command
from dafka.protocol.framing import encode
from dafka.protocol.runs import Run, RunReader, encode_run


class LibzmqTransport:
    """``ready`` is called when :meth:`read` may have something."""

    tells_reached = False

    def __init__(self, hub: Hub, options: EndpointOptions, sink: Sink, ready: Callable[[], object]) -> None:
        self._hub = hub
        self._framing = options.framing
        self._sink = sink
        self._ready = ready
        self._reader = RunReader()
        context, water_mark = hub.context, options.high_water_mark
        self._publisher = Socket(context, zmq.XPUB, ready, water_mark)
        self.subscriber = Socket(context, zmq.SUB, ready, water_mark)
        self.answers = Socket(context, zmq.SUB, ready, water_mark)
        try:
            self._publisher.set(zmq.XPUB_VERBOSE, 1)
            # A peer that is stopped, or whose link is cut, would have its queue filled until TCP gives up.
            self._publisher.set(zmq.TCP_MAXRT, int(min(options.beacon_timeout * 1000, 2**31 - 1)))
            self._publisher.set(zmq.MAXMSGSIZE, limits.SUBSCRIPTION_OCTETS)
            for socket in (self.subscriber, self.answers):
                socket.set(zmq.MAXMSGSIZE, limits.RECORD_OCTETS)
                socket.set(zmq.RECONNECT_IVL_MAX, limits.RECONNECT_MS)
            self.port = self._bind(options.bind)
        except BaseException:
            self._close(0)
            raise

    def _bind(self, interface: str) -> int:
        try:
            return self._publisher.bind_free_port(interface)
        except zmq.ZMQError as error:
            raise EndpointBindError(f"a node cannot bind a port of {interface!r}: {error}") from error

    def lane(self, peers: list[str], note: Note, deliver: Deliver, lend: Lend | None) -> Lane:
        return Lane(self._hub, peers, note, deliver)

    def send(self, item: Run | Command) -> None:
        if isinstance(item, Run):
            self._publisher.send_messages(encode_run(item, self._framing))
        else:
            self._publisher.send_messages((encode(item, self._framing),))

    def lease(self, first: bytes) -> None:
        return None  # a socket of libzmq belongs to one thread

    def revoke(self) -> None:
        pass

    def count_flight(self, peers: int, octets: int) -> None:
        pass

    def look(self) -> None:
        if self._publisher.readable():
            self._ready()

    def read(self) -> bool:
        busy = self._read_subscriptions()
        busy = self._read_messages(self.answers) or busy
        return self._read_messages(self.subscriber) or busy

    def metrics(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._close(limits.LINGER_MS)

    def _close(self, linger_ms: int) -> None:
        for socket in (self._publisher, self.subscriber, self.answers):
            socket.close(linger_ms)

    def _read_messages(self, socket: Socket) -> bool:
        messages = socket.receive(limits.ROUND_MESSAGES)
        if messages:
            self._sink.received(self._reader.read(messages))
        return bool(messages)

    def _read_subscriptions(self) -> bool:
        messages = self._publisher.receive(limits.ROUND_MESSAGES)
        for message, *_rest in Pace().over(messages, every=limits.DELIVERED_AT_ONCE):
            if message[:1] == b"\x01":
                self._sink.subscribed(message[1:])
            elif message[:1] == b"\x00":
                self._sink.cancelled(message[1:])
            else:
                self._sink.refused("not-a-subscription")
        return bool(messages)
