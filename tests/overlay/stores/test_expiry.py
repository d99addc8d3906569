"""Deadlines of keys: which are due, and what becomes of those that mean nothing any more."""

from __future__ import annotations

import random

from dafka.overlay.stores.content import Content
from dafka.overlay.stores.expiry import Expiries
from dafka.overlay.values import encode
from dafka.overlay.wire.primitives import NO_ENTITY


def put(content: Content, expiries: Expiries, key: int, deadline: float) -> None:
    content.put(key, 0, None, NO_ENTITY, deadline)
    expiries.note(encode(key), deadline)


def test_keys_are_due_when_their_last_deadline_has_come():
    chance, content = random.Random(7), Content("st")
    expiries, deadlines = Expiries(content), dict[int, float]()
    for _ in range(30_000):
        key, deadline = chance.randrange(500), float(chance.randrange(100))
        put(content, expiries, key, deadline)
        deadlines[key] = deadline
    for now in range(100):
        due = {entry.key for entry in expiries.due(now, 10_000)}
        assert due == {key for key, deadline in deadlines.items() if deadline == now}


def test_as_many_are_due_at_once_as_are_wanted():
    content = Content("st")
    expiries = Expiries(content)
    for key in range(10):
        put(content, expiries, key, 1.0)
    assert [len(expiries.due(2.0, 4)) for _ in range(4)] == [4, 4, 2, 0]


def test_deadlines_of_before_a_clear_end_little_by_little():
    content = Content("st")
    expiries = Expiries(content)
    for key in range(20_000):
        put(content, expiries, key, 1000.0)
    for _ in content.clear(NO_ENTITY):
        pass

    def left() -> int:
        return sum(map(len, expiries._gone))

    put(content, expiries, 20_000, 1000.0)
    assert expiries.next == 1000.0
    before = left()
    assert before > 30_000
    for _ in range(150):
        put(content, expiries, 20_000, 1000.0)
        assert expiries.due(0.0, 100) == []
        assert before - 2000 <= left() <= before
        before = left()
    assert before == 0
    assert [entry.key for entry in expiries.due(1000.0, 100)] == [20_000]
