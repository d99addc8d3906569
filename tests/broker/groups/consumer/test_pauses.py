"""Whatever happens while the topics of a member are dealt with in pieces: in the end each partition of those
that exist is one member's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import pytest
from broker.clients import Client
from broker.pausing import at_pause
from kafka.errors import UnknownMemberIdError
from timing import until

from dafka import Broker
from dafka.broker import limits
from dafka.broker.groups.consumer import group as group_module
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.groups import LeavingMember
from dafka.broker.interface.topics import TopicSpec

NAMES = [f"t{number}" for number in range(40)]
JOIN: dict[str, Any] = {"rebalance_timeout": 300.0, "owned": {}, "client_host": "/127.0.0.1"}
HAPPENINGS = ["a topic is deleted", "it leaves", "another joins", "its caller goes"]


@pytest.fixture
def many(client, monkeypatch) -> Client:
    """A client of a broker where ten topics are very many, and all moves are computed ahead."""
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 10)
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 0)
    monkeypatch.setattr(group_module, "MOVED_AT_ONCE", 0)
    client.call("create_topics", dict.fromkeys(NAMES, TopicSpec(1)))
    return client


class Members:
    """Members, what they were told last, and how they go on."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Any] = {}

    def beat(self, name: str, **fields: Any) -> Any:
        fields = {"owned": self.owned.get(name, {}), "client_host": "/127.0.0.1", **fields}
        request = ConsumerHeartbeat(name, self.epochs.get(name, 0), **fields)
        answer = self.client.core.consumer_group_heartbeat("g", request)
        if answer.error is None:
            self.epochs[name] = answer.member_epoch
            if answer.assignment is not None:
                self.owned[name] = answer.assignment
        return answer

    def call(self, name: str, **fields: Any) -> Any:
        return self.client.connection.hub.run(lambda: self.beat(name, **fields))

    def settle(self, *names: str) -> None:
        """They go on until each partition of the topics that exist is one member's."""

        def is_settled() -> bool:
            for name in names:
                assert self.call(name).error is None
            core = self.client.core
            there = {core._topics.get(one).topic_id for one in NAMES if core._topics.get(one) is not None}
            read = [topic for name in names for topic in self.owned.get(name, {})]
            held = core._consumer_groups._groups.get("g")._owned._by_topic
            return len(read) == len(there) == len(held) and set(read) == there

        until(is_settled)


def happening(which: str, members: Members, caller: list[gevent.Greenlet]) -> Callable[[], object]:
    core = members.client.core
    return {
        "a topic is deleted": lambda: core.delete_topics([NAMES[3]]),
        "it leaves": lambda: core.consumer_group_heartbeat("g", ConsumerHeartbeat("x", -1)),
        "another joins": lambda: members.beat("y", **{**JOIN, "topics": NAMES}),
        "its caller goes": lambda: caller[0].kill(block=False),
    }[which]


def in_a_green(client: Client, caller: list[gevent.Greenlet], call: Callable[[], Any]) -> Any:
    def go() -> Any:
        caller.append(gevent.spawn(call))
        return caller[0].get(timeout=100)

    return client.connection.hub.run(go)


@pytest.mark.parametrize("which", HAPPENINGS)
def test_partitions_are_given_whatever_happens_while_they_are_taken(many, monkeypatch, which):
    members, caller = Members(many), list[gevent.Greenlet]()
    assert members.call("x", **{**JOIN, "topics": NAMES}).error is None
    group = many.core._consumer_groups._groups.get("g")
    until(lambda: len(group.target.get("x", ())) == len(NAMES))
    with monkeypatch.context() as patched:
        happened = at_pause(patched, "_heartbeat", happening(which, members, caller))
        answer = in_a_green(many, caller, lambda: members.beat("x"))
        assert happened() == 1
    if which == "it leaves":
        assert answer.error is UnknownMemberIdError
        members.owned.clear()
        members.call("y", **{**JOIN, "topics": NAMES})
        members.settle("y")
    else:
        members.settle(*members.epochs)


@pytest.mark.parametrize("which", HAPPENINGS[:3])
def test_topics_of_an_expression_are_read_whatever_happens_while_they_are_looked_up(many, monkeypatch, which):
    members, caller = Members(many), list[gevent.Greenlet]()
    with monkeypatch.context() as patched:
        happened = at_pause(patched, "_resolve", happening(which, members, caller))
        assert members.call("x", **{**JOIN, "regex": "t.*"}).error is None
        until(happened)
    if which == "it leaves":
        members.owned.clear()
        members.epochs.clear()
        members.call("y", **{**JOIN, "topics": NAMES})
        members.settle("y")
    else:
        members.settle(*members.epochs)


LEAVE_HAPPENINGS = ["one of them leaves", "another joins", "a topic is deleted"]


@pytest.mark.parametrize("which", LEAVE_HAPPENINGS)
def test_members_are_removed_whatever_happens_while_the_others_of_them_are(many, monkeypatch, which):
    monkeypatch.setattr(limits, "LEAVING_AT_ONCE", 2)
    members, names = Members(many), ["a", "b", "c", "d", "e"]
    for name in names:
        assert members.call(name, **{**JOIN, "topics": NAMES}).error is None
    happen = {
        "one of them leaves": lambda: members.client.core.consumer_group_heartbeat(
            "g", ConsumerHeartbeat("d", -1)
        ),
        "another joins": lambda: members.beat("y", **{**JOIN, "topics": NAMES}),
        "a topic is deleted": lambda: members.client.core.delete_topics([NAMES[3]]),
    }[which]
    with monkeypatch.context() as patched:
        happened = at_pause(patched, "leave_group", happen)
        left = many.call("leave_group", "g", [LeavingMember(name) for name in names])
        assert happened() == 1
    gone = UnknownMemberIdError if which == "one of them leaves" else None
    assert left == [None, None, None, gone, None]
    members.epochs = {name: epoch for name, epoch in members.epochs.items() if name == "y"}
    members.owned = {name: owned for name, owned in members.owned.items() if name == "y"}
    if "y" not in members.epochs:
        members.call("y", **{**JOIN, "topics": NAMES})
    members.settle("y")
    assert set(many.core._consumer_groups._groups.get("g").members) == {"y"}


@pytest.mark.parametrize("function", ["_heartbeat", "_resolve"])
def test_a_broker_that_stops_meanwhile_ends_and_its_members_go_on(tmp_path, monkeypatch, function):
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 10)
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 0)
    monkeypatch.setattr(group_module, "MOVED_AT_ONCE", 0)
    broker = Broker(tmp_path)
    broker.start()
    client = Client(broker)
    client.call("create_topics", dict.fromkeys(NAMES, TopicSpec(1)))
    members, core = Members(client), client.core
    stopping = threading.Thread(target=broker.stop)

    def happen() -> None:
        stopping.start()
        while core._lifecycle.running:
            gevent.sleep(0.001)

    subscribed = {"topics": NAMES} if function == "_heartbeat" else {"regex": "t.*"}
    with monkeypatch.context() as patched:
        if function == "_resolve":
            happened = at_pause(patched, function, happen)
        assert members.call("x", **{**JOIN, **subscribed}).error is None
        if function == "_heartbeat":
            group = core._consumer_groups._groups.get("g")
            until(lambda: len(group.target.get("x", ())) == len(NAMES))
            happened = at_pause(patched, function, happen)
            with suppress(BrokerStoppedError):
                members.call("x")
        until(happened)
        until(lambda: stopping.ident is not None)
        stopping.join(100)
        assert not stopping.is_alive()
    with Broker(tmp_path) as broker:
        again = Members(Client(broker))
        again.epochs, again.owned = members.epochs, members.owned
        if again.call("x").error is not None:  # what it was told last is not on the disk: it joins again
            again.epochs.clear()
            again.owned.clear()
            assert again.call("x", **{**JOIN, **subscribed}).error is None
        again.settle("x")
