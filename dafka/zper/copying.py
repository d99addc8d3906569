"""One partition copied to one replica: read from the log, sent to the replica's ZPWriter, acknowledged by it.

The buffer is the log: messages that the replica has not answered for are read again after a disconnect, so it
gets every message in order, and some of them twice when a connection ends. Messages that another node has
copied to this one are passed over: nodes may be each other's replicas.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import gevent
import gevent.event
from kafka.errors import KafkaError, OffsetOutOfRangeError

from dafka.broker.interface.broker import BrokerInterface, FetchFrom, TopicPartition
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.log.repeating import bounded_logger
from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import read_header
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.raw import messages_of_records
from dafka.sockets.dealer import Dealer
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.peer import Peer
from dafka.zper import limits
from dafka.zper.batches import COPIED
from dafka.zper.envelope import DELIMITER, has_delimiter
from dafka.zper.identity import COPY, Mode, build
from dafka.zper.in_flight import InFlight
from dafka.zper.singles import Frames

log = bounded_logger(__name__)


class Copy:
    """Copies a partition until the replica has everything and nothing has come for a while. Hub side.

    ``patience()`` says how long. ``acknowledged(copy)`` is called when the replica has answered for more,
    ``ended(copy)`` in the end.
    """

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        key: TopicPartition,
        target: str,
        offset: int,
        patience: Callable[[], float],
        acknowledged: Callable[[Copy], object],
        ended: Callable[[Copy], object],
    ) -> None:
        self.key = key
        self._broker = broker
        self._target = target
        self._patience = patience
        self._acknowledged = acknowledged
        self._ended = ended
        self._next = offset  # to be read
        self._peer: Peer | None = None
        self._changed = gevent.event.Event()
        name = f"{key[0]}:{key[1]}" if key[1] else key[0]
        self._name = name
        self._identity = build(name, Mode.EVERY_WRITE, COPY + os.urandom(16 - len(COPY)))
        self._warned = False
        self.in_flight = InFlight(
            offset, limits.COPIES_IN_FLIGHT, limits.COPY_OCTETS_IN_FLIGHT, self._identity
        )
        self._dealer = Dealer(hub, target, handler=self, identity=self._identity)
        self._copying = hub.keep(self._run)

    def wake(self) -> None:
        """There may be more to copy."""
        self._changed.set()

    def close(self) -> None:
        """End it; unacknowledged messages are copied another time."""
        self._copying.kill()
        self._dealer.close()

    # -- what the Dealer calls ------------------------------------------------------------------

    def joined(self, peer: Peer) -> None:
        """The replica is connected."""
        self._next = self.in_flight.lose()
        self._peer = peer
        self._changed.set()

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """The replica has answered."""
        if peer is not self._peer:
            return
        for answer in messages:
            if answer[-1] == self._identity and not self._warned:
                self._warned = True
                why = "a Java server with decoder = true does not say which messages it has"
                log.warning("replica %s gets %s slowly: %s", self._target, self._name, why)
            # A Java server serves nobody any more when a client leaves that it has an answer for. So an
            # answer about nothing is passed over, and the connection stays.
            if not self.in_flight.answer(answer):
                log.error("replica %s answers for what it was not sent of %s", self._target, self._name)
        self._acknowledged(self)
        self._changed.set()

    def left(self, peer: Peer) -> None:
        """The connection has ended; the Dealer makes another one."""
        if peer is self._peer:
            self._peer = None

    # -- copying --------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                if self._peer is not None and self.in_flight.room and self._copy_some(self._peer):
                    continue
            except DisconnectedError:
                continue
            except BrokerStoppedError:
                return
            except OffsetOutOfRangeError:
                if self._go_on_at_start():
                    continue
                self._end()
                return
            except KafkaError as error:
                log.error("copying %s to %s: %s", self._name, self._target, error)
                gevent.sleep(limits.LONGEST_RETRY)
            idle = self._peer is not None and not len(self.in_flight)
            if not self._changed.wait(self._patience() if idle else 1.0):
                if idle:
                    self._end()
                    return
                self.in_flight.wait_longer()

    def _copy_some(self, peer: Peer) -> bool:
        """Send what is next; False if there is nothing."""
        start = self._next
        wanted = {self.key: FetchFrom(start, limits.COPY_OCTETS)}
        fetched = self._broker.fetch(
            wanted, max_wait=0.0, min_bytes=0, max_bytes=limits.COPY_OCTETS, read_committed=True
        )[self.key]
        if fetched.error is not None:
            raise fetched.error(f"from offset {start}")
        if not fetched.batches:
            return False
        messages, stop = BATCHES.run(_read, fetched.batches, start, fetched.aborted)
        room = self.in_flight.room
        if peer is not self._peer or not room:
            return True
        if len(messages) > room:
            messages, stop = messages[:room], messages[room - 1][0]
        self._next = stop
        self.in_flight.send(messages)
        self.in_flight.skip(stop)
        if not messages:
            self._acknowledged(self)
            return True
        peer.send_many([_with_delimiter(frames) for _, frames in messages])
        return True

    def _end(self) -> None:
        self._ended(self)
        self._dealer.close()

    def _go_on_at_start(self) -> bool:
        """Pass over what was removed; False if nothing was: the topic is another one, and shorter."""
        first = self._broker.list_offsets({self.key: -2})[self.key].offset
        if first <= self._next:
            return False
        lost = first - self._next
        log.error("%d messages of %s were removed before %s had them", lost, self._name, self._target)
        self._next = first
        self.in_flight.skip(self._next)
        self._acknowledged(self)
        return True


def _read(
    batches: Sequence[bytes], start: int, aborted: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, Frames]], int]:
    """The messages from an offset on, each with the offset behind it; and the offset behind all of them."""
    transactions = AbortedTransactions(aborted)
    found: list[tuple[int, Frames]] = []
    octets = 0
    stop = start
    for batch in batches:
        header = read_header(batch)
        stop = header.next_offset
        if (header.is_control or header.is_transactional) and transactions.skips(header, batch):
            continue
        columns = decode_batch(batch, shared=True)
        messages = messages_of_records(columns.keys, columns.values, columns.headers)
        for offset, frames, headers in zip(columns.offsets, messages, columns.headers, strict=True):
            if offset >= start and not any(name == COPIED for name, _ in headers):
                found.append((offset + 1, frames))
                octets += sum(map(len, frames))
    return found, stop


def _with_delimiter(frames: Frames) -> Frames:
    """A message as it has to be sent, so that nothing of it is taken for the delimiter."""
    return (DELIMITER, *frames) if has_delimiter(frames) else frames
