"""What a share consumer has been given, what its program says about it, and what has become of that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition

from compat.kafka.share._member import Request
from dafka.broker.interface.share import AcknowledgeType

log = logging.getLogger(__name__)

Records = dict[TopicPartition, list[Any]]
AcknowledgementCallback = Callable[[dict[TopicPartition, set[int]], "Exception | None"], object]


class Acknowledgements:
    """Of one consumer, in its program's thread.

    A record is ``delivered`` until its acknowledgement is sent, and may have another one until then. A record
    with RENEW is ``renewing`` until the outcome is known, and then, if it is no error, ``renewed``: for the
    next poll.
    """

    def __init__(self, is_implicit: bool) -> None:
        self._is_implicit = is_implicit
        self.delivered: dict[TopicPartition, dict[int, Any]] = {}
        self.types: dict[TopicPartition, dict[int, int]] = {}  # that are not sent yet
        self.sent: list[Request] = []  # whose outcome is not known yet
        self.renewing: dict[tuple[TopicPartition, int], Any] = {}
        self.renewed: Records = {}
        self.callback: AcknowledgementCallback | None = None
        self.outcomes: list[tuple[TopicPartition, set[int], Any]] = []  # that the callback is to be told
        self.failure: Exception | None = None  # of those that were sent; without a callback, for the program

    def acknowledge(self, record: Any, type_: int) -> None:
        """Note what has become of a record.

        Raises:
            IllegalStateError: it is not delivered. TypeError: not a record. ValueError: no such type.
        """
        if type_ not in (1, 2, 3, 4):
            raise ValueError(f"type is ACCEPT, RELEASE, REJECT or RENEW, not {type_!r:.100}")
        try:
            partition, offset = place(record), record.offset
        except AttributeError:
            raise TypeError(f"record is one that poll has returned, not {record!r:.100}") from None
        if offset not in self.delivered.get(partition, ()):
            raise IllegalStateError("The record cannot be acknowledged.")
        self.types.setdefault(partition, {})[offset] = int(type_)

    def with_released(self, records: Iterable[Any]) -> dict[TopicPartition, dict[int, int]]:
        """The ``types`` with which these records, which nobody has seen, are given back."""
        types = {partition: dict(some) for partition, some in self.types.items()}
        for record in records:
            types.setdefault(place(record), {})[record.offset] = int(AcknowledgeType.RELEASE)
        return types

    def settle(self, committing: bool = False) -> None:
        """Decide about delivered records as the mode says. Those that are acknowledged are to be sent.

        Raises:
            IllegalStateError: in explicit mode, unless ``committing``: one is not acknowledged.
        """
        left: dict[TopicPartition, dict[int, Any]] = {}
        renewing = dict(self.renewing)
        for partition, records in self.delivered.items():
            types = self.types.setdefault(partition, {})
            if self._is_implicit:
                types.update(dict.fromkeys(records, int(AcknowledgeType.ACCEPT)))
            for offset, record in records.items():
                if offset not in types:
                    left.setdefault(partition, {})[offset] = record
                elif types[offset] == AcknowledgeType.RENEW:
                    renewing[partition, offset] = record
        if left and not committing:
            raise IllegalStateError("All records must be acknowledged in explicit acknowledgement mode.")
        self.renewing, self.delivered = renewing, left

    @property
    def renews(self) -> bool:
        """Whether there is RENEW among those that are not sent yet."""
        return any(AcknowledgeType.RENEW in some.values() for some in self.types.values())

    def unsent(self) -> dict[TopicPartition, dict[int, int]]:
        """The acknowledgements that are to be sent."""
        return {partition: some for partition, some in self.types.items() if some}

    def learn(self) -> None:
        """Take what has become of those that were sent, and tell the callback."""
        for sent in [one for one in self.sent if one.is_over]:
            self._take(sent)
        while self.outcomes:
            partition, offsets, error = self.outcomes[0]
            told = exception_of(error)
            del self.outcomes[0]  # one by one: after a Ctrl-C in the callback it is told of the others
            if self.callback is not None:
                try:
                    self.callback({partition: offsets}, told)
                except Exception:
                    log.exception("the callback of acknowledgements has failed")

    def _take(self, sent: Request) -> None:
        """Take what has become of one request: all of it, or, if Ctrl-C comes meanwhile, nothing."""
        failure = sent.error if self.failure is None and self.callback is None else self.failure
        outcomes = self.outcomes + self.outcomes_of(sent)
        renewing = dict(self.renewing)
        renewed = dict(self.renewed)
        errors = dict(sent.outcome)
        for partition, types in sent.types.items():
            for offset in [one for one, type_ in types.items() if type_ == AcknowledgeType.RENEW]:
                record = renewing.pop((partition, offset), None)
                if record is not None and errors.get(partition) is None:
                    renewed[partition] = [*renewed.get(partition, ()), record]
        left = [one for one in self.sent if one is not sent]
        self.failure, self.outcomes = failure, outcomes
        self.renewing, self.renewed, self.sent = renewing, renewed, left

    def outcomes_of(self, request: Request) -> list[tuple[TopicPartition, set[int], Any]]:
        """What the callback, if there is one, is to be told of the acknowledgements of a request."""
        if self.callback is None:
            return []
        return [(key, set(request.types.get(key, ())), error) for key, error in request.outcome]


def place(record: Any) -> TopicPartition:
    """The partition of a record."""
    return TopicPartition(record.topic, record.partition)


def by_partition(records: Iterable[Any]) -> Records:
    """These records by partition, in their order."""
    found: Records = {}
    for record in records:
        found.setdefault(place(record), []).append(record)
    return found


def split(records: Records, count: int) -> tuple[Records, Records]:
    """The first ``count`` of these records, and the others."""
    first: Records = {}
    others: Records = {}
    for partition, some in records.items():
        taken = some[:count]
        count -= len(taken)
        if taken:
            first[partition] = taken
        if len(taken) < len(some):
            others[partition] = some[len(taken) :]
    return first, others


def exception_of(error: Any) -> Exception | None:
    """The exception of an outcome, which may be a class of them."""
    made: Exception | None = error() if isinstance(error, type) else error
    return made
