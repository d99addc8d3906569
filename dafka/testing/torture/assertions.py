"""The questions after a run with faults: was everything processed, once, in order, and committed in time?

A program reads an input topic and writes an output topic. Records of the two belong together by what ``key``
makes of them: by default their key, or their value if they have none. Failures are AssertionErrors that say
which record is concerned, and show what the clients did around it as a table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dafka.testing.torture.history import Call, History, around, table

Key = Callable[[ConsumerRecord], Any]


def key_or_value(record: ConsumerRecord) -> Any:
    """A record's key, or its value if it has none."""
    return record.value if record.key is None else record.key


class AssertionsOfBroker:
    """The part of a chaos broker that asserts."""

    @property
    @abstractmethod
    def _history(self) -> History: ...

    @abstractmethod
    def partitions(self, topic: str) -> list[int]: ...

    @abstractmethod
    def lag(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]: ...

    @abstractmethod
    def _records(self, partition: TopicPartition, committed: bool = False) -> Iterator[ConsumerRecord]: ...

    def assert_processed_at_least_once(
        self, input: str, output: str, key: Key = key_or_value, output_key: Key | None = None
    ) -> None:
        """Each record of ``input`` has one in ``output``, visible to readers of committed records.

        ``output_key`` is for the output; None: as ``key``. Records for which ``key`` gives None need none.
        """
        made = {(output_key or key)(record) for record in self._committed_records(output)}
        for record in self._committed_records(input):
            wanted = key(record)
            if wanted is not None and wanted not in made:
                self._fail(f"{_named(record)} was not processed: {output} has no {wanted!r}", record)

    def assert_processed_exactly_once(
        self, input: str, output: str, key: Key = key_or_value, output_key: Key | None = None
    ) -> None:
        """The same, and ``output`` has no record of a key more often than ``input`` has."""
        self.assert_processed_at_least_once(input, output, key, output_key)
        allowed = Counter(key(record) for record in self._committed_records(input))
        seen: Counter[Any] = Counter()
        for record in self._committed_records(output):
            made = (output_key or key)(record)
            seen[made] += 1
            if made is not None and seen[made] > allowed[made]:
                self._fail(f"{_named(record)} is one too many of {made!r}: {seen[made]}", record)

    def assert_in_order(
        self,
        input: str,
        output: str,
        key: Key = key_or_value,
        output_key: Key | None = None,
        by: Key = lambda record: record.partition,
    ) -> None:
        """Records of ``input`` with the same ``by`` (their partition) come out in their order.

        The first record of each key in ``output`` counts: a program that reads again after a failure may
        write again.
        """
        place: dict[Any, int] = {}
        for record in self._committed_records(output):
            place.setdefault((output_key or key)(record), len(place))
        last: dict[Any, ConsumerRecord] = {}
        for record in self._committed_records(input):
            if key(record) not in place:
                continue
            before = last.get(by(record))
            if before is not None and place[key(before)] > place[key(record)]:
                self._fail(f"{_named(record)} was processed before {_named(before)}", record)
            last[by(record)] = record

    def assert_no_commit_before_processing(
        self, group: str, output: str, key: Key = key_or_value, output_key: Key | None = None
    ) -> None:
        """When ``group`` committed an offset, ``output`` had a record for each one below it.

        By the history of the calls: commits in transactions are not looked at, and what was preloaded
        counts as read from the first offset on. Fails if the history has forgotten its beginning.
        """
        if not self._history.complete:
            self._fail("the history is too long: its beginning was forgotten", None)
        records: dict[Any, dict[int, ConsumerRecord]] = {}
        written = {
            (output, number, record.offset): (output_key or key)(record)
            for number in self.partitions(output)
            for record in self._records(TopicPartition(output, number))
        }
        made: set[Any] = set()
        checked: dict[Any, int] = {}
        calls = self._history.calls()
        for position, call in enumerate(calls):
            if call.operation == "produce" and call.done:
                for (topic, number), (first, end) in call.offsets.items():
                    made.update(
                        written[place]
                        for place in ((topic, number, offset) for offset in range(first, end))
                        if place in written
                    )
            if call.group != group or not call.done:
                continue
            for partition, (offset, _) in call.offsets.items():
                if partition not in records:
                    found = self._records(TopicPartition(*partition))
                    records[partition] = {record.offset: record for record in found}
                for below in range(checked.get(partition, 0), offset):
                    record = records[partition].get(below)
                    wanted = None if record is None else key(record)
                    if wanted is not None and wanted not in made:
                        self._fail(f"{_named(record)} was committed before it was processed", None, position)
                checked[partition] = max(checked.get(partition, 0), offset)

    def assert_nothing_left_behind(self, group: str, topic: str) -> None:
        """``group`` has committed its way to the end of ``topic``."""
        left = {partition: lag for partition, lag in self.lag(group, topic).items() if lag}
        if left:
            words = ", ".join(f"{lag} of {one.topic}-{one.partition}" for one, lag in left.items())
            self._fail(f"group {group!r} has left records behind: {words}", None)

    # -- inside ---------------------------------------------------------------------------------

    def _committed_records(self, topic: str) -> Iterator[ConsumerRecord]:
        for number in self.partitions(topic):
            yield from self._records(TopicPartition(topic, number), committed=True)

    def _fail(self, words: str, record: ConsumerRecord | None, position: int | None = None) -> NoReturn:
        __tracebackhide__ = True
        calls = self._history.calls()
        if position is None and record is not None:
            position = _last_about(calls, record)
        raise AssertionError(f"{words}\n{table(around(calls, position))}")


def _named(record: ConsumerRecord | None) -> str:
    assert record is not None
    return f"record {record.offset} of {record.topic}-{record.partition} ({key_or_value(record)!r})"


def _last_about(calls: list[Call], record: ConsumerRecord) -> int | None:
    """The last call that read or wrote a record, or else committed the offset behind it."""
    place = record.topic, record.partition
    found = None
    for position, call in enumerate(calls):
        first, end = call.offsets.get(place, (0, 0))
        committed = call.group and first == record.offset + 1
        if committed or (not call.group and first <= record.offset < end):
            found = position
    return found
