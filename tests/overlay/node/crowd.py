"""Many peers of one endpoint, on sockets of one thread."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time

from dafka.overlay.core import Core
from dafka.overlay.peering.outputs import PeerUp, Send
from dafka.overlay.wire.frames import LENGTH


class _Member:
    def __init__(self, where, version, prefixes):
        self.core = Core(os.urandom(16), time.time_ns() // 1000, prefixes, versions=(1, version))
        self.is_up = False
        self._octets = bytearray()
        self.socket = socket.create_connection(where, timeout=100)
        self.carry(self.core.connected(time.monotonic(), 1, connector=True))

    def read(self):
        """Whether the connection goes on. Peers do nothing but answer pings."""
        try:
            octets = self.socket.recv(256 * 1024)
        except OSError:
            return False
        self._octets += octets
        while len(self._octets) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._octets)
            end = LENGTH.size + size
            if len(self._octets) < end:
                break
            message = bytes(self._octets[LENGTH.size : end])
            del self._octets[:end]
            self.carry(self.core.received(time.monotonic(), 1, message))
        return bool(octets)

    def carry(self, outputs):
        for output in outputs:
            if isinstance(output, Send):
                self.socket.sendall(output.octets)
            self.is_up = self.is_up or isinstance(output, PeerUp)


class Crowd:
    """``number`` peers that speak a version of the protocol, and subscribe to ``prefixes``."""

    def __init__(self, address, number, version, prefixes=(b"/t",)):
        host, port = address.rsplit(":", 1)
        self._members = [_Member((host, int(port)), version, prefixes) for _ in range(number)]
        self._selector = selectors.DefaultSelector()
        for member in self._members:
            self._selector.register(member.socket, selectors.EVENT_READ, member)
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
        for member in self._members:
            member.socket.close()
        self._selector.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.leave()

    def _run(self):
        while not self._is_over:
            for key, _ in self._selector.select(0.05):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)
