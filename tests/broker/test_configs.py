"""Topic configuration is checked as Kafka checks it, with the key and the value in the message."""

from __future__ import annotations

import pytest
from kafka.errors import InvalidConfigurationError

from dafka import Broker
from dafka.broker import connect
from dafka.broker.configs import KEYS, InvalidConfigError, check_configs
from dafka.broker.interface import TopicSpec


def test_every_default_is_a_value_that_its_key_may_have():
    for key in KEYS.values():
        key.check(key.default)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("retention.ms", "soon", "retention.ms is a whole number, -1 or more, not 'soon'"),
        ("retention.ms", "-2", "not '-2'"),
        ("retention.bytes", str(2**63), "retention.bytes is a whole number"),
        ("cleanup.policy", "burn", "cleanup.policy is delete, compact, or compact,delete, not 'burn'"),
        ("cleanup.policy", "", "not ''"),
        ("message.timestamp.type", "Whenever", "one of CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "2", "a number from 0 to 1"),
        ("min.insync.replicas", "0", "1 or more"),
        ("preallocate", "yes", "one of true, false"),
    ],
)
def test_a_value_that_cannot_be_is_named(name, value, says):
    with pytest.raises(InvalidConfigError) as caught:
        check_configs({name: value})
    assert says in str(caught.value)


def test_an_unknown_key_is_named_with_the_nearest_known_one():
    with pytest.raises(InvalidConfigError, match=r"'retention.m'; did you mean retention.ms\?"):
        check_configs({"retention.m": "1"})
    with pytest.raises(InvalidConfigError, match=r"'colour'$"):
        check_configs({"colour": "red"})


def test_a_topic_with_a_configuration_that_cannot_be_is_not_created(caplog):
    with Broker() as broker:
        connection = connect(broker.bootstrap_servers)
        specs = {
            "good": TopicSpec(1, {"retention.ms": "1000"}),
            "bad": TopicSpec(1, {"retention.ms": "soon"}),
        }
        assert connection.call("create_topics", specs) == {"good": None, "bad": InvalidConfigurationError}
        assert set(connection.call("metadata", None).topics) == {"good"}
    assert "retention.ms is a whole number, -1 or more, not 'soon'" in caplog.text
