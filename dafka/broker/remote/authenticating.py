"""How a client says who it is, on a connection that is open: with kafka-python's SASL mechanisms."""

from __future__ import annotations

from typing import Any, Protocol

from kafka.errors import (
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    for_code,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from dafka.hub.pool import Aside
from dafka.security.sasl.options import ClientSasl

_HANDSHAKE, _AUTHENTICATE = 17, 36
_COMPUTING = Aside(2)  # proofs of passwords, and token providers, which may wait for a server
_MOST_STEPS = 20


class Asking(Protocol):
    """A connection, :class:`dafka.broker.remote.connection.Connection`."""

    host: str

    @property
    def name(self) -> str: ...

    def version(self, api_key: int, lowest: int, highest: int) -> int: ...

    def ask(self, request: Any, version: int, timeout: float) -> Any: ...


def authenticate(connection: Asking, sasl: ClientSasl, protocol: str, timeout: float) -> float:
    """Say who one is; the seconds for which that counts, 0: for as long as the connection lasts.

    Waits as a green thread. Raises SaslAuthenticationFailedError, UnsupportedSaslMechanismError,
    KafkaConfigurationError (an option is missing), and what requests raise.
    """
    version = connection.version(_HANDSHAKE, 1, 1)
    response = connection.ask(SaslHandshakeRequest(mechanism=sasl.mechanism), version, timeout)
    if response.error_code:
        known = ", ".join(response.mechanisms) or "none"
        raise for_code(response.error_code)(
            f"{connection.name}: mechanism {sasl.mechanism}; the broker's mechanisms: {known}"
        )
    mechanism = _COMPUTING.run(_mechanism, sasl, connection.host, protocol)
    version = connection.version(_AUTHENTICATE, 0, 2)
    for _ in range(_MOST_STEPS):
        request = SaslAuthenticateRequest(_COMPUTING.run(mechanism.auth_bytes))
        response = connection.ask(request, version, timeout)
        if response.error_code:
            raise for_code(response.error_code)(f"{connection.name}: {response.error_message}")
        try:
            _COMPUTING.run(mechanism.receive, bytes(response.auth_bytes))
        except Exception as error:
            raise SaslAuthenticationFailedError(
                f"{connection.name} is not who it should be: {error}"
            ) from None
        if mechanism.is_done():
            break
    if not (mechanism.is_done() and mechanism.is_authenticated()):
        raise SaslAuthenticationFailedError(f"{connection.name}: by {sasl.mechanism}")
    return max(response.session_lifetime_ms or 0, 0) / 1000


def _mechanism(sasl: ClientSasl, host: str, protocol: str) -> Any:
    from kafka.net.sasl import get_sasl_mechanism

    try:
        made = get_sasl_mechanism(sasl.mechanism)
    except KeyError:
        raise UnsupportedSaslMechanismError(f"sasl_mechanism={sasl.mechanism!r}") from None
    try:
        return made(**sasl.options, host=host, security_protocol=protocol, sasl_mechanism=sasl.mechanism)
    except (ValueError, RuntimeError) as error:
        raise KafkaConfigurationError(str(error)) from error
