"""CURVE on the sockets of a mesh: libzmq's, which towers and beacons use, and those of our own ZMTP.

libzmq asks who may come in at one address inside its context (27/ZAP): :class:`Doorkeeper` answers there, for
each list of keys under a domain of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import gevent.event
import zmq
from zmq.utils import z85

from dafka.hub.hub import Hub
from dafka.mesh import limits
from dafka.mesh.sockets import Socket

if TYPE_CHECKING:
    from dafka.mesh.speakers import Speakers
    from dafka.security.keys import Allowed, Keys, ServerKeys
    from dafka.zmtp.mechanisms import Check, Mechanism

_ADDRESS = "inproc://zeromq.zap.01"
_VERSION = b"1.0"


def of_client(socket: Socket, keys: Keys) -> None:
    """Have a socket of libzmq's show its keys to the servers it connects to."""
    socket.set(zmq.CURVE_SERVERKEY, keys.server.pair.public)
    socket.set(zmq.CURVE_PUBLICKEY, keys.own.public)
    socket.set(zmq.CURVE_SECRETKEY, keys.own.secret)


def of_server(hub: Hub, socket: Socket, keys: ServerKeys) -> None:
    """Have a socket of libzmq's take in those on the list alone. To be called before it is bound."""
    socket.set(zmq.CURVE_SERVER, 1)
    socket.set(zmq.CURVE_SECRETKEY, keys.pair.secret)
    socket.set(zmq.ZAP_DOMAIN, Doorkeeper.of(hub).domain_of(keys.allows))


class Mechanisms:
    """The two sides of a connection of our own ZMTP. The side that accepts proves the key of its node."""

    def __init__(self, keys: Keys, speakers: Speakers) -> None:
        from dafka.zmtp.curve import CurveClient, CurveServer

        self._keys = keys
        self._knows = speakers.knows
        self._client, self._server = CurveClient, CurveServer

    def client(self, check: Check) -> Mechanism:
        """The side that connects."""
        return self._client(check, self._keys.server.pair.public, self._keys.own, self._knows)

    def server(self, check: Check) -> Mechanism:
        """The side that accepts."""
        return self._server(check, *self._keys.server, self._keys.own)


class Doorkeeper:
    """Answers libzmq's questions about clients; one for each hub. Hub side."""

    _of: ClassVar[WeakKeyDictionary[Hub, Doorkeeper]] = WeakKeyDictionary()

    @classmethod
    def of(cls, hub: Hub) -> Doorkeeper:
        """The hub's, made if there is none yet."""
        known = cls._of.get(hub)
        if known is None:
            known = cls._of[hub] = cls(hub)
        return known

    def __init__(self, hub: Hub) -> None:
        self._domains: dict[bytes, Allowed] = {}
        self._ready = gevent.event.Event()
        self._socket = Socket(hub.context, zmq.ROUTER, self._ready.set, limits.HIGH_WATER_MARK)
        self._socket.bind(_ADDRESS)
        self._green = hub.keep(self._answer)

    def domain_of(self, allows: Allowed) -> bytes:
        """The name under which sockets ask for this list."""
        domain = b"keys-%d" % id(allows)
        self._domains[domain] = allows
        return domain

    def forget(self, allows: Allowed) -> None:
        """No socket asks for this list any more."""
        self._domains.pop(b"keys-%d" % id(allows), None)

    def _answer(self) -> None:
        while True:
            questions = self._socket.receive(limits.ROUND_MESSAGES)
            if not questions:
                self._ready.wait()
                self._ready.clear()
                continue
            self._socket.send_messages([_answer_to(question, self._domains) for question in questions])


def key_of(frame: zmq.Frame) -> bytes:
    """The key of the sender of a message to a socket of :func:`of_server`."""
    return z85.decode(str(frame.get("User-Id")))


def _answer_to(question: list[bytes], domains: dict[bytes, Allowed]) -> list[bytes]:
    """Envelope, empty frame, version, request, domain, address, identity, mechanism, credentials."""
    at = question.index(b"")
    request, domain, mechanism = question[at + 2], question[at + 3], question[at + 6]
    allows = domains.get(domain)
    welcome = mechanism == b"CURVE" and allows is not None and allows(question[at + 7])
    if not welcome:
        return [*question[: at + 1], _VERSION, request, b"400", b"not on the list", b"", b""]
    user = z85.encode(question[at + 7])  # comes with each of its messages
    return [*question[: at + 1], _VERSION, request, b"200", b"welcome", user, b""]
