"""The producer: numbers records, publishes them, and keeps them until enough stores have them.

"The first record of each partition SHALL have the offset 0. Each following record's offset SHALL be the
previous record's offset incremented by 1." "A producer MUST NOT delete send records before receiving at
least one ACK command." "After a producer published its first record it SHALL send the HEAD command at
regular a interval." "Upon receiving a FETCH command a producer or store SHALL check if it has stored the
requested record(s)." "After receiving a GET-HEADS command a producer SHALL send a DIRECT-HEAD command."

Retained records are a deque of runs. An ACK stands for everything up to its sequence; what the least of the
``min_stores`` furthest stores has acknowledged is let go. libdafka's ACKs do not name their store: all of
them together count as one anonymous store. A FETCH below what is retained is left to the stores, which have
acknowledged it.
"""

from __future__ import annotations

from collections import deque

from dafka.protocol.commands import Ack, Command, DirectHead, Fetch, GetHeads, Head
from dafka.protocol.runs import Run
from dafka.roles.limits import ANSWER_BYTES, ANSWER_RECORDS, PEERS
from dafka.roles.outputs import Output, Subscribe


class ProducerRole:
    """One partition, named by ``address``. ``head_interval`` in seconds."""

    def __init__(
        self, topic: bytes, address: bytes, *, min_stores: int = 1, head_interval: float = 1.0
    ) -> None:
        self.topic = topic
        self.address = address
        self.next_sequence = 0
        self.first_retained = 0
        self.retained_bytes = 0
        self._min_stores = min_stores
        self._head_interval = head_interval
        self._next_head = 0.0
        self._acknowledged: dict[bytes, int] = {}  # store -> first sequence it has not acknowledged
        self._runs: deque[tuple[int, list[bytes]]] = deque()

    def start(self) -> list[Output]:
        """The subscriptions of a producer."""
        return [Subscribe(b"K" + self.address), Subscribe(b"F" + self.address), Subscribe(b"G" + self.topic)]

    @property
    def first_unacknowledged(self) -> int:
        """The first sequence that fewer than ``min_stores`` stores have acknowledged."""
        if self._min_stores == 0:
            return self.next_sequence
        if len(self._acknowledged) < self._min_stores:
            return 0
        return sorted(self._acknowledged.values(), reverse=True)[self._min_stores - 1]

    @property
    def unacknowledged(self) -> int:
        """How many published records fewer than ``min_stores`` stores have acknowledged."""
        return self.next_sequence - self.first_unacknowledged

    def publish(self, now: float, contents: list[bytes]) -> Run:
        """Number and retain ``contents``; the run to publish."""
        first = self.next_sequence
        self.next_sequence += len(contents)
        self._runs.append((first, contents))
        self.retained_bytes += sum(map(len, contents))
        if first == 0:
            self._next_head = now + self._head_interval
        return Run(None, self.address, self.topic, first, contents)

    def forget(self, size: int) -> None:
        """Let go of the oldest runs until at most ``size`` octets are retained (only with min_stores 0)."""
        while self.retained_bytes > size and self._runs:
            self._drop_run()

    def receive(self, now: float, command: Command) -> list[Output]:
        """An ACK, FETCH or GET-HEADS; whatever else arrives is none of a producer's business."""
        if isinstance(command, Ack):
            if command.partition == self.address and command.topic == self.topic:
                self._acknowledge(command)
        elif isinstance(command, Fetch):
            if command.partition == self.address and command.topic == self.topic:
                return self._answer(command)
        elif isinstance(command, GetHeads) and command.topic == self.topic and self.next_sequence:
            return [DirectHead(command.address, self.address, self.topic, self.next_sequence - 1)]
        return []

    def tick(self, now: float) -> list[Output]:
        """The HEAD, when it is time for one."""
        if not self.next_sequence or now < self._next_head:
            return []
        self._next_head = now + self._head_interval
        return [Head(self.address, self.topic, self.next_sequence - 1)]

    def _acknowledge(self, ack: Ack) -> None:
        if ack.sequence >= self.next_sequence:
            return  # of a partition that this producer has not written
        known = self._acknowledged.get(ack.store, 0)
        if ack.sequence < known or (ack.store not in self._acknowledged and len(self._acknowledged) >= PEERS):
            return
        self._acknowledged[ack.store] = ack.sequence + 1
        if self._min_stores:
            done = self.first_unacknowledged
            while self._runs and self._runs[0][0] + len(self._runs[0][1]) <= done:
                self._drop_run()

    def _drop_run(self) -> None:
        first, contents = self._runs.popleft()
        self.first_retained = first + len(contents)
        self.retained_bytes -= sum(map(len, contents))

    def _answer(self, fetch: Fetch) -> list[Output]:
        start, end = fetch.sequence, min(fetch.sequence + fetch.count, self.next_sequence)
        if start < self.first_retained or start >= end:
            return []
        outputs: list[Output] = []
        for first, contents in self._runs:
            if first >= end:
                break
            if first + len(contents) > start:
                piece = contents[max(0, start - first) : end - first]
                outputs += self._cut(fetch.address, max(start, first), piece)
        return outputs

    def _cut(self, recipient: bytes, first: int, contents: list[bytes]) -> list[Output]:
        """A piece of a retained run as runs that are not too large to be sent at one go."""
        runs: list[Output] = []
        begin = size = 0
        for position, content in enumerate(contents):
            full = position - begin >= ANSWER_RECORDS or size + len(content) > ANSWER_BYTES
            if full and position > begin:
                runs.append(Run(recipient, self.address, self.topic, first + begin, contents[begin:position]))
                begin, size = position, 0
            size += len(content)
        runs.append(Run(recipient, self.address, self.topic, first + begin, contents[begin:]))
        return runs
