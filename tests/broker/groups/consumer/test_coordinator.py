"""Consumer groups of the newer protocol in a broker: settings, offsets, large groups, expressions."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gevent
import pytest
from broker.clients import Client
from broker.pausing import at_pause, counted_pauses
from kafka.errors import (
    FencedMemberEpochError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from timing import until

from dafka import Broker
from dafka.broker.groups import kept_members
from dafka.broker.groups.consumer import coordinator
from dafka.broker.groups.consumer import group as group_module
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import CommittedOffset, JoinRequest
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import GroupType
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.topics import topic as topic_module
from dafka.broker.topics.topic import KnownTopic
from dafka.hub.hub import is_hub_here
from dafka.hub.limits import PACE_ITEMS

JOIN = {"rebalance_timeout": 5.0, "owned": {}}


def send(client: Client, name: str, epoch: int, group: str = "g", **fields: Any) -> Any:
    return client.call("consumer_group_heartbeat", group, ConsumerHeartbeat(name, epoch, **fields))


def join(client: Client, name: str, *topics: str, **fields: Any) -> Any:
    return send(client, name, 0, **{**JOIN, "topics": topics or ("t",), **fields})


def described(client: Client, group: str = "g") -> Any:
    return client.call("describe_consumer_groups", [group])[group]


def count(answer: Any) -> int:
    return sum(map(len, answer.assignment.values()))


def configure(client: Client, **settings: str) -> None:
    changes = [
        ConfigChange(f"consumer.{name.replace('_', '.')}", ConfigOperation.SET, value)
        for name, value in settings.items()
    ]
    resource = Resource(ResourceType.GROUP, "g")
    assert client.call("alter_configs", {resource: changes})[resource].error is None


@pytest.fixture
def topic(client):
    client.create("t", 6)
    return client


def test_a_member_joins_reads_and_leaves(topic):
    answer = join(topic, "x")
    assert (answer.error, answer.member_id, answer.member_epoch, count(answer)) == (None, "x", 2, 6)
    assert answer.interval == 5.0
    group = described(topic)
    assert (group.error, group.state, group.epoch, group.assignment_epoch) == (None, "Stable", 2, 2)
    assert group.assignor == "uniform" and list(group.topics.values()) == ["t"]
    left = send(topic, "x", -1)
    assert (left.member_epoch, left.interval) == (-1, 0.0)
    assert described(topic).state == "Empty"


def test_errors_are_answered_with_kafkas_words(topic):
    assert send(topic, "x", 3).error is GroupIdNotFoundError
    assert join(topic, "x", group="").error is InvalidRequestError
    join(topic, "x")
    for epoch, word in ((3, "greater"), (1, "smaller")):
        assert send(topic, "x", epoch)[:2] == (
            FencedMemberEpochError,
            f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group "
            "coordinator (2). The member must abandon all its partitions and rejoin.",
        )
    assert send(topic, "y", 1)[:2] == (UnknownMemberIdError, "Member y is not a member of group g.")
    assert send(topic, "x", 2, instance_id="i")[:2] == (UnknownMemberIdError, "Instance id i is unknown.")
    assert send(topic, "x", -3)[:2] == (InvalidRequestError, "MemberEpoch is invalid.")


def test_others_do_not_find_a_group_with_classic_members(topic):
    topic.call("join_group", "g", JoinRequest("", 10.0, 10.0, "other", [("p", b"")]))
    assert join(topic, "x").error is GroupIdNotFoundError
    assert described(topic).error is GroupIdNotFoundError


def test_a_refused_member_disturbs_no_classic_one(topic):
    subscription = bytes(ConsumerProtocolSubscription(0, ["t"], b"").encode())
    joining = JoinRequest("", 10.0, 10.0, "consumer", [("range", subscription)])
    with ThreadPoolExecutor(1) as pool:
        first = topic.call("join_group", "g", joining)
        second = pool.submit(topic.call, "join_group", "g", joining)  # it waits for the first one
        until(lambda: topic.call("describe_groups", ["g"])["g"].state == "PreparingRebalance")
        assert join(topic, "x", "n" * 250).error is InvalidRequestError
        again = topic.call("join_group", "g", joining._replace(member_id=first.member_id))
        assert (again.error, second.result().error) == (None, None)


def test_the_assignment_of_a_large_group_is_computed_for_its_classic_members_too(topic, monkeypatch):
    monkeypatch.setattr("dafka.broker.groups.consumer.group.ASSIGNED_AT_ONCE", 0)
    join(topic, "x")
    until(lambda: described(topic).epoch == described(topic).assignment_epoch)
    subscription = bytes(ConsumerProtocolSubscription(0, ["t"], b"").encode())
    topic.call("join_group", "g", JoinRequest("", 10.0, 10.0, "consumer", [("range", subscription)]))
    until(lambda: described(topic).epoch == described(topic).assignment_epoch)


def test_an_empty_share_group_stays_one_when_a_classic_member_comes(topic):
    for epoch in 0, -1:
        topic.call("share_heartbeat", ShareHeartbeat("g", "x", epoch, topics=["t"]))
    joining = JoinRequest("", 10.0, 10.0, "consumer", [("range", b"")])
    assert topic.call("join_group", "g", joining).error is InconsistentGroupProtocolError
    assert [one.type for one in topic.call("list_groups")] == [GroupType.SHARE]


def test_the_settings_of_a_group_say_when_its_members_are_gone_and_how_often_they_speak(topic):
    configure(topic, session_timeout_ms="300", heartbeat_interval_ms="100")
    assert join(topic, "x").interval == 0.1
    until(lambda: described(topic).state == "Empty")


def test_offsets_need_the_members_epoch(topic):
    join(topic, "x")

    def commit(epoch: int, member: str) -> Any:
        offsets = {("t", 0): CommittedOffset(1)}
        return topic.call("commit_offsets", "g", offsets, generation=epoch, member_id=member)["t", 0]

    assert commit(2, "x") is None
    assert commit(3, "x") is StaleMemberEpochError
    assert commit(2, "y") is UnknownMemberIdError
    assert topic.call("fetch_offsets", "g", member_id="x", member_epoch=2)["t", 0].offset == 1
    with pytest.raises(StaleMemberEpochError):
        topic.call("fetch_offsets", "g", member_id="x", member_epoch=0)
    with pytest.raises(UnknownMemberIdError):
        topic.call("fetch_offsets", "g", member_id="y", member_epoch=1)


def test_a_transaction_commits_offsets_of_the_members_epoch_only(topic):
    join(topic, "x")
    who = topic.call("init_producer_id", "transaction", 60.0)
    assert topic.call("add_offsets_to_transaction", "transaction", *who[1:3], "g") is None

    def commit(epoch: int) -> Any:
        offsets, named = {("t", 0): CommittedOffset(1)}, {"generation": epoch, "member_id": "x"}
        call = "commit_transaction_offsets"
        return topic.call(call, "transaction", *who[1:3], "g", offsets, **named)["t", 0]

    assert commit(2) is None
    assert commit(1) is IllegalGenerationError


def test_a_large_groups_assignment_is_computed_beside_the_hub(topic, monkeypatch):
    monkeypatch.setattr("dafka.broker.groups.consumer.group.ASSIGNED_AT_ONCE", 0)
    epoch = join(topic, "x").member_epoch
    until(lambda: described(topic).epoch == described(topic).assignment_epoch)
    assert count(send(topic, "x", epoch)) == 6


def test_after_a_restart_members_join_again_epochs_go_on_and_offsets_are_there(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        join(client, "x")
        join(client, "y")
        offsets = {("t", 0): CommittedOffset(7)}
        client.call("commit_offsets", "g", offsets, generation=3, member_id="y")
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert send(client, "x", 1).error is UnknownMemberIdError
        assert join(client, "x").member_epoch == 4
        assert client.call("fetch_offsets", "g")["t", 0].offset == 7


def test_a_group_without_members_has_its_target_of_before_after_a_restart(tmp_path):
    def found(client: Client) -> tuple[str, int, int]:
        group = described(client)
        return group.state, group.epoch, group.assignment_epoch

    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        join(client, "x")
        join(client, "y")
        send(client, "x", -1)
        send(client, "y", -1)
        before = found(client)
        assert before == ("Empty", 5, 3)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert found(client) == before
        assert join(client, "x").member_epoch == 6
        assert found(client) == ("Stable", 6, 6)


def test_a_heartbeat_of_a_group_with_many_members_takes_short_turns(topic):
    """100 members on 1000 partitions, all of which join and settle."""
    topic.create("wide", 994)
    epochs: dict[str, int] = {}
    owned: dict[str, Any] = {}
    hub = topic.connection.hub

    def settle() -> None:
        for number in range(100):
            request = ConsumerHeartbeat(f"m{number}", 0, topics=["t", "wide"], **JOIN)
            answer = topic.core.consumer_group_heartbeat("g", request)
            epochs[f"m{number}"], owned[f"m{number}"] = answer.member_epoch, answer.assignment
        while topic.core.describe_consumer_groups(["g"])["g"].state != "Stable":
            for name, epoch in epochs.items():
                request = ConsumerHeartbeat(name, epoch, owned=owned[name])
                answer = topic.core.consumer_group_heartbeat("g", request)
                assert answer.error is None
                epochs[name] = answer.member_epoch
                owned[name] = owned[name] if answer.assignment is None else answer.assignment

    began = time.monotonic()
    hub.run(settle)
    assert time.monotonic() - began < 60
    assert sorted(sum(map(len, share.values())) for share in owned.values()) == [10] * 100


def test_the_own_row_of_a_new_group_of_very_many_topics_is_made_beside_the_hub(client, monkeypatch):
    client.call("create_topics", {f"many-{number}": TopicSpec(1) for number in range(30)})
    monkeypatch.setattr(kept_members, "KEPT_ITEMS_AT_ONCE", 20)
    monkeypatch.setattr(kept_members, "MADE_AT_ONCE", 20)
    monkeypatch.setattr(group_module, "ASSIGNED_AT_ONCE", 0)  # members get nothing yet
    made: list[bool] = []
    encoded = kept_members._encoded

    def watched(change: Any) -> Any:
        if change is not None and change.items > 20:
            made.append(is_hub_here())
        return encoded(change)

    monkeypatch.setattr(kept_members, "_encoded", watched)
    host = "/192.0.2.1"
    joined = send(client, "x", 0, **JOIN, topics=(), regex="many-.*", client_host=host)
    assert joined.error is None
    until(lambda: send(client, "x", joined.member_epoch, client_host=host) and made)
    assert not any(made)


def test_the_moves_of_members_with_very_many_topics_are_computed_beside_the_hub(client, monkeypatch):
    monkeypatch.setattr(group_module, "MOVED_AT_ONCE", 0)
    computed: list[bool] = []
    move_of = group_module.move_of

    def watched(*arguments: Any) -> Any:
        computed.append(is_hub_here())
        return move_of(*arguments)

    monkeypatch.setattr(group_module, "move_of", watched)
    client.create("t", 4)
    first = join(client, "x")
    assert computed == [True]  # it had nothing, and all is given at once
    second = join(client, "y")
    told = send(client, "x", first.member_epoch, owned=first.assignment)
    kept = send(client, "x", told.member_epoch, owned=told.assignment)
    gets = send(client, "y", second.member_epoch, owned={})
    assert count(told) == count(gets) == 2 and kept.error is None
    assert computed == [True, True, False, False, False]


# -- very many topics -----------------------------------------------------------------------------

MANY = [f"many-{number}" for number in range(400)]


@pytest.fixture
def many(client, monkeypatch):
    """A client of a broker with very many topics, of which it looks up no more at once than is usual."""
    monkeypatch.setattr(coordinator, "NAMES_AT_ONCE", 100)
    client.call("create_topics", dict.fromkeys(MANY, TopicSpec(1)))
    return client


def looked_up(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many topics a group has come to know between two turns of others."""
    pauses, looked = counted_pauses(monkeypatch), Counter[int]()

    def known(*fields: Any) -> KnownTopic:
        looked[pauses()] += 1
        return KnownTopic(*fields)

    monkeypatch.setattr(topic_module, "KnownTopic", known)
    return looked


def test_very_many_topics_of_a_member_are_looked_up_in_pieces(many, monkeypatch):
    looked = looked_up(monkeypatch)
    join(many, "x", *MANY)
    assert looked.total() == len(MANY)
    assert max(looked.values()) <= PACE_ITEMS


def test_very_many_topics_of_a_member_are_looked_up_in_pieces_after_a_restart(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.call("create_topics", dict.fromkeys(MANY, TopicSpec(1)))
        join(client, "x", *MANY, "missing", client_host="/127.0.0.1")
    looked = looked_up(monkeypatch)
    with Broker(tmp_path) as broker:
        assert looked.total() == len(MANY)
        assert max(looked.values()) <= PACE_ITEMS
        assert [one.member_id for one in described(Client(broker)).members] == ["x"]


def test_topics_that_change_while_those_of_a_member_are_looked_up_are_the_new_ones(many, monkeypatch):
    core = many.core
    old = core._topics.get(MANY[0]).topic_id

    def happen() -> None:
        assert core.delete_topics(MANY[:2])[MANY[0]].error is None
        core.create_topics({MANY[0]: TopicSpec(2), "late": TopicSpec(3)})
        core.create_partitions({MANY[5]: 4})

    happened = at_pause(monkeypatch, "look_ahead", happen)
    answer = join(many, "x", *MANY, "late")
    assert happened()
    answer = until(lambda: (again := send(many, "x", 0, **JOIN, topics=(*MANY, "late"))).assignment and again)
    assert old not in answer.assignment
    assert count(answer) == len(MANY) - 1 + 1 + 3 + 3
    assert len(described(many).members) == 1


def test_a_group_that_is_deleted_while_topics_are_looked_up_begins_anew(many, monkeypatch):
    joined = join(many, "x", MANY[0])
    send(many, "x", -1)

    def happen() -> None:
        assert many.core.delete_groups(["g"])["g"] is None

    happened = at_pause(monkeypatch, "look_ahead", happen)
    answer = join(many, "x", *MANY)
    assert happened() and answer.error is None
    assert 0 < answer.member_epoch <= joined.member_epoch
    assert [one.member_id for one in described(many).members] == ["x"]


def test_a_caller_that_ends_while_topics_are_looked_up_leaves_no_member(many, monkeypatch):
    hub, core, callers = many.connection.hub, many.core, []

    def beat() -> None:
        callers.append(gevent.getcurrent())
        core.consumer_group_heartbeat("g", ConsumerHeartbeat("x", 0, **JOIN, topics=tuple(MANY)))

    happened = at_pause(monkeypatch, "look_ahead", lambda: callers[0].kill(block=False))
    green = hub.run(gevent.spawn, beat)
    hub.run(green.join)
    assert happened()
    assert described(many).error is GroupIdNotFoundError
    assert count(join(many, "x", *MANY[:3])) == 3
