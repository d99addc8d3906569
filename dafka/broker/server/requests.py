"""One frame, from bytes to the buffers of its response."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from kafka.errors import UnsupportedVersionError
from kafka.protocol.api_header import ResponseClassRegistry

from dafka.broker.codec import limits as codec_limits
from dafka.broker.codec.encoding import encoded, is_wide
from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.fetch_request import FLEXIBLE, read_fetch
from dafka.broker.codec.fetch_response import write_fetch
from dafka.broker.codec.framing import Buffers, Header, body_of, framed, read_header
from dafka.broker.codec.produce_request import FLEXIBLE as PRODUCE_FLEXIBLE
from dafka.broker.codec.produce_request import ProduceRequest
from dafka.broker.codec.produce_request import read_produce as read_produce_body
from dafka.broker.codec.produce_response import write_produce
from dafka.broker.codec.reader import Items, TooManyItems, read_request
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server import limits
from dafka.broker.server.answers import fetch, produce
from dafka.broker.server.answers.api_versions import api_versions
from dafka.broker.server.context import Context, Peer
from dafka.broker.server.crossing import crossing
from dafka.broker.server.fetch_sessions import FetchSessions
from dafka.broker.server.table import API_VERSIONS, BY_KEY, FETCH, PRODUCE, WAITS, WIDE, Api
from dafka.hub.pool import REQUESTS

T = TypeVar("T")

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
    """The response. Waits as a green thread.

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
        return respond_produce(broker, frame, read_produce(frame))
    if api.answer_by_hand is not None:
        answer = partial(api.answer_by_hand, data, body_of(data, header, True), version)
        large = len(data) > limits.INLINE_BYTES
        return framed(header.correlation, True, [REQUESTS.run(answer) if large else answer()])
    if (api.name in WIDE or len(data) > limits.INLINE_BYTES) and api.name not in WAITS:
        return REQUESTS.run(_answer, crossing(broker), frame, api, peer)
    return _answer(broker, frame, api, peer)


def _answer(broker: BrokerInterface, frame: Frame, api: Api, peer: Peer) -> Buffers:
    """In the hub, or beside it for what is large."""
    header = frame.header
    large = len(frame.data) > limits.INLINE_BYTES
    request = REQUESTS.run(_read, frame, api) if large else _read(frame, api)
    if header.key == API_VERSIONS:
        peer.is_kafka_python = request.client_software_name == KAFKA_PYTHON
    assert api.answer is not None
    context = Context(header.client_id or "", f"/{peer.host}", peer.is_kafka_python)
    response = api.answer(broker, request, context)
    flexible = api.request.flexible_version_q(header.version) and header.key != API_VERSIONS
    if is_wide(response):
        return REQUESTS.run(_encoded, header, response, flexible)
    return _encoded(header, response, flexible)


def _read(frame: Frame, api: Api) -> Any:
    data, header, _ = frame
    flexible = api.request.flexible_version_q(header.version)
    return read_request(api.request, header.version, data, body_of(data, header, flexible))


def _encoded(header: Header, response: Any, flexible: bool) -> Buffers:
    return framed(header.correlation, flexible, [encoded(response, header.version)])


def _by_hand(read: Callable[[memoryview, int, int, Items], T], frame: Frame, flexible: bool) -> T:
    """The request that ``read`` reads: beside the hub if it lists much, which shows when it is read."""
    data, header, _ = frame
    position = body_of(data, header, flexible)
    most = min(codec_limits.INLINE_ITEMS, codec_limits.REQUEST_ITEMS)
    try:
        return read(data, position, header.version, Items(most))
    except TooManyItems:
        return REQUESTS.run(read, data, position, header.version, Items())


def read_produce(frame: Frame) -> ProduceRequest | None:
    """The request of a frame that is a Produce; None if its version is not known. Raises BadRequestError."""
    version, api = frame.header.version, BY_KEY[PRODUCE]
    if not api.first <= version <= api.last:
        return None
    return _by_hand(read_produce_body, frame, version >= PRODUCE_FLEXIBLE)


def respond_produce(broker: BrokerInterface, frame: Frame, request: ProduceRequest | None) -> Buffers:
    """The response to what :func:`read_produce` has read; none for a Produce that wants none.

    Waits as a green thread. Raises BadRequestError, and what the broker raises.
    """
    header = frame.header
    if request is None:
        return _refuse(header, BY_KEY[PRODUCE])
    flexible = header.version >= PRODUCE_FLEXIBLE
    answers = produce.produce(broker, request, header.version)
    if request.acks == 0:
        for topic, partitions in answers.items():
            for number, one in partitions:
                if one.error is not None:
                    # As Kafka does it: without an answer the client can only learn of it this way.
                    detail = f"acks=0, and partition {number} of {topic}: {one.error.__name__} {one.detail}"
                    raise BadRequestError("acks0", detail)
        return []
    if request.is_wide:
        body = REQUESTS.run(write_produce, answers, header.version)
    else:
        body = write_produce(answers, header.version)
    return framed(header.correlation, flexible, [body])


def _fetch(broker: BrokerInterface, sessions: FetchSessions, frame: Frame, room: fetch.Room) -> Buffers:
    header = frame.header
    flexible = header.version >= FLEXIBLE
    request = _by_hand(read_fetch, frame, flexible)
    answer = fetch.fetch(broker, sessions, request, header.version, room)
    arguments = answer, header.version, request.read_committed
    wide = len(answer.partitions) > codec_limits.INLINE_ITEMS
    body = REQUESTS.run(write_fetch, *arguments) if wide else write_fetch(*arguments)
    return framed(header.correlation, flexible, body)


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
