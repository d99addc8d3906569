"""Broker's developer guide, "Channels in Data Store Actors" and "Data Stores"."""

from __future__ import annotations

from collections import deque
from itertools import count

import pytest

from dafka.overlay.limits import HEARTBEAT_TICKS, MASTER_SILENT_TICKS, SILENT_TICKS
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Answered, Changed, Publish, clone_topic
from dafka.overlay.values import NAN, Count, Timespan, types
from dafka.overlay.wire.commands import (
    Add,
    Clear,
    Command,
    CumulativeAck,
    Erase,
    Nack,
    Put,
    PutUnique,
    decode_command,
    encode_command,
)
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

SECOND = Timespan(10**9)


class Town:
    """A master and clones that hear each other at once, but for those in ``deaf``."""

    def __init__(self, *clones: str) -> None:
        self.numbers = count(1)
        self.now = 0.0
        self.deaf: set[str] = set()
        self.said: list[tuple[str, object]] = []
        self.master = Master(self.entity("m"), Content("st"))
        self.clones = {name: self.clone(name) for name in clones}
        self._left: deque = deque()

    def entity(self, name: str) -> EntityId:
        return EntityId(name.encode().ljust(16, b"-"), next(self.numbers))

    def clone(self, name: str) -> Clone:
        return Clone(self.entity(name), Content("st"), lambda: self.entity(name))

    def carry(self, name: str, outputs) -> None:
        self._left += [(name, output) for output in outputs]
        while self._left:
            sender, output = self._left.popleft()
            if not isinstance(output, Publish):
                self.said.append((sender, output))
                continue
            command = decode_command(encode_command(output.command))
            receivers = list(self.clones) if output.topic == clone_topic("st") else ["m"]
            for one in receivers:
                endpoint = one.encode().ljust(16, b"-")
                if one == sender or self.deaf & {one, sender} or output.receiver not in (None, endpoint):
                    continue
                known = (
                    self.master.receive(self.now, command)
                    if one == "m"
                    else self.clones[one].receive(command)
                )
                self._left += [(one, following) for following in known]

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.now += 0.1
            self.carry("m", self.master.tick(self.now))
            for name, clone in self.clones.items():
                self.carry(name, clone.tick())

    def write(self, name: str, action) -> None:
        if name == "m":
            self.carry("m", self.master.write(self.now, action))
        else:
            self.carry(name, self.clones[name].write(action))

    def get(self, name: str, key):
        store = self.master if name == "m" else self.clones[name]
        return store.content.get(key) if store.content.exists(key) else None


def put(key, value, expiry=None) -> Put:
    return Put(key, value, expiry, NO_ENTITY)


def test_what_is_written_anywhere_is_everywhere():
    town = Town("a", "b")
    town.write("m", put("k", 1))
    town.tick()
    town.write("a", put("l", 2))
    assert [town.get(name, key) for name in ("m", "a", "b") for key in "kl"] == [1, 2] * 3


def test_what_is_written_before_there_is_a_master_waits():
    town = Town("a")
    town.write("a", put("k", 1))
    assert town.get("m", "k") is None and not town.clones["a"].is_attached
    town.tick()
    assert town.get("m", "k") == town.get("a", "k") == 1


def test_nan_and_infinities_survive():
    town = Town("a")
    town.tick()
    town.write("a", put("nan", NAN))
    town.write("a", put("inf", float("-inf")))
    assert town.get("m", "nan") is NAN and town.get("m", "inf") == float("-inf")


def test_idle_means_for_a_clone_that_the_master_has_its_writes():
    town = Town("a")
    assert not town.clones["a"].is_idle
    town.tick(HEARTBEAT_TICKS)
    assert town.clones["a"].is_idle
    town.write("a", put("k", 1))
    assert not town.clones["a"].is_idle
    town.tick(HEARTBEAT_TICKS)
    assert town.clones["a"].is_idle


def test_idle_means_for_a_master_that_all_clones_have_everything():
    town = Town("a", "b")
    town.tick(HEARTBEAT_TICKS)
    assert town.master.is_idle
    town.deaf.add("b")
    town.write("a", put("k", 1))
    town.tick(HEARTBEAT_TICKS)
    assert town.clones["a"].is_idle and not town.master.is_idle
    town.deaf.clear()
    town.tick(4 * HEARTBEAT_TICKS)
    assert town.master.is_idle and town.get("b", "k") == 1


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


def ack(sender: EntityId, receiver: EntityId, sequence: int):
    return Command(0, sender, receiver, CumulativeAck(sequence))


def test_keys_expire_between_ticks_when_somebody_looks():
    town = Town("a")
    town.tick(10)
    assert town.master.next_expiry is None
    town.write("m", put("late", 1, SECOND))
    town.write("m", put("soon", 1, Timespan(SECOND // 10)))
    soon, late = town.now + 0.1, town.now + 1
    assert town.master.next_expiry == soon
    town.carry("m", town.master.expire(soon - 0.001))
    assert len(town.master.content.keys()) == 2
    town.carry("m", town.master.expire(soon))
    assert town.master.content.keys() == town.clones["a"].content.keys() == {"late"}
    assert town.master.next_expiry == late


def test_expiry_is_counted_by_the_master_alone():
    town = Town("a")
    town.tick()
    town.write("a", put("k", 1, SECOND))
    town.write("a", put("l", 1, SECOND))
    town.write("m", put("l", 2))  # which lasts
    town.tick(9)
    assert town.get("a", "k") == 1
    town.tick(3)
    assert town.get("a", "k") is None and town.get("m", "k") is None and town.get("a", "l") == 2
    event = [output.event for name, output in town.said if name == "a" and isinstance(output, Changed)][-1]
    assert event[0] == "expire"


def test_additions_extend_the_life_of_a_key_without_telling_clones():
    town = Town("a")
    town.tick()
    town.write("a", Add("k", Count(1), types.COUNT, SECOND, NO_ENTITY))
    town.tick(8)
    town.write("a", Add("k", Count(1), types.COUNT, SECOND, NO_ENTITY))
    town.tick(8)
    assert town.get("a", "k") == 2
    town.tick(4)
    assert town.get("a", "k") is None


def test_put_unique_has_one_winner_and_everybody_is_answered():
    town = Town("a", "b")
    town.tick()
    for request, name in enumerate("abm"):
        caller = town.entity(name)
        town.write(name, PutUnique("k", name, None, caller, request, caller))
    answers = [(name, output) for name, output in town.said if isinstance(output, Answered)]
    assert answers == [("a", Answered(0, True)), ("b", Answered(1, False)), ("m", Answered(2, False))]
    assert town.get("b", "k") == "a"


def test_a_question_that_is_repeated_is_answered_as_before():
    town = Town("a")
    town.tick()
    caller = town.entity("a")
    action = PutUnique("k", 1, None, caller, 1, caller)
    for _ in range(2):
        town.write("a", action)
    assert [output for _, output in town.said if isinstance(output, Answered)] == [Answered(1, True)] * 2


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
    monkeypatch.setattr("dafka.overlay.stores.master.SNAPSHOT_ENTRIES", 10)
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
    assert states[-1] == (("0", 8), ("1", 1), ("2", 2), ("3", 3))


def test_writers_are_remembered_up_to_a_bound(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.master.MOST_WRITERS", 2)
    town = Town("a", "b", "c")
    town.tick()
    for name in "abcabc":
        town.write(name, Add("k", Count(1), types.COUNT, None, NO_ENTITY))
        town.tick(HEARTBEAT_TICKS)
    assert len(town.master._inputs) == 2
