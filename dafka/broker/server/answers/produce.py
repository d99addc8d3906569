"""Produce: hands batches to the broker as views of the request, without decoding them.

Versions 3 to 13 are answered; before there were no record batches. From version 13 on topics have ids instead
of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from kafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.access.rights import Rights
from dafka.broker.codec.produce_request import ABORTABLE, ADDING, ProduceRequest
from dafka.broker.codec.produce_response import Answers
from dafka.broker.interface.broker import BrokerInterface, Produced
from dafka.broker.interface.transactions import Writes
from dafka.broker.server.answers.naming import topic_names
from dafka.hub.turns import Pace, let_go
from dafka.protocol.batch import ATTRIBUTES, LENGTH_END, MAGIC, TRANSACTIONAL_BIT, is_zstd
from dafka.security.acls.terms import Operation, ResourceType

ZSTD = 7  # the first version that allows zstd
LENGTH_START, MAGIC_AT = 8, 16
LEAST_OCTETS = 14  # of a record of the oldest version, behind its length


def produce(
    broker: BrokerInterface, request: ProduceRequest, version: int, rights: Rights | None = None
) -> Answers:
    """Hand the batches to the broker and wait for its outcomes, which are in the order of the request.

    ``rights`` are the client's, None: it may write everything.
    """
    paced: Callable[[Iterable[Any]], Iterable[Any]] = Pace().over if request.is_wide else iter
    names = topic_names(broker, (one for one, _ in paced(request.topics) if isinstance(one, UUID)))
    may_write: set[str] | None = None
    whole = _check_transaction(rights, request, paced)
    if rights is not None:
        topics = {names.get(one, "") if isinstance(one, UUID) else one for one, _ in paced(request.topics)}
        may_write = rights.allowed("Produce", Operation.WRITE, ResourceType.TOPIC, topics)
    if any(some and _is_corrupt(some[0]) for _, parts in request.topics for _, some in paced(parts)):
        whole = Produced(CorruptRecordError)
    batches: dict[tuple[str, int], Sequence[bytes]] = {}
    refused: dict[tuple[str | UUID, int], Produced] = {}
    malformed: dict[tuple[str | UUID, int], str] = {}
    asked: dict[str | UUID, dict[int, tuple[str, int] | None]] = {}
    for topic, partitions in paced(request.topics):
        name = names.get(topic) if isinstance(topic, UUID) else topic
        places = asked.setdefault(topic, {})
        for number, records in paced(partitions):
            if number in places:  # as in Kafka, the last one counts, and there is one answer
                refused.pop((topic, number), None)
                batches.pop((name or "", number), None)
            places[number] = None if name is None else (name, number)
            if whole is not None:
                refused[topic, number] = whole
            elif name is None:
                refused[topic, number] = Produced(UnknownTopicIdError)
            elif may_write is not None and name not in may_write:
                refused[topic, number] = Produced(TopicAuthorizationFailedError)
            else:
                wrong = _wrong(records, version)
                if wrong is None:
                    batches[name, number] = records[:1]
                else:
                    refused[topic, number] = wrong
                    malformed[topic, number] = name
    if malformed:  # as in Kafka a partition that does not exist comes first
        known = broker.metadata(dict.fromkeys(malformed.values())).topics
        for (topic, number), name in paced(malformed.items()):
            if (topic, number) in refused and not 0 <= number < len(known[name].partitions):
                refused[topic, number] = Produced(UnknownTopicOrPartitionError)
    answers: dict[tuple[str, int], Produced] = {}
    if batches:
        if request.transactional_id is None:
            answers = broker.produce(batches, request.acks, from_0=True)
        else:
            answers = broker.produce(
                batches,
                request.acks,
                transactional_id=request.transactional_id,
                writes=_writes(version),
                from_0=True,
            )
    outcomes = {
        topic: [
            (number, refused[topic, number] if (topic, number) in refused else answers[key])
            for number, key in paced(places.items())
        ]
        for topic, places in paced(asked.items())
        if places
    }
    let_go(batches, answers, refused, *asked.values())
    return outcomes


def _wrong(records: Sequence[bytes], version: int) -> Produced | None:
    """Why the records of a partition are refused: they have to be one batch. A cut rest behind it does not
    count, as in Kafka."""
    if not records or records[0][MAGIC_AT : MAGIC_AT + 1] != bytes([MAGIC]):
        return None  # of which the broker tells more
    if version < ZSTD and is_zstd(records[0]):
        return Produced(UnsupportedCompressionTypeError)
    if len(records) == 1:
        return None
    rest = records[1]
    if _is_corrupt(rest):
        return Produced(CorruptRecordError, detail="what follows the record batch is none")
    size = int.from_bytes(rest[LENGTH_START:LENGTH_END], "big", signed=True)
    if len(rest) < LENGTH_END or len(rest) < LENGTH_END + size:
        return None
    return Produced(InvalidRecordError, detail="more than one record batch for a partition")


def _writes(version: int) -> Writes:
    if version >= ADDING:
        return Writes.ADDING
    return Writes.ABORTABLE if version >= ABORTABLE else Writes.ANNOUNCED


def _check_transaction(
    rights: Rights | None, request: ProduceRequest, paced: Callable[[Any], Iterable[Any]]
) -> Produced | None:
    """The error for every partition if a batch is of a transaction in which the client may not write.

    Without a transactional id there is none in which it may.
    """
    name = request.transactional_id
    if name is not None and (
        rights is None
        or rights.may("Produce", Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name, quiet=True)
    ):
        return None
    for _, partitions in request.topics:
        for _, records in paced(partitions):
            if any(map(_is_transactional, records)):
                if name is not None and rights is not None:  # now it counts
                    rights.may("Produce", Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
                return Produced(TransactionalIdAuthorizationFailedError)
    return None


def _is_corrupt(batch: bytes) -> bool:
    """Whether what a partition begins with cannot be records of any version.

    As in Kafka nothing of the request is looked at then.
    """
    if len(batch) < LENGTH_END:
        return False
    size = int.from_bytes(batch[LENGTH_START:LENGTH_END], "big", signed=True)
    return size < LEAST_OCTETS or (len(batch) > MAGIC_AT and batch[MAGIC_AT] > MAGIC)


def _is_transactional(batch: bytes) -> bool:
    return len(batch) > ATTRIBUTES and bool(batch[ATTRIBUTES] & TRANSACTIONAL_BIT)
