"""Endpoints of the overlay in one process, connected by hand. Messages arrive at once, in order."""

from __future__ import annotations

from collections import deque
from itertools import count

from overlay.libbroker import Libbroker

from dafka.overlay.peering.outputs import Close, PeerDown, PeerUp, Send
from dafka.overlay.role import EndpointRole, Output, StoreOutput
from dafka.overlay.routing.outputs import Deliver, Discovered, Unreachable
from dafka.overlay.values import encode
from dafka.overlay.wire.frames import FrameReader


def identity(name: str) -> bytes:
    return name.encode().ljust(16, b"-")


class Wiring:
    """Endpoints by name. ``plain`` ones speak version 1 only; some are nodes of libbroker."""

    def __init__(self, *names: str, plain: str = "", libbroker: str = "") -> None:
        self.now = 0.0
        self.numbers = count(1)
        self.endpoints: dict[str, EndpointRole] = {}
        for name in names:
            self.endpoints[name] = self.begin(name, name in plain.split())
        for name in libbroker.split():
            self.endpoints[name] = Libbroker(identity(name))  # type: ignore[assignment]
        self.got: list[tuple[str, str, bytes, bytes]] = []
        """Who got data, of whom, on which topic."""
        self.store: list[tuple[str, StoreOutput]] = []
        self.heard: list[tuple[str, str]] = []
        self.sent: list[tuple[str, bytes]] = []
        self._ends: dict[tuple[str, int], str] = {}
        self._readers: dict[tuple[str, int], FrameReader] = {}
        self._left: deque[tuple[str, Output]] = deque()

    def __getitem__(self, name: str) -> EndpointRole:
        return self.endpoints[name]

    def begin(self, name: str, plain: bool = False) -> EndpointRole:
        versions = (1, 1) if plain else (1, 2)
        return EndpointRole(identity(name), 100, lambda: next(self.numbers), versions)

    def connect(self, *links: str) -> Wiring:
        for link in links:
            one, other = link.split()
            number = next(self.numbers)
            for here, there in ((one, other), (other, one)):
                self._ends[here, number] = there
                self._readers[here, number] = FrameReader(2**24)
            for name in (one, other):
                self.carry(name, self[name].connected(self.now, number, name == one), settle=False)
            self.settle()
        return self

    def cut(self, one: str, other: str) -> None:
        for (here, number), there in list(self._ends.items()):
            if {here, there} == {one, other}:
                del self._ends[here, number]
                self.carry(here, self[here].disconnected(self.now, number))

    def tick(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            for name, endpoint in self.endpoints.items():
                self.carry(name, endpoint.tick(self.now))

    def carry(self, name: str, outputs: list[Output], settle: bool = True) -> None:
        self._left += [(name, output) for output in outputs]
        if settle:
            self.settle()

    def settle(self) -> None:
        while self._left or self._go_on():
            name, output = self._left.popleft()
            match output:
                case Send(number, octets):
                    self.sent.append((name, octets))
                    there = self._ends.get((name, number))
                    if there is not None and (there, number) in self._ends:
                        reader = self._readers[there, number]
                        reader.feed(octets)
                        for message in reader.messages():
                            self.carry(there, self[there].received(self.now, number, message), settle=False)
                case Close(number):
                    there = self._ends.pop((name, number), "")
                    if self._ends.pop((there, number), None) is not None:
                        self.carry(there, self[there].disconnected(self.now, number), settle=False)
                case Deliver(publisher, _, topic, payload):
                    self.got.append((name, publisher.rstrip(b"-").decode(), topic, payload))
                case StoreOutput():
                    self.store.append((name, output))
                case PeerUp(_, peer) | PeerDown(_, peer) | Discovered(peer) | Unreachable(peer):
                    self.heard.append((name, f"{type(output).__name__} {peer.rstrip(b'-').decode()}"))

    def _go_on(self) -> bool:
        ours = {name: one for name, one in self.endpoints.items() if isinstance(one, EndpointRole)}
        behind = [name for name, one in ours.items() if one.core.is_behind]
        for name in behind:
            self._left += [(name, output) for output in self[name].go_on(self.now)]
        return bool(self._left) or (bool(behind) and self._go_on())

    def publish(self, name: str, topic: bytes) -> list[str]:
        """The receivers, in alphabetical order."""
        before = len(self.got)
        self.carry(name, self[name].publish(topic, encode("payload")))
        return sorted(one for one, *_ in self.got[before:])
