"""A broker interface with faults that a plan or a seed decides, around a real one. Hub side.

Clients of a broker in this process get a :class:`ChaoticClient` each (``for_client``), and so does each
connection of the listener. So clients of both kinds meet the same faults at the same places: a lost answer is
an error of the network for a client of this process, and the end of its connection for one over TCP.

The calls at a point are counted here, and nowhere else; :class:`~dafka.testing.torture.plan.Faults` says what
each of them meets. A fault that makes no sense for a call (replicas, for a producer that does not wait for
them) does not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import gevent
from kafka.errors import (
    KafkaStorageError,
    NetworkExceptionError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)

from dafka.broker.interface.broker import (
    NO_OFFSET,
    BrokerInterface,
    Error,
    Fetched,
    FetchFrom,
    Produced,
    TopicPartition,
)
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.protocol.batch import BatchError, read_header
from dafka.testing.torture import others
from dafka.testing.torture.coordinated import CoordinatorCalls
from dafka.testing.torture.deciding import (
    BEFORE,
    BEHIND,
    Calls,
    Chaos,
    CutError,
    Link,
    Ranges,
)
from dafka.testing.torture.kinds import FETCH, KINDS, PRODUCE

SLOW_SECONDS = 0.05  # that a slow answer takes
REFUSALS = 2  # connections that are closed at once after a fault "refused"

NOT_WRITTEN: Mapping[str, Error] = {
    "not_leader": NotLeaderForPartitionError,
    "not_enough_replicas": NotEnoughReplicasError,
    "full_disk": KafkaStorageError,
    "denied": TopicAuthorizationFailedError,
}
WRITTEN: Mapping[str, Error] = {
    "not_enough_replicas_after_append": NotEnoughReplicasAfterAppendError,
    "timed_out": RequestTimedOutError,
}
OF_REPLICAS = {"not_enough_replicas", *WRITTEN}  # only with acks=all

T = TypeVar("T")


class ChaoticBroker:
    """A broker whose clients meet faults; calls of its own methods do not."""

    def __init__(self, broker: Any, chaos: Chaos) -> None:
        self.inner = broker
        self.chaos = chaos
        chaos.broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def for_client(self, client_id: str) -> BrokerInterface:
        return ChaoticClient(self.chaos, self.chaos.name(client_id))  # type: ignore[return-value]


class ChaoticClient(CoordinatorCalls):
    """The broker as one client calls it. ``link`` is its connection; None for a client in this process, which
    waits while the broker restarts, as one that connects again."""

    def __init__(self, chaos: Chaos, name: str, link: Link | None = None) -> None:
        self._chaos = chaos
        self.link = link
        self.name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._broker, name)
        if self.link is not None or not callable(attribute) or name == "time":
            return attribute

        def again(*args: Any, **options: Any) -> Any:
            return self._chaos.repeated(lambda: getattr(self._broker, name)(*args, **options))

        return again

    @property
    def _broker(self) -> Any:
        return self._chaos.broker

    @property
    def running(self) -> bool:
        return bool(self._chaos.restarting or self._broker.running)

    # -- records --------------------------------------------------------------------------------

    def produce(
        self, batches: Mapping[TopicPartition, Sequence[bytes]], acks: int = -1, **options: Any
    ) -> dict[TopicPartition, Produced]:
        calls = Calls(self._chaos, self.name, PRODUCE, [key for key, some in batches.items() if some])
        calls.drop(lambda kind: (kind in OF_REPLICAS and acks != -1) or (not acks and kind not in BEFORE))
        whole = calls.whole()
        if whole is not None:
            lost = Produced(NetworkExceptionError if acks else None, detail="the connection ended")

            def carry_out() -> dict[TopicPartition, Produced]:
                answers: dict[TopicPartition, Produced] = self._broker.produce(batches, acks, **options)
                calls.ranges = _written(batches, answers)
                return answers

            try:
                return self._transmit(whole.kind, carry_out, lambda: dict.fromkeys(batches, lost))
            finally:
                calls.note()
        unknown = Produced(NetworkExceptionError if acks else None, detail="the broker restarted")
        refused = {key: NOT_WRITTEN[one.kind] for key, one in calls.met.items() if one.kind in NOT_WRITTEN}
        passed = {key: some for key, some in batches.items() if key not in refused}
        answers = (
            self._transmit(
                "",
                lambda: self._broker.produce(passed, acks, **options),
                lambda: dict.fromkeys(passed, unknown),
            )
            if passed
            else {}
        )
        calls.ranges = _written(passed, answers)
        doubted = {
            key: WRITTEN[one.kind]
            for key, one in calls.met.items()
            if one.kind in WRITTEN and answers[key].error is None
        }
        told = {
            **answers,
            **{key: Produced(error, detail="by chaos") for key, error in {**refused, **doubted}.items()},
        }
        calls.note({key: told[key].error for key in calls.keys})
        return told

    def fetch(
        self, partitions: Mapping[TopicPartition, FetchFrom], **options: Any
    ) -> dict[TopicPartition, Fetched]:
        answers: dict[TopicPartition, Fetched]
        options["stored"] = False  # batches read are looked at
        if self.link is None:
            answers = self._chaos.repeated(lambda: self._broker.fetch(partitions, **options))
        else:
            answers = self._broker.fetch(partitions, **options)
        calls = Calls(
            self._chaos, self.name, FETCH, [key for key, answer in answers.items() if answer.batches]
        )
        if not calls.keys:
            return answers
        calls.ranges = {
            key: (partitions[key].offset, _end_of(answers[key].batches[-1])) for key in calls.keys
        }
        disturbances = self._disturbances(calls)
        whole = calls.whole()
        if whole is not None:
            lost = Fetched(NetworkExceptionError, NO_OFFSET, NO_OFFSET, [])
            try:
                return self._transmit(whole.kind, lambda: answers, lambda: dict.fromkeys(answers, lost))
            finally:
                calls.note()
        for key, one in calls.met.items():
            if one.kind == "not_leader":
                answers[key] = Fetched(NotLeaderForPartitionError, NO_OFFSET, NO_OFFSET, [])
            elif one.kind == "empty":
                answers[key] = answers[key]._replace(batches=[], aborted=())
        calls.note({key: answers[key].error for key in calls.keys})
        for act in disturbances:
            self._broker.hub.spawn(act).join()  # it may end this call: the consumer has to join again
        return answers

    def _disturbances(self, calls: Calls) -> list[Callable[[], None]]:
        """The effects of faults of groups at a fetch; impossible ones are forgotten."""
        found = []
        for key, fault in list(calls.met.items()):
            if KINDS[fault.kind].level == "group":
                groups = others.groups_of(self._broker, key)
                acts = [others.disturbance(self._broker, fault.kind, one, partition=key) for one in groups]
                possible = [act for act in acts if act is not None]
                found += possible
                if not possible:
                    del calls.met[key]
        return found

    # -- how a request and its answer are carried -------------------------------------------------

    def _transmit(self, kind: str, carry_out: Callable[[], T], lost: Callable[[], T]) -> T:
        """Carry a request out, or not, and its answer back, or not. ``lost`` makes the answer of a client in
        this process whose connection has ended, if it had one; raises CutError for others."""
        chaos, link = self._chaos, self.link
        if kind in BEFORE:
            if kind == "refused":
                chaos.refusals += REFUSALS
            elif kind == "disconnect":
                chaos.cut_all()
            elif kind == "restart":
                chaos.begin_restart()
                if link is None:
                    chaos.started.wait()
            if link is not None:
                raise CutError(kind)
            return lost()
        broker = self._broker
        try:
            if link is None:
                chaos.started.wait()
            answer = carry_out()
        except BrokerStoppedError:
            if link is not None or not chaos.restarted(broker):
                raise
            return lost()
        if kind == "slow_answer":
            if link is None:
                gevent.sleep(SLOW_SECONDS)
            else:
                link.slow_next(SLOW_SECONDS)
        elif kind in BEHIND:
            if link is None:
                return lost()
            if kind == "cut_answer":
                link.cut_next()
            elif kind == "half_open":
                link.silence()
            else:
                raise CutError(kind)
        return answer


# isinstance() accepts them as the interface: __getattr__ passes all other operations on.
BrokerInterface.register(ChaoticBroker)
BrokerInterface.register(ChaoticClient)


def _written(
    batches: Mapping[TopicPartition, Sequence[bytes]], answers: Mapping[TopicPartition, Produced]
) -> Ranges:
    """The offsets of what was written, by partition."""
    ranges = {}
    for key, answer in answers.items():
        offsets = answer.base_offsets
        if offsets:
            ranges[key] = (offsets[0], offsets[-1] + _count(batches[key][len(offsets) - 1]))
    return ranges


def _count(batch: bytes) -> int:
    try:
        return read_header(batch).last_offset_delta + 1
    except BatchError:
        return 1


def _end_of(batch: bytes) -> int:
    header = read_header(batch)
    return int(header.base_offset + header.last_offset_delta + 1)
