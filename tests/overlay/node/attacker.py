"""A peer in a process of its own that sends an endpoint what it is told to.

python -m overlay.node.attacker HOST:PORT KIND SECONDS ID...

The ids, in hexadecimal, are those of the endpoint and of others. It says "begun" when it is a peer, and
connects again whenever it was left.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sys
import time
from collections.abc import Callable

from dafka.overlay.channels.messages import Nack
from dafka.overlay.core import Core
from dafka.overlay.limits import MOST_PEERS
from dafka.overlay.peering.outputs import Close, PeerUp, Send
from dafka.overlay.stores.outputs import master_topic, to_command
from dafka.overlay.values import encode
from dafka.overlay.wire.commands import encode_command
from dafka.overlay.wire.envelope import COMMAND, DATA, Envelope, encode_envelope, routing_update
from dafka.overlay.wire.frames import LENGTH, frame
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.primitives import NO_ENTITY, NOBODY, EntityId
from dafka.overlay.wire.routed import (
    Inquiry,
    Revocation,
    Routed,
    Subscription,
    Withdrawal,
    encode_branch,
    encode_routed,
)

NESTED = b"\x0e\x01" * 10_000 + b"\x00"  # vectors in vectors
MANY = tuple(b"/%d" % number for number in range(100_000))
MOST = tuple(b"/%d" % number for number in range(5_000))


class Attacker:
    """``others``: the ids of the endpoint and of peers behind it."""

    def __init__(self, where: tuple[str, int], version: int, others: list[bytes]) -> None:
        self.me = bytes(8) + os.urandom(8)  # smaller than other ids, so that it is the one that connects
        self.others = others
        self.told: list[bytes] = []  # of peers that it has invented
        self.socket = socket.create_connection(where, timeout=20)
        self._core = Core(self.me, time.time_ns() // 1000, [b"/t"], versions=(1, version))
        self._octets = bytearray()
        self._is_up = False
        self._carry(self._core.connected(0.0, 1, connector=True))
        while not self._is_up:
            self._read()
        self.socket.setblocking(False)

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def say(self, octets: bytes) -> None:
        """Send them, and read whatever comes meanwhile. Raises OSError."""
        left = memoryview(octets)
        while left:
            with contextlib.suppress(BlockingIOError):
                left = left[self.socket.send(left) :]
            self.read()

    def read(self) -> None:
        """Forget what has come. Raises OSError."""
        with contextlib.suppress(BlockingIOError):
            if not self.socket.recv(2**16):
                raise ConnectionResetError

    def _carry(self, outputs: list) -> None:
        for output in outputs:
            if isinstance(output, Send):
                self.socket.sendall(output.octets)
            elif isinstance(output, Close):
                raise ConnectionResetError
            self._is_up = self._is_up or isinstance(output, PeerUp)

    def _read(self) -> None:
        octets = self.socket.recv(2**16)
        if not octets:
            raise ConnectionResetError
        self._octets += octets
        while len(self._octets) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._octets)[0]
            if len(self._octets) < end:
                break
            message = bytes(self._octets[LENGTH.size : end])
            del self._octets[:end]
            self._carry(self._core.received(0.0, 1, message))


def now() -> int:
    return time.time_ns() // 1000


def invent(attacker: Attacker, behind: int = 0) -> list[bytes]:
    """Tell of peers that do not exist, as many as a node knows, behind so many hops; these."""
    peers = [os.urandom(16) for _ in range(MOST_PEERS)]
    hops = [os.urandom(16) for _ in range(behind)]
    for peer in peers:
        path = (peer, *hops, attacker.me)
        attacker.say(encode_routed(Subscription(path, (now(),) * len(path), now(), (b"/t", b"/by"), ())))
    attacker.told += peers
    return hops


def peers_that_go(attacker: Attacker) -> None:
    """They are gone with the connection."""
    invent(attacker)


def peers_without_room(attacker: Attacker) -> None:
    """Twice as many as a node knows: it asks for the others when some have gone, and gets no answer."""
    invent(attacker)
    invent(attacker)
    for peer in attacker.told[:1000]:
        attacker.say(encode_routed(Withdrawal(peer)))


def inquiries(attacker: Attacker) -> None:
    """Questions about peers, again and again."""
    invent(attacker)
    for number in range(20_000):
        attacker.say(encode_routed(Inquiry(attacker.others[number % len(attacker.others)])))


def peers_far_away(attacker: Attacker) -> None:
    """A link that all paths led over goes."""
    hops = invent(attacker, behind=50)
    attacker.say(encode_routed(Revocation(hops[1], now() + 10**9, hops[0])))


def peers_with_leaves(attacker: Attacker) -> None:
    for _ in range(20):
        leaves = tuple([Leaf(os.urandom(16), (b"/t",), ()) for _ in range(1000)])
        path = (os.urandom(16), attacker.me)
        attacker.say(encode_routed(Subscription(path, (now(), now()), now(), (), leaves)))


def contradictions(attacker: Attacker) -> None:
    """Links of the endpoint are said to have gone."""
    invent(attacker)
    me, *others = attacker.others
    for number in range(200):
        attacker.say(encode_routed(Revocation(me, now() + 10**6 * number, others[number % len(others)])))


def many_prefixes(attacker: Attacker) -> None:
    for number in range(20):
        word = Subscription((attacker.me,), (now(),), now() + number, MOST if number % 2 else MANY, ())
        attacker.say(encode_routed(word))
        word = Subscription((os.urandom(16), attacker.me), (now(), now()), now(), MOST, ())
        attacker.say(encode_routed(word))


def many_prefixes_of_version_1(attacker: Attacker) -> None:
    for number in range(20):
        prefixes = (MANY, MOST, ())[number % 3]
        attacker.say(encode_envelope(routing_update(attacker.me, NOBODY, prefixes)))


def nested_values(attacker: Attacker) -> None:
    for _ in range(100):
        for receiver in attacker.others:
            way = encode_branch(receiver, True, b"")
            for topic in (b"/by", b"st/<$>/data/master"):
                for kind in (1, 2):
                    attacker.say(encode_routed(Routed(kind, True, attacker.me, way, topic, NESTED)))


def nested_values_of_version_1(attacker: Attacker) -> None:
    for _ in range(100):
        attacker.say(encode_envelope(Envelope(DATA, attacker.me, NOBODY, b"/by", NESTED)))


def clones(attacker: Attacker) -> None:
    """Clones of version 1 that want a whole store, again and again, and never say that they have it."""
    for number in range(40):
        clone = EntityId(attacker.me, number // 3)
        command = encode_command(to_command(clone, NO_ENTITY, Nack((0,))))
        attacker.say(encode_routed(Routed(COMMAND, True, attacker.me, b"", master_topic("st"), command)))
        time.sleep(0.2)


def frames_at_random(attacker: Attacker) -> None:
    chance = random.Random(7)
    ids = [*attacker.others, attacker.me, NOBODY]
    payloads = [encode((1, 2)), b"", NESTED, b"\x0e\xff\xff\xff\xff\x0f", chance.randbytes(90)]
    topics = [b"/t", b"/by", b"", b"st/<$>/data/master", b"st/<$>/data/clone", b"st/<$>/data/query"]

    def routed() -> bytes:
        way = b""
        for _ in range(chance.randrange(5)):
            way = encode_branch(chance.choice(ids), chance.choice([0, 1, 2]), way) + chance.randbytes(
                chance.choice([0, 0, 3])
            )
        kind, deliver = chance.choice([1, 2]), chance.random() < 0.5
        where = chance.choice(topics), chance.choice(payloads)
        return encode_routed(Routed(kind, deliver, chance.choice(ids), way, *where))

    def subscription() -> bytes:
        # Of nobody who is there: what a peer says about others' filters is believed.
        path = (chance.randbytes(16), *chance.sample(ids, chance.randrange(3)), attacker.me)
        times = tuple([chance.choice([0, now(), 2**62]) for _ in path])
        return encode_routed(Subscription(path, times, now(), (b"/t", b"/by"), ()))

    def other() -> bytes:
        withdrawal = Withdrawal(chance.choice(ids))
        revocation = Revocation(chance.choice(ids), chance.choice([0, now()]), chance.choice(ids))
        return chance.choice(
            [encode_routed(withdrawal), encode_routed(revocation), frame(chance.randbytes(40))]
        )

    for _ in range(5000):
        octets = bytearray(chance.choice([routed, subscription, other])())
        for _ in range(chance.choice([0, 1, 3])):
            octets[chance.randrange(4, len(octets))] = chance.randrange(256)
        attacker.say(bytes(octets))


KINDS: dict[str, tuple[int, Callable[[Attacker], None]]] = {
    "peers-that-go": (2, peers_that_go),
    "peers-far-away": (2, peers_far_away),
    "peers-without-room": (2, peers_without_room),
    "inquiries": (2, inquiries),
    "peers-with-leaves": (2, peers_with_leaves),
    "contradictions": (2, contradictions),
    "prefixes": (2, many_prefixes),
    "prefixes-1": (1, many_prefixes_of_version_1),
    "nested": (2, nested_values),
    "nested-1": (1, nested_values_of_version_1),
    "clones": (2, clones),
    "random": (2, frames_at_random),
}


def main(address: str, kind: str, seconds: str, *others: str) -> None:
    host, port = address.rsplit(":", 1)
    ends = time.monotonic() + float(seconds)
    version, attack = KINDS[kind]
    ids = list(map(bytes.fromhex, others))
    while time.monotonic() < ends:
        with contextlib.suppress(OSError), Attacker((host, int(port)), version, ids) as attacker:
            print("begun", flush=True)
            attack(attacker)
            time.sleep(0.2)
            attacker.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
