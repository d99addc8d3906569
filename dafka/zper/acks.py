"""ZPAck: tells subscribers of a topic which messages were flushed, and where they are.

Three frames for each message, after its commit: the topic as its writers name it, the first frame of the
message, and its position in 8 octets. A subscriber that does not read loses some; nobody waits for it.
"""

from __future__ import annotations

from itertools import accumulate

from kafka.errors import KafkaError

from dafka.broker.interface.errors import BrokerStoppedError
from dafka.hub.turns import Pace, in_pieces
from dafka.log import LogError
from dafka.log.repeating import bounded_logger
from dafka.sockets.publisher import Publisher
from dafka.zper.batches import Batch
from dafka.zper.flushing import PartitionFlushes

log = bounded_logger(__name__)

AT_ONCE = 500  # messages told before others have their turn


class Acks:
    """Hears of each flush; ``publisher`` is None where nobody may subscribe. Hub side."""

    def __init__(self, publisher: Publisher | None) -> None:
        self._publisher = publisher
        self.told = 0

    def written(self, partition: PartitionFlushes, batch: Batch, base_offset: int) -> None:
        """A batch was committed: its positions are known from now on."""
        positions = partition.positions
        if positions is None:
            return
        try:
            position = positions.advance(base_offset, batch.sizes)
        except BrokerStoppedError:
            raise
        except (KafkaError, LogError) as error:  # the messages are safe, and measured when they are read
            log.error("positions of %s are not known yet: %s", partition.name, error)
            return
        if position is not None:
            self._publish(partition.name, batch, position)

    def _publish(self, topic: str, batch: Batch, position: int) -> None:
        first = topic.encode()
        if self._publisher is None or not self._publisher.has_subscribers(first):
            return
        pace = Pace()
        places = accumulate(batch.sizes[:-1], initial=position)
        for some in in_pieces(zip(batch.messages, places, strict=True), AT_ONCE):
            self._publisher.send_many(
                [(first, message[0], place.to_bytes(8, "big")) for message, place in some]
            )
            self.told += len(some)
            pace.rest()
