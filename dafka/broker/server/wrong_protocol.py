"""Clients of other protocols at Kafka's port, recognised by their first four octets.

As the length of a Kafka request these octets would exceed every limit, so no Kafka client is affected.
"""

from __future__ import annotations

from dafka.broker.codec.errors import BadRequestError

_TLS_HANDSHAKE = b"\x16\x03"  # record type, and the major version of SSL 3 and all of TLS
_ZMTP_GREETING = b"\xff\0\0\0"
_HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"CONN", b"TRAC", b"PATC", b"PRI ")


def wrong_protocol(begin: bytes) -> BadRequestError | None:
    """The error of a connection that begins with these four octets; None if it may be a Kafka client."""
    if begin[:2] == _TLS_HANDSHAKE:
        return BadRequestError(
            "tls",
            "a TLS handshake, and this port has no TLS; set the client to PLAINTEXT (security.protocol, "
            "security_protocol), or give the broker a listener SSL://HOST:PORT",
        )
    if begin == _ZMTP_GREETING:
        return BadRequestError("zeromq", "a ZeroMQ greeting; this port is for Kafka's protocol")
    if begin in _HTTP_METHODS:
        return BadRequestError("http", "an HTTP request; this port is for Kafka's protocol")
    return None
