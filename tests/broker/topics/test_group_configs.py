"""The settings of groups: their bounds, and those that a broker is started with."""

from __future__ import annotations

import time
from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import (
    GroupMaxSizeReachedError,
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidSessionTimeoutError,
)
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, ConfigSource, Resource, ResourceType
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import JoinRequest
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.limits import GROUP_MAX_SIZE
from dafka.broker.topics.configs import InvalidConfigError
from dafka.broker.topics.group_configs import (
    BOUNDED,
    REGEX_REFRESH,
    STARTED_WITH,
    bounds_of,
    check_started_with,
)
from dafka.broker.topics.kafka_configs import LOCKS_MAX, broker_keys, group_keys

GROUP, BROKER = Resource(ResourceType.GROUP, "g"), Resource(ResourceType.BROKER, "0")
INTERVAL, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"


def alter(client: Client, **settings: Any) -> Any:
    changes = [
        ConfigChange(name.replace("_", "."), ConfigOperation.SET, str(value))
        for name, value in settings.items()
    ]
    return client.call("alter_configs", {GROUP: changes})[GROUP]


def heartbeat_interval(client: Client) -> float:
    request = ConsumerHeartbeat("m", 0, rebalance_timeout=5.0, owned={}, topics=["t"])
    answer = client.call("consumer_group_heartbeat", "g", request)
    assert answer.error is None
    return float(answer.interval)


def test_all_bounds_are_settings_of_the_broker_and_the_defaults_are_within():
    check_started_with({})
    assert broker_keys().keys() >= STARTED_WITH - {REGEX_REFRESH}
    assert set(BOUNDED) <= group_keys().keys()


@pytest.mark.parametrize("setting", BOUNDED)
def test_settings_of_a_group_beyond_their_bounds_are_refused_in_kafkas_words(client, setting):
    least, most = bounds_of(setting)
    name = setting.replace(".", "_")
    found = alter(client, **{name: int(str(broker_keys()[most].default)) + 1})
    assert (found.error, found.detail) == (
        InvalidConfigurationError,
        f"{setting} must be less than or equal to {most}",
    )
    if least is not None and (lowest := int(str(broker_keys()[least].default))):
        found = alter(client, **{name: lowest - 1})
        assert (found.error, found.detail) == (
            InvalidConfigurationError,
            f"{setting} must be greater than or equal to {least}",
        )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("streams.num.standby.replicas", "-1"),
        ("streams.initial.rebalance.delay.ms", "-1"),
        ("consumer.assignment.interval.ms", "-1"),
        ("share.auto.offset.reset", "none"),
        ("share.auto.offset.reset", "Earliest"),
        ("share.auto.offset.reset", "by_duration"),
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.isolation.level", ""),
    ],
)
def test_settings_of_a_group_that_mean_nothing_are_refused(client, setting, value):
    found = alter(client, **{setting: value})
    assert found.error is InvalidConfigurationError and found.detail.startswith(f"{setting} is ")
    assert found.detail.endswith(f"not {value!r}")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("share.auto.offset.reset", "latest"),
        ("share.auto.offset.reset", "earliest"),
        ("share.auto.offset.reset", "by_duration:P1DT2H"),
        ("share.isolation.level", "read_committed"),
        ("streams.num.standby.replicas", "2"),
    ],
)
def test_settings_of_a_group_that_mean_something_are_taken(client, setting, value):
    assert alter(client, **{setting: value}).error is None


@pytest.mark.parametrize(
    "setting",
    ["group.streams.num.standby.replicas", "group.streams.initial.rebalance.delay.ms", "group.max.size"],
)
def test_a_broker_is_not_started_with_fewer_than_none(setting):
    with pytest.raises(InvalidConfigError, match="whole number"):
        check_started_with({setting: "-1"})


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_settings_of_all_groups_are_within_the_same_bounds(client, kind):
    name = f"group.{kind}.assignment.interval.ms"
    everybody = Resource(ResourceType.BROKER, "")
    for value, error in (("15000", None), ("15001", InvalidRequestError), ("-1", InvalidRequestError)):
        change = ConfigChange(name, ConfigOperation.SET, value)
        assert client.call("alter_configs", {everybody: [change]})[everybody].error is error


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_session_is_longer_than_the_interval_of_heartbeats(client, kind):
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    found = alter(client, **{session: 5000})
    assert (found.error, found.detail) == (
        InvalidConfigurationError,
        f"{session} must be greater than {interval}",
    )
    assert alter(client, **{session: 5000, interval: 1000}).error is None
    assert alter(client, **{interval: 5000}).error is InvalidConfigurationError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"group.consumer.max.session.timeout.ms": "9"}, "be greater than or equal to group.consumer.min"),
        ({"group.share.min.heartbeat.interval.ms": "6000"}, "share.heartbeat.interval.ms must be greater"),
        ({"group.streams.session.timeout.ms": "60001"}, "must be less than or equal to group.streams.max"),
        ({"group.streams.heartbeat.interval.ms": "15001"}, "must be less than or equal to group.streams.max"),
        ({"group.consumer.session.timeout.ms": "5000"}, "consumer.heartbeat.interval.ms must be less than"),
        ({"group.streams.num.standby.replicas": "3"}, "be less than or equal to group.streams.max.standby"),
        ({"group.share.max.partition.max.record.locks": str(LOCKS_MAX + 1)}, f"{LOCKS_MAX} or less"),
        ({"group.consumer.migration.policy": "sometimes"}, "one of disabled, downgrade, upgrade, bidir"),
        ({"group.consumer.session.timeout.ms": "soon"}, "a whole number"),
        ({"group.consumer.session.timeout.ms": 50_000}, "a text"),
        ({"consumer.session.timeout.ms": "50000"}, "not one of the settings of groups, which are .*session"),
        ({"log.retention.ms": "1"}, "not one of the settings of groups"),
    ],
)
def test_invalid_group_settings_of_a_broker_are_an_error_before_it_starts(settings, words):
    with pytest.raises(InvalidConfigError, match=words):
        Broker(group_settings=settings)


def test_group_settings_of_a_broker_count_for_groups_without_their_own():
    settings = {f"group.{SESSION}": "9000", f"group.{INTERVAL}": "2000"}
    with Broker(group_settings=settings) as broker:
        client = Client(broker)
        assert heartbeat_interval(client) == 2.0
        (entry,) = client.call("describe_configs", {BROKER: [f"group.{SESSION}"]})[BROKER].entries
        assert (entry.value, entry.source, entry.read_only) == ("9000", ConfigSource.STATIC_BROKER, True)
        assert alter(client, consumer_heartbeat_interval_ms=3000).error is None
        assert heartbeat_interval(client) == 3.0


def test_bounds_of_kafka_can_be_chosen():
    bounds = {
        "group.consumer.min.session.timeout.ms": "45000",
        "group.consumer.min.heartbeat.interval.ms": "5000",
    }
    with Broker(group_settings=bounds) as broker:
        assert alter(Client(broker), consumer_session_timeout_ms=44_999).error is InvalidConfigurationError
        assert alter(Client(broker), consumer_session_timeout_ms=46_000).error is None


def test_a_setting_from_before_other_bounds_counts_as_the_nearest_one_within(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert alter(client, consumer_heartbeat_interval_ms=14_000).error is None
    with Broker(tmp_path, group_settings={"group.consumer.max.heartbeat.interval.ms": "7000"}) as broker:
        assert heartbeat_interval(Client(broker)) == 7.0
        entries = Client(broker).call("describe_configs", {GROUP: [INTERVAL]})[GROUP].entries
        assert [entry.value for entry in entries] == ["14000"]


def join_classic(client, group="g", **changes):
    fields = {
        "member_id": "",
        "session_timeout": 10.0,
        "rebalance_timeout": 10.0,
        "protocol_type": "consumer",
    }
    request = JoinRequest(**{**fields, "protocols": [("range", b"")], **changes})
    return client.call("join_group", group, request)


def test_kafka_s_own_values_can_be_set_for_all_kinds_of_groups():
    settings = {
        "group.max.size": "1",
        "group.consumer.max.size": "1",
        "group.share.max.size": "1",
        "group.min.session.timeout.ms": "6000",
        "group.max.session.timeout.ms": "20000",
        "group.initial.rebalance.delay.ms": "60",
        "group.consumer.assignment.interval.ms": "1000",
        "group.share.assignment.interval.ms": "1000",
    }
    with Broker(group_settings=settings) as broker:
        client = Client(broker)
        assert join_classic(client, session_timeout=5.9).error is InvalidSessionTimeoutError
        assert join_classic(client, session_timeout=20.1).error is InvalidSessionTimeoutError
        began = time.monotonic()
        assert join_classic(client, session_timeout=6.0).error is None
        assert time.monotonic() - began >= 0.06
        assert join_classic(client).error is GroupMaxSizeReachedError
        beat = {"rebalance_timeout": 5.0, "owned": {}, "topics": ["t"]}
        answers = [
            client.call("consumer_group_heartbeat", "c", ConsumerHeartbeat(name, 0, **beat)) for name in "xy"
        ]
        assert [one.error for one in answers] == [None, GroupMaxSizeReachedError]
        answers = [client.call("share_heartbeat", ShareHeartbeat("s", name, 0, ["t"])) for name in "xy"]
        assert [one.error for one in answers] == [None, GroupMaxSizeReachedError]


def test_an_assignment_waits_for_its_interval(broker):
    client = Client(broker)
    client.create("t", 4)
    settings = {"consumer.assignment.interval.ms": "5000", "share.assignment.interval.ms": "5000"}
    changes = [ConfigChange(name, ConfigOperation.SET, value) for name, value in settings.items()]
    for group in ("c", "s"):
        resource = Resource(ResourceType.GROUP, group)
        assert client.call("alter_configs", {resource: changes})[resource].error is None

    def consumer(name, epoch, **more):
        beat = ConsumerHeartbeat(name, epoch, **more)
        return client.call("consumer_group_heartbeat", "c", beat)

    def share(name, epoch):
        return client.call("share_heartbeat", ShareHeartbeat("s", name, epoch, None if epoch else ["t"]))

    joining = {"rebalance_timeout": 60.0, "owned": {}, "topics": ["t"]}
    first = consumer("x", 0, **joining)
    assert sum(map(len, first.assignment.values())) == 4  # nobody waits for the first one
    second = consumer("y", 0, **joining)
    assert (second.error, second.assignment) == (None, {})
    assert consumer("x", first.member_epoch).assignment is None
    one, other = share("x", 0), share("y", 0)
    assert (sum(map(len, one.assignment.values())), other.assignment) == (4, {})
    broker.clock.advance(5)
    assert sum(map(len, consumer("x", first.member_epoch).assignment.values())) == 2
    assert sum(map(len, share("y", other.member_epoch).assignment.values())) == 2


@pytest.mark.parametrize("kind", ["", "consumer.", "share.", "streams."])
def test_the_size_of_groups_is_described_as_it_is_not_with_kafka_s_default(kind):
    name = f"group.{kind}max.size"
    with Broker() as broker:
        (entry,) = Client(broker).call("describe_configs", {BROKER: [name]})[BROKER].entries
        assert (entry.name, entry.value, entry.read_only) == (name, str(GROUP_MAX_SIZE), True)


def test_expressions_are_resolved_again_after_a_time_that_is_set_and_not_described(monkeypatch):
    with pytest.raises(InvalidConfigError, match="a whole number, 1 or more"):
        check_started_with({REGEX_REFRESH: "0"})
    resolved: list[str] = []

    def matching(regex: str, names: Any) -> list[str]:
        resolved.append(regex)
        return []

    monkeypatch.setattr("dafka.broker.groups.consumer.coordinator.matching", matching)
    with Broker(group_settings={REGEX_REFRESH: "1"}) as broker:
        client = Client(broker)
        described = client.call("describe_configs", {BROKER: None})[BROKER]
        assert REGEX_REFRESH not in {entry.name for entry in described.entries}
        joined = ConsumerHeartbeat("m", 0, rebalance_timeout=5.0, owned={}, topics=[], regex="t")
        epoch = client.call("consumer_group_heartbeat", "g", joined).member_epoch
        until(
            lambda: (
                client.call("consumer_group_heartbeat", "g", ConsumerHeartbeat("m", epoch))
                and len(resolved) > 3
            )
        )
