"""Sharing topics with other sites: the links of one bridge, in both directions. Hub side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kafka.errors import KafkaError

from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.hub import Hub
from dafka.hub.turns import in_pieces
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.checkpoints import Checkpoints
from dafka.overlay.bridge.limits import (
    MOST_SITES,
    SETTINGS_SECONDS,
    SETTINGS_TOPICS,
)
from dafka.overlay.bridge.reading import topics_of
from dafka.overlay.bridge.sharing import site_names
from dafka.overlay.bridge.sharing.incoming import FROM_SOURCE
from dafka.overlay.bridge.sharing.link_messages import (
    LINKS,
    Attach,
    Hello,
    OfLink,
    TopicSettings,
    from_value,
    to_value,
)
from dafka.overlay.bridge.sharing.outgoing import Outgoing
from dafka.overlay.bridge.sharing.settings import Settings, settings_of
from dafka.overlay.bridge.sharing.sink import Sink
from dafka.overlay.bridge.sharing.source import Source
from dafka.overlay.channels.messages import CumulativeAck, FromConsumer, Nack, RetransmitFailed
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.node.types import Message
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
        self._incoming: dict[str, Source] = {}
        self._outgoing: dict[bytes, Sink] = {}
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
        """End all links. Events that others have not written will be asked for again."""
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
            source = self._incoming[site] = Source(
                self._hub, self._broker, self._endpoint, self.site, site, self._checkpoints, self._discarded
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
            sink = self._outgoing[peer] = Sink(
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
