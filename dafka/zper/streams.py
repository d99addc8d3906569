"""Streams: whole messages of a partition, sent to one client as they are committed.

The octets of the log in RAW form are sent over the connection as they are, and no message is taken apart. A
stream reads on when its client has room, so one that does not read costs what its connection queues.
"""

from __future__ import annotations

import logging

import gevent
from kafka.errors import KafkaError, PolicyViolationError, UnknownTopicOrPartitionError

from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import DamagedPositionError, PositionOutOfRangeError
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import LogError
from dafka.protocol.raw import decode_messages
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.limits import TURN_SECONDS
from dafka.sockets.peer import Peer
from dafka.zmtp.encoding import encode_all
from dafka.zper import limits
from dafka.zper.envelope import answer
from dafka.zper.places import Chunk, Known, Place

log = logging.getLogger(__name__)


class Streams:
    """All streams of the reader, or of the relay. Hub side.

    ``follows``: a stream goes on where messages are again, when those that come next are gone: its clients
    know no positions. Otherwise such a stream loses its connection. ``poll``: seconds between two looks for a
    topic that does not exist yet.
    """

    def __init__(self, hub: Hub, poll: float, *, follows: bool) -> None:
        self.hub = hub
        self.poll = poll
        self.follows = follows
        self.running = 0
        self.messages = 0
        self.octets = 0

    def start(self, peer: Peer, place: Place, position: int | None, delimited: bool) -> Stream:
        """Stream to a client from a position on; None: from the end as it is now."""
        return Stream(self, peer, place, position, delimited)


class Stream:
    """One stream. It may be ended at any moment: the client has whole messages then."""

    def __init__(
        self, streams: Streams, peer: Peer, place: Place, position: int | None, delimited: bool
    ) -> None:
        self._streams = streams
        self._peer = peer
        self._place = place
        self._position = position
        self._delimited = delimited
        self._green = streams.hub.spawn(self._run)

    @property
    def position(self) -> int | None:
        """The position of the next message; None while it is not known."""
        return self._position

    @property
    def topic(self) -> str:
        """As clients name it."""
        return self._place.name

    def stop(self) -> None:
        """End it; waits until nothing more comes."""
        self._green.kill()

    def kill(self) -> None:
        """End it without waiting."""
        self._green.kill(block=False)

    def _run(self) -> None:
        streams = self._streams
        streams.running += 1
        try:
            self._go(self._begin())
        except (DisconnectedError, BrokerStoppedError):
            pass
        except _BrokenError as error:
            self._break(str(error))
        except (KafkaError, LogError) as error:
            self._break(f"{type(error).__name__}: {error}")
        except Exception:
            log.exception("a stream of %r failed", self._place.name)
            self._break("an error of ours, see above")
        finally:
            streams.running -= 1

    def _break(self, why: str) -> None:
        self._peer.close("stream", f"the stream of {self._place.name!r} cannot go on: {why}")

    def _go(self, known: Known) -> None:
        while True:
            try:
                now = self._place.known()
                if now is None or now.positions is not known.positions:
                    known = self._begin_anew()
                self._send_next(known)
            except UnknownTopicOrPartitionError:
                continue  # deleted: the next look says so
            except PolicyViolationError:
                known = self._begin_anew()
            except PositionOutOfRangeError as error:
                self._go_on(f"messages from {error.position} on were removed", error.first)
            except DamagedPositionError as error:
                self._go_on(str(error), error.next)

    def _begin(self) -> Known:
        """Wait for the topic; from its end on, unless there is a position or it comes later."""
        while True:
            try:
                if self._position is None:
                    self._position = self._place.end()
                known = self._place.known()
                if known is not None:
                    return known
            except UnknownTopicOrPartitionError:
                continue  # deleted: the next look says so
            except PolicyViolationError:  # a compacted topic has no positions; it may become another one
                if not self._streams.follows:
                    raise
                self._position = None
            gevent.sleep(self._streams.poll)

    def _begin_anew(self) -> Known:
        """The topic was deleted, and another one of its name may be there."""
        self._go_on("the topic was deleted", 0)
        return self._begin()

    def _go_on(self, why: str, position: int) -> None:
        if not self._streams.follows:
            raise _BrokenError(why)
        self._position = position

    def _send_next(self, known: Known) -> None:
        """Send a chunk, or wait for one."""
        position = self._position
        assert position is not None
        size = min(known.end - position, limits.CHUNK_OCTETS)
        if not size:
            known.positions.catch_up()
            if known.end <= position:
                known.positions.wait(limits.STREAM_SECONDS)
            return
        self._peer.wait_for_room(size)
        chunk = self._place.chunk(known, position, size)
        if not chunk.messages:
            size = known.bounds(position)[1] - position
            self._peer.wait_for_room(size)
            chunk = self._place.chunk(known, position, size)
        self._peer.send_encoded(self._encoded(chunk), chunk.messages)
        self._position = chunk.stop
        streams = self._streams
        streams.messages += chunk.messages
        streams.octets += len(chunk.octets)
        if streams.hub.turns.elapsed > TURN_SECONDS:  # of many streams each has something to send
            Pace().pause()

    def _encoded(self, chunk: Chunk) -> list[bytes]:
        if not self._delimited:
            return [chunk.octets]
        messages, _ = decode_messages(chunk.octets)
        return encode_all([answer(True, message) for message in messages])


class _BrokenError(Exception):
    """The next messages are gone, and the client counts positions."""
