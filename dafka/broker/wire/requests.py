"""One frame, from bytes to the buffers of its response."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from kafka.errors import UnsupportedVersionError
from kafka.protocol.api_header import ResponseClassRegistry

from dafka.broker.interface import BrokerInterface
from dafka.broker.wire import fetch, produce
from dafka.broker.wire.context import Context, Peer
from dafka.broker.wire.encoding import encoded
from dafka.broker.wire.errors import BadRequestError
from dafka.broker.wire.fetch_request import FLEXIBLE, read_fetch
from dafka.broker.wire.fetch_sessions import FetchSessions
from dafka.broker.wire.framing import Buffers, Header, body_of, framed, read_header
from dafka.broker.wire.reader import read_request
from dafka.broker.wire.table import API_VERSIONS, BY_KEY, FETCH, PRODUCE, Api, api_versions

KAFKA_PYTHON = "kafka-python"  # as it calls itself
_UNSUPPORTED = int(UnsupportedVersionError.errno)


class Unanswerable(BadRequestError):
    """A request that the protocol has no answer for, as far as it can be known."""


class Frame(NamedTuple):
    """A frame with its header and the API it is for (None: not offered)."""

    data: memoryview
    header: Header
    api: Api | None

    @property
    def is_produce(self) -> bool:
        return self.header.key == PRODUCE

    @property
    def is_fetch(self) -> bool:
        return self.header.key == FETCH


def read_frame(data: memoryview) -> Frame:
    """Raises BadRequestError."""
    header = read_header(data)
    return Frame(data, header, BY_KEY.get(header.key))


def respond(
    broker: BrokerInterface, sessions: FetchSessions, frame: Frame, peer: Peer, room: fetch.Room
) -> Buffers:
    """The response; none for a Produce that wants none. Waits as a green thread.

    ``sessions``: the listener's. ``room``: promises a Fetch its bytes of batches. Raises
    BadRequestError, and what the broker raises.
    """
    data, header, api = frame
    key, version = header.key, header.version
    if key == FETCH and 0 <= version <= BY_KEY[FETCH].last:
        return _fetch(broker, sessions, frame, room)  # which refuses older versions by itself
    if api is None or not api.first <= version <= api.last:
        return _refuse(header, api)
    if key == PRODUCE:
        return _produce(broker, frame)
    if api.answer_by_hand is not None:
        return framed(
            header.correlation, True, [api.answer_by_hand(data, body_of(data, header, True), version)]
        )
    flexible = api.request.flexible_version_q(version)
    request = read_request(api.request, version, data, body_of(data, header, flexible))
    if key == API_VERSIONS:
        peer.is_kafka_python = request.client_software_name == KAFKA_PYTHON
    assert api.answer is not None
    context = Context(header.client_id or "", f"/{peer.host}", peer.is_kafka_python)
    response = api.answer(broker, request, context)
    return _encoded(header, response, flexible and key != API_VERSIONS)


def _encoded(header: Header, response: Any, flexible: bool) -> Buffers:
    return framed(header.correlation, flexible, [encoded(response, header.version)])


def _produce(broker: BrokerInterface, frame: Frame) -> Buffers:
    data, header, _ = frame
    flexible = header.version >= produce.FLEXIBLE
    request = produce.read_produce(data, body_of(data, header, flexible), header.version)
    answers = produce.produce(broker, request, header.version)
    if request.acks == 0:
        for topic, partitions in answers.items():
            for number, one in partitions:
                if one.error is not None:
                    # As Kafka does it: without an answer the client can only learn of it this way.
                    detail = f"acks=0, and partition {number} of {topic}: {one.error.__name__} {one.detail}"
                    raise BadRequestError("acks0", detail)
        return []
    return framed(header.correlation, flexible, [produce.write_produce(answers, header.version)])


def _fetch(broker: BrokerInterface, sessions: FetchSessions, frame: Frame, room: fetch.Room) -> Buffers:
    data, header, _ = frame
    flexible = header.version >= FLEXIBLE
    request = read_fetch(data, body_of(data, header, flexible), header.version)
    answer = fetch.fetch(broker, sessions, request, header.version, room)
    return framed(
        header.correlation, flexible, fetch.write_fetch(answer, header.version, request.read_committed)
    )


def _refuse(header: Header, api: Api | None) -> Buffers:
    """UNSUPPORTED_VERSION in the layout of the response, if that is known."""
    key, version = header.key, header.version
    if key == API_VERSIONS:
        # Version 0 and the list of what is offered, so that the client can ask again (KIP-511).
        return framed(header.correlation, False, [encoded(api_versions(_UNSUPPORTED), 0)])
    if api is not None and api.home is None:
        raise Unanswerable("unsupported", f"{api.name}, version {version}")
    response_class = _response_class(key) if api is None else api.response
    if response_class is None or not 0 <= version <= response_class.max_version:
        raise Unanswerable("unsupported", f"API key {key}, version {version}")
    if "error_code" not in response_class.fields:
        raise Unanswerable("unsupported", f"{response_class.__name__[:-8]}, version {version}")
    if not response_class.fields["error_code"].for_version_q(version):
        raise Unanswerable("unsupported", f"{response_class.__name__[:-8]}, version {version}")
    return _encoded(
        header, response_class(error_code=_UNSUPPORTED), response_class.flexible_version_q(version)
    )


def _response_class(key: int) -> Any:
    """Of an API that is not offered here."""
    for name in ("admin", "consumer", "metadata", "producer", "sasl"):
        import_module(f"kafka.protocol.{name}").__all__  # noqa: B018  (the name has even a deferred package run)
    return ResponseClassRegistry._response_class_registry.get(key)
