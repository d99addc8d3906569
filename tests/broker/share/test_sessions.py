"""Share sessions are bounded by the partitions of all of them, whatever ends while partitions are added."""

from __future__ import annotations

from uuid import UUID

import gevent
import pytest
from kafka.errors import ShareSessionNotFoundError

from dafka.broker.interface.share import SharePlace, ShareSessionLimitReachedError
from dafka.broker.share import sessions as share_sessions
from dafka.broker.share.sessions import ShareSessions
from dafka.hub import limits

KEY, OTHER = ("group", "a"), ("group", "b")


def places(begin: int, end: int) -> list[SharePlace]:
    return [(UUID(int=7), number) for number in range(begin, end)]


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> ShareSessions:
    monkeypatch.setattr(share_sessions, "SESSION_PARTITIONS", 500)
    return ShareSessions(lambda: 10)


def test_all_partitions_together_are_bounded(sessions: ShareSessions) -> None:
    first = sessions.open(KEY, None, places(0, 300))
    with pytest.raises(ShareSessionLimitReachedError):
        sessions.open(OTHER, None, places(0, 201))
    second = sessions.open(OTHER, None, places(0, 100))
    sessions.change(second, places(0, 200), ())  # half of them are there already
    with pytest.raises(ShareSessionLimitReachedError):
        sessions.change(second, places(200, 201), ())
    sessions.change(first, (), places(0, 50))
    sessions.change(second, places(200, 250), ())
    assert list(second.places) == places(0, 250)
    assert sessions.close(KEY) is first
    assert len(sessions.open(KEY, None, places(0, 250)).places) == 250


def test_partitions_added_to_a_session_that_ends_meanwhile_do_not_count(
    sessions: ShareSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PACE_SECONDS", 0.0)  # a pause after each 64 of them
    session = sessions.open(KEY, None, places(0, 10))
    adding = gevent.spawn(lambda: sessions.change(session, places(0, 400), ()))
    gevent.sleep(0)
    assert 10 < len(session.places) < 400
    assert sessions.close(KEY) is session
    with pytest.raises(ShareSessionNotFoundError):
        adding.get()
    assert len(sessions.open(KEY, None, places(0, 500)).places) == 500  # all of the room is there
