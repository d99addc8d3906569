"""PLAIN (RFC 4616): name and password in one message."""

from __future__ import annotations

from collections.abc import Callable

from dafka.security.sasl.steps import AuthenticationError, Identity, Step

_REFUSED = "Authentication failed: Invalid username or password"  # Kafka's words


class PlainExchange:
    """``is_password(name, password)`` takes as long for a name that it does not know."""

    def __init__(self, is_password: Callable[[str, str], bool]) -> None:
        self._is_password = is_password

    def respond(self, message: bytes) -> Step:
        name = ""
        try:
            authorized, name, password = message.decode().split("\0")
        except ValueError:
            raise AuthenticationError(_REFUSED) from None
        # To act for somebody else takes rights, which nobody has.
        if not name or not password or authorized not in ("", name) or not self._is_password(name, password):
            raise AuthenticationError(_REFUSED, name)
        return Step(b"", Identity(name))
