"""What a controller answers its clients, and what it makes of what other nodes and strangers say."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.zper.cluster import limits, messages
from dafka.zper.cluster.cluster import Cluster
from dafka.zper.cluster.messages import Changes, Have, InvalidNodeError, Node
from dafka.zper.commands import InvalidCommandError

B = "tcp://b.example:5559"


def asked(cluster: Cluster, *frames: bytes, now: float = 0.0) -> Any:
    status, document = cluster.asked(frames, "127.0.0.1", now)
    assert status == b"\x64"
    return json.loads(document)


def node(name: str = "B", sequence: int = 1, **fields: Any) -> Node:
    made = Node(name, 1000, sequence, {"writer": "tcp://0.0.0.0:5555"}, 0, {"connections": 3})
    return made._replace(**fields)


def claim(cluster: Cluster, who: Node, now: float = 0.0, host: str = "10.0.0.7") -> list[bytes]:
    return cluster.asked(messages.question(who, Have()), host, now)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster("A", 500, {"writer": "tcp://127.0.0.1:5555"}, [B])
    made.update({"flights": (0, 70), "alarms": (5, 9)}, {"connections": 1})
    return made


def test_nodes_begins_with_the_node_that_is_asked(cluster: Cluster):
    assert asked(cluster, b"NODES") == {
        "nodes": [
            {
                "id": "A",
                "started": 500,
                "binds": {"writer": "tcp://127.0.0.1:5555"},
                "topics": 2,
                "health": {"connections": 1},
                "state": "up",
                "silent_ms": 0,
            }
        ]
    }


def test_topics_are_those_of_all_nodes_or_those_of_one_name(cluster: Cluster):
    cluster.connected(B)
    cluster.questions(0)
    cluster.answered(B, messages.answer(node(), Changes(1, 0, 1, [("flights", 3, 4)])), 0)
    here = {"topic": "flights", "node": "A", "first": 0, "end": 70}
    there = {"topic": "flights", "node": "B", "first": 3, "end": 4}
    assert asked(cluster, b"TOPICS", b"flights") == {"topics": [here, there], "truncated": False}
    assert asked(cluster, b"TOPICS", b"nothing") == {"topics": [], "truncated": False}
    assert len(asked(cluster, b"TOPICS")["topics"]) == 3


def test_a_list_of_topics_ends_at_its_bound_and_says_so(cluster: Cluster):
    cluster.update({str(number): (0, 1) for number in range(limits.LISTED + 1)}, {})
    found = asked(cluster, b"TOPICS")
    assert (len(found["topics"]), found["truncated"]) == (limits.LISTED, True)


def test_peers_are_the_controllers_of_the_configuration(cluster: Cluster):
    assert asked(cluster, b"PEERS")["peers"] == [
        {"address": B, "connected": False, "node": None, "silent_ms": None}
    ]
    cluster.connected(B)
    cluster.answered(B, messages.answer(node(), Changes(1, 0, 0, [])), 10.0)
    assert asked(cluster, b"PEERS", now=12.5)["peers"] == [
        {"address": B, "connected": True, "node": "B", "silent_ms": 2500}
    ]
    cluster.disconnected(B)
    assert not asked(cluster, b"PEERS")["peers"][0]["connected"]


def test_only_connected_controllers_are_asked(cluster: Cluster):
    assert cluster.questions(0) == {}
    cluster.connected(B)
    assert list(cluster.questions(0)) == [B]


def test_a_node_that_is_silent_is_listed_as_lost_and_as_up_when_it_speaks_again(cluster: Cluster):
    def states(now: float) -> list[str]:
        return [one["state"] for one in asked(cluster, b"NODES", now=now)["nodes"]]

    claim(cluster, node(), now=0.0)
    assert states(limits.LOST_AFTER - 0.1) == ["up", "up"]
    assert states(limits.LOST_AFTER) == ["up", "lost"]
    claim(cluster, node(started=1, sequence=1), now=7.0)  # its clock was set back
    assert states(7.0) == ["up", "up"]


def test_the_address_of_every_interface_is_listed_with_the_host_that_was_heard(cluster: Cluster):
    claim(cluster, node(), host="10.0.0.7")
    assert asked(cluster, b"NODES")["nodes"][1]["binds"] == {"writer": "tcp://10.0.0.7:5555"}
    cluster.answered(B, messages.answer(node(), Changes(1, 0, 0, [])), 0)
    assert asked(cluster, b"NODES")["nodes"][1]["binds"] == {"writer": "tcp://b.example:5555"}


def test_a_stranger_does_not_replace_what_a_node_of_the_configuration_answered(cluster: Cluster):
    cluster.answered(B, messages.answer(node(), Changes(1, 0, 0, [])), 0)
    claim(cluster, node(sequence=99, health={"connections": 666}))
    assert asked(cluster, b"NODES")["nodes"][1]["health"] == {"connections": 3}
    claim(cluster, node("A", sequence=99))
    assert len(asked(cluster, b"NODES")["nodes"]) == 2


def test_an_older_message_does_not_replace_a_newer_one(cluster: Cluster):
    claim(cluster, node(sequence=5, topics=5))
    claim(cluster, node(sequence=4, topics=4))
    assert asked(cluster, b"NODES")["nodes"][1]["topics"] == 5


def test_nodes_that_only_claim_to_be_there_are_bounded_and_forgotten(cluster: Cluster):
    for number in range(limits.NODES + 50):
        claim(cluster, node(str(number)))
    assert len(asked(cluster, b"NODES")["nodes"]) == 1 + limits.NODES
    cluster.connected(B)
    cluster.answered(B, messages.answer(node(), Changes(1, 0, 0, [])), 0)  # there is room for it all the same
    cluster.questions(limits.FORGOTTEN_AFTER)
    assert [one["id"] for one in asked(cluster, b"NODES")["nodes"]] == ["A", "B"]


def test_a_lost_claim_makes_room_for_a_new_one(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "NODES", 2)
    claim(cluster, node("old"), now=0.0)
    claim(cluster, node("new"), now=4.0)
    claim(cluster, node("newer"), now=4.5)
    assert [one["id"] for one in asked(cluster, b"NODES")["nodes"]] == ["A", "old", "new"]
    claim(cluster, node("newer"), now=limits.LOST_AFTER)
    assert [one["id"] for one in asked(cluster, b"NODES")["nodes"]] == ["A", "new", "newer"]


def test_a_node_whose_topics_were_deleted_is_asked_for_all_again():
    a, b = Cluster("A", 1, {}, [B]), Cluster("B", 1, {}, [])
    a.connected(B)

    def exchange() -> list[str]:
        a.answered(B, b.asked(a.questions(0)[B], "", 0), 0)
        return sorted(one["topic"] for one in asked(a, b"TOPICS")["topics"])

    b.update({"x": (0, 1), "y": (0, 1)}, {})
    exchange()
    assert exchange() == ["x", "y"]
    b.update({"y": (0, 1)}, {})
    assert exchange() == ["y"]


def test_many_topics_are_told_in_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CHANGES", 100)
    a, b = Cluster("A", 1, {}, [B]), Cluster("B", 1, {}, [])
    a.connected(B)
    count = 2 * limits.CHANGES + 1
    b.update({f"t{number}": (0, number) for number in range(count)}, {})
    for had in (limits.CHANGES, 2 * limits.CHANGES, count, count):
        a.answered(B, b.asked(a.questions(0)[B], "", 0), 0)
        assert sum(one["node"] == "B" for one in asked(a, b"TOPICS")["topics"]) == had


@pytest.mark.parametrize(
    ("frames", "cause"),
    [
        ([], "empty"),
        ([b""], "unknown"),
        ([b"nodes"], "unknown"),
        ([b"OFFSET", b"\0" * 8], "unknown"),
        ([b"NODES", b""], "argument-count"),
        ([b"PEERS", b"x"], "argument-count"),
        ([b"TOPICS", b"a", b"b"], "argument-count"),
        ([b"TOPICS", b"\xff"], "topic"),
    ],
    ids=str,
)
def test_a_command_of_a_wrong_shape_has_an_error_that_names_the_cause(
    cluster: Cluster, frames: list[bytes], cause: str
):
    with pytest.raises(InvalidCommandError) as raised:
        cluster.asked(frames, "", 0)
    assert raised.value.cause == cause


GOOD: dict[str, Any] = {"node": node()._asdict(), "have": {"generation": 1, "version": 1}}


def changed(**fields: Any) -> bytes:
    return json.dumps({**GOOD, "node": {**GOOD["node"], **fields}}).encode()


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"{}",
        b"[" * 10_000,
        b'{"node":' * 1_000,
        b"1" * 5000,
        b" " * (limits.QUESTION + 1),
        json.dumps({**GOOD, "have": {"generation": 1}}).encode(),
        json.dumps({**GOOD, "have": {"generation": True, "version": 1}}).encode(),
        changed(id=""),
        changed(id="x" * 301),
        changed(id=7),
        changed(id="a\nb"),
        changed(id="\ud800"),
        changed(started=-1),
        changed(started=1.5),
        changed(started=2**63),
        changed(sequence=None),
        changed(binds=[]),
        changed(binds={"writer": 5}),
        changed(binds={"": "x"}),
        changed(health={"x": "y"}),
        changed(health={str(number): 1 for number in range(limits.FIGURES + 1)}),
    ],
    ids=lambda octets: str(octets[:60]),
)
def test_anything_but_a_message_of_a_node_is_an_error_of_ours(cluster: Cluster, octets: bytes):
    with pytest.raises(InvalidNodeError):
        cluster.asked([b"NODE", octets], "", 0)
    with pytest.raises(InvalidNodeError):
        cluster.answered(B, [b"\x64", octets], 0)
    assert len(asked(cluster, b"NODES")["nodes"]) == 1


def test_a_message_that_is_nested_too_deep_is_not_read(cluster: Cluster):
    with pytest.raises(InvalidNodeError, match="nested more than 300 deep"):
        cluster.asked([b"NODE", b"[" * 500 + b"]" * 500], "", 0)


@pytest.mark.parametrize(
    "entries",
    [None, {}, ["x"], [["x", 1]], [["x", 1, -1]], [["", 0, 0]], [["x", 0, 0]] * (limits.CHANGES + 1)],
)
def test_topics_of_a_wrong_shape_are_an_error_of_ours(cluster: Cluster, entries: Any):
    topics = {"generation": 1, "since": 0, "version": 1, "changed": entries}
    document = json.dumps({"node": node()._asdict(), "topics": topics}).encode()
    with pytest.raises(InvalidNodeError):
        cluster.answered(B, [b"\x64", document], 0)


@given(
    st.lists(st.sampled_from([b"NODE", b"NODES", b"TOPICS", b"PEERS"]) | st.binary(max_size=20), max_size=3)
)
def test_any_frames_are_answered_or_an_error_of_ours(frames: list[bytes]):
    cluster = Cluster("A", 1, {}, [])
    with suppress(InvalidCommandError, InvalidNodeError):
        assert cluster.asked(frames, "", 0)[0] == b"\x64"


def test_topics_kept_of_another_node_are_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TOPICS", 5)
    for number in range(20):
        cluster.answered(B, messages.answer(node(), Changes(1, 0, number, [(f"t{number}", 0, 1)])), 0)
    assert sum(one["node"] == "B" for one in asked(cluster, b"TOPICS")["topics"]) == 5


def test_responses_stay_below_what_one_message_may_have(cluster: Cluster):
    """However much strangers claim."""
    choice = random.Random(7)
    for _ in range(limits.NODES):
        name = "".join(choice.choices("abcdef", k=60))
        binds = {f"{name}{number}": "tcp://x:1" for number in range(limits.FIGURES)}
        claim(cluster, node(name, binds=binds))
    assert len(cluster.asked([b"NODES"], "", 0)[1]) < 8 * 1024 * 1024
