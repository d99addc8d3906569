"""Fetch sessions (KIP-227), as clients see them; the answers were compared with those of Kafka 4."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from broker.server.samples import NO_ID, fetch
from kafka.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    OffsetOutOfRangeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import FetchRequest
from timing import until

from dafka import Broker
from dafka.broker.codec.fetch_request import Asked
from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.broker.server import limits
from dafka.broker.server.fetch_sessions import FetchSessions

VERSIONS = range(7, 19)
BY_ID = 13
NEWEST_BY_NAME = 12
FINAL = -1
HIGHEST = 2**31 - 1

Forgotten = FetchRequest.ForgottenTopic


class Session:
    """A client that fetches one topic in a session; offsets by partition."""

    def __init__(self, wire: WireClient, topic: str = "topic", version: int = NEWEST_BY_NAME, topic_id=NO_ID):
        self.wire = wire
        self.topic = topic
        self.topic_id = topic_id
        self.version = version
        self.id = self.epoch = 0

    def ask(self, offsets: Any = None, forget: Any = (), **options: Any) -> Any:
        """The response to the next request, in which ``offsets`` is what has changed."""
        request = self.request(offsets or {}, forget, **options)
        response = self.wire.ask(request, self.version)
        if response.error_code == 0:
            self.id = response.session_id
            self.epoch += 1
        return response

    def request(
        self, offsets: dict[int, int], forget: Any = (), in_all: int = 50 << 20, **options: Any
    ) -> Any:
        request = fetch(self.topic, *offsets.values(), topic_id=self.topic_id, **options)
        request.max_bytes = in_all
        for part, number in zip(request.topics[0].partitions, offsets, strict=True):
            part.partition = number
        if not offsets:
            request.topics.clear()
        if forget:
            forgotten = Forgotten(topic=self.topic, topic_id=self.topic_id, partitions=list(forget))
            request.forgotten_topics_data.append(forgotten)
        request.session_id, request.session_epoch = self.id, self.epoch
        return request


@pytest.fixture
def session(client: Client, wire: WireClient) -> Session:
    """A topic of four partitions, and a client without a session."""
    client.create("topic", 4)
    return Session(wire)


def told(response: Any) -> list[int]:
    """The partitions of a response, in its order."""
    assert response.error_code == 0
    return [one.partition_index for topic in response.responses for one in topic.partitions]


def only(response: Any) -> Any:
    ((answer,),) = (topic.partitions for topic in response.responses)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_named_once_and_answered_when_they_have_changed(
    client: Client, wire: WireClient, version: int
):
    client.create("topic", 3)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    session = Session(wire, version=version, topic_id=topic_id)
    assert told(session.ask({0: 0, 1: 0, 2: 0})) == [0, 1, 2]
    assert session.id > 0
    assert told(session.ask()) == []
    client.produce("topic", b"a", partition=1)
    response = session.ask()
    assert told(response) == [1]
    if version >= BY_ID:
        assert response.responses[0].topic_id == topic_id
    first = session.id
    # The records are returned until the client fetches from behind them.
    assert bytes(only(session.ask()).records) == bytes(only(response).records)
    assert told(session.ask({1: 1})) == []
    assert session.id == first


def test_a_session_is_not_created_unless_requested(session: Session):
    session.epoch = FINAL
    assert told(session.ask({0: 0, 1: 0})) == [0, 1]
    assert session.id == 0


def test_a_full_fetch_is_answered_with_every_partition_including_errors(session: Session):
    assert sorted(told(session.ask({0: 0, 1: 99, 17: 0}))) == [0, 1, 17]
    assert session.id > 0


def test_partitions_are_added_and_forgotten(client: Client, session: Session):
    session.ask({0: 0})
    assert told(session.ask({1: 0, 2: 0})) == [1, 2]  # new ones are answered even without records
    for number in range(3):
        client.produce("topic", b"a", partition=number)
    assert told(session.ask(forget=[1])) == [0, 2]
    assert told(session.ask({0: 1, 2: 1, 1: 1})) == [1]


def test_a_partition_that_is_added_and_forgotten_at_once_is_forgotten(session: Session):
    session.ask({0: 0})
    assert told(session.ask({1: 0}, forget=[1])) == []


def test_an_unknown_partition_can_be_forgotten(session: Session):
    session.ask({0: 0})
    assert told(session.ask(forget=[3, 99])) == []


def test_a_session_without_partitions_ends(session: Session):
    session.ask({0: 0})
    ended, begun = session.id, time.monotonic()
    assert told(session.ask(forget=[0], wait=60_000)) == []
    assert session.id == 0
    assert time.monotonic() - begun < 50
    session.id = ended
    assert session.ask().error_code == FetchSessionIdNotFoundError.errno


def test_a_fetch_waits_for_partitions_that_only_its_session_names(client: Client, session: Session):
    session.ask({0: 0, 1: 0})
    threading.Timer(0.05, client.produce, ("topic", b"late"), {"partition": 1}).start()
    assert told(session.ask(wait=60_000)) == [1]


def test_a_new_log_start_is_answered(client: Client, session: Session):
    client.produce("topic", b"a")
    session.ask({0: 1, 1: 0})
    assert told(session.ask()) == []
    client.call("delete_records", {("topic", 0): 1})
    response = session.ask()
    assert (told(response), only(response).log_start_offset) == ([0], 1)
    assert told(session.ask()) == []


def test_a_new_log_start_is_answered_soon_while_others_have_records(client: Client, session: Session):
    client.produce("topic", b"read", partition=1)
    session.ask({0: 0, 1: 1})
    client.produce("topic", b"unread", partition=0)
    client.call("delete_records", {("topic", 1): 1})
    until(lambda: sorted(told(session.ask())) == [0, 1])
    until(lambda: told(session.ask()) == [0])


def test_an_error_is_answered_each_time_and_so_is_its_end(client: Client, session: Session):
    session.ask({0: 5, 1: 0})
    for _ in range(2):
        answer = only(session.ask(wait=60_000))
        assert (answer.partition_index, answer.error_code) == (0, OffsetOutOfRangeError.errno)
    answer = only(session.ask({0: 0}))
    assert (answer.partition_index, answer.error_code, answer.high_watermark) == (0, 0, 0)
    assert told(session.ask()) == []


@pytest.mark.parametrize("version", [NEWEST_BY_NAME, 18])
def test_a_topic_that_is_deleted_becomes_an_error(client: Client, session: Session, version: int):
    session.version = version
    session.topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    session.ask({0: 0})
    client.call("delete_topics", ["topic"])
    error = UnknownTopicIdError if version >= BY_ID else UnknownTopicOrPartitionError
    assert only(session.ask()).error_code == error.errno


def test_partitions_take_turns_when_a_response_holds_one_batch(client: Client, session: Session):
    session.ask(dict.fromkeys(range(4), 0))
    for number in range(4):
        client.produce("topic", b"a", partition=number)
    seen = []
    for _ in range(4):
        response = session.ask(in_all=1)
        seen += [one.partition_index for one in response.responses[0].partitions if one.records]
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("session_id", "epoch"), [(0, 1), (17, 1), (17, HIGHEST), (-1, 1), (HIGHEST, -2), (-(2**31), 5)]
)
def test_an_unknown_session_is_refused(session: Session, session_id: int, epoch: int):
    session.id, session.epoch = session_id, epoch
    response = session.ask({0: 0})
    assert response.error_code == FetchSessionIdNotFoundError.errno
    assert (response.session_id, response.responses) == (0, [])


def test_a_wrong_epoch_is_refused_and_changes_nothing(session: Session):
    session.ask({0: 0})
    for wrong in (2, 17, HIGHEST, -2):
        session.epoch = wrong
        response = session.ask({1: 0}, forget=[0])
        assert response.error_code == InvalidFetchSessionEpochError.errno
        assert (response.session_id, response.responses) == (0, [])
    session.epoch = 1
    assert told(session.ask({1: 0})) == [1]


def test_a_repeated_request_is_refused(session: Session):
    session.ask({0: 0})
    again = session.request({})
    assert told(session.ask()) == []
    response = session.wire.ask(again, session.version)
    assert response.error_code == InvalidFetchSessionEpochError.errno


def test_a_full_fetch_ends_the_session_that_it_names(broker: Broker, session: Session):
    session.ask({0: 0})
    ended = session.id
    session.epoch = 0
    assert told(session.ask({1: 0})) == [1]
    assert session.id not in (0, ended)
    assert broker.metrics()["listener_fetch_sessions"] == 1
    session.epoch = FINAL
    session.ask()
    assert session.id == 0
    assert broker.metrics()["listener_fetch_sessions"] == 0


def test_a_session_cannot_mix_names_and_ids(client: Client, session: Session):
    session.topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    for begun, continued in ((12, 13), (13, 12)):
        session.id, session.epoch, session.version = 0, 0, begun
        session.ask({0: 0})
        session.version = continued
        assert session.ask().error_code == FetchSessionTopicIdError.errno
        session.version = begun
        assert told(session.ask()) == []


def test_a_session_continues_in_another_connection(broker: Broker, client: Client, session: Session):
    session.ask({0: 0})
    session.wire.socket.close()
    client.produce("topic", b"a")
    with WireClient(broker) as other:
        session.wire = other
        assert told(session.ask()) == [0]


def test_a_waiting_fetch_is_refused_when_its_session_continues_in_another_connection(
    broker: Broker, client: Client, session: Session
):
    session.ask({0: 0})
    request = session.request({}, wait=60_000)
    waiting = session.wire.send(request, session.version)
    until(lambda: broker.metrics()["listener_requests"] == 2)
    with WireClient(broker) as other:
        going_on = Session(other)
        going_on.id, going_on.epoch = session.id, 2
        assert told(going_on.ask()) == []
        client.produce("topic", b"a")
        response = session.wire.receive(request, session.version, waiting)
        assert response.error_code == InvalidFetchSessionEpochError.errno
        assert told(going_on.ask()) == [0]


def test_unchanged_partitions_take_no_octets_of_a_response(client: Client, wire: WireClient):
    client.create("topic", 2000)
    session = Session(wire)
    assert len(told(session.ask(dict.fromkeys(range(2000), 0)))) == 2000
    wire.send(session.request({}), session.version)
    assert len(wire.receive_frame()) < 50


def test_without_room_the_answer_has_no_session_id(
    monkeypatch: pytest.MonkeyPatch, broker: Broker, client: Client, session: Session
):
    monkeypatch.setattr(limits, "FETCH_SESSIONS", 3)
    sessions = [Session(session.wire) for _ in range(5)]
    for one in sessions:
        assert told(one.ask({0: 0})) == [0]
    assert [one.id > 0 for one in sessions] == [True, True, True, False, False]
    assert broker.metrics()["listener_fetch_sessions"] == 3
    assert told(sessions[0].ask()) == []


def test_a_session_that_grows_beyond_the_limit_ends(monkeypatch: pytest.MonkeyPatch, session: Session):
    monkeypatch.setattr(limits, "FETCH_SESSION_PARTITIONS", 3)
    session.ask({0: 0, 1: 0, 2: 0})
    assert session.ask({3: 0}).error_code == FetchSessionIdNotFoundError.errno
    session.id = session.epoch = 0
    assert told(session.ask({0: 0, 1: 0, 2: 0, 3: 0})) == [0, 1, 2, 3]
    assert session.id == 0


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> FetchSessions:
    """Room for three sessions of ten partitions in all."""
    monkeypatch.setattr(limits, "FETCH_SESSIONS", 3)
    monkeypatch.setattr(limits, "FETCH_SESSION_PARTITIONS", 10)
    return FetchSessions(clock)


def begin(sessions: FetchSessions, partitions: int, topic: str = "topic") -> int:
    asked: list[Asked] = [((topic, number), FetchFrom(0, 1)) for number in range(partitions)]
    return sessions.begin(False, asked, [(place, Fetched(None, 0, 0, [])) for place, _ in asked])


def is_kept(sessions: FetchSessions, session_id: int) -> bool:
    try:
        sessions.resume(session_id, 0, False, [], [])
    except InvalidFetchSessionEpochError:
        return True
    except FetchSessionIdNotFoundError:
        return False
    raise AssertionError("no session goes on at epoch 0")


def test_an_unused_session_is_evicted(sessions: FetchSessions, clock: Clock):
    unused, used, other = (begin(sessions, 1) for _ in range(3))
    clock.now += limits.FETCH_SESSION_SECONDS
    assert begin(sessions, 1) == 0
    sessions.resume(used, 1, False, [], [])
    sessions.resume(other, 1, False, [], [])
    clock.now += 1
    assert begin(sessions, 1) > 0
    assert [is_kept(sessions, one) for one in (unused, used, other)] == [False, True, True]


def test_an_old_session_is_evicted_only_for_a_larger_one(sessions: FetchSessions, clock: Clock):
    small, large, young = begin(sessions, 2), begin(sessions, 3), 0
    clock.now += limits.FETCH_SESSION_SECONDS + 1
    sessions.resume(small, 1, False, [], [])
    sessions.resume(large, 1, False, [], [])
    young = begin(sessions, 1)
    assert begin(sessions, 2) == 0
    assert begin(sessions, 3) > 0
    assert [is_kept(sessions, one) for one in (small, large, young)] == [False, True, True]


def test_the_partitions_of_all_sessions_are_limited(sessions: FetchSessions, clock: Clock):
    first = begin(sessions, 6)
    assert begin(sessions, 11) == begin(sessions, 5) == 0
    assert begin(sessions, 4) > 0
    sessions.close(first)
    assert begin(sessions, 6) > 0
    assert len(sessions) == 2


def test_an_overlong_name_counts_by_its_length(sessions: FetchSessions):
    assert begin(sessions, 1, "n" * 30_000) == 0
    assert begin(sessions, 10, "n" * 249) > 0


def test_the_epoch_after_the_highest_is_one(sessions: FetchSessions):
    session_id = begin(sessions, 1)
    session = sessions.resume(session_id, 1, False, [], [])
    session.epoch = HIGHEST
    assert sessions.resume(session_id, HIGHEST, False, [], []).epoch == 1
