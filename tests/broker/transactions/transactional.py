"""Transactional producers at the level of the protocol, and readers of committed records."""

from __future__ import annotations

from broker.clients import MEGABYTE, Client, batch

from dafka.broker.interface.broker import CommittedOffset, Fetched, FetchFrom, Produced
from dafka.broker.interface.transactions import Writes
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_control import commits
from dafka.protocol.batch_reader import decode_batch


class Producer:
    """A transactional producer at the level of the protocol.

    ``raising``: of the second part of KIP-890. Its first writes add their partitions, and its ends raise its
    epoch.
    """

    def __init__(
        self, client: Client, transactional_id: str = "x", timeout: float = 60.0, raising: bool = False
    ) -> None:
        self.client = client
        self.raising = raising
        self.id = transactional_id
        self.timeout = timeout
        self.sequences: dict[tuple[str, int], int] = {}
        self.init()

    def init(self) -> None:
        identity = self.client.call("init_producer_id", self.id, self.timeout)
        assert identity.error is None
        _, self.producer_id, self.epoch = identity
        self.sequences = {}

    @property
    def writes(self) -> Writes:
        return Writes.ADDING if self.raising else Writes.ANNOUNCED

    @property
    def who(self) -> tuple[str, int, int]:
        return self.id, self.producer_id, self.epoch

    def add(self, *partitions: tuple[str, int]) -> object:
        answers = self.client.call("add_partitions_to_transaction", *self.who, partitions)
        assert list(answers) == list(partitions)
        (error,) = set(answers.values())
        return error

    def write(self, value: bytes, partition: tuple[str, int] = ("t", 0)) -> Produced:
        """Send without adding the partition."""
        sequence = self.sequences.get(partition, 0)
        content = with_producer(batch(value), self.producer_id, self.epoch, sequence, transactional=True)
        produced = self.client.call(
            "produce", {partition: [content]}, transactional_id=self.id, writes=self.writes
        )
        answer = produced[partition]
        if answer.error is None:
            self.sequences[partition] = sequence + 1
        return answer

    def send(self, value: bytes, partition: tuple[str, int] = ("t", 0)) -> Produced:
        assert self.raising or self.add(partition) is None
        answer = self.write(value, partition)
        assert answer.error is None
        return answer

    def end(self, commit: bool) -> object:
        if not self.raising:
            return self.client.call("end_transaction", *self.who, commit)
        identity = self.client.call("end_transaction_with_epoch", *self.who, commit)
        if identity.error is None:
            _, self.producer_id, self.epoch = identity
            self.sequences = {}
        return identity.error

    def commit(self) -> None:
        assert self.end(True) is None

    def abort(self) -> None:
        assert self.end(False) is None

    def send_offset(self, offset: int, group: str = "g", **member: object) -> object:
        assert self.raising or self.client.call("add_offsets_to_transaction", *self.who, group) is None
        return self.commit_offset(offset, group, **member)

    def commit_offset(self, offset: int, group: str = "g", **member: object) -> object:
        offsets = {("t", 0): CommittedOffset(offset)}
        answers = self.client.call(
            "commit_transaction_offsets", *self.who, group, offsets, **member, writes=self.writes
        )
        return answers["t", 0]


def fetch(
    client: Client, offset: int = 0, partition: int = 0, wait: float = 0.0, max_bytes: int = MEGABYTE
) -> Fetched:
    """Fetch with read_committed."""
    wanted = {("t", partition): FetchFrom(offset, max_bytes)}
    limits = {"max_wait": wait, "min_bytes": 1, "max_bytes": max_bytes}
    return client.call("fetch", wanted, **limits, read_committed=True)["t", partition]


def committed(client: Client, partition: int = 0) -> list[bytes | None]:
    """The values that a read_committed reader sees: filters aborted ones as Kafka's clients do."""
    return visible(fetch(client, partition=partition))


def visible(fetched: Fetched) -> list[bytes | None]:
    assert fetched.error is None
    begins = sorted((first, producer_id) for producer_id, first in fetched.aborted)
    aborting: set[int] = set()
    values: list[bytes | None] = []
    for content in fetched.batches:
        header = read_header(content)
        while begins and begins[0][0] <= header.base_offset:
            aborting.add(begins.pop(0)[1])
        if header.is_control:
            if not commits(content):
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            values += decode_batch(content).values
    return values


def everything(client: Client, partition: int = 0, offset: int = 0) -> list[bytes | None]:
    fetched = client.fetch("t", offset, partition=partition)
    return [
        value
        for content in fetched.batches
        if not read_header(content).is_control
        for value in decode_batch(content).values
    ]


def state_of(client: Client, transactional_id: str = "x") -> str:
    return client.call("describe_transactions", [transactional_id])[transactional_id].state


def offset_of(client: Client, group: str = "g", **options: object) -> int | None:
    found = client.call("fetch_offsets", group, [("t", 0)], **options)
    return found["t", 0].offset if found else None
