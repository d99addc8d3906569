"""One TCP connection to a broker: requests go out as they come, answers come back in the same order.

A green thread reads the answers, and each request waits for its own. When an answer is late or malformed
the connection is closed, and all requests that wait for it fail.
"""

from __future__ import annotations

import logging
import socket as sockets
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import gevent
import gevent.socket
from gevent.event import AsyncResult
from gevent.lock import RLock
from kafka.errors import (
    CorrelationIdError,
    IncompatibleBrokerVersion,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    for_code,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from dafka.broker.codec.responses import read_response
from dafka.broker.interface.errors import LoginRefusedError
from dafka.broker.remote.limits import RECEIVE_BYTES, RESPONSE_BYTES, in_words
from dafka.security.sasl.options import ClientSasl
from dafka.sockets.errors import HandshakeError
from dafka.sockets.hosts import host_and_port, host_octets

log = logging.getLogger(__name__)

CLIENT_ID = "dafka"
RENEWED_AFTER = 0.85  # of a session's time, as Kafka's clients

_HEADER = struct.Struct(">ihhi")  # size, api key, api version, correlation id
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_UNSUPPORTED_VERSION = 35
_API_VERSIONS = 18
_API_VERSIONS_VERSION = 3


class Connection:
    """A connection that is open from construction on until it fails or is closed. Hub side.

    ``context``: with TLS. ``sasl``: how to say who one is. Raises KafkaConnectionError, within ``timeout``
    seconds, if no Kafka broker answers at the address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        timeout: float,
        context: SSLContext | None = None,
        sasl: ClientSasl | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.versions: dict[int, tuple[int, int]] = {}
        self.on_close: Callable[[Connection], None] = lambda connection: None
        self._waiting: deque[tuple[int, AsyncResult]] = deque()
        self._last_id = 0
        self._sasl = sasl
        self._protocol = "SASL_PLAINTEXT" if context is None else "SASL_SSL"
        self._timeout = timeout
        self._renew_at: float | None = None  # when to say again who one is (KIP-368)
        self._sending = RLock()
        self._error: KafkaError | None = None
        try:
            with gevent.Timeout(timeout, TimeoutError("timed out")):
                self._socket = _open(host, port)
                if context is not None:
                    from dafka.sockets import tls

                    self._socket = tls.connect(self._socket, context, host, timeout)
        except HandshakeError as error:
            raise KafkaConnectionError(f"{self.name}: TLS: {error}") from error
        except OSError as error:
            raise KafkaConnectionError(f"{self.name}: {error.strerror or error}") from error
        self._reader = gevent.spawn(self._read)
        try:
            self._negotiate(timeout)
            self._authenticate()
        except BaseException as error:
            self.close()
            if isinstance(error, KafkaConnectionError) or not isinstance(error, KafkaError):
                raise
            if isinstance(error, (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)):
                raise LoginRefusedError(f"{type(error).__name__}: {error.args[0]}") from error
            if isinstance(error, KafkaConfigurationError):
                raise KafkaConnectionError(f"{self.name}: {error.args[0]}") from error
            raise KafkaConnectionError(f"{self.name} does not answer as a Kafka broker: {error}") from error

    @property
    def name(self) -> str:
        """Host and port."""
        return host_and_port(self.host, self.port)

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._error is not None

    def version(self, api_key: int, lowest: int, highest: int) -> int:
        """The highest version of a request in this range that the broker knows.

        Raises IncompatibleBrokerVersion if there is none.
        """
        known = self.versions.get(api_key)
        if known is not None and max(lowest, known[0]) <= min(highest, known[1]):
            return min(highest, known[1])
        has = "does not know it" if known is None else f"knows {known[0]} to {known[1]}"
        raise IncompatibleBrokerVersion(
            f"request {api_key} in versions {lowest} to {highest}: the broker {self.name} {has}"
        )

    def request(
        self,
        api_key: int,
        version: int,
        body: list[bytes],
        timeout: float,
        *,
        flexible: bool = False,
        client_id: str = CLIENT_ID,
        answered: bool = True,
    ) -> memoryview:
        """Send a request and return its answer: the bytes after the correlation id.

        With ``answered=False`` it returns no bytes and does not wait. Raises KafkaConnectionError (the
        connection was lost, and the request may have been carried out), RequestTimedOutError and
        KafkaProtocolError; the connection is closed then.
        """
        answer = self.post(
            api_key, version, body, timeout, flexible=flexible, client_id=client_id, answered=answered
        )
        return self.answer(answer, timeout) if answered else memoryview(b"")

    def post(
        self,
        api_key: int,
        version: int,
        body: list[bytes],
        timeout: float,
        *,
        flexible: bool = False,
        client_id: str = CLIENT_ID,
        answered: bool = True,
    ) -> AsyncResult:
        """Send a request without waiting; :meth:`answer` has its answer. Raises KafkaConnectionError."""
        if self._renew_at is not None and time.monotonic() >= self._renew_at:
            self._renew()
        name = client_id.encode()[:32767]
        head = struct.pack(">h", len(name)) + name + (b"\0" if flexible else b"")
        size = _HEADER.size - 4 + len(head) + sum(map(len, body))
        answer = AsyncResult()
        with self._sending:
            if self._error is not None:
                raise self._error
            self._last_id = (self._last_id + 1) & 0x7FFFFFFF
            if answered:
                self._waiting.append((self._last_id, answer))
            frame = b"".join([_HEADER.pack(size, api_key, version, self._last_id), head, *body])
            try:
                with gevent.Timeout(timeout, TimeoutError("the broker does not read")):
                    self._socket.sendall(frame)
            except OSError as error:
                self._fail(KafkaConnectionError(f"{self.name}: {error.strerror or error}"))
            except BaseException:  # this green thread was killed in the middle of a frame
                self._fail(KafkaConnectionError(f"{self.name}: sending was interrupted"))
                raise
        if not answered and self._error is not None:
            raise self._error
        return answer

    def answer(self, answer: AsyncResult, timeout: float) -> memoryview:
        """The answer to a :meth:`post`. Raises as :meth:`request`."""
        try:
            return answer.get(timeout=timeout)  # type: ignore[no-any-return]
        except gevent.Timeout:
            late = RequestTimedOutError(f"{self.name} has not answered within {in_words(timeout)}")
            self._fail(late)
            raise late from None

    def ask(self, request: Any, version: int, timeout: float, client_id: str = CLIENT_ID) -> Any:
        """The response to a request object of kafka-python, in that version. Raises as :meth:`request`."""
        flexible = request.flexible_version_q(version)
        body = request.encode(version=version)
        answer = self.request(
            request.API_KEY, version, [body], timeout, flexible=flexible, client_id=client_id
        )
        response_class = _response_class(request, version)
        tagged = flexible and request.API_KEY != _API_VERSIONS  # its response header never has tagged fields
        return self.decode(lambda: read_response(response_class, version, tagged, answer))

    def decode(self, decoder: Callable[[], Any]) -> Any:
        """The result of ``decoder``. If it fails the connection is closed; raises KafkaProtocolError."""
        try:
            return decoder()
        except Exception as error:
            failure = KafkaProtocolError(f"{self.name} has sent a malformed answer: {error!r}")
            self._fail(failure)
            raise failure from error

    def close(self) -> None:
        """Close it. Requests that wait for an answer raise KafkaConnectionError."""
        self._fail(KafkaConnectionError(f"{self.name}: the connection was closed"))
        if self._reader is not gevent.getcurrent():
            self._reader.kill(block=False)

    # -- inside ---------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Say again who one is; meanwhile nothing else is sent."""
        with self._sending:
            if self._renew_at is None:
                return
            self._renew_at = None
            try:
                self._authenticate()
            except BaseException as error:
                failure = KafkaConnectionError(f"{self.name}: the session has ended: {error}")
                self._fail(failure)
                if isinstance(error, KafkaError):
                    raise failure from error
                raise

    def _authenticate(self) -> None:
        if self._sasl is None:
            return
        from dafka.broker.remote.authenticating import authenticate  # most brokers want to know nobody

        lifetime = authenticate(self, self._sasl, self._protocol, self._timeout)
        if lifetime:
            self._renew_at = time.monotonic() + RENEWED_AFTER * lifetime

    def _negotiate(self, timeout: float) -> None:
        for version in (_API_VERSIONS_VERSION, 0):
            request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")
            body = [request.encode(version=version)]
            answer = self.request(_API_VERSIONS, version, body, timeout, flexible=version >= 3)
            code = self.decode(lambda: _SHORT.unpack_from(answer)[0])  # noqa: B023
            # Brokers that are too old for the version fill the rest of the response in different ways.
            if code != _UNSUPPORTED_VERSION:
                break
        if code:
            raise for_code(code)("in answer to ApiVersions")
        response = self.decode(lambda: ApiVersionsResponse.decode(bytes(answer), version=version))
        self.versions = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}

    def _read(self) -> None:
        receive = self._socket.recv
        buffered = b""
        try:
            while True:
                while len(buffered) < 4:
                    buffered += self._some(receive(65536))
                size = _INT.unpack_from(buffered)[0]
                if not 4 <= size <= RESPONSE_BYTES:
                    raise KafkaProtocolError(f"{self.name}: {size} is not the length of an answer")
                if len(buffered) >= size + 4:
                    answer = memoryview(buffered)[4 : size + 4]
                    buffered = buffered[size + 4 :]
                else:
                    answer = self._rest(buffered, size)
                    buffered = b""
                self._answered(answer)
        except OSError as error:
            self._fail(KafkaConnectionError(f"{self.name}: {error.strerror or error}"))
        except KafkaError as error:
            self._fail(error)
        except Exception as error:  # requests must not wait for ever
            log.exception("reading from %s failed on something unexpected", self.name)
            self._fail(KafkaConnectionError(f"{self.name}: reading failed: {error!r}"))

    def _rest(self, begin: bytes, size: int) -> memoryview:
        """Receive the rest of an answer. Memory is allocated as bytes come, not for the announced length."""
        frame = bytearray(min(size, RECEIVE_BYTES))
        filled = len(begin) - 4
        if filled > len(frame):
            frame.extend(bytes(filled - len(frame)))
        frame[:filled] = begin[4:]
        while filled < size:
            if filled == len(frame):
                frame.extend(bytes(min(size - filled, filled)))
            with memoryview(frame)[filled:] as room:
                got = self._socket.recv_into(room)
            if not got:
                self._some(b"")
            filled += got
        return memoryview(frame)

    def _some(self, data: bytes) -> bytes:
        if not data:
            raise KafkaConnectionError(f"{self.name} has closed the connection")
        return data

    def _answered(self, answer: memoryview) -> None:
        number = _INT.unpack_from(answer)[0]
        if not self._waiting:
            raise KafkaProtocolError(f"{self.name} has sent an answer without a request")
        expected, waiting = self._waiting.popleft()
        if number != expected:
            error = CorrelationIdError(f"{self.name} answers request {number}, expected is {expected}")
            waiting.set_exception(error)
            raise error
        waiting.set(answer[4:])

    def _fail(self, error: KafkaError) -> None:
        if self._error is not None:
            return
        self._error = error
        with suppress(OSError):  # closing it is not enough where a forked child has the socket as well
            self._socket.shutdown(sockets.SHUT_RDWR)
        self._socket.close()
        while self._waiting:
            self._waiting.popleft()[1].set_exception(error)
        if self._reader is not gevent.getcurrent():
            self._reader.kill(block=False)
        self.on_close(self)


def _open(host: str, port: int) -> Any:
    """A connected socket to the first of the host's addresses that answers."""
    failure: OSError = OSError("no address")
    for family, kind, protocol, _, address in _addresses(host, port):
        opened = gevent.socket.socket(family, kind, protocol)
        try:
            opened.connect(address)
            opened.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            return opened
        except OSError as error:
            opened.close()
            failure = error
        except BaseException:
            opened.close()
            raise
    raise failure


def _addresses(host: str, port: int) -> Any:
    if host.lower() == "localhost":
        return [*_addresses("127.0.0.1", port), *_addresses("::1", port)]
    octets = host_octets(host)
    try:  # a numeric address needs no lookup, and so no thread that waits for one
        return sockets.getaddrinfo(octets, port, 0, sockets.SOCK_STREAM, 0, sockets.AI_NUMERICHOST)
    except sockets.gaierror:
        return gevent.socket.getaddrinfo(octets, port, 0, sockets.SOCK_STREAM)


def _response_class(request: Any, version: int) -> Any:
    request.with_header()
    return request.header.get_response_class()[None]
