"""The types of ZeroMQ's sockets: their names, their numbers in ZMTP 2.0, and which talk to which."""

from __future__ import annotations

from dafka.zmtp.errors import HandshakeError

NAMES = (b"PAIR", b"PUB", b"SUB", b"REQ", b"REP", b"DEALER", b"ROUTER", b"PULL", b"PUSH", b"XPUB", b"XSUB")
"""By number. The last two are PUB and SUB by the specification; libzmq sends their own numbers."""

NUMBERS = {name: number for number, name in enumerate(NAMES)}

COMPATIBLE: dict[bytes, frozenset[bytes]] = {
    b"REQ": frozenset({b"REP", b"ROUTER"}),
    b"REP": frozenset({b"REQ", b"DEALER"}),
    b"DEALER": frozenset({b"REP", b"DEALER", b"ROUTER"}),
    b"ROUTER": frozenset({b"REQ", b"DEALER", b"ROUTER"}),
    b"PUB": frozenset({b"SUB", b"XSUB"}),
    b"XPUB": frozenset({b"SUB", b"XSUB"}),
    b"SUB": frozenset({b"PUB", b"XPUB"}),
    b"XSUB": frozenset({b"PUB", b"XPUB"}),
    b"PUSH": frozenset({b"PULL"}),
    b"PULL": frozenset({b"PUSH"}),
    b"PAIR": frozenset({b"PAIR"}),
}
"""The peers of each type (23/ZMTP, Socket-Type property)."""

WITH_IDENTITY = frozenset({b"REQ", b"DEALER", b"ROUTER"})
"""Types that tell their identity in ZMTP 3.x; in 2.0 all do."""

PUBLISHERS = frozenset({b"PUB", b"XPUB"})


def shown_to(peer: bytes, types: tuple[bytes, ...]) -> bytes:
    """The first of ``types`` that talks to a ``peer``; raises HandshakeError if none does."""
    for name in types:
        if peer in COMPATIBLE[name]:
            return name
    mine = " or ".join(name.decode() for name in types)
    raise HandshakeError("socket-type", f"a {peer[:20]!r} cannot talk to a {mine}")


def name_of(number: int) -> bytes:
    """The type with that number in ZMTP 2.0; raises HandshakeError."""
    if number >= len(NAMES):
        raise HandshakeError("socket-type", f"{number} is not a socket type of ZMTP 2.0")
    return NAMES[number]
