"""Topologies of Streams groups are there after a restart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import gevent
import gevent.event
import pytest
from broker.clients import Client
from broker.groups.streams.test_coordinator import COUNT, configure, described, join, send
from kafka.errors import InvalidRequestError

from dafka import Broker
from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.streams.kept import TOPOLOGIES, KeptTopologies, decoded, encoded
from dafka.broker.groups.streams.topology import normal
from dafka.broker.interface.streams_groups import InternalTopic, Subtopology, Topology
from dafka.hub.hub import get_hub
from dafka.log import Log

WHOLE = Topology(
    3,
    [
        Subtopology("0", ["a", "b"], [], [], ["r"], [], [frozenset(("a", "b"))]),
        Subtopology("1", [], [], [InternalTopic("c", configs={"x": "y"})], [], [InternalTopic("r", 4, 1)]),
    ],
)
OTHER = Topology(1, [Subtopology("0", ["t", "u"])])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of a broker whose group had a member."""
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        configure(client, initial_rebalance_delay_ms=0)
        assert join(client, "x").error is None
        assert send(client, "x", -1).error is None
    return tmp_path


def rows(folder: Path) -> list[str]:
    with Log(folder) as log:
        return list(log.table(TOPOLOGIES))


def test_a_row_has_all_of_a_topology():
    assert decoded(encoded(normal(WHOLE))) == normal(WHOLE)


@pytest.mark.parametrize("replicas", [0, -1, 1, 3])
def test_any_number_of_replicas_is_kept(tmp_path, replicas):
    changelog = InternalTopic("c", replicas=replicas)
    topology = Topology(0, [Subtopology("0", ["t"], changelogs=[changelog])])
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        assert join(client, "x", topology).error is None
    with Broker(tmp_path) as broker:
        assert described(Client(broker)).topology == normal(topology)


def test_a_group_has_its_topology_after_a_restart_and_refuses_another_one(folder):
    with Broker(folder) as broker:
        client = Client(broker)
        found = described(client)
        assert (found.state, normal(found.topology)) == ("Empty", normal(COUNT))
        refused = join(client, "x", OTHER)
        assert (refused.error, refused.detail) == (
            InvalidRequestError,
            "Topology updates are not supported yet.",
        )
        assert join(client, "x").error is None


def test_a_deleted_group_has_no_topology_any_more(folder):
    with Broker(folder) as broker:
        client = Client(broker)
        assert client.call("delete_groups", ["g"]) == {"g": None}
        client.create("u", 2)
        assert join(client, "x", OTHER).error is None
        assert send(client, "x", -1).error is None
        assert normal(described(client).topology) == normal(OTHER)
        assert client.call("delete_groups", ["g"]) == {"g": None}
    assert rows(folder) == []


def test_a_topology_of_a_group_that_is_not_there_is_removed(folder):
    assert rows(folder) == ["g"]
    with Log(folder) as log:
        log.write([], {("groups", "g"): None})
    with Broker(folder) as broker:
        client = Client(broker)
        client.create("u", 2)
        assert join(client, "x", OTHER).error is None
    assert rows(folder) == ["g"]
    with Log(folder) as log:
        log.write([], {("groups", "g"): None})
    with Broker(folder):
        pass
    assert rows(folder) == []


def test_a_row_that_no_client_could_have_brought_is_not_used(folder):
    with Log(folder) as log:
        log.write([], {(TOPOLOGIES, "g"): encoded(Topology(1, [Subtopology("0", ["__consumer_offsets"])]))})
    with Broker(folder) as broker:
        client = Client(broker)
        assert described(client).topology is None
        assert join(client, "x").error is None


class Delaying:
    """A writer whose writes come when the test wants it, in order."""

    def __init__(self, rows):
        self.rows, self.waiting = rows, []

    def put(self, values, done):
        self.waiting.append((values, done))

    def put_and_wait(self, values):
        written = gevent.event.Event()
        self.put(values, lambda error: written.set())
        written.wait()

    def write(self):
        while self.waiting:
            values, done = self.waiting.pop(0)
            for (_, name), row in values.items():
                self.rows.pop(name, None)
                if row is not None:
                    self.rows[name] = row
            done(None)


def grouped(topology):
    group = StreamsGroup(0.0, None, 1)
    group.begin_with(normal(topology))
    return group


def test_a_group_that_comes_again_while_it_is_deleted_has_its_topology():
    def act():
        rows = {}
        writer = Delaying(rows)
        kept = KeptTopologies(SimpleNamespace(table=lambda *shape: rows), writer)
        kept.note("g", grouped(OTHER))
        deleting = gevent.spawn(kept.forget, ["g"])  # not written yet
        gevent.sleep(0)
        assert len(writer.waiting) == 2
        writer.write()
        deleting.join()
        assert rows == {}
        kept.note("g", grouped(OTHER))
        writer.write()
        deleting = gevent.spawn(kept.forget, ["g"])
        gevent.sleep(0)
        kept.note("g", grouped(OTHER))  # the row is there still
        writer.write()
        deleting.join()
        return rows

    assert get_hub().run(act) == {"g": encoded(normal(OTHER))}
