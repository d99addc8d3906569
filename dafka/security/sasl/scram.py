"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither sends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.security.credentials import ScramCredential
from dafka.security.sasl.steps import AuthenticationError, Identity, Step


class ScramExchange:
    """``credential_of(name)`` is a user's, or for an unknown name one that no password matches."""

    def __init__(self, mechanism: str, credential_of: Callable[[str], ScramCredential]) -> None:
        from scramp import ScramMechanism  # of the extra "security"

        self._mechanism = mechanism
        self._credential_of = credential_of
        self._name = ""
        self._server: Any = ScramMechanism(mechanism).make_server(self._look_up)
        self._begun = False

    def respond(self, message: bytes) -> Step:
        from scramp import ScramException

        try:
            text = message.decode()
            if not self._begun:
                self._begun = True
                self._server.set_client_first(text)
                return Step(self._server.get_server_first().encode())
            self._take_nonce(text)
            self._server.set_client_final(text)
            return Step(self._server.get_server_final().encode(), Identity(self._name))
        except (ScramException, ValueError):
            refused = (
                "Authentication failed during authentication due to invalid credentials "
                f"with SASL mechanism {self._mechanism}"
            )
            raise AuthenticationError(refused, self._name) from None

    def _take_nonce(self, text: str) -> None:
        """Take the client's nonce if it ends with the server's, as Kafka 3.9 does; Kafka 4 wants it equal.

        librdkafka before 2.6.1 has its own part twice in it. The proof is made with what the client has sent,
        and with what it was sent: a nonce of another login fits to neither.
        """
        nonce = next((part[2:] for part in text.split(",") if part.startswith("r=")), "")
        if nonce.endswith(str(self._server.s_nonce)):
            self._server.nonce = type(self._server.nonce)(nonce)  # text, or with newer releases a class

    def _look_up(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        self._name = name
        return self._credential_of(name)
