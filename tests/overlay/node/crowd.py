"""Many peers of one endpoint, on sockets of one thread."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections import deque

from dafka.overlay.core import Core
from dafka.overlay.peering.outputs import Close, PeerUp, Send
from dafka.overlay.wire.frames import LENGTH

RETRY_SECONDS = 1.0
HANDSHAKES = 50  # at once: each new peer is told to all others, which answer behind that, and in one thread
READ_OCTETS = 16 * 1024  # at once: a member with much to read does not silence the others


class _Member:
    """One that connects again when its connection has ended, as connectors do."""

    def __init__(self, where, version, prefixes):
        self.core = Core(os.urandom(16), time.time_ns() // 1000, prefixes, versions=(1, version))
        self._where = where
        self._number = 0
        self.is_up = False

    def connect(self):
        """Raises OSError."""
        self.socket = socket.create_connection(self._where, timeout=100)
        self._number += 1
        self._octets = bytearray()
        self.carry(self.core.connected(time.monotonic(), self._number, connector=True))

    def disconnect(self):
        self.is_up = False
        self.socket.close()
        self.core.disconnected(time.monotonic(), self._number)

    def read(self):
        """Whether the connection goes on. Peers do nothing but answer pings."""
        try:
            octets = self.socket.recv(READ_OCTETS)
            self._octets += octets
            return self._hear() and bool(octets)
        except OSError:
            return False

    def _hear(self):
        while len(self._octets) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._octets)
            end = LENGTH.size + size
            if len(self._octets) < end:
                break
            message = bytes(self._octets[LENGTH.size : end])
            del self._octets[:end]
            if not self.carry(self.core.received(time.monotonic(), self._number, message)):
                return False
        return True

    def carry(self, outputs):
        """Whether the connection is to go on."""
        for output in outputs:
            if isinstance(output, Close):
                return False
            if isinstance(output, Send):
                self.socket.sendall(output.octets)
            self.is_up = self.is_up or isinstance(output, PeerUp)
        return True


class Crowd:
    """``number`` peers that speak a version of the protocol, and subscribe to ``prefixes``."""

    def __init__(self, address, number, version, prefixes=(b"/t",)):
        host, port = address.rsplit(":", 1)
        self._members = [_Member((host, int(port)), version, prefixes) for _ in range(number)]
        self._selector = selectors.DefaultSelector()
        self._gone = deque((0.0, member) for member in self._members)  # times of connecting, and endpoints
        self._shaking = set()  # members in the handshake
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def up(self):
        """How many are peers."""
        return sum(member.is_up for member in self._members)

    def leave(self):
        """All go at once, without a word."""
        self._is_over = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.leave()

    def _run(self):
        while not self._is_over:
            self._connect()
            for key, _ in self._selector.select(0.05):
                member = key.data
                goes_on = member.read()
                if member.is_up or not goes_on:
                    self._shaking.discard(member)
                if not goes_on:
                    self._selector.unregister(member.socket)
                    member.disconnect()
                    self._gone.append((time.monotonic() + RETRY_SECONDS, member))

    def _connect(self):
        while self._gone and self._gone[0][0] <= time.monotonic() and len(self._shaking) < HANDSHAKES:
            _, member = self._gone.popleft()
            try:
                member.connect()
            except OSError:
                self._gone.append((time.monotonic() + RETRY_SECONDS, member))
            else:
                self._selector.register(member.socket, selectors.EVENT_READ, member)
                self._shaking.add(member)
