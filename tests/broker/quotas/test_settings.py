"""The settings of quotas that a broker is started with."""

from __future__ import annotations

import pytest
from broker.clients import Client

from dafka import Broker
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.quotas.allowance import Windows
from dafka.broker.quotas.settings import check_quota_settings, windows

GIVEN = {"quota.window.num": "3", "controller.quota.window.size.seconds": "2"}


def test_windows_are_kafkas_unless_they_are_given():
    assert windows({}) == windows({}, "controller.") == Windows(11, 1.0)
    assert (windows(GIVEN), windows(GIVEN, "controller.")) == (Windows(3, 1.0), Windows(11, 2.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("quota.window.num", "0"),
        ("quota.window.num", "101"),
        ("quota.window.num", "-1"),
        ("quota.window.num", "x"),
        ("quota.window.num", 5),
        ("quota.window.num", None),
        ("quota.window.num", "1" * 5000),
        ("quota.window.size.seconds", "3601"),
        ("quota.window", "1"),
    ],
)
def test_an_error_names_the_invalid_setting(name, value):
    with pytest.raises(ValueError, match=name):
        check_quota_settings({name: value})
    with pytest.raises(ValueError, match=name):
        Broker(quota_settings={name: value})


def test_a_broker_tells_its_settings():
    with Broker(quota_settings=GIVEN) as broker:
        node = Resource(ResourceType.BROKER, str(Client(broker).call("metadata", ()).controller_id))
        entries = Client(broker).call("describe_configs", {node: list(GIVEN)})[node].entries
        assert {one.name: one.value for one in entries} == GIVEN
