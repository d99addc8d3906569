"""Clients of other protocols that have come to the wrong port, told apart by how they begin.

What they send first would be the length of a request, and a longer one than any, so nobody is taken for a
stranger who is none.
"""

from __future__ import annotations

from dafka.broker.codec.errors import BadRequestError

_TLS_HANDSHAKE = b"\x16\x03"  # a record of that type, and the major version that SSL 3 and all of TLS have
_ZMTP_GREETING = b"\xff\0\0\0"
_HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"CONN", b"TRAC", b"PATC", b"PRI ")


def foreign(begin: bytes) -> BadRequestError | None:
    """What is to be said of a connection that begins with these four octets; None if it may be Kafka's."""
    if begin[:2] == _TLS_HANDSHAKE:
        return BadRequestError(
            "tls",
            "a TLS handshake, and this broker has no TLS; the client is to be told PLAINTEXT "
            "(security.protocol, security_protocol)",
        )
    if begin == _ZMTP_GREETING:
        return BadRequestError("zeromq", "a ZeroMQ peer greets; this is the port for Kafka's protocol")
    if begin in _HTTP_METHODS:
        return BadRequestError("http", "an HTTP request; this is the port for Kafka's protocol")
    return None
