"""The messages between bridges at different sites, as values of the overlay.

Each bridge greets all others. One that wants the topics of a site asks its bridge for a *link*, with the
positions that it has. The link is a channel (:mod:`dafka.overlay.channels`) with that one receiver; its
events are record batches.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import NamedTuple

from dafka.overlay.bridge.limits import MOST_SETTINGS, SETTING_CHARACTERS
from dafka.overlay.channels import messages as channel
from dafka.overlay.channels.messages import FromConsumer, FromProducer
from dafka.overlay.values import Count, Table, Value
from dafka.protocol.errors import MalformedMessage

PREFIX = "dafka/bridge/"
SITES = PREFIX + "sites"
"""Where greetings are published."""

LINKS = PREFIX + "links"
"""What is sent to one bridge alone."""

VERSION = Count(1)

TopicPartition = tuple[str, int]


class Hello(NamedTuple):
    """I am the bridge of this site."""

    site: str


class Attach(NamedTuple):
    """Begin a link to my site. ``positions``: the next offsets that I want; of other partitions all."""

    link: int
    site: str
    positions: Mapping[TopicPartition, int]


class Batches(NamedTuple):
    """The content of an event: record batches of a partition, and the offset behind them.

    ``partitions``: how many the topic has.
    """

    topic: str
    partition: int
    partitions: int
    next: int
    batches: tuple[bytes, ...]

    @property
    def octets(self) -> int:
        return sum(map(len, self.batches))


class OfLink(NamedTuple):
    """A message of a link's channel, of either side."""

    link: int
    message: FromProducer | FromConsumer


class TopicSettings(NamedTuple):
    """Beside a link's channel: settings of topics that are shared, all that go along with each."""

    link: int
    topics: Mapping[str, Mapping[str, str]]


LinkMessage = Hello | Attach | OfLink | TopicSettings


def to_value(message: LinkMessage) -> Value:
    """The value that stands for a message."""
    match message:
        case Hello(site):
            return "hello", VERSION, site
        case Attach(link, site, positions):
            topics: dict[str, list[tuple[Count, Count]]] = {}
            for (topic, partition), offset in positions.items():
                topics.setdefault(topic, []).append((Count(partition), Count(offset)))
            return "attach", Count(link), site, Table([(name, tuple(of)) for name, of in topics.items()])
        case OfLink(link, channel.Handshake(offset, interval)):
            return "handshake", Count(link), Count(offset), Count(interval)
        case OfLink(link, channel.Event(sequence, content)):
            head = content.topic, Count(content.partition), Count(content.partitions), Count(content.next)
            # Octets that are not text would be far slower to read.
            texts = tuple([b64encode(one).decode() for one in content.batches])
            return "event", Count(link), Count(sequence), *head, texts
        case OfLink(link, channel.RetransmitFailed(sequence)):
            return "retransmit_failed", Count(link), Count(sequence)
        case OfLink(link, channel.Heartbeat(sequence)):
            return "heartbeat", Count(link), Count(sequence)
        case OfLink(link, channel.CumulativeAck(sequence)):
            return "cumulative_ack", Count(link), Count(sequence)
        case OfLink(link, channel.Nack(sequences)):
            return "nack", Count(link), tuple(map(Count, sequences))
        case TopicSettings(link, settings):
            tables = [(topic, Table(list(own.items()))) for topic, own in settings.items()]
            return "settings", Count(link), Table(tables)
    raise AssertionError(message)


def from_value(value: Value) -> LinkMessage:
    """The message that a value stands for. Raises :class:`MalformedMessage`."""
    match value:
        case ("hello", 1, str(site)):
            return Hello(site)
        case ("attach", Count(link), str(site), Table() as topics):
            return Attach(link, site, _positions(topics))
        case ("handshake", Count(link), Count(offset), Count(interval)):
            return OfLink(link, channel.Handshake(int(offset), int(interval)))
        case ("event", Count(link), Count(sequence), str(), Count(), Count(), Count(), tuple()):
            return OfLink(link, channel.Event(int(sequence), _batches(*value[3:])))  # type: ignore[arg-type]
        case ("retransmit_failed", Count(link), Count(sequence)):
            return OfLink(link, channel.RetransmitFailed(int(sequence)))
        case ("heartbeat", Count(link), Count(sequence)):
            return OfLink(link, channel.Heartbeat(int(sequence)))
        case ("cumulative_ack", Count(link), Count(sequence)):
            return OfLink(link, channel.CumulativeAck(int(sequence)))
        case ("nack", Count(link), (Count(), *_) as sequences) if all(
            type(one) is Count for one in sequences
        ):
            return OfLink(link, channel.Nack(tuple([int(one) for one in sequences])))  # type: ignore[arg-type]
        case ("settings", Count(link), Table() as settings):
            return TopicSettings(int(link), {_text(topic): _settings(own) for topic, own in settings.entries})
    raise MalformedMessage("bridge-message", f"{value!s:.100}")


def _text(value: Value) -> str:
    if type(value) is not str or len(value) > SETTING_CHARACTERS:
        raise MalformedMessage("bridge-message", f"{value!s:.100} where a name or a setting has to be")
    return value


def _settings(value: Value) -> dict[str, str]:
    if not isinstance(value, Table) or len(value) > MOST_SETTINGS:
        raise MalformedMessage("bridge-message", f"{value!s:.100} where settings have to be")
    return {_text(name): _text(setting) for name, setting in value.entries}


def _positions(topics: Table) -> dict[TopicPartition, int]:
    positions: dict[TopicPartition, int] = {}
    for topic, pairs in topics.entries:
        for pair in pairs if isinstance(pairs, tuple) else ():
            match topic, pair:
                case str(), (Count(partition), Count(offset)):
                    positions[topic, int(partition)] = int(offset)
                case _:
                    raise MalformedMessage("bridge-message", "a position that is not a pair of numbers")
    return positions


def _batches(
    topic: str, partition: Count, partitions: Count, next: Count, texts: tuple[Value, ...]
) -> Batches:
    try:
        batches = tuple([b64decode(str(text), validate=True) for text in texts])
    except ValueError as error:
        raise MalformedMessage("bridge-message", f"batches that are not base64: {error}") from error
    return Batches(topic, int(partition), int(partitions), int(next), batches)
