"""A raw ZeroMQ socket under gevent: read until empty, sent without blocking, its descriptor watched.

Measured here with 100-byte records over loopback: pyzmq's own ``recv_multipart`` and ``send_multipart``
reach 230 000 to 360 000 messages/s, the methods of its backend class called directly 660 000 and a
million; ``zmq.green`` 70 000. So the two loops below call the backend's methods.
"""

from __future__ import annotations

import errno
import re
import socket as sockets
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address

import gevent
import zmq
from zmq import DONTWAIT, RCVMORE, SNDMORE

from dafka.mesh import limits

_NUMERIC = re.compile(r"tcp://(?:([0-9.]+)|\[([0-9A-Fa-f:.]+)\]):([0-9]+|\*)")
_LAST_PORT = 65_535
_BACKLOG = 100  # libzmq's default


class Socket:
    """A ZeroMQ socket of the hub. ``on_ready`` is called in the hub's loop when there may be news."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        kind: int,
        on_ready: Callable[[], object],
        water_mark: int,
    ) -> None:
        self._socket = context.socket(kind)
        self._socket.setsockopt(zmq.SNDHWM, water_mark)
        self._socket.setsockopt(zmq.RCVHWM, water_mark)
        self._socket.setsockopt(zmq.LINGER, 0)
        # A subscriber sends nothing. Without probes it would never learn that the publisher's side of the
        # connection has ended during a cut, and would wait for ever. The peer's system answers them, also
        # while the peer itself hangs, or a full queue keeps ZeroMQ from reading (its heartbeats would fail).
        self._socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, limits.KEEPALIVE_SECONDS)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, limits.KEEPALIVE_INTERVAL)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, limits.KEEPALIVE_PROBES)
        self._send = super(zmq.Socket, self._socket).send
        self._recv = super(zmq.Socket, self._socket).recv
        self._get = super(zmq.Socket, self._socket).get
        self._on_ready = on_ready
        self._watcher = gevent.get_hub().loop.io(self._socket.getsockopt(zmq.FD), 1)
        self._watcher.start(on_ready)
        self._kept: list[list[bytes]] = []  # a message that was taken before its connection was given up
        self.closed = False

    def set(self, option: int, value: int | bytes) -> None:
        """Set a socket option."""
        self._socket.setsockopt(option, value)

    def bind(self, address: str) -> str:
        """Bind and return the address as bound (``*`` or ``0`` as port becomes a number)."""
        numeric = _numeric(address)
        self._allow_six(address)
        if numeric is None:
            self._socket.bind(address)
        else:
            self._bind_listening(address, *numeric)
        bound: bytes = self._socket.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment]
        return bound.rstrip(b"\0").decode()

    def _bind_listening(self, address: str, host: str, port: int) -> None:
        """Bind a socket that listens already. To bind one itself libzmq (4.3) looks through the interfaces of
        the machine for the address, and aborts the process where a sandbox forbids that (AF_NETLINK)."""
        if port > _LAST_PORT:  # of which libzmq would take 16 bits
            raise zmq.ZMQError(errno.EINVAL)
        six = ":" in host
        family = sockets.AF_INET6 if six else sockets.AF_INET
        both = six and not int(IPv6Address(host)) and sockets.has_dualstack_ipv6()  # all of IPv4 as well
        try:
            with sockets.create_server(
                (host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both
            ) as listening:
                listening.setblocking(False)
                self._socket.setsockopt(zmq.USE_FD, listening.fileno())
                self._socket.bind(address)
                listening.detach()  # it is libzmq's now
        except OSError as error:
            if isinstance(error, zmq.ZMQError):
                raise
            raise zmq.ZMQError(error.errno) from error
        finally:
            self._socket.setsockopt(zmq.USE_FD, -1)

    def bind_free_port(self, host: str) -> int:
        """Bind a free TCP port of an interface and return its number."""
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return int(self.bind(f"tcp://{host}:*").rpartition(":")[2])

    def connect(self, address: str) -> None:
        """Connect; ZeroMQ does so in the background, again and again."""
        self._allow_six(address)
        self._socket.connect(address)

    def disconnect(self, address: str) -> None:
        """Undo :meth:`connect`. What was not received by then is lost, but for one message at most.

        A socket that was asked whether it is readable has taken the first frame of a message. If the others
        go with their connection, the next call that receives aborts the process (libzmq 4.3.5, "Assertion
        failed: !_more"). So all of the message is taken before.
        """
        if not self._kept:
            self._kept = self._receive(1, 1)
        self._allow_six(address)  # it is looked up again
        self._socket.disconnect(address)
        if self._kept:
            self._on_ready()

    def _allow_six(self, address: str) -> None:
        """Have ZeroMQ take an address of IPv6, and others as without it: it would make IPv6's of them."""
        self._socket.setsockopt(zmq.IPV6, int("[" in address))

    def subscribe(self, prefix: bytes) -> None:
        """Hear what begins with ``prefix``."""
        self._socket.setsockopt(zmq.SUBSCRIBE, prefix)

    def unsubscribe(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""
        self._socket.setsockopt(zmq.UNSUBSCRIBE, prefix)

    def look(self) -> None:
        """Take note of what ZeroMQ's thread has told the socket: until then its descriptor stays ready, and
        the loop turns without a rest. Sending and receiving do it too."""
        self._get(zmq.EVENTS)

    def readable(self) -> bool:
        """Whether a message waits. Asking may use up the descriptor's edge."""
        if self._kept:
            return True
        events: int = self._get(zmq.EVENTS)  # type: ignore[assignment]
        return bool(events & zmq.POLLIN)

    def receive(self, limit: int, size: int = 2**62) -> list[list[bytes]]:
        """The waiting messages, at most ``limit``, each as its list of frames.

        Ends with the message that makes it ``size`` bytes of last frames.
        """
        if self._kept:
            kept, self._kept = self._kept, []
            return kept
        return self._receive(limit, size)

    def _receive(self, limit: int, size: int) -> list[list[bytes]]:
        recv, get = self._recv, self._get
        messages: list[list[bytes]] = []
        append = messages.append
        try:
            for _ in range(limit):
                frame = recv(DONTWAIT)
                if not get(RCVMORE):
                    append([frame])
                    continue
                frames = [frame, recv(DONTWAIT)]
                while get(RCVMORE):
                    frames.append(recv(DONTWAIT))
                append(frames)
                size -= len(frames[-1])
                if size <= 0:
                    break
        except zmq.Again:
            pass
        return messages

    def receive_frames(self) -> list[zmq.Frame] | None:
        """One message as frame objects, which know the peer's address; None if there is none."""
        try:
            return self._socket.recv_multipart(DONTWAIT, copy=False)
        except zmq.Again:
            return None

    def send_messages(self, messages: Iterable[list[bytes]]) -> None:
        """Send messages. A publisher drops what a peer has no room for; it never blocks."""
        send = self._send
        for frames in messages:
            for frame in frames[:-1]:
                send(frame, SNDMORE | DONTWAIT)
            send(frames[-1], DONTWAIT)

    def close(self, linger_ms: int = 0) -> None:
        """Close; queued messages go on being sent in the background for ``linger_ms``."""
        if not self.closed:
            self.closed = True
            self._watcher.stop()
            self._watcher.close()
            self._socket.close(linger=linger_ms)


def _numeric(address: str) -> tuple[str, int] | None:
    """Host and port of an address that is a number; port 0 for any."""
    found = _NUMERIC.fullmatch(address)
    try:
        if found is None:
            return None
        host = str(IPv6Address(found[2])) if found[2] else str(IPv4Address(found[1]))
        return host, int(found[3].replace("*", "0"))
    except ValueError:
        return None
