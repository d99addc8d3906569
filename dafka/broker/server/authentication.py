"""The user of a connection: SaslHandshake and SaslAuthenticate, at its beginning and when a session renews.

Theory of operation. Before a client is known, ApiVersions, SaslHandshake and SaslAuthenticate are all that is
answered. SaslHandshake chooses the mechanism; then each SaslAuthenticate carries a message of it, or, after
SaslHandshake of version 0, each frame is such a message without any header. A failure is answered after a
delay, with the same words whatever was wrong, and closes the connection.

What is out of order ends the connection as in Kafka: before a mechanism is chosen without an answer, and
after that with ILLEGAL_SASL_STATE in the response of whatever was asked.

A session may end before its connection (KIP-368): the last SaslAuthenticate says when. Until then the client
sends SaslHandshake and SaslAuthenticate again, for the same principal and by the same mechanism: another one
may be chosen, and the next message ends the connection. A client that sends anything else when the time is
over is disconnected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import gevent
from kafka.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from dafka.broker.access.accounts import Accounts
from dafka.broker.codec.encoding import encoded
from dafka.broker.codec.errors import BadRequestError, error_code
from dafka.broker.codec.framing import LENGTH_OCTETS, Buffers, array_size, body_of, framed
from dafka.broker.codec.reader import read_request
from dafka.broker.server import limits
from dafka.broker.server.answers.refused import error_response
from dafka.broker.server.requests import Frame, read_frame
from dafka.broker.server.table import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from dafka.broker.server.wrong_protocol import wrong_protocol
from dafka.hub.pool import Aside
from dafka.hub.worker import REQUESTS
from dafka.security.credentials import is_password
from dafka.security.errors import SaslError
from dafka.security.sasl.options import ServerSasl
from dafka.security.sasl.steps import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_MECHANISMS,
    AuthenticationError,
    Exchange,
    Identity,
)
from dafka.security.sasl.tokens import TokenCheck

PASSWORDS = Aside(1)
"""Where passwords are compared, some milliseconds each, and where tokens wait for keys."""

_FLEXIBLE = 2  # the first such version of SaslAuthenticate
_WITH_HEADERS = 1  # the first version of SaslHandshake after which messages are SaslAuthenticate requests


class Sasl:
    """The mechanisms of a broker, with what they ask. Raises :class:`dafka.security.SaslError`."""

    def __init__(self, options: ServerSasl, accounts: Accounts) -> None:
        for mechanism in options.mechanisms:
            package = "jwt" if mechanism == OAUTHBEARER else "scramp"
            if mechanism != PLAIN and find_spec(package) is None:
                raise SaslError(f"{mechanism} needs packages: pip install 'dafka[security]'")
        self.options = options
        self._accounts = accounts
        self._tokens: TokenCheck | None = None
        if options.tokens is not None:
            from dafka.security.sasl.jwks import KeySet

            self._tokens = TokenCheck(options.tokens, KeySet(options.tokens.jwks))

    def authentication(self, authenticated: Callable[[Identity, str], object]) -> Authentication:
        """For one connection; see there."""
        return Authentication(self, authenticated)

    def begin(self, mechanism: str) -> Exchange:
        """An exchange with a client that has chosen this mechanism, one of the options'."""
        if mechanism == PLAIN:
            from dafka.security.sasl.plain import PlainExchange

            return PlainExchange(self._is_password)
        if mechanism == OAUTHBEARER:
            from dafka.security.sasl.oauthbearer import OAuthExchange

            return OAuthExchange(self._identity_of)
        from dafka.security.sasl.scram import ScramExchange

        return ScramExchange(mechanism, partial(self._accounts.credential, mechanism))

    def _identity_of(self, token: str) -> Identity | None:
        assert self._tokens is not None
        identity = PASSWORDS.run(self._tokens.identity, token)
        if identity is not None and identity.expires is not None and identity.expires <= time.time():
            return None  # within clock_skew; its session would be over before it begins
        return identity

    def _is_password(self, user: str, password: str) -> bool:
        """Whether this is a user's password, by any of its credentials; as slow for an unknown user."""
        known = (one for one in SCRAM_MECHANISMS if self._accounts.has(one, user))
        mechanism = next(known, SCRAM_MECHANISMS[0])
        credential = self._accounts.credential(mechanism, user)
        return PASSWORDS.run(is_password, mechanism, credential, password)


class Answer(NamedTuple):
    """An answer to send. ``failed``: why the connection is closed afterwards."""

    buffers: Buffers
    failed: BadRequestError | None = None


class Authentication:
    """The logins of one connection. ``authenticated(identity, mechanism)`` is called with every success."""

    def __init__(self, sasl: Sasl, authenticated: Callable[[Identity, str], object]) -> None:
        self._sasl = sasl
        self._authenticated = authenticated
        self._exchange: Exchange | None = None
        self._mechanism = ""  # of this exchange, or the last one
        self._bare = False  # the client's messages have no headers
        self._name: str | None = None  # of the authenticated principal
        self._ends: float | None = None  # when the session is over
        self._requests = 0
        self._is_told = False  # the client knows the versions, and is to choose a mechanism next
        self._other_mechanism = ""  # that a client has chosen which was known by another one

    @property
    def done(self) -> bool:
        """Whether the client is known, and not about to say again who it is."""
        return self._name is not None and self._exchange is None and not self._other_mechanism

    def is_for(self, data: memoryview) -> bool:
        """Whether a frame of a known client is about the session, or comes after its end."""
        if self._ends is None:
            return False
        is_message = int.from_bytes(data[:2], "big") in (SASL_HANDSHAKE, SASL_AUTHENTICATE)
        return is_message or not self.done or time.monotonic() >= self._ends

    def next_frame(self, receive: Callable[[], bytes], begun: bytes) -> tuple[bytes, bytes]:
        """The next frame of a client that nobody knows, and what came behind it; ``begun`` has come already.

        Raises BadRequestError, and OSError if it ends.
        """
        while True:
            if len(begun) >= LENGTH_OCTETS:
                size = int.from_bytes(begun[:LENGTH_OCTETS], "big", signed=True)
                error = wrong_protocol(begun[:LENGTH_OCTETS])
                if error is not None:
                    raise error
                if not 0 <= size <= limits.SASL_REQUEST_MAX_BYTES:
                    raise _too_large(size)
                end = LENGTH_OCTETS + size
                if len(begun) >= end:
                    return begun[LENGTH_OCTETS:end], begun[end:]
            received = receive()
            if not received:
                raise ConnectionAbortedError
            begun += received

    def answer(self, data: memoryview, otherwise: Callable[[Frame], Buffers]) -> Answer:
        """Take a frame; ``otherwise`` answers ApiVersions. It may wait. Raises BadRequestError."""
        self._requests += 1
        if self._name is None and self._requests > limits.SASL_REQUESTS:
            raise BadRequestError("sasl", f"{limits.SASL_REQUESTS} requests without a login")
        if len(data) > limits.SASL_REQUEST_MAX_BYTES:
            raise _too_large(len(data))
        if self._other_mechanism:
            raise self._another()
        if self._bare and self._exchange is not None:
            return self._message(self._exchange, bytes(data), _bare)
        frame = read_frame(data)
        key, version = frame.header.key, frame.header.version
        if frame.api is None or not frame.api.first <= version <= frame.api.last:
            if key not in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
                raise self._unexpected(frame)
            return Answer(otherwise(frame))
        if key == API_VERSIONS and self._exchange is None and self._name is None and not self._is_told:
            self._is_told = True
            return Answer(otherwise(frame))
        if key == SASL_HANDSHAKE and self._exchange is None:
            return self._choose(frame)
        if key == SASL_AUTHENTICATE and self._exchange is not None:
            flexible = version >= _FLEXIBLE
            body = body_of(data, frame.header, flexible)
            request = read_request(SaslAuthenticateRequest, version, data, body)
            return self._message(self._exchange, bytes(request.auth_bytes), partial(_with_header, frame))
        if self._exchange is not None:
            aside = len(data) > limits.INLINE_BYTES or not frame.api.is_loaded
            refused = REQUESTS.run(_out_of_order, frame) if aside else _out_of_order(frame)
            return Answer(refused, self._unexpected(frame))
        raise self._unexpected(frame)

    def _choose(self, frame: Frame) -> Answer:
        version = frame.header.version
        request = read_request(
            SaslHandshakeRequest, version, frame.data, body_of(frame.data, frame.header, False)
        )
        known = self._sasl.options.mechanisms
        unknown = request.mechanism not in known
        error = UnsupportedSaslMechanismError if unknown else None
        response = SaslHandshakeResponse(error_code=error_code(error), mechanisms=list(known))
        buffers = framed(frame.header.correlation, False, [encoded(response, version)])
        if unknown:
            detail = f"SASL: mechanism {request.mechanism[:40]!r} is not one of {', '.join(known)}"
            # Kafka closes unanswered when a session renews.
            return Answer([] if self._name is not None else buffers, BadRequestError("sasl", detail))
        if self._name is not None and request.mechanism != self._mechanism:
            self._other_mechanism = request.mechanism
            return Answer(buffers)
        self._exchange = self._sasl.begin(request.mechanism)
        self._mechanism = request.mechanism
        self._bare = version < _WITH_HEADERS
        return Answer(buffers)

    def _message(
        self, exchange: Exchange, message: bytes, written: Callable[[SaslAuthenticateResponse], Buffers]
    ) -> Answer:
        try:
            step = exchange.respond(message)
            if step.identity is not None and self._name not in (None, step.identity.name):
                raise AuthenticationError(
                    "Cannot change principals during re-authentication from "
                    f"User.{self._name}: User.{step.identity.name}",
                    step.identity.name,
                )
        except AuthenticationError as error:
            gevent.sleep(self._sasl.options.failure_delay)
            response = SaslAuthenticateResponse(
                error_code=error_code(SaslAuthenticationFailedError), error_message=str(error), auth_bytes=b""
            )
            who = f" of user {error.name[:255]!r}" if error.name else ""
            failed = BadRequestError("sasl", f"SASL: authentication{who} by {self._mechanism} failed")
            return Answer([] if self._bare else written(response), failed)
        lifetime = 0.0
        if step.identity is not None:
            lifetime = self._begin_session(step.identity)
        response = SaslAuthenticateResponse(
            error_code=0,
            error_message="",  # as Apache Kafka has it
            auth_bytes=step.reply,
            session_lifetime_ms=int(lifetime * 1000),
        )
        return Answer(written(response))

    def _begin_session(self, identity: Identity) -> float:
        """The seconds that it lasts; 0 is without an end."""
        lifetime = self._sasl.options.max_session or None
        if identity.expires is not None:
            left = max(identity.expires - time.time(), 0.001)
            lifetime = left if lifetime is None else min(left, lifetime)
        self._ends = None if lifetime is None else time.monotonic() + lifetime
        self._exchange = None
        self._name = identity.name
        self._authenticated(identity, self._mechanism)
        return lifetime or 0.0

    def _another(self) -> BadRequestError:
        words = f"SASL: {self._name!r} logged in by {self._mechanism}, and cannot do so again by"
        return BadRequestError("sasl", f"{words} {self._other_mechanism}")

    def _unexpected(self, frame: Frame) -> BadRequestError:
        what = f"API key {frame.header.key}" if frame.api is None else frame.api.name
        if self._name is not None and self._exchange is None:
            return BadRequestError("session", f"SASL: {what} after the end of the session of {self._name!r}")
        return BadRequestError("sasl", f"SASL: {what} before the client has logged in")


def _too_large(size: int) -> BadRequestError:
    """The error of a request that is too large before its sender is known."""
    most = limits.SASL_REQUEST_MAX_BYTES
    return BadRequestError("sasl", f"a request of {size} bytes before a login; {most} are the most")


def _with_header(frame: Frame, response: SaslAuthenticateResponse) -> Buffers:
    version = frame.header.version
    return framed(frame.header.correlation, version >= _FLEXIBLE, [encoded(response, version)])


def _out_of_order(frame: Frame) -> Buffers:
    """The answer to a request that comes where only messages of the mechanism do."""
    api, version = frame.api, frame.header.version
    assert api is not None
    flexible = api.request.flexible_version_q(version)
    request = read_request(api.request, version, frame.data, body_of(frame.data, frame.header, flexible))
    if frame.is_produce and not request.acks:
        return []
    response = error_response(api, request, version, IllegalSaslStateError)
    flexible = flexible and frame.header.key != API_VERSIONS
    return framed(frame.header.correlation, flexible, [encoded(response, version)])


def _bare(response: SaslAuthenticateResponse) -> Buffers:
    return [array_size(len(response.auth_bytes), False), response.auth_bytes]
