"""A share group while something else waits: no record gets lost or belongs to two members."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gevent
import kafka.errors as errors_
import pytest
from broker.clients import Client, batch
from broker.share.member import ACCEPT, RELEASE, Member, acquired, errors
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.share import ShareFetchLimits, SharePlace, ShareRequest
from dafka.broker.share.delivery import Deliveries
from dafka.broker.share.fetching import ShareFetch
from dafka.broker.share.states import SHARE
from dafka.commit.writer import Writer
from dafka.hub import limits as hub_limits
from dafka.hub.hub import get_hub

GROUP = "queue"


@pytest.fixture
def client() -> Iterator[Client]:
    with Broker() as broker:
        client = Client(broker)
        resource = Resource(ResourceType.GROUP, GROUP)
        client.call("alter_configs", {resource: [ConfigChange("share.auto.offset.reset", 0, "earliest")]})
        client.create("jobs")
        yield client


def joined(client: Client) -> Member:
    member = Member(client.call, GROUP, "jobs")
    assert member.heartbeat().error is None
    return member


def test_records_acquired_before_an_error_are_delivered(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = joined(client)
    for _ in range(2):
        client.produce("jobs", b"x" * 300_000)
    read = Deliveries.read

    def failing(self: Deliveries, delivery: Any, offset: int, *rest: Any) -> Any:
        return (errors_.KafkaStorageError, [], []) if offset else read(self, delivery, offset, *rest)

    monkeypatch.setattr(Deliveries, "read", failing)
    assert acquired(member.fetch()) == [(0, 0, 1)]
    (records,) = member.fetch().partitions.values()
    assert records.error is errors_.KafkaStorageError


def test_a_group_that_has_members_again_keeps_what_they_hold(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = joined(client)
    client.produce("jobs", b"a")
    assert acquired(first.fetch()) == [(0, 0, 1)]
    put = Writer.put
    held: list[Callable[[], None]] = []

    def hold(writer: Writer, values: Any, done: Any, *rest: Any) -> None:
        held.append(lambda: put(writer, values, done, *rest))

    monkeypatch.setattr(Writer, "put", hold)
    first.heartbeat(-1)  # the record is given back, which is written
    until(lambda: held)
    monkeypatch.setattr(Writer, "put", put)
    second = joined(client)
    assert acquired(second.fetch()) == [(0, 0, 2)]
    for write in held:
        get_hub().run(write)
    client.produce("jobs", b"b")  # is written behind it
    assert acquired(joined(client).fetch()) == [(1, 1, 1)]
    assert errors(second.acknowledge((0, 0, ACCEPT))) == [None]


def test_a_fetch_whose_connection_is_gone_takes_nothing(client: Client) -> None:
    gone, other = joined(client), joined(client)
    connection = object()
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(gone.fetch(epoch=0, max_wait=20.0, connection=connection))
    )
    waiting.start()

    def ends() -> bool:
        client.call("forget_connection", connection)
        waiting.join(0.05)
        return not waiting.is_alive()

    until(ends)
    assert found[0].error is errors_.ShareSessionNotFoundError
    client.produce("jobs", b"a")
    assert acquired(other.fetch()) == [(0, 0, 1)]


class Line:
    """A share partition that is gone, as a fetch sees it."""

    gone, machine, settings = True, None, None

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ends_at = ""

    def next_offset(self, _: object) -> None:
        return None

    def is_worth_a_look(self, *_: object) -> bool:
        return True

    def leave(self, _: object) -> None:
        self._called("leave")

    def offer(self) -> None:
        self._called("offer")

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if what == self.ends_at:
            gevent.getcurrent().kill(block=False)


@pytest.mark.parametrize("where", ["leave", "offer"])
def test_a_fetch_that_is_ended_while_it_leaves_the_lines_leaves_all_and_offers_all(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is when its client disconnects; else it would be offered what others wait for."""
    monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)
    lines: Any = [Line() for _ in range(3 * hub_limits.PACE_ITEMS)]
    lines[0].ends_at = where

    def run() -> object:
        deliveries: Any = SimpleNamespace(clock=time.monotonic)
        fetch = ShareFetch(deliveries, "m", ShareFetchLimits(0.0, 1, 2**20, 500, 500, True))
        for line in lines:
            fetch.offered(line)
        opened = {line: (uuid.UUID(int=0), 0) for line in lines}
        green = gevent.spawn(fetch.run, opened, (), tuple, False)
        green.join()
        return green.value

    assert isinstance(get_hub().run(run), gevent.GreenletExit)
    assert [line.calls for line in lines] == [["leave", "offer"]] * len(lines)


@pytest.mark.parametrize(
    "method, arguments, again",
    [
        ("alter_share_offsets", (GROUP, {("jobs", 0): 1}), (1, 2)),
        ("delete_share_offsets", (GROUP, ["jobs"]), (0, 2)),
        ("delete_groups", ([GROUP],), (0, 2)),
    ],
)
def test_a_member_that_joins_while_offsets_are_changed_has_to_try_again(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    arguments: Any,
    again: tuple[int, int],
) -> None:
    first = joined(client)
    for _ in range(3):
        client.produce("jobs", b"a")
    assert acquired(first.fetch())
    first.heartbeat(-1)
    add = Writer._add
    held: list[Callable[[], None]] = []

    def hold(writer: Writer, change: Any) -> None:
        if any(key[0] == SHARE for key in getattr(change, "values", ())):
            held.append(lambda: add(writer, change))
        else:
            add(writer, change)

    monkeypatch.setattr(Writer, "_add", hold)
    changing = threading.Thread(target=client.call, args=(method, *arguments))
    changing.start()
    until(lambda: held)
    late = Member(client.call, GROUP, "jobs")
    assert late.heartbeat().error is errors_.CoordinatorLoadInProgressError
    answer = client.call(method, *arguments)  # another one of the same kind
    error = answer[GROUP] if method == "delete_groups" else answer.error
    assert error is errors_.CoordinatorLoadInProgressError
    monkeypatch.setattr(Writer, "_add", add)
    for write in held:
        get_hub().run(write)
    changing.join()
    assert late.heartbeat().error is None
    ((*offsets, _),) = acquired(late.fetch())
    assert tuple(offsets) == again


def test_others_than_members_read_nothing_while_offsets_are_altered(client: Client) -> None:
    member = joined(client)
    client.produce("jobs", b"a", b"b", b"c")
    assert acquired(member.fetch()) == [(0, 2, 1)]
    member.heartbeat(-1)
    stranger = Member(client.call, GROUP, "jobs")
    stranger.places = member.places
    groups = get_hub().run(lambda: client.core._share_calls._groups)
    with groups.nobody_joins(GROUP):
        until(lambda: not get_hub().run(client.core._share_calls._deliveries.of_group, GROUP))
        (refused,) = stranger.fetch().partitions.values()
        assert refused.error is errors_.UnknownTopicOrPartitionError
    stranger.session = 0
    assert acquired(stranger.fetch()) == [(0, 2, 2)]


def test_a_session_keeps_nothing_of_partitions_that_a_later_request_forgets(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = joined(client)
    unknown = [(uuid.UUID(int=7), number) for number in range(1000)]
    sessions = client.core._share_calls._sessions
    bounds = ShareFetchLimits(0.0, 1, 1 << 20, 500, 500, False)

    def fetch(epoch: int, added: list[SharePlace], forgotten: list[SharePlace]) -> Any:
        request = ShareRequest(GROUP, member.member_id, epoch, {}, False)
        return client.core.share_fetch(request, added, forgotten, bounds)

    def overlapping() -> list[int]:
        reading = gevent.spawn(fetch, 0, unknown, [])
        while not any(session.fetches for session in sessions._sessions.values()):
            gevent.sleep(0)
        forgetting = gevent.spawn(fetch, 1, [], unknown)
        return [len(green.get().partitions) for green in (reading, forgetting)]

    monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)  # a pause after each 64 of them
    assert get_hub().run(overlapping) == [1000, 0]
    (session,) = sessions._sessions.values()
    assert not session.places
    assert not session.owed


def test_a_fetch_looks_first_without_what_it_sets_free_however_late_it_looks(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = joined(client)
    for _ in range(3):
        client.call("produce", {("jobs", 0): [batch(b"a")]})
    assert acquired(member.fetch(records=2)) == [(0, 1, 1)]
    run = ShareFetch.run

    def late(fetch: ShareFetch, *arguments: Any) -> Any:
        (delivery,) = client.core._share_calls._deliveries.of_group(GROUP)
        delivery.saved.idle()
        return run(fetch, *arguments)

    monkeypatch.setattr(ShareFetch, "run", late)
    assert acquired(member.fetch((0, 1, RELEASE))) == [(2, 2, 1)]
    assert acquired(member.fetch()) == [(0, 1, 2)]
