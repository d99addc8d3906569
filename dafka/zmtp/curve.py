"""CURVE (26/CURVEZMQ): both sides know each other by long-term keys, and every frame is encrypted.

A client knows the server's public key beforehand; the server learns the client's in the handshake, and
decides by ``allows``. Both make a pair of keys for each connection, so what was recorded stays unread even
if a long-term key becomes known later. Keys are 32 octets. The cryptography is libsodium's, by PyNaCl.
"""

from __future__ import annotations

import hmac
import os
from base64 import b85encode
from collections.abc import Callable
from typing import NamedTuple

from nacl.bindings import crypto_box, crypto_box_keypair, crypto_box_open, crypto_scalarmult_base
from nacl.exceptions import CryptoError

from dafka.zmtp.commands import Command, decode_properties, encode_command, encode_properties
from dafka.zmtp.errors import HandshakeError
from dafka.zmtp.mechanisms import Check, Properties, expected
from dafka.zmtp.proofs import PROPERTY, Between, proof_of, proven_by
from dafka.zmtp.sealing import Sealing, sealing_of

KEY_OCTETS = 32
_HELLO_PADDING = bytes(72)
_SIGNED = bytes(64)
_COOKIE_OCTETS = 96
_VERSION = b"\x01\x00"
_SHORT_NONCE, _LONG_NONCE, _MAC = 8, 16, 16


class Pair(NamedTuple):
    """A public key and its secret one."""

    public: bytes
    secret: bytes


def public_of(secret: bytes) -> bytes:
    """The public key of a secret one."""
    return bytes(crypto_scalarmult_base(secret))


_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


def z85_of(key: bytes) -> str:
    """A key as it stands in files of ZeroMQ's (32/Z85): base 85 as Python has it, in other letters."""
    return b85encode(key).translate(_Z85).decode()


class CurveClient:
    """The side that connects, with keys of its own, to a server whose public key it knows.

    ``knows(key)``: whether a server that proves this key of its own (:mod:`dafka.zmtp.proofs`; empty: that
    proves none) may be spoken to, and may stay; None: all may. ``peer_key`` is the key proven then.
    """

    name = b"CURVE"
    as_server = False

    def __init__(
        self, check: Check, server_key: bytes, own: Pair, knows: Callable[[bytes], bool] | None = None
    ) -> None:
        self.peer: Properties | None = None
        self.peer_key = b"" if knows else server_key
        self.sealing: Sealing | None = None
        self._check = check
        self._server_key = server_key
        self._own = own
        self._knows = knows
        self._ours = Pair(*crypto_box_keypair())  # of this connection
        self._theirs = b""
        self._sent = 0  # short nonces

    def begin(self) -> bytes:
        nonce = self._next_nonce()
        box = _seal(_SIGNED, b"CurveZMQHELLO---" + nonce, self._server_key, self._ours.secret)
        return encode_command(b"HELLO", _VERSION + _HELLO_PADDING + self._ours.public + nonce + box)

    def receive(self, command: Command) -> bytes:
        if not self._theirs:
            return self._welcomed(expected(command, b"WELCOME"))
        data = expected(command, b"READY")
        if len(data) < _SHORT_NONCE + _MAC:
            raise HandshakeError("curve", f"a READY of {len(data)} octets")
        nonce = data[:_SHORT_NONCE]
        metadata = _open(
            "READY", data[_SHORT_NONCE:], b"CurveZMQREADY---" + nonce, self._theirs, self._ours.secret
        )
        peer = decode_properties(metadata)
        self._check(peer)
        if self._knows is not None:
            self.peer_key = self._proven(peer)
            if not self._knows(self.peer_key):
                raise HandshakeError("key", f"{_shown(self.peer_key)} is not on the list")
        self.sealing = sealing_of(self._theirs, self._ours.secret, b"C", b"S", self._sent, _number(nonce))
        self.peer = peer
        return b""

    def _proven(self, peer: Properties) -> bytes:
        between = Between(self._own.public, self._ours.public, self._theirs)
        return proven_by(peer.get(PROPERTY.lower(), b""), self._own.secret, between)

    def _welcomed(self, data: bytes) -> bytes:
        if len(data) != _LONG_NONCE + _MAC + KEY_OCTETS + _COOKIE_OCTETS:
            raise HandshakeError("curve", f"a WELCOME of {len(data)} octets")
        opened = _open(
            "WELCOME",
            data[_LONG_NONCE:],
            b"WELCOME-" + data[:_LONG_NONCE],
            self._server_key,
            self._ours.secret,
        )
        self._theirs, cookie = opened[:KEY_OCTETS], opened[KEY_OCTETS:]
        vouch_nonce = os.urandom(_LONG_NONCE)
        vouched = self._ours.public + self._server_key
        vouch = vouch_nonce + _seal(vouched, b"VOUCH---" + vouch_nonce, self._theirs, self._own.secret)
        plain = self._own.public + vouch + encode_properties(self._check({}))
        nonce = self._next_nonce()
        box = _seal(plain, b"CurveZMQINITIATE" + nonce, self._theirs, self._ours.secret)
        return encode_command(b"INITIATE", cookie + nonce + box)

    def _next_nonce(self) -> bytes:
        self._sent += 1
        return self._sent.to_bytes(_SHORT_NONCE, "big")

    def is_welcome(self) -> bool:
        return self.peer is None or self._knows is None or self._knows(self.peer_key)


class CurveServer:
    """The side that accepts. ``allows(key)``: whether a client with this public key may come in, and stay.

    ``proves``: a pair of this server's alone, which it proves to have (:mod:`dafka.zmtp.proofs`).
    """

    name = b"CURVE"
    as_server = True

    def __init__(
        self, check: Check, own: Pair, allows: Callable[[bytes], bool], proves: Pair | None = None
    ) -> None:
        self.peer: Properties | None = None
        self.peer_key = b""
        self.sealing: Sealing | None = None
        self._check = check
        self._own = own
        self._allows = allows
        self._proves = proves
        self._ours = Pair(b"", b"")  # of this connection
        self._theirs = b""
        self._cookie = b""
        self._received = 0  # the client's last short nonce

    def begin(self) -> bytes:
        return b""

    def receive(self, command: Command) -> bytes:
        if not self._theirs:
            return self._greeted(expected(command, b"HELLO"))
        return self._initiated(expected(command, b"INITIATE"))

    def _greeted(self, data: bytes) -> bytes:
        public_at = len(_VERSION) + len(_HELLO_PADDING)
        nonce_at = public_at + KEY_OCTETS
        box_at = nonce_at + _SHORT_NONCE
        if len(data) != box_at + _MAC + len(_SIGNED):
            raise HandshakeError("curve", f"a HELLO of {len(data)} octets")
        if data[:1] != _VERSION[:1]:
            raise HandshakeError("curve", f"version {data[0]} of CURVE; 1 is spoken")
        client, nonce = data[public_at:nonce_at], data[nonce_at:box_at]
        _open("HELLO", data[box_at:], b"CurveZMQHELLO---" + nonce, client, self._own.secret)
        self._theirs, self._received = client, _number(nonce)
        self._ours = Pair(*crypto_box_keypair())
        # To the client a cookie is octets to be given back. With a state for each connection nothing need be
        # in it, but that nobody else can know it.
        self._cookie = os.urandom(_COOKIE_OCTETS)
        long_nonce = os.urandom(_LONG_NONCE)
        box = _seal(self._ours.public + self._cookie, b"WELCOME-" + long_nonce, client, self._own.secret)
        return encode_command(b"WELCOME", long_nonce + box)

    def _initiated(self, data: bytes) -> bytes:
        vouch_octets = _LONG_NONCE + _MAC + 2 * KEY_OCTETS
        if len(data) < _COOKIE_OCTETS + _SHORT_NONCE + _MAC + KEY_OCTETS + vouch_octets:
            raise HandshakeError("curve", f"an INITIATE of {len(data)} octets")
        if not hmac.compare_digest(data[:_COOKIE_OCTETS], self._cookie):
            raise HandshakeError("curve", "an INITIATE with another cookie")
        nonce = data[_COOKIE_OCTETS : _COOKIE_OCTETS + _SHORT_NONCE]
        if _number(nonce) <= self._received:
            raise HandshakeError("curve", "a nonce that was used already")
        plain = _open(
            "INITIATE",
            data[_COOKIE_OCTETS + _SHORT_NONCE :],
            b"CurveZMQINITIATE" + nonce,
            self._theirs,
            self._ours.secret,
        )
        client, vouch = plain[:KEY_OCTETS], plain[KEY_OCTETS : KEY_OCTETS + vouch_octets]
        vouched = _open(
            "vouch", vouch[_LONG_NONCE:], b"VOUCH---" + vouch[:_LONG_NONCE], client, self._ours.secret
        )
        if vouched != self._theirs + self._own.public:
            raise HandshakeError("curve", "a vouch for something else")
        if not self._allows(client):
            raise HandshakeError("key", f"{_shown(client)} is not on the list")
        self.peer_key = client
        peer = decode_properties(plain[KEY_OCTETS + vouch_octets :])
        answer = (1).to_bytes(_SHORT_NONCE, "big")
        properties = dict(self._check(peer))
        if self._proves is not None:
            between = Between(client, self._theirs, self._ours.public)
            properties[PROPERTY] = proof_of(*self._proves, between)
        metadata = encode_properties(properties)
        box = _seal(metadata, b"CurveZMQREADY---" + answer, self._theirs, self._ours.secret)
        self.sealing = sealing_of(self._theirs, self._ours.secret, b"S", b"C", 1, _number(nonce))
        self.peer = peer
        return encode_command(b"READY", answer + box)

    def is_welcome(self) -> bool:
        return self.peer is None or self._allows(self.peer_key)


def _shown(key: bytes) -> str:
    return f"the key {z85_of(key)}" if key else "a node that proves no key"


def _number(nonce: bytes) -> int:
    return int.from_bytes(nonce, "big")


def _seal(plain: bytes, nonce: bytes, public: bytes, secret: bytes) -> bytes:
    try:
        return bytes(crypto_box(plain, nonce, public, secret))
    except (CryptoError, ValueError, TypeError) as error:  # a key that is a point of small order
        raise HandshakeError("curve", f"an unusable key: {error}") from error


def _open(what: str, box: bytes, nonce: bytes, public: bytes, secret: bytes) -> bytes:
    try:
        return bytes(crypto_box_open(box, nonce, public, secret))
    except (CryptoError, ValueError, TypeError) as error:
        raise HandshakeError("curve", f"the {what} was not made with the right keys") from error
