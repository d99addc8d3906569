"""A site whose topics come here. Hub side."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from secrets import randbits

from kafka.errors import KafkaError

from dafka.broker.interface.broker import BrokerInterface, TopicPartition
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.checkpoints import Checkpoints
from dafka.overlay.bridge.limits import SETTINGS_RETRY_SECONDS
from dafka.overlay.bridge.refusals import Refusals
from dafka.overlay.bridge.sharing import site_names
from dafka.overlay.bridge.sharing.incoming import Incoming, Step, Tell, Write
from dafka.overlay.bridge.sharing.link_messages import LINKS, to_value
from dafka.overlay.bridge.sharing.settings import Remembered, Settings, allow, take_over
from dafka.overlay.bridge.writing import Writing
from dafka.overlay.node.endpoint import Endpoint

log = bounded_logger(__name__)


class Source:
    """Writes what comes along the link."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        endpoint: Endpoint,
        me: str,
        site: str,
        checkpoints: Checkpoints,
        discarded: Counter[str],
    ) -> None:
        self.link = Incoming(me, site, self._positions, lambda: randbits(63))
        self.octets = 0
        self._me = me
        self._endpoint = endpoint
        self._checkpoints = checkpoints
        self._remembered = Remembered()
        self._writing = Writing(broker, Refusals(discarded, self._allow), self._remembered.known)
        self._broker = broker
        self._queue: deque[Write] = deque()
        self._unset: dict[str, Settings] = {}  # settings that are to be taken over
        self._unset_until = 0.0  # the broker did not take the last ones
        self._more = Changes()
        self._thread = hub.keep(self._run)

    def carry(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, Tell):
                self._endpoint.publish_to(step.peer, LINKS, to_value(step.message))
            else:
                self._queue.append(step)
                self._more.tell()

    def set_up(self, topics: Mapping[str, Settings]) -> None:
        """The settings of the other site's topics."""
        for topic, settings in topics.items():
            name = site_names.name_here(self.link.site, topic)
            if not site_names.may_take(self._me, self.link.site, topic):
                continue
            if self._remembered.put(name, settings):
                self._unset[name] = settings
            else:
                log.warning("site %s: too many settings of topics, some are not taken", self.link.site)
        self._more.tell()

    def close(self) -> None:
        self._thread.kill()

    def _positions(self) -> dict[TopicPartition, int]:
        start = len(self.link.site) + 1
        prefix = site_names.name_here(self.link.site, "")
        positions = self._checkpoints.positions.items()
        return {
            (topic[start:], number): offset
            for (topic, number), offset in positions
            if topic.startswith(prefix)
        }

    def _run(self) -> None:
        while True:
            while not (self._queue or self._unset):
                self._more.wait()
            left = self._unset_until - time.monotonic()
            if self._unset and left <= 0:
                self._set_up(*self._unset.popitem())
            elif not self._queue:
                self._more.wait(left)
            some = [self._queue.popleft() for _ in range(len(self._queue))]
            self._write([one for one in some if self.link.is_current(one.ticket)])

    def _set_up(self, topic: str, settings: Settings) -> None:
        """A topic that is not there yet is made with its settings, see :class:`Writing`."""
        try:
            if take_over(self._broker, topic, settings):
                log.info("topic %s has the settings of its source now", topic)
        except KafkaError as error:
            log.error("%s", error)
            if error.retriable or isinstance(error, BrokerStoppedError):
                self._unset.setdefault(topic, settings)
                self._unset_until = time.monotonic() + SETTINGS_RETRY_SECONDS

    def _allow(self, topic: str, octets: int) -> bool:
        """A record that is older than a lower bound of its topic is taken all the same."""
        try:
            return allow(self._broker, topic, octets)
        except KafkaError as error:
            log.error("topic %s: %s", topic, error)
            return False

    def _write(self, some: Sequence[Write]) -> None:
        batches: dict[TopicPartition, list[bytes]] = {}
        partitions: dict[str, int] = {}
        ends: dict[TopicPartition, int] = {}
        for one in some:
            topic, partition, count, end, octets = one.content
            if not site_names.may_take(self._me, self.link.site, topic):
                continue
            name = site_names.name_here(self.link.site, topic)
            batches.setdefault((name, partition), []).extend(octets)
            partitions[name] = max(count, partition + 1)
            ends[name, partition] = end
            self.octets += one.content.octets
        self._writing.write(batches, partitions)
        for key, end in ends.items():
            self._checkpoints.set(key, end)
        if some:
            self.carry(self.link.written(some[-1].ticket))
