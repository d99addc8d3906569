"""A site that gets topics of this one. Hub side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import gevent

from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import in_pieces
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.limits import FETCH_SECONDS, SETTINGS_AGAIN_SECONDS, SETTINGS_TOPICS
from dafka.overlay.bridge.reading import Reading
from dafka.overlay.bridge.sharing.copies import copies
from dafka.overlay.bridge.sharing.link_messages import LINKS, Batches, OfLink, TopicSettings, to_value
from dafka.overlay.bridge.sharing.outgoing import Outgoing
from dafka.overlay.bridge.sharing.settings import Settings
from dafka.overlay.channels.messages import FromProducer
from dafka.overlay.node.endpoint import Endpoint
from dafka.protocol.batch import BatchError

log = bounded_logger(__name__)


class Sink:
    """Reads topics and sends them along the link."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        endpoint: Endpoint,
        peer: bytes,
        link: Outgoing,
        partitions: Callable[[], Mapping[str, int]],
    ) -> None:
        self.link = link
        self._endpoint = endpoint
        self._peer = peer
        self._partitions = partitions
        self._reading = Reading(broker)
        self._room = Changes()
        self._told: dict[str, Settings] = {}
        self._told_all = 0.0
        self._thread = hub.keep(self._run)

    def tell(self, messages: Iterable[FromProducer]) -> None:
        """Send messages of the channel; room for more may have come about."""
        for message in messages:
            self._endpoint.publish_to(self._peer, LINKS, to_value(OfLink(self.link.link, message)))
        if self.link.has_room:
            self._room.tell()

    def tell_settings(self, now: float, settings: Mapping[str, Settings]) -> None:
        """Tell those that are different from what was told before."""
        if now - self._told_all >= SETTINGS_AGAIN_SECONDS:
            self._told, self._told_all = {}, now
        news = {topic: own for topic, own in settings.items() if self._told.get(topic) != own}
        self._told |= news
        for some in in_pieces(news, SETTINGS_TOPICS):
            told = TopicSettings(self.link.link, {topic: news[topic] for topic in some})
            self._endpoint.publish_to(self._peer, LINKS, to_value(told))

    def close(self) -> None:
        self._thread.kill(block=False)

    def _run(self) -> None:
        while True:
            while not self.link.has_room:
                self._room.wait()
            for read in self._reading.read(dict(self.link.positions)):
                try:
                    found, end = BATCHES.run(copies, read.batches, read.position, read.aborted)
                except BatchError as error:  # nothing is passed over: somebody must look at it
                    log.error("%s-%d cannot be shared from offset %d on: %s", *read.key, read.position, error)
                    gevent.sleep(FETCH_SECONDS)
                    continue
                topic, partition = read.key
                count = self._partitions().get(topic, partition + 1)
                self.tell(self.link.send(Batches(topic, partition, count, end, tuple(found))))
