"""Topic configuration is checked as Kafka checks it, with the key and the value in the message."""

from __future__ import annotations

import pytest
from broker.clients import errors_of
from kafka.errors import InvalidConfigurationError

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.limits import BATCH_MAX_BYTES
from dafka.broker.topics.configs import BROKER_KEYS, KEYS, InvalidConfigError, check_configs, read_settings
from dafka.broker.topics.kafka_configs import broker_keys, client_metrics_keys, group_keys


def test_every_default_is_valid():
    for key in KEYS.values():
        key.check(key.default)
    for name, key in {**BROKER_KEYS, **broker_keys(), **group_keys(), **client_metrics_keys()}.items():
        if key.default is not None:
            key.check(key.default)
        assert not key.broker or name not in BROKER_KEYS, name


def test_a_default_of_all_topics_is_a_setting_of_the_broker():
    for key in KEYS.values():
        assert not key.broker or BROKER_KEYS[key.broker].default == key.default


def test_settings_are_read_from_the_values_in_effect():
    values = {name: key.default for name, key in KEYS.items()}
    values |= {"cleanup.policy": "compact, delete", "message.timestamp.difference.max.ms": "5"}
    values |= {"max.message.bytes": str(2**31 - 1)}
    settings = read_settings(values.__getitem__)
    assert (settings.compacted, settings.deleted, settings.retention_ms) == (True, True, -1)
    assert (settings.timestamp_before_max_ms, settings.timestamp_after_max_ms) == (5, 5)
    assert settings.max_message_bytes == BATCH_MAX_BYTES


def test_a_stored_value_that_is_no_longer_valid_is_replaced_by_the_default(caplog):
    values = {name: key.default for name, key in KEYS.items()} | {"retention.ms": "a week"}
    assert read_settings(values.__getitem__).retention_ms == -1
    assert "retention.ms is a whole number, -1 or more, not 'a week'; -1 is taken" in caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", " delete , compact "),
        ("preallocate", "TRUE"),
        ("retention.ms", " 5 "),
        ("compression.type", " gzip "),
        ("compression.zstd.level", "-131072"),
        ("follower.replication.throttled.replicas", "0:1, 1:1"),
        ("follower.replication.throttled.replicas", "*"),
    ],
)
def test_values_are_accepted_in_every_form_that_kafka_accepts(name, value):
    check_configs({name: value})
    read_settings(({key: str(one.default) for key, one in KEYS.items()} | {name: value}).__getitem__)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("retention.ms", "soon", "retention.ms is a whole number, -1 or more, not 'soon'"),
        ("retention.ms", "-2", "not '-2'"),
        ("retention.bytes", str(2**63), "retention.bytes is a whole number"),
        ("cleanup.policy", "burn", "is delete, compact, compact,delete, or nothing, not 'burn'"),
        ("cleanup.policy", "delete,", "not 'delete,'"),
        ("compression.gzip.level", "0", "-1, or a whole number from 1 to 9"),
        ("compression.lz4.level", "18", "17 or less"),
        ("compression.zstd.level", "23", "22 or less"),
        ("remote.log.copy.disable", "perhaps", "one of true, false"),
        ("leader.replication.throttled.replicas", "all", "partition:broker"),
        ("remote.storage.enable", "true", "false, for there is no remote storage, not 'true'"),
        ("retention.ms", "1_000", "not '1_000'"),
        ("message.timestamp.type", "Whenever", "one of CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "2", "a number from 0 to 1"),
        ("min.insync.replicas", "0", "1 or more"),
        ("preallocate", "yes", "one of true, false"),
        ("max.message.bytes", str(2**31), "0 or more and 2147483647 or less"),
        ("retention.ms", None, "retention.ms is a text, not None"),
    ],
)
def test_an_invalid_value_is_named_in_the_error(name, value, says):
    with pytest.raises(InvalidConfigError) as caught:
        check_configs({name: value})
    assert says in str(caught.value)


def test_an_unknown_key_is_named_with_the_nearest_known_one():
    with pytest.raises(InvalidConfigError, match=r"'retention.m'; did you mean retention.ms\?"):
        check_configs({"retention.m": "1"})
    with pytest.raises(InvalidConfigError, match=r"'colour'$"):
        check_configs({"colour": "red"})


def test_a_topic_with_an_invalid_configuration_is_not_created(caplog):
    with Broker() as broker:
        connection = connect(broker.bootstrap_servers)
        specs = {
            "good": TopicSpec(1, {"retention.ms": "1000"}),
            "bad": TopicSpec(1, {"retention.ms": "soon"}),
        }
        answers = connection.call("create_topics", specs)
        assert errors_of(answers) == {"good": None, "bad": InvalidConfigurationError}
        assert set(connection.call("metadata", None).topics) == {"good"}
    assert "retention.ms is a whole number, -1 or more, not 'soon'" in caplog.text
