"""Clones of version 1 are given large contents over many ticks, as they were behind one event."""

from __future__ import annotations

import pytest

from dafka.overlay.channels.messages import Nack
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Publish, to_command
from dafka.overlay.wire.commands import AckClone, Clear, Erase, Put, decode_command, encode_command
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

TICKS = 70  # that a content takes


@pytest.fixture
def master(monkeypatch) -> Master:
    monkeypatch.setattr("dafka.overlay.stores.handshakes.SNAPSHOT_AT_ONCE", 10)
    made = Master(EntityId(b"m" * 16, 1), Content("st"))
    for number in range(100):
        put(made, number, 0)
    return made


def put(master: Master, key: int, value: int) -> None:
    master.write(0.0, Put(key, value, None, NO_ENTITY))


def clone(number: int) -> EntityId:
    return EntityId(b"c" * 16, number)


def ask(master: Master, number: int, *sequences: int) -> list[object]:
    """What a clone is told that asks for the handshake, or for these events."""
    nack = Nack(sequences or (0,))
    return told(master.receive(0.0, to_command(clone(number), master.entity, nack)), number)


def told(outputs: list, number: int) -> list[object]:
    return [
        decode_command(encode_command(one.command)).content
        for one in outputs
        if isinstance(one, Publish) and one.receiver == clone(number).endpoint
        if one.command.receiver in (clone(number), NO_ENTITY)
    ]


def given(master: Master, number: int, ticks: int = TICKS) -> list[AckClone]:
    """The contents that a clone is given in so many ticks."""
    found = [one for _ in range(ticks) for one in told(master.tick(0.0), number)]
    return [one for one in found if isinstance(one, AckClone)]


def test_a_large_content_is_given_as_it_was_and_the_events_since_then_can_be_had(master):
    before = sorted(master.content)
    assert ask(master, 1) == []
    assert not master.is_idle
    put(master, 5, 1)
    master.write(0.0, Erase(7, NO_ENTITY))
    (content,) = given(master, 1)
    assert sorted(content.state) == before
    events = ask(master, 1, content.offset + 1, content.offset + 2)
    assert events == [Put(5, 1, None, NO_ENTITY), Erase(7, NO_ENTITY)]


def test_a_clone_that_asks_again_gets_it_once_until_it_was_made_and_the_same_afterwards(master):
    assert ask(master, 1) == []
    assert ask(master, 1) == []
    (content,) = given(master, 1)
    assert ask(master, 1) == [content]
    assert given(master, 1) == []


def test_clones_that_come_behind_the_same_event_get_the_same_content(master):
    assert ask(master, 1) == ask(master, 2) == []
    outputs = [output for _ in range(TICKS) for output in master.tick(0.0)]
    (one,), (other,) = (
        [content for content in told(outputs, number) if isinstance(content, AckClone)] for number in (1, 2)
    )
    assert one == other
    assert ask(master, 3) == [one]  # nothing has changed since


def test_a_clone_that_comes_behind_another_event_asks_again(master):
    ask(master, 1)
    put(master, 5, 1)
    assert ask(master, 2) == []
    assert clone(2) not in master.clones
    assert len(given(master, 1)) == 1
    assert ask(master, 2) == []
    (content,) = given(master, 2)
    assert (5, 1) in content.state


def test_clones_begin_anew_when_the_content_is_cleared_meanwhile(master):
    ask(master, 1)
    master.tick(0.0)
    master.write(0.0, Clear(NO_ENTITY))
    assert master.content.watcher is None
    assert given(master, 1) == []
    (content,) = ask(master, 1)
    assert content.state == ()


def test_a_clone_that_has_gone_meanwhile_is_given_nothing(master):
    ask(master, 1)
    ask(master, 1, 3, 3)  # it says what no clone says, and is dropped
    assert master.clones == []
    assert given(master, 1) == []


def test_a_small_content_is_given_at_once(master):
    for number in range(95):
        master.write(0.0, Erase(number, NO_ENTITY))
    (content,) = ask(master, 1)
    assert sorted(content.state) == [(number, 0) for number in range(95, 100)]
