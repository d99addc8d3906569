"""Random sequences of odd requests: every API but those of members of groups, in any version, with arguments
that clients rarely send. The same seed makes the same sequence.

Names that brokers give themselves, ids of topics and of producers, are written as numbers, which
:class:`World` replaces by those of one broker's answers.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from broker.clients import batch, timed
from broker.server.samples import STREAMS, samples
from broker.server.share_samples import SHARED, SHARERS
from kafka.protocol.admin import DescribeTopicPartitionsRequest

from dafka.broker.server.table import BY_KEY

LEFT_OUT = {
    # members of groups: ./scripts/odd_requests --members; and what ends or changes the broker itself
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat"),
    *("StreamsGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "SaslAuthenticate"),
    *("UnregisterBroker", "PushTelemetry", "GetTelemetrySubscriptions"),
    *("InitializeShareGroupState", "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupState"),
    "ReadShareGroupStateSummary",
    "WriteTxnMarkers",  # which brokers send each other
}
_OF_MEMBERS = "ConsumerGroup", "ShareGroup", "StreamsGroup", "ShareFetch", "ShareAcknowledge"
_OWN = "Sasl", "DescribeQuorum", "GetTelemetry"
IDS = 1000  # of topics: UUID(int=IDS + n) is the n-th topic
PRODUCERS = 7_000_000  # the n-th producer id that was given
TOPICS = 3
NOW = int(time.time() * 1000)
"""The timestamp of all records: old ones may have been deleted by one broker, and not by the other."""

_LONG = "x" * 250
MAGIC = b"\2"  # in a record batch, at its place

_NUMBERS = {
    "partition": (0, 1, 2, -1, 99, 2**31 - 1),
    "epoch": (-1, 0, 1, 5, -2),
    "offset": (0, 1, 3, -1, -2, -3, -4, -5, -6, 100, -100),
    "timestamp": (-1, -2, -3, -4, -5, -6, 0, 1, 2**62),
    "replication_factor": (1, -1, 0, 2, -2),
    "count": (1, 2, 3, 4, 0, -1),
    "type": (0, 1, 2, 3, 4, 5, 8, 16, 32, 127, -1),
    "operation": (0, 1, 2, 3, 4, 9, 12, 127, -1),
    "iterations": (4096, 4095, 16384, 16385, 0, -1),
    "mechanism": (0, 1, 2, 3, -1),
    "isolation": (0, 1, 2, -1),
    "acks": (-1, 1, 2, -2),
    "limit": (1, 2, 100, 0, -1),
}
_TIMES = (
    "timeout_ms",
    "max_wait_ms",
    "max_bytes",
    "min_bytes",
    "session_id",
    "retention_time_ms",
    "replica_id",
)
_SOFTWARE = ("tests", "a.b-c", "", " ", "-a", "a_b", "a" * 300, "\N{SNOWMAN}", "1.0-rc1")
_GROUPS = (SHARED, SHARERS, STREAMS, "consumers")  # names of the samples
_CONFIGS = (
    *("retention.ms", "cleanup.policy", "no.such.key", "", "max.message.bytes", "min.insync.replicas"),
    *("remote.storage.enable", "interval.ms", "metrics", "match"),
    *("share.auto.offset.reset", "share.isolation.level", "streams.num.standby.replicas"),
)
_VALUES = (
    *("1000000", "compact", "-1", "-2", "", "abc", "delete,compact", "0", "1", "true", "a,", "a, a"),
    *("client_id=a", "client_id=[", "client_id=a=b,client_id=", "earliest", "read_committed"),
)


class Step(NamedTuple):
    """A request of some version."""

    name: str
    request: Any
    version: int


class World:
    """The names that one broker has given."""

    def __init__(self, topic_ids: list[UUID], node: int) -> None:
        self._topic_ids = topic_ids
        self._node = node
        self._producers: list[int] = []

    def learn(self, step: Step, response: Any) -> None:
        """Note what a response tells."""
        if step.name == "InitProducerId" and not response.error_code:
            self._producers.append(response.producer_id)

    def real(self, name: str, value: Any) -> Any:
        """The value for this broker, of a field of this name."""
        if value in (0, 1) and name in ("replicas", "broker_ids"):
            return self._node
        if value == "0" and name == "resource_name":
            return str(self._node)
        if name == "records" and value and value[16:17] == MAGIC:
            return timed(value, NOW, NOW)
        if isinstance(value, UUID):
            number = value.int - IDS
            return self._topic_ids[number] if 0 <= number < len(self._topic_ids) else value
        if type(value) is int and 0 <= value - PRODUCERS < len(self._producers):
            return self._producers[value - PRODUCERS]
        return value

    def request(self, step: Step) -> Any:
        """The request as this broker gets it."""
        request = copy.deepcopy(step.request)
        _each(request._struct, request, step.version, lambda field, value: self.real(field.name, value))
        return request


def names(seed: int) -> list[str]:
    """The topics that a sequence begins with."""
    return [f"s{seed}-{number}" for number in range(TOPICS)]


def sequence(seed: int, length: int, only: str = "", once: bool = False) -> Iterator[Step]:
    """The requests of a seed; ``only``: of APIs with this in their names; ``once``: no item stands twice."""
    chance = random.Random(seed)
    topics = names(seed)
    pool = [
        one
        for one in samples(topics[0], UUID(int=IDS), f"s{seed}-g")
        if BY_KEY[one.API_KEY].name not in LEFT_OUT and only in BY_KEY[one.API_KEY].name
    ]
    for one in pool:
        if BY_KEY[one.API_KEY].name == "CreateTopics":
            one.topics[0].name = f"s{seed}-made"
    for _ in range(length):
        request = copy.deepcopy(chance.choice(pool))
        api = BY_KEY[request.API_KEY]
        version = chance.randint(max(api.first, request.min_version), api.last)
        oddity = chance.choice((0.0, 0.1, 0.3))
        odd = _Odd(chance, seed, topics, oddity, api.name, once)
        _each(request._struct, request, version, odd.changed)
        if api.name == "UpdateFeatures":
            version, request.validate_only = max(version, 1), True  # nothing becomes another broker
        elif hasattr(request, "validate_only") and chance.random() < 0.7:
            request.validate_only = False
        yield Step(api.name, request, version)


def every_version(seed: int) -> Iterator[Step]:
    """A right request of each version of every API, but of logins, of members of newer groups, and those
    whose answers have times and numbers of their own."""
    for one in samples(names(seed)[0], UUID(int=IDS), f"s{seed}-g"):
        api = BY_KEY[one.API_KEY]
        if api.name.startswith(_OWN) or (api.name in LEFT_OUT and api.name.startswith(_OF_MEMBERS)):
            continue
        for version in range(max(api.first, one.min_version), api.last + 1):
            yield Step(api.name, copy.deepcopy(one), version)


def _each(struct: Any, target: Any, version: int, changed: Any) -> None:
    """Replace each value of a message by ``changed(field, value)``, the inner ones first."""
    for field in struct.fields.values():
        if not field.for_version_q(version):
            continue
        value = getattr(target, field.name)
        if field.is_struct_array():
            for one in value or ():
                _each(field.array_of, one, version, changed)
        elif field.is_struct() and value is not None:
            _each(field, value, version, changed)
        elif field.is_array() and value is not None:
            value = [changed(_Item(field), one) for one in value]
        setattr(target, field.name, _kept(field, value, changed(field, value), version))


class _Item:
    """An item of a list of numbers or texts: a field that has the list's name."""

    def __init__(self, field: Any) -> None:
        self.name = field.name
        self.type_str = field.array_of.type_str

    def is_array(self) -> bool:
        return False

    is_struct = is_array


def _kept(field: Any, before: Any, after: Any, version: int) -> Any:
    """``after``, unless this version cannot say it."""
    return before if after is None and not field.nullable_for_version_q(version) else after


class _Odd:
    """Values, some of them odd."""

    def __init__(
        self, chance: random.Random, seed: int, topics: list[str], oddity: float, api: str, once: bool
    ) -> None:
        self._chance = chance
        self._oddity = oddity
        self._api = api
        self._topics = (*topics, f"s{seed}-new", f"s{seed}-missing", "", "bad name!", "..", _LONG)
        self._seed = seed
        self._once = once

    def changed(self, field: Any, value: Any) -> Any:
        chance = self._chance
        name = field.name.lower()
        if isinstance(value, bool):
            return value if chance.random() > self._oddity else not value
        if name in _TIMES:
            return value
        if value in _GROUPS:
            value = f"s{self._seed}-{value}"
        if chance.random() >= max(self._oddity, 0.3 if self._is_place(name) else 0.0):
            return value
        if field.is_array():
            return self._list(name, value)
        if field.is_struct():
            return self._cursor() if name == "cursor" else value
        kind = field.type_str
        if kind == "string":
            return self._text(name, value)
        if kind == "uuid":
            return UUID(int=chance.choice((IDS, IDS + 1, 0, 1, 999_999)))
        if kind.startswith(("int", "uint")):
            return self._number(name, value, kind)
        if kind == "float64":
            return chance.choice((0.0, -1.0, 0.5, 1000.0, 1e300))
        if kind == "records":
            return chance.choice((batch(b"odd"), b"", None, b"no batch, but long enough to be looked at"))
        return value

    def _is_place(self, name: str) -> bool:
        return name in ("topic", "name", "partition", "partition_index", "index") or "offset" in name

    def _list(self, name: str, value: Any) -> Any:
        roll = self._chance.random()
        if (self._api, name) == ("AlterShareGroupOffsets", "partitions") and roll < 0.4:
            return value  # offsets of no partition: README.md
        if roll < 0.25:
            return []
        if roll < 0.4:
            return None
        if self._once:
            return value
        return [*value, *copy.deepcopy(value)] if value else value

    def _cursor(self) -> Any:
        cursor = DescribeTopicPartitionsRequest.Cursor
        index = self._chance.choice(_NUMBERS["partition"])
        return cursor(topic_name=self._chance.choice(self._topics[: TOPICS + 4]), partition_index=index)

    def _text(self, name: str, value: Any) -> Any:
        chance = self._chance
        if self._api in ("AlterClientQuotas", "DescribeClientQuotas"):
            if "type" in name:
                return chance.choice(("user", "client-id", "ip", "", "team"))
            if name == "key":
                return chance.choice(("producer_byte_rate", "request_percentage", "no_rate", ""))
            return chance.choice((f"s{self._seed}", "", None, "127.0.0.1"))
        if "config" in name or self._api.endswith("Configs"):
            if name == "value":
                return chance.choice((*_VALUES, None))
            if name == "name" or "key" in name:
                return chance.choice(_CONFIGS)
        if "transactional_id" in name:
            return chance.choice((f"s{self._seed}-t", f"s{self._seed}-u", "", None))
        if "group" in name or name == "key":
            return chance.choice((*(f"s{self._seed}-{one}" for one in ("g", "h", *_GROUPS)), "", None))
        if name.startswith("client_software"):
            return chance.choice(_SOFTWARE)
        if "instance" in name or "rack" in name or "metadata" in name or "pattern" in name:
            return chance.choice((None, "", "some"))
        if "member" in name:
            return chance.choice(("", "nobody"))
        if "user" in name or self._api.endswith("Credentials"):
            return chance.choice((f"s{self._seed}", f"s{self._seed}-b", ""))
        if "principal" in name:
            return chance.choice(("User:a", "a", "", "User:*", None))
        if "host" in name:
            return chance.choice(("*", "127.0.0.1", "", None))
        if "state" in name:
            return chance.choice(("Ongoing", "Empty", "", "NoState"))
        return chance.choice((*self._topics, *self._topics[:TOPICS], None))

    def _number(self, name: str, value: int, kind: str) -> int:
        chance = self._chance
        if name == "producer_id":
            return chance.choice((PRODUCERS, PRODUCERS + 1, -1, 0, 99))
        for part, pool in _NUMBERS.items():
            if part in name:
                most = 2 ** (int(kind.removeprefix("u")[3:]) - 1)
                return chance.choice([one for one in pool if -most <= one < most])
        return chance.choice((0, 1, 2, 3, -1, 5))
