"""Calls that are passed on to the coordinators."""

from __future__ import annotations

import inspect

import pytest
from broker.clients import Client

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.embedded.coordinated import CoordinatedCalls
from dafka.broker.interface.groups import GroupInterface
from dafka.broker.interface.transactions import TransactionInterface

CALLS = [
    (name, method)
    for interface in (GroupInterface, TransactionInterface)
    for name, method in vars(interface).items()
    if getattr(method, "__isabstractmethod__", False)
]


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_they_take_what_the_interface_says(name, method):
    passed_on = getattr(CoordinatedCalls, name)
    assert passed_on.__name__ == name
    expected = inspect.signature(method).parameters.values()
    found = inspect.signature(passed_on).parameters.values()
    assert [(one.name, one.kind) for one in found] == [(one.name, one.kind) for one in expected]


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_none_is_answered_when_the_broker_is_stopped(name, method):
    with Broker() as broker:
        core = Client(broker).core
    needed = [
        one.name
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.name != "self"
    ]
    with pytest.raises(BrokerStoppedError):
        getattr(core, name)(**dict.fromkeys(needed))
