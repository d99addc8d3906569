"""What a master says waits until its backend has what it is about; expiry; bounds."""

from __future__ import annotations

import pytest

from dafka.overlay.limits import COMMIT_ROWS
from dafka.overlay.stores import content as bounds
from dafka.overlay.stores.content import Content, Entry
from dafka.overlay.stores.errors import BackendFailure
from dafka.overlay.stores.expiry import Expiries
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.master import Master
from dafka.overlay.stores.outputs import Answered, Changed, Commit
from dafka.overlay.stores.queries import Operation
from dafka.overlay.values import Timespan, encode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Put, Query
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

ME = EntityId(b"m" * 16, 1)
FAR = 2**60


def put(key, value=1) -> Put:
    return Put(key, value, None, ME)


@pytest.fixture
def master():
    return Master(ME, Content("st"), Journal())


def get(key) -> Query:
    return Query(1, Operation.GET, (key,))


def test_nothing_is_said_before_the_backend_has_it(master):
    (commit,) = master.write(0.0, put("a"))
    assert isinstance(commit, Commit) and list(commit.changes.rows) == [encode("a")]
    assert master.ask(0.0, get("a")) == [] and not master.is_idle
    said = master.committed()
    assert [type(one) for one in said] == [Changed, Answered] and master.is_idle
    assert master.ask(0.0, get("a")) == [Answered(1, 1)]


def test_commands_during_a_commit_are_the_next_one(master):
    master.write(0.0, put("a"))
    assert master.write(0.0, put("b")) == [] and master.write(0.0, put("b", 2)) == []
    changed, commit = master.committed()
    assert changed.event[2] == "a" and [row.value for row in commit.changes.rows.values()] == [encode(2)]
    assert [one.event[:3:2] for one in master.committed()] == [("insert", "b"), ("update", "b")]


def test_a_clear_and_what_comes_behind_it_are_one_commit(master):
    master.write(0.0, put("a"))
    master.content.put("b", 1, None, ME)
    master.content.clear(ME)
    master.content.put("c", 1, None, ME)
    _, commit = master.committed()
    assert commit.changes.cleared and list(commit.changes.rows) == [encode("c")]


def test_a_commit_that_fails_is_kept_and_writes_are_refused_meanwhile(master):
    (commit,) = master.write(0.0, put("a"))
    master.commit_failed("the disk is full")
    for use in (lambda: master.write(0.0, put("b")), lambda: master.ask(0.0, get("a"))):
        with pytest.raises(BackendFailure, match="the disk is full") as caught:
            use()
        assert caught.value.code is ErrorCode.BACKEND_FAILURE
    assert master.retry_commit() == [commit]
    assert len(master.committed()) == 1 and master.failure is None and master.is_idle


def test_a_backend_that_has_enough_to_do_is_full(master):
    for number in range(COMMIT_ROWS + 1):
        assert not master.is_full
        master.write(0.0, put(number))
    assert master.is_full
    master.committed()
    assert not master.is_full


def test_bounds_of_a_store_refuse_what_would_go_beyond(monkeypatch, master):
    monkeypatch.setattr(bounds, "MOST_KEYS", 2)
    monkeypatch.setattr(bounds, "STORE_OCTETS", 60)
    for number in range(2):
        master.write(0.0, put(number))
    with pytest.raises(BackendFailure, match="2 keys"):
        master.write(0.0, put(2))
    with pytest.raises(BackendFailure, match="at most 60"):
        master.write(0.0, put(1, "x" * 60))
    master.write(0.0, put(1, "x"))
    assert len(master.content) == 2


def test_a_key_that_lives_longer_and_longer_is_remembered_once():
    content = Content("st")
    expiries = Expiries(content)
    for second in range(1, 1000):
        content.put("k", second, Timespan(1), ME, deadline=float(second))
        expiries.note(encode("k"), float(second))
        assert len(expiries._heap) == 1
    assert expiries.due(500.0, 10) == []
    assert [entry.value for entry in expiries.due(999.0, 10)] == [999]


def test_deadlines_that_come_and_go_stay_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.expiry._SLACK", 10)
    content = Content("st")
    expiries = Expiries(content)
    for number in range(1000):
        content.put("k", 1, None, ME, deadline=float(FAR - number))
        expiries.note(encode("k"), float(FAR - number))
        assert len(expiries._heap) <= 13
    assert len(expiries.due(FAR, 10)) == 1


def test_deadlines_of_an_earlier_life_are_known():
    content = Content("st")
    content.restore(encode("k"), Entry("k", 1, 5, deadline=3.0))
    master = Master(ME, content)
    assert master.tick(2.9) == []
    assert [one.event[0] for one in master.tick(3.0)] == ["expire"]
    assert content.size == 0 and content.erase("k", NO_ENTITY) is None
