"""How a server proves a key of its own to its client, behind the key that many servers share.

In CURVE a client knows a server by the server's long-term key. Servers that share one are told apart by this
proof in the metadata of READY: the public key, and a code that only its owner and the client can make, over
both keys and the two short-term keys of the connection. Those are new for each connection, so what one server
has proved to somebody is of no use to another, nor in another connection.
"""

from __future__ import annotations

import hmac
from hashlib import blake2b
from typing import NamedTuple

from nacl.bindings import crypto_box_beforenm
from nacl.exceptions import CryptoError

KEY_OCTETS = 32
_CODE_OCTETS = 32
PROPERTY = b"X-Dafka-Node"
"""Its name in the metadata; read in lower case."""


class Between(NamedTuple):
    """A connection, by the public keys of its client (long-term) and the short-term ones of both sides."""

    client: bytes
    client_short: bytes
    server_short: bytes


def proof_of(public: bytes, secret: bytes, between: Between) -> bytes:
    """The value of the property, made by the owner of a pair."""
    return public + _code(crypto_box_beforenm(between.client, secret), public, between)


def proven_by(value: bytes, client_secret: bytes, between: Between) -> bytes:
    """The public key that a property proves to the client; empty: none."""
    if len(value) != KEY_OCTETS + _CODE_OCTETS:
        return b""
    public, code = value[:KEY_OCTETS], value[KEY_OCTETS:]
    try:
        shared = crypto_box_beforenm(public, client_secret)
    except CryptoError:  # a key that is a point of small order
        return b""
    return public if hmac.compare_digest(code, _code(shared, public, between)) else b""


def _code(shared: bytes, public: bytes, between: Between) -> bytes:
    said = b"".join((public, *between))
    return blake2b(said, digest_size=_CODE_OCTETS, key=shared, person=b"dafka node proof").digest()
