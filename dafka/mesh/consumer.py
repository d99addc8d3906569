"""Consumer: the records of its topics from every partition, each partition in order and without gaps.

The role delivers runs of records in the hub; they wait here, undecoded, until the user's thread takes them
and turns them into :class:`dafka.Record`. Their number and size is bounded: the room that is left is the
credit with which the role fetches, and what is published beyond it stays in the lane of this consumer
(:mod:`dafka.mesh.lane`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import length_hint
from typing import Any

from dafka.hub.completion import run_to_completion
from dafka.hub.hub import get_hub
from dafka.hub.waits import bounded_wait
from dafka.mesh import metrics_port
from dafka.mesh.address import TowerLike, check_address, check_topic
from dafka.mesh.consumer_node import ConsumerNode
from dafka.mesh.endpoint import node_options
from dafka.mesh.inbox import AllRuns, NewestRuns
from dafka.mesh.pieces import NOTHING, next_piece
from dafka.mesh.position_file import PositionFile
from dafka.mesh.record import Record
from dafka.protocol.errors import DafkaError
from dafka.roles.consumer import ConsumerRole
from dafka.roles.limits import LAST_SEQUENCE
from dafka.roles.outputs import Gap


class ConsumerClosedError(DafkaError):
    """The consumer has been closed."""


class NoPositionFileError(DafkaError, ValueError):
    """A consumer without a file of positions was told to commit."""


class Consumer:
    """A consumer of the mesh (46/DAFKA). For one thread at a time; the handler of a signal leaves it alone.

    ``topics``: names to subscribe to at once. ``offset_reset``: where a partition starts that no start is
    given for, ``"earliest"`` at the first record that exists, ``"latest"`` at the first one published after
    subscribing. ``start``: sequences to start at, by partition (a producer's address). ``tower``,
    ``address`` and further keywords as for :class:`dafka.Producer`.

    ``positions``: a file in which :meth:`commit` keeps how far this consumer has got; one with the same file
    goes on there. Only one consumer has a file at a time. ``start`` goes before it; a partition that it does
    not name, because nothing of it was handed out yet, begins by ``offset_reset``.

    ``latest_only``: of each partition only the newest record is handed out, as ZMQ_CONFLATE has it: a new one
    takes the place of the one that nobody has taken yet. A slow consumer misses records and is never behind.

    Iterating blocks until the next record comes and ends when the consumer is closed;
    :meth:`poll` has a timeout. Raises :class:`InvalidTopicError`, :class:`InvalidAddressError`, ValueError,
    :class:`PositionFileError`.
    """

    def __init__(
        self,
        topics: Iterable[str | bytes] = (),
        *,
        tower: TowerLike = None,
        offset_reset: str = "latest",
        start: Mapping[str, int] | None = None,
        positions: str | os.PathLike[str] | None = None,
        latest_only: bool = False,
        address: str | None = None,
        **mesh: Any,
    ) -> None:
        if isinstance(topics, (str, bytes)):
            raise TypeError(f"topics is a list of names, not the single name {topics!r}")
        if offset_reset not in ("earliest", "latest"):
            raise ValueError(f"offset_reset is 'earliest' or 'latest', not {offset_reset!r}")
        names = [check_topic(topic) for topic in topics]
        starts = {
            check_address(partition): _check_sequence(number) for partition, number in (start or {}).items()
        }
        options = node_options(self, tower, mesh)
        octets = options.own_address(address) if address is not None else options.new_address()
        self._file = None if positions is None else PositionFile(positions)
        self._positions = {} if self._file is None else dict(self._file.positions)
        kept = {check_address(partition): sequence for partition, sequence in self._positions.items()}
        self._latest_only = latest_only
        self._tower = tower  # one that nobody else has runs as long as this node
        self.address = octets.decode()
        # Ctrl-C may come wherever a call ends or a round of a loop begins: assignments that stand together
        # happen all or not at all.
        self._piece = NOTHING  # whose records are handed out
        self._kept: list[Record] = []  # of a poll that has not returned
        self._hub = get_hub()
        role = ConsumerRole(octets, offset_reset=offset_reset, offsets=kept | starts)
        try:
            inbox = self._inbox = NewestRuns() if latest_only else AllRuns()
            self._node = self._hub.run(ConsumerNode, self._hub, options, role, inbox)
        except BaseException:
            self._leave_file()
            raise
        for name in names:
            self._hub.run(self._node.subscribe, name)

    def subscribe(self, topic: str | bytes) -> None:
        """Consume ``topic`` too."""
        self._check_open()
        self._hub.run(self._node.subscribe, check_topic(topic))

    def unsubscribe(self, topic: str | bytes) -> None:
        """Stop consuming ``topic``; its records that have arrived are still handed out."""
        self._check_open()
        self._hub.run(self._node.unsubscribe, check_topic(topic))

    def __iter__(self) -> Iterator[Record]:
        while True:  # records left by an earlier iteration, next() or poll() come first
            while self._kept:
                record = self._kept[0]
                del self._kept[0]
                yield record
            yield from self._piece.records
            if not self._more(None):
                return

    def __next__(self) -> Record:
        while True:
            if self._kept:
                record = self._kept[0]
                del self._kept[0]
                return record
            for record in self._piece.records:
                return record
            if not self._more(None):
                raise StopIteration

    def poll(self, timeout: float = 0.0, max_records: int = 500) -> list[Record]:
        """The records at hand, at most ``max_records``; waits up to ``timeout`` seconds for the first one
        (infinity: for ever). Raises ValueError for a ``timeout`` of NaN or another ``max_records``."""
        self._check_open()
        if not isinstance(max_records, int) or max_records < 1:
            raise ValueError(f"max_records is a number of records, at least 1, not {max_records!r:.100}")
        deadline = time.monotonic() + bounded_wait(timeout)
        kept = self._kept
        while len(kept) < max_records:
            kept.extend(islice(self._piece.records, max_records - len(kept)))
            if len(kept) < max_records and not self._more(0.0 if kept else deadline - time.monotonic()):
                break
        records, rest = (kept, []) if len(kept) <= max_records else (kept[:max_records], kept[max_records:])
        self._kept = rest
        return records

    def commit(self) -> None:
        """Keep in the file ``positions`` that every record handed out so far is done with.

        Of a record batch that is handed out in part nothing is: its records come again. Returns when it is on
        disk; raises OSError, and :class:`NoPositionFileError` for a consumer without ``positions``.
        """
        self._check_open()
        if self._file is None:
            raise NoPositionFileError(f"the consumer {self.address} has no file to keep its positions in")
        positions = self._handed_out()
        if positions != self._file.positions:
            self._file.write(positions)

    @property
    def gaps(self) -> list[Gap]:
        """Ranges that no longer existed anywhere when this consumer came to them, the newest last."""
        return list(self._node.gaps)

    def metrics(self) -> dict[str, Any]:
        """Counters and gauges of this consumer and of its endpoint, by the names in
        :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def announce_metrics(self, port: int) -> None:
        """Tell who looks at the mesh that these are served at this port of the consumer's host, by HTTP."""
        self._hub.run(metrics_port.announce, self._node, port)

    def close(self) -> None:
        """Leave the mesh. Iterations end; records not yet taken are dropped. Closing twice is allowed.

        It commits nothing: only the program knows what it is done with.
        """
        if not self._node.closed:
            self._hub.run(run_to_completion, self._hub, self._node.close)
            self._piece, self._kept = NOTHING, []
        self._leave_file()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Consumer {self.address}>"

    def _leave_file(self) -> None:
        if self._file is not None:
            self._file.close()

    def _check_open(self) -> None:
        self._hub.check()
        if self._node.closed:
            raise ConsumerClosedError(f"the consumer {self.address} is closed")

    def _more(self, timeout: float | None) -> bool:
        """Begin the next piece; False when none came in time or none will come."""
        node = self._node
        deadline = None if timeout is None else time.monotonic() + timeout
        while not node.closed:
            if self._begin_piece():
                return True
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return node.look() and self._begin_piece()
            self._hub.check()
            node.wait(left)
        return False

    def _begin_piece(self) -> bool:
        """Hand out the next piece, if there is one, unless records of this one are left."""
        piece, run = self._piece, self._inbox.current
        if length_hint(piece.left):
            return True
        self._positions[piece.partition] = piece.end
        place = piece.behind if piece.run is run else 0
        if run is None or place == len(run.contents):
            run, place = self._node.take(), 0
        if run is None:
            self._piece = NOTHING
            return False
        self._piece = next_piece(run, place, newest=self._latest_only)
        return True

    def _handed_out(self) -> dict[str, int]:
        """Where to go on in each partition, of the records that a poll has not returned at the first."""
        piece = self._piece
        positions = {**self._positions, piece.partition: piece.position}
        for record in reversed(self._kept):
            positions[record.partition] = record.sequence
        positions.pop(NOTHING.partition, None)
        return positions


def _check_sequence(number: int) -> int:
    if not isinstance(number, int) or not 0 <= number < LAST_SEQUENCE:
        raise ValueError(f"a start sequence is an int from 0 to {LAST_SEQUENCE - 1}, not {number!r}")
    return number
