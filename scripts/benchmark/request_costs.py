"""Processor time of a broker for each of very many small requests.

Their octets are made here, so that it is known how many there are. Where records are produced beside
consumers that wait, a record is acknowledged and read, and who has read it has asked for the next one, before
that is sent: so two brokers do the same number of everything, however fast they are.
"""

from __future__ import annotations

import selectors
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import cycle
from typing import Any

from broker_costs import processor_seconds
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest
from kafka_clients import SECONDS, new_topic
from processes import Figures

from dafka.broker import connect
from dafka.broker.codec.messages.share_group import ShareFetchRequest, ShareGroupHeartbeatRequest
from dafka.broker.codec.produce_request import encode_produce
from dafka.broker.codec.reader import read_message
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.protocol.batch import with_producer
from dafka.protocol.batch_writer import encode_batch

WARMING = 10_000  # requests before those that are measured: Java compiles what runs often
SECONDS_AT_MOST = 12.0  # for these, and for those that are measured
WAIT_MS = 30_000  # a consumer is answered long before
MAX_BYTES = 1 << 20
VALUE = bytes(100)
PRODUCE_VERSION = 10
NO_ID = uuid.UUID(int=0)
HEARTBEAT_SECONDS = 5.0
NOT_READY = (14, 15, 16)  # a coordinator that is being loaded, or made, or is another broker


class Link:
    """A connection to a broker."""

    def __init__(self, servers: str) -> None:
        host, port = servers.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def receive(self) -> bytes:
        """The next response without its length."""
        octets = bytearray()
        while len(octets) < 4 or len(octets) < 4 + int.from_bytes(octets[:4], "big"):
            some = self.socket.recv(1 << 16)
            if not some:
                raise EOFError("the broker has closed the connection")
            octets += some
        return bytes(octets[4:])

    def exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        return self.receive()

    def ask(self, request: Any, version: int) -> Any:
        """The response as an object."""
        return _decoded(request, version, self.exchange(_encoded(request, version)))

    def ask_until(self, request: Any, version: int, error: Callable[[Any], int]) -> Any:
        """Ask until the broker is ready for it. Raises RuntimeError if the response is another error."""
        give_up = time.monotonic() + SECONDS
        while True:
            answer = self.ask(request, version)
            if not error(answer):
                return answer
            if error(answer) not in NOT_READY or time.monotonic() > give_up:
                raise RuntimeError(f"{type(request).__name__}: error {error(answer)}")
            time.sleep(0.1)


class Fetching:
    """A consumer of one partition, with its offset in each request."""

    version = 11

    def __init__(self, servers: str, topic: str) -> None:
        self.link = Link(servers)
        self._topic = topic
        self._request = _fetch(topic, 0, WAIT_MS)

    def wait(self) -> None:
        self.link.socket.sendall(_encoded(self._request, self.version))

    def read(self) -> int:
        answer = _decoded(self._request, self.version, self.link.receive())
        records = answer.responses[0].partitions[0].records
        if not records:
            return 0  # Apache Kafka does not know the topic yet
        self._request = _fetch(self._topic, int.from_bytes(records[:8], "big") + 1, WAIT_MS)
        return 1


class Sharing:
    """A member of a share group, which accepts what it has got with its next request."""

    version = 1

    def __init__(self, servers: str, group: str, topic: str, topic_id: uuid.UUID, partitions: int) -> None:
        self.link = Link(servers)
        self._group, self._id, self._topic_id = group, str(uuid.uuid4()), topic_id
        self._epoch = self._member_epoch = 0
        self._got: list[tuple[int, int, int]] = []
        self._join(topic, partitions)
        self._added = [(number, ()) for number in range(partitions)]

    def _join(self, topic: str, partitions: int) -> None:
        give_up = time.monotonic() + SECONDS
        while time.monotonic() < give_up:
            assigned = self.beat(self.link, topic).assignment
            if assigned and sum(len(one.partitions) for one in assigned.topic_partitions) == partitions:
                return
            time.sleep(0.05)
        raise TimeoutError(f"a member of a share group did not get {partitions} partitions")

    def beat(self, link: Link, topic: str | None = None) -> Any:
        """The answer to a heartbeat; with the topic to join the group."""
        heartbeat = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._id,
            member_epoch=self._member_epoch,
            rack_id=None,
            subscribed_topic_names=None if self._member_epoch or topic is None else [topic],
        )
        answer = link.ask_until(heartbeat, 1, lambda one: one.error_code)
        self._member_epoch = answer.member_epoch
        return answer

    def wait(self) -> None:
        asked = ShareFetchRequest.FetchTopic
        accepted = asked.FetchPartition.AcknowledgementBatch
        partitions = [
            asked.FetchPartition(partition_index=one, acknowledgement_batches=[]) for one, _ in self._added
        ]
        partitions += [
            asked.FetchPartition(
                partition_index=number,
                acknowledgement_batches=[
                    accepted(first_offset=first, last_offset=last, acknowledge_types=[1])
                ],
            )
            for number, first, last in self._got
        ]
        self._request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._id,
            share_session_epoch=self._epoch,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=50 << 20,
            max_records=500,
            batch_size=500,
            share_acquire_mode=0,
            is_renew_ack=False,
            topics=[asked(topic_id=self._topic_id, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[],
        )
        self._epoch, self._added = self._epoch + 1, []
        self.link.socket.sendall(_encoded(self._request, self.version))

    def read(self) -> int:
        answer = _decoded(self._request, self.version, self.link.receive())
        if answer.error_code:
            raise RuntimeError(f"ShareFetch: error {answer.error_code}")
        self._got = [
            (one.partition_index, some.first_offset, some.last_offset)
            for topic in answer.responses
            for one in topic.partitions
            for some in one.acquired_records or ()
        ]
        return sum(last - first + 1 for _, first, last in self._got)


def produced(
    *, servers: str, pid: int, fetches: int = 0, share_fetches: int = 0, partitions: int = 1, count: int
) -> Figures:
    """Seconds for each record of an idempotent producer, one in a request, beside consumers that wait for it.

    So the seconds hold what it takes to tell them: each ordinary Fetch gets the record, and one of the
    ShareFetches, all of them of one group.
    """
    topic = new_topic(servers, partitions)
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        consumers: list[Fetching | Sharing] = [Fetching(servers, topic) for _ in range(fetches)]
        link = stack.enter_context(Link(servers))
        if share_fetches:
            group = _share_group(servers)
            topic_id = _metadata(link, topic).topic_id
            consumers += [Sharing(servers, group, topic, topic_id, partitions) for _ in range(share_fetches)]
        for one in consumers:
            stack.enter_context(one.link)
            selector.register(one.link.socket, selectors.EVENT_READ, one)
            one.wait()
        time.sleep(1.0 if consumers else 0.0)  # until each of them waits, and its session is open
        wanted = fetches + bool(share_fetches)
        requests = _idempotent(link, topic, partitions)

        members = [one for one in consumers if isinstance(one, Sharing)]
        beaten = time.monotonic()

        def produce() -> None:
            nonlocal beaten
            if members and time.monotonic() > beaten + HEARTBEAT_SECONDS:
                for member in members:
                    member.beat(link)
                beaten = time.monotonic()
            _produced(link.exchange(next(requests)), topic)
            read = 0
            while read < wanted:
                for key, _ in selector.select(SECONDS):
                    read += key.data.read()
                    key.data.wait()

        return (_cost(pid, produce, count),)


def repeated(*, servers: str, pid: int, api: str, count: int) -> Figures:
    """Seconds for each request of one sort, always the same."""
    topic = new_topic(servers, 1)
    with Link(servers) as link:
        produce = _produce(topic, 0, encode_batch([(0, None, VALUE, ())]))
        _produced(link.exchange(produce), topic)
        request = produce if api == "Produce" else REPEATED[api](link, topic)
        answer = link.exchange(request)

        def again() -> None:
            if len(link.exchange(request)) != len(answer):
                raise RuntimeError(f"{api} is answered in another way than before")

        return (_cost(pid, again, count),)


def _cost(pid: int, act: Callable[[], None], count: int) -> float:
    """Seconds of the broker for each time, once it is warm."""
    _repeat(act, WARMING)
    before = processor_seconds(pid)
    done = _repeat(act, count)
    return (processor_seconds(pid) - before) / done


def _repeat(act: Callable[[], None], count: int) -> int:
    """Do it so many times, or fewer if that takes too long; how many times it was done."""
    done, ends = 0, time.monotonic() + SECONDS_AT_MOST
    while done < count and (not done or time.monotonic() < ends):
        act()
        done += 1
    return done


# -- requests --------------------------------------------------------------------------------------


def _idempotent(link: Link, topic: str, partitions: int) -> Iterator[bytes]:
    """Produces of a record each, for one partition after the other."""
    asked = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    given = link.ask_until(asked, 4, lambda one: one.error_code)
    batch = encode_batch([(int(1000 * time.time()), None, VALUE, ())])
    sequences = [0] * partitions
    for number in cycle(range(partitions)):
        content = with_producer(batch, given.producer_id, given.producer_epoch, sequences[number])
        sequences[number] += 1
        yield _produce(topic, number, content)


def _produce(topic: str, number: int, batch: bytes) -> bytes:
    """A Produce with acks=all."""
    body = b"".join(encode_produce({(topic, number): batch}, PRODUCE_VERSION, -1, 30_000, None))
    head = b"\0\0" + PRODUCE_VERSION.to_bytes(2, "big") + (1).to_bytes(4, "big") + b"\0\5bench\0"
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def _produced(answer: bytes, topic: str) -> None:
    """Raise RuntimeError if it is not the response to a Produce that succeeded."""
    at = 4 + 1 + 1 + 1 + len(topic) + 1 + 4  # correlation, tags, topics, topic, partitions, number
    if error := int.from_bytes(answer[at : at + 2], "big"):
        raise RuntimeError(f"Produce: error {error}")


def _fetch(topic: str, offset: int, wait_ms: int) -> Any:
    part = FetchRequest.FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=MAX_BYTES,
    )
    return FetchRequest(
        cluster_id=None,
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 * MAX_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=NO_ID, partitions=[part])],
        forgotten_topics_data=[],
        rack_id="",
    )


def _fetched(link: Link, topic: str) -> bytes:
    return _encoded(_fetch(topic, 0, 0), Fetching.version)


def _metadata_request(topic: str) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic, topic_id=NO_ID)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def _metadata(link: Link, topic: str) -> Any:
    return link.ask(_metadata_request(topic), 12).topics[0]


def _member(link: Link) -> tuple[str, str, int]:
    """A group with one member; its id and its generation."""
    group = f"group-{uuid.uuid4().hex[:8]}"
    coordinator = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    link.ask_until(coordinator, 4, lambda one: one.coordinators[0].error_code)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")

    def join(member: str) -> Any:
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[protocol],
            reason=None,
        )

    member = link.ask(join(""), 7).member_id  # the answer says to join again with it
    joined = link.ask_until(join(member), 7, lambda one: one.error_code)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=b"")],
    )
    link.ask_until(sync, 5, lambda one: one.error_code)
    return group, member, joined.generation_id


def _heartbeat(link: Link, topic: str) -> bytes:
    group, member, generation = _member(link)
    request = HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=None
    )
    link.ask_until(request, 4, lambda one: one.error_code)
    return _encoded(request, 4)


def _commit(link: Link, topic: str) -> bytes:
    group, member, generation = _member(link)
    committed = OffsetCommitRequest.OffsetCommitRequestTopic
    part = committed.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=0, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=None,
        topics=[committed(name=topic, topic_id=NO_ID, partitions=[part])],
    )
    link.ask_until(request, 8, lambda one: one.topics[0].partitions[0].error_code)
    return _encoded(request, 8)


def _described(link: Link, topic: str) -> bytes:
    return _encoded(_metadata_request(topic), 12)


REPEATED: dict[str, Callable[[Link, str], bytes]] = {
    "Fetch": _fetched,
    "OffsetCommit": _commit,
    "Heartbeat": _heartbeat,
    "Metadata": _described,
}


def _share_group(servers: str) -> str:
    """A share group that reads from the beginning, with its coordinator."""
    group = f"group-{uuid.uuid4().hex[:8]}"
    earliest = ConfigChange("share.auto.offset.reset", ConfigOperation.SET, "earliest")
    connect(servers).call("alter_configs", {Resource(ResourceType.GROUP, group): [earliest]})
    with Link(servers) as link:
        coordinator = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        link.ask_until(coordinator, 4, lambda one: one.coordinators[0].error_code)
    return group


def _encoded(request: Any, version: int) -> bytes:
    request.API_VERSION = version
    request.with_header(1, "bench")
    return bytes(request.encode(version=version, header=True, framed=True))


def _decoded(request: Any, version: int, frame: bytes) -> Any:
    name = type(request).__name__.replace("Request", "Response")
    response = getattr(import_module(type(request).__module__), name)
    return read_message(
        response, version, memoryview(frame), 5 if response.flexible_version_q(version) else 4
    )[0]
