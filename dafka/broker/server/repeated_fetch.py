"""A consumer that waits at the end of its partitions sends the same Fetch over and over.

Many clients use no fetch session for that. From the second repetition on such a Fetch is neither decoded nor
read again, however many partitions it names: it sleeps until one of them changes, its time is over, or the
client has gone, and is answered with the octets of the time before. Those are made anew when rights have
changed, and now and then, so that what no partition tells of (a fault of a test) counts soon as well.

Partitions are watched before they are read for an answer that is kept, so nothing is missed in between. It is
kept only if the client has come to their ends: records that are there and were not given (a test may delay
them) wake nobody.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import starmap
from uuid import UUID

from dafka.broker.codec.fetch_request import FINAL, NO_SESSION, FetchRequest, Place
from dafka.broker.codec.fetch_response import FetchAnswer
from dafka.broker.codec.framing import Buffers
from dafka.broker.interface.broker import BrokerInterface, Fetched, FetchFrom, PartitionWatch
from dafka.broker.server import limits
from dafka.broker.server.answers.naming import topic_names

_CORRELATION = slice(4, 8)  # of a request's octets; all others are the same in a repetition


class RepeatedFetch:
    """The last Fetch of a connection, and its answer if there was nothing to read. Hub side."""

    def __init__(self, broker: BrokerInterface) -> None:
        self._broker = broker
        self._octets = b""
        self._again = False  # whether the request under way is the one before it
        self._watch: PartitionWatch | None = None
        self._body: Buffers = []  # empty: it is not known that the next answer will be the same
        self._offsets: dict[Place, int] = {}  # from which it reads
        self._read_committed = False
        self._max_wait = 0.0
        self._version = -1  # of the rights by which it was answered
        self._until = 0.0  # for so long the answer is taken as it is
        self._closed = False

    def wait(self, data: memoryview, version: int) -> tuple[Buffers | None, float | None]:
        """The body of the answer, if the same request has come again and nothing changes in its time.

        ``version`` is that of the client's rights: with other ones its request is looked at again.
        Otherwise what is left of that time, None if nothing has been waited for.
        """
        octets = _without_correlation(data)
        again = bool(octets) and octets == self._octets
        if not again or not self._body or version != self._version or time.monotonic() > self._until:
            self._forget()
            self._octets, self._again, self._version = octets, again, version
            return None, None
        return self.sleep()

    def sleep(self) -> tuple[Buffers | None, float | None]:
        """The same for a request whose empty answer is known; (None, None) if it is not."""
        if self._watch is None or not self._body:
            return None, None
        ends = time.monotonic() + self._max_wait
        if not self._watch.wait(self._max_wait) and not self._closed:
            return self._body, 0.0
        self._forget()
        return None, max(ends - time.monotonic(), 0.0)

    def begin(self, request: FetchRequest) -> bool:
        """The request will be read now. If it is the one before, its partitions are watched from now on.

        Then what is there already is to be read, and :meth:`sleep` waits for more if that was nothing.
        """
        if self._closed or not self._again:
            return False
        alone = request.session_epoch == FINAL and request.session_id == NO_SESSION
        if not alone or request.max_wait <= 0 or request.min_bytes <= 0 or not request.partitions:
            return False
        self._watch = self._broker.watch()
        if not self._add(self._watch, (place for place, _ in request.partitions)):
            self._forget()
            return False
        self._offsets = {place: FetchFrom(*from_).offset for place, from_ in request.partitions}
        self._read_committed = request.read_committed
        self._max_wait = request.max_wait
        self._until = time.monotonic() + limits.REPEATED_SECONDS
        return True

    def end(self, answer: FetchAnswer, body: Buffers) -> None:
        """It is answered so. The answer is kept if it is empty and nothing has changed meanwhile."""
        watch = self._watch
        if watch is None:
            return
        nothing = answer.error is None and all(starmap(self._is_at_end, answer.partitions))
        self._offsets = {}
        if nothing and not watch.take():
            self._body = body
        else:
            self._forget()

    def close(self) -> None:
        """The connection has ended."""
        self._closed = True
        self._forget()

    def _is_at_end(self, place: Place, one: Fetched) -> bool:
        """Whether there is nothing to tell, and nothing to read."""
        if one.error is not None or one.diverging is not None or one.batches:
            return False
        return self._offsets[place] >= (
            one.last_stable_offset if self._read_committed else one.high_watermark
        )

    def _add(self, watch: PartitionWatch, places: Iterable[tuple[str | UUID, int]]) -> bool:
        asked = list(places)
        names = topic_names(self._broker, {topic for topic, _ in asked if isinstance(topic, UUID)})
        for topic, number in asked:
            name = topic if isinstance(topic, str) else names.get(topic)
            if name is None or not watch.add((name, number)):
                return False
        return True

    def _forget(self) -> None:
        watch, self._watch = self._watch, None
        self._body, self._octets, self._again = [], b"", False
        if watch is not None:
            watch.close()


def _without_correlation(data: memoryview) -> bytes:
    """Empty for a request that is too long to be kept."""
    if len(data) > limits.REPEATED_OCTETS:
        return b""
    octets = bytearray(data)
    del octets[_CORRELATION]
    return bytes(octets)
