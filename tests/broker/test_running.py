"""The brokers of this process, by their addresses."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from broker.clients import Client
from timing import until

from dafka import Broker
from dafka.broker import running
from dafka.broker.running import Running
from dafka.hub import hub
from dafka.hub.hub import get_hub


@pytest.fixture
def second() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def address(broker: Broker) -> tuple[str, int]:
    host, port = broker.bootstrap_servers.split(":")
    return host, int(port)


def at(*addresses: tuple[str, int]) -> Running | None:
    return get_hub().run(running.at, addresses)


def listed() -> list[object]:
    return [one.owner for one in get_hub().run(running.brokers)]


def test_a_broker_is_listed_with_its_folder_from_start_to_stop(tmp_path):
    broker = Broker(tmp_path)
    assert broker not in listed()
    with broker:
        (found,) = [one for one in get_hub().run(running.brokers) if one.owner is broker]
        assert found.core is Client(broker).core
        assert found.path == os.path.realpath(tmp_path)
    assert broker not in listed()


def test_a_broker_is_found_at_the_first_address_that_belongs_to_one(broker, second):
    nobody = ("127.0.0.1", 1)
    assert at(nobody, address(second), address(broker)).owner is second
    assert at(nobody) is None
    assert at() is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "::1", "127.0.0.1"])
def test_the_names_of_loopback_are_one_host(second, host):
    assert at((host, address(second)[1])).owner is second


def test_the_list_does_not_keep_a_broker_alive(tmp_path):
    broker = Broker(tmp_path).start()
    place = address(broker)
    with pytest.warns(ResourceWarning, match="unclosed <Broker"):
        del broker
        # The hub may be in a last call of it.
        until(lambda: gc.collect() is not None and at(place) is None)


def test_a_start_sets_the_event_that_clients_wait_for():
    hub = get_hub()
    hub.run(running.started.clear)
    with Broker():
        assert hub.run(running.started.is_set)


def test_a_forked_child_begins_with_an_empty_list(second):
    assert second in listed()
    child = os.fork()
    if not child:
        os._exit(len(running._brokers))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert second in listed()


def test_the_exit_of_a_forked_child_starts_no_hub(second):
    assert second in listed()
    child = os.fork()
    if not child:
        running._stop_all()
        os._exit(hub._hub is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
