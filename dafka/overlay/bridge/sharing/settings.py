"""Settings of topics, which other sites take over with them, as MirrorMaker 2 does.

Told are those that a topic has itself; defaults are each site's own. So are the settings in ``LEFT``, which
are about replicas, or about times that the source's broker has checked already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka.errors import KafkaError

from dafka.broker.interface.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    Resource,
    ResourceType,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.overlay.bridge.limits import (
    MOST_SETTINGS,
    SET_CHARACTERS,
    SET_TOPIC_CHARACTERS,
    SETTING_CHARACTERS,
)

LEFT = frozenset(
    (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.insync.replicas",
        "unclean.leader.election.enable",
    )
)

MOST_OCTETS = "max.message.bytes"

Settings = Mapping[str, str]


def settings_of(broker: BrokerInterface, topics: Iterable[str]) -> dict[str, Settings]:
    """The settings of topics that go along with them. Raises KafkaError."""
    resources = {Resource(ResourceType.TOPIC, topic): None for topic in topics}
    found: dict[str, Settings] = {}
    for resource, described in broker.describe_configs(resources).items():
        if described.error is None:
            own = [one for one in described.entries if one.source == ConfigSource.TOPIC]
            settings = {
                one.name: one.value
                for one in own
                if one.value is not None and len(one.value) <= SETTING_CHARACTERS and one.name not in LEFT
            }
            found[resource.name] = dict(sorted(settings.items())[:MOST_SETTINGS])
    return found


def take_over(broker: BrokerInterface, topic: str, wanted: Settings) -> bool:
    """Give an existing topic these settings, and no others that go along. Whether anything was different.

    The largest batch that it takes never becomes smaller: older records of its source may be larger. Raises
    KafkaError.
    """
    known = settings_of(broker, [topic]).get(topic)
    if known is None:
        return False
    changes = [
        ConfigChange(name, ConfigOperation.SET, value)
        for name, value in wanted.items()
        if name not in LEFT and known.get(name) != value and not _is_lower(name, value, known)
    ]
    changes += [ConfigChange(name, ConfigOperation.DELETE) for name in known.keys() - wanted.keys()]
    if not changes:
        return False
    (outcome,) = broker.alter_configs({Resource(ResourceType.TOPIC, topic): changes}).values()
    if outcome.error is not None:
        raise _error(outcome.error, topic, outcome.detail)
    return True


def allow(broker: BrokerInterface, topic: str, octets: int) -> bool:
    """Have a topic take batches of so many octets; whether it does. Raises KafkaError."""
    change = ConfigChange(MOST_OCTETS, ConfigOperation.SET, str(octets))
    (outcome,) = broker.alter_configs({Resource(ResourceType.TOPIC, topic): [change]}).values()
    return outcome.error is None


def _is_lower(name: str, value: str, known: Settings) -> bool:
    return name == MOST_OCTETS and name in known and value.isdecimal() and int(value) < int(known[name])


def _error(kind: type[KafkaError], topic: str, detail: str) -> KafkaError:
    return kind(f"settings of {topic}: {detail}")


class Remembered:
    """The settings of another site's topics, by their names here: ``known``, bounded in characters."""

    def __init__(self) -> None:
        self.known: dict[str, Settings] = {}
        self._characters = 0

    def put(self, topic: str, settings: Settings) -> bool:
        """Remember these instead of what the topic had; whether there is room for them."""
        characters = self._characters + _weight(topic, settings)
        if topic in self.known:
            characters -= _weight(topic, self.known[topic])
        if characters > SET_CHARACTERS:
            return False
        self.known[topic] = settings
        self._characters = characters
        return True


def _weight(topic: str, settings: Settings) -> int:
    words = sum(len(name) + len(value) for name, value in settings.items())
    return len(topic) + words + SET_TOPIC_CHARACTERS * (1 + len(settings))
