"""Peers that hear each other at once, in the order in which they speak."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise

from dafka.overlay.routing.outputs import Deliver, Discovered, Output, Relay, Tell, Unreachable
from dafka.overlay.routing.peer import Peer
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.routed import decode_routed


def identity(name: str) -> bytes:
    return name.encode().ljust(16, b"-")


def name(identity: bytes) -> str:
    return identity.rstrip(b"-").decode()


class Town:
    """Peers by name. ``messages`` counts what was sent, by type."""

    def __init__(self, **filters: str) -> None:
        self.peers = {
            one: Peer(identity(one), 100, tuple(of.encode().split())) for one, of in filters.items()
        }
        self.messages: Counter[str] = Counter()
        self.got: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str, str]] = []
        self.passed: list[tuple[str, str]] = []
        self._left: deque[tuple[str, str, bytes]] = deque()

    def __getitem__(self, one: str) -> Peer:
        return self.peers[one]

    def link(self, *links: str) -> Town:
        """Link a chain of peers, such as ``"A B C"``."""
        for chain in links:
            names = chain.split()
            for one, other in pairwise(names):
                here, there = self[one], self[other]
                ours, theirs = here.announcement, there.announcement
                self.carry(one, here.link_up(there.me, ours, theirs), settle=False)
                self.carry(other, there.link_up(here.me, theirs, ours), settle=False)
                self.settle()
        return self

    def cut(self, one: str, other: str) -> None:
        self._left = deque(item for item in self._left if {item[0], item[1]} != {one, other})
        self.carry(one, self[one].link_down(identity(other)), settle=False)
        self.carry(other, self[other].link_down(identity(one)), settle=False)
        self.settle()

    def carry(self, one: str, outputs: list[Output], settle: bool = True) -> None:
        for output in outputs:
            match output:
                case Tell(neighbour, octets):
                    reader = FrameReader(len(octets))
                    reader.feed(octets)
                    self._left += [(one, name(neighbour), message) for message in reader.messages()]
                case Relay(neighbour, _, frames):
                    self._left += [(one, name(neighbour), frame[4:]) for frame in frames]
                case Deliver(_, _, _, payload):
                    self.got.append((one, payload.decode()))
                case Discovered(peer) | Unreachable(peer):
                    self.heard.append((one, type(output).__name__, name(peer)))
        if settle:
            self.settle()

    def settle(self) -> None:
        while self._left:
            sender, receiver, message = self._left.popleft()
            kind = type(decode_routed(message)).__name__
            self.messages[kind] += 1
            if kind == "Routed":
                self.passed.append((sender, receiver))
            self.carry(receiver, self[receiver].receive(identity(sender), message), settle=False)

    def publish(self, one: str, topic: str, text: str) -> list[str]:
        """The receivers, in alphabetical order."""
        before = len(self.got)
        self.carry(one, self[one].publish(topic.encode(), text.encode()))
        return sorted(who for who, _ in self.got[before:])

    def paths(self, one: str, other: str) -> list[str]:
        """The paths that are known, shortest first."""
        known = self[one].flooding.table.peers.get(identity(other))
        return [] if known is None else [" ".join(map(name, path.hops)) for path in known.ranked]

    def knows(self, one: str) -> str:
        return " ".join(sorted(name(peer) for peer in self[one].peers))
