"""The partitions of native producers become partitions of topics after their first commit."""

from __future__ import annotations

import logging

import gevent
import pytest
from broker.pausing import at_pause
from logs import logged
from timing import until

from dafka.broker.embedded import adoption as adoption_module
from dafka.broker.embedded.adoption import Adoption
from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.hub.hub import get_hub
from dafka.hub.limits import PACE_ITEMS
from dafka.hub.turns import next_turn
from dafka.log import LogClosedError, LogError, LogWriteError

LOGGER = "dafka.broker.embedded.adoption"


class Registered:
    """A partition that watches itself."""

    def __init__(self) -> None:
        self.woken = 0
        self.watchers = [self]

    def partition_grew(self, partition: Registered) -> None:
        self.woken += 1


class Topics:
    """A table of topics: ``known`` partitions are registered, all others but ``unwanted`` are wanted."""

    def __init__(self) -> None:
        self.known = {"known": Registered()}
        self.adopted: list[set[str]] = []
        self.error: LogError | None = None

    def of_log(self, stored: str) -> Registered | None:
        return self.known.get(stored)

    def wants(self, stored: str) -> bool:
        return stored != "unwanted"

    def adopt(self, stored: set[str]) -> list[object]:
        self.adopted.append(stored)
        if self.error is not None:
            raise self.error
        return []


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def lifecycle() -> Lifecycle:
    return Lifecycle(get_hub(), "the broker")


@pytest.fixture
def adoption(topics: Topics, lifecycle: Lifecycle) -> Adoption:
    return Adoption(get_hub(), topics, lifecycle)


def commit(adoption: Adoption, *rounds: set[str]) -> None:
    """Tell of rounds that follow each other without a turn in between, and wait for what comes of them."""

    def tell() -> None:
        for grown in rounds:
            adoption.committed(grown)
        gevent.sleep(0)
        gevent.sleep(0)

    get_hub().run(tell)


def test_a_registered_partition_that_has_grown_is_woken(adoption, topics):
    commit(adoption, {"known"}, {"known"})
    assert topics.known["known"].woken == 2
    assert topics.adopted == []


def test_very_many_watchers_are_woken_in_pieces_and_again_if_their_partition_grows_meanwhile(
    adoption, topics, monkeypatch
):
    monkeypatch.setattr(adoption_module, "WOKEN_AT_ONCE", 5)
    known = [Registered() for _ in range(100)]
    topics.known = dict(enumerate(known))  # type: ignore[arg-type]

    def happen() -> None:
        assert 5 <= sum(one.woken for one in known) <= 5 + PACE_ITEMS
        happened.append([one.woken for one in known])
        adoption.committed(set(range(100)))

    happened: list[list[int]] = []
    at_pause(monkeypatch, "_wake_rest", happen)
    get_hub().run(adoption.committed, set(range(100)))
    until(lambda: happened and not get_hub().run(lambda: len(adoption._unwoken)))
    before = happened[0]
    assert all(one.woken > had for one, had in zip(known, before, strict=True))


def test_watchers_beyond_those_of_a_commit_are_woken_in_a_later_turn(adoption, topics, monkeypatch):
    monkeypatch.setattr(adoption_module, "WOKEN_AT_ONCE", 5)
    topics.known = {number: Registered() for number in range(9)}  # type: ignore[dict-item]
    woken: list[int] = []

    def noted() -> None:
        woken.append(sum(one.woken for one in topics.known.values()))
        next_turn()

    monkeypatch.setattr(adoption_module, "next_turn", noted)
    get_hub().run(adoption.committed, set(range(9)))
    until(lambda: all(one.woken == 1 for one in topics.known.values()))
    assert woken == [5]


def test_a_watcher_that_fails_does_not_keep_others_from_being_woken(adoption, topics, monkeypatch, caplog):
    monkeypatch.setattr(adoption_module, "WOKEN_AT_ONCE", 0)
    topics.known = {number: Registered() for number in range(5)}  # type: ignore[dict-item]
    topics.known[2].watchers = [None]  # type: ignore[index]
    commit(adoption, set(range(5)))  # type: ignore[arg-type]
    until(lambda: [one.woken for one in topics.known.values()] == [1, 1, 0, 1, 1])
    assert "could not be woken" in caplog.text
    caplog.clear()


def test_new_partitions_are_registered_together_and_outside_of_the_commit(adoption, topics):
    commit(adoption, {"a", "unwanted"}, {"b"})
    assert topics.adopted == [{"a", "b"}]
    commit(adoption, {"c"})
    assert topics.adopted[1:] == [{"c"}]


def test_a_stopped_broker_leaves_them_to_the_next_start(adoption, topics, lifecycle):
    lifecycle.stop()
    commit(adoption, {"a"})
    assert topics.adopted == []


def test_a_failure_is_logged_and_the_next_commit_tries_again(adoption, topics, caplog):
    topics.error = LogWriteError("/data", "disk full")
    with caplog.at_level(logging.ERROR, LOGGER):
        commit(adoption, {"a"})
    assert logged(caplog, LOGGER) == ["native partitions could not be registered: disk full"]
    topics.error = None
    commit(adoption, {"a"})
    assert topics.adopted == [{"a"}, {"a"}]


def test_a_log_that_is_closed_meanwhile_is_not_a_failure(adoption, topics, caplog):
    topics.error = LogClosedError("/data", "closed")
    commit(adoption, {"a"})
    assert logged(caplog, LOGGER) == []
