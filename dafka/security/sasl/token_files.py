"""A token of OAUTHBEARER in a file, as Kafka's ``FileJwtRetriever`` reads it.

Something else renews the file (Kubernetes does so with the tokens of its service accounts).
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka.errors import KafkaConfigurationError
from kafka.net.sasl.oauth import AbstractTokenProvider

MOST_OCTETS = 64 * 1024
"""The broker takes no longer message before it knows its client."""


@dataclass(frozen=True)
class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """kafka-python's ``sasl_oauth_token_provider`` with the token in the file ``path``."""

    path: str

    def token(self) -> str:
        """The current content of the file, without the blanks around it.

        Raises kafka.errors.KafkaConfigurationError, which names the file and never shows what is in it.
        """
        try:
            with open(self.path, "rb") as file:
                octets = file.read(MOST_OCTETS + 1)
        except OSError as error:
            raise KafkaConfigurationError(f"the token in {self.path!r}: {error.strerror}") from None
        token = octets.strip()
        if not token or len(octets) > MOST_OCTETS or not token.isascii() or len(token.split()) > 1:
            raise KafkaConfigurationError(f"the token in {self.path!r}: there is not one word in the file")
        return token.decode()
