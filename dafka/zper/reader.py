"""ZPReader: answers OFFSET and FETCH of DEALER and REQ clients, and streams to those that want it.

A topic that does not exist is one without messages: asking for it creates nothing. A client's requests are
answered one by one, in their order, and nothing is read for it before it has room for what is read; a request
that comes while it is streamed to ends the stream, behind a whole message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka.errors import KafkaError, PolicyViolationError

from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import PositionOutOfRangeError
from dafka.log import LogError
from dafka.log.repeating import bounded_logger
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.peer import Peer
from dafka.zper.commands import (
    EARLIEST,
    LATEST,
    Fetch,
    InvalidCommandError,
    Offset,
    Status,
    fetch_response,
    offsets_response,
    parse_request,
    status,
)
from dafka.zper.connected import Connected
from dafka.zper.discarded import Discarded
from dafka.zper.envelope import answer, without_delimiters
from dafka.zper.identity import Identity, InvalidIdentityError, parse
from dafka.zper.places import Place, Places
from dafka.zper.singles import Frames
from dafka.zper.streams import Stream, Streams

log = bounded_logger(__name__)


class Reader:
    """Handles the clients of a :class:`dafka.sockets.router.Router`. Hub side."""

    def __init__(self, places: Places, streams: Streams, discarded: Discarded) -> None:
        self._places = places
        self._streams = streams
        self._discarded = discarded
        self._clients: dict[Peer, _Client | None] = {}  # None: its identity cannot be read
        self._requests = 0

    def metrics(self) -> dict[str, int]:
        """By the names of :mod:`dafka.mesh.metrics`."""
        return {"zper_requests": self._requests}

    def clients(self) -> Iterator[Connected]:
        """The connected clients whose identity could be read."""
        for peer, client in list(self._clients.items()):
            if client is not None:
                where = None if client.stream is None else client.stream.position
                yield Connected("reader", peer.address, client.identity.topic, 0, position=where)

    # -- what the Router calls ------------------------------------------------------------------

    def joined(self, peer: Peer) -> None:
        """A client has connected."""
        try:
            self._clients[peer] = _Client(parse(peer.identity))
        except InvalidIdentityError as error:
            self._clients[peer] = None
            self._discarded.report("identity", f"a client of the ZPReader is ignored: {error}", 0)

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """A client has sent requests; nothing more is read from it until this returns."""
        client = self._clients[peer]
        if client is None:
            what = f"{len(messages)} requests of a client whose identity cannot be read"
            self._discarded.report("identity", what, len(messages))
            return
        for delimited, requests in without_delimiters(messages):
            for request in requests:
                self._streams.hub.turns.share()  # hundreds may come at once
                self._requests += 1
                if client.stream is not None:
                    client.stream.stop()
                    client.stream = None
                try:
                    self._answer(peer, client, delimited, request)
                except DisconnectedError:
                    return

    def left(self, peer: Peer) -> None:
        """A client has gone, and so has its stream."""
        client = self._clients.pop(peer, None)
        if client is not None and client.stream is not None:
            client.stream.kill()

    # -- requests -------------------------------------------------------------------------------

    def _answer(self, peer: Peer, client: _Client, delimited: bool, request: Frames) -> None:
        try:
            asked = parse_request(request)
        except InvalidCommandError as error:
            self._discarded.report("command", f"a request to the ZPReader by {peer}: {error}")
            peer.send(answer(delimited, [status(Status.INVALID_COMMAND)]))
            return
        place = self._places.of(client.identity)
        try:
            if isinstance(asked, Offset):
                response = offsets_response(_offsets(place, asked))
            elif asked.size is not None:
                size = place.fetch_size(asked.position, asked.size)
                self._send_super_frame(peer, place, asked.position, size, delimited)
                return
            else:
                client.stream = self._stream(peer, place, asked, delimited)
                return
        except PositionOutOfRangeError:
            response = [status(Status.INVALID_OFFSET)]
        except (DisconnectedError, BrokerStoppedError):
            raise
        except (KafkaError, LogError) as error:
            self._discarded.report("failed", f"{_words(asked)} of {client.identity.topic!r}: {_why(error)}")
            response = [status(Status.INTERNAL_ERROR)]
        except Exception:
            log.exception("a request to the ZPReader failed: %s", _words(asked))
            response = [status(Status.INTERNAL_ERROR)]
        peer.send(answer(delimited, response))

    def _send_super_frame(self, peer: Peer, place: Place, position: int, size: int, delimited: bool) -> None:
        """Read octets when there is room for them, and queue them before others look for room: so those of
        few clients are in memory beside what is queued."""
        while True:
            peer.wait_for_room(size)
            with place.reading(size):
                if peer.has_room(size):
                    peer.send(answer(delimited, fetch_response(place.read(position, size))))
                    return

    def _stream(self, peer: Peer, place: Place, asked: Fetch, delimited: bool) -> Stream:
        place.check_start(asked.position)
        peer.send(answer(delimited, [status(Status.OK)]))
        return self._streams.start(peer, place, asked.position, delimited)


class _Client:
    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.stream: Stream | None = None


def _offsets(place: Place, asked: Offset) -> list[int]:
    if asked.time == EARLIEST:
        return place.earliest()
    if asked.time == LATEST:
        return place.latest()
    return place.before(asked.time, asked.entries)


def _words(asked: Offset | Fetch) -> str:
    return f"OFFSET {asked.time}" if isinstance(asked, Offset) else f"FETCH {asked.position} {asked.size}"


def _why(error: Exception) -> str:
    if isinstance(error, PolicyViolationError):
        return "a compacted topic has no positions"
    return f"{type(error).__name__}: {error}"
