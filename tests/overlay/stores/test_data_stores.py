"""Broker's developer guide, "Data Stores"."""

from __future__ import annotations

from overlay.stores.town import Town, put

from dafka.overlay.limits import HEARTBEAT_TICKS
from dafka.overlay.stores.outputs import Answered, Changed
from dafka.overlay.values import NAN, Count, Timespan, types
from dafka.overlay.wire.commands import (
    Add,
    PutUnique,
)
from dafka.overlay.wire.primitives import NO_ENTITY

SECOND = Timespan(10**9)


def test_entries_written_anywhere_are_everywhere():
    town = Town("a", "b")
    town.write("m", put("k", 1))
    town.tick()
    town.write("a", put("l", 2))
    assert [town.get(name, key) for name in ("m", "a", "b") for key in "kl"] == [1, 2] * 3


def test_entries_written_before_there_is_a_master_wait():
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
