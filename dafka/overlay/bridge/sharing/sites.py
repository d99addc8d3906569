"""Sharing topics with other sites: the links of one bridge, in both directions. Hub side."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from secrets import randbits

import gevent
from kafka.errors import KafkaError

from dafka.broker.interface.broker import BrokerInterface, TopicPartition
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import in_pieces
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.checkpoints import Checkpoints
from dafka.overlay.bridge.limits import (
    FETCH_SECONDS,
    MOST_SITES,
    SETTINGS_AGAIN_SECONDS,
    SETTINGS_SECONDS,
    SETTINGS_TOPICS,
)
from dafka.overlay.bridge.reading import Reading, topics_of
from dafka.overlay.bridge.sharing import site_names
from dafka.overlay.bridge.sharing.copies import copies
from dafka.overlay.bridge.sharing.incoming import FROM_SOURCE, Incoming, Step, Tell, Write
from dafka.overlay.bridge.sharing.link_messages import (
    LINKS,
    Attach,
    Batches,
    Hello,
    OfLink,
    TopicSettings,
    from_value,
    to_value,
)
from dafka.overlay.bridge.sharing.outgoing import Outgoing
from dafka.overlay.bridge.sharing.settings import Remembered, Settings, settings_of, take_over
from dafka.overlay.bridge.writing import Writing
from dafka.overlay.channels.messages import CumulativeAck, FromConsumer, FromProducer, Nack, RetransmitFailed
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.node.types import Message
from dafka.protocol.batch import BatchError
from dafka.protocol.errors import MalformedMessage

log = bounded_logger(__name__)


class Sites:
    """The topics that match ``share`` go to all other sites, and with ``take`` theirs come here."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        endpoint: Endpoint,
        site: str,
        share: Sequence[str],
        take: bool,
        checkpoints: Checkpoints,
        discarded: Counter[str],
    ) -> None:
        self.site = site_names.check_site(site)
        self._hub = hub
        self._broker = broker
        self._endpoint = endpoint
        self._patterns = share
        self._take = take
        self._checkpoints = checkpoints
        self._discarded = discarded
        self._topics: dict[str, int] = {}  # that are shared, with their partitions
        self._known: set[str] = {topic.partition(".")[0] for topic, _ in checkpoints.positions}
        self._incoming: dict[str, _Source] = {}
        self._outgoing: dict[bytes, _Sink] = {}
        self._settings_due = 0.0

    @property
    def names(self) -> list[str]:
        """The other sites that are known."""
        return sorted(self._known)

    def metrics(self) -> dict[str, int]:
        """By the names of :mod:`dafka.mesh.metrics`."""
        return {
            "bridge_links_in": sum(one.link.is_attached for one in self._incoming.values()),
            "bridge_links_out": sum(one.link.is_attached for one in self._outgoing.values()),
            "bridge_bytes_in": sum(one.octets for one in self._incoming.values()),
            "bridge_unacknowledged_bytes": sum(one.link.in_flight for one in self._outgoing.values()),
        }

    def hear(self, message: Message) -> None:
        """A message of another bridge."""
        try:
            heard = from_value(message.value)
        except MalformedMessage as error:
            self._discarded[error.cause] += 1
            return
        match heard:
            case Hello(site):
                self._greeted(site, bytes(message.sender))
            case Attach():
                self._attach(bytes(message.sender), heard)
            case OfLink(number, content) if isinstance(content, FROM_SOURCE):
                for source in self._incoming.values():
                    if source.link.peer == bytes(message.sender):
                        source.carry(source.link.receive(time.monotonic(), source.link.peer, number, content))
            case TopicSettings(number, topics):
                for source in self._incoming.values():
                    if source.link.is_from(bytes(message.sender), number):
                        source.set_up(topics)
            case OfLink(number, CumulativeAck() | Nack() as content):
                self._answered(bytes(message.sender), number, content)

    def tick(self) -> None:
        """To be called ten times a second."""
        now = time.monotonic()
        for source in list(self._incoming.values()):
            source.carry(source.link.tick(now))
        for peer, sink in list(self._outgoing.items()):
            sink.tell(sink.link.tick())
            if sink.link.ended:
                self._end(peer)

    def look(self) -> None:
        """To be called every second or so: topics may have come or gone."""
        if not self._patterns:
            return
        try:
            self._topics = topics_of(self._broker, self._shared)
        except KafkaError as error:
            log.error("looking for topics: %s", error)
            return
        for sink in self._outgoing.values():
            sink.link.share(self._topics)
        now = time.monotonic()
        if self._outgoing and now >= self._settings_due:
            self._settings_due = now + SETTINGS_SECONDS
            self._look_at_settings(now)

    def close(self) -> None:
        """End all links. What was not written by others will be asked for again."""
        for peer in list(self._outgoing):
            self._end(peer)
        for source in self._incoming.values():
            source.close()

    def _look_at_settings(self, now: float) -> None:
        try:
            found: dict[str, Settings] = {}
            for some in in_pieces(self._topics, SETTINGS_TOPICS):
                found |= settings_of(self._broker, some)
        except KafkaError as error:
            log.error("looking at the settings of topics: %s", error)
            return
        for sink in self._outgoing.values():
            sink.tell_settings(now, found)

    def _shared(self, topics: Iterable[str]) -> list[str]:
        return site_names.shared(topics, self._patterns, self._known)

    # -- topics of others ---------------------------------------------------------------------------

    def _greeted(self, site: str, peer: bytes) -> None:
        if peer == bytes(self._endpoint.id):
            return
        if site == self.site:
            log.error("another bridge says that it is of site %s: each site needs a name of its own", site)
            return
        if site not in self._known:
            if len(self._known) >= MOST_SITES:
                self._discarded["sites"] += 1
                return
            try:
                self._known.add(site_names.check_site(site))
            except ValueError:
                self._discarded["site"] += 1
                return
            self.look()
        if not self._take:
            return
        source = self._incoming.get(site)
        if source is None:
            source = self._incoming[site] = _Source(
                self._hub, self._broker, self._endpoint, self.site, site, self._checkpoints
            )
        reachable = source.link.peer in (None, peer) or self._is_reachable(source.link.peer)
        source.carry(source.link.greeted(time.monotonic(), peer, reachable))

    def _is_reachable(self, peer: bytes | None) -> bool:
        return any(one.id == peer and one.status != "connecting" for one in self._endpoint.peers())

    # -- topics of this site ------------------------------------------------------------------------

    def _attach(self, peer: bytes, attach: Attach) -> None:
        if not self._patterns or attach.site == self.site:
            return
        sink = self._outgoing.get(peer)
        if sink is None or sink.link.link != attach.link:
            if sink is None and len(self._outgoing) >= MOST_SITES:
                self._discarded["sites"] += 1
                return
            self._end(peer)
            sink = self._outgoing[peer] = _Sink(
                self._hub, self._broker, self._endpoint, peer, Outgoing(attach), self._partitions
            )
            sink.link.share(self._topics)
            self._settings_due = 0.0
        sink.tell(sink.link.repeat())

    def _answered(self, peer: bytes, link: int, message: FromConsumer) -> None:
        sink = self._outgoing.get(peer)
        if sink is not None and sink.link.link == link:
            sink.tell(sink.link.receive(message))
            return
        # A link of an earlier life of this bridge: its events are gone, and are to be asked for anew.
        last = message.sequence + 1 if isinstance(message, CumulativeAck) else message.sequences[0]
        gone = OfLink(link, RetransmitFailed(last))
        self._endpoint.publish_to(peer, LINKS, to_value(gone))

    def _partitions(self) -> Mapping[str, int]:
        return self._topics

    def _end(self, peer: bytes) -> None:
        sink = self._outgoing.pop(peer, None)
        if sink is not None:
            sink.close()


class _Sink:
    """A site that gets topics of this one: reads them and sends them along the link."""

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


class _Source:
    """A site whose topics come here: writes what comes along the link."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        endpoint: Endpoint,
        me: str,
        site: str,
        checkpoints: Checkpoints,
    ) -> None:
        self.link = Incoming(me, site, self._positions, lambda: randbits(63))
        self.octets = 0
        self._me = me
        self._endpoint = endpoint
        self._checkpoints = checkpoints
        self._remembered = Remembered()
        self._writing = Writing(broker, self._remembered.known)
        self._broker = broker
        self._queue: deque[Write] = deque()
        self._unset: dict[str, Settings] = {}  # settings that are to be taken over
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
            if self._unset:
                self._set_up(*self._unset.popitem())
            some = [self._queue.popleft() for _ in range(len(self._queue))]
            self._write([one for one in some if self.link.is_current(one.ticket)])

    def _set_up(self, topic: str, settings: Settings) -> None:
        """A topic that is not there yet is made with its settings, see :class:`Writing`."""
        try:
            if take_over(self._broker, topic, settings):
                log.info("topic %s has the settings of its source now", topic)
        except KafkaError as error:
            log.error("%s", error)

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
