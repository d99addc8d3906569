"""The parts of a broker, each of which answers some of its calls."""

from __future__ import annotations

import inspect

import pytest

from dafka.broker.embedded.broker import EmbeddedBroker
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.part import Part
from dafka.broker.remote.remote import Remote

CALLS = [
    (name, method)
    for part in BrokerInterface.__bases__
    for name, method in inspect.getmembers(part, inspect.isfunction)
]


class Descriptions:
    def describe(self, name: str, *, version: int = 0) -> str:
        """Describe one."""
        return f"{name} {version}"


@Part
def part(broker: Broker) -> Descriptions:
    if broker.stopped:
        raise RuntimeError("stopped")
    return broker.descriptions


class Broker:
    stopped = False
    describe = part.answers(Descriptions.describe)

    def __init__(self) -> None:
        self.descriptions = Descriptions()


def test_a_call_is_answered_by_the_part_of_this_broker():
    assert Broker().describe("one", version=3) == "one 3"


def test_a_call_raises_the_error_of_choosing_the_part():
    broker = Broker()
    broker.stopped = True
    with pytest.raises(RuntimeError, match="stopped"):
        broker.describe("one")


def test_a_call_has_the_name_and_the_parameters_of_the_parts_method():
    assert Broker.describe.__name__ == "describe"
    assert inspect.signature(Broker.describe) == inspect.signature(Descriptions.describe)


@pytest.mark.parametrize("broker", [EmbeddedBroker, Remote])
@pytest.mark.parametrize(("name", "method"), CALLS)
def test_each_call_of_a_broker_has_the_parameters_of_the_interface(broker, name, method):
    call = getattr(broker, name)
    assert call.__name__ == name
    expected = inspect.signature(method).parameters.values()
    found = inspect.signature(call).parameters.values()
    assert [(one.name, one.kind, one.default) for one in found] == [
        (one.name, one.kind, one.default) for one in expected
    ]
