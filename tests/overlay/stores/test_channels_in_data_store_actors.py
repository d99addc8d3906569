"""Broker's developer guide, "Channels in Data Store Actors"."""

from __future__ import annotations

import pytest
from overlay.stores.town import Town, put

from dafka.overlay.limits import HEARTBEAT_TICKS, MASTER_SILENT_TICKS, SILENT_TICKS
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Changed
from dafka.overlay.values import Count, types
from dafka.overlay.wire.commands import (
    AckClone,
    Add,
    Clear,
    Command,
    CumulativeAck,
    Erase,
    Load,
    Nack,
)
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


def ack(sender: EntityId, receiver: EntityId, sequence: int):
    return Command(0, sender, receiver, CumulativeAck(sequence))


def test_a_clone_that_is_gone_holds_up_nobody_for_ever():
    town = Town("a")
    town.tick(HEARTBEAT_TICKS)
    town.deaf.add("a")
    town.write("m", put("k", 1))
    town.tick(SILENT_TICKS + 1)
    assert town.master.is_idle and town.master.clones == []
    town.deaf.clear()
    town.tick(HEARTBEAT_TICKS)
    assert town.get("a", "k") == 1


def test_a_lost_last_update_is_noticed():
    town = Town("a")
    town.tick(HEARTBEAT_TICKS)
    town.deaf.add("a")
    town.write("m", put("k", 1))
    town.deaf.clear()
    assert town.get("a", "k") is None
    town.tick(2 * HEARTBEAT_TICKS)
    assert town.get("a", "k") == 1


def test_a_clone_follows_its_master_through_a_restart():
    town = Town("a")
    town.tick()
    town.write("m", put("k", 1))
    town.master = Master(town.entity("m"), Content("st"))  # which has lost everything
    town.master.write(town.now, put("l", 2))
    town.write("a", put("meanwhile", 3))
    assert town.get("a", "k") == 1
    town.tick(MASTER_SILENT_TICKS + HEARTBEAT_TICKS)
    assert [town.get("a", key) for key in ("k", "l", "meanwhile")] == [None, 2, 3]
    assert town.get("m", "meanwhile") == 3


def test_an_event_that_cannot_be_had_any_more_makes_a_clone_begin_anew():
    town = Town("a", "b")
    town.tick(HEARTBEAT_TICKS)
    town.deaf.add("b")
    for number in range(5):
        town.write("m", put(Count(number), number))
    b = town.clones["b"].entity
    town.carry("m", town.master.receive(0.0, ack(b, town.master.entity, 6)))  # which b never said
    town.tick()
    town.deaf.clear()
    town.tick(4 * HEARTBEAT_TICKS)
    assert [town.get("b", Count(number)) for number in range(5)] == list(range(5))


def old_handshake(town: Town) -> Command:
    """What the master tells a clone that asks now, however late that arrives."""
    master, offset = town.master, town.master._producer.sequence
    state = AckClone(offset, HEARTBEAT_TICKS, tuple(master.content))
    return Command(offset, master.entity, town.clones["a"].entity, state)


def test_a_content_that_comes_late_does_not_take_a_clone_back():
    town = Town("a")
    town.tick()
    late = old_handshake(town)
    town.write("m", put("k", 1))
    town.tick(HEARTBEAT_TICKS)
    clone = town.clones["a"]
    town.deaf.add("m")
    town.tick(MASTER_SILENT_TICKS + 1)
    assert not clone.is_attached
    town.deaf.clear()
    town.said.clear()
    town.carry("a", clone.receive(late))
    assert clone.is_attached and town.get("a", "k") == 1
    town.write("m", put("k", 2))
    town.tick(2 * HEARTBEAT_TICKS)
    assert town.get("a", "k") == 2 and clone.is_idle and town.master.is_idle
    changes = [output.event[3:5] for name, output in town.said if name == "a" and isinstance(output, Changed)]
    assert changes == [(1, 2)]


def test_a_content_that_comes_late_does_not_end_one_that_comes_in_pieces(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.pieces.PIECE_ENTRIES", 1)
    town = Town("a")
    for number in range(5):
        town.master.write(0.0, put(number, "before"))
    town.tick()
    late = old_handshake(town)
    clone = town.clones["a"]
    for number in range(5):
        town.write("m", put(number, "after"))
    town.deaf.add("m")
    town.tick(MASTER_SILENT_TICKS + 1)
    load = Command(0, clone.entity, NO_ENTITY, Load(clone._attempt, 0))
    (first,) = town.master.receive(town.now, load)
    clone.receive(first.command)
    town.tick(MASTER_SILENT_TICKS + 1)  # the others are lost, and it begins anew
    assert clone.receive(late) == [] and not clone.is_attached
    assert {town.get("a", number) for number in range(5)} == {"after"}
    town.deaf.clear()
    town.tick(2 * HEARTBEAT_TICKS)
    assert clone.is_idle and {town.get("a", number) for number in range(5)} == {"after"}


@pytest.mark.parametrize(("bound", "most"), [("MOST_KEPT", 3), ("KEPT_OCTETS", 30)])
def test_clones_that_cannot_follow_are_given_up_when_too_much_is_kept(monkeypatch, bound, most):
    monkeypatch.setattr(f"dafka.overlay.channels.producer.{bound}", most)
    town = Town("a", "b")
    town.tick(HEARTBEAT_TICKS)
    town.deaf.add("b")
    for number in range(10):
        town.write("m", put("k", number))
        town.tick(HEARTBEAT_TICKS)
    assert [clone.endpoint[:1] for clone in town.master.clones] == [b"a"]
    assert town.get("a", "k") == 9
    town.deaf.clear()
    town.tick(MASTER_SILENT_TICKS)
    assert town.get("b", "k") == 9


def test_writes_that_a_clones_master_does_not_have_are_bounded_in_octets(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.writing.KEPT_OCTETS", 5000)
    town = Town("a")
    clone = town.clones["a"]
    actions = [put("k", "x" * 1000), Add("n", 1, types.INTEGER, None, NO_ENTITY), Erase("k", NO_ENTITY)]
    actions += [Clear(NO_ENTITY), put("z", "y" * 3000), put("z", "y" * 1000)]
    for action in actions:
        assert not clone.is_full
        town.write("a", action)
    assert clone.is_full  # nobody has heard of them
    town.deaf.add("m")
    town.tick(HEARTBEAT_TICKS)
    assert clone.is_full
    town.deaf.clear()
    town.tick(2 * HEARTBEAT_TICKS)
    assert clone.is_idle and not clone.is_full
    assert clone._writer._octets == 0 == clone._writer._producer.octets
    assert town.get("m", "z") == "y" * 1000


def test_contents_for_clones_that_never_say_that_they_have_theirs_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.handshakes.SNAPSHOT_ENTRIES", 10)
    master = Master(EntityId(b"m" * 16, 1), Content("st"))
    for key in range(4):
        master.write(0.0, put(str(key), key))
    states = []
    for number in range(12):
        clone = EntityId(b"c" * 16, number)
        for output in master.receive(0.0, Command(0, clone, NO_ENTITY, Nack((0,)))):
            states.append(output.command.content.state)
        if number % 3 == 2:
            master.write(0.0, put("0", number))
    assert len(states) == 12 and len({id(state) for state in states}) == 4  # one for each content
    assert [clone.number for clone in master.clones] == [6, 7, 8, 9, 10, 11]
    assert sorted(states[-1]) == [("0", 8), ("1", 1), ("2", 2), ("3", 3)]


def test_writers_are_remembered_up_to_a_bound(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.master.MOST_WRITERS", 2)
    town = Town("a", "b", "c")
    town.tick()
    for name in "abcabc":
        town.write(name, Add("k", Count(1), types.COUNT, None, NO_ENTITY))
        town.tick(HEARTBEAT_TICKS)
    assert len(town.master._inputs) == 2
