"""One request, from its bytes to the buffers of its response."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar, cast

from kafka.errors import UnsupportedVersionError

from dafka.broker.access.rights import Rights
from dafka.broker.codec import limits as codec_limits
from dafka.broker.codec.encoding import encoded, is_wide
from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.fetch_request import FLEXIBLE, read_fetch
from dafka.broker.codec.fetch_response import FetchAnswer, write_fetch
from dafka.broker.codec.framing import LENGTH_OCTETS, Buffers, Header, body_of, framed, read_header
from dafka.broker.codec.produce_request import FLEXIBLE as PRODUCE_FLEXIBLE
from dafka.broker.codec.produce_request import OLDEST, ProduceRequest
from dafka.broker.codec.produce_request import read_produce as read_produce_body
from dafka.broker.codec.produce_response import write_produce
from dafka.broker.codec.reader import Items, TooManyItems, read_request
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server import limits
from dafka.broker.server.answers import fetch, produce
from dafka.broker.server.answers.api_versions import api_versions
from dafka.broker.server.context import Context, Mutations, Peer
from dafka.broker.server.fetch_sessions import FetchSessions
from dafka.broker.server.repeated_fetch import RepeatedFetch
from dafka.broker.server.sending import joined
from dafka.broker.server.table import API_VERSIONS, BY_KEY, FETCH, PRODUCE, SHARE_FETCH, WIDE, Api
from dafka.hub.turns import let_go
from dafka.hub.worker import REQUESTS, ask

T = TypeVar("T")

KAFKA_PYTHON = "kafka-python"  # its client_software_name
_UNSUPPORTED = int(UnsupportedVersionError.errno)


class Unanswerable(BadRequestError):
    """A request of an API or a version that is not supported: the connection is closed."""


class Frame(NamedTuple):
    """A frame with its header and its API (None: not announced)."""

    data: memoryview
    header: Header
    api: Api | None

    @property
    def is_produce(self) -> bool:
        return self.header.key == PRODUCE

    @property
    def is_fetch(self) -> bool:
        return self.header.key == FETCH

    @property
    def is_share_fetch(self) -> bool:
        return self.header.key == SHARE_FETCH

    @property
    def reads(self) -> bool:
        """Whether records are read."""
        return self.is_fetch or self.is_share_fetch


def read_frame(data: memoryview) -> Frame:
    """The header and the API of a frame. Raises BadRequestError."""
    header = read_header(data)
    return Frame(data, header, BY_KEY.get(header.key))


def respond(
    broker: BrokerInterface,
    sessions: FetchSessions,
    frame: Frame,
    peer: Peer,
    room: fetch.Room,
    repeated: RepeatedFetch,
    admits: fetch.Admits | None = None,
) -> Buffers:
    """The response. Waits as a green thread.

    ``sessions`` are those of the listener; ``room`` grants a Fetch its bytes, and ``admits`` what it has
    found; ``repeated`` is the connection's. Raises BadRequestError, and the exceptions of the broker.
    """
    data, header, api = frame
    key, version = header.key, header.version
    if api is None or not api.first <= version <= api.last:
        return _refuse(header, api)
    if key == FETCH:
        return _fetch(broker, sessions, frame, room, repeated, peer, admits)
    if key == PRODUCE:
        return respond_produce(broker, frame, read_produce(frame), peer.rights)
    if not api.is_loaded:
        REQUESTS.run(api.load)
    if api.answer_by_hand is not None:
        answer = partial(api.answer_by_hand, data, body_of(data, header, True), version)
        large = len(data) > limits.INLINE_BYTES
        return framed(header.correlation, True, [REQUESTS.run(answer) if large else answer()])
    most = 0
    if frame.is_share_fetch:
        with room() as most:  # not held: it may wait for long
            pass
    if api.name in WIDE or len(data) > limits.INLINE_BYTES:
        rights = None if peer.rights is None else cast(Rights, _FromThread(peer.rights))
        mutations = None if peer.mutations is None else cast(Mutations, _FromThread(peer.mutations))
        remote = cast(BrokerInterface, _FromThread(broker))
        return REQUESTS.run(_answer, remote, frame, api, peer, rights, mutations, most)
    return _answer(broker, frame, api, peer, peer.rights, peer.mutations, most)


def _answer(
    broker: BrokerInterface,
    frame: Frame,
    api: Api,
    peer: Peer,
    rights: Rights | None,
    mutations: Mutations | None,
    most: int,
) -> Buffers:
    """Decode, answer and encode, in the hub or in a thread; a wide response is always encoded in a thread.

    ``most``: the octets of records that a ShareFetch may have.
    """
    header = frame.header
    request = _read(frame, api)
    if frame.is_share_fetch:
        request.max_bytes = min(request.max_bytes, most)
    if header.key == API_VERSIONS:
        peer.is_kafka_python = request.client_software_name == KAFKA_PYTHON
    assert api.answer is not None
    context = Context(
        header.client_id or "",
        f"/{peer.host}",
        peer.is_kafka_python,
        peer.told,
        rights,
        peer,
        peer.principal,
        mutations,
    )
    if rights is None:
        response = api.answer(broker, request, context)
    else:
        response = _guarded()(api, broker, request, context)
    flexible = api.request.flexible_version_q(header.version) and header.key != API_VERSIONS
    if is_wide(response):
        held = [response]
        del response  # its hundred thousand objects are freed in the thread, and not in a turn of the hub
        return REQUESTS.run(_encoded_last, header, held, flexible)
    return _encoded(header, response, flexible)


@cache
def _guarded() -> Callable[[Api, BrokerInterface, Any, Context], Any]:
    from dafka.broker.server.rights.guards import guarded  # most brokers have no use for it

    return guarded


def _read(frame: Frame, api: Api) -> Any:
    data, header, _ = frame
    flexible = api.request.flexible_version_q(header.version)
    return read_request(api.request, header.version, data, body_of(data, header, flexible))


def _encoded(header: Header, response: Any, flexible: bool) -> Buffers:
    return framed(header.correlation, flexible, [encoded(response, header.version)])


def _encoded_last(header: Header, held: list[Any], flexible: bool) -> Buffers:
    """The same of the one response in ``held``, which ends with that."""
    return _encoded(header, held.pop(), flexible)


def _by_hand(read: Callable[[memoryview, int, int, Items], T], frame: Frame, flexible: bool) -> T:
    """Decode in the hub, and start again in a thread if the request turns out to list many items."""
    data, header, _ = frame
    position = body_of(data, header, flexible)
    most = min(codec_limits.INLINE_ITEMS, codec_limits.REQUEST_ITEMS)
    try:
        return read(data, position, header.version, Items(most))
    except TooManyItems:
        return REQUESTS.run(read, data, position, header.version, Items())


def read_produce(frame: Frame) -> ProduceRequest | None:
    """The Produce request of a frame; None if its version is not supported. Raises BadRequestError."""
    version, api = frame.header.version, BY_KEY[PRODUCE]
    if not OLDEST <= version <= api.last:
        return None
    return _by_hand(read_produce_body, frame, version >= PRODUCE_FLEXIBLE)


def respond_produce(
    broker: BrokerInterface, frame: Frame, request: ProduceRequest | None, rights: Rights | None
) -> Buffers:
    """The response to a request from :func:`read_produce`; empty with acks=0.

    ``rights`` are the client's. Waits as a green thread. The request may be emptied, as it is not needed any
    more. Raises BadRequestError, and the exceptions of the broker.
    """
    header = frame.header
    if request is None:
        return _refuse(header, BY_KEY[PRODUCE])
    flexible = header.version >= PRODUCE_FLEXIBLE
    answers = produce.produce(broker, request, header.version, rights)
    let_go(*(partitions for _, partitions in request.topics))
    if request.acks == 0:
        for topic, partitions in answers.items():
            for number, one in partitions:
                if one.error is not None:
                    # As in Kafka: with acks=0 a closed connection is the only way to report an error.
                    detail = f"acks=0, and partition {number} of {topic}: {one.error.__name__} {one.detail}"
                    raise BadRequestError("acks0", detail)
        return []
    if request.is_wide:
        body = REQUESTS.run(write_produce, answers, header.version)
    else:
        body = write_produce(answers, header.version)
    let_go(*answers.values())
    return framed(header.correlation, flexible, [body])


def _written(answer: FetchAnswer, version: int, read_committed: bool) -> Buffers:
    return joined(write_fetch(answer, version, read_committed))


def _fetch(
    broker: BrokerInterface,
    sessions: FetchSessions,
    frame: Frame,
    room: fetch.Room,
    repeated: RepeatedFetch,
    peer: Peer,
    admits: fetch.Admits | None,
) -> Buffers:
    header, rights = frame.header, peer.rights
    flexible = header.version >= FLEXIBLE
    left = None
    if admits is None:
        known, left = repeated.wait(frame.data, -1 if rights is None else rights.version)
        if known is not None:
            return framed(header.correlation, flexible, known)
    request = _by_hand(read_fetch, frame, flexible)
    if left is not None:
        request = request._replace(max_wait=left)

    def answered(max_wait: float) -> tuple[FetchAnswer, Buffers]:
        asked = request._replace(max_wait=max_wait)
        stored = peer.takes_files
        answer = fetch.fetch(broker, sessions, asked, header.version, room, rights, stored, admits)
        arguments = answer, header.version, request.read_committed
        wide = len(answer.partitions) > codec_limits.INLINE_ITEMS
        return answer, REQUESTS.run(_written, *arguments) if wide else write_fetch(*arguments)

    left = request.max_wait
    if admits is None and repeated.begin(request):
        answer, body = answered(0.0)
        repeated.end(answer, body)
        if fetch.is_enough([one for _, one in answer.partitions], request.min_bytes, request.max_bytes):
            fetch.count(broker, answer)
            return framed(header.correlation, flexible, body)
        known, still = repeated.sleep()
        if known is not None:
            return framed(header.correlation, flexible, known)
        left = left if still is None else still
    answer, body = answered(left)
    fetch.count(broker, answer)
    let_go(request.partitions)
    if isinstance(answer.partitions, list):
        let_go(answer.partitions)
    return framed(header.correlation, flexible, body)


def has_produce(requests: memoryview) -> bool:
    """Whether there is a Produce among these requests, the last of which may be cut short."""
    position = 0
    while len(requests) - position >= LENGTH_OCTETS + 2:
        begin = position + LENGTH_OCTETS
        size = int.from_bytes(requests[position:begin], "big", signed=True)
        if int.from_bytes(requests[begin : begin + 2], "big") == PRODUCE:
            return True
        position = begin + max(size, 0)
    return False


def _refuse(header: Header, api: Api | None) -> Buffers:
    """An unsupported version of ApiVersions is answered. Raises Unanswerable for others, as in Kafka."""
    if header.key == API_VERSIONS:
        # Version 0 with the supported versions, so that the client can choose one (KIP-511).
        return framed(header.correlation, False, [encoded(api_versions(_UNSUPPORTED), 0)])
    name = f"API key {header.key}" if api is None else api.name
    raise Unanswerable("unsupported", f"{name}, version {header.version}")


class _FromThread:
    """A broker, or what a client may do, for a thread outside of the hub: each call runs in a green thread
    of the hub."""

    def __init__(self, inside: BrokerInterface | Rights | Mutations) -> None:
        self._inside = inside

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(ask, getattr(self._inside, name))
