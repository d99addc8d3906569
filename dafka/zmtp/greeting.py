"""The greeting: which version of ZMTP a connection speaks, decided while its first octets arrive.

A 3.x greeting has 64 octets: a signature of ten, the version's two, the mechanism and filler. A 2.0 greeting
has the same signature, one octet for the version, and one for the socket type. Peers that speak both send the
signature first, then say 3, and go on as the other side's version tells them. So do we.

In ZMTP 3.x a PUSH, PULL or SUB socket does not tell its identity, in 2.0 all sockets do. A side with
``prefer_2`` therefore speaks 2.0 with peers that wait for its version and have an identity: libzmq and JeroMQ
put the length of their identity into the signature (its padding, plus one). ZMTP 2.0 lacks PING, and any
mechanism but NULL.
"""

from __future__ import annotations

from dafka.zmtp import limits
from dafka.zmtp.errors import GreetingError

SIGNATURE_OCTETS = 10
OCTETS = 64
MECHANISM_OCTETS = 20
_FILLER = bytes(31)
_VERSION_2 = 1  # 2.0 calls itself revision 1; a peer that says 2 speaks it, too


def signature(identity: bytes) -> bytes:
    """The octets that open a connection, and tell older versions how long the identity is."""
    return b"\xff" + (len(identity) + 1).to_bytes(8, "big") + b"\x7f"


class Greeting:
    """Reads a peer's greeting and writes ours.

    ``version`` is the version to speak, (2, 0), (3, 0) or (3, 1), as soon as the peer's greeting is complete.
    Then ``socket_type`` is the peer's number (2.0), or ``mechanism`` and ``as_server`` are its (3.x).
    """

    def __init__(
        self, identity: bytes, mechanism: bytes, *, as_server: bool, own_type: int | None, prefer_2: bool
    ) -> None:
        """``own_type``: of a side whose socket type does not depend on the peer's, which does not wait."""
        self.version: tuple[int, int] | None = None
        self.socket_type = 0
        self.mechanism = b""
        self.as_server = False
        self.output = bytearray(signature(identity))
        self._mechanism = mechanism
        self._server = as_server
        self._own_type = own_type
        self._prefer_2 = prefer_2 and own_type is None and mechanism == b"NULL"
        self._received = b""
        self._major = 0  # to be spoken, once it is known
        if own_type is not None:
            self.output += b"\x03"

    def receive(self, octets: bytes) -> bytes | None:
        """Take octets; those behind the greeting once it is complete, else None. Raises GreetingError."""
        received = self._received = self._received + octets
        if received and received[0] != 0xFF:
            raise GreetingError(
                "greeting", f"it begins with {received[:20]!r}: not a peer of ZMTP 2.0 or newer"
            )
        if len(received) >= SIGNATURE_OCTETS and not received[9] & 1:
            raise GreetingError("greeting", "a peer of ZMTP 1.0; 2.0, 3.0 and 3.1 are spoken")
        if len(received) <= SIGNATURE_OCTETS:
            return None
        if not self._major:
            self._decide(received)
        if self._major == 2:
            return self._finish_2(received)
        return self._finish_3(received)

    def _decide(self, received: bytes) -> None:
        theirs = received[SIGNATURE_OCTETS]
        if theirs == 0:
            raise GreetingError("greeting", "a peer of ZMTP 1.0; 2.0, 3.0 and 3.1 are spoken")
        if theirs < 3:
            if self._mechanism != b"NULL":
                name = self._mechanism.decode()
                raise GreetingError("downgrade", f"a peer of ZMTP 2.0, which does not have {name}")
            self._major = 2
        else:
            waits = len(received) == SIGNATURE_OCTETS + 1
            named = 1 < int.from_bytes(received[1:9], "big") <= limits.IDENTITY_OCTETS + 1
            self._major = 2 if self._prefer_2 and waits and named else 3
        if self._own_type is None:
            self.output.append(_VERSION_2 if self._major == 2 else 3)
        elif self._major == 2:
            self.output.append(self._own_type)
        if self._major == 3:
            self.output += b"\x01" + self._mechanism.ljust(MECHANISM_OCTETS, b"\0")
            self.output += bytes((self._server,)) + _FILLER

    def _finish_2(self, received: bytes) -> bytes | None:
        if len(received) < SIGNATURE_OCTETS + 2:
            return None
        self.version = (2, 0)
        self.socket_type = received[SIGNATURE_OCTETS + 1]
        return received[SIGNATURE_OCTETS + 2 :]

    def _finish_3(self, received: bytes) -> bytes | None:
        if len(received) < OCTETS:
            return None
        major, minor = received[SIGNATURE_OCTETS], received[SIGNATURE_OCTETS + 1]
        self.version = (3, 0) if (major, minor) == (3, 0) else (3, 1)
        self.mechanism = received[12 : 12 + MECHANISM_OCTETS].rstrip(b"\0")
        self.as_server = received[32] == 1
        return received[OCTETS:]
