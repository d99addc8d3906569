"""The options of a broker: which are taken, and what Kafka calls them."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest
from broker.clients import Client

from dafka import Broker
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.options import BrokerOptions
from dafka.mesh.address import InvalidAddressError


def test_a_broker_takes_each_of_them_with_the_same_default():
    taken = dict(inspect.signature(Broker).parameters)
    del taken["path"]
    assert {name: (one.default, one.annotation) for name, one in taken.items()} == {
        one.name: (one.default, one.type)
        for one in fields(BrokerOptions)
        if one.name != "clock"  # tests'
    }


def test_they_do_not_change():
    with pytest.raises(FrozenInstanceError):
        BrokerOptions().default_partitions = 2  # type: ignore[misc]


@pytest.mark.parametrize("partitions", [0, -1, 10**9, 1.5, "4", True, None])
def test_default_partitions_must_make_sense(partitions):
    with pytest.raises(ValueError, match=repr(partitions)):
        Broker(default_partitions=partitions)


@pytest.mark.parametrize("seconds", [0, -2, "60", float("nan"), float("inf"), True])
def test_offsets_retention_is_seconds_or_for_ever(seconds):
    with pytest.raises(ValueError, match=f"offsets_retention.*{seconds!r}"):
        Broker(offsets_retention=seconds)


@pytest.mark.parametrize(("seconds", "minutes"), [(90.0, "2"), (-1, "2147483647"), (None, "2147483647")])
def test_offsets_retention_is_described_by_kafka_s_name(seconds, minutes):
    with Broker(offsets_retention=seconds) as broker:
        resource = Resource(ResourceType.BROKER, "0")
        name = "offsets.retention.minutes"
        (entry,) = Client(broker).call("describe_configs", {resource: [name]})[resource].entries
        assert (entry.name, entry.value, entry.read_only) == (name, minutes, True)


def test_other_settings_must_make_sense():
    with pytest.raises(ValueError, match="often"):
        Broker(durability="often")
    with pytest.raises(InvalidAddressError, match="nowhere"):
        Broker(tower=("nowhere", "tcp://127.0.0.1:1"))


@pytest.mark.parametrize("option", ["group_settings", "quota_settings"])
@pytest.mark.parametrize("wrong", [5, "x", ["a"]])
def test_settings_that_are_no_dict_are_named(option, wrong):
    with pytest.raises(ValueError, match=f"{option} is a dict of settings"):
        Broker(**{option: wrong})


@pytest.mark.parametrize("wrong", [5, b"localhost", ["localhost"]])
def test_addresses_that_are_no_text_are_named(wrong):
    with pytest.raises(ValueError, match="listen is a text such as HOST:PORT"):
        Broker(listen=wrong)
    with pytest.raises(ValueError, match="advertised is a text such as HOST:PORT"):
        Broker(listen="127.0.0.1:0", advertised=wrong)


@pytest.mark.parametrize("wrong", ["no", 0, None])
def test_the_creation_of_topics_is_on_or_off(wrong):
    with pytest.raises(ValueError, match="auto_create_topics is True or False"):
        Broker(auto_create_topics=wrong)
