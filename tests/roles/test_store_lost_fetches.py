"""Fetches of very many partitions that were lost are repeated some at a time, whatever comes in between."""

from __future__ import annotations

from roles.storing import TOPIC, direct, store

from dafka.protocol.commands import Fetch, Head
from dafka.roles.limits import Limits
from dafka.roles.store import StoreRole

ADDRESSES = [b"%d" % number * 32 for number in range(5)]


def lost() -> StoreRole:
    """It has asked for a record of each of five partitions, which are very many, and nothing has come."""
    role = store(limits=Limits(due_at_once=2))
    asked = [out for one in ADDRESSES for out in role.receive(0.0, Head(one, TOPIC, 0))]
    assert fetched(asked) == ADDRESSES
    return role


def fetched(outputs) -> list[bytes]:
    return [out.partition for out in outputs if isinstance(out, Fetch)]


def test_all_of_them_are_repeated_some_at_a_time():
    pieces = [fetched(outputs) for outputs in lost().ticking(1.3)]
    assert [len(one) for one in pieces] == [2, 2, 1]
    assert sorted(one for piece in pieces for one in piece) == ADDRESSES


def test_one_tick_repeats_all_of_them():
    assert sorted(fetched(lost().tick(1.3))) == ADDRESSES


def test_partitions_that_are_answered_or_deleted_between_two_pieces_are_not_asked_for():
    role = lost()
    pieces = role.ticking(1.3)
    first = fetched(next(pieces))
    gone, answered, left = (one for one in ADDRESSES if one not in first)
    role.forget(TOPIC, [gone])
    role.receive_run(1.3, direct(0, b"0", address=answered))
    role.receive(1.3, Head(b"N" * 32, TOPIC, 0))  # a new one is asked for at once
    assert [one for outputs in pieces for one in fetched(outputs)] == [left]
    assert fetched(role.tick(2.6)) == [b"N" * 32]  # the others have pauses now


def test_a_tick_that_is_given_up_leaves_the_others_to_the_next_one():
    role = lost()
    first = fetched(next(role.ticking(1.3)))
    assert sorted(first + fetched(role.tick(1.4))) == ADDRESSES
