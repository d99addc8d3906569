"""Targets of large share groups: computed beside the hub, once for all who join meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from broker.clients import Client
from broker.share.member import Member
from kafka.errors import CoordinatorNotAvailableError
from timing import until

from dafka import Broker
from dafka.broker.groups.modern import due
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import ShareGroupDescription
from dafka.broker.share import assignor, group, targets


@pytest.fixture
def client() -> Iterator[Client]:
    with Broker() as broker:
        client = Client(broker)
        client.call("create_topics", {"jobs": TopicSpec(4)})
        yield client


def test_a_new_member_of_a_large_group_gets_its_partitions_at_once_computed_outside_of_the_hub(
    client, monkeypatch
):
    monkeypatch.setattr(group, "ASSIGNED_AT_ONCE", 0)
    computed: list[tuple[int, int]] = []

    def assign(spec):
        computed.append((threading.get_ident(), len(spec.members)))
        return assignor.assign(spec)

    monkeypatch.setattr(targets, "assign", assign)
    one, two = Member(client.call, "queue", "jobs"), Member(client.call, "queue", "jobs")
    assert one.heartbeat().error is None and len(one.places) == 4
    assert two.heartbeat().error is None and len(two.places) >= 2
    one.heartbeat()
    assert len(set(one.places) | set(two.places)) == 4
    hub = client.connection.hub
    assert [members for _, members in computed] == [1, 2]
    assert hub.run(threading.get_ident) not in {thread for thread, _ in computed}


def test_members_that_join_while_a_target_is_computed_share_the_next_one(client, monkeypatch):
    monkeypatch.setattr(group, "ASSIGNED_AT_ONCE", 0)
    began, go_on, sizes = threading.Event(), threading.Event(), list[int]()

    def assign(spec):
        sizes.append(len(spec.members))
        began.set()
        assert go_on.wait(60)
        return assignor.assign(spec)

    monkeypatch.setattr(targets, "assign", assign)
    members = [Member(client.call, "queue", "jobs") for _ in range(20)]
    joining = [threading.Thread(target=one.heartbeat) for one in members]
    joining[0].start()
    assert began.wait(60)
    for thread in joining[1:]:
        thread.start()
    while len(client.call("describe_share_groups", ["queue"])["queue"].members) < 20:
        pass
    go_on.set()
    for thread in joining:
        thread.join(60)
    assert sizes == [1, 20]
    assert all(one.epoch > 0 and one.places for one in members)


def test_an_assignment_that_fails_is_an_error_and_the_next_attempt_succeeds(client, monkeypatch, caplog):
    monkeypatch.setattr(group, "ASSIGNED_AT_ONCE", 0)
    member = Member(client.call, "queue", "jobs")
    with monkeypatch.context() as broken:
        broken.setattr(targets, "assign", lambda spec: {}[0])
        assert member.heartbeat().error is CoordinatorNotAvailableError
    assert "failed unexpectedly" in caplog.text
    assert member.heartbeat().error is None and len(member.places) == 4


def counted(monkeypatch) -> list[int]:
    """How many members there are in each target that is computed from now on."""
    sizes: list[int] = []

    def assign(spec):
        sizes.append(len(spec.members))
        return assignor.assign(spec)

    monkeypatch.setattr(targets, "assign", assign)
    monkeypatch.setattr(group, "assign", assign)
    return sizes


def test_a_thousand_members_join_and_few_targets_are_computed(client, monkeypatch):
    sizes = counted(monkeypatch)
    members = [Member(client.call, "queue", "jobs") for _ in range(1000)]

    def join(some: list[Member]) -> None:
        for one in some:
            one.heartbeat()

    joining = [threading.Thread(target=join, args=[members[begin::50]]) for begin in range(50)]
    for thread in joining:
        thread.start()
    for thread in joining:
        thread.join(60)
    for one in members:
        until(lambda one=one: one.heartbeat().error is None and one.places)
    assert len(sizes) < 750


def test_members_of_a_large_group_that_join_one_after_the_other_share_few_targets(client, monkeypatch):
    monkeypatch.setattr(due, "MEMBERS_ASSIGNED_FOR_EACH", 20)
    monkeypatch.setattr(due, "PAUSE_OF_A_MEMBER", 60.0)
    sizes = counted(monkeypatch)
    members = [Member(client.call, "queue", "jobs") for _ in range(200)]
    answers = [one.heartbeat() for one in members]
    assert all(one.error is None and one.member_epoch > 0 for one in answers)
    assert all(one.places for one in members[:20])
    assert all(one.places == [] for one in members[21:]) and answers[-1].assignment == {}
    assert sizes == list(range(1, len(sizes) + 1)) and len(sizes) <= 21


def test_members_whose_target_was_put_off_have_it_without_anybody_coming(client, monkeypatch):
    monkeypatch.setattr(due, "MEMBERS_ASSIGNED_FOR_EACH", 2)
    monkeypatch.setattr(due, "PAUSE_OF_A_MEMBER", 0.1)
    sizes = counted(monkeypatch)
    members = [Member(client.call, "queue", "jobs") for _ in range(6)]
    answers = [one.heartbeat() for one in members]
    assert all(one.interval < 2.0 for one in answers if not one.assignment)

    def described() -> ShareGroupDescription:
        return client.call("describe_share_groups", ["queue"])["queue"]

    until(lambda: described().assignment_epoch == described().epoch, described)
    assert sizes[-1] == 6
    assert all(one.heartbeat().error is None and one.places for one in members)
